# SPDX-License-Identifier: Apache-2.0
"""Where Slurm's accounting enforces who may use which account and QOS, and how long and how much; what these mean here: a real slurmdbd on a real
MariaDB."""
import pytest
import slurm
from slurm import wait_for
from slurm_daemon import as_root, needed, slurm_daemon, with_accounting
from slurm_users import ours, sbatch, show, touch, user
from test_own_limits import stoker

pytestmark = [with_accounting, *needed, as_root]


def has_accounts(cluster):
    """slurmctld has heard of them."""
    return "nobody" in cluster.run("scontrol", "show", "assoc_mgr", "flags=assoc", check=False).stdout


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as f, slurm.Cluster(f, nodes=2, gpus=4, managed=["main"], accounting=True,
                                                 settings={"AccountingStorageEnforce": "associations,limits,qos"}) as c:
        c.plugin = True
        c.run("sacctmgr", "-i", "add", "account", "vis-2024", "plain", "speech", "art")
        c.run("sacctmgr", "-i", "add", "qos", "express", "high", "low", "urgent")
        for name in ("nobody", "root"):
            c.run("sacctmgr", "-i", "add", "user", name, "account=plain,vis-2024,speech,art", "DefaultAccount=plain", "qos=normal,express,high,low,urgent")
        c.run("sacctmgr", "-i", "modify", "user", "nobody", "where", "account=vis-2024", "set", "GrpTRES=gres/gpu=2")
        wait_for(lambda: has_accounts(c))
        yield c


@pytest.fixture(scope="module")
def daemon(cluster, tmp_path_factory):
    tenants = "tenants: [{name: vision, users: [root]}, {name: voice, users: [nobody]}, {name: speech, users: [root, nobody]}, {name: art, users: [root]}]\n"
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, tenants, accounts="{vis-2024: vision}",
                      qos="{high: express, low: 'class:batch', urgent: 'priority:900'}") as d:
        yield d


def test_a_mapped_account_needs_no_member(daemon, cluster, folder):
    assert not any("slurm.accounts" in line for line in daemon.errors)
    job = daemon.job(ours(cluster, sbatch(cluster, folder, "true", "-H", "-A", "vis-2024")))
    assert job["tenant"] == "vision" and job["user"] == "nobody"
    assert user(cluster, "sbatch", "-A", "root", "--wrap", "true").returncode != 0  # Slurm sees to that


def test_only_operators_make_jobs_longer_that_slurm_has(daemon, cluster, folder):
    job = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:1", "-t", "10")
    n = ours(cluster, job)
    daemon.until(n, "running")
    for long in ("20m", "0"):
        done = stoker(daemon, cluster, "update", str(n), "--time", long)
        assert done.returncode != 0 and "only an operator" in done.stderr, done
    assert stoker(daemon, cluster, "update", str(n), "--time", "5m").returncode == 0
    wait_for(lambda: show(cluster, job)["TimeLimit"] == "00:05:00")
    assert daemon.client().post(f"/v1/jobs/{n}/update", {"time_limit_s": 1200}).status == 200
    wait_for(lambda: show(cluster, job)["TimeLimit"] == "00:20:00")
    daemon.post(f"/v1/jobs/{n}/cancel")
    daemon.wait(n)


def test_jobs_at_a_limit_of_their_account_rest_and_go_on_when_it_has_room(daemon, cluster, folder):
    script = "while [ ! -e go ]; do sleep 0.2; done"
    numbers = [ours(cluster, sbatch(cluster, folder, script, "-A", "vis-2024", "--gres=gpu:1")) for _ in range(4)]
    for n in numbers[:2]:
        daemon.until(n, "running")
    for n in numbers[2:]:
        wait_for(lambda n=n: "Slurm did not start it: AssocGrpGRES" in (daemon.job(n)["note"] or ""))
    other = daemon.submit(command=["/bin/true"], gpus=4, workdir="/tmp")
    assert daemon.wait(other)["cause"] == "completed"
    touch(folder, "go")
    for n in numbers:
        assert daemon.wait(n)["cause"] == "completed"


def rank(daemon, n):
    job = daemon.job(n)
    return job["tenant"], job["queue"], job["priority"]


def change(cluster, job, *words):
    """As its user."""
    done = user(cluster, "scontrol", "update", f"jobid={job}", *words)
    assert done.returncode == 0, done


@pytest.fixture
def waiting(daemon, cluster, folder):
    """Slurm's number of a job that begins in an hour, and ours."""
    job = sbatch(cluster, folder, "true", "--begin=now+1hour", "--nice=5")
    n = ours(cluster, job)
    assert rank(daemon, n) == ("voice", "standard", 495)
    yield job, n
    daemon.post(f"/v1/jobs/{n}/cancel")
    daemon.wait(n)


@pytest.mark.parametrize("qos,queue,priority", [("normal", "standard", 500), ("express", "express", 1000), ("high", "express", 1000),
                                               ("low", "standard", 100), ("urgent", "standard", 900)])
def test_a_qos_means_a_queue_a_class_or_a_priority(daemon, cluster, folder, qos, queue, priority):
    n = ours(cluster, sbatch(cluster, folder, "true", "-H", f"--qos={qos}"))
    assert rank(daemon, n) == ("voice", queue, priority)
    daemon.post(f"/v1/jobs/{n}/cancel")


def test_an_account_that_is_changed_while_it_waits_is_taken_over(daemon, cluster, waiting):
    job, n = waiting
    for account, tenant in (("vis-2024", "vision"), ("speech", "speech"), ("vis-2024", "vision"), ("plain", "voice")):
        change(cluster, job, f"account={account}")
        wait_for(lambda tenant=tenant: rank(daemon, n) == (tenant, "standard", 495))


def test_a_qos_that_is_changed_while_it_waits_is_taken_over(daemon, cluster, waiting):
    job, n = waiting
    for qos, queue, priority in (("high", "express", 995), ("low", "standard", 95), ("urgent", "standard", 895), ("low", "standard", 95),
                                 ("express", "express", 995), ("urgent", "standard", 895), ("normal", "standard", 495)):
        change(cluster, job, f"qos={qos}")
        wait_for(lambda queue=queue, priority=priority: rank(daemon, n) == ("voice", queue, priority))
    daemon.client().post(f"/v1/jobs/{n}/update", {"priority": 42, "nice": 5})
    change(cluster, job, "qos=high", "account=vis-2024")
    wait_for(lambda: rank(daemon, n) == ("vision", "express", 37))  # what its user said of that stays


def test_an_account_that_cannot_be_is_said_and_the_rest_is_taken_over(daemon, cluster, waiting):
    job, n = waiting
    change(cluster, job, "account=art", "timelimit=7")
    wait_for(lambda: daemon.job(n)["time_limit_s"] == 420)
    why = "was changed in Slurm to what cannot be: tenant: nobody is not a member of art"
    assert why in daemon.job(n)["warning"] and daemon.errors_with(f"job {n} {why}")
    assert rank(daemon, n) == ("voice", "standard", 495)
    change(cluster, job, "account=speech")
    wait_for(lambda: rank(daemon, n)[0] == "speech")
    assert not daemon.job(n).get("warning")


def test_the_elements_of_an_array_change_with_it(daemon, cluster, folder):
    job = sbatch(cluster, folder, "true", "--begin=now+1hour", "--array=0-2")
    numbers = ours(cluster, job, 3)
    change(cluster, job, "account=vis-2024", "qos=high")
    wait_for(lambda: [rank(daemon, n) for n in numbers] == [("vision", "express", 1000)] * 3)
    change(cluster, job, "account=art")
    for n in numbers:
        wait_for(lambda n=n: "not a member of art" in (daemon.job(n).get("warning") or ""))
    change(cluster, f"{job}_1", "account=plain")
    wait_for(lambda: [rank(daemon, n)[0] for n in numbers] == ["vision", "voice", "vision"])
    for n in numbers:
        daemon.post(f"/v1/jobs/{n}/cancel")


def test_a_job_that_was_put_back_changes_too(daemon, cluster, folder):
    job = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4")
    n = ours(cluster, job)
    daemon.until(n, "running")
    others = [daemon.submit(command=["/bin/sleep", "1000"], gpus=4, workdir="/tmp", priority=2000) for _ in range(2)]
    daemon.post(f"/v1/jobs/{n}/requeue")
    for other in others:
        daemon.until(other, "running")
    wait_for(lambda: show(cluster, job)["JobState"] == "PENDING" and daemon.job(n)["state"] == "waiting")
    change(cluster, job, "account=vis-2024", "qos=urgent")
    wait_for(lambda: rank(daemon, n) == ("vision", "standard", 900))
    for number in (n, *others):
        daemon.post(f"/v1/jobs/{number}/cancel")
        daemon.wait(number)
