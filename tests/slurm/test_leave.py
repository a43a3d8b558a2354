# SPDX-License-Identifier: Apache-2.0
"""The way back: stoker slurm-leave gives a partition to Slurm as if stoker had never been there."""
import subprocess

import pytest
import slurm
from daemon import STOKER
from patience import PATIENCE_S
from slurm import wait_for
from slurm_daemon import as_root, needed, slurm_daemon
from slurm_users import ours, sbatch, show, user

pytestmark = [*needed, as_root]


@pytest.fixture
def cluster():
    with slurm.open_folder() as where, slurm.Cluster(where, nodes=2, gpus=4, managed=["main"], extra="PartitionName=other Nodes=n[1-2] State=UP") as c:
        yield c


@pytest.fixture
def daemon(cluster, tmp_path):
    with slurm_daemon(tmp_path, cluster) as d:
        yield d


def leave(d, *words, code=0):
    """What it says, on stdout and stderr."""
    done = subprocess.run([str(STOKER), "--socket", str(d.socket), "slurm-leave", "--conf", d.cluster.conf, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == code, done
    return done.stdout + done.stderr


def test_what_waits_is_slurms_again(daemon, cluster, folder):
    blocks = [ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4", "--requeue")) for _ in range(2)]
    for n in blocks:
        daemon.until(n, "running")
    waits = sbatch(cluster, folder, "echo it ran", "--gres=gpu:1")
    held = sbatch(cluster, folder, "echo held ran", "--gres=gpu:1", "-H")
    array = sbatch(cluster, folder, "echo $SLURM_ARRAY_TASK_ID ran", "--gres=gpu:1", "--array=0-2")
    never = sbatch(cluster, folder, "true", "--gpus=3", "-N2")  # stoker cannot take it
    for job in (waits, held, array):
        ours(cluster, job)
    wait_for(lambda: "cannot take it" in show(cluster, never).get("AdminComment", ""))
    # one that had to give way is pinned to where it was
    urgent = daemon.submit(command=["/bin/sleep", "1000"], gpus=4, workdir="/tmp", tier="critical", priority=900)
    daemon.until(urgent, "running")
    put_back = next(n for n in blocks if daemon.job(n)["state"] != "running")
    pinned = int(daemon.job(put_back)["slurm"]["id"])
    wait_for(lambda: show(cluster, pinned)["JobState"] == "PENDING" and "n" in show(cluster, pinned)["ReqNodeList"])
    alone = daemon.submit(command=["/bin/true"], gpus=4, workdir="/tmp", name="alone")

    said = leave(daemon, "main", code=1)  # it runs
    assert f"job {alone} of root (alone): only stoker has it" in said and "1 job is in no queue of Slurm's" in said and "systemctl stop stoker" in said
    assert show(cluster, waits)["AdminComment"].startswith("stoker ")
    assert daemon.stop() == 0
    assert "5 jobs would be Slurm's again, 1 of them held by their users" in leave(daemon, "--dry-run", "main")
    assert show(cluster, waits)["AdminComment"].startswith("stoker ")
    assert "0 jobs are Slurm's again" in leave(daemon, "other") and show(cluster, waits)["AdminComment"].startswith("stoker ")

    said = leave(daemon, "main")
    assert "5 jobs are Slurm's again, 1 of them held by their users; 0 could not be changed" in said and "names them still" in said
    cluster.manage("Partitions=\n")
    assert "0 jobs are Slurm's again" in leave(daemon, "main")
    for job in (waits, held, array, pinned, never):
        assert show(cluster, job).get("AdminComment", "") == "", job
    assert show(cluster, pinned)["ReqNodeList"] == "(null)"
    assert show(cluster, held)["Reason"] == "JobHeldUser"
    cluster.run("scancel", str(pinned), "-t", "RUNNING", check=False)
    for job in cluster.run("squeue", "-h", "-t", "R", "-o", "%A").stdout.split():
        cluster.run("scancel", job)
    for job in (waits, array):
        wait_for(lambda: show(cluster, job)["JobState"] == "COMPLETED")
    assert show(cluster, held)["JobState"] == "PENDING"
    assert user(cluster, "scontrol", "release", str(held)).returncode == 0  # by its user, as ever
    wait_for(lambda: show(cluster, held)["JobState"] == "COMPLETED")


def test_it_says_what_is_missing(cluster, tmp_path, daemon):
    assert "which partitions?" in leave(daemon, code=2)
    assert daemon.stop() == 0
    cluster.stop_controller()
    assert "slurmctld" in leave(daemon, "main", code=1)
    cluster.start_controller()
    cluster.wait_controller()
