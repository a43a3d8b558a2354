# SPDX-License-Identifier: Apache-2.0
"""Where Slurm's accounting enforces who may use which account, and how long and how much: a real slurmdbd on a real MariaDB."""
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
        c.run("sacctmgr", "-i", "add", "account", "vis-2024", "plain")
        for name in ("nobody", "root"):
            c.run("sacctmgr", "-i", "add", "user", name, "account=plain,vis-2024", "DefaultAccount=plain")
        c.run("sacctmgr", "-i", "modify", "user", "nobody", "where", "account=vis-2024", "set", "GrpTRES=gres/gpu=2")
        wait_for(lambda: has_accounts(c))
        yield c


@pytest.fixture(scope="module")
def daemon(cluster, tmp_path_factory):
    tenants = "tenants: [{name: vision, users: [root]}, {name: speech, users: [root, nobody]}]\n"
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, tenants, accounts="{vis-2024: vision}") as d:
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
