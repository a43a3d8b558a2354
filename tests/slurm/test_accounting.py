# SPDX-License-Identifier: Apache-2.0
"""Jobs that slurmctld has forgotten, with accounting (a real slurmdbd on a real MariaDB) and without, and what sacct says."""
import time

import pytest
import slurm
from daemon import stoker
from patience import PATIENCE_S
from slurm import wait_for
from slurm_daemon import needed, slurm_daemon, with_accounting

pytestmark = [with_accounting, *needed]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=4, extra="RequeueExitHold=86", accounting=True, settings={"MinJobAge": 2}) as c:
        yield c


@pytest.fixture
def daemon(cluster, tmp_path):
    with slurm_daemon(tmp_path, cluster, args=["--paranoid"]) as d:
        yield d


def sacct(cluster, job, *fields):
    """Of every run of the job, oldest first."""
    text = cluster.run("sacct", "-n", "-P", "-D", "-X", "-j", str(job), "-o", ",".join(fields)).stdout
    return [line.split("|") for line in text.splitlines()]


def told(cluster, job, *states):
    """Waits until slurmctld has told accounting how it ended, which it does when it can: of an array, each element."""
    wait_for(lambda: [r[0] for r in sacct(cluster, job, "State")] == list(states))


def forgotten(cluster, job):
    return cluster.run("scontrol", "show", "job", str(job), check=False).returncode != 0


def test_an_end_that_slurmctld_forgot_is_found_in_accounting(cluster, daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.1; done; exit 9"], gpus=1, workdir=str(tmp_path))
    m = daemon.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.1; done"], gpus=1, workdir=str(tmp_path))
    job = daemon.until(n, "running")["slurm"]["job"]
    other = daemon.until(m, "running")["slurm"]["job"]
    daemon.kill()
    (tmp_path / "go").touch()
    told(cluster, job, "FAILED")
    told(cluster, other, "COMPLETED")
    wait_for(lambda: forgotten(cluster, job) and forgotten(cluster, other))
    daemon.start()
    record = daemon.wait(n)
    assert record["cause"] == "failed" and record["exit_code"] == 9, record
    assert daemon.wait(m)["cause"] == "completed"


def test_an_end_of_a_users_own_job_is_found_there_too(cluster, daemon, tmp_path):
    """One of its own, and an element of an array."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.1; done\nexit ${SLURM_ARRAY_TASK_ID:-7}\n")
    where = ["--parsable", "--hold", "-D", str(tmp_path), "--gres=gpu:1"]
    jobs = [cluster.run("sbatch", *where, *more, str(script)).stdout.strip() for more in ([], ["--array=3-4"])]
    for job in jobs:  # held by their user until stoker has them, so that Slurm is not quicker
        cluster.run("scontrol", "hold", job)
    wait_for(lambda: len(daemon.jobs()) == 3)
    for job in jobs:
        cluster.run("scontrol", "release", job)
    numbers = sorted(j["id"] for j in daemon.jobs())
    for n in numbers:
        daemon.until(n, "running")
    daemon.kill()
    (tmp_path / "go").touch()
    told(cluster, jobs[0], "FAILED")
    told(cluster, jobs[1], "FAILED", "FAILED")
    wait_for(lambda: all(forgotten(cluster, job) for job in jobs))
    daemon.start()
    assert [daemon.wait(n)["exit_code"] for n in (numbers[0], f"{numbers[1]}_3", numbers[2])] == [7, 3, 4]


def test_accounts_and_qos_are_read_and_shown_with_what_they_mean(cluster, tmp_path):
    cluster.run("sacctmgr", "-i", "add", "account", "vision", "vis-2024", "spare")
    cluster.run("sacctmgr", "-i", "add", "qos", "express", "high")
    tenants = "tenants:\n  - {name: vision, users: [root]}\n"
    with slurm_daemon(tmp_path, cluster, tenants, accounts="{vis-2024: vision}", qos="{high: express}") as d:
        wait_for(lambda: d.get("/v1/tenants")["slurm"])
        means = d.get("/v1/tenants")["slurm"]
        accounts = {a["name"]: a["tenant"] for a in means["accounts"]}
        assert accounts["vision"] == accounts["vis-2024"] == "vision" and accounts["spare"] is None
        qos = {q["name"]: q["queue"] for q in means["qos"]}
        assert qos["express"] == qos["high"] == "express" and qos["normal"] is None
        said = d.errors_with("accounts and")
        assert "spare" in said and "vis-2024" not in said and "normal" in said
        shown = stoker(d, "tenants")
        assert "Slurm's account vis-2024: tenant vision" in shown and "Slurm's QOS normal: means nothing here" in shown


def test_sacct_shows_what_really_ran(cluster, daemon, tmp_path):
    script = "trap 'exit 86' USR1\necho >>started\nwhile [ ! -e done ]; do sleep 0.1; done\n"
    low = daemon.submit(script=script, gpus=4, tier="best-effort", signal={"signal": "USR1", "seconds": 30, "who": "batch"}, workdir=str(tmp_path))
    daemon.until(low, "running")
    job = daemon.job(low)["slurm"]["job"]
    wait_for((tmp_path / "started").exists)
    other = daemon.submit(command=["/bin/sleep", "1000"], gpus=4)
    daemon.until(other, "running")
    high = daemon.submit(command=["/bin/true"], gpus=4, tier="critical", priority=1000)
    assert daemon.wait(high)["cause"] == "completed"
    record = daemon.until(low, "running")
    assert record["preemptions"] == 1 and record["slurm"]["job"] == job
    (tmp_path / "done").touch()
    assert daemon.wait(low)["cause"] == "completed"
    told(cluster, job, "REQUEUED", "COMPLETED")
    rows = sacct(cluster, job, "State", "AllocTRES", "AdminComment", "ElapsedRaw")
    assert all("gres/gpu=4" in r[1] for r in rows) and rows[-1][2].startswith("stoker ") and rows[-1][2].split()[2] == str(low)
    daemon.post(f"/v1/jobs/{other}/cancel")
    there = daemon.wait(other)
    assert there["cause"] == "cancelled"


def test_slurmdbd_is_away_and_comes_back(cluster, daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.1; done; exit 4"], gpus=1, workdir=str(tmp_path))
    job = daemon.until(n, "running")["slurm"]["job"]
    daemon.kill()
    (tmp_path / "go").touch()
    told(cluster, job, "FAILED")
    wait_for(lambda: forgotten(cluster, job))
    cluster.dbd.terminate()
    cluster.dbd.wait(PATIENCE_S)
    daemon.start()
    daemon.errors_with("accounting cannot be asked")
    cluster.start_dbd()
    assert daemon.wait(n)["exit_code"] == 4


def test_without_accounting_it_is_said_that_nobody_knows(tmp_path):
    with slurm.Cluster(tmp_path / "slurm", nodes=1, gpus=2, settings={"MinJobAge": 2}) as c:
        with slurm_daemon(tmp_path / "d", c) as d:
            d.errors_with("Slurm keeps no accounting")
            assert d.get("/v1/tenants")["slurm"] is None
            n = d.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.1; done"], gpus=1, workdir=str(tmp_path))
            job = d.until(n, "running")["slurm"]["job"]
            d.kill()
            (tmp_path / "go").touch()
            wait_for(lambda: forgotten(c, job))
            time.sleep(3)
            d.start()
            record = d.wait(n)
            assert record["cause"] == "lost" and "accounting" in record["note"], record


def test_what_stoker_sends_is_booked_to_its_account(cluster, tmp_path):
    cluster.run("sacctmgr", "-i", "add", "account", "nlp", "nlp-2024", "other", check=False)
    cluster.run("sacctmgr", "-i", "add", "qos", "fast", check=False)
    for account in ("nlp", "nlp-2024", "other"):
        cluster.run("sacctmgr", "-i", "add", "user", "root", f"account={account}", "qos=normal,fast", check=False)
    tenants = "tenants:\n  - {name: nlp, users: [root]}\n  - {name: text, users: [root]}\n  - {name: alone, users: [root]}\n  - {name: theirs, users: [nobody]}\n"
    with slurm_daemon(tmp_path, cluster, tenants, ["--paranoid"], accounts="{nlp-2024: text, nobodys: theirs}", qos="{fast: preemptible}") as d:
        wait_for(lambda: d.get("/v1/tenants")["slurm"])
        for words, account, qos in (({"tenant": "text"}, "nlp-2024", ""), ({"tenant": "nlp"}, "nlp", ""), ({"tenant": "alone"}, "", ""),
                                    ({"tenant": "text", "account": "other"}, "other", ""), ({"account": "text"}, "nlp-2024", ""),
                                    ({"account": "alone"}, "", ""), ({"tenant": "text", "qos": "fast"}, "nlp-2024", "fast"),
                                    ({"tenant": "text", "qos": "preemptible"}, "nlp-2024", "fast"), ({"tenant": "text", "qos": "batch"}, "nlp-2024", "")):
            n = d.submit(command=["/bin/sleep", "1000"], gpus=1, workdir=str(tmp_path), **words)
            job = d.until(n, "running")["slurm"]["job"]
            shown = cluster.run("squeue", "-h", "-j", str(job), "-o", "%a|%q").stdout.strip().split("|")
            assert (account in ("", shown[0])) and shown[0] != "(null)", (words, shown)
            assert shown[1] == (qos or "normal"), (words, shown)
            d.post(f"/v1/jobs/{n}/cancel")
            d.wait(n)
        assert d.job(d.submit(command=["/bin/true"], account="nlp-2024"))["tenant"] == "text"
        refused = d.client().post("/v1/jobs", {"command": ["/bin/true"], "account": "nobodys"})
        assert refused.status == 422 and "root is not a member of theirs" in refused.message
