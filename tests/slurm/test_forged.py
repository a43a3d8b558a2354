# SPDX-License-Identifier: Apache-2.0
"""Users write what they like into the comments of their jobs, stoker's own marks too: nothing happens to anybody's job. Real slurmctld, slurmd
and stokerd."""
import os
import re

import pytest
import slurm
from slurm import wait_for
from slurm_daemon import as_root, clear, needed, slurm_daemon
from slurm_users import read, sbatch, show, touch, user

pytestmark = [*needed, as_root]
UNTIL_GO = "while [ ! -e go ]; do sleep 0.1; done"


@pytest.fixture(scope="module")
def cluster():
    extra = "PartitionName=other Nodes=n1 State=UP"
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=1, gpus=2, extra=extra, managed=["main"]) as c:
        yield c


@pytest.fixture
def daemon(cluster, tmp_path, folder):  # which goes when no job writes there any more
    with slurm_daemon(tmp_path, cluster) as d:
        yield d
        clear(d, cluster, "nobody")


def taken(cluster, job):
    """Our number of a user's own job, once it has one."""
    wait_for(lambda: re.match(r"stoker \w+ \d+ [-hup]", show(cluster, job).get("AdminComment", "")))
    return int(show(cluster, job)["AdminComment"].split()[2])


def mark(daemon):
    return (daemon.state / "slurm-mark").read_text()


def all_told(cluster, folder):
    """What was sent or changed before is known to stoker by now."""
    taken(cluster, sbatch(cluster, folder, "true", "-H"))


@pytest.mark.parametrize("how", ["submitted", "changed", "elsewhere"])
def test_a_forged_comment_ends_nobodys_job(daemon, cluster, folder, how):
    n = daemon.submit(command=["/bin/sh", "-c", UNTIL_GO], gpus=1, workdir=folder)
    victim = daemon.until(n, "running")["slurm"]["job"]
    words = f"stoker {mark(daemon)} {n} 1"
    forged = sbatch(cluster, folder, "true", "-H", "-p", "other" if how == "elsewhere" else "main", *([] if how == "changed" else ["--comment", words]))
    if how == "changed":
        done = user(cluster, "scontrol", "update", f"jobid={forged}", f"comment={words}")
        assert done.returncode == 0, done.stderr
    all_told(cluster, folder)
    if how != "elsewhere":
        other = taken(cluster, forged)
        assert other != n and daemon.job(other)["user"] == "nobody" and daemon.job(other)["state"] == "held"
    assert show(cluster, victim)["JobState"] == "RUNNING" and daemon.job(n)["slurm"]["job"] == victim
    touch(folder, "go")
    assert daemon.wait(n)["cause"] == "completed"
    assert [x["gpus_free"] for x in daemon.get("/v1/nodes")["nodes"]] == [2]


def test_a_forged_comment_takes_nobodys_place(daemon, cluster, folder):
    block = daemon.submit(command=["/bin/sleep", "1000"], gpus=2, workdir=folder)
    daemon.until(block, "running")
    n = daemon.submit(script="#!/bin/sh\nid -u > victim\n", gpus=2, workdir=folder)
    forged = sbatch(cluster, folder, "id -u > forged", "--gres=gpu:2", "--comment", f"stoker {mark(daemon)} {n} 2")
    own = taken(cluster, forged)
    theirs = sbatch(cluster, folder, "id -u > theirs", "--gres=gpu:2")
    again = sbatch(cluster, folder, "id -u > again", "-H", "--gres=gpu:2", "--comment", f"stoker {mark(daemon)} {taken(cluster, theirs)} -")
    assert len({n, own, taken(cluster, theirs), taken(cluster, again)}) == 4
    daemon.post(f"/v1/jobs/{block}/cancel")
    for job in (n, own, taken(cluster, theirs)):
        assert daemon.wait(job)["cause"] == "completed"
    assert read(folder, "victim") == "0\n"
    assert not os.path.exists(os.path.join(folder, "again"))


def test_a_comment_that_is_changed_changes_nothing(daemon, cluster, folder):
    n = daemon.submit(command=["/bin/sh", "-c", f"echo once >> log; {UNTIL_GO}"], gpus=1, workdir=folder)
    job = daemon.until(n, "running")["slurm"]["job"]
    cluster.run("scontrol", "update", f"jobid={job}", "comment=run 3")
    all_told(cluster, folder)
    assert [x["gpus_free"] for x in daemon.get("/v1/nodes")["nodes"]] == [1]  # and not counted as another's
    touch(folder, "go")
    done = daemon.wait(n)
    assert done["cause"] == "completed" and not done["restarts"]
    assert read(folder, "log") == "once\n"
