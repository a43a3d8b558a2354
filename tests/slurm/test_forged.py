# SPDX-License-Identifier: Apache-2.0
"""Users write what they like into the comments of their jobs, stoker's own marks too: nothing happens to anybody's job. Real slurmctld, slurmd
and stokerd."""
import os
import re
import subprocess

import pytest
import slurm
from daemon import STOKERD, Daemon
from libslurm import PROGRAM
from slurm import wait_for

pytestmark = [pytest.mark.skipif(not slurm.installed(), reason="Slurm is not installed"),
              pytest.mark.skipif(not PROGRAM.exists() or not STOKERD.exists(), reason="not built (libslurm-dev)"),
              pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")]
UNTIL_GO = "while [ ! -e go ]; do sleep 0.1; done"


@pytest.fixture(scope="module")
def cluster():
    extra = "PartitionName=other Nodes=n1 State=UP"
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=1, gpus=2, extra=extra, managed=["main"]) as c:
        yield c


@pytest.fixture
def daemon(cluster, tmp_path):
    with Daemon(tmp_path, gpus=None, config=f"engine: slurm\nslurm: {{conf: {cluster.conf}, partitions: [main]}}\n") as d:
        yield d
        cluster.run("scancel", "-u", "nobody", check=False)
        for job in d.jobs():
            d.client().post(f"/v1/jobs/{job['id']}/cancel")
        cluster.idle()


@pytest.fixture
def folder():
    with slurm.open_folder() as f:
        os.chmod(f, 0o777)
        yield f


def user(cluster, folder, *argv):
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv], env=cluster.env, cwd=folder,
                          text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def sbatch(cluster, folder, *args, script="true"):
    return int(user(cluster, folder, "sbatch", "--parsable", *args, "--wrap", script))


def show(cluster, job):
    text = cluster.run("scontrol", "-o", "show", "job", str(job)).stdout
    return {k: v.strip() for k, v in re.findall(r"(\w+)=(.*?)(?= \w+=|$)", text.splitlines()[0])}


def taken(cluster, job):
    """Our number of a user's own job, once it has one."""
    wait_for(lambda: re.match(r"stoker \w+ \d+ [-hup]", show(cluster, job).get("AdminComment", "")))
    return int(show(cluster, job)["AdminComment"].split()[2])


def mark(daemon):
    return (daemon.state / "slurm-mark").read_text()


def all_told(cluster, folder):
    """What was sent or changed before is known to stoker by now."""
    taken(cluster, sbatch(cluster, folder, "-H"))


def go(folder):
    with open(os.path.join(folder, "go"), "w", encoding="utf-8"):
        pass


@pytest.mark.parametrize("how", ["submitted", "changed", "elsewhere"])
def test_a_forged_comment_ends_nobodys_job(daemon, cluster, folder, how):
    n = daemon.submit(command=["/bin/sh", "-c", UNTIL_GO], gpus=1, workdir=folder)
    victim = daemon.until(n, "running")["slurm"]["job"]
    words = f"stoker {mark(daemon)} {n} 1"
    forged = sbatch(cluster, folder, "-H", "-p", "other" if how == "elsewhere" else "main", *([] if how == "changed" else ["--comment", words]))
    if how == "changed":
        user(cluster, folder, "scontrol", "update", f"jobid={forged}", f"comment={words}")
    all_told(cluster, folder)
    if how != "elsewhere":
        other = taken(cluster, forged)
        assert other != n and daemon.job(other)["user"] == "nobody" and daemon.job(other)["state"] == "held"
    assert show(cluster, victim)["JobState"] == "RUNNING" and daemon.job(n)["slurm"]["job"] == victim
    go(folder)
    assert daemon.wait(n)["cause"] == "completed"
    assert [x["gpus_free"] for x in daemon.get("/v1/nodes")["nodes"]] == [2]


def test_a_forged_comment_takes_nobodys_place(daemon, cluster, folder):
    block = daemon.submit(command=["/bin/sleep", "1000"], gpus=2, workdir=folder)
    daemon.until(block, "running")
    n = daemon.submit(script="#!/bin/sh\nid -u > victim\n", gpus=2, workdir=folder)
    forged = sbatch(cluster, folder, "--gres=gpu:2", "--comment", f"stoker {mark(daemon)} {n} 2", script="id -u > forged")
    own = taken(cluster, forged)
    theirs = sbatch(cluster, folder, "--gres=gpu:2", script="id -u > theirs")
    again = sbatch(cluster, folder, "-H", "--gres=gpu:2", "--comment", f"stoker {mark(daemon)} {taken(cluster, theirs)} -", script="id -u > again")
    assert len({n, own, taken(cluster, theirs), taken(cluster, again)}) == 4
    daemon.post(f"/v1/jobs/{block}/cancel")
    for job in (n, own, taken(cluster, theirs)):
        assert daemon.wait(job)["cause"] == "completed"
    with open(os.path.join(folder, "victim"), encoding="utf-8") as f:
        assert f.read() == "0\n"
    assert not os.path.exists(os.path.join(folder, "again"))


def test_a_comment_that_is_changed_changes_nothing(daemon, cluster, folder):
    n = daemon.submit(command=["/bin/sh", "-c", f"echo once >> log; {UNTIL_GO}"], gpus=1, workdir=folder)
    job = daemon.until(n, "running")["slurm"]["job"]
    cluster.run("scontrol", "update", f"jobid={job}", "comment=run 3")
    all_told(cluster, folder)
    assert [x["gpus_free"] for x in daemon.get("/v1/nodes")["nodes"]] == [1]  # and not counted as another's
    go(folder)
    done = daemon.wait(n)
    assert done["cause"] == "completed" and not done["restarts"]
    with open(os.path.join(folder, "log"), encoding="utf-8") as f:
        assert f.read() == "once\n"
