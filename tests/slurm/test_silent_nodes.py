# SPDX-License-Identifier: Apache-2.0
"""A node that does not answer says nothing about its jobs: they are not taken for gone. And nobody waits for it who asks for something else."""
import json
import os
import signal
import time

import pytest
import slurm
from daemon import STOKERD
from fake_slurm import FakeSlurm
from libslurm import PROGRAM, Helper
from patience import until

built = pytest.mark.skipif(not slurm.installed() or not PROGRAM.exists(), reason="Slurm is not installed, or stoker-libslurm was not built (libslurm-dev)")
pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")
SUBMIT = {"op": "submit", "name": "t", "workdir": "/", "stdout": "/dev/null", "env": {"PATH": "/usr/bin:/bin"}, "uid": os.getuid(), "gid": os.getgid()}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=2) as c:
        yield c


@pytest.fixture
def helper(cluster):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1)
        h.ask(op="every", ms=50)
        yield h


@pytest.fixture
def job(helper, cluster):
    """One that has processes on n1."""
    number = helper.ask(**SUBMIT, script="#!/bin/sh\nsleep 1000\n", nodes="n1")["job"]
    helper.until(lambda: helper.jobs.get(number, {}).get("state") == "running")
    slurm.wait_for(lambda: helper.ask(op="left", job=number, nodes="n1")["nodes"] == ["n1"])
    yield number
    helper.ask(op="cancel", job=number)
    cluster.idle()


def slurmd(cluster, name):
    return until(lambda: cluster.process(f"pid/{name}"))


@built
def test_a_node_without_its_slurmd_does_not_say_no(helper, cluster, job):
    assert helper.ask(op="left", job=job, nodes="n2") == {"op": "answer", "id": helper.number, "ok": True, "nodes": [], "steps": []}
    assert helper.ask(op="left", job=job, nodes="n[1-2]")["nodes"] == ["n1"]
    pid = slurmd(cluster, "n1")
    os.kill(pid, signal.SIGKILL)
    slurm.wait_for(lambda: slurm.gone(pid))
    a = helper.ask(op="left", job=job, nodes="n1")
    assert not a["ok"] and a["why"].startswith("n1 does not say")
    assert not helper.ask(op="left", job=job, nodes="n2,n1")["ok"]
    cluster.start_node("n1")
    slurm.wait_for(lambda: helper.ask(op="left", job=job, nodes="n2,n1").get("nodes") == ["n1"])


@built
def test_nobody_waits_for_a_node_that_hangs(helper, cluster, job):
    pid = slurmd(cluster, "n1")
    os.kill(pid, signal.SIGSTOP)
    try:
        helper.process.stdin.write(json.dumps({"op": "left", "id": 1000000, "job": job, "nodes": "n1"}) + "\n")
        a = helper.ask(**SUBMIT, script="#!/bin/sh\n", nodes="n2")
        assert a["ok"] and 1000000 not in helper.answers
    finally:
        os.kill(pid, signal.SIGCONT)
    helper.until(lambda: 1000000 in helper.answers)


@built
def test_a_slurmctld_that_is_late_is_waited_for_as_long_as_its_site_says(helper, cluster):
    """MessageTimeout is a minute here. What was not answered is sent again, and would run twice."""
    pid = cluster.process("pid/ctld")
    os.kill(pid, signal.SIGSTOP)
    try:
        helper.process.stdin.write(json.dumps({**SUBMIT, "id": 2000000, "script": "#!/bin/sh\n"}) + "\n")
        time.sleep(12)  # longer than Slurm's own default
    finally:
        os.kill(pid, signal.SIGCONT)
    helper.until(lambda: 2000000 in helper.answers)
    assert helper.answers[2000000]["ok"], helper.answers[2000000]


@pytest.fixture
def fake(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8) as s:
        yield s


def running(s, number):
    n = s.daemon.submit(gpus=2, command=["/bin/true"], workdir="/tmp")
    ask = s.expect("submit")
    s.answer(ask, job=number)
    s.job(number, ask["comment"], pieces={ask["nodes"]: [0, 1]})
    s.daemon.until(n, "running")
    return n, ask


def test_a_job_on_a_silent_node_goes_on(fake):
    """slurmctld is back, and the node's slurmd is not."""
    n, ask = running(fake, 7)
    fake.job(7, ask["comment"], pieces={ask["nodes"]: [0, 1]}, all_of_them=True)
    for _ in range(3):
        fake.answer(fake.expect("left"), ok=False, why="n1 does not say")
    fake.answer(fake.expect("left"), nodes=[ask["nodes"]], steps=[ask["nodes"]])
    fake.job(7, ask["comment"], state="completed")
    assert fake.daemon.wait(n)["cause"] == "completed"


def test_a_start_does_not_wait_for_a_look_at_a_node(fake):
    n, ask = running(fake, 7)
    fake.job(7, ask["comment"], pieces={ask["nodes"]: [0, 1]}, all_of_them=True)
    look = fake.expect("left")
    other, second = running(fake, 8)
    fake.answer(look, nodes=[ask["nodes"]], steps=[])
    fake.job(7, ask["comment"], state="completed")
    fake.job(8, second["comment"], state="completed")
    assert fake.daemon.wait(n)["cause"] == "completed" and fake.daemon.wait(other)["cause"] == "completed"
