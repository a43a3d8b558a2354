# SPDX-License-Identifier: Apache-2.0
"""A machine whose GPUs can be read (tests/lib/fake*.c) and that pretends to be two nodes: what is seen on a GPU of the second node is not
taken for the GPU of the same number of the first."""
import contextlib
import re
import subprocess

import prom
import pytest
from daemon import STOKER, STOKERD, Daemon, stoker
from patience import until

FAKES = STOKER.resolve().parent / "tests" / "lib"
pytestmark = pytest.mark.skipif(not STOKERD.exists() or not (FAKES / "libnvidia-ml.so.1").exists(), reason="not built with tests")
SLEEP = ["/bin/sleep", "1000"]


class World:
    """Four GPUs: 0 and 1 are of the first node, 2 and 3 of the second."""

    def __init__(self, folder):
        self.dir = folder / "fake"
        self.dir.mkdir()
        (self.dir / "topology").write_text("gpus 4\n")
        self.daemon = Daemon(folder, gpus=None, config="gpus: {interval_ms: 200}\nvirtual_nodes: 2\n",
                             env={"STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(self.dir)})
        self.children = []

    def write(self, name, text):
        (self.dir / "new").write_text(text)
        (self.dir / "new").rename(self.dir / name)

    def foreign(self, gpu):
        p = subprocess.Popen(SLEEP, start_new_session=True, cwd="/")
        self.children.append(p)
        self.write("procs", f"{gpu} {p.pid} 1000 0\n")
        return p

    def gpus(self):
        return {(g["node"], g["index"]): g for g in self.daemon.get("/v1/gpus")["gpus"]}

    def until_gpu(self, at, what):
        return until(lambda: what(g := self.gpus()[at]) and g, say=lambda: self.gpus()[at])

    def until_free(self):
        until(lambda: all(g["state"] == "free" for g in self.gpus().values()), say=self.gpus)
        return [n["name"] for n in self.daemon.get("/v1/nodes")["nodes"]]


@pytest.fixture
def world(tmp_path):
    w = World(tmp_path)
    yield w
    for p in w.children:
        with contextlib.suppress(OSError):
            p.kill()
        p.wait()
    w.daemon.close()


def on(d, node, **job):
    """A job on that node that runs."""
    n = d.submit(nodelist=[node], **{"command": SLEEP, "gpus": 1, **job})
    job = d.until(n, "running")
    assert [p["node"] for p in job["pieces"]] == [node]
    return n


def test_each_node_has_its_part_of_the_gpus(world):
    with world.daemon as d:
        first, second = world.until_free()
        assert sorted(world.gpus()) == sorted((n, i) for n in (first, second) for i in (0, 1))
        uuids = {at: g["uuid"] for at, g in world.gpus().items()}
        assert len(set(uuids.values())) == 4
        n = d.submit(command=["/bin/sh", "-c", "echo GPUs $STOKER_GPUS on $STOKER_NODE"], gpus=2, nodelist=[second])
        d.wait(n)
        assert d.log(n) == f"GPUs 2,3 on {second}\n"
        gang = d.submit(command=["/bin/sh", "-c", "echo $STOKER_NODE has $STOKER_GPUS, CUDA $CUDA_VISIBLE_DEVICES"], gpus=2, tasks=2)
        d.wait(gang)
        assert sorted(d.log(gang).splitlines()) == [f"{first} has 0,1, CUDA 0,1", f"{second} has 2,3, CUDA 2,3"]


def test_a_script_and_its_srun_have_the_gpus_of_their_nodes(world):
    script = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=2\nsrun bash -c 'echo $SLURMD_NODENAME has $CUDA_VISIBLE_DEVICES'\n"
    with world.daemon as d:
        first, second = world.until_free()
        (d.folder / "gang.sh").write_text(script)
        n = int(re.search(r"\d+", stoker(d, "submit", "gang.sh"))[0])
        d.wait(n)
        assert sorted(d.log(n).splitlines()) == [f"{first} has 0,1", f"{second} has 2,3"]


def test_an_error_of_a_gpu_of_the_second_node_is_not_taken_for_one_of_the_first(world):
    with world.daemon as d:
        first, second = world.until_free()
        other = on(d, first)
        assert d.job(other)["gpu_indices"] == [0]
        script = f"[ $STOKER_RESTARTS = 1 ] && exec sleep 1000; while [ ! -e go ]; do sleep 0.05; done; echo 2 79 >{world.dir}/xid; exit 1"
        number = on(d, second, command=["/bin/sh", "-c", script], retry={"node": 1})
        assert d.job(number)["gpu_indices"] == [0]
        (d.folder / "go").touch()
        gpu = world.until_gpu((second, 0), lambda g: g["state"] == "off")
        assert "XID 79" in gpu["off"] and f"stoker undrain --gpu {second}:0" in gpu["off"]
        job = until(lambda: (j := d.job(number))["state"] == "running" and j["restarts"] == 1 and j, say=lambda: d.job(number))
        assert job["gpu_indices"] == [1] and job["node"] == second  # on the GPU beside it
        assert f"XID 79 on GPU {second}:0" in str(d.get(f"/v1/jobs/{number}/events")) + str(job), job
        untouched = d.job(other)
        assert (untouched["state"], untouched["restarts"]) == ("running", 0)
        states = {at: g["state"] for at, g in world.gpus().items()}
        assert states == {(first, 0): "busy", (first, 1): "free", (second, 0): "off", (second, 1): "busy"}
        (alert,) = until(lambda: [a for a in d.get("/v1/alerts")["alerts"] if a["kind"] == "gpu_unhealthy"])
        assert (alert["node"], alert["gpu"]) == (second, 0) and f"GPU 0 of {second}" in alert["text"]
        values = prom.parse(d.web().get("/metrics").body.decode())
        assert [prom.value(values, "stoker_gpu_healthy", node=n, gpu="0") for n in (first, second)] == [1, 0]


def test_such_a_gpu_stays_out_of_use_until_an_operator_says_that_it_is_well(world):
    with world.daemon as d:
        first, second = world.until_free()
        world.write("xid", "3 79\n")
        world.until_gpu((second, 1), lambda g: g["state"] == "off")
        d.restart()
        world.until_gpu((first, 1), lambda g: g["state"] == "free")
        assert world.gpus()[second, 1]["state"] == "off"
        waits = d.submit(command=["/bin/true"], gpus=2, nodelist=[second])
        assert d.job(waits)["state"] == "waiting"
        assert d.wait(d.submit(command=["/bin/true"], gpus=2, nodelist=[first]))["cause"] == "completed"
        stoker(d, "undrain", "--gpu", f"{second}:1")
        assert d.wait(waits)["cause"] == "completed"


def test_a_foreign_process_keeps_jobs_from_its_own_gpu_only(world):
    with world.daemon as d:
        first, second = world.until_free()
        p = world.foreign(2)
        world.until_gpu((second, 0), lambda g: g.get("off"))
        assert world.gpus()[first, 0]["state"] == "free" and not world.gpus()[first, 0].get("foreign")
        assert d.job(on(d, first, gpus=2))["gpu_indices"] == [0, 1]
        assert d.job(on(d, second))["gpu_indices"] == [1]
        adopted = d.post("/v1/adopt", {"pid": p.pid})["id"]
        job = d.until(adopted, "running")
        assert (job["node"], job["gpu_indices"]) == (second, [0])
        world.until_gpu((second, 0), lambda g: g.get("job") == adopted and not g.get("foreign"))


def test_idle_gpus_are_lent_on_the_node_where_they_are_idle(world):
    with world.daemon as d:
        first, second = world.until_free()
        world.write("busy", "0 90\n1 90\n2 0\n3 0\n")
        works = on(d, first, gpus=2, idle={"suspend_s": 1, "below_pct": 20})
        idles = on(d, second, gpus=2, idle={"suspend_s": 1, "below_pct": 20})
        until(lambda: d.job(idles).get("warning"))
        assert not d.job(works).get("warning")
        waits = d.submit(command=SLEEP, gpus=1)
        d.until(idles, "suspended")
        assert d.until(waits, "running")["node"] == second
        assert d.job(works)["state"] == "running" and not d.job(works).get("warning")
