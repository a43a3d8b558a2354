# SPDX-License-Identifier: Apache-2.0
"""The plugin job_submit/stoker in a real slurmctld: what users send to a partition of stoker's waits, whatever they do."""
import pathlib

import pytest
import slurm
from slurm_daemon import as_root, installed
from slurm_users import sbatch_sleep, show, user

pytestmark = [installed,
              pytest.mark.skipif(not (slurm.OUR_PLUGINS / "job_submit_stoker.so").exists(), reason="not built (libslurm-dev)"),
              as_root]
NEVER = "2099-12-31T23:59:59"


@pytest.fixture(scope="module")
def cluster():
    extra = "PartitionName=other Nodes=n1 State=UP\nPartitionName=more Nodes=n1 State=UP"
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=1, gpus=2, extra=extra, managed=["main", "more"]) as c:
        c.env["TZ"] = "UTC"
        yield c


def is_held(cluster, job):
    s = show(cluster, job)
    return s["JobState"] == "PENDING" and s["Priority"] == "0"


def test_jobs_of_its_partitions_are_held_and_of_others_not(cluster):
    ours, named, both, others = (sbatch_sleep(cluster), sbatch_sleep(cluster, "-p", "main"), sbatch_sleep(cluster, "-p", "other,main"), sbatch_sleep(cluster, "-p", "other"))
    assert all(is_held(cluster, j) for j in (ours, named, both))
    assert not is_held(cluster, others) and "AdminComment" not in show(cluster, others)
    assert show(cluster, ours)["AdminComment"] == "stoker"


def test_the_signal_is_written_down(cluster):
    text = cluster.run("scontrol", "show", "job", str(sbatch_sleep(cluster, "--signal=B:USR1@30"))).stdout
    assert "AdminComment=stoker signal=10@30B" in text


def test_a_users_hold_is_a_time_that_never_comes(cluster):
    job = sbatch_sleep(cluster, "-H")
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] == NEVER
    assert user(cluster, "scontrol", "release", job).returncode == 0
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] != NEVER
    assert user(cluster, "scontrol", "hold", job).returncode == 0
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] == NEVER


@pytest.mark.parametrize("partitions", ["main", "other,main", "main,other", "main,more", "other,more,main"])
def test_users_cannot_start_their_jobs(cluster, partitions):
    """Slurm takes the hold from a job whose nice is changed, where PriorityType is priority/basic."""
    job = sbatch_sleep(cluster, "-p", partitions)
    assert "other" not in show(cluster, job)["Partition"]
    for change in ("priority=1000", "nice=1", "nice=1 timelimit=5", "reqnodelist=n1", "partition=other"):
        done = user(cluster, "scontrol", "update", f"jobid={job}", *change.split())
        assert done.returncode != 0 and "denied" in done.stderr, change
        assert is_held(cluster, job), change
    for change in ("release", "hold", "uhold", "release"):
        user(cluster, "scontrol", change, job)
        assert is_held(cluster, job), change
    for change in ("timelimit=10", "jobname=x", "partition=other,main", "partition=more", "starttime=now", "comment=x", "gres=gpu:1", "numnodes=1",
                   "dependency=", "features=", "excnodelist=", "account=x", "qos=x", "requeue=1", "deadline=now+1hour", "minmemorynode=10", "numcpus=2"):
        user(cluster, "scontrol", "update", f"jobid={job}", change)
        assert is_held(cluster, job), change
    assert show(cluster, job)["TimeLimit"] == "00:10:00" and show(cluster, job)["Partition"] == "more"


def test_who_names_other_partitions_is_told_which_count(cluster):
    done = user(cluster, "sbatch", "--parsable", "-p", "other,more,main", "-o", "/dev/null", "--wrap", "true")
    assert "stoker: of its partitions it waits in more,main alone" in done.stderr
    assert show(cluster, done.stdout.strip())["Partition"] == "more,main"


@pytest.fixture
def busy(cluster):
    """Partition other starts nothing: its jobs wait, and nobody holds them."""
    cluster.run("scontrol", "update", "partitionname=other", "state=DOWN")
    yield
    cluster.run("scontrol", "update", "partitionname=other", "state=UP")


def test_a_job_that_is_moved_in_is_held_whatever_else_is_changed_with_it(cluster, busy):
    for more in ([], ["nice=5"], ["timelimit=999999"], ["numcpus=0"], ["endtime=now"], ["priority=5"], ["nice=1", "partition=other,main"]):
        job = sbatch_sleep(cluster, "-p", "other", "-t", "5")
        assert not is_held(cluster, job)
        done = user(cluster, "scontrol", "update", f"jobid={job}", "partition=main", *more)
        s = show(cluster, job)
        assert s["Priority"] == "0" if s["Partition"] == "main" else s["Partition"] == "other", more
        assert done.returncode == 0 or more
        cluster.run("scancel", str(job))


@pytest.fixture
def reservation(cluster):
    cluster.run("scontrol", "create", "reservation", "reservationname=res", "starttime=now", "duration=60", "users=nobody,root", "nodes=n1",
                "flags=ignore_jobs")
    yield "res"
    cluster.run("scancel", "-u", "nobody", check=False)
    cluster.idle()
    cluster.run("scontrol", "delete", "reservationname=res")


def test_jobs_with_a_reservation_are_slurms(cluster, reservation):
    job = sbatch_sleep(cluster, "-p", "main", f"--reservation={reservation}", "-H")
    assert show(cluster, job)["EligibleTime"] != NEVER and "AdminComment" not in show(cluster, job)
    assert user(cluster, "scontrol", "release", job).returncode == 0
    slurm.wait_for(lambda: show(cluster, job)["JobState"] == "RUNNING")


def test_a_job_that_leaves_its_reservation_is_held(cluster, reservation):
    job = sbatch_sleep(cluster, "-p", "main", f"--reservation={reservation}", "--begin=now+1hour")
    assert not is_held(cluster, job)
    assert user(cluster, "scontrol", "update", f"jobid={job}", "reservation=", "timelimit=999999").returncode != 0
    assert user(cluster, "scontrol", "update", f"jobid={job}", "reservation=").returncode == 0
    assert is_held(cluster, job)
    assert user(cluster, "scontrol", "update", f"jobid={job}", "nice=1").returncode != 0
    assert user(cluster, "scontrol", "update", f"jobid={job}", f"reservation={reservation}", "nice=1").returncode != 0
    assert user(cluster, "scontrol", "update", f"jobid={job}", f"reservation={reservation}").returncode == 0
    assert is_held(cluster, job)  # until stoker lets it go


def test_elsewhere_users_hold_and_release_as_ever(cluster):
    job = sbatch_sleep(cluster, "-p", "other", "-H")
    assert is_held(cluster, job) and show(cluster, job)["EligibleTime"] != NEVER
    assert user(cluster, "scontrol", "release", job).returncode == 0
    assert not is_held(cluster, job)
    assert user(cluster, "scontrol", "hold", job).returncode == 0 or show(cluster, job)["JobState"] == "RUNNING"


def test_administrators_may_do_everything(cluster):
    job = sbatch_sleep(cluster)
    cluster.run("scontrol", "update", f"jobid={job}", "partition=other")
    cluster.run("scontrol", "release", str(job))
    assert not is_held(cluster, job)


def test_a_heterogeneous_job_is_refused_with_a_sentence(cluster):
    done = user(cluster, "sbatch", "-n1", ":", "-n2", "--wrap", "true")
    assert done.returncode != 0 and "stoker: heterogeneous jobs" in done.stderr


def test_the_partitions_are_read_again_when_they_change(cluster):
    before = pathlib.Path(cluster.folder, "etc", "stoker.conf").read_text()
    try:
        cluster.manage("# nothing yet\n")
        assert not is_held(cluster, sbatch_sleep(cluster))
    finally:
        cluster.manage(before)
    assert is_held(cluster, sbatch_sleep(cluster))
