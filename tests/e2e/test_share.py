# SPDX-License-Identifier: Apache-2.0
"""Jobs with parts of GPUs, on virtual GPUs and on what the daemon takes for GPUs (tests/lib/fake_nvml.c)."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest
from daemon import STOKER, STOKERD, Daemon, stoker
from patience import until
from test_security import submit_as

FAKES = STOKER.resolve().parent / "tests" / "lib"
pytestmark = pytest.mark.skipif(not STOKERD.exists() or not (FAKES / "libnvidia-ml.so.1").exists(), reason="not built with tests")
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture
def virtual(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        yield d


def refused(d, **job):
    a = d.client().post("/v1/jobs", {"command": SLEEP, **job})
    assert a.status == 422, a
    return a.json["error"]["message"]


# ---- asking ----

def test_parts_of_one_gpu_go_together_and_whole_jobs_get_another(virtual):
    d = virtual
    first = d.submit(command=SLEEP, gpus=0.5)
    d.until(first, "running")
    second, third = d.submit(command=SLEEP, gpus=0.5), d.submit(command=SLEEP, gpus=1)
    where = [d.until(n, "running")["gpu_indices"] for n in (first, second, third)]
    assert where[0] == where[1] != where[2]
    waits = d.submit(command=SLEEP, gpus=0.25)
    assert d.job(waits)["state"] == "waiting"


def test_what_cannot_be_shared_is_refused_with_a_sentence(virtual):
    d = virtual
    assert "there is no MPS here: the GPUs are virtual" in refused(d, gpus=0.5, share="mps")
    assert "memory of the GPUs here is not known" in refused(d, gpu_mem_mib=1024)
    assert "below 1, got 1.5" in refused(d, gpus=1.5)


# ---- showing ----

def test_parts_are_shown_as_what_they_are(virtual):
    d = virtual
    first = d.submit(command=SLEEP, gpus=0.5, gpu_mem_mib=20480, name="half")
    d.until(first, "running")
    second = d.submit(command=SLEEP, gpus=0.3)
    d.until(second, "running")
    job = d.job(first)
    assert job["gpus"] == 0.5 and job["part"] == {"gpus": 0.5, "mem_mib": 20480, "share": "none", "share_max": None, "mig": None,
                                                  "with": [second]}
    gpu = next(g for g in d.get("/v1/gpus")["gpus"] if g.get("shares"))
    assert gpu["state"] == "busy" and abs(gpu["left"] - 0.2) < 1e-9
    assert [(p["job"], p["gpus"], p["mem_mib"]) for p in gpu["shares"]] == [(first, 0.5, 20480), (second, 0.3, None)]
    where = gpu["index"]
    assert f"0.5 of gpu {where}" in stoker(d, "queue")
    assert f"0.5 of GPU {where}, 20.0 GiB of memory, share none, with job {second}" in stoker(d, "show", str(first))
    assert "shared, 0.2 left" in stoker(d, "gpus") and "has 0.3, share none" in stoker(d, "gpus")
    rest = d.submit(command=SLEEP, gpus=1)
    d.until(rest, "running")
    waits = d.submit(command=SLEEP, gpus=0.4)
    assert "needs 0.4 of a GPU (share none), and no GPU that it can use has that left" in d.job(waits)["state_text"]
    assert "needs 0.4 of a GPU" in stoker(d, "why", str(waits)) and "0.5 GPUs" in stoker(d, "why", str(waits))
    d.post("/v1/jobs/act", {"verb": "cancel", "ids": [first]})
    assert d.wait(first)["gpus"] == 0.5 and d.history()[first]["gpus"] == 0.5
    d.until(waits, "running")


def test_a_drained_gpu_that_is_shared_says_so_and_takes_no_more(virtual):
    d = virtual
    first = d.submit(command=SLEEP, gpus=0.5)
    d.until(first, "running")
    (gpu,) = d.job(first)["gpu_indices"]
    assert "drained" not in stoker(d, "gpus")
    for g in d.get("/v1/gpus")["gpus"]:
        d.post(f"/v1/gpus/{g['index']}/drain")
    shown = d.get("/v1/gpus")["gpus"][gpu]
    assert shown["state"] == "busy" and shown["draining"] is True
    assert "shared, 0 left, drained" in stoker(d, "gpus")
    other = d.submit(command=SLEEP, gpus=0.5)
    assert re.search(r"no GPU that it can use has that left, \d (is|are) not to be used \(drained\)", stoker(d, "why", str(other)))
    d.post(f"/v1/gpus/{gpu}/resume")
    d.until(other, "running")
    assert d.job(other)["gpu_indices"] == [gpu] and "drained" not in json.dumps(d.get("/v1/gpus")["gpus"][gpu])


# ---- MPS ----

class World:
    """Two GPUs of 80 GiB, and something in the place of nvidia-cuda-mps-control."""

    def __init__(self, folder, config="", mps=True, env=None):
        self.dir = folder / "fake"
        self.dir.mkdir(exist_ok=True)
        programs = folder / "bin"
        programs.mkdir(exist_ok=True)
        if mps:
            shutil.copy(pathlib.Path(__file__).resolve().parents[1] / "lib" / "fake_mps.sh", programs / "nvidia-cuda-mps-control")
        self.daemon = Daemon(folder, gpus=None, config="gpus: {interval_ms: 200" + config + "}\n",
                             env={"STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(self.dir),
                                  "PATH": f"{programs}:{os.environ['PATH']}", **(env or {})})

    def calls(self):
        path = self.dir / "mps"
        return path.read_text().splitlines() if path.exists() else []

    def until_calls(self, n):
        return until(lambda: len(calls := self.calls()) >= n and calls, say=lambda: self.calls())

    def control(self, gpu):
        """The control daemon of a GPU: its process."""
        found = list((self.daemon.state / "mps").glob(f"{gpu}-*/nvidia-cuda-mps-control.pid"))
        return int(found[0].read_text())

    def use(self, *lines):
        """What is on the GPUs: "GPU PID MIB SM"."""
        (self.dir / "new").write_text("".join(f"{line}\n" for line in lines))
        (self.dir / "new").rename(self.dir / "procs")

    def until_free(self, gpu=0):
        until(lambda: self.daemon.get("/v1/gpus")["gpus"][gpu]["state"] == "free")


def alive(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    return False


@pytest.fixture
def world(tmp_path):
    made = []

    def make(**how):
        made.append(World(tmp_path, **how))
        made[-1].daemon.start()
        made[-1].until_free()
        return made[-1]

    yield make
    for w in made:
        w.daemon.close()
        for path in (w.daemon.state / "mps").glob("*/nvidia-cuda-mps-control.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(path.read_text()), 9)


def show_env(names):
    return ["/bin/sh", "-c", "; ".join(f'echo "{n}=${n}"' for n in names) + "; echo all; exec sleep 1000"]


def shown(d, number):
    """What a job of show_env() says, once it has said all."""
    return dict(line.split("=", 1) for line in d.log_with(number, "all\n").splitlines() if "=" in line)


def test_jobs_of_one_gpu_meet_at_one_mps(world):
    w = world()
    d = w.daemon
    names = ["CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
             "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "STOKER_GPU_SHARE", "STOKER_GPU_MILLI", "STOKER_GPU_MEM_MIB"]
    first = d.submit(command=show_env(names), gpus=0.255, gpu_mem_mib=10240)
    d.until(first, "running")
    second = d.submit(command=show_env(names), gpus=0.5)
    d.until(second, "running")
    assert d.job(first)["gpu_indices"] == d.job(second)["gpu_indices"] == [0]
    pipe = d.state / "mps" / f"0-{os.getuid()}"
    assert w.calls() == [f"start gpu=GPU-00000000-0000-0000-0000-000000000000 uid={os.getuid()} pipe={pipe}"]
    assert shown(d, first) == {"CUDA_VISIBLE_DEVICES": "GPU-00000000-0000-0000-0000-000000000000", "CUDA_MPS_PIPE_DIRECTORY": str(pipe),
                               "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "26", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=10240M",
                               "STOKER_GPU_SHARE": "mps", "STOKER_GPU_MILLI": "255", "STOKER_GPU_MEM_MIB": "10240"}
    assert shown(d, second)["STOKER_GPU_MEM_MIB"] == "40960"  # half of its memory, as nothing else was said
    control = w.control(0)
    d.post("/v1/jobs/act", {"verb": "cancel", "ids": [first]})
    d.wait(first)
    assert alive(control) and len(w.calls()) == 1
    d.post("/v1/jobs/act", {"verb": "cancel", "ids": [second]})
    d.wait(second)
    assert w.until_calls(2)[1] == f"quit -t 10 pipe={pipe}"
    again = d.submit(command=SLEEP, gpus=0.5)
    d.until(again, "running")
    assert len(w.calls()) == 3


def test_mps_outlives_the_daemon_and_is_quit_by_the_next_one(world):
    w = world()
    d = w.daemon
    n = d.submit(command=SLEEP, gpus=0.5)
    d.until(n, "running")
    control = w.control(0)
    d.kill()
    d.start()
    d.until(n, "running")
    assert alive(control) and len(w.calls()) == 1
    other = d.submit(command=SLEEP, gpus=0.5)
    d.until(other, "running")
    assert len(w.calls()) == 1
    d.post("/v1/jobs/act", {"verb": "cancel", "ids": [n, other]})
    assert w.until_calls(2)[1].startswith("quit")


def test_an_mps_that_nobody_needs_after_a_restart_is_quit(world):
    w = world()
    d = w.daemon
    n = d.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"], gpus=0.5)
    d.until(n, "running")
    d.kill()
    shims = d.processes()
    (d.folder / "go").touch()
    until(lambda: not any(alive(pid) for pid in shims))
    d.start()
    assert w.until_calls(2)[1].startswith("quit")


def test_an_mps_that_dies_is_said_and_comes_back_for_the_next_job(world):
    w = world()
    d = w.daemon
    n = d.submit(command=SLEEP, gpus=0.5)
    d.until(n, "running")
    os.kill(w.control(0), 9)
    until(lambda: "MPS control daemon of GPU 0 has died" in (d.job(n)["note"] or ""), say=lambda: d.job(n))
    assert d.job(n)["state"] == "running"
    other = d.submit(command=SLEEP, gpus=0.5)
    d.until(other, "running")
    assert len(w.calls()) == 2 and alive(w.control(0))


def test_a_job_whose_mps_does_not_come_up_is_not_started(world):
    w = world()
    d = w.daemon
    (w.dir / "mps-fails").write_text("")
    job = d.wait(d.submit(command=SLEEP, gpus=0.5))
    assert job["cause"] == "not_started"
    assert job["note"] == "not started: MPS does not come up on GPU 0: An instance of this daemon is already running"
    (w.dir / "mps-fails").unlink()
    d.until(d.submit(command=SLEEP, gpus=0.5), "running")


def test_jobs_that_share_by_mps_are_stopped_and_not_suspended(world):
    w = world()
    d = w.daemon
    begin = ["/bin/sh", "-c", "echo begin; exec sleep 1000"]
    low = [d.submit(command=begin, gpus=0.5, queue="preemptible", grace_s=1) for _ in range(2)]
    for n in low:
        d.log_with(n, "begin\n")
    high = d.submit(command=SLEEP, gpus=2, tier="critical", priority=5000)
    d.until(high, "running")
    job = d.job(low[0])
    assert job["state"] == "waiting" and "stopped to make room" in job["note"]
    d.post("/v1/jobs/act", {"verb": "cancel", "ids": [high]})
    d.until(low[0], "running")
    d.log_with(low[0], "begin\nbegin\n")  # anew, not from where it was


def test_a_person_cannot_suspend_a_job_that_shares_by_mps(world):
    d = world().daemon
    n = d.submit(command=SLEEP, gpus=0.5)
    d.until(n, "running")
    said = d.client().post(f"/v1/jobs/{n}/suspend").json
    assert "MPS" in json.dumps(said) and d.job(n)["state"] == "running", said


def test_mps_itself_is_not_somebody_elses(world):
    w = world()
    d = w.daemon
    n = d.submit(command=SLEEP, gpus=0.5)
    d.until(n, "running")
    w.use(f"0 {w.control(0)} 30 5")
    time.sleep(1)
    gpu = d.get("/v1/gpus")["gpus"][0]
    assert gpu["state"] == "busy" and not gpu.get("foreign") and not gpu.get("off")
    d.until(d.submit(command=SLEEP, gpus=0.5), "running")


@pytest.fixture
def users():
    """A world of several users: its folder can be entered by all of them."""
    if os.getuid() != 0:
        pytest.skip("needs root to be several users")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-mps-"))
    folder.chmod(0o755)
    w = World(folder, env={"STOKER_TEST_WORD": "not for others"})
    (w.dir / "mps").touch()
    (w.dir / "mps").chmod(0o666)
    try:
        w.daemon.start()
        w.until_free()
        yield w
    finally:
        w.daemon.close()
        for path in (w.daemon.state / "mps").glob("*/nvidia-cuda-mps-control.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(path.read_text()), 9)
        shutil.rmtree(folder, ignore_errors=True)


def mps_job(d, uid, **more):
    """Of part of a GPU by MPS; it runs."""
    n = submit_as(uid, d, command=SLEEP, gpus=0.25, share="mps", **more)
    d.until(n, "running")
    return n


def ended(d, *numbers):
    d.post("/v1/jobs/act", {"verb": "cancel", "ids": numbers})
    for n in numbers:
        d.wait(n)


def test_users_do_not_meet_at_one_mps(users):
    w, d = users, users.daemon
    first, other, again = mps_job(d, 1), mps_job(d, 65534), mps_job(d, 1)
    assert d.job(first)["gpu_indices"] == d.job(again)["gpu_indices"] != d.job(other)["gpu_indices"]
    third = submit_as(2, d, command=SLEEP, gpus=0.25, share="mps")
    assert d.job(third)["state"] == "waiting"
    assert sorted(call.split()[2] for call in w.calls()) == ["uid=1", "uid=65534"]
    for path in (d.state / "mps").glob("*-*"):
        assert path.stat().st_mode & 0o777 == 0o700 and path.name.endswith(f"-{path.stat().st_uid}")


def test_mps_has_nothing_of_the_daemons_environment(users):
    mps_job(users.daemon, 1)
    env = pathlib.Path(f"/proc/{users.control(0)}/environ").read_bytes()
    assert b"CUDA_MPS_PIPE_DIRECTORY" in env and b"not for others" not in env


def test_what_a_user_puts_in_the_place_of_a_folder_is_not_given_to_him(users):
    w, d = users, users.daemon
    ended(d, mps_job(d, 1))
    w.until_calls(2)
    theirs = w.dir / "of-root"
    theirs.write_text("")
    log = d.state / "mps" / "0-1" / "log"
    log.rmdir()
    os.link(theirs, log)
    job = d.wait(submit_as(1, d, command=SLEEP, gpus=0.25, share="mps"))
    assert job["cause"] == "not_started" and "Not a directory" in job["note"]
    assert theirs.stat().st_uid == 0


def test_after_a_restart_jobs_meet_at_the_mps_of_their_user(users):
    w, d = users, users.daemon
    (w.dir / "mps-keeps").write_text("")  # who is told to quit goes on
    for uid in range(1, 6):
        ended(d, mps_job(d, uid))
        w.until_calls(2 * uid)
    first = mps_job(d, 7)
    d.kill()
    d.start()
    d.until(first, "running")
    n = submit_as(7, d, command=show_env(["CUDA_MPS_PIPE_DIRECTORY"]), workdir="/tmp", stdout="/dev/null", gpus=0.25, share="mps")
    d.until(n, "running")
    assert d.job(n)["gpu_indices"] == d.job(first)["gpu_indices"] == [0]
    env = pathlib.Path(f"/proc/{pid_of(d, n)}/environ").read_bytes()
    assert f"CUDA_MPS_PIPE_DIRECTORY={d.state}/mps/0-7".encode() in env.split(b"\0")


def test_a_process_that_says_it_is_mps_is_that_of_its_user(users):
    w, d = users, users.daemon
    mps_job(d, 1)
    with subprocess.Popen(["sleep", "1000"], user=2, env={"STOKER_MPS": str(d.state / "mps" / "0-1")}) as liar:
        w.use(f"0 {liar.pid} 30 5")
        until(lambda: d.get("/v1/gpus")["gpus"][0].get("foreign"))
        liar.kill()


# ---- memory ----

def pid_of(d, number):
    """The process of a job."""
    return until(lambda: [p for p, j in d.processes().items() if j == number and "shim" not in pathlib.Path(f"/proc/{p}/cmdline").read_text()])[0]


@pytest.mark.parametrize("kind", ["c", "m"])
def test_who_takes_more_memory_than_asked_for_is_stopped_and_the_neighbour_is_not(world, kind):
    w = world(mps=kind == "m")
    d = w.daemon
    hog = d.submit(command=SLEEP, gpus=0.25, gpu_mem_mib=20480)
    good = d.submit(command=SLEEP, gpus=0.5, gpu_mem_mib=40960)
    for n in (hog, good):
        d.until(n, "running")
    w.use(f"0 {pid_of(d, hog)} 21000 10 {kind}", f"0 {pid_of(d, good)} 40000 10 {kind}")
    time.sleep(1)
    assert d.job(hog)["state"] == "running"  # within the slack
    w.use(f"0 {pid_of(d, hog)} 25907 10 {kind}", f"0 {pid_of(d, good)} 40000 10 {kind}")
    job = d.wait(hog)
    assert job["cause"] == "killed" and job["note"] == "used 25.3 GiB of GPU memory, asked for 20 GiB"
    time.sleep(1)
    assert d.job(good)["state"] == "running" and not d.job(good).get("warning")


def test_such_an_end_is_an_error_of_the_job(world):
    w = world(mps=False)
    d = w.daemon
    n = d.submit(command=SLEEP, gpus=0.5, gpu_mem_mib=1024, retry={"error": 1})
    d.until(n, "running")
    w.use(f"0 {pid_of(d, n)} 9000 10")
    until(lambda: d.job(n)["restarts"] > 0)
    d.until(n, "running")


def test_a_site_may_only_warn(world):
    w = world(mps=False, config=", mem_action: warn, mem_slack_mib: 0")
    d = w.daemon
    n = d.submit(command=SLEEP, gpus=0.5, gpu_mem_mib=1024)
    whole = d.submit(command=SLEEP, gpus=1, gpu_mem_mib=1024)  # has all of it, whatever it asked for
    for k in (n, whole):
        d.until(k, "running")
    lines = [f"0 {pid_of(d, n)} 1100 10", f"1 {pid_of(d, whole)} 70000 10"]
    w.use(*lines)
    until(lambda: d.job(n).get("warning"))
    assert d.job(n)["warning"] == "used 1.1 GiB of GPU memory, asked for 1 GiB" and not d.job(whole).get("warning")
    d.errors_with("used 1.1 GiB")
    time.sleep(1)  # some more readings
    assert sum("used 1.1 GiB" in line for line in d.errors) == 1
    w.use(lines[0].replace("1100", "900"))
    until(lambda: not d.job(n).get("warning"))


def test_one_warning_does_not_take_back_another(world):
    w = world(mps=False, config=", mem_action: warn, mem_slack_mib: 0")
    d = w.daemon
    n = d.submit(command=SLEEP, gpus=0.5, gpu_mem_mib=1024, idle={"warn_s": 1})
    d.until(n, "running")
    pid = pid_of(d, n)
    for mib, word in ((900, "no activity"), (1100, "of GPU memory"), (900, "no activity")):
        w.use(f"0 {pid} {mib} 0")
        until(lambda word=word: word in (d.job(n).get("warning") or ""), say=lambda: d.job(n))


# ---- MIG ----

def instance(d, number):
    return shown(d, number)["CUDA_VISIBLE_DEVICES"]


def test_instances_that_are_there_are_given_out_each_to_one_job(world):
    """The cards: GPU 0 has 3g.40gb and two of 1g.10gb, GPU 1 has 1g.10gb and 2g.20gb (and one that is not known here)."""
    w = world(env={"STOKER_FAKE_MIG": "all"})
    d = w.daemon
    show = show_env(["CUDA_VISIBLE_DEVICES", "STOKER_GPU_SHARE"])
    small = [d.submit(command=show, mig="1g.10gb") for _ in range(4)]
    for n in small[:3]:
        d.until(n, "running")
    assert d.job(small[3])["state"] == "waiting"
    assert "needs a MIG instance 1g.10gb, and none is free" in d.job(small[3])["state_text"]
    given = {instance(d, n) for n in small[:3]}
    assert given == {f"MIG-00000000-0000-0000-{gpu:04}-{gi:012}" for gpu, gi in ((0, 9), (0, 10), (1, 7))}
    large = d.submit(command=show, mig="3g.40gb", share="mig")
    d.until(large, "running")
    assert instance(d, large).endswith("-0000-000000000001") and shown(d, large)["STOKER_GPU_SHARE"] == "mig"
    job = d.job(large)
    assert job["part"]["mig"] == "3g.40gb" and job["gpu_indices"] == [0]
    assert "3g.40gb of gpu 0" in stoker(d, "queue")
    d.post("/v1/jobs/act", {"verb": "cancel", "ids": [small[0]]})
    d.until(small[3], "running")
    assert instance(d, small[3]) in given
    d.restart()
    d.until(small[3], "running")


def test_instances_that_are_not_there_are_refused(world):
    d = world(env={"STOKER_FAKE_MIG": "all"}).daemon
    assert "so many GPUs with one: 0" in refused(d, mig="4g.40gb")  # the model has it, the cards are divided in another way
    assert "MIG instance 1g.5gb that no GPU" in refused(d, mig="1g.5gb")
    assert "so many GPUs with one: 1" in refused(d, mig="2g.20gb", tasks=2)
    assert refused(d, gpus=1) and refused(d, gpus=0.5, share="none")


def test_instances_are_told_apart_where_the_driver_does_not_say_where_they_lie(world):
    d = world(env={"STOKER_FAKE_MIG": "all", "STOKER_FAKE_WITHOUT": "placement"}).daemon
    show = show_env(["CUDA_VISIBLE_DEVICES"])
    jobs = [d.submit(command=show, mig=m) for m in ("3g.40gb", "1g.10gb", "1g.10gb", "1g.10gb", "2g.20gb")]
    for n in jobs:
        d.until(n, "running")
    assert len({instance(d, n) for n in jobs}) == 5


def test_a_machine_with_some_gpus_in_mig_mode_uses_the_others(world):
    d = world(env={"STOKER_FAKE_MIG": "1"}).daemon
    assert "MIG" in d.errors_with("GPUs in MIG mode are not used")
    d.until(d.submit(command=SLEEP, gpus=1), "running")
    assert "split by MIG" in d.get("/v1/gpus")["gpus"][1]["off"]


# ---- idleness ----

def test_who_does_nothing_on_a_shared_gpu_is_told_from_who_works(world):
    w = world(mps=False)
    d = w.daemon
    jobs = [d.submit(command=SLEEP, gpus=0.5, idle={"warn_s": 2}) for _ in range(2)]
    for n in jobs:
        d.until(n, "running")
    w.use(f"0 {pid_of(d, jobs[0])} 500 0", f"0 {pid_of(d, jobs[1])} 500 60")
    until(lambda: d.job(jobs[0]).get("warning") and not d.job(jobs[1]).get("warning"))  # before it was seen at work there may be one
    assert "no activity" in d.job(jobs[0])["warning"]
