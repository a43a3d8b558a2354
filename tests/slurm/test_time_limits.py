# SPDX-License-Identifier: Apache-2.0
"""Time limits of jobs that run in Slurm: changed here, changed there, refused there. Real slurmctld, slurmd and stokerd,
with the plugin that holds users' jobs, and without it."""
import shutil

import pytest
import slurm
from daemon import STOKERD, Daemon
from libslurm import PROGRAM
from slurm import wait_for
from slurm_daemon import as_root, config, needed
from slurm_users import ours, sbatch, show, user
from test_sbatch import cluster, daemon  # noqa: F401

pytestmark = [*needed, as_root]


def limit(daemon, n):
    return daemon.job(n)["time_limit_s"]


def change(daemon, n, seconds):
    return daemon.client().post(f"/v1/jobs/{n}/update", {"time_limit_s": seconds})


def expected(daemon, n):
    job = daemon.job(n)
    return job["expected_end"] - job["started"]


def test_changed_here_it_is_changed_there(daemon, cluster, folder):
    mine = daemon.submit(command=["/bin/sleep", "1000"], gpus=1, time_limit_s=600, workdir="/tmp")
    daemon.until(mine, "running")  # without the plugin a pass of Slurm's scheduler may come too early for the other one
    theirs = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:1", "-t", "10")
    for n in (mine, ours(cluster, theirs)):
        job = daemon.until(n, "running")["slurm"]["job"]
        assert show(cluster, job)["TimeLimit"] == "00:10:00"
        assert change(daemon, n, 7170).status == 200
        wait_for(lambda job=job: show(cluster, job)["TimeLimit"] == "02:00:00")  # Slurm counts minutes
        assert change(daemon, n, None).status == 200
        wait_for(lambda job=job: show(cluster, job)["TimeLimit"] == "UNLIMITED")
        assert change(daemon, n, 1200).status == 200
        wait_for(lambda job=job: show(cluster, job)["TimeLimit"] == "00:20:00")
        assert limit(daemon, n) == 1200 and expected(daemon, n) == pytest.approx(1200, abs=5)


def test_changed_there_it_is_changed_here(daemon, cluster, folder):
    mine = daemon.submit(command=["/bin/sleep", "1000"], gpus=1, time_limit_s=600, workdir="/tmp")
    daemon.until(mine, "running")  # without the plugin a pass of Slurm's scheduler may come too early for the other one
    theirs = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:1", "-t", "10")
    for n in (mine, ours(cluster, theirs)):
        job = str(daemon.until(n, "running")["slurm"]["job"])
        cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=90")  # root is an operator
        wait_for(lambda n=n: limit(daemon, n) == 5400)
        assert expected(daemon, n) == pytest.approx(5400, abs=5)
    assert user(cluster, "scontrol", "update", f"JobId={theirs}", "TimeLimit=120").returncode != 0
    assert user(cluster, "scontrol", "update", f"JobId={theirs}", "TimeLimit=30").returncode == 0
    wait_for(lambda: limit(daemon, ours(cluster, theirs)) == 1800)
    cluster.run("scontrol", "update", f"JobId={theirs}", "TimeLimit=UNLIMITED")
    wait_for(lambda: limit(daemon, ours(cluster, theirs)) is None)


def test_of_one_that_waits(daemon, cluster, folder):
    for _ in range(4):
        daemon.until(daemon.submit(command=["/bin/sleep", "1000"], gpus=8, tier="critical", workdir="/tmp"), "running")
    theirs = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8", "-t", "10")
    n = ours(cluster, theirs)
    assert user(cluster, "scontrol", "update", f"JobId={theirs}", "TimeLimit=5").returncode == 0
    wait_for(lambda: limit(daemon, n) == 300)
    assert change(daemon, n, 1800).status == 200
    wait_for(lambda: show(cluster, theirs)["TimeLimit"] == "00:30:00")
    assert user(cluster, "scontrol", "update", f"JobId={theirs}", "JobName=other").returncode == 0
    wait_for(lambda: daemon.job(n)["name"] == "other")
    assert limit(daemon, n) == 1800


def test_it_holds_while_the_daemon_is_away_and_when_it_starts_again(daemon, cluster, tmp_path):
    n = daemon.submit(script="while :; do sleep 0.2; done\n", gpus=8, time_limit_s=600, workdir=str(tmp_path))
    job = str(daemon.until(n, "running")["slurm"]["job"])
    daemon.kill()
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=40")
    daemon.start()
    wait_for(lambda: limit(daemon, n) == 2400)
    daemon.post(f"/v1/jobs/{n}/requeue")
    assert daemon.client().post(f"/v1/jobs/{n}/hold").status == 200
    daemon.until(n, "held")
    assert change(daemon, n, 3000).status == 200
    daemon.post(f"/v1/jobs/{n}/release")
    wait_for(lambda: show(cluster, daemon.until(n, "running")["slurm"]["job"]).get("TimeLimit") == "00:50:00")
    assert limit(daemon, n) == 3000


# Passes everything on, but Slurm "refuses" more than two hours: root may do everything there.
STRICT = """#!/usr/bin/python3
import json, subprocess, sys, threading
p = subprocess.Popen(["REAL", *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
refused = set()
def out():
    for line in p.stdout:
        o = json.loads(line)
        if o.get("op") == "answer" and o["id"] in refused:
            o["why"] = "Requested time limit is invalid"
        print(json.dumps(o), flush=True)
threading.Thread(target=out).start()
for line in sys.stdin:
    o = json.loads(line)
    if o.get("op") == "update" and (o.get("time_limit_s") or 0) > 7200:
        refused.add(o["id"])
        o["op"] = "nothing"
    print(json.dumps(o), file=p.stdin, flush=True)
p.stdin.close()
"""


class Elsewhere(Daemon):
    """Its programs are those of a folder."""

    def command(self):
        return [str(self.folder / "bin/stokerd"), *super().command()[1:]]


@pytest.fixture
def alone():
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=1, gpus=2) as c:
        yield c


def test_what_slurm_refuses_is_said_and_taken_back(alone, tmp_path):
    (tmp_path / "bin").mkdir()
    for path in STOKERD.parent.glob("stoker*"):
        if path.is_file() and path.name != "stoker-libslurm":
            shutil.copy(path, tmp_path / "bin")
    helper = tmp_path / "bin/stoker-libslurm"
    helper.write_text(STRICT.replace("REAL", str(PROGRAM)))
    helper.chmod(0o755)
    with Elsewhere(tmp_path, gpus=None, config=config(alone.conf)) as d:
        n = d.submit(command=["/bin/sleep", "1000"], gpus=1, time_limit_s=600, workdir="/tmp")
        job = d.until(n, "running")["slurm"]["job"]
        assert change(d, n, 9000).status == 200
        wait_for(lambda: limit(d, n) == 600 and "Slurm refused another time limit: Requested time limit is invalid" in
                 (d.job(n).get("warning") or ""))
        assert show(alone, job)["TimeLimit"] == "00:10:00" and expected(d, n) == pytest.approx(600, abs=5)
        assert change(d, n, 1200).status == 200
        wait_for(lambda: show(alone, job)["TimeLimit"] == "00:20:00" and not d.job(n).get("warning"))
        assert limit(d, n) == 1200
