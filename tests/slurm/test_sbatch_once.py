# SPDX-License-Identifier: Apache-2.0
"""Users' own jobs are taken in once, whoever is killed in between."""
import pytest
import slurm
from slurm import wait_for
from slurm_daemon import as_root, needed, slurm_daemon
from slurm_users import ours, read, sbatch, show
from test_sbatch import EXTRA

pytestmark = [*needed, as_root]
TENANTS = """
tenants: [{name: vision, users: [root]}, {name: speech, users: [root, nobody]}]
"""


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=2, gpus=4, extra=EXTRA.replace("[1-4]", "[1-2]"), managed=["main"]) as c:
        yield c


@pytest.fixture(scope="module")
def daemon(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, TENANTS, accounts="{acct: vision, talk: speech}", qos="{high: express, low: 'priority:7'}") as d:
        yield d


def lines(folder):
    return sorted(read(folder, "out").split())


def test_both_are_killed_and_every_job_runs_once(daemon, cluster, folder):
    script = "echo ${SLURM_ARRAY_TASK_ID:-x}$1 >> out"
    blocks = [daemon.submit(command=["/bin/sleep", "1000"], gpus=4, workdir="/tmp") for _ in range(2)]
    for b in blocks:
        daemon.until(b, "running")
    single, array = sbatch(cluster, folder, script, "--gres=gpu:1"), sbatch(cluster, folder, script, "--gres=gpu:1", "--array=0-3")
    numbers = [ours(cluster, single), *ours(cluster, array, 4)]
    daemon.kill()
    late = sbatch(cluster, folder, script.replace("$1", "late"), "--gres=gpu:1")
    wait_for(lambda: show(cluster, late)["AdminComment"] == "stoker")
    daemon.start()
    numbers.append(ours(cluster, late))
    assert len(set(numbers)) == 6 and [daemon.job(n)["state"] for n in numbers] == ["waiting"] * 6
    # As if the mark had been lost with a slurmctld that was killed: the number is the same again.
    cluster.run("scontrol", "update", f"jobid={single}", "admincomment=stoker")
    daemon.kill()
    daemon.start()
    assert ours(cluster, single) == numbers[0]
    daemon.kill()
    cluster.saved(late)
    cluster.stop_controller()
    cluster.start_controller()
    daemon.start()
    for b in blocks:
        daemon.post(f"/v1/jobs/{b}/cancel")
    for n in numbers:
        done = daemon.wait(n)
        assert done["cause"] == "completed", done["note"]
    assert lines(folder) == ["0", "1", "2", "3", "x", "xlate"] and len(daemon.jobs()) == 0


def test_what_was_cancelled_while_stoker_was_away_is_gone(daemon, cluster, folder):
    job = sbatch(cluster, folder, "true", "-H")
    n = ours(cluster, job)
    daemon.kill()
    cluster.run("scancel", str(job))
    daemon.start()
    assert daemon.wait(n)["cause"] == "cancelled"


def test_accounts_mean_tenants(daemon, cluster, folder):
    """By the configuration and by their names, if the user is a member; else as ever. (Without accounting Slurm keeps no QOS.)"""
    for account, tenant in (("talk", "speech"), ("speech", "speech"), ("other", "speech")):
        job = daemon.job(ours(cluster, sbatch(cluster, folder, "true", "-H", "-A", account)))
        assert (job["tenant"], job["queue"]) == (tenant, "standard"), account
    for account in ("vision", "acct"):  # nobody is no member, and Slurm takes any word for an account
        job = sbatch(cluster, folder, "true", "-A", account)
        wait_for(lambda job=job: "not a member of vision" in show(cluster, job).get("AdminComment", ""))
    assert daemon.errors_with("Slurm lets anybody use any account here")
