# SPDX-License-Identifier: Apache-2.0
"""`stoker-gpu` against stand-ins for the driver's libraries (tests/lib/fake*.c): no GPU is needed."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from data import ROOT, program
from patience import PATIENCE_S

BUILD = pathlib.Path(program()).resolve().parent
HELPER = BUILD / "stoker-gpu"
FAKES = BUILD / "tests" / "lib"
UUID = ["GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001"]

missing = [str(p) for p in (HELPER, FAKES / "libcuda.so.1", FAKES / "libnvidia-ml.so.1")
           if not p.exists()]
if missing and os.environ.get("CI") != "true":
    pytest.skip(f"not built: {', '.join(missing)} (meson configure -Dtests=enabled)",
                allow_module_level=True)


class World:
    """Two GPUs of 80 GiB and the processes on them."""

    def __init__(self, folder):
        self.dir = folder
        self.children = []
        self.lines = []
        self.env = {**os.environ, "STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(folder)}
        self.env.pop("STOKER_FAKE_FAIL", None)

    def process(self, gpu, mib, sm=0, state="running", kind=""):
        child = subprocess.Popen(["sleep", "1000"])
        self.children.append(child)
        self.on(gpu, child.pid, mib, sm, kind)
        if state:
            (self.dir / f"{child.pid}.state").write_text(state)
        return child.pid

    def on(self, gpu, pid, mib, sm=0, kind=""):
        self.lines.append(f"{gpu} {pid} {mib} {sm} {kind}\n")
        (self.dir / "procs").write_text("".join(self.lines))

    def state(self, pid):
        return (self.dir / f"{pid}.state").read_text().strip()

    def log(self):
        path = self.dir / "log"
        return [tuple(line.split()[:2]) for line in path.read_text().splitlines()] \
            if path.exists() else []

    def end(self, pid):
        for child in self.children:
            if child.pid == pid:
                child.kill()
                child.wait()

    def run(self, *args, **env):
        return subprocess.run([HELPER, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False, env={**self.env, **env})

    def ask(self, *args, code=0, **env):
        """The only line of the answer."""
        run = self.run(*args, **env)
        assert run.returncode == code, run
        (line,) = run.stdout.splitlines()
        return json.loads(line)

    def watch(self, count=1, **env):
        run = self.run("watch", "--count", count, "--interval-ms", 100, **env)
        assert run.returncode == 0, run
        return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture
def world(tmp_path):
    w = World(tmp_path)
    yield w
    for child in w.children:
        child.kill()
        child.wait()


def test_list_has_every_gpu(world):
    answer = world.ask("list")
    assert answer["driver"] == "580.00.00" and answer["cuda"] == "13.0"
    assert answer["suspend"] is True and answer["move"] is True and "why" not in answer
    assert answer["gpus"][1] == {"index": 1, "uuid": UUID[1], "name": "Fake H80", "mem_mib": 81920,
                                 "minor": 1, "pci": "0000:b1:00.0", "mig": False}
    assert len(answer["gpus"]) == 2


def test_links_between_gpus_are_listed(world):
    (world.dir / "topology").write_text("gpus 3\ncpus 0 f0f\nlink 0 1 2\nlink 1 2 1\nlink 0 1 1\n"
                                        "path 0 1 10\npath 0 2 50\npath 1 2 99\n")
    answer = world.ask("list")
    assert [g["nvlinks"] for g in answer["gpus"]] == [3, 4, 1]
    assert answer["gpus"][0]["cpus"] == "0-3,8-11" and "cpus" not in answer["gpus"][1]
    assert not any("switch_links" in g for g in answer["gpus"])
    assert answer["links"] == [{"a": 0, "b": 1, "nvlinks": 3, "path": "pix"}, {"a": 0, "b": 2, "path": "sys"},
                               {"a": 1, "b": 2, "nvlinks": 1}]


def test_gpus_on_switches_are_linked_with_each_other(world):
    (world.dir / "topology").write_text("gpus 4\nswitch 0 18\nswitch 1 18\nswitch 2 12\n")
    answer = world.ask("list")
    assert [g.get("switch_links") for g in answer["gpus"]] == [18, 18, 12, None]
    assert answer["links"] == [{"a": a, "b": b, "nvlinks": n, "switch": True}
                               for a, b, n in ((0, 1, 18), (0, 2, 12), (1, 2, 12))]


def test_an_older_driver_tells_less_about_links(world):
    (world.dir / "topology").write_text("gpus 2\nswitch 0 6\nswitch 1 6\npath 0 1 40\n")
    answer = world.ask("list", STOKER_FAKE_WITHOUT="nvlink")
    assert "nvlinks" not in answer["gpus"][0] and answer["links"] == [{"a": 0, "b": 1, "path": "node"}]
    answer = world.ask("list", STOKER_FAKE_WITHOUT="remote ancestor")  # there are links; where they lead is not known
    assert answer["gpus"][0]["nvlinks"] == 6 and "switch_links" not in answer["gpus"][0] and answer["links"] == []


def test_mig_instances_are_listed(world):
    zero, one = world.ask("list", STOKER_FAKE_MIG="1")["gpus"]
    assert zero["mig"] is False and "instances" not in zero
    assert one["mig"] is True
    assert [i["gi"] for i in one["instances"]] == [1, 2]
    assert one["instances"][0]["uuid"].startswith("MIG-")
    gpu = world.watch(STOKER_FAKE_MIG="1")[0]["gpus"][1]
    assert gpu["mig"] is True and "util" not in gpu
    zero = world.ask("list", STOKER_FAKE_MIG="all")["gpus"][0]
    assert [(i["profile"], i["start"]) for i in zero["instances"]] == [("3g.40gb", 0), ("1g.10gb", 4), ("1g.10gb", 5)]


def test_a_gpu_that_does_not_answer_keeps_its_place(world):
    (world.dir / "lost").write_text("0")
    zero, one = world.ask("list")["gpus"]
    assert zero == {"index": 0, "error": "GPU is lost"}
    assert one["uuid"] == UUID[1]
    gpu = world.watch()[0]["gpus"][0]
    assert gpu == {"index": 0, "lost": "GPU is lost"}


def test_without_a_driver_there_are_no_gpus_and_a_reason(world, tmp_path):
    answer = world.ask("list", STOKER_GPU_LIB_DIR=str(tmp_path))
    assert answer["gpus"] == [] and answer["suspend"] is False
    assert answer["why"].startswith("no NVIDIA driver: libnvidia-ml.so.1 cannot be opened")
    for command in (["watch"], ["suspend", "1"], ["resume", "1"], ["state", "1"]):
        answer = world.ask(*command, code=1, STOKER_GPU_LIB_DIR=str(tmp_path))
        assert answer["ok"] is False and "cannot be opened" in answer["why"]


def test_a_driver_that_does_not_start_is_no_driver(world):
    answer = world.ask("list", STOKER_FAKE_FAIL="nvml:0:9")
    assert answer["gpus"] == [] and "Driver Not Loaded" in answer["why"]


def test_without_cuda_there_are_gpus_that_cannot_be_suspended(world):
    (world.dir / "lib").mkdir()
    (world.dir / "lib" / "libnvidia-ml.so.1").symlink_to(FAKES / "libnvidia-ml.so.1")
    answer = world.ask("list", STOKER_GPU_LIB_DIR=str(world.dir / "lib"))
    assert len(answer["gpus"]) == 2 and answer["suspend"] is False and answer["move"] is False
    assert "libcuda.so.1" in answer["why"]


def test_watch_tells_values_and_processes(world):
    busy = world.process(0, 20000, sm=55)
    idle = world.process(0, 300)
    first, second = world.watch(2)
    assert second["at_us"] > first["at_us"]
    gpu = second["gpus"][0]
    assert (gpu["util"], gpu["mem_util"]) == (37, 18)
    assert (gpu["mem_used_mib"], gpu["mem_free_mib"], gpu["mem_total_mib"]) == (20300, 61620, 81920)
    assert (gpu["power_w"], gpu["energy_j"], gpu["temp_c"]) == (123.456, 987654.321, 41)
    assert gpu["throttle"] == ["sw_power_cap", "hw_thermal"]
    assert gpu["ecc_volatile_uncorrected"] == 10 and gpu["ecc_aggregate_uncorrected"] == 11
    assert gpu["rows_pending"] is True and gpu["rows_failed"] is False and gpu["recovery"] == "none"
    one, two = gpu["processes"]
    assert (one["pid"], one["mem_mib"], one["sm"]) == (busy, 20000, 55)
    assert (two["pid"], two["mem_mib"], two["sm"]) == (idle, 300, 0)  # known to be idle
    assert one["uid"] == os.getuid() and one["name"] == "sleep" and one["type"] == "compute"
    assert 0 <= one["age_s"] < 600
    assert second["gpus"][1]["processes"] == []


def test_hardware_counters_need_two_readings(world):
    first, second = world.watch(2)
    assert "sm_active" not in first["gpus"][0]
    gpu = second["gpus"][0]
    assert gpu["sm_active"] == 2.5 and gpu["dram_active"] == 10.5
    assert gpu["pcie_tx_kib_s"] == 20.5 * 1024
    assert "tensor_active" not in gpu  # not a number
    assert "nvlink_tx_kib_s" not in gpu  # not supported


def test_older_cards_have_the_older_readings(world):
    gpu = world.watch(2, STOKER_FAKE_WITHOUT="gpm")[1]["gpus"][0]
    assert gpu["pcie_tx_kib_s"] == 111 and gpu["pcie_rx_kib_s"] == 222
    assert "sm_active" not in gpu


@pytest.mark.parametrize("what, keys", [
    ("energy", ["energy_j"]), ("power", ["power_w"]), ("temp", ["temp_c"]), ("util", ["util", "mem_util"]),
    ("ecc", ["ecc_volatile_uncorrected", "ecc_aggregate_corrected"]),
    ("rows", ["rows_pending", "rows_failed", "rows_corrected"]), ("fields", ["recovery"]),
    ("memory", ["mem_used_mib", "mem_free_mib"]), ("procs", ["processes"]),
])
def test_what_cannot_be_had_is_absent_not_zero(world, what, keys):
    assert all(key in world.watch()[0]["gpus"][0] for key in keys)
    gpu = world.watch(STOKER_FAKE_WITHOUT=what)[0]["gpus"][0]
    assert not any(key in gpu for key in keys)


def test_values_of_a_process_can_be_absent(world):
    pid = world.process(0, 500, sm=9)
    (p,) = world.watch(STOKER_FAKE_WITHOUT="procsm procmem")[0]["gpus"][0]["processes"]
    assert p["pid"] == pid and "sm" not in p and "mem_mib" not in p and p["name"] == "sleep"


def test_a_process_that_proc_does_not_know_is_still_told(world):
    world.on(0, 4194303, 700, 3)
    (p,) = world.watch()[0]["gpus"][0]["processes"]
    assert p == {"pid": 4194303, "type": "compute", "mem_mib": 700, "sm": 3.0}


def test_more_processes_than_the_first_buffer_holds(world):
    for i in range(200):
        world.on(0, 4000000 + i, 1)
    assert len(world.watch()[0]["gpus"][0]["processes"]) == 200


def test_a_process_in_both_lists_is_told_once(world):
    pid = world.process(1, 100)
    world.on(1, pid, 100, 0, "g")
    graphics = world.process(1, 50, kind="g", state="")
    one, two = world.watch()[0]["gpus"][1]["processes"]
    assert (one["pid"], one["type"], one["sm"]) == (pid, "compute", 0)  # nobody is active: known
    assert (two["pid"], two["type"]) == (graphics, "graphics")


def test_a_hostile_process_name_stays_inside_its_string(world):
    script = world.dir / "x.py"
    script.write_text("import ctypes, time\n"
                      "ctypes.CDLL(None).prctl(15, b'a\\n)\\x1b[2J\\xff 1 S', 0, 0, 0)\n"
                      "print('ready', flush=True)\ntime.sleep(1000)\n")
    child = subprocess.Popen(["/usr/bin/python3", script], stdout=subprocess.PIPE)
    world.children.append(child)
    child.stdout.readline()
    world.on(0, child.pid, 10)
    (p,) = world.watch()[0]["gpus"][0]["processes"]
    assert p["name"] == "a?)?[2J? 1 S"
    assert p["uid"] == os.getuid() and p["sid"] == os.getsid(child.pid)


def test_driver_errors_are_told_once_with_their_class(world):
    (world.dir / "xid").write_text("0 31\n1 79\n0 63\n")
    first, second = world.watch(2)
    assert [(x["code"], x["class"]) for x in first["gpus"][0]["xid"]] == [(31, "app"),
                                                                         (63, "transient")]
    assert [(x["code"], x["class"]) for x in first["gpus"][1]["xid"]] == [(79, "hardware")]
    assert "xid" not in second["gpus"][0]


def test_watch_ends_with_its_reader(world):
    child = subprocess.Popen([HELPER, "watch", "--interval-ms", "100"], stdout=subprocess.PIPE,
                             env=world.env)
    json.loads(child.stdout.readline())
    child.stdout.close()
    assert child.wait(timeout=PATIENCE_S) == 1


def test_the_worker_dies_with_the_helper(world):
    """Even one that hangs in the driver."""
    child = subprocess.Popen([HELPER, "list"], stdout=subprocess.DEVNULL,
                             env={**world.env, "STOKER_FAKE_FAIL": "nvml:0:hang"})
    path = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children")
    while not path.read_text():
        time.sleep(0.01)
    (worker,) = path.read_text().split()
    while "libnvidia-ml" not in pathlib.Path(f"/proc/{worker}/maps").read_text():
        time.sleep(0.01)  # it is in the driver now, or about to be
    child.send_signal(signal.SIGKILL)
    child.wait()
    stat = pathlib.Path(f"/proc/{worker}/stat")
    for _ in range(300):
        try:
            if stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.1)
    pytest.fail("the worker lives on")


def test_suspend_frees_the_gpu_and_resume_gives_it_back(world):
    a, b = world.process(0, 400), world.process(1, 300)
    plain = world.process(0, 1, state="")
    answer = world.ask("suspend", "--lock-timeout-ms", 2500, a, b, plain)
    assert answer["ok"] is True and answer["skipped"] == [plain]
    assert [(p["pid"], p["was"], p["held_mib"], p["freed_mib"]) for p in answer["processes"]] == \
        [(a, "running", 400, 396), (b, "running", 300, 296)]
    assert all(p["lock_ms"] >= 0 and p["checkpoint_ms"] >= 0 for p in answer["processes"])
    assert answer["gpus"] == [{"uuid": UUID[0], "held_mib": 400},
                              {"uuid": UUID[1], "held_mib": 300}]
    assert answer["freed_mib"] == 692
    assert (world.state(a), world.state(b)) == ("checkpointed", "checkpointed")
    # all are locked before any is saved, with the timeout that was given
    assert [step for step, _ in world.log()] == ["lock"] * 2 + ["checkpoint"] * 2
    assert (world.dir / "log").read_text().startswith(f"lock {a} 2500\n")

    answer = world.ask("resume", "--gpu", UUID[0], "--need-mib", 400, "--gpu", UUID[1],
                       "--need-mib", 300, a, b, plain)
    assert answer["ok"] is True and answer["skipped"] == [plain]
    assert [p["pid"] for p in answer["processes"]] == [a, b]
    assert (world.state(a), world.state(b)) == ("running", "running")


def test_memory_is_told_by_gpu_where_the_driver_does_not_tell_it_by_process(world):
    """In a container the driver's PIDs may not be ours."""
    a, b = world.process(0, 400), world.process(1, 300)
    answer = world.ask("suspend", a, b, STOKER_FAKE_WITHOUT="procs")
    assert answer["ok"] is True and "held_mib" not in answer["processes"][0]
    assert answer["gpus"] == [{"uuid": UUID[0], "held_mib": 396}, {"uuid": UUID[1], "held_mib": 296}]
    assert answer["freed_mib"] == 692


def test_state_tells_each_process(world):
    pids = [world.process(0, 1, state=s) for s in ("running", "locked", "checkpointed", "failed", "")]
    gone = world.process(0, 1)
    world.end(gone)
    answer = world.ask("state", *pids, gone)
    assert [p["state"] for p in answer["processes"]] == \
        ["running", "locked", "checkpointed", "failed", "none", "gone"]


@pytest.mark.parametrize("state, steps", [
    ("locked", ["checkpoint"]), ("checkpointed", [])])
def test_suspend_goes_on_from_where_a_process_is(world, state, steps):
    pid = world.process(0, 500, state=state)
    answer = world.ask("suspend", pid)
    assert answer["ok"] is True and answer["processes"][0]["was"] == state
    assert [step for step, _ in world.log()] == steps
    assert world.state(pid) == "checkpointed"


@pytest.mark.parametrize("state, steps", [
    ("checkpointed", ["restore", "unlock"]), ("locked", ["unlock"]), ("running", [])])
def test_resume_goes_on_from_where_a_process_is(world, state, steps):
    pid = world.process(0, 500, state=state)
    assert world.ask("resume", pid)["ok"] is True
    assert [step for step, _ in world.log()] == steps
    assert world.state(pid) == "running"


def test_the_same_process_twice_is_one(world):
    pid = world.process(0, 500)
    assert len(world.ask("suspend", pid, pid)["processes"]) == 1


def test_nothing_on_a_gpu_is_nothing_to_do(world):
    plain = world.process(0, 1, state="")
    for command in ("suspend", "resume"):
        answer = world.ask(command, plain)
        assert answer["ok"] is True and answer["processes"] == [] and answer["skipped"] == [plain]
    assert world.log() == []


@pytest.mark.parametrize("step, code, words", [
    ("lock", 801, "MPS"), ("lock", 600, "did not come to rest in time"),
    ("checkpoint", 801, "UVM"), ("checkpoint", 2, "host memory"), ("lock", 12345, "refused")])
def test_a_refusal_is_undone_and_explained(world, step, code, words):
    a, b = world.process(0, 500), world.process(0, 600)
    answer = world.ask("suspend", a, b, code=1, STOKER_FAKE_FAIL=f"{step}:{b}:{code}")
    assert answer["ok"] is False and answer["code"] == code
    assert answer["pid"] == b and answer["step"] == step and words in answer["why"]
    assert answer["undone"] is True and answer["left"] == []
    assert (world.state(a), world.state(b)) == ("running", "running")
    if step == "checkpoint":
        assert ("restore", str(a)) in world.log()


def test_undo_never_restores_without_room(world):
    """Somebody took the memory meanwhile: the process stays saved, and the answer says so."""
    a, b = world.process(0, 300), world.process(0, 100)
    world.on(0, 4000000, 81700)
    answer = world.ask("suspend", a, b, code=1, STOKER_FAKE_FAIL=f"checkpoint:{b}:801")
    assert answer["undone"] is False
    assert answer["left"] == [{"pid": a, "state": "checkpointed"}]
    assert world.state(a) == "checkpointed" and world.state(b) == "running"
    assert ("restore", str(a)) not in world.log()


def test_a_failed_process_is_refused_before_anything_is_touched(world):
    a, b = world.process(0, 500), world.process(0, 500, state="failed")
    for command in ("suspend", "resume"):
        assert "can only be started again" in world.ask(command, a, b, code=1)["why"]
    assert world.log() == [] and world.state(a) == "running"


def test_an_unknown_state_is_refused_before_anything_is_touched(world):
    a, b = world.process(0, 500), world.process(0, 500)
    for command in ("suspend", "resume"):
        answer = world.ask(command, a, b, code=1, STOKER_FAKE_FAIL=f"state:{b}:800")
        assert answer["ok"] is False and str(b) in answer["why"]
    assert world.log() == []


def test_suspend_counts_host_memory_first(world):
    pid = world.process(0, 500)
    answer = world.ask("suspend", "--host-reserve-mib", 2**31 - 1, pid, code=1)
    assert answer["ok"] is False and "host memory is short" in answer["why"]
    assert world.log() == []


def test_resume_without_room_touches_nothing(world):
    pid = world.process(0, 50000, state="checkpointed")
    world.on(0, 4000000, 60000)
    answer = world.ask("resume", "--gpu", UUID[0], "--need-mib", 50000, "--wait-ms", 300, pid, code=1)
    assert answer["ok"] is False and answer["no_room"] is True
    assert "21916 MiB free, 50000 MiB are needed" in answer["why"]
    assert world.log() == [] and world.state(pid) == "checkpointed"


def test_resume_waits_for_room(world):
    pid = world.process(0, 50000, state="checkpointed")
    before = list(world.lines)
    world.on(0, 4000000, 60000)
    child = subprocess.Popen([HELPER, "resume", "--gpu", UUID[0], "--need-mib", "50000", "--wait-ms",
                              "60000", str(pid)], stdout=subprocess.PIPE, env=world.env)
    time.sleep(0.3)
    assert child.poll() is None and world.log() == []
    other = world.dir / "procs.new"
    other.write_text("".join(before))
    other.rename(world.dir / "procs")
    out, _ = child.communicate(timeout=PATIENCE_S)
    assert json.loads(out)["ok"] is True and world.state(pid) == "running"


def test_resume_on_a_gpu_that_is_not_there_is_refused(world):
    pid = world.process(0, 500, state="checkpointed")
    answer = world.ask("resume", "--gpu", "GPU-00000000-0000-0000-0000-0000000000ff", "--need-mib", 1,
                       "--wait-ms", 60000, pid, code=1)
    assert answer["no_room"] is False and "cannot be read" in answer["why"]
    assert world.log() == []


def test_a_restore_that_fails_saves_the_others_again(world):
    a, b = (world.process(0, 500, state="checkpointed") for _ in range(2))
    answer = world.ask("resume", a, b, code=1, STOKER_FAKE_FAIL=f"restore:{b}:2")
    assert answer["code"] == 2 and answer["step"] == "restore" and answer["pid"] == b
    assert "not enough GPU memory" in answer["why"]
    assert answer["left"] == [{"pid": a, "state": "checkpointed"}, {"pid": b, "state": "checkpointed"}]
    assert (world.state(a), world.state(b)) == ("checkpointed", "checkpointed")


def test_a_move_names_both_gpus(world):
    pid = world.process(0, 500, state="checkpointed")
    move = f"{UUID[0]}={UUID[1]}"
    answer = world.ask("resume", "--move", move, pid, code=1, STOKER_FAKE_CUDA="12080")
    assert "needs CUDA 13" in answer["why"] and world.log() == []
    assert world.ask("resume", "--move", move, pid)["ok"] is True
    assert f"restore {pid} 1\n" in (world.dir / "log").read_text()


@pytest.mark.parametrize("step", ["lock", "checkpoint"])
def test_a_driver_that_hangs_in_suspend_is_told_and_locks_are_undone(world, step):
    a, b = world.process(0, 500), world.process(0, 600)
    answer = world.ask("suspend", "--lock-timeout-ms", 50, "--timeout-ms", 3000, a, b, code=1,  # what does not hang has time enough
                       STOKER_FAKE_FAIL=f"{step}:{b}:hang")
    assert answer["ok"] is False
    assert answer["why"].startswith("the driver did not answer within 3") or step != "checkpoint"
    assert f"({step} of process {b})" in answer["why"]
    assert world.state(b) == "running"
    if step == "lock":
        assert world.state(a) == "running" and answer["undone"] is True
    else:  # saved by the worker that hung: whoever resumes it looks at memory first
        assert answer["left"] == [{"pid": a, "state": "checkpointed"}]


@pytest.mark.parametrize("command, fail", [
    (["list"], "nvml:0:hang"), (["list"], "init:0:hang"), (["watch"], "nvml:0:hang"),
    (["state", "1"], "init:0:hang"), (["state", "1"], "state:1:hang"), (["resume", "1"], "state:1:hang"),
    (["suspend", "1"], "init:0:hang")])
def test_a_driver_that_hangs_is_told(world, command, fail):
    answer = world.ask(command[0], "--timeout-ms", 300, *command[1:], code=1, STOKER_FAKE_FAIL=fail)
    assert answer["ok"] is False and "did not answer within 0.3 s" in answer["why"]
    assert command[0] not in ("list", "watch") or answer["gpus"] == []


def test_a_library_that_crashes_is_told(world):
    answer = world.ask("list", code=1, STOKER_FAKE_FAIL="nvml:0:crash")
    assert answer["ok"] is False and "crashed, signal 6" in answer["why"]


@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"])
def test_the_callers_environment_does_not_stop_cuda(world, name):
    assert world.ask("list", **{name: "/tmp"})["suspend"] is True


@pytest.mark.parametrize("args, words", [
    ([], "usage:"), (["lists"], "usage:"), (["suspend"], "at least one PID"),
    (["suspend", "x"], "a PID takes a number"), (["suspend", "0"], "a PID takes a number"),
    (["suspend", "--wait-ms", "1", "1"], "suspend has no option --wait-ms"),
    (["suspend", "--lock-timeout-ms", "0", "1"], "--lock-timeout-ms takes a number from 1"),
    (["watch", "--interval-ms", "5"], "from 100"), (["watch", "1"], "takes no argument"),
    (["resume", "--need-mib", "1", "1"], "belongs after the --gpu"),
    (["resume", "--gpu", "0", "1"], "takes a UUID"), (["resume", "--gpu", "GPU-", "1"], "takes a UUID"),
    (["resume", "--move", UUID[0], "1"], "OLD=NEW"), (["list", "--timeout-ms"], "got nothing"),
])
def test_wrong_use_is_refused_with_a_sentence(world, args, words):
    run = world.run(*args)
    assert run.returncode == 2 and run.stdout == "" and words in run.stderr


def test_the_spec_names_every_key(world):
    """docs/spec/gpu-helper.md lists what the lines can hold."""
    spec = (ROOT / "docs" / "spec" / "gpu-helper.md").read_text()
    pid = world.process(0, 500, sm=3)
    (world.dir / "xid").write_text("0 31\n")
    keys = set()

    def collect(value):
        if isinstance(value, dict):
            keys.update(value)
            for v in value.values():
                collect(v)
        elif isinstance(value, list):
            for v in value:
                collect(v)

    for line in world.watch(2) + world.watch(2, STOKER_FAKE_WITHOUT="gpm"):
        collect(line)
    collect(world.ask("list", STOKER_FAKE_MIG="1"))
    collect(world.ask("suspend", pid))
    collect(world.ask("resume", pid))
    collect(world.ask("suspend", pid, code=1, STOKER_FAKE_FAIL=f"lock:{pid}:801"))
    missing_keys = {key for key in keys if f"`{key}`" not in spec}
    assert not missing_keys
