# SPDX-License-Identifier: Apache-2.0
"""The command line against a real daemon with virtual GPUs and real processes."""
import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest
from daemon import Daemon
from data import program, stoker_run
from patience import PATIENCE_S
from terminal import Terminal


@pytest.fixture(scope="module", name="shared")
def shared_daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("cli"), gpus=4, config="policy: {predict: no}\n") as d:  # what one test runs is no word on another's
        yield d


@pytest.fixture(name="cli")
def cli_of(shared, tmp_path):
    """Runs commands in a folder of their own."""
    def call(*args, **kwargs):
        env = {**os.environ, "STOKER_SOCKET": str(shared.socket), "LC_ALL": "C.UTF-8", **kwargs.pop("env", {})}
        return stoker_run(*args, env=env, cwd=tmp_path, **kwargs)

    call.daemon, call.folder = shared, tmp_path
    return call


def submit(cli, *args):
    out = cli("submit", "--json", *args)
    assert out.returncode == 0, out
    reply = json.loads(out.stdout)
    return reply.get("id") or reply["first"]


def test_submit_run_and_show(cli):
    out = cli("submit", "--name", "hello", "--gpus", "1", "--", "sh", "-c", "echo hi; pwd; echo $MARK; umask; sleep 0.1",
              env={"MARK": "m1"})
    number = int(re.fullmatch(r"Submitted job (\d+)\n", out.stdout)[1])
    assert cli("wait", number).returncode == 0
    log = cli("logs", number).stdout.splitlines()
    assert log[:3] == ["hi", str(cli.folder), "m1"]
    assert int(log[3], 8) == os.umask(0o22) or os.umask(0o22) is None
    shown = json.loads(cli("show", number, "--json").stdout)
    assert shown["cause"] == "completed" and shown["name"] == "hello" and shown["gpus"] == 1
    text = cli("show", number).stdout
    assert f"job {number}" in text and "completed" in text and "stoker-%d.out" % number in text
    assert re.search(r"^cost +(less than )?\d+(\.\d\d)? GPU-hours", text, re.M), text
    assert any(j["id"] == number for j in json.loads(cli("history", "--json", "--mine").stdout)["jobs"])
    assert re.search(rf"^ *{number}  hello ", cli("history").stdout, re.M)


@pytest.mark.parametrize("command,code", [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_run_exits_with_the_jobs_code(cli, command, code):
    out = cli("run", "--quiet", "--", "sh", "-c", f"echo out; {command}")
    assert (out.returncode, out.stdout, out.stderr) == (code, "out\n", ""), out


@pytest.mark.parametrize("words,code,sentence", [
    (["--", "no-such-command"], 125, "could not be started: there is no command no-such-command in its PATH"),
    (["--stdout", "/no/such/folder/x", "--", "true"], 125, "could not be started: the folder of the output file"),
    (["--time", "1s", "--", "sleep", "60"], 143, "was over its time limit of 1s"),
])
def test_run_says_why_a_job_ended_that_did_not_end_by_itself(cli, words, code, sentence):
    for quiet in ([], ["--quiet"]):
        out = cli("run", *quiet, *words)
        assert out.returncode == code and sentence in out.stderr.splitlines()[-1], out
    number = submit(cli, "--", "no-such-command")
    cli.daemon.wait(number)
    assert cli("show", number).stdout.count("there is no command") == 1
    out = cli("run", "--", "sh", "-c", "kill -9 $$")
    assert out.returncode == 137 and "was killed by signal 9 (KILL)" in out.stderr
    out = cli("run", "--", "sh", "-c", "exit 3")
    assert out.returncode == 3 and "exit code" not in out.stderr


def test_run_shows_the_output_of_all_workers(cli):
    (cli.folder / "items").write_text("".join(f"i{i}\n" for i in range(8)))
    for pattern in ([], ["--stdout", "all.out"]):
        out = cli("run", *pattern, "--items", "items", "--workers", "3", "--", "sh", "-c", "echo from {}; sleep 0.1")
        assert sorted(out.stdout.splitlines()) == [f"from i{i}" for i in range(8)], out
        assert "8 of 8 items done" in out.stderr.splitlines()[-1] and out.returncode == 0
    out = cli("run", "--items", "items", "--workers", "3", "--", "sh", "-c", "printf %s {}; exit 1")
    assert sorted(re.findall(r"i\d", out.stdout)) == [f"i{i}" for i in range(8)] and out.returncode == 1
    assert "0 of 8 items done, 8 failed" in out.stderr


def test_ctrl_c_cancels_all_workers(cli):
    (cli.folder / "items").write_text("a\nb\nc\n")
    p = subprocess.Popen([program(), "run", "--items", "items", "--workers", "3", "--", "sh", "-c", "echo go; sleep 600"], cwd=cli.folder,
                         env={**os.environ, "STOKER_SOCKET": str(cli.daemon.socket)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert [p.stdout.readline() for _ in range(3)] == ["go\n"] * 3
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=PATIENCE_S)
    assert p.returncode == 143 and "was cancelled" in err
    assert not [j for j in cli.daemon.jobs() if j["kind"] == "batch"]


def test_wait_for_an_array_waits_for_all_of_it(cli):
    number = submit(cli, "--array", "0-3", "--", "sh", "-c", "sleep 0.$STOKER_ARRAY_INDEX; [ $STOKER_ARRAY_INDEX != 2 ]")
    assert cli.daemon.wait(number)["array_index"] == 2 and not [j for j in cli.daemon.jobs() if j["array_id"] == number]
    assert cli.daemon.get(f"/v1/jobs/{number}_0/wait")["cause"] == "completed"
    out = cli("wait", number)
    assert out.returncode == 1 and out.stdout.splitlines() == [
        f"job {number}_0 completed", f"job {number}_1 completed", f"job {number}_2 failed with exit code 1", f"job {number}_3 completed"]


def test_wait_says_that_a_job_was_cancelled(cli):
    number = submit(cli, "--hold", "--", "true")
    assert cli("cancel", number).returncode == 0
    out = cli("wait", number)
    assert out.returncode == 143 and out.stdout == f"job {number} was cancelled\n"


def test_run_streams_both_outputs_in_full(cli):
    out = cli("run", "--quiet", "-e", "%j.err", "--", "sh", "-c",
              "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done; echo problem >&2")
    assert out.stdout == "".join(f"line {i}\n" for i in range(1, 2001))
    assert out.stderr == "problem\n"


def test_scripts_and_job_files(cli):
    script = cli.folder / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --job-name=fromslurm\n#SBATCH --gres=gpu:2\necho $SLURM_JOB_ID $1\n")
    number = submit(cli, script, "arg")
    assert cli("wait", number).returncode == 0
    shown = json.loads(cli("show", number, "--json").stdout)
    assert shown["name"] == "fromslurm" and shown["gpus"] == 2
    assert cli("logs", number).stdout == f"{number} arg\n"
    assert cli("show", number, "--script").stdout == script.read_text()
    number = submit(cli, "--name", "mine", script)
    assert json.loads(cli("show", number, "--json").stdout)["name"] == "mine"
    (cli.folder / "job.yaml").write_text("name: y\nresources:\n  accelerators: virtual:1\nrun: echo from yaml\n")
    out = cli("run", "--quiet", "job.yaml")
    assert out.returncode == 0 and out.stdout == "from yaml\n", out
    out = cli("run", "--quiet", "-", input="#!/bin/sh\necho from stdin\n")
    assert out.stdout == "from stdin\n", out


def test_batch_scripts_say_what_is_not_done_and_find_srun(cli):
    (cli.folder / "x.sbatch").write_text("#!/bin/sh\n#SBATCH --mail-type=END\n#SBATCH --gpus=1\nsrun echo from srun\n")
    out = cli("run", "--quiet", "x.sbatch")
    assert (out.returncode, out.stdout) == (0, "from srun\n"), out
    assert out.stderr == "stoker run: x.sbatch: --mail-type: no mail is sent\n"
    out = cli("submit", "x.sbatch", "--json")
    assert "stoker submit: x.sbatch: --mail-type" in out.stderr and "Submitted" in out.stdout


def test_show_has_the_environment_only_when_asked(cli):
    number = submit(cli, "--hold", "--env", "SPECIAL=s3cret", "--", "true")
    assert "s3cret" not in cli("show", number, "--json").stdout and "s3cret" not in cli("show", number).stdout
    assert json.loads(cli("show", number, "--json", "--env").stdout)["envs"]["SPECIAL"] == "s3cret"
    assert "SPECIAL=s3cret" in cli("show", "--env", number).stdout
    cli("cancel", number)


def test_a_job_that_has_not_started_can_be_changed(cli):
    busy = submit(cli, "--gpus", "4", "--time", "10m", "--", "sleep", "600")
    cli.daemon.until(busy, "running")
    first, second = (submit(cli, "--gpus", "4", "--time", "5m", "--name", n, "--", "sh", "-c", "sleep 0.1") for n in ("first", "second"))
    out = cli("update", second, "--time", "2h", "--priority", "600", "--name", "urgent")
    assert (out.returncode, out.stdout) == (0, f"job {second}: changed\n"), out
    job = cli.daemon.job(second)
    assert (job["name"], job["priority"], job["time_limit_s"], job["estimate_s"]) == ("urgent", 600, 7200, 7200.0)
    assert cli.daemon.job(first)["time_limit_s"] == 300
    out = cli("update", busy, "--gpus", "2")
    assert out.returncode == 1 and "of a job that has, only the time limit can be changed" in out.stderr
    assert cli("update", first).returncode == 2
    assert "priority" in cli("update", first, "--priority", "9999999999").stderr
    array = submit(cli, "--gpus", "4", "--array", "0-2", "--", "true")
    assert cli("update", array, "--time", "1h").stdout == "".join(f"job {array}_{i}: changed\n" for i in range(3))
    cli.daemon.restart()
    assert cli.daemon.job(second)["name"] == "urgent" and cli.daemon.job(array + 1)["time_limit_s"] == 3600
    cli("cancel", busy)
    cli("wait", "-q", first, second)
    assert cli.daemon.job(second)["started"] < cli.daemon.job(first)["started"] and cli.daemon.job(second)["name"] == "urgent"
    assert cli("wait", array).returncode == 0
    assert cli("store", "check", "--state", str(cli.daemon.state)).returncode == 0


def test_drain_of_a_number_says_how_gpus_are_named(cli):
    out = cli("drain", "3")
    assert out.returncode == 1 and out.stderr.endswith("for GPU 3: stoker drain --gpu 3\n"), out
    assert "NODE:INDEX" in cli("drain", "--help").stdout


def test_a_requeue_by_hand_is_no_preemption(cli):
    number = submit(cli, "--gpus", "1", "--", "sh", "-c", "[ -e again ] || { touch again; sleep 600; }")
    cli.daemon.until(number, "running")
    while not (cli.folder / "again").exists():
        time.sleep(0.02)
    assert cli("requeue", number).returncode == 0
    job = cli.daemon.wait(number)
    assert (job["restarts"], job["preemptions"], job["cause"]) == (1, 0, "completed"), job
    (cli.folder / "again").unlink()
    number = submit(cli, "--gpus", "1", "--", "sh", "-c", "sleep 600")
    cli.daemon.until(number, "running")
    assert cli("hold", number).returncode == 1 and cli("requeue", number).returncode == 0
    cli("hold", number)
    note = cli.daemon.until(number, "held", "waiting", "starting", "running")["note"]
    while note is None:
        note = cli.daemon.job(number)["note"]
    assert note.startswith("requeued by ")
    assert "preemption" not in cli("show", number).stdout
    cli("cancel", number)


def test_bad_descriptions_are_exit_2(cli):
    out = cli("submit", "--gpus", "999", "--", "true")
    assert out.returncode == 2 and out.stderr.startswith("stoker submit: ") and out.stderr.count("\n") == 1
    (cli.folder / "bad.yaml").write_text("name: y\ngpuss: 3\nrun: true\n")
    out = cli("submit", "bad.yaml")
    assert out.returncode == 2 and "gpuss" in out.stderr


def test_queue_why_and_the_verbs(cli):
    busy = submit(cli, "--gpus", "4", "--name", "busy", "--time", "10m", "--", "sleep", "600")
    cli.daemon.until(busy, "running")
    assert "expected to start at" in cli("submit", "--dry-run", "--gpus", "1", "--", "true").stdout
    waits = submit(cli, "--gpus", "4", "--name", "waits", "--", "sleep", "600")
    held = submit(cli, "--hold", "--name", "held", "--", "true")
    text = cli("queue", "--mine").stdout
    assert re.search(rf"^ *{busy}  busy +\S+ +running +4 ", text, re.M) and re.search(rf"^ *{waits}  waits +\S+ +waiting", text, re.M)
    assert [j["id"] for j in json.loads(cli("ls", "--state", "held", "--json").stdout)["jobs"]] == [held]
    assert "GPUs" in cli("why", waits).stdout and f"job {busy}" in cli("why", waits).stdout
    assert json.loads(cli("why", waits, "--json").stdout)["code"] == "gpus"
    assert "when it would start is not known" in cli("submit", "--dry-run", "--gpus", "1", "--", "true").stdout
    assert "1 running job would make room" in cli("submit", "--dry-run", "--gpus", "1", "--tier", "critical", "--", "true").stdout
    assert "at once.\n" in cli("submit", "--dry-run", "--", "true").stdout
    assert "waits" in cli("top", "--once").stdout and f"job {busy}" in cli("gpus").stdout
    assert cli("release", held).returncode == 0 and cli("wait", held).returncode == 0
    assert cli("hold", waits).returncode == 0
    assert cli.daemon.job(waits)["state"] == "held"
    assert cli("suspend", busy).returncode == 0
    cli.daemon.until(busy, "suspended", "held")
    out = cli("cancel", f"{busy},{waits}")
    assert out.returncode == 0 and out.stdout == f"job {busy}: cancelled\njob {waits}: cancelled\n"
    assert cli("wait", busy, waits, "-q").returncode == 143
    out = cli("cancel", busy, held)
    assert out.returncode == 1 and f"job {busy}" in out.stderr


def test_arrays_by_element(cli):
    first = submit(cli, "--array", "2-8:3%1", "--gpus", "1", "--", "sh", "-c", "echo $SLURM_ARRAY_TASK_ID; sleep 600")
    cli.daemon.until(first, "running")
    assert f"{first}_8" in cli("queue").stdout
    assert cli("cancel", f"{first}_8").stdout == f"job {first}_8: cancelled\n"
    assert "no element 3" in cli("cancel", f"{first}_3").stderr
    assert cli("cancel", first).returncode == 0
    assert cli("wait", first, "-q").returncode == 143
    assert all(cli.daemon.job(first + k)["cause"] == "cancelled" for k in range(3))


def test_who_ends_first_comes_first_and_who_has_no_limit_last(cli):
    jobs = [submit(cli, "--gpus", "1", *limit, "--", "sleep", "600") for limit in (["--time", "2h"], [], ["--time", "1h"])]
    pair = submit(cli, "--gpus", "1", "--array", "0-1", "--time", "3h", "--", "sleep", "600")
    for n in [*jobs, pair]:
        cli.daemon.until(n, "running")
    big = submit(cli, "--gpus", "4", "--", "true")
    why = cli("why", big).stdout.splitlines()
    assert why[0].startswith(f"job {big} needs 4 GPUs and 0 are free; job {jobs[2]} is expected to end first, ")
    who = why[why.index("Who has the GPUs:") + 1:]
    assert [re.match(r"  job (\S+) ", line)[1] for line in who] == [str(jobs[2]), str(jobs[0]), f"{pair}_0", str(jobs[1])], why
    assert why[-1].endswith("1 GPU, no time limit") and "until about" in why[-2]
    assert f"job {pair}_0 " in cli("gpus").stdout
    assert cli("suspend", jobs[0]).returncode == 0
    cli.daemon.until(jobs[0], "suspended")
    assert cli("why", jobs[0]).stdout.startswith(f"job {jobs[0]} is suspended and sleeps until somebody resumes it.\n")
    assert cli("cancel", f"{pair}_1").stdout == f"job {pair}_1: cancelled\n"
    cli("cancel", *jobs, pair, big)
    cli("wait", "-q", *jobs, pair)


def test_an_arrays_limit_is_no_dependency(cli):
    number = submit(cli, "--array", "0-3%2", "--", "sleep", "600")
    cli.daemon.until(number, "running")
    assert cli("why", f"{number}_3").stdout.splitlines()[0] == f"job {number}_3 is kept back: its array runs 2 at a time."
    assert json.loads(cli("why", f"{number}_2", "--json").stdout)["code"] == "array_limit"
    assert "its array runs 2 at a time" in cli("queue").stdout
    after = submit(cli, "--after", number, "--array", "0-3%2", "--", "true")
    assert "that it depends on" in cli("why", f"{after}_3").stdout
    cli("cancel", number, after)


def test_refusals_have_units_for_people(cli):
    for words, text in [(["--cpus", "99999"], "asks for 99999 CPUs on one node; "), (["--mem", "90000G"], "asks for 90000 GiB of memory"),
                        (["--gpus", "9", "--cpus", "1", "--mem", "1G"], "asks for 9 GPUs on one node; the most that a node it may use has is 4 GPUs"),
                        (["--tasks", "9999", "--cpus", "1"], f"9999 tasks need 9999 CPUs; this machine has {os.sysconf('SC_NPROCESSORS_ONLN')}"),
                        (["--tasks", "5", "--gpus", "1"], "5 tasks need 5 GPUs; this machine has 4"),
                        (["--tasks", "2", "--gpus", "3"], "2 tasks need 6 GPUs; this machine has 4")]:
        out = cli("submit", *words, "--", "true")
        assert out.returncode == 2 and text in out.stderr and "milli" not in out.stderr and "pool 0" not in out.stderr, out


def test_dependencies_and_names(cli):
    bad = submit(cli, "--", "false")
    never = submit(cli, "--after", bad, "--", "true")
    then = submit(cli, "--after", f"afternotok:{bad}", "--name", "then", "--", "true")
    assert cli("wait", bad, "-q").returncode == 1
    assert cli("wait", then, "-q").returncode == 0
    assert cli("wait", never, "-q").returncode == 125
    a, b = (submit(cli, "--hold", "--name", "batch-x", "--", "true") for _ in range(2))
    assert cli("cancel", "--mine", "--name", "batch-x").stdout == f"job {a}: cancelled\njob {b}: cancelled\n"


def test_the_same_key_is_the_same_job(cli):
    assert submit(cli, "--key", "k-1", "--", "true") == submit(cli, "--key", "k-1", "--", "true")


def test_ctrl_c_cancels(cli):
    p = subprocess.Popen([program(), "run", "--", "sleep", "600"], cwd=cli.folder, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "STOKER_SOCKET": str(cli.daemon.socket)})
    number = int(re.fullmatch(r"stoker: job (\d+)\n", p.stderr.readline())[1])
    cli.daemon.until(number, "running")
    p.send_signal(signal.SIGINT)
    assert p.wait(PATIENCE_S) == 143
    assert f"cancelling job {number}" in p.stderr.read()
    assert cli.daemon.job(number)["cause"] == "cancelled"


def test_drain_and_tokens(cli):
    assert cli("drain", "--gpu", "3").returncode == 0
    assert cli.daemon.get("/v1/gpus")["gpus"][3]["state"] == "drained"
    assert cli("undrain", "--gpu", "3").returncode == 0
    assert cli.daemon.get("/v1/gpus")["gpus"][3]["state"] == "free"
    assert cli("drain", "no-such-node").returncode == 1
    token = json.loads(cli("token", "create", "--name", "t", "--expires", "1d", "--json").stdout)
    assert cli.daemon.web(token=token["token"]).get("/v1/jobs").status == 200
    assert re.search(rf"^ *{token['id']}  token  t ", cli("token", "list").stdout, re.M)
    assert cli("token", "revoke", token["id"]).returncode == 0
    assert cli.daemon.web(token=token["token"]).get("/v1/jobs").status == 401


def test_run_goes_on_when_the_daemon_is_killed(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        p = subprocess.Popen([program(), "run", "--", "sh", "-c", "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last; exit 7"],
                             cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "STOKER_SOCKET": str(d.socket)})
        assert p.stdout.readline() == "first\n"
        d.kill()
        (tmp_path / "go").touch()
        while "waiting for it" not in p.stderr.readline():
            assert p.poll() is None
        d.start()
        out, err = p.communicate(timeout=PATIENCE_S)
    assert (p.returncode, out) == (7, "last\n"), err


def test_a_shell_can_be_left_and_come_back_to(cli):
    t = Terminal(cli.daemon, ["shell", "--gpus", "1"], cli.folder)
    t.type(b"echo in-$((40+2)); tty\n")
    t.expect("in-42")
    t.expect("/dev/")
    t.type(b"X=kept\n\x10\x11")
    t.expect("detached")
    assert t.end() == 0
    number = json.loads(cli("queue", "--json", "--name", "interactive").stdout)["jobs"][0]["id"]
    t = Terminal(cli.daemon, ["attach", str(number)], cli.folder)
    t.type(b"echo $X-again\n")
    t.expect("kept-again")
    t.type(b"exit 5\n")
    assert t.end() == 5


def test_attach_says_what_a_job_waits_for(cli):
    leader, follower = pty.openpty()
    made = cli("run", "--json", "--hold", "--interactive", "--detach", "--", "sh", stdin=follower)
    number = json.loads(made.stdout)["id"]
    p = subprocess.Popen([program(), "attach", str(number)], stdin=follower, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "STOKER_SOCKET": str(cli.daemon.socket)})
    assert p.stderr.readline() == f"stoker: job {number} is on hold until somebody releases it\n"
    assert cli("cancel", number).returncode == 0
    assert p.stderr.readline() == f"stoker: job {number} was cancelled\n" and p.wait(PATIENCE_S) == 143
    os.close(leader)
    os.close(follower)


def test_demo_day_is_as_it_should_be():
    out = stoker_run("demo")
    assert out.returncode == 0, out.stdout + out.stderr
    assert "All is as it should be." in out.stdout and "NOT" not in out.stdout


def test_an_empty_queue_says_so_to_people_only(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        env = {**os.environ, "STOKER_SOCKET": str(d.socket)}
        out = stoker_run("queue", env=env)
        assert (out.returncode, out.stdout, out.stderr) == (0, "", "No jobs waiting or running.\n")
        out = stoker_run("queue", "--json", env=env)
        assert (json.loads(out.stdout), out.stderr) == ({"jobs": []}, "")
        assert stoker_run("queue", "--mine", env=env).stderr == "No waiting or running jobs match.\n"
        assert stoker_run("history", env=env).stderr == "No jobs have ended.\n"
        t = Terminal(d, ["queue"], tmp_path)
        t.expect("No jobs waiting or running.")
        assert t.end() == 0


def test_gpus_have_a_header(cli):
    head, first = cli("gpus").stdout.splitlines()[:2]
    assert head.split()[:3] == ["GPU", "BUSY", "MODEL"] and head.split()[-1] == "JOB"
    assert head.index("MODEL") == first.index(cli.daemon.get("/v1/gpus")["gpus"][0]["name"]), (head, first)


@pytest.mark.parametrize("when,why", [("2027-02-30", "2027-02-30: February 2027 has 28 days"), ("2027-02-29", "2027-02-29: February 2027 has 28 days"),
                                      ("2026-04-31T10:00", "2026-04-31: April 2026 has 30 days"), ("2027-01-01T25:00", "25:00: hours are 0 to 23"),
                                      ("02/30/27", "02/30/27: February 2027 has 28 days")])
def test_days_that_do_not_exist_are_refused_wherever_a_time_is_read(cli, when, why):
    (cli.folder / "x.sbatch").write_text(f"#!/bin/sh\n#SBATCH --begin={when}\ntrue\n")
    (cli.folder / "x.yaml").write_text(f"run: 'true'\nbegin: '{when}'\n")
    for words in (["submit", "--begin", when, "--", "true"], ["submit", "--deadline", when, "--", "true"], ["submit", "x.sbatch"], ["submit", "x.yaml"],
                  ["reserve", "add", "n", "--gpus", "1", "--for", "1h", "--start", when], ["history", "--since", when], ["history", "--until", when]):
        out = cli(*words)
        assert out.returncode == 2 and why in out.stderr and out.stderr.count("\n") == 1, (words, out)


def test_a_job_that_did_not_run_names_the_job_that_it_depended_on(cli):
    bad = submit(cli, "--", "sh", "-c", "exit 3")
    cli.daemon.wait(bad)
    blocked = submit(cli, "--hold", "--", "true")
    first = submit(cli, "--after", blocked, "--", "true")
    second = submit(cli, "--after", first, "--", "true")
    late = submit(cli, "--after", bad, "--", "true")
    cli("cancel", blocked)
    for number, how in ((first, f"job {blocked} was cancelled"), (second, f"job {first} did not run"), (late, f"job {bad} failed with exit code 3")):
        job = cli.daemon.wait(number)
        assert job["cause"] == "dependency_failed" and job["note"].startswith(how), job
        assert job["state_text"].startswith(f"did not run: {how}")
        assert how in cli("show", number).stdout and how in cli("wait", number).stdout and how in cli("history").stdout
    array = submit(cli, "--array", "0-2", "--hold", "--", "sh", "-c", "exit $STOKER_ARRAY_INDEX")
    after = submit(cli, "--after", array, "--", "true")
    assert cli("release", array).returncode == 0
    assert re.match(rf"job {array}_[12] failed with exit code [12]", cli.daemon.wait(after)["note"])
    good = submit(cli, "--hold", "--", "true")
    unless = submit(cli, "--after", f"afternotok:{good}", "--", "true")
    cli("release", good)
    assert cli.daemon.wait(unless)["note"] == f"job {good} completed, and this job was to run only if it did not"


def test_logs_that_are_followed_say_why_the_job_waits_and_go_on_when_it_starts(cli):
    number = submit(cli, "--hold", "--", "echo", "at last")
    p = subprocess.Popen([program(), "logs", "-f", str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "STOKER_SOCKET": str(cli.daemon.socket)})
    assert p.stderr.readline().startswith(f"stoker: job {number} is on hold")
    assert cli("release", number).returncode == 0
    assert (p.communicate(timeout=PATIENCE_S)[0], p.returncode) == ("at last\n", 0)
