# SPDX-License-Identifier: Apache-2.0
"""The Slurm-compatible commands against a real daemon: by hand, with the real submitit, and with Lightning's own
code for Slurm (without torch: tests/lib/lightning_slurm.py says how)."""
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import daemon as daemon_lib  # noqa: E402
from patience import PATIENCE_S, until  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = daemon_lib.STOKER.parent
PROGRAM = BUILD / "stoker-slurm"
VENV = BUILD / "venv/bin/python"
COMMANDS = ["sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo", "sacct", "sacctmgr"]

pytestmark = pytest.mark.skipif(not (PROGRAM.exists() and daemon_lib.STOKERD.exists()), reason="not built")
needs_venv = pytest.mark.skipif(not VENV.exists(), reason="no build/venv; run scripts/bootstrap test")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    bin_dir = folder / "bin"
    bin_dir.mkdir()
    for name in COMMANDS:
        (bin_dir / name).symlink_to(PROGRAM)
    with daemon_lib.Daemon(folder, gpus=4) as d:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "STOKER_"))}
        env.update(STOKER_SOCKET=str(d.socket), PATH=f"{bin_dir}:{env['PATH']}")
        yield Slurm(d, folder, env)


class Slurm:
    def __init__(self, d, folder, env):
        self.d, self.folder, self.env = d, folder, env

    def run(self, *words, code=0, env=None, cwd=None, **more):
        a = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                           env={**self.env, **(env or {})}, cwd=cwd or self.folder, **more)
        assert a.returncode == code, (words, a.returncode, a.stdout, a.stderr)
        return a

    def out(self, *words, **more):
        return self.run(*words, **more).stdout

    def script(self, text, name="job.sh"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path

    def submit(self, *words, **more):
        return int(self.out("sbatch", "--parsable", *words, **more))

    def until_text(self, path, text):
        return until(lambda: path.exists() and text in (said := path.read_text()) and said,
                     say=lambda: f"{text!r} in {path}: {path.read_text() if path.exists() else 'no file'}")

    def state(self, job):
        return self.out("sacct", "-P", "-n", "-o", "State", "-j", job).split()


# ---- sbatch ----


def test_sbatch_says_what_tools_look_for(slurm):
    path = slurm.script("""
        #!/bin/bash
        #SBATCH --job-name=hello --output=hello-%j.txt
        echo "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_SUBMIT_DIR $1"
    """)
    said = slurm.out("sbatch", path, "an argument")
    job = int(re.fullmatch(r"Submitted batch job (\d+)\n", said)[1])
    assert slurm.d.wait(job)["cause"] == "completed"
    assert (slurm.folder / f"hello-{job}.txt").read_text() == f"{job} hello {slurm.folder} an argument\n"


def test_sbatch_reads_standard_input_and_wrap(slurm):
    job = int(slurm.out("sbatch", "--parsable", "-o", "in-%j", input="#!/bin/sh\necho from stdin\n"))
    slurm.d.wait(job)
    assert (slurm.folder / f"in-{job}").read_text() == "from stdin\n"
    job = slurm.submit("--wrap", "echo a 'b c'")
    slurm.d.wait(job)
    assert (slurm.folder / f"slurm-{job}.out").read_text() == "a b c\n"


def test_sbatch_wait_exits_as_the_job_did(slurm):
    slurm.run("sbatch", "--wait", "--wrap", "exit 7", code=7)
    slurm.run("sbatch", "-W", "--array=0-2", "--wrap", "exit $SLURM_ARRAY_TASK_ID", code=2)


def test_sbatch_exports_the_environment(slurm):
    job = slurm.submit("-o", "env-%j", "--wrap", 'echo "$A-$B-$SLURM_NTASKS-$SLURM_PROCID"', "-n2",
                       env={"A": "1", "B": "2", "SLURM_PROCID": "9", "SLURM_JOB_ID": "8"})
    slurm.d.wait(job)
    assert (slurm.folder / f"env-{job}").read_text() == "1-2-2-0\n"
    job = slurm.submit("-o", "env-%j", "--export=B,C=3", "--wrap", 'echo "$A-$B-$C"', env={"A": "1", "B": "2"})
    slurm.d.wait(job)
    assert (slurm.folder / f"env-{job}").read_text() == "-2-3\n"


def test_sbatch_test_only_submits_nothing(slurm):
    before = slurm.out("sacct", "-n", "-X", "-S", "now-1hour")
    a = slurm.run("sbatch", "--test-only", "--gpus=1", "--wrap", "true")
    assert "would start now" in a.stderr and a.stdout == ""
    a = slurm.run("sbatch", "--test-only", "--gpus=64", "--wrap", "true", code=1)
    assert "allocation failure" in a.stderr
    assert slurm.out("sacct", "-n", "-X", "-S", "now-1hour") == before


def test_unknown_flags_fail_by_name_and_nothing_is_submitted(slurm):
    before = slurm.out("sacct", "-n", "-S", "now-1hour")
    for words, said in [
        (["sbatch", "--gpux=1", "--wrap", "true"], "unknown flag --gpux; did you mean --gpus?"),
        (["sbatch", "--exclusive=user", "--wrap", "true"], "--exclusive: takes no value here"),
        (["srun", "--multi-prog", "x"], "--multi-prog: is not supported"),
        (["squeue", "--steps"], "unknown flag --steps"),
        (["squeue", "-o", "%Y"], "%Y, which is not known"),
        (["sacct", "--json"], "--json is not supported"),
        (["sacct", "-o", "Color"], 'Invalid field requested: "Color"'),
        (["scancel", "--cron", "1"], "unknown flag --cron"),
        (["scancel"], "No job identification provided"),
        (["sinfo", "-o", "%Q"], "%Q, which is not known"),
        (["scontrol", "reconfigure"], "invalid keyword: reconfigure"),
        (["scontrol", "update", "JobId=1", "NumNodes=5"], "update NumNodes=5 is not supported"),
        (["scontrol", "update", "JobId=1", "TimeLimit=soon"], "update: TimeLimit=soon is not understood"),
    ]:
        a = slurm.run(*words, code=2)
        assert said in a.stderr and a.stderr.startswith(words[0] + ": error: "), a.stderr
        assert a.stdout == ""
    path = slurm.script("#!/bin/sh\n#SBATCH --mem=much\n", "bad.sh")
    assert "bad.sh:2: --mem: must be a size" in slurm.run("sbatch", path, code=2).stderr
    assert slurm.out("sacct", "-n", "-S", "now-1hour") == before


# ---- looking ----


def test_squeue_and_sacct_as_tools_call_them(slurm):
    job = slurm.submit("--comment", "a=1,b", "-J", "bk", "--gpus=1", "--wrap", "sleep 600")
    slurm.d.until(job, "running")
    assert slurm.out("squeue", "--name=bk", "--noheader", "--format=%k,%A") == f"a=1,b,{job}\n"
    assert slurm.out("squeue", "-h", "-j", job, "-o", "%i %t %T %D %P").split() == [str(job), "R", "RUNNING", "1", "default"]
    assert slurm.out("squeue", "-h", "-u", "nobody") == ""
    assert slurm.out("squeue", "-h", "--me", "-t", "PD,CG", "-n", "bk") == ""
    assert slurm.out("squeue", "-h", "-O", "JobID:10,StateCompact:4", "-n", "bk") == f"{job:<10}R   \n"
    head = slurm.out("squeue", "-n", "bk").splitlines()
    assert head[0].split() == ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    assert slurm.out("sacct", "-o", "JobID,State", "--parsable2", "-j", job) == f"JobID|State\n{job}|RUNNING\n"
    assert slurm.out("sacct", "-n", "-p", "-o", "JobID,State", "-j", f"{job}.batch") == f"{job}|RUNNING|\n"
    show = slurm.out("scontrol", "show", "job", job)
    assert f"JobId={job} " in show and "JobState=RUNNING" in show
    slurm.run("scancel", job)
    slurm.d.wait(job)
    assert slurm.state(job) == ["CANCELLED"]
    assert slurm.out("squeue", "-h", "-j", job) == ""
    slurm.run("scancel", job)  # it has ended: no error, as with Slurm's
    assert "Invalid job id specified" in slurm.run("scancel", 99999, code=1).stderr
    assert slurm.out("sacct", "-n", "-j", 99999) == ""


def test_what_sacct_prints_can_be_simulated(slurm, tmp_path):
    jobs = [slurm.submit("--gpus=2", "-t", "5", "--wrap", "sleep 2") for _ in range(3)]
    for job in jobs:
        slurm.d.wait(job)
    form = "JobIDRaw,JobID,User,Account,Partition,Submit,Eligible,Start,ElapsedRaw,TimelimitRaw,State,NNodes,ReqTRES,AllocTRES"
    path = tmp_path / "sacct.txt"
    path.write_text(slurm.out("sacct", "-aXP", "-S", "now-1hour", "-o", form))
    trace = tmp_path / "jobs.jsonl"
    run = slurm.run(BUILD / "stoker", "sim", path, "--recorded", "--json", "--trace-out", trace)
    runs = json.loads(run.stdout)["runs"]
    assert runs[0]["bundle"] == "recorded" and runs[0]["finished"] == runs[1]["finished"] >= 3
    mine = {j["id"]: j for j in map(json.loads, trace.read_text().splitlines()) if j["id"] in jobs}
    assert sorted(mine) == jobs
    assert all(j["gpus"] == 2 and j["estimate_s"] == 300 and j["duration_s"] >= 1 for j in mine.values()), mine


def test_states_in_slurms_words(slurm):
    slurm.d.wait(ok := slurm.submit("--wrap", "true"))
    slurm.d.wait(bad := slurm.submit("--wrap", "exit 3"))
    slurm.d.wait(late := slurm.submit("--time=0:01", "--wrap", "sleep 600"))
    held = slurm.submit("-H", "--wrap", "true")
    after = slurm.submit("-d", f"afterok:{held}", "--wrap", "true")
    rows = slurm.out("sacct", "-nPX", "-o", "JobID,State,ExitCode", "-j", f"{ok},{bad},{late},{held}").splitlines()
    assert rows == [f"{ok}|COMPLETED|0:0", f"{bad}|FAILED|3:0", f"{late}|TIMEOUT|0:0", f"{held}|PENDING|0:0"]
    assert slurm.out("squeue", "-h", "-j", f"{held},{after}", "-o", "%t %r").splitlines() == ["PD JobHeldUser", "PD Dependency"]
    slurm.run("scontrol", "release", held)
    assert slurm.d.wait(after)["cause"] == "completed"


def test_sinfo(slurm):
    assert slurm.out("sinfo").split()[:6] == ["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"]
    pool, up, limit, n, state, _, gres = slurm.out("sinfo", "-h", "-o", "%P %a %l %D %t %N %G").split()
    assert (pool, up, limit, n) == ("default*", "up", "infinite", "1")
    assert state in ("idle", "mix") and re.fullmatch(r"gpu:.*:4", gres)


def test_host_lists(slurm):
    assert slurm.out("scontrol", "show", "hostnames", "n[1-3,07],gpu2").split() == ["n1", "n2", "n3", "n07", "gpu2"]
    assert slurm.out("scontrol", "show", "hostnames", env={"SLURM_JOB_NODELIST": "a[1-2]"}).split() == ["a1", "a2"]


def test_update_of_a_job_that_waits(slurm):
    job = slurm.submit("--hold", "--time=10", "--wrap", "true")
    slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=1-00:30:00", "Nice=100", "JobName=late")
    now = slurm.d.job(job)
    assert (now["time_limit_s"], now["priority"], now["name"]) == (88200, 400, "late")
    shown = slurm.out("scontrol", "show", "job", job)
    assert "JobName=late" in shown and "TimeLimit=1-00:30:00" in shown and "Priority=400" in shown
    slurm.run("scontrol", "update", f"JobId={job}", "Priority=700")
    assert slurm.d.job(job)["priority"] == 700
    slurm.run("scontrol", "release", job)
    assert slurm.d.wait(job)["cause"] == "completed"
    slurm.run("scontrol", "update", f"JobId={job}", "Priority=700", code=1)


# ---- arrays ----


def test_elements_of_an_array(slurm):
    job = slurm.submit("--array=1,3-4%2", "-o", "arr-%A_%a", "--wrap", "sleep 600")
    slurm.d.until(job, "running")
    rows = slurm.out("squeue", "-h", "-j", job, "-o", "%i %K %F").split("\n")[:-1]
    assert rows == [f"{job}_1 1 {job}", f"{job}_3 3 {job}", f"{job}_4 4 {job}"]
    slurm.run("scancel", f"{job}_[1,4]")
    slurm.d.wait(f"{job}_1")
    slurm.d.wait(f"{job}_4")
    assert slurm.state(job) == ["CANCELLED", "RUNNING", "CANCELLED"]
    assert slurm.state(f"{job}_3") == ["RUNNING"]
    slurm.run("scancel", job)
    slurm.d.wait(job + 1)
    assert slurm.state(job) == ["CANCELLED"] * 3
    assert "has not all of these" in slurm.run("scancel", f"{job}_7", code=1).stderr


# ---- steps ----


def test_srun_inside_starts_one_process_per_task(slurm):
    path = slurm.script(r"""
        #!/bin/bash
        #SBATCH -n 3 --gpus-per-task=1 -o step-%j.txt
        echo "script ${SLURM_STEP_ID-none} $CUDA_VISIBLE_DEVICES"
        srun -l bash -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_NTASKS_PER_NODE"' | sort
        srun --unbuffered --output %j_%t_log.out bash -c 'echo "${CUDA_VISIBLE_DEVICES//,/+}"'
        srun -n1 --gpus=1 bash -c 'echo "one ${#CUDA_VISIBLE_DEVICES}"'
        srun -n2 bash -c 'exit $((SLURM_PROCID * 4))'
        echo "code $?"
    """)
    job = slurm.submit(path)
    assert slurm.d.wait(job)["cause"] == "completed"
    lines = (slurm.folder / f"step-{job}.txt").read_text().splitlines()
    gpus = lines[0].split()[2].split(",")
    assert lines[0].startswith("script none ") and len(gpus) == 3
    assert lines[1:4] == ["0: 0 0 3 3", "1: 1 1 3 3", "2: 2 2 3 3"]
    assert lines[4] == "one 1"
    assert "task 1: Exited with exit code 4" in lines[5] and lines[6] == "code 4"
    assert [(slurm.folder / f"{job}_{t}_log.out").read_text().strip() for t in range(3)] == gpus


def test_srun_kills_the_others_when_asked(slurm):
    job = slurm.submit("-n2", "-o", "k-%j", "--wrap",
                       "srun -K bash -c '[ $SLURM_PROCID = 1 ] && exit 5; exec sleep 300'; echo code $?")
    slurm.d.wait(job)
    assert "code 143" in (slurm.folder / f"k-{job}").read_text()


def test_steps_side_by_side_get_different_gpus(slurm):
    job = slurm.submit("--gpus=2", "-o", "side-%j", "--wrap", """
        for i in 1 2; do srun -n1 --gpus=1 sh -c 'echo gpu=$CUDA_VISIBLE_DEVICES; while [ $(grep -c gpu= side-$SLURM_JOB_ID) -lt 2 ]; do sleep 0.1; done' & done; wait""")
    slurm.d.wait(job)
    assert len(set(re.findall(r"gpu=(\d+)", (slurm.folder / f"side-{job}").read_text()))) == 2


def test_the_jobs_signal_reaches_the_step_and_not_the_script(slurm):
    path = slurm.script("""
        #!/bin/bash
        #SBATCH -o sig-%j --signal=USR2@60
        srun bash -c 'trap "echo caught; exit 0" USR2; echo ready; while :; do sleep 0.1; done'
        echo "script goes on $?"
    """)
    job = slurm.submit(path)
    slurm.until_text(slurm.folder / f"sig-{job}", "ready")
    slurm.run("scancel", job, "--signal", "USR2")
    assert slurm.d.wait(job)["cause"] == "completed"
    assert (slurm.folder / f"sig-{job}").read_text() == "ready\ncaught\nscript goes on 0\n"


def test_srun_outside_runs_a_job_here(slurm):
    a = slurm.run("srun", "-J", "out", "--gpus=1", "bash", "-c", "echo $SLURM_JOB_NAME; exit 6", code=6)
    assert a.stdout == "out\n" and "exit code 6" in a.stderr


def test_requeue_from_inside_appends_and_counts(slurm):
    path = slurm.script("""
        #!/bin/bash
        #SBATCH -o rq-%j --open-mode=append
        echo "run $SLURM_RESTART_COUNT"
        [ "$SLURM_RESTART_COUNT" = 0 ] && { scontrol requeue $SLURM_JOB_ID; exec sleep 300; }
        exit 0
    """)
    job = slurm.submit(path)
    assert slurm.d.wait(job)["cause"] == "completed"
    assert (slurm.folder / f"rq-{job}").read_text() == "run 0\nrun 1\n"


def test_hold_release_suspend_resume(slurm):
    job = slurm.submit("-H", "--wrap", "sleep 600")
    slurm.run("scontrol", "release", job)
    slurm.d.until(job, "running")
    assert "running" in slurm.run("scontrol", "hold", job, code=1).stderr
    slurm.run("scontrol", "suspend", job)
    slurm.d.until(job, "held", "suspended")
    slurm.run("scontrol", "resume", job)
    slurm.d.until(job, "running")
    slurm.run("scancel", "-t", "R", "-n", "wrap")
    slurm.d.wait(job)
    assert f"job {job} has already ended (cancelled)" in slurm.run("scontrol", "requeue", job, code=1).stderr


# ---- submitit ----


def submitit(slurm, name, body):
    path = slurm.folder / f"{name}.py"
    path.write_text(textwrap.dedent("""
        import os, sys, time, pathlib
        import submitit
        from submitit.slurm.slurm import SlurmJob
        SlurmJob.watcher._delay_s = 1
        HERE = pathlib.Path(__file__).parent
    """) + textwrap.dedent(body))
    return slurm.out(VENV, path)


@needs_venv
def test_submitit_runs_a_function(slurm):
    out = submitit(slurm, "one", """
        def add(a, b):
            env = submitit.JobEnvironment()
            return a + b, env.global_rank, env.num_tasks, env.hostnames
        if __name__ == "__main__":
            ex = submitit.AutoExecutor(folder=HERE / "logs_one")
            assert ex.cluster == "slurm", ex.cluster
            ex.update_parameters(timeout_min=5, gpus_per_node=1, tasks_per_node=1, cpus_per_task=1, mem_gb=1,
                                 slurm_comment="x y", name="sub")
            job = ex.submit(add, 5, 7)
            print(job.result()[0:3], job.state, job.watcher.get_info(job.job_id)["NodeList"] != "")
    """)
    assert out == "(12, 0, 1) COMPLETED True\n"


@needs_venv
def test_submitit_runs_a_task_per_gpu(slurm):
    out = submitit(slurm, "many", """
        def rank():
            env = submitit.JobEnvironment()
            return env.global_rank, env.local_rank, env.num_tasks
        if __name__ == "__main__":
            ex = submitit.AutoExecutor(folder=HERE / "logs_many")
            ex.update_parameters(timeout_min=5, gpus_per_node=2, tasks_per_node=2)
            print(ex.submit(rank).results())
    """)
    assert out == "[(0, 0, 2), (1, 1, 2)]\n"


@needs_venv
def test_submitit_maps_over_an_array(slurm):
    out = submitit(slurm, "array", """
        def square(x):
            return x * x
        if __name__ == "__main__":
            ex = submitit.AutoExecutor(folder=HERE / "logs_array")
            ex.update_parameters(timeout_min=5, slurm_array_parallelism=2)
            jobs = ex.map_array(square, range(5))
            print([j.result() for j in jobs], sorted(j.job_id.split("_")[1] for j in jobs))
    """)
    assert out == "[0, 1, 4, 9, 16] ['0', '1', '2', '3', '4']\n"


@needs_venv
def test_submitit_reports_failures_and_cancels(slurm):
    out = submitit(slurm, "fail", """
        def fail():
            raise ValueError("no such thing")
        if __name__ == "__main__":
            ex = submitit.AutoExecutor(folder=HERE / "logs_fail")
            ex.update_parameters(timeout_min=5)
            job = ex.submit(fail)
            print("no such thing" in str(job.exception()))
            job = ex.submit(time.sleep, 300)
            while job.state != "RUNNING":
                job.watcher.update(); time.sleep(0.1)
            job.cancel()
            while not job.watcher.is_done(job.job_id, mode="force"):
                time.sleep(0.1)
            print(job.state)
    """)
    assert out == "True\nCANCELLED\n"


@needs_venv
@pytest.mark.parametrize("timeout", [True, False])
def test_submitit_checkpoints_and_is_queued_again(slurm, timeout):
    out = submitit(slurm, f"checkpoint_{timeout}", f"""
        class Work(submitit.helpers.Checkpointable):
            def __init__(self):
                self.runs = 0
            def __call__(self, folder):
                self.runs += 1
                if self.runs == 1:
                    (folder / "started").touch()
                    time.sleep(300)
                return self.runs, os.environ["SLURM_RESTART_COUNT"]
        if __name__ == "__main__":
            folder = HERE / "logs_checkpoint_{timeout}"
            ex = submitit.AutoExecutor(folder=folder)
            ex.update_parameters(timeout_min=5)
            job = ex.submit(Work(), folder)
            while not (folder / "started").exists():
                time.sleep(0.05)
            job._interrupt(timeout={timeout})
            print(job.result())
    """)
    assert out == "(2, '1')\n"


def test_a_job_that_makes_room_says_that_it_has_saved(slurm):
    """Lightning's way: on the signal save, `scontrol requeue`, go on. It is not waited for any longer."""
    slurm.script("""
        #!/bin/sh
        trap 'echo asks; scontrol requeue $STOKER_JOB_ID' USR1
        echo up $STOKER_RESTARTS
        [ $STOKER_RESTARTS = 1 ] && exit
        while :; do sleep 0.1; done
    """, "saves.sh")
    job = int(re.search(r"\d+", slurm.out(daemon_lib.STOKER, "submit", "--queue", "batch", "--no-suspend", "--gpus", "4",
                                          "--signal", "B:USR1@600", "saves.sh"))[0])
    log = slurm.folder / f"stoker-{job}.out"
    slurm.until_text(log, "up 0")
    urgent = slurm.d.submit(command=["/bin/true"], gpus=4, queue="express")
    assert slurm.d.wait(urgent)["cause"] == "completed"
    assert slurm.d.wait(job)["cause"] == "completed"
    assert log.read_text() == "up 0\nasks\nup 1\n"


# ---- Lightning ----

LIGHTNING = """
import sys
sys.path.insert(0, %r)
from lightning_slurm import handlers, load
"""


@needs_venv
def test_lightning_finds_its_ranks(slurm):
    (slurm.folder / "ranks.py").write_text(LIGHTNING % str(ROOT / "tests/lib") + textwrap.dedent("""
        environment, _ = load()
        assert environment.detect()
        e = environment()
        e.validate_settings(num_devices=2, num_nodes=1)
        words = [e.world_size(), e.global_rank(), e.local_rank(), e.node_rank(), e.job_name(), e.main_address, e.main_port > 1024]
        sys.stdout.write(" ".join(map(str, words)) + "\\n")  # in one piece: both tasks write to one file
    """))
    job = slurm.submit("-J", "pl", "-N1", "--ntasks-per-node=2", "--gpus-per-node=2", "-o", "pl-%j",
                       "--wrap", f"srun {VENV} ranks.py")
    assert slurm.d.wait(job)["cause"] == "completed", (slurm.folder / f"pl-{job}").read_text()
    lines = sorted((slurm.folder / f"pl-{job}").read_text().splitlines())
    assert [line.split()[:5] for line in lines] == [["2", "0", "0", "0", "pl"], ["2", "1", "1", "0", "pl"]]
    assert all(line.endswith("True") for line in lines)


@needs_venv
def test_lightning_does_not_mistake_a_plain_job_for_a_step(slurm):
    """A script run without srun must not see task variables: Lightning would wait for processes nobody starts."""
    (slurm.folder / "plain.py").write_text(LIGHTNING % str(ROOT / "tests/lib") + "print(load()[0].detect())\n")
    job = slurm.submit("--gpus=1", "-o", "plain-%j", "--wrap", f"{VENV} plain.py")
    slurm.d.wait(job)
    assert (slurm.folder / f"plain-{job}").read_text().splitlines()[-1] == "False"
    (slurm.folder / "alone.py").write_text(LIGHTNING % str(ROOT / "tests/lib") + textwrap.dedent("""
        e = load()[0]()
        print(e.detect(), e.world_size(), e.global_rank(), e.local_rank(), e.node_rank())
    """))
    job = slurm.submit("-n1", "--gpus=1", "-o", "plain-%j", "--wrap", f"{VENV} alone.py")
    slurm.d.wait(job)
    assert (slurm.folder / f"plain-{job}").read_text().splitlines()[-1] == "True 1 0 0 0"


@needs_venv
@pytest.mark.parametrize("array", [False, True])
def test_lightning_saves_and_is_queued_again(slurm, array):
    (slurm.folder / "requeue.py").write_text(LIGHTNING % str(ROOT / "tests/lib") + textwrap.dedent("""
        import os, time
        print("run", os.environ["SLURM_RESTART_COUNT"], flush=True)
        if os.path.exists(sys.argv[1] + "/hpc_ckpt_1.ckpt"):
            sys.exit(0)
        handlers(sys.argv[1])
        print("trains", flush=True)
        while True:
            time.sleep(0.05)
    """))
    folder = slurm.folder / f"pl_{array}"
    folder.mkdir()
    job = slurm.submit("--signal=SIGUSR1@90", "--requeue", "-o", f"plr{array}-%j", "--open-mode=append", "-n1",
                       *(["--array=0-0"] if array else []), "--wrap", f"srun {VENV} requeue.py {folder}")
    log = slurm.folder / f"plr{array}-{job}"
    slurm.until_text(log, "trains")
    slurm.run("scancel", "--signal=USR1", job)
    assert slurm.d.wait(job)["cause"] == "completed", log.read_text()
    assert [line for line in log.read_text().splitlines() if line.startswith("run")] == ["run 0", "run 1"]


def test_a_deadline_and_the_expected_start(slurm):
    busy = slurm.submit("--gpus=4", "--time=2:00:00", "--wrap", "sleep 600")
    slurm.d.until(busy, "running")
    waits = slurm.submit("--gpus=1", "--time=1:00:00", "--deadline=now+5hours", "--wrap", "true")
    for words in (["--test-only"], []):
        out = slurm.run("sbatch", *words, "--gpus=1", "--time=1:00:00", "--deadline=2020-01-01", "--wrap", "true")
        assert "warning: its deadline is over" in out.stderr
    until(lambda: re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d", slurm.out("squeue", "-h", "-j", waits, "-o", "%S").strip()))
    slurm.run("scancel", waits, waits + 1, busy)


def test_a_job_that_did_not_run_names_the_job_that_it_depended_on(slurm):
    first = int(slurm.out("sbatch", "--parsable", "-H", "--wrap", "exit 3"))
    after = int(slurm.out("sbatch", "--parsable", f"--dependency=afterok:{first}", "--wrap", "true"))
    assert slurm.out("squeue", "-h", "-j", after, "-o", "%r %R %E").split() == ["Dependency", "(Dependency)", f"afterok:{first}"]
    assert slurm.out("squeue", "-h", "-j", first, "-o", "%E") == "(null)\n"
    slurm.out("scontrol", "release", first)
    slurm.d.wait(after)
    said = f"DependencyNeverSatisfied|(DependencyNeverSatisfied, job {first} failed with exit code 3)|afterok:{first}(failed)\n"
    assert slurm.out("squeue", "-h", "-t", "all", "-j", after, "-o", "%r|%R|%E") == said
    assert f"Reason=DependencyNeverSatisfied Dependency=afterok:{first}(failed)\n" in slurm.out("scontrol", "show", "job", after)
