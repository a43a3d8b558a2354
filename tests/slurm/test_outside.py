# SPDX-License-Identifier: Apache-2.0
"""Jobs that come to stoker's partition on other ways than sbatch, and such that Slurm starts by itself: real slurmctld with job_submit/stoker, slurmd
and stokerd."""
import contextlib
import os
import signal

import pytest
import slurm
from slurm import wait_for
from slurm_daemon import as_root, clear, needed
from slurm_users import ours, read, sbatch, show, touch, user

pytestmark = [*needed, as_root]
WAITS = "echo start >> log; while [ ! -e go ]; do sleep 0.1; done; echo end >> log"


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as f, slurm.Cluster(f, nodes=2, gpus=8, extra="PartitionName=other Nodes=n[1-2] State=UP", managed=["main"]) as c:
        yield c


@pytest.fixture
def daemon(shared, cluster, folder):  # which goes when no job writes there any more
    yield shared
    clear(shared, cluster, "nobody")


@pytest.fixture
def reservation(cluster):
    """Of the second node."""
    cluster.run("scontrol", "create", "reservation", "reservationname=res", "starttime=now", "duration=60", "users=nobody,root", "nodes=n2")
    yield "res"
    cluster.run("scancel", "-u", "nobody", check=False)
    wait_for(lambda: not cluster.run("squeue", "-h", "-u", "nobody", "-t", "R,CG,PD").stdout.strip())
    cluster.run("scontrol", "delete", "reservationname=res")


@contextlib.contextmanager
def closed(cluster, partition):
    """It starts nothing: what is there waits."""
    cluster.run("scontrol", "update", f"partitionname={partition}", "state=DOWN")
    try:
        yield
    finally:
        cluster.run("scontrol", "update", f"partitionname={partition}", "state=UP")


@contextlib.contextmanager
def stopped(daemon):
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)


def change(cluster, job, *words):
    done = user(cluster, "scontrol", "update", f"jobid={job}", *words)
    assert done.returncode == 0, done.stderr


def test_what_slurm_starts_by_itself_is_put_back(daemon, cluster, folder):
    job = sbatch(cluster, folder, WAITS, "--gres=gpu:1", "-H")
    n = ours(cluster, job)
    daemon.until(n, "held")
    with stopped(daemon):
        cluster.run("scontrol", "update", f"jobid={job}", "starttime=now")
        cluster.run("scontrol", "release", str(job))
        wait_for(lambda: read(folder, "log") == "start\n")
    assert daemon.until(n, "running")["slurm"]["restarts"] == 1
    wait_for(lambda: read(folder, "log") == "start\nstart\n")
    touch(folder, "go")
    assert daemon.wait(n)["cause"] == "completed"


def test_one_that_slurm_started_while_stoker_was_away_is_put_back(daemon, cluster, folder):
    job = sbatch(cluster, folder, WAITS, "--gres=gpu:1", "-H")
    n = ours(cluster, job)
    daemon.until(n, "held")
    daemon.kill()
    cluster.run("scontrol", "update", f"jobid={job}", "starttime=now")
    cluster.run("scontrol", "release", str(job))
    wait_for(lambda: read(folder, "log") == "start\n")
    daemon.start()
    assert daemon.until(n, "running")["slurm"]["restarts"] == 1
    touch(folder, "go")
    assert daemon.wait(n)["cause"] == "completed"


def test_one_that_cannot_be_put_back_goes_on_as_others_do(daemon, cluster, folder):
    job = sbatch(cluster, folder, WAITS, "--gres=gpu:3", "-H", "--no-requeue")
    n = ours(cluster, job)
    with stopped(daemon):
        cluster.run("scontrol", "update", f"jobid={job}", "starttime=now")
        cluster.run("scontrol", "release", str(job))
        wait_for(lambda: show(cluster, job)["JobState"] == "RUNNING")
    assert "not by stoker" in daemon.wait(n)["note"]
    wait_for(lambda: sum(x["gpus_free"] for x in daemon.get("/v1/nodes")["nodes"]) == 13)
    touch(folder, "go")
    wait_for(lambda: show(cluster, job)["JobState"] == "COMPLETED")


def test_a_job_that_is_moved_out_is_slurms_and_may_come_back(daemon, cluster, folder):
    for _ in range(2):
        full(daemon)
    job = sbatch(cluster, folder, WAITS, "-H")
    other = sbatch(cluster, folder, "true", "--gres=gpu:1")
    n, m = ours(cluster, job), ours(cluster, other)
    with closed(cluster, "other"):
        for k in (job, other):
            cluster.run("scontrol", "update", f"jobid={k}", "partition=other")
        wait_for(lambda: show(cluster, job)["Reason"] == "JobHeldUser")  # it was held by its user, and is
        assert user(cluster, "scontrol", "release", str(job)).returncode == 0
        wait_for(lambda: show(cluster, other)["Priority"] != "0")
        assert daemon.until(m, "held")["warning"] == "is in Slurm's partition other, and left to Slurm"
        change(cluster, other, "partition=main")
        daemon.until(m, "waiting")
        assert show(cluster, other)["Priority"] == "0"
    wait_for(lambda: read(folder, "log") == "start\n")
    assert daemon.wait(n)["note"] == "was started by Slurm, in its partition other"
    touch(folder, "go")
    wait_for(lambda: show(cluster, job)["JobState"] == "COMPLETED")


def test_a_job_that_is_moved_in_is_taken(daemon, cluster, folder):
    with closed(cluster, "other"):
        job = sbatch(cluster, folder, "true", "--gres=gpu:1", "-p", "other")
        again = sbatch(cluster, folder, "true", "--gres=gpu:1")  # once that one is taken the other was seen, too
        assert daemon.wait(ours(cluster, again))["cause"] == "completed"
        change(cluster, job, "partition=main")
        assert daemon.wait(ours(cluster, job))["cause"] == "completed"


def test_one_that_its_user_held_there_waits_for_its_user(daemon, cluster, folder):
    job = sbatch(cluster, folder, "true", "--gres=gpu:1", "-p", "other", "-H")
    change(cluster, job, "partition=main")
    n = ours(cluster, job)
    assert daemon.until(n, "held")["warning"].startswith("is held by its user")
    assert user(cluster, "scontrol", "release", str(job)).returncode == 0
    assert daemon.wait(n)["cause"] == "completed"


def test_one_that_its_user_held_before_the_plugin_was_there_waits_for_its_user(daemon, cluster, folder):
    cluster.manage("# nothing yet\n")
    job = sbatch(cluster, folder, "true", "--gres=gpu:1", "-H")
    cluster.manage("Partitions=main\n")
    n = ours(cluster, job)
    daemon.until(n, "held")
    assert user(cluster, "scontrol", "release", str(job)).returncode == 0
    assert daemon.wait(n)["cause"] == "completed"


def test_a_job_with_a_reservation_is_slurms(daemon, cluster, folder, reservation):
    job = sbatch(cluster, folder, WAITS, "--gres=gpu:1", f"--reservation={reservation}")
    wait_for(lambda: read(folder, "log") == "start\n")
    assert show(cluster, job)["NodeList"] == "n2" and "AdminComment" not in show(cluster, job) and not daemon.jobs()


def full(daemon):
    """Of what is not reserved."""
    daemon.until(daemon.submit(command=["/bin/sleep", "1000"], gpus=8, workdir="/tmp"), "running")


def test_a_job_that_its_user_puts_into_a_reservation_is_slurms(daemon, cluster, folder, reservation):
    full(daemon)
    job = sbatch(cluster, folder, WAITS, "--gres=gpu:1")
    n = ours(cluster, job)
    daemon.until(n, "waiting")
    change(cluster, job, f"reservation={reservation}")
    wait_for(lambda: read(folder, "log") == "start\n")
    assert daemon.wait(n)["note"] == "was started by Slurm, in its reservation res"
    touch(folder, "go")
    wait_for(lambda: show(cluster, job)["JobState"] == "COMPLETED")


def test_one_that_was_started_elsewhere_before_may_go_into_a_reservation(daemon, cluster, folder, reservation):
    job = sbatch(cluster, folder, WAITS, "--gres=gpu:8")
    n = ours(cluster, job)
    assert daemon.until(n, "running")["node"] == "n1"
    wait_for(lambda: read(folder, "log") == "start\n")
    daemon.post(f"/v1/jobs/{n}/requeue")
    daemon.until(daemon.submit(command=["/bin/sleep", "1000"], gpus=8, tier="critical", workdir="/tmp"), "running")
    daemon.until(n, "waiting")
    change(cluster, job, f"reservation={reservation}")
    wait_for(lambda: read(folder, "log").startswith("start\nstart\n"))
    wait_for(lambda: show(cluster, job)["JobState"] == "RUNNING" and show(cluster, job)["NodeList"] == "n2")


def test_a_job_may_go_into_a_reservation_and_out_again(daemon, cluster, folder, reservation):
    full(daemon)
    job = sbatch(cluster, folder, "true", "--gres=gpu:1", "--begin=now+1hour")
    n = ours(cluster, job)
    change(cluster, job, f"reservation={reservation}")
    wait_for(lambda: show(cluster, job)["Priority"] != "0")
    assert daemon.until(n, "held")["warning"] == "is in Slurm's reservation res, and left to Slurm"
    assert user(cluster, "scontrol", "hold", str(job)).returncode == 0  # that is Slurm's own now, and nobody takes it away
    assert show(cluster, job)["Priority"] == "0"
    assert user(cluster, "scontrol", "release", str(job)).returncode == 0
    assert show(cluster, job)["Priority"] != "0"
    change(cluster, job, "reservation=")
    assert show(cluster, job)["Priority"] == "0"
    daemon.until(n, "blocked")
    for blocker in daemon.jobs():
        if blocker["id"] != n:
            daemon.post(f"/v1/jobs/{blocker['id']}/cancel")
    change(cluster, job, "starttime=now")
    assert daemon.wait(n)["cause"] == "completed"


def test_what_waits_for_stoker_before_it_is_taken_may_go_into_a_reservation(daemon, cluster, folder, reservation):
    with stopped(daemon):
        job = sbatch(cluster, folder, WAITS, "--gres=gpu:1")
        change(cluster, job, f"reservation={reservation}")
    wait_for(lambda: read(folder, "log") == "start\n")
    wait_for(lambda: not daemon.jobs())
