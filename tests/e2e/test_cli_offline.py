# SPDX-License-Identifier: Apache-2.0
"""The command line without a daemon, and against one of canned answers (tests/lib/fake_daemon.py)."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import threading
import time

import pytest
from data import program, stoker_run
from fake_daemon import FakeDaemon, Raw, ended, job

ESC = "\033"


def run(daemon, *args, **kwargs):
    env = {**os.environ, "STOKER_SOCKET": daemon.socket, "LC_ALL": "C.UTF-8", **kwargs.pop("env", {})}
    return stoker_run(*args, env=env, **kwargs)


def commands():
    text = stoker_run("help").stdout
    return re.findall(r"^  ([a-z-]+) +\S", text, re.M)


def test_every_command_has_help_from_its_table():
    names = commands()
    assert {"run", "submit", "queue", "why", "top", "demo", "slurm-shims"} <= set(names)
    for name in set(names) - {"serve", "store", "export"}:
        out = stoker_run(name, "--help")
        assert out.returncode == 0, (name, out.stderr)
        assert out.stdout.startswith(f"usage: stoker {name}"), name
        if name != "config":
            assert "--help" in out.stdout, name
        if name != "sim":  # lists trace formats, whose columns are long
            assert max(map(len, out.stdout.splitlines())) <= 100, name


def test_every_command_has_a_man_page():
    for name in [None, *commands()]:
        out = stoker_run("help", "--man", *([name] if name else []))
        assert out.returncode == 0 and out.stdout.startswith(".TH STOKER"), name
        assert ".SH SYNOPSIS" in out.stdout
        if shutil.which("groff"):
            bad = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=out.stdout, text=True,
                                 capture_output=True, check=False)
            assert bad.stderr == "", name


def test_unknown_words_get_the_nearest():
    assert 'did you mean "queue"?' in stoker_run("queu").stderr
    assert 'did you mean "submit"?' in stoker_run("sub").stderr
    assert stoker_run("xyzzy").returncode == 2
    out = stoker_run("submit", "--gpsu", "1", "--", "true")
    assert out.returncode == 2 and "did you mean --gpus?" in out.stderr
    assert out.stderr.count("\n") == 1


@pytest.mark.parametrize("args,says", [
    (["cancel"], "which job?"),
    (["cancel", "x"], "names no job"),
    (["cancel", "5-3"], "names no job"),
    (["cancel", "--mine", "3"], "not both"),
    (["submit"], "what shall run?"),
    (["submit", "/no/such/file"], "No such file"),
    (["submit", "--gpus", "two", "--", "true"], "--gpus takes a number"),
    (["submit", "--mem", "lots", "--", "true"], "--mem takes a size"),
    (["submit", "--time", "soon", "--", "true"], "--time takes a time"),
    (["submit", "--begin", "whenever", "--", "true"], "--begin takes a time"),
    (["submit", "--array", "9-1", "--", "true"], "array"),
    (["submit", "--after", "sometime:3", "--", "true"], "sometime"),
    (["submit", "--retry", "error=999", "--", "true"], "--retry takes"),
    (["submit", "--idle", "often", "--", "true"], "--idle takes"),
    (["submit", "--env", "1X=2", "--", "true"], "--env takes"),
    (["submit", "--env", "STK_NO_SUCH_VARIABLE", "--", "true"], "no such variable"),
    (["submit", "--secret", "X", "--", "true"], "--secret takes"),
    (["submit", "--workdir", "/no/such/dir", "--", "true"], "--workdir"),
    (["submit", "--items", "/no/such/list", "--", "true"], "--items"),
    (["submit", "--gpus", "-1", "--", "true"], "gpus"),
    (["run", "--array", "0-3", "--", "true"], "array"),
    (["run", "-it", "--", "true"], "not a terminal"),
    (["shell"], "not a terminal"),
    (["queue", "12"], "takes no words"),
    (["queue", "--limit", "0"], "--limit takes"),
    (["logs"], "which job?"),
    (["token"], "create, list or revoke"),
    (["token", "revoke"], "which token?"),
    (["adopt", "x"], "not the number of a process"),
    (["completion"], "bash, zsh or fish"),
    (["config", "polish"], "check FILE"),
    (["wait", "3", "--timeout", "x"], "--timeout takes"),
])
def test_bad_usage_gets_one_sentence_and_exit_2(args, says):
    out = stoker_run(*args, stdin=subprocess.DEVNULL)
    assert out.returncode == 2, out
    assert says in out.stderr and out.stderr.count("\n") == 1 and out.stdout == ""


@pytest.mark.parametrize("args", [["queue"], ["submit", "--", "true"], ["why", "1"], ["cancel", "1"],
                                  ["gpus"], ["top", "--once"], ["history"], ["logs", "1"], ["logs", "-f", "1"], ["wait", "1"],
                                  ["token", "list"], ["drain", "n"], ["nodes"], ["run", "--", "true"]])
def test_no_daemon_is_exit_3_with_a_hint(args, tmp_path):
    out = stoker_run(*args, "--socket", tmp_path / "none") if "--" not in args else \
        stoker_run(args[0], "--socket", tmp_path / "none", *args[1:])
    assert out.returncode == 3
    assert "stoker serve" in out.stderr and out.stdout == ""


def test_attach_does_not_wait_for_a_daemon_that_never_answered(tmp_path):
    leader, follower = pty.openpty()
    out = stoker_run("attach", "1", "--socket", tmp_path / "none", stdin=follower)
    assert out.returncode == 3 and "no daemon at" in out.stderr, out
    os.close(leader)
    os.close(follower)


def test_completion_scripts_are_valid_and_complete():
    for shell in ("bash", "zsh", "fish"):
        text = stoker_run("completion", shell).stdout
        for word in [*commands(), "gpus", "no-suspend"]:
            assert word in text, (shell, word)
        if shutil.which(shell):
            flags = ["--no-execute"] if shell == "fish" else ["-n"]
            subprocess.run([shell, *flags, "/dev/stdin"], input=text, text=True, check=True)


def bash_complete(*words):
    text = stoker_run("completion", "bash").stdout
    script = text + f"\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _stoker; " \
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_options_and_values():
    assert bash_complete("stoker", "sub") == ["submit"]
    assert bash_complete("stoker", "ls", "--mi") == ["--mine"]
    assert "--gpu-type" in bash_complete("stoker", "run", "--gp")
    assert bash_complete("stoker", "submit", "--tier", "cr") == ["critical"]


def test_bash_completes_jobs(monkeypatch):
    with FakeDaemon({"GET /v1/jobs": lambda r: {"jobs": [job(41), job(42)], "next": None}}) as d:
        monkeypatch.setenv("STOKER_SOCKET", d.socket)
        monkeypatch.setenv("PATH", os.path.dirname(program()) + ":" + os.environ["PATH"])
        assert bash_complete("stoker", "cancel", "4") == ["41", "42"]


def test_shims_are_links_and_foreign_files_are_left_alone(tmp_path):
    exe = tmp_path / "bin" / "stoker"
    exe.parent.mkdir()
    shutil.copy(program(), exe)
    (tmp_path / "bin" / "stoker-slurm").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "stoker-slurm").chmod(0o755)
    shims = tmp_path / "shims"
    call = [str(exe), "slurm-shims", str(shims)]
    subprocess.run(call, check=True, capture_output=True)
    assert os.readlink(shims / "sbatch") == str(tmp_path / "bin" / "stoker-slurm")
    assert sorted(os.listdir(shims)) == sorted("sbatch srun squeue scancel scontrol sinfo sacct sacctmgr".split())
    subprocess.run(call, check=True, capture_output=True)
    (shims / "srun").unlink()
    (shims / "srun").write_text("mine")
    assert subprocess.run(call, capture_output=True, check=False).returncode == 1
    assert subprocess.run([*call, "--remove"], capture_output=True, check=False).returncode == 1
    assert os.listdir(shims) == ["srun"]


# ---- against canned answers ----

def submit(*args, env=None, **kwargs):
    """Submits to a fake daemon; returns the description it got and the run."""
    with FakeDaemon({"POST /v1/jobs": lambda r: (201, {"id": 7})}) as d:
        out = run(d, "submit", *args, env=env or {}, **kwargs)
        return (d.seen[-1].json() if d.seen else None), out


def test_submit_sends_a_description(tmp_path):
    spec, out = submit("--gpus", "2", "--tasks", "4", "--cpus", "1.5", "--mem", "32G", "--time", "1h30m",
                       "--name", "exp", "--priority", "7", "--tier", "critical", "--hold",
                       "--after", "afterany:3:4,5", "--array", "0-9%2", "--retry", "error=2,oom=1,exit=75",
                       "--signal", "B:USR1@60", "--grace", "10", "--no-suspend", "-o", "%x-%a.out",
                       "--env", "A=1", "--gpu-type", "H200", "--idle", "warn=10m,suspend=20m",
                       "--log-max", "2G", "--comment", "hi", "--", "python3", "train.py", "--lr", "1")
    assert (out.returncode, out.stdout) == (0, "Submitted job 7\n"), out
    assert spec["command"] == ["python3", "train.py", "--lr", "1"]
    want = {"gpus": 2, "tasks": 4, "cpus": 1.5, "mem_mib": 32768, "time_limit_s": 5400, "name": "exp",
            "priority": 7, "tier": "critical", "hold": True, "grace_s": 10, "suspend": "never",
            "stdout": "%x-%a.out", "gpu_types": ["H200"], "idle": {"warn_s": 600, "suspend_s": 1200},
            "log_max_mib": 2048, "comment": "hi",
            "retry": {"error": 2, "oom": 1, "exit_codes": [75]},
            "signal": {"signal": "USR1", "seconds": 60, "who": "batch"}}
    assert {k: spec[k] for k in want} == want
    assert [(d["type"], d["job"]) for d in spec["depends"]] == [("afterany", 3), ("afterany", 4), ("afterok", 5)]
    assert spec["array"]["limit"] == 2
    assert spec["envs"]["A"] == "1" and spec["envs"]["PATH"] == os.environ["PATH"]
    assert spec["workdir"] == os.getcwd() and isinstance(spec["umask"], int)


def test_submit_sends_each_job_once_even_when_the_answer_is_lost():
    keys = []

    def lose_first(req):
        keys.append(req.headers["idempotency-key"])
        return Raw(b"") if len(keys) == 1 else (201, {"id": 7})

    with FakeDaemon({"POST /v1/jobs": lose_first}) as d:
        assert run(d, "submit", "--", "true").stdout == "Submitted job 7\n"
        run(d, "submit", "--key", "mine", "--", "true")
    assert keys[0] == keys[1] and len(keys[0]) > 20 and keys[2] == "mine"


def test_scripts_programs_and_input(tmp_path):
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho $1\n")
    spec, _ = submit(script, "a", "--gpus")
    assert spec["script"] == script.read_text() and spec["args"] == ["a", "--gpus"]
    assert spec["name"] == "job.sh"
    spec, _ = submit("-", input="echo hi\n")
    assert spec["script"] == "echo hi\n"
    spec, _ = submit(program(), "help")
    assert spec["command"] == [os.path.realpath(program()), "help"]
    spec, _ = submit("sleep", "1")
    assert spec["command"] == ["sleep", "1"]
    plain = tmp_path / "train.py"
    plain.write_text("print(1)\n")
    spec, out = submit(plain)
    assert spec is None and out.returncode == 2 and "-- python3" in out.stderr


def test_environment_and_items(tmp_path):
    spec, _ = submit("--no-env", "--env", "KEEP", "--", "true", env={"KEEP": "me", "STOKER_JOB_ID": "3"})
    assert spec["envs"] == {"KEEP": "me"}
    spec, _ = submit("--", "true", env={"KEEP": "me", "STOKER_JOB_ID": "3", "SLURM_NTASKS": "9"})
    assert spec["envs"]["KEEP"] == "me"
    assert "STOKER_JOB_ID" not in spec["envs"] and "SLURM_NTASKS" not in spec["envs"]
    spec, out = submit("--", "true", env={f"BIG{i}": "x" * 100000 for i in range(11)})
    assert spec is None and out.returncode == 2 and "--no-env" in out.stderr
    items = tmp_path / "items"
    items.write_text("a.wav\n\nb c.wav\r\nd.wav")
    spec, _ = submit("--items", items, "--workers", "2", "--", "true")
    assert spec["items"] == ["a.wav", "b c.wav", "d.wav"] and spec["kind"] == "batch" and spec["workers"] == 2


HOSTILE = f"x{ESC}[2J{ESC}]0;pwned\a\u202eevil\x9b31m\nrow"


def test_text_from_the_daemon_cannot_touch_the_terminal():
    bad = {"name": HOSTILE, "user": HOSTILE, "state_text": HOSTILE, "comment": HOSTILE, "note": HOSTILE,
           "state": "waiting", "stdout": HOSTILE, "command": [HOSTILE], "cause": HOSTILE}
    hostile = {"error": {"code": "x", "message": HOSTILE}}
    cluster = {"version": "1", "policy": HOSTILE, "virtual": True, "now": 1.0, "nodes": 1, "jobs": {}, "gpus": {},
               "gpu_list": [{"index": 0, "name": HOSTILE, "state": "off", "off": HOSTILE, "mem_mib": 5,
                             "foreign": [{"pid": 1, "user": HOSTILE, "name": HOSTILE, "mem_mib": 3}]}],
               "running": [job(1, **bad)], "waiting": [job(2, **bad)]}
    routes = {"GET /v1/jobs": lambda r: {"jobs": [job(1, **bad)], "next": None},
              "GET /v1/history": lambda r: {"jobs": [ended(1, **{**bad, "state": "done"})], "next": None},
              "GET /v1/jobs/1": lambda r: job(1, **bad),
              "GET /v1/jobs/1/why": lambda r: {"sentence": HOSTILE, "change": HOSTILE},
              "GET /v1/jobs/1/wait": lambda r: ended(1, **{**bad, "state": "done"}),
              "GET /v1/jobs/9": lambda r: (500, hostile),
              "GET /v1/cluster": lambda r: cluster,
              "GET /v1/gpus": lambda r: {"gpus": cluster["gpu_list"], "next": None},
              "GET /v1/nodes": lambda r: {"nodes": [{"name": HOSTILE, "state": HOSTILE, "pool": HOSTILE}], "next": None},
              "GET /v1/tokens": lambda r: {"tokens": [{"id": 1, "name": HOSTILE, "user": HOSTILE}]},
              "POST /v1/jobs/act": lambda r: {"results": [{"id": 1, "error": HOSTILE}, {"id": 2, "state": HOSTILE}]},
              "POST /v1/jobs": lambda r: {"id": 1, "state_text": HOSTILE, "stdout": HOSTILE}}
    with FakeDaemon(routes) as d:
        for args in (["queue"], ["history"], ["show", "1"], ["why", "1"], ["wait", "1"], ["show", "9"],
                     ["top", "--once"], ["gpus"], ["nodes"], ["token", "list"], ["cancel", "1"],
                     ["submit", "--dry-run", "--", "true"], ["queue", "--json"]):
            out = run(d, *args)
            text = out.stdout + out.stderr
            assert text, args
            for bad_char in (ESC, "\a", "\u202e", "\x9b"):
                assert bad_char not in text, (args, text)


def test_queue_follows_pages_and_filters():
    def page(req):
        after, limit = int(req.query.get("after", 0)), int(req.query["limit"])
        ids = [n for n in range(1, 2501) if n > after][:limit]
        return {"jobs": [job(n) for n in ids], "next": ids[-1] if ids and ids[-1] < 2500 else None}

    with FakeDaemon({"GET /v1/jobs": page}) as d:
        out = run(d, "queue", "--json", "--mine", "--state", "running", "--name", "a b&c")
        assert [j["id"] for j in json.loads(out.stdout)["jobs"]] == list(range(1, 2501))
        assert {k: d.seen[0].query[k] for k in ("user", "state", "name")} == \
            {"user": "me", "state": "running", "name": "a b&c"}
        out = run(d, "queue", "--json", "--limit", "1200")
        assert len(json.loads(out.stdout)["jobs"]) == 1200


def test_queue_fits_the_terminal():
    jobs = [job(n, name="a-very-long-name-" * 4, state="waiting", node=None,
                state_text="needs 8 GPUs and there are only 3 of them free on this machine now") for n in range(3)]
    with FakeDaemon({"GET /v1/jobs": lambda r: {"jobs": jobs, "next": None}}) as d:
        out = run(d, "queue", env={"COLUMNS": "70"}).stdout
        assert max(map(len, out.splitlines())) <= 70 and "…" in out
        out = run(d, "queue", env={"COLUMNS": "70", "LC_ALL": "C"}).stdout
        assert out.isascii() and ".." in out
        assert "there are only 3" in run(d, "queue").stdout


def test_colours_only_on_a_terminal(monkeypatch):
    with FakeDaemon({"GET /v1/jobs": lambda r: {"jobs": [job(1)], "next": None}}) as d:
        assert ESC not in run(d, "queue").stdout
        assert ESC + "[32m" in on_terminal(d, ["queue"])[1]
        assert ESC not in on_terminal(d, ["queue"], env={"NO_COLOR": "1"})[1]


def on_terminal(daemon, args, env=None, keys=b"", wait_for=None):
    """Runs on a pty; types 'keys' once 'wait_for' is seen. The exit code and what was shown."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"STOKER_SOCKET": daemon.socket, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
        os.execv(program(), [program(), *args])
    shown = b""
    typed = not keys
    while True:
        try:
            if not select.select([fd], [], [], 20)[0]:
                os.kill(pid, signal.SIGKILL)
                break
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
        if not typed and wait_for.encode() in shown:
            os.write(fd, keys)
            typed = True
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


def test_verbs_report_per_job_and_fail_when_one_fails():
    def act(req):
        ids = req.json()["ids"]
        return {"results": [{"id": i, "state": "stopping"} if i != 4 else {"id": i, "error": "is not yours"} for i in ids]}

    routes = {"POST /v1/jobs/act": act, **{f"GET /v1/jobs/{n}": (lambda n: lambda r: job(n))(n) for n in range(1, 9)}}
    with FakeDaemon(routes) as d:
        out = run(d, "cancel", "1,2", "7")
        assert out.returncode == 0
        assert d.seen[-1].json() == {"verb": "cancel", "ids": [1, 2, 7]}
        assert [line.split(":")[0] for line in out.stdout.splitlines()] == ["job 1", "job 2", "job 7"]
        out = run(d, "hold", "3-5")
        assert out.returncode == 1 and "job 4: is not yours" in out.stderr
        assert d.seen[-1].json() == {"verb": "hold", "ids": [3, 4, 5]}


def array_routes(indices, first=10):
    """An array of which all elements live, and job 99 after it."""
    jobs = {first + k: job(first + k, array_id=first, array_index=i) for k, i in enumerate(indices)}
    jobs[99] = job(99)

    def page(req):
        return {"jobs": [j for n, j in sorted(jobs.items()) if n > int(req.query.get("after", 0))], "next": None}

    def act(req):
        return {"results": [{"id": i, "state": "stopping"} for i in req.json()["ids"]]}

    return {"GET /v1/jobs": page, "POST /v1/jobs/act": act,
            **{f"GET /v1/jobs/{n}": (lambda j: lambda r: j)(j) for n, j in jobs.items()}}


@pytest.mark.parametrize("indices", [[0, 1, 2, 3, 4], [1, 3, 7, 8, 20], [5]])
def test_an_array_is_its_elements(indices):
    with FakeDaemon(array_routes(indices)) as d:
        run(d, "cancel", "10")
        assert d.seen[-1].json()["ids"] == list(range(10, 10 + len(indices)))
        for k, index in enumerate(indices):
            run(d, "cancel", f"10_{index}")
            assert d.seen[-1].json()["ids"] == [10 + k], index
        out = run(d, "cancel", "10_6")
        assert out.returncode == 1 and "no element 6" in out.stderr
        run(d, "cancel", "99")
        assert d.seen[-1].json()["ids"] == [99]


class Life:
    """Routes of a job that goes through states, one for each look, and writes a log."""

    def __init__(self, *looks, log=b"", after_cancel=None):
        self.looks, self.log, self.after_cancel, self.cancelled = list(looks), log, after_cancel, threading.Event()

    def look(self, req):
        if self.cancelled.is_set() and self.after_cancel:
            return self.after_cancel
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def cancel(self, req):
        self.cancelled.set()
        return {"results": [{"id": 7, "state": "stopping"}]}

    def send_log(self, req):
        return self.log[int(req.query.get("offset", 0)):] if req.query["stream"] == "stdout" else b""

    def routes(self):
        return {"POST /v1/jobs": lambda r: (201, {"id": 7}), "GET /v1/jobs/7": self.look,
                "GET /v1/jobs/7/log": self.send_log, "POST /v1/jobs/act": self.cancel,
                "GET /v1/jobs/7/wait": self.look}


WAITING = job(7, state="waiting", started=None, node=None, state_text="needs 1 GPU")


def test_run_shows_output_and_exits_with_the_jobs_code():
    life = Life(WAITING, WAITING, job(7), ended(7, "failed", 3), log=b"hello\n")
    with FakeDaemon(life.routes()) as d:
        out = run(d, "run", "--", "x")
    assert (out.returncode, out.stdout) == (3, "hello\n"), out
    assert "job 7 is waiting" in out.stderr
    with FakeDaemon(Life(ended(7, "killed", None, signal=9)).routes()) as d:
        assert run(d, "run", "--quiet", "--", "x").returncode == 137


def test_run_cancels_on_ctrl_c():
    life = Life(WAITING, after_cancel=ended(7, "cancelled", None))
    with FakeDaemon(life.routes()) as d:
        code, shown = on_terminal(d, ["run", "--", "x"], keys=b"\x03", wait_for="needs 1 GPU")
    assert life.cancelled.is_set() and "cancelling job 7" in shown
    assert code == 143


def test_run_survives_a_daemon_that_goes_away():
    looks = iter([job(7), Raw(b""), Raw(b"HTTP/1.1 200 OK\r\n"), job(7), ended(7)])
    life = Life(log=b"")
    routes = {**life.routes(), "GET /v1/jobs/7/wait": lambda r: next(looks, ended(7)),
              "GET /v1/jobs/7/log": lambda r: b"all of it\n"[int(r.query.get("offset", 0)):]}
    with FakeDaemon(routes) as d:
        out = run(d, "run", "--", "x")
    assert (out.returncode, out.stdout) == (0, "all of it\n"), out
    said = out.stderr.splitlines()
    assert said[0] == "stoker: job 7" and all("waiting for it" in line or "is back" in line for line in said[1:]), said  # more only where that took a second


def test_wait_exits_with_the_highest_code():
    routes = {"GET /v1/jobs/1": lambda r: job(1), "GET /v1/jobs/2": lambda r: job(2),
              "GET /v1/jobs/1/wait": lambda r: ended(1), "GET /v1/jobs/2/wait": lambda r: ended(2, "failed", 9)}
    with FakeDaemon(routes) as d:
        assert run(d, "wait", "1").returncode == 0
        out = run(d, "wait", "1", "2")
        assert out.returncode == 9 and "job 1 completed" in out.stdout and "job 2 failed" in out.stdout
        out = run(d, "wait", "1", "2", "--json")
        assert json.loads(out.stdout)["code"] == 9
        assert run(d, "wait", "5").returncode == 125
    with FakeDaemon({"GET /v1/jobs/1": lambda r: job(1), "GET /v1/jobs/1/wait": lambda r: time.sleep(0.1) or job(1)}) as d:
        assert run(d, "wait", "1", "--timeout", "1").returncode == 124


def test_logs_are_raw_in_a_pipe_and_filtered_on_a_terminal():
    log = f"a{ESC}[31mred{ESC}[0m{ESC}[2Jb\n".encode()
    looks = iter([job(1)])
    with FakeDaemon({"GET /v1/jobs/1": lambda r: job(1), "GET /v1/jobs/1/log": lambda r: log, "GET /v1/jobs/1/wait": lambda r: next(looks, ended(1))}) as d:
        assert run(d, "logs", "1").stdout == log.decode()
        assert d.seen[-1].query == {"stream": "stdout"}
        _, shown = on_terminal(d, ["logs", "1", "--tail", "5", "-f"])
        assert f"{ESC}[31mred" in shown and f"{ESC}[2J" not in shown
        (asked,) = [r.query for r in d.seen[1:] if r.path == "/v1/jobs/1/log"]
        assert asked == {"stream": "stdout", "task": "0", "tail": "5", "follow": "1", "counts": "line"}


CLUSTER = {"version": "1", "policy": "default", "virtual": True, "now": 1.0e9 + 60, "nodes": 1,
           "jobs": {"running": 1, "waiting": 1, "blocked": 0, "held": 0}, "gpus": {"total": 2, "busy": 1},
           "gpu_list": [{"index": 0, "name": "virtual", "state": "busy", "job": 1, "user": "ada", "util": 62.0,
                         "mem_mib": 81920, "mem_used_mib": 40960, "temp_c": 55, "power_w": 300},
                        {"index": 1, "name": "virtual", "state": "free", "mem_mib": 81920, "job": None, "user": None,
                         "foreign": [{"pid": 4242, "user": "bob", "name": "python", "mem_mib": 642, "age_s": 172800}]}],
           "running": [job(1)], "waiting": [job(2, state="waiting", node=None, name="zzz", state_text="needs 2 GPUs")]}


def test_top_once_prints_a_frame():
    with FakeDaemon({"GET /v1/cluster": lambda r: CLUSTER, "GET /v1/gpus": lambda r: {"gpus": CLUSTER["gpu_list"], "next": None}}) as d:
        for args in (["top", "--once"], ["gpus"]):
            text = run(d, *args).stdout
            assert "██████▎" in text and "62%" in text and "55 C" in text and "300 W" in text
            assert "process 4242 of bob" in text and "642 MiB" in text and "not a job" in text
        text = run(d, "top", "--once").stdout
        assert "GPUs 1/2" in text and "needs 2 GPUs" in text and "1:00" in text
        assert re.search(r"^ada +█", text, re.M)
        assert run(d, "gpus", env={"LC_ALL": "C"}).stdout.isascii()
        assert json.loads(run(d, "top", "--json").stdout) == CLUSTER


def test_top_is_a_full_screen_with_keys():
    with FakeDaemon({"GET /v1/cluster": lambda r: CLUSTER}) as d:
        code, shown = on_terminal(d, ["top"], keys=b"s/zzz\rq", wait_for="needs 2 GPUs")
    assert code == 0
    assert shown.startswith(f"{ESC}[?1049h") and shown.rstrip().endswith(f"{ESC}[?1049l")


@pytest.mark.parametrize("answer,code", [
    (b"garbage\r\n\r\n", 1),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nnope!", 1),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", 3),
    (b"", 3),
    (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", 1),
    (b'HTTP/1.1 403 No\r\nContent-Length: 34\r\n\r\n{"error":{"message":"not for you"}}', 1),
])
def test_broken_answers_are_a_sentence(answer, code):
    with FakeDaemon({"GET /v1/jobs": lambda r: Raw(answer)}) as d:
        out = run(d, "queue")
    assert out.returncode == code and out.stderr.startswith("stoker queue: ") and out.stderr.count("\n") == 1


def test_config_is_checked_and_shown(tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("virtual_gpus: 4\npolicy: easy\nidle:\n  warn: 10m\n")
    bad.write_text("polcy: easy\n")
    assert stoker_run("config", "check", good).returncode == 0
    out = stoker_run("config", "check", bad)
    assert out.returncode == 2 and "polcy" in out.stderr and out.stderr.count("\n") == 1
    shown = stoker_run("config", "show", good).stdout
    assert {"virtual_gpus: 4", "  bundle: easy", "  warn: 10m", "  foreign: block"} <= set(shown.splitlines())


def test_what_config_shows_can_be_read_back(tmp_path):
    first, again = tmp_path / "first.yaml", tmp_path / "again.yaml"
    for text in ["{}\n", "policy: sjf\n", """\
listen: "[::1]:0"
state: "/tmp/with a \\"quote\\" and: colon"
hosts: [a.example, "b c"]
admins: []
insecure: yes
policy:
  bundle: easy
  order: fifo
  params: {backfill.depth: 7}
retention: {age: 36h, size: 1536M}
idle: {warn: 90s}
slurm: {accounts: {vis-2024: vision, "a b": language}}
"""]:
        first.write_text(text)
        out = stoker_run("config", "show", first)
        assert out.returncode == 0, out
        again.write_text(out.stdout)
        assert stoker_run("config", "check", again).returncode == 0, stoker_run("config", "check", again)
        assert stoker_run("config", "show", again).stdout == out.stdout
    assert "age: 36h" in out.stdout and "size: 1536M" in out.stdout and 'hosts: [a.example, "b c"]' in out.stdout
    assert "vis-2024: vision" in out.stdout


def test_socket_and_json_may_come_before_the_command():
    with FakeDaemon({"GET /v1/jobs": lambda r: {"jobs": [], "next": None}}) as d:
        for words in (["--json", "queue"], ["--json", "--socket", d.socket, "queue", "--mine"], [f"--socket={d.socket}", "queue", "--json"]):
            out = stoker_run(*words, env={**os.environ, "STOKER_SOCKET": d.socket if "--socket" not in " ".join(words) else "/nowhere"})
            assert (out.returncode, out.stdout) == (0, '{"jobs":[]}\n'), out
    assert stoker_run("--json").returncode == 2
    assert stoker_run("--sockt", "x", "queue").returncode == 2


def test_commands_that_the_sdk_and_the_page_name_exist():
    root = pathlib.Path(__file__).resolve().parents[2]
    named = re.findall(r"'stoker ([a-z-]+)", (root / "sdk/python/stoker.py").read_text(encoding="utf-8"))
    page = re.search(r"<noscript>(.*?)</noscript>", (root / "web/src/index.html").read_text(encoding="utf-8")).group(1)
    named += re.findall(r"stoker ([a-z-]+)", page)
    assert {"top", "queue"} <= set(named) <= set(commands()), named
