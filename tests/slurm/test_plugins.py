# SPDX-License-Identifier: Apache-2.0
"""Our plugins in a real slurmctld: what stoker releases starts at once, and other partitions are
scheduled by Slurm as before. Slurm's own passes come ten minutes apart here, so what starts sooner
was started by a datagram, or by backfill."""
import os
import signal
import socket
import stat

import pytest
import slurm
from libslurm import Helper
from slurm_daemon import needed, slurm_daemon, with_plugins

pytestmark = [*needed, with_plugins]
SELDOM = "batch_sched_delay=600,sched_interval=600,bf_interval=1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    extra = f"PartitionName=other Nodes=n3 MaxTime=INFINITE State=UP\nJobCompParams=stoker_then=filetxt\nJobCompLoc={folder}/ends"
    with slurm.Cluster(folder, nodes=3, gpus=4, scheduler=SELDOM, plugins=True, extra=extra) as c:
        yield c


def sbatch(cluster, *args):
    return cluster.run("sbatch", "--parsable", "-p", "other", "-o", "/dev/null", *args, "--wrap", "sleep 1000").stdout.strip()


def state(cluster, job):
    return cluster.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip()


def test_what_stoker_starts_starts_at_once(cluster, tmp_path):
    with slurm_daemon(tmp_path, cluster) as d:
        jobs = [d.submit(command=["/bin/true"], gpus=1, workdir=str(tmp_path)) for _ in range(60)]
        assert {d.wait(n)["cause"] for n in jobs} == {"completed"}


def test_the_books_have_the_gpus_that_slurm_chose(cluster, tmp_path):
    """Slurm is asked for a number of GPUs here; which of them is its choice."""
    foreign = cluster.run("sbatch", "--parsable", "-p", "other", "--gres=gpu:1", "-o", "/dev/null", "--wrap", "sleep 1000").stdout.strip()
    slurm.wait_for(lambda: state(cluster, foreign) == "RUNNING")
    with slurm_daemon(tmp_path, cluster) as d:
        jobs = [d.submit(command=["/bin/sleep", "1000"], gpus=g, workdir=str(tmp_path)) for g in (1, 2, 1, 1, 1, 2, 1, 2)]
        for n in jobs[:3] + jobs[4:6]:
            d.until(n, "running")
            d.post(f"/v1/jobs/{n}/cancel")
            d.wait(n)
        jobs = [jobs[3], *jobs[6:], *(d.submit(command=["/bin/sleep", "1000"], gpus=g, workdir=str(tmp_path)) for g in (2, 1, 2))]
        for n in jobs:
            job = d.until(n, "running")
            slurm.wait_for(lambda n=n: [sorted(i for g in p["gpus"] for i in g["indices"]) for p in d.job(n)["slurm"]["pieces"]]
                           == [p["gpu_indices"] for p in d.job(n)["pieces"]])
            assert [p["node"] for p in job["slurm"]["pieces"]] == [job["node"]]
        for n in jobs:
            d.post(f"/v1/jobs/{n}/cancel")
            d.wait(n)
    cluster.run("scancel", foreign)


def test_more_at_once_than_a_short_pass_looks_at(cluster, tmp_path):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1)
        request = {"op": "submit", "script": "#!/bin/sh\n", "name": "t", "workdir": str(tmp_path), "stdout": "/dev/null",
                   "env": {"PATH": "/bin"}, "uid": 0, "gid": 0, "cpus_per_task": 1}
        jobs = h.ask_all([request] * 150)
        h.until(lambda: all(h.jobs.get(a["job"], {}).get("state") == "completed" for a in jobs), timeout=300)


def test_other_partitions_are_backfilled(cluster, tmp_path):
    first = sbatch(cluster, "--gres=gpu:2", "-t", "60")
    slurm.wait_for(lambda: state(cluster, first) == "RUNNING")
    large = sbatch(cluster, "--gres=gpu:4", "-t", "60")
    small = sbatch(cluster, "--gres=gpu:1", "-t", "1")
    slurm.wait_for(lambda: state(cluster, small) == "RUNNING")
    assert state(cluster, large) == "PENDING"
    cluster.run("scancel", first, large, small)


def test_an_end_is_pushed(cluster, tmp_path):
    """What is asked for by itself comes a minute apart."""
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1 and h.plugin)
        h.ask(op="every", ms=60000)
        out = str(tmp_path / "gate")
        os.mkfifo(out)
        request = {"op": "submit", "script": f"#!/bin/sh\nread x < {out}\nexit 4\n", "name": "t", "workdir": "/", "stdout": "/dev/null",
                   "env": {"PATH": "/bin"}, "uid": 0, "gid": 0}
        job = h.ask(**request)["job"]
        h.until(lambda: h.jobs.get(job, {}).get("state") == "running")
        with open(out, "w", encoding="ascii") as f:
            f.write("go\n")
        h.until(lambda: h.jobs[job]["state"] == "failed" and not h.jobs[job]["completing"], timeout=30)
        assert h.jobs[job]["exit_code"] == 4
    with open(cluster.folder + "/ends", encoding="utf-8") as f:  # of the site's own plugin
        assert f"JobId={job} " in f.read()


def test_many_ends_at_once_are_all_heard_of(cluster, tmp_path):
    """A socket has room for ten words. What is asked for by itself comes a minute apart."""
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1 and h.plugin)
        request = {"op": "submit", "script": "#!/bin/sh\nwhile [ ! -e go ]; do sleep 1; done\n", "name": "t", "workdir": str(tmp_path),
                   "stdout": "/dev/null", "env": {"PATH": "/bin"}, "uid": 0, "gid": 0, "cpus_per_task": 1}
        jobs = [a["job"] for a in h.ask_all([request] * 100)]
        h.until(lambda: all(h.jobs.get(j, {}).get("state") == "running" for j in jobs))
        h.ask(op="every", ms=60000)
        os.kill(h.process.pid, signal.SIGSTOP)  # so that it does not keep up
        (tmp_path / "go").touch()
        slurm.wait_for(lambda: not cluster.run("squeue", "-h", "-t", "R,CG").stdout)
        os.kill(h.process.pid, signal.SIGCONT)
        h.until(lambda: all(h.jobs[j]["state"] == "completed" and not h.jobs[j]["completing"] for j in jobs), timeout=30)


def test_the_last_end_is_told_though_there_was_no_room_for_it(tmp_path):
    """The socket is ours here, and we read it when all is over: no other end comes after that."""
    with slurm.open_folder() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(folder + "/news")
        own = {"PluginDir": f"{slurm.OUR_PLUGINS}:{slurm.PLUGIN_DIR}", "JobCompType": "jobcomp/stoker"}
        with slurm.Cluster(folder, nodes=1, scheduler=f"batch_sched_delay=0,sched_min_interval=2000,stoker_socket={folder}/news", settings=own) as c:
            array = c.run("sbatch", "--parsable", "--array=1-40", "-o", "/dev/null", "--wrap", "true").stdout.strip()
            c.idle()
            jobs = c.run("scontrol", "-o", "show", "job", array).stdout.splitlines()
            ends = {int(line.split()[0].removeprefix("JobId=")) for line in jobs}
            assert len(ends) == 40
            s.settimeout(60)
            while ends:
                word = s.recv(64).decode()
                ends = set() if word == "look" else ends - {int(word.removeprefix("end "))}


def test_a_new_job_is_found_by_its_number(cluster):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1 and h.plugin)
        h.ask(op="every", ms=60000)
        job = int(sbatch(cluster, "-H"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"new", cluster.folder + "/state/stoker.sock")
        h.until(lambda: job in h.jobs, timeout=30)
        h.ask(op="cancel", job=job)


def test_the_socket_is_for_root_and_slurmuser(cluster):
    path = cluster.folder + "/state/stoker.sock"
    mode = os.stat(path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600


def test_strange_datagrams_do_nothing(cluster):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        for word in (b"", b"\0", b"x" * 5000, b"end", b"end " + b"9" * 40, b"hear", b"pass\0all"):
            s.sendto(word, cluster.folder + "/state/stoker.sock")
    assert cluster.run("scontrol", "ping").returncode == 0


def test_it_is_there_again_after_a_restart_of_slurmctld(cluster):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.plugin)
        cluster.stop_controller()
        h.until(lambda: h.away is not None)
        cluster.start_controller()
        h.until(lambda: h.away is None and h.plugin)
    cluster.run("scontrol", "reconfigure")
    with Helper(cluster.conf) as h:
        h.until(lambda: h.plugin)
