# SPDX-License-Identifier: Apache-2.0
"""A daemon with GPUs, or what it takes for GPUs (tests/lib/fake*.c): errors of GPUs, processes that are not ours."""
import contextlib
import json
import subprocess

import pytest
from daemon import STOKER, STOKERD, Daemon, stoker
from patience import until

FAKES = STOKER.resolve().parent / "tests" / "lib"
pytestmark = pytest.mark.skipif(not STOKERD.exists() or not (FAKES / "libnvidia-ml.so.1").exists(), reason="not built with tests")
SLEEP = ["/bin/sleep", "1000"]


class World:
    """Two GPUs of 80 GiB."""

    def __init__(self, folder, config=""):
        self.dir = folder / "fake"
        self.dir.mkdir(exist_ok=True)
        self.daemon = Daemon(folder, gpus=None, config="gpus: {interval_ms: 200" + config + "}\n",
                             env={"STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(self.dir)})
        self.children = []

    def foreign(self, gpu, mib=1000, sm=0):
        p = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True, cwd="/")
        self.children.append(p)
        (self.dir / "new").write_text(f"{gpu} {p.pid} {mib} {sm}\n")
        (self.dir / "new").rename(self.dir / "procs")
        return p

    def gpu(self, index):
        return self.daemon.get("/v1/gpus")["gpus"][index]

    def until_gpu(self, index, what):
        return until(lambda: what(g := self.gpu(index)) and g, say=lambda: self.gpu(index))


@pytest.fixture
def world(tmp_path):
    made = []

    def make(config=""):
        made.append(World(tmp_path, config))
        return made[-1]

    yield make
    for w in made:
        for p in w.children:
            with contextlib.suppress(OSError):
                p.kill()
            p.wait()
        w.daemon.close()


def free(g):
    return g["state"] == "free"


# ---- errors ----

def fails(world, code, gpu=0):
    """A job that dies while the driver reports an error."""
    return {"command": ["/bin/sh", "-c", f"echo {gpu} {code} >{world.dir}/xid; exit 1"], "gpus": 2}


def test_a_job_that_a_gpu_error_ended_says_so_and_the_gpu_is_put_aside(world):
    w = world()
    with w.daemon as d:
        w.until_gpu(0, free)
        n = d.submit(**fails(w, 79))
        job = d.wait(n)
        assert job["cause"] == "gpu_error" and "XID 79" in job["note"] and "GPU 0" in job["note"]
        gpu = w.until_gpu(0, lambda g: g["state"] == "off")
        assert "XID 79" in gpu["off"] and "stoker undrain --gpu 0" in gpu["off"]
        waits = d.submit(command=["/bin/true"], gpus=2)
        one = d.submit(command=["/bin/true"], gpus=1)
        assert d.wait(one)["cause"] == "completed" and d.job(waits)["state"] == "waiting"
        d.restart()  # it stays aside
        assert w.until_gpu(0, lambda g: g["state"] != "free")["state"] == "off"
        w.until_gpu(1, free)
        assert d.job(waits)["state"] == "waiting"
        d.post("/v1/gpus/0/resume")
        assert d.wait(waits)["cause"] == "completed"
        d.restart()
        w.until_gpu(0, free)


def test_such_an_end_is_counted_against_the_budget_for_nodes(world):
    w = world()
    with w.daemon as d:
        w.until_gpu(0, free)
        n = d.submit(command=["/bin/sh", "-c", f"[ $STOKER_RESTARTS = 1 ] || {{ echo 0 94 >{w.dir}/xid; exit 1; }}"], gpus=1,
                     retry={"node": 1})
        job = d.wait(n)
        assert (job["cause"], job["restarts"]) == ("completed", 1)
        w.until_gpu(0, free)  # 94 hits one program: the GPU itself is well


def test_a_program_that_fails_by_itself_is_not_excused(world):
    w = world()
    with w.daemon as d:
        w.until_gpu(0, free)
        job = d.wait(d.submit(**fails(w, 31, gpu=1)))
        assert (job["cause"], job["exit_code"]) == ("failed", 1) and "XID 31 on GPU 1" in job["note"]
        job = d.wait(d.submit(command=["/bin/sh", "-c", "exit 4"], gpus=1))
        assert (job["cause"], job["exit_code"], job["note"]) == ("failed", 4, "exit code 4")
        w.until_gpu(1, free)


def test_an_error_of_another_gpu_does_not_matter(world):
    w = world()
    with w.daemon as d:
        w.until_gpu(0, free)
        w.until_gpu(1, free)
        other = d.submit(command=SLEEP, gpus=1)
        d.until(other, "running")
        taken = d.job(other)["gpu_indices"][0]
        job = d.wait(d.submit(command=["/bin/sh", "-c", f"echo {taken} 79 >{w.dir}/xid; exit 1"], gpus=1))
        assert job["cause"] == "failed"
        assert d.job(other)["state"] == "running"


# ---- processes that are not ours ----

def test_a_foreign_process_is_named_and_its_gpu_left_alone(world):
    w = world()
    with w.daemon as d:
        w.until_gpu(1, free)
        p = w.foreign(1)
        w.until_gpu(1, lambda g: g.get("foreign"))
        gpus = json.loads(stoker(d, "gpus", "--json"))
        gpu = (gpus["gpus"] if isinstance(gpus, dict) else gpus)[1]
        (f,) = gpu["foreign"]
        assert f["pid"] == p.pid and f["user"] and f["age_s"] >= 0 and f["name"] == "sleep" and f["mem_mib"] == 1000
        assert str(p.pid) in gpu["off"] and f"kill {p.pid}" in gpu["off"]
        n = d.submit(command=SLEEP, gpus=1)
        assert d.until(n, "running")["gpu_indices"] == [0]
        waits = d.submit(command=["/bin/true"], gpus=1)
        assert d.job(waits)["state"] == "waiting"
        (w.dir / "procs").unlink()
        assert d.wait(waits)["cause"] == "completed"


def test_with_ignore_it_is_named_and_its_gpu_used(world):
    w = world(", foreign: ignore")
    p = w.foreign(0)
    with w.daemon as d:
        gpu = w.until_gpu(0, lambda g: g.get("foreign"))
        assert gpu["foreign"][0]["pid"] == p.pid and gpu["state"] == "free"
        n = d.submit(command=SLEEP, gpus=2)
        assert d.until(n, "running")["gpu_indices"] == [0, 1]


def test_with_pack_it_is_used_last_and_only_with_room(world):
    w = world(", foreign: pack, pack_mib: 20000")
    with w.daemon as d:
        w.until_gpu(0, free)
        w.foreign(0, mib=50000)
        w.until_gpu(0, lambda g: g.get("last"))
        n = d.submit(command=SLEEP, gpus=1)
        assert d.until(n, "running")["gpu_indices"] == [1]
        n = d.submit(command=SLEEP, gpus=1)
        assert d.until(n, "running")["gpu_indices"] == [0]
        w.foreign(0, mib=70000)
        w.until_gpu(0, lambda g: g.get("off"))
        d.post(f"/v1/jobs/{n}/cancel")
        d.wait(n)
        waits = d.submit(command=["/bin/true"], gpus=1)
        assert d.job(waits)["state"] == "waiting"


def test_a_job_on_a_gpu_that_is_not_its_own_is_told_so(world):
    w = world()
    with w.daemon as d:
        w.until_gpu(0, free)
        w.until_gpu(1, free)
        n = d.submit(command=["/bin/sh", "-c", f"echo 1 $$ 500 3 > {w.dir}/new; mv {w.dir}/new {w.dir}/procs; exec sleep 1000"], gpus=1)
        assert d.until(n, "running")["gpu_indices"] == [0]
        gpu = w.until_gpu(1, lambda g: g.get("off"))
        assert f"job {n} uses it and was not given it" in gpu["off"] and gpu["foreign"][0]["job"] == n
        assert "GPU 1, which it was not given" in d.job(n)["warning"]
        d.errors_with("which it was not given")
        waits = d.submit(command=["/bin/true"], gpus=1)
        assert d.job(waits)["state"] == "waiting"
        (w.dir / "procs").unlink()
        assert d.wait(waits)["cause"] == "completed"
        assert not d.job(n).get("warning")


def test_a_gpu_that_is_well_again_is_used_again(world):
    w = world(", quiet: 15")
    with w.daemon as d:
        w.until_gpu(0, free)
        d.wait(d.submit(**fails(w, 62)))
        gpu = w.until_gpu(0, lambda g: g["state"] == "off")
        assert "used again after" in gpu["off"] and gpu["xids"][-1]["code"] == 62
        w.until_gpu(0, free)
        d.errors_with("GPU 0 is used again")
        d.restart()
        w.until_gpu(0, free)


def test_an_adopted_process_has_the_gpus_it_uses(world):
    w = world()
    p = w.foreign(1)
    with w.daemon as d:
        w.until_gpu(1, lambda g: g.get("foreign"))
        n = d.post("/v1/adopt", {"pid": p.pid})["id"]
        assert d.until(n, "running")["gpu_indices"] == [1]
        gpu = w.until_gpu(1, lambda g: not g.get("foreign"))
        assert (gpu["state"], gpu["job"]) == ("busy", n) and "off" not in gpu
        (w.dir / "procs").unlink()
        p.kill()
        p.wait()
        d.wait(n)
        w.until_gpu(1, free)


def test_a_job_with_idle_gpus_is_warned(world):
    w = world()
    with w.daemon as d:
        w.until_gpu(0, free)
        n = d.submit(command=["/bin/sh", "-c", "while :; do :; done"], gpus=1, idle={"warn_s": 1, "below_pct": 50})
        until(lambda: "warning" in d.job(n))
