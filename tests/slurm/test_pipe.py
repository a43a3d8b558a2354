# SPDX-License-Identifier: Apache-2.0
"""What users write into their jobs, however long, stops nobody: neither what stoker-libslurm says of all jobs of Slurm's, nor what it is asked to send.
Nor does who fills its socket."""
import contextlib
import os
import signal
import socket
import subprocess
import sys

import pytest
import slurm
from libslurm import Helper
from patience import PATIENCE_S
from slurm_daemon import needed, slurm_daemon

pytestmark = needed
MIB = 1 << 20
WHO = {"uid": os.getuid(), "gid": os.getgid()}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=4, extra="PartitionName=other Nodes=n[1-2] State=UP") as c:
        yield c


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    if not slurm.OUR_PLUGINS.exists():
        pytest.skip("the plugins are not built (libslurm-dev)")
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=4, plugins=True) as c:
        yield c


@pytest.fixture(scope="module")
def long_jobs(cluster, tmp_path_factory):
    """Twenty jobs of a megabyte of arguments each, six in JSON."""
    script = tmp_path_factory.mktemp("long") / "s.sh"
    script.write_text("#!/bin/sh\n")
    args = ["\1" * 100000] * 10
    jobs = [cluster.run("sbatch", "--parsable", "-H", "-p", "other", "-o", "/dev/null", str(script), *args).stdout.strip() for _ in range(20)]
    yield [int(j) for j in jobs]
    cluster.run("scancel", *jobs)


def test_all_jobs_are_told_in_lines_that_can_be_read(cluster, long_jobs):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1)
        assert set(long_jobs) <= set(h.jobs) and h.longest < 4 * MIB
        told = [h.jobs[j]["command"] for j in long_jobs]  # newer Slurms tell the script alone
        assert all(c.endswith(("\1", "/s.sh")) and len(c) <= 1024 for c in told), told
        assert h.ask(op="every", ms=50)["ok"]
        cluster.run("scancel", str(long_jobs[0]))  # a change of one whose text was cut is told
        h.until(lambda: h.jobs[long_jobs[0]]["state"] == "cancelled")


def test_nodes_that_are_named_again_and_again_are_told_once(cluster, tmp_path):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1)
        a = h.ask(op="submit", script="#!/bin/sh\n", name="t", workdir="/", stdout="/dev/null", env={"A": "b"}, hold=True, **WHO)
        cluster.run("scontrol", "update", f"jobid={a['job']}", "excnodelist=" + ",".join(["n1"] * 20000))
        h.until(lambda: h.jobs.get(a["job"], {}).get("exc_hosts") == ["n1"])
        assert h.longest < 4 * MIB
        assert h.ask(op="cancel", job=a["job"])["ok"]


def test_long_texts_of_others_stop_nobody(cluster, long_jobs, tmp_path):
    with slurm_daemon(tmp_path, cluster) as d:
        n = d.submit(command=["/bin/true"], gpus=1, workdir=str(tmp_path))
        assert d.wait(n)["cause"] == "completed"


def test_a_line_that_is_too_long_is_answered_and_the_next_is_done(cluster):
    with Helper(cluster.conf) as h:
        h.process.stdin.write('{"op": "every", "ms": 50, "x": "')
        for _ in range(70):
            h.process.stdin.write("y" * MIB)
        h.process.stdin.write('", "id": 1}\n')
        a = h.ask(op="every", ms=50)
        assert a["ok"] and not h.answers[None]["ok"] and "too long" in h.answers[None]["why"]


def test_the_largest_description_runs(cluster, tmp_path):
    """A megabyte of script and one of variables, each byte of them six in JSON."""
    with slurm_daemon(tmp_path, cluster) as d:
        before = d.children("stoker-libslurm")
        large = d.submit(script="#!/bin/sh\necho ${#A} $#\nexit 0\n" + "\1" * 1000000, envs={k: "\1" * 130000 for k in "ABCDEFG"},
                         args=["\1" * 130000] * 4, gpus=1, workdir=str(tmp_path))
        small = d.submit(command=["/bin/true"], gpus=1, workdir=str(tmp_path))
        assert d.wait(small)["cause"] == "completed"
        job = d.wait(large)
        assert job["cause"] == "completed", job["note"]
        assert (tmp_path / f"stoker-{large}.out").read_text() == "130000 4\n"
        assert d.children("stoker-libslurm") == before


FLOOD = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
to = sys.argv[1].replace("@", "\\0", 1) if sys.argv[1].startswith("@") else sys.argv[1]
print(flush=True)
while True:
    s.sendto(b"nothing", to)
"""


def address(pid):
    """Where the process listens, as /proc/net/unix has it."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it talks to slurmctld, and has closed that
            if (to := os.readlink(f"/proc/{pid}/fd/{fd}")).startswith("socket:["):
                inodes.add(to[8:-1])
    with open("/proc/net/unix", encoding="utf-8") as f:
        rows = [line.split() for line in f]
    return next(r[7] for r in rows if len(r) > 7 and r[6] in inodes)


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_others_on_the_machine_cannot_fill_its_socket(plugins):
    with Helper(plugins.conf) as h:
        h.until(lambda: h.all == 1 and h.plugin)
        to = address(h.process.pid)
        who = subprocess.run([sys.executable, "-c", FLOOD, to], user=65534, group=65534, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert "PermissionError" in who.stderr or "ConnectionRefusedError" in who.stderr


def test_a_socket_that_is_never_empty_keeps_nobody_waiting(plugins, tmp_path):
    with Helper(plugins.conf) as h:
        h.until(lambda: h.all == 1 and h.plugin)
        floods = [subprocess.Popen([sys.executable, "-c", FLOOD, address(h.process.pid)], stdout=subprocess.PIPE) for _ in range(2)]
        try:
            for p in floods:
                p.stdout.readline()
            request = {"op": "submit", "script": "#!/bin/sh\n", "name": "t", "workdir": "/", "stdout": "/dev/null", "env": {"A": "b"}, **WHO}
            jobs = [h.ask(**request)["job"] for _ in range(10)]
            h.until(lambda: all(h.jobs.get(j, {}).get("state") == "completed" for j in jobs))
        finally:
            for p in floods:
                p.kill()
                p.wait()
                p.stdout.close()


def sockets(cluster):
    return [f for f in os.listdir(f"{cluster.folder}/state") if f.startswith("stoker-hear-")]


def test_a_socket_that_was_left_is_removed(plugins):
    h = Helper(plugins.conf)
    h.__enter__()
    h.until(lambda: h.all == 1 and h.plugin)
    h.process.send_signal(signal.SIGKILL)
    h.__exit__()
    assert len(sockets(plugins)) == 1
    with Helper(plugins.conf) as one, Helper(plugins.conf) as two:
        one.until(lambda: one.plugin)
        two.until(lambda: two.plugin)
        assert len(sockets(plugins)) == 2
    assert sockets(plugins) == []


def test_a_folder_that_is_too_deep_for_two_names_does(tmp_path_factory):
    """The plugin's socket has room there, ours has not."""
    if not slurm.OUR_PLUGINS.exists():
        pytest.skip("the plugins are not built (libslurm-dev)")
    folder = tmp_path_factory.mktemp("deep")
    deep = folder / ("x" * (104 - len(str(folder))))
    deep.mkdir()
    with slurm.Cluster(folder, nodes=1, gpus=1, plugins=True, scheduler=f"batch_sched_delay=0,stoker_socket={deep}/s") as c, Helper(c.conf) as h:
        h.until(lambda: h.all == 1 and h.plugin)
        assert address(h.process.pid).startswith("@")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"nothing", "\0" + address(h.process.pid)[1:])
        job = h.ask(op="submit", script="#!/bin/sh\n", name="t", workdir="/", stdout="/dev/null", env={"A": "b"}, **WHO)["job"]
        h.until(lambda: h.jobs.get(job, {}).get("state") == "completed")
