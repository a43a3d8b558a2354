# SPDX-License-Identifier: Apache-2.0
"""A job has two numbers where Slurm runs it. People know Slurm's: every command takes it, and shows it."""
import json
import re

import jsonschema
import pytest
import slurm
from daemon import stoker
from slurm import wait_for
from slurm_daemon import as_root, needed, slurm_daemon
from slurm_users import ours, sbatch, show, touch

pytestmark = [*needed, as_root]
UNTIL_GO = "while [ ! -e go ]; do sleep 0.1; done"


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as where, slurm.Cluster(where, nodes=2, gpus=4, managed=["main"]) as c:
        yield c


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster) as d:
        for _ in range(3):  # that Slurm never hears of: so no job has the same number in both
            n = d.submit(command=["/bin/true"], workdir="/tmp", hold=True)
            d.post(f"/v1/jobs/{n}/cancel")
        yield d


def row(d, number):
    """Of the queue, by column."""
    lines = stoker(d, "queue").splitlines()
    found = [line.split() for line in lines[1:] if line.split()[0] == str(number)]
    return dict(zip(lines[0].split(), found[0])) if found else {}


def test_a_users_job_is_known_by_the_number_that_sbatch_said(daemon, cluster, folder):
    job = sbatch(cluster, folder, "echo it runs; " + UNTIL_GO, "--gres=gpu:1", "-J", "mine")
    n = ours(cluster, job)
    assert n != job
    daemon.until(n, "running")
    assert daemon.get(f"/v1/jobs/slurm:{job}")["id"] == n
    shown = stoker(daemon, "show", f"slurm:{job}")
    assert shown.startswith(f"job {n} ") and re.search(rf"^Slurm +{job}, running$", shown, re.M)
    assert row(daemon, n)["SLURM"] == str(job)
    document = daemon.get("/openapi.json")
    jsonschema.validate(daemon.job(n), {**document["components"]["schemas"]["Job"], "components": document["components"]})
    daemon.log_with(n, "it runs")
    assert "it runs" in stoker(daemon, "logs", f"slurm:{job}")
    stoker(daemon, "update", f"slurm:{job}", "--time", "2h")
    assert daemon.job(n)["time_limit_s"] == 7200
    touch(folder, "go")
    stoker(daemon, "wait", f"slurm:{job}")
    assert re.search(rf"^Slurm +{job}\b", stoker(daemon, "show", n), re.M)  # it has ended
    assert json.loads(stoker(daemon, "show", f"slurm:{job}", "--json"))["cause"] == "completed"
    assert row(daemon, n) == {} and str(job) in stoker(daemon, "history", "--limit", "1")


def test_why_hold_release_and_cancel(daemon, cluster, folder):
    blocks = [daemon.submit(command=["/bin/sleep", "1000"], gpus=4, workdir="/tmp") for _ in range(2)]
    for b in blocks:
        daemon.until(b, "running")
    job = sbatch(cluster, folder, "true", "--gres=gpu:2")
    n = ours(cluster, job)
    assert f"job {n} needs 2 GPUs" in stoker(daemon, "why", f"slurm:{job}")
    assert "held" in stoker(daemon, "hold", f"slurm:{job}") and daemon.job(n)["state"] == "held"
    stoker(daemon, "release", f"slurm:{job}")
    stoker(daemon, "cancel", f"slurm:{job}")
    wait_for(lambda: show(cluster, job)["JobState"] == "CANCELLED")
    theirs = daemon.job(blocks[0])["slurm"]["id"]  # one that stoker has sent
    assert json.loads(stoker(daemon, "show", f"slurm:{theirs}", "--json"))["id"] == blocks[0]


def test_an_array_and_its_elements(daemon, cluster, folder):
    blocks = [daemon.submit(command=["/bin/sleep", "1000"], gpus=4, workdir="/tmp") for _ in range(2)]
    for b in blocks:
        daemon.until(b, "running")
    array = sbatch(cluster, folder, UNTIL_GO, "--gres=gpu:4", "--array=2-8:2")
    n = ours(cluster, array, 4)
    wait_for(lambda: len(daemon.jobs("?state=waiting")) == 4)
    assert [daemon.job(k)["slurm"]["id"] for k in n] == [f"{array}_{i}" for i in (2, 4, 6, 8)]
    assert [j["slurm"]["id"] for j in daemon.jobs("?state=waiting")] == [f"{array}_{i}" for i in (2, 4, 6, 8)]
    assert daemon.get(f"/v1/jobs/slurm:{array}_6")["id"] == n[2] and daemon.get(f"/v1/jobs/slurm:{array}")["id"] == n[0]
    daemon.post(f"/v1/jobs/{blocks[0]}/cancel")
    daemon.until(n[0], "running")  # it has come off, and has a number of its own
    own = daemon.job(n[0])["slurm"]["job"]
    assert daemon.job(n[0])["slurm"]["id"] == f"{array}_2" and daemon.get(f"/v1/jobs/slurm:{array}_2")["id"] == n[0]
    assert own == array or daemon.get(f"/v1/jobs/slurm:{own}")["id"] == n[0]
    assert stoker(daemon, "show", f"slurm:{array}").count("Slurm ") == 4  # all of it
    stoker(daemon, "cancel", f"slurm:{array}_8")
    assert daemon.wait(n[3])["cause"] == "cancelled"
    stoker(daemon, "cancel", f"slurm:{array}")
    assert [daemon.wait(k)["cause"] for k in n] == ["cancelled"] * 4


def test_what_is_not_there_is_said(daemon, cluster, folder):
    said = stoker(daemon, "show", "slurm:999999", code=1)
    assert "Slurm's job \"999999\" is not known here" in said and "sacct -j 999999" in said
    assert "names no job" in stoker(daemon, "why", "slurm:x", code=2)
    job = sbatch(cluster, folder, "true", "-H")
    ours(cluster, job)
    assert "is not known here" in stoker(daemon, "show", f"slurm:{job}_3", code=1)
    stoker(daemon, "cancel", f"slurm:{job}")
