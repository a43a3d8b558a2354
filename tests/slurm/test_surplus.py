# SPDX-License-Identifier: Apache-2.0
"""A user's own job has no more GPUs in Slurm than stoker has given it, however its user asks for them, and whenever. Real Slurm; where Slurm is to
do what cannot be timed, it is played by the test."""
import pytest
import slurm
from fake_slurm import FakeSlurm, gpus
from slurm import wait_for
from slurm_daemon import as_root, needed
from slurm_users import ours, sbatch_sleep, show, user

pytestmark = [*needed, as_root]


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=2, gpus=8, managed=["main"]) as c:
        yield c


@pytest.fixture
def daemon(shared, cluster):
    yield shared
    cluster.run("scancel", "-u", "nobody", check=False)
    cluster.idle()
    wait_for(lambda: not shared.jobs())


def in_slurm(job):
    return sum(g["count"] for p in job["slurm"]["pieces"] for g in p["gpus"])


@pytest.mark.parametrize("args,n", [(["--gres=gpu:0000000003"], 3), (["--gres=gpu:h100:00000000000003"], 3), (["--gpus=0000000000004"], 4),
                                    (["-n4", "--ntasks-per-gpu=2"], 2), (["-n2", "--gpus-per-task=0000000001"], 2), (["-N2", "--gpus-per-node=2"], 4)])
def test_what_slurm_gives_is_what_was_booked(daemon, cluster, args, n):
    running = daemon.until(ours(cluster, sbatch_sleep(cluster, *args)), "running")
    assert running["gpus"] == n == in_slurm(running)


@pytest.mark.parametrize("gres", ["gpu:+3", "gpu:0k,gpu:3", "gpu:2066035336255469781kb"])
def test_what_is_not_understood_is_not_started(daemon, cluster, gres):
    """The last are eight for Slurm."""
    done = user(cluster, "sbatch", "--parsable", "-o", "/dev/null", f"--gres={gres}", "--wrap", "sleep 1000")
    if done.returncode != 0:
        return  # Slurm does not understand it either
    wait_for(lambda: "cannot take it" in show(cluster, done.stdout.strip()).get("AdminComment", ""))
    assert not daemon.jobs()


def test_gpus_that_are_changed_after_the_first_start_are_taken_over(daemon, cluster):
    block = daemon.submit(command=["/bin/sleep", "1000"], gpus=8, workdir="/tmp")
    daemon.until(block, "running")
    job = sbatch_sleep(cluster, "--gres=gpu:1", "--requeue")
    n = ours(cluster, job)
    daemon.until(n, "running")
    more = daemon.submit(command=["/bin/sleep", "1000"], gpus=7, workdir="/tmp")
    daemon.until(more, "running")  # all are taken
    high = daemon.submit(command=["/bin/sleep", "1000"], gpus=1, tier="critical", priority=1000, workdir="/tmp")
    daemon.until(high, "running")
    wait_for(lambda: daemon.job(n)["state"] == "waiting")
    done = user(cluster, "scontrol", "update", f"jobid={job}", "tres-per-node=gres:gpu:3", "gres=gpu:3")
    if done.returncode != 0:
        done = user(cluster, "scontrol", "update", f"jobid={job}", "gres=gpu:3")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: daemon.job(n)["gpus"] == 3)
    daemon.post(f"/v1/jobs/{more}/cancel")
    running = daemon.until(n, "running")
    assert running["gpus"] == 3 == in_slurm(running)
    for job in (block, high):
        daemon.post(f"/v1/jobs/{job}/cancel")


@pytest.fixture
def fake(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8) as s:
        yield s


def wants(n):
    return {"gpus_per_node": gpus(n), "tasks": 1, "nodes_wanted": 1, "max_nodes": 1, "cpus": 1, "requeue": True, "batch": True}


def taken(fake, **more):
    """Slurm's job 7, of one GPU, is a user's own; our number, and its mark."""
    waits = {"state": "pending", "held": True, **wants(1), **more}
    fake.job(7, "stoker", **waits)
    ask = fake.expect("update")
    fake.answer(ask)
    fake.job(7, ask["admin_comment"], **waits)
    return int(ask["admin_comment"].split()[2]), waits


def starts_with(fake, n, waits):
    """It is started, and has so many GPUs."""
    start = fake.expect("start")
    fake.answer(start)
    fake.job(7, start["admin_comment"], **{**waits, "state": "running", "held": False, "pieces": {start["nodes"]: range(n)}})
    return start


def test_a_surplus_goes_back_and_then_is_held(fake):
    n, waits = taken(fake)
    for _ in range(3):
        start = starts_with(fake, 4, waits)
        fake.answer(fake.expect("requeue"))
        fake.job(7, start["admin_comment"], **waits)
    held = fake.daemon.until(n, "held")
    assert "other GPUs, than was decided" in held["warning"] and "stoker release" in held["warning"]
    fake.daemon.post(f"/v1/jobs/{n}/release")
    start = starts_with(fake, 1, waits)
    fake.daemon.until(n, "running")
    fake.job(7, start["admin_comment"], **{**waits, "state": "completed", "held": False})
    assert fake.daemon.wait(n)["cause"] == "completed"


def test_a_surplus_that_slurm_cannot_put_back_ends_the_job(fake):
    n, waits = taken(fake, batch=False)
    start = starts_with(fake, 4, waits)
    cancel = fake.expect("cancel")
    fake.answer(cancel)
    fake.job(7, start["admin_comment"], **{**waits, "state": "cancelled", "held": False})
    done = fake.daemon.wait(n)
    assert done["cause"] == "cancelled" and "other GPUs, than was decided" in done["note"]


def test_a_change_that_crosses_the_start_is_taken_over(fake):
    """It is started with one GPU, and its user wanted four a moment before."""
    n, waits = taken(fake)
    start = starts_with(fake, 4, waits)
    fake.answer(fake.expect("requeue"))
    waits |= wants(4)
    fake.job(7, start["admin_comment"], **waits)
    start = starts_with(fake, 4, waits)
    assert fake.daemon.until(n, "running")["gpus"] == 4
    fake.job(7, start["admin_comment"], **{**waits, "state": "completed", "held": False})
    assert fake.daemon.wait(n)["cause"] == "completed"


def test_a_node_of_its_own_has_all_its_gpus(fake):
    n, waits = taken(fake, exclusive=True)
    start = starts_with(fake, 8, waits)
    fake.daemon.until(n, "running")
    fake.job(7, start["admin_comment"], **{**waits, "state": "completed", "held": False})
    assert fake.daemon.wait(n)["cause"] == "completed"
