# SPDX-License-Identifier: Apache-2.0
"""How the machine is built, and what is made of it: `stoker gpus --topology`, the choice of GPUs, CPUs near them. Machines are
pretended (tests/lib/machines.py): the driver by fake_links.c, the rest by hwloc's XML. The drawings are in tests/e2e/topology/."""
import json
import os
import pathlib
import pty
import re
import subprocess

import jsonschema
import machines
import pytest
from daemon import STOKER, STOKERD, Daemon

FAKES = STOKER.resolve().parent / "tests" / "lib"
DRAWINGS = pathlib.Path(__file__).parent / "topology"
pytestmark = pytest.mark.skipif(not STOKERD.exists() or not (FAKES / "libnvidia-ml.so.1").exists(), reason="not built with tests")
NAMES = ["dgx_h100", "two_islands", "dgx1", "pcie", "one"]


@pytest.fixture
def world(tmp_path):
    made = []

    def make(machine, config="", **env):
        fake = tmp_path / "fake"
        fake.mkdir(exist_ok=True)
        env = {**machine.write(fake), "STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(fake), **env}
        made.append(Daemon(tmp_path, gpus=None, config="gpus: {interval_ms: 200}\n" + config, env=env))
        return made[-1].start()

    yield make
    for d in made:
        d.close()


def draw(d, *args, **env):
    run = subprocess.run([STOKER, "gpus", "--topology", *args], env={**os.environ, "LC_ALL": "C.UTF-8", **env, "STOKER_SOCKET": str(d.socket)},
                         capture_output=True, text=True, check=True)
    return re.sub(r"^\S+: ", "machine: ", run.stdout, count=1)


# ---- looking ----

@pytest.mark.parametrize("name", NAMES)
def test_the_drawing_is_as_kept(world, name):
    assert draw(world(getattr(machines, name)())) == (DRAWINGS / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_hwloc_tells_what_an_older_driver_does_not(world, name):
    """All but the NVLinks."""
    m = getattr(machines, name)()
    m.links, m.switches = {}, 0
    d = world(m)
    told = d.get("/v1/topology")["nodes"][0]["links"]
    d.stop()
    d = world(m, STOKER_FAKE_WITHOUT="ancestor nvlink")
    assert d.get("/v1/topology")["nodes"][0]["links"] == told
    assert all("path" in pair for pair in told)


def test_what_the_drawing_is_made_of_can_be_had(world):
    d = world(machines.two_islands())
    answer = json.loads(draw(d, "--json"))
    assert answer == d.get("/v1/topology")
    schemas = d.get("/openapi.json")["components"]["schemas"]
    jsonschema.validate(answer, {**schemas["Topology"], "components": {"schemas": schemas}})
    (node,) = answer["nodes"]
    assert [g["island"] for g in node["gpus"]] == [0, 0, 0, 0, 4, 4, 4, 4]
    assert node["gpus"][5]["cpus"] == "16-31" and node["gpus"][5]["bridges"] == ["0000:30", "0000:30:11.0"]
    assert [n["package"] for n in node["numa"]] == [0, 1] and node["numa"][1]["mem_mib"] == 524288
    assert node["links"][0] == {"a": 0, "b": 1, "nvlinks": 4, "switch": False, "path": "pix"}


def test_a_plain_terminal_gets_plain_characters(world):
    d = world(machines.one())
    text = draw(d, LC_ALL="C")
    assert text.isascii() and "`- package 0" in text and "\033" not in text


def test_a_terminal_gets_colours(world):
    d = world(machines.pcie())
    main, other = pty.openpty()
    subprocess.run([STOKER, "gpus", "--topology"], stdout=other, check=True,
                   env={**os.environ, "TERM": "xterm", "NO_COLOR": "", "STOKER_SOCKET": str(d.socket)})
    os.close(other)
    text = os.read(main, 65536)
    os.close(main)
    assert b"\033[31m   SYS\033[0m" in text and b"\033[32mGPU 0" in text


def test_a_narrow_terminal_gets_the_table_in_parts(world):
    text = draw(world(machines.dgx_h100()), COLUMNS="40")
    assert text.count("GPU  0") == 2 and max(map(len, text.split("\n\n")[1].splitlines())) <= 40


def test_virtual_gpus_have_no_place(tmp_path):
    with Daemon(tmp_path, gpus=3) as d:
        text = draw(d)
        assert ", 3 virtual GPUs\n" in text.splitlines()[0] + "\n" and "NUMA node 0" in text and "GPU 0" not in text
        (node,) = d.get("/v1/topology")["nodes"]
        assert node["virtual_gpus"] == 3 and node["gpus"] == [] and node["n_cpus"] > 0


def test_a_machine_that_hwloc_cannot_read_is_used_all_the_same(world):
    d = world(machines.dgx_h100(), HWLOC_XMLFILE="/dev/null")
    d.errors_with("hwloc cannot read this machine's topology")
    assert len(d.get("/v1/topology")["nodes"][0]["gpus"]) == 8
    assert d.wait(d.submit(command=["/bin/true"], gpus=8))["cause"] == "completed"


# ---- the choice of GPUs ----

SLEEP = ["/bin/sleep", "1000"]


def given(d, gpus, **job):
    n = d.submit(command=SLEEP, gpus=gpus, **job)
    return d.until(n, "running")["gpu_indices"]


def drained(d, *gpus):
    for g in gpus:
        d.post(f"/v1/gpus/{g}/drain")


@pytest.mark.parametrize(("name", "taken", "gpus", "best"), [
    ("dgx_h100", (0,), 4, [4, 5, 6, 7]),        # all linked alike: one NUMA node
    ("dgx_h100", (), 2, [0, 1]),
    ("two_islands", (1,), 4, [4, 5, 6, 7]),
    ("two_islands", (1,), 3, [0, 2, 3]),        # the whole island is left for others
    ("two_islands", (1,), 1, [0]),
    ("two_islands", (1, 5, 6), 1, [4]),         # from the island that is broken more
    ("dgx1", (3,), 2, [6, 7]),                  # two links and one PCIe switch
    ("dgx1", (3, 6, 7), 2, [1, 2]),             # two links, not 0 and 1 with one; in a NUMA node, not 0 and 4
    ("dgx1", (0, 1), 4, [4, 5, 6, 7]),
    ("pcie", (0,), 2, [2, 3]),
    ("pcie", (0,), 1, [1]),
    ("one", (), 1, [0]),
])
def test_the_best_connected_free_gpus_are_given(world, name, taken, gpus, best):
    d = world(getattr(machines, name)())
    drained(d, *taken)
    assert given(d, gpus) == best


def test_a_gang_is_kept_together(world):
    d = world(machines.two_islands())
    drained(d, 0)
    assert sorted(given(d, 2, tasks=2)) == [4, 5, 6, 7]


def test_another_topology_after_a_restart_does_not_matter(world, tmp_path):
    d = world(machines.two_islands())
    first = d.submit(command=SLEEP, gpus=4)
    assert d.until(first, "running")["gpu_indices"] == [0, 1, 2, 3]
    asleep = d.submit(command=SLEEP, gpus=2)
    assert d.until(asleep, "running")["gpu_indices"] == [4, 5]
    d.kill()
    other = machines.dgx1()
    other.gpus.reverse()
    other.write(tmp_path / "fake")
    d.start()
    assert d.job(first)["gpu_indices"] == [0, 1, 2, 3] and d.job(asleep)["state"] == "running"
    assert d.get("/v1/topology")["nodes"][0]["gpus"][0]["numa"] == 1
    d.stop()
    pcie = machines.dgx_h100()
    pcie.switches = 0
    pcie.write(tmp_path / "fake")
    (tmp_path / "fake" / "hwloc.xml").write_text("nothing of the kind")
    d.start()
    assert given(d, 2) == [6, 7]


# ---- CPUs near the GPUs ----

CPUS = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU")
SAY = 'grep Cpus_allowed_list /proc/self/status; echo "$STOKER_CPUS/$STOKER_NUMA"'


def near(d, **job):
    """The CPUs a job may use, and what it is told of them; a line pair per task."""
    n = d.submit(command=["/bin/sh", "-c", SAY], **job)
    assert d.wait(n)["cause"] == "completed"
    lines = [line.split("\t")[-1] for line in d.log(n).splitlines()]
    return [[cpu for cpu in CPUS if _in(cpu, line)] for line in lines[::2]], lines[1::2]


def _in(cpu, text):
    return any(int(r.split("-")[0]) <= cpu <= int(r.split("-")[-1]) for r in text.split(","))


@two_cpus
def test_a_job_runs_on_the_cpus_near_its_gpus(world):
    a, b = CPUS[:2]
    d = world(machines.this(a, b))
    assert near(d, gpus=1) == ([[a]], [f"{a}/0"])
    first = d.submit(command=["/bin/sleep", "1000"], gpus=2)
    assert d.until(first, "running")["gpu_indices"] == [0, 1]
    assert near(d, gpus=2) == ([[b]], [f"{b}/1"])


@two_cpus
def test_each_task_of_a_gang_runs_near_its_own_gpus(world):
    a, b = CPUS[:2]
    d = world(machines.this(a, b))
    n = d.submit(command=["/bin/sh", "-c", "sleep 0.$((STOKER_TASK * 5 + 1)); " + SAY], tasks=2, gpus=2)
    assert d.wait(n)["cause"] == "completed"
    text = d.log(n) + d.log(n, "?task=1")
    assert f"{a}/0" in text and f"{b}/1" in text


@two_cpus
@pytest.mark.parametrize(("config", "job"), [("", {"gpus": 0}), ("", {"gpus": 4}), ("", {"gpus": 1, "cpus": 2}), ("bind_cpus: off\n", {"gpus": 1})],
                         ids=["no GPUs", "GPUs near all", "more CPUs than near", "switched off"])
def test_jobs_that_are_not_bound(world, config, job):
    d = world(machines.this(*CPUS[:2]), config)
    (had,), (told,) = near(d, **job)
    assert had == CPUS and told == "/"


@two_cpus
@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/sys/fs/cgroup/cpuset", os.W_OK), reason="no cpuset cgroups")
def test_a_cgroup_keeps_it_there(world):
    d = world(machines.this(*CPUS[:2]))
    n = d.submit(command=["/usr/bin/python3", "-c", f"import os; os.sched_setaffinity(0, {CPUS[:2]}); print(os.sched_getaffinity(0))"], gpus=1)
    assert d.wait(n)["cause"] == "completed" and d.log(n).strip() == f"{{{CPUS[0]}}}"
    assert not [p for p in pathlib.Path("/sys/fs/cgroup/cpuset/stoker").glob(f"{n}.*") if (p / "cgroup.procs").exists()]
