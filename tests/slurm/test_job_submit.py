# SPDX-License-Identifier: Apache-2.0
"""The plugin job_submit/stoker in a real slurmctld: what users send to a partition of stoker's waits, whatever they do."""
import os
import re
import subprocess

import pytest
import slurm

pytestmark = [pytest.mark.skipif(not slurm.installed(), reason="Slurm is not installed"),
              pytest.mark.skipif(not (slurm.OUR_PLUGINS / "job_submit_stoker.so").exists(), reason="not built (libslurm-dev)"),
              pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")]
NEVER = "2099-12-31T23:59:59"


@pytest.fixture(scope="module")
def cluster():
    extra = "PartitionName=other Nodes=n1 State=UP"
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=1, gpus=2, extra=extra, managed=["main"]) as c:
        yield c


def user(cluster, *argv):
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv], env={**cluster.env, "TZ": "UTC"}, cwd="/tmp",
                          text=True, capture_output=True, timeout=60)


def sbatch(cluster, *args):
    done = user(cluster, "sbatch", "--parsable", "-o", "/dev/null", *args, "--wrap", "sleep 1000")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def show(cluster, job):
    text = subprocess.run(["scontrol", "show", "job", job], env={**cluster.env, "TZ": "UTC"}, text=True, capture_output=True).stdout
    return dict(re.findall(r"(\w+)=(\S*)", text))


def is_held(cluster, job):
    s = show(cluster, job)
    return s["JobState"] == "PENDING" and s["Priority"] == "0"


def test_jobs_of_its_partitions_are_held_and_of_others_not(cluster):
    ours, named, both, others = (sbatch(cluster), sbatch(cluster, "-p", "main"), sbatch(cluster, "-p", "other,main"), sbatch(cluster, "-p", "other"))
    assert all(is_held(cluster, j) for j in (ours, named, both))
    assert not is_held(cluster, others) and "AdminComment" not in show(cluster, others)
    assert show(cluster, ours)["AdminComment"] == "stoker"


def test_the_signal_is_written_down(cluster):
    text = cluster.run("scontrol", "show", "job", sbatch(cluster, "--signal=B:USR1@30")).stdout
    assert "AdminComment=stoker signal=10@30B" in text


def test_a_users_hold_is_a_time_that_never_comes(cluster):
    job = sbatch(cluster, "-H")
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] == NEVER
    assert user(cluster, "scontrol", "release", job).returncode == 0
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] != NEVER
    assert user(cluster, "scontrol", "hold", job).returncode == 0
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] == NEVER


def test_users_cannot_start_their_jobs(cluster):
    job = sbatch(cluster)
    for change in ("priority=1000", "reqnodelist=n1", "partition=other"):
        done = user(cluster, "scontrol", "update", f"jobid={job}", change)
        assert done.returncode != 0 and "denied" in done.stderr, change
        assert is_held(cluster, job)
    assert user(cluster, "scontrol", "update", f"jobid={job}", "timelimit=10").returncode == 0
    assert show(cluster, job)["TimeLimit"] == "00:10:00"


def test_elsewhere_users_hold_and_release_as_ever(cluster):
    job = sbatch(cluster, "-p", "other", "-H")
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] != NEVER
    assert user(cluster, "scontrol", "release", job).returncode == 0
    assert not is_held(cluster, job)
    assert user(cluster, "scontrol", "hold", job).returncode == 0 or show(cluster, job)["JobState"] == "RUNNING"


def test_administrators_may_do_everything(cluster):
    job = sbatch(cluster)
    cluster.run("scontrol", "update", f"jobid={job}", "partition=other")
    cluster.run("scontrol", "release", job)
    assert not is_held(cluster, job)


def test_a_heterogeneous_job_is_refused_with_a_sentence(cluster):
    done = user(cluster, "sbatch", "-n1", ":", "-n2", "--wrap", "true")
    assert done.returncode != 0 and "stoker: heterogeneous jobs" in done.stderr


def test_the_partitions_are_read_again_when_they_change(cluster):
    path = os.path.join(cluster.folder, "etc", "stoker.conf")
    with open(path, encoding="utf-8") as f:
        before = f.read()
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write("# nothing yet\n")
        assert not is_held(cluster, sbatch(cluster))
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)
    assert is_held(cluster, sbatch(cluster))
