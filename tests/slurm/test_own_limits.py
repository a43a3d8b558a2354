# SPDX-License-Identifier: Apache-2.0
"""What Slurm itself does not let jobs do: run longer than their partition lets them, start while a licence is in use or the partition is
down. Nobody gets past it by stoker, nobody else has to suffer for it, and no job is lost by it. Real slurmctld, slurmd and stokerd."""
import pytest
import slurm
from daemon import STOKER
from slurm import wait_for
from slurm_daemon import as_root, clear, needed
from slurm_users import ours, read, sbatch, show, touch, user

pytestmark = [*needed, as_root]


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as f, slurm.Cluster(f, nodes=2, gpus=4, managed=["main"], extra="Licenses=lic:1") as c:
        c.plugin = True
        yield c


@pytest.fixture
def daemon(shared, cluster, folder):  # which goes when no job writes there any more
    yield shared
    cluster.run("scontrol", "update", "partition=main", "state=UP", "MaxTime=INFINITE")
    clear(shared, cluster, "root", "nobody")


def stoker(daemon, cluster, *argv):
    """The command, as a user who is no operator."""
    return user(cluster, str(STOKER), argv[0], "--socket", str(daemon.socket), *argv[1:])


def max_time(daemon, cluster, minutes):
    """Of the partition; stoker knows of it, too."""
    cluster.run("scontrol", "update", "partition=main", f"MaxTime={minutes}")
    wait_for(lambda: stoker(daemon, cluster, "submit", "--dry-run", "--time", f"{minutes + 1}m", "--", "/bin/true").returncode != 0)


def open_nodes(daemon):
    """None is shut; a node that is has no GPUs that are free."""
    return sum(n["gpus_free"] for n in daemon.get("/v1/nodes")["nodes"])


def test_users_do_not_get_past_the_partitions_longest_time(daemon, cluster, folder):
    theirs = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:1", "-t", "10")
    sent = stoker(daemon, cluster, "submit", "--gpus", "1", "--time", "10m", "--workdir", folder, "--", "/bin/sleep", "1000")
    assert sent.returncode == 0, sent.stderr
    jobs = {ours(cluster, theirs): theirs}
    n = next(j["id"] for j in daemon.jobs() if j["id"] not in jobs)
    jobs[n] = daemon.until(n, "running")["slurm"]["job"]
    max_time(daemon, cluster, 60)
    for n, job in jobs.items():
        daemon.until(n, "running")
        for long in ("2h", "0"):
            done = stoker(daemon, cluster, "update", str(n), "--time", long)
            assert done.returncode != 0 and "at most 1:00:00 in Slurm's partition main" in done.stderr, done
        assert stoker(daemon, cluster, "update", str(n), "--time", "1h").returncode == 0
        wait_for(lambda job=job: show(cluster, job)["TimeLimit"] == "01:00:00")
        assert daemon.client().post(f"/v1/jobs/{n}/update", {"time_limit_s": 7200}).status == 200  # root is an admin
        wait_for(lambda job=job: show(cluster, job)["TimeLimit"] == "02:00:00")
        assert stoker(daemon, cluster, "update", str(n), "--time", "90m").returncode == 0  # shorter, and still more than others may have
        wait_for(lambda job=job: show(cluster, job)["TimeLimit"] == "01:30:00")
    done = stoker(daemon, cluster, "submit", "--gpus", "1", "--time", "2h", "--", "/bin/true")
    assert done.returncode != 0 and "MaxTime" in done.stderr
    waits = sbatch(cluster, folder, "true", "-H", "-t", "10")
    done = stoker(daemon, cluster, "update", str(ours(cluster, waits)), "--time", "2h")
    assert done.returncode != 0 and show(cluster, waits)["TimeLimit"] == "00:10:00"


def test_jobs_that_want_a_licence_in_use_keep_nobody_waiting(daemon, cluster, folder):
    first = ours(cluster, sbatch(cluster, folder, "while [ ! -e go ]; do sleep 0.2; done", "--gres=gpu:1", "-L", "lic:1"))
    daemon.until(first, "running")
    array = sbatch(cluster, folder, "echo $SLURM_ARRAY_TASK_ID >> out", "--gres=gpu:1", "-L", "lic:1", "--array=1-8")
    numbers = ours(cluster, array, 8)
    for n in numbers:  # each is tried, in vain
        wait_for(lambda n=n: "Slurm did not start it: Licenses" in (daemon.job(n)["note"] or ""))
        assert "Licenses; it is tried again" in daemon.job(n)["warning"]
    other = daemon.submit(command=["/bin/sleep", "1000"], gpus=3, workdir="/tmp")
    daemon.until(other, "running")
    assert all(n["state"] == "up" for n in daemon.get("/v1/nodes")["nodes"])
    assert open_nodes(daemon) == 4 or any(daemon.job(n)["state"] in ("starting", "stopping") for n in numbers)
    touch(folder, "go")
    for n in numbers:  # one after the other: each that ends wakes the next
        assert daemon.wait(n)["cause"] == "completed"
    assert sorted(read(folder, "out").split()) == list("12345678")


@pytest.mark.parametrize("state", ["DRAIN", "DOWN", "INACTIVE"])
def test_a_partition_that_takes_nothing_costs_no_job(daemon, cluster, folder, state):
    before = len(daemon.errors)
    cluster.run("scontrol", "update", "partition=main", f"state={state}")
    jobs = [daemon.submit(command=["/bin/true"], gpus=1, workdir="/tmp") for _ in range(3)]
    if state == "DRAIN":  # Slurm starts what it has there, and takes nothing new
        for n in jobs:
            wait_for(lambda n=n: sum(f"job {n}: Slurm refused it" in line for line in daemon.errors[before:]) >= 3)
    else:
        wait_for(lambda: open_nodes(daemon) == 0)
    states = [daemon.job(n)["state"] for n in jobs]
    assert set(states) <= {"waiting", "blocked", "starting"}, states
    cluster.run("scontrol", "update", "partition=main", "state=UP")
    for n in jobs:
        assert daemon.wait(n)["cause"] == "completed"
        assert not daemon.job(n).get("warning")
