# SPDX-License-Identifier: Apache-2.0
"""What stoker has beside starting jobs works as ever where Slurm runs them, for users' own sbatch too: limits and guarantees of tenants, rules,
reservations, forecasts, reports, the page."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest
import slurm
from daemon import stoker
from slurm import wait_for
from slurm_daemon import as_root, needed, slurm_daemon
from slurm_users import ours, sbatch, show

pytestmark = [*needed, as_root]
ROOT = pathlib.Path(__file__).resolve().parents[2]
MORE = """
tenants:
  - {name: guests, users: [nobody]}
  - {name: vision, guarantee: 4, limit: 4, users: [root, nobody]}
cost: {gpu_hour: 2.5, currency: EUR}
series: {step: 1s}
operators: [root]
"""
SLEEP = ["/bin/sleep", "1000"]
# In force at any time: it begins every midnight and lasts longer than a day.
ALWAYS = {"name": "boost", "when": "0 0 * * *", "until": "30h", "then": [{"kind": "train", "priority": "+300"}]}


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as where, slurm.Cluster(where, nodes=2, gpus=4, managed=["main"]) as c:
        yield c


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, MORE) as d:
        yield d


def tenant(d, name):
    return {t["name"]: t for t in d.get("/v1/tenants")["tenants"]}[name]


def test_a_limit_of_a_tenant_holds_and_may_be_raised(daemon, cluster, folder):
    first = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4", "-A", "vision"))
    daemon.until(first, "running")
    job = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:2", "-A", "vision")
    second = ours(cluster, job)
    why = daemon.get(f"/v1/jobs/{second}/why")
    assert why["code"] == "limit" and "vision" in why["sentence"], why
    assert tenant(daemon, "vision")["used"] == 4 and show(cluster, job)["JobState"] == "PENDING"
    stoker(daemon, "quota", "set", "vision", "limit=8")
    daemon.until(second, "running")
    assert tenant(daemon, "vision")["used"] == 6
    stoker(daemon, "quota", "set", "vision", "limit=config")


def test_what_was_lent_is_taken_back_for_a_guarantee(daemon, cluster, folder):
    guests = [sbatch(cluster, folder, "trap 'exit 0' USR1; while :; do sleep 0.1; done", "--gres=gpu:4", "-A", "guests", "--requeue") for _ in range(2)]
    numbers = [ours(cluster, j) for j in guests]
    for n in numbers:
        daemon.until(n, "running")
    mine = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4", "-A", "vision"))
    daemon.until(mine, "running")
    wait_for(lambda: sorted(daemon.job(n)["state"] for n in numbers) == ["running", "waiting"])
    assert tenant(daemon, "vision")["used"] == 4 and tenant(daemon, "guests")["used"] == 4


def test_a_rule_changes_what_waits_and_goes_again(daemon, cluster, folder):
    blocks = [ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4", "-A", "guests")) for _ in range(2)]
    for n in blocks:
        daemon.until(n, "running")
    job = ours(cluster, sbatch(cluster, folder, "true", "--gres=gpu:1", "-A", "guests"))
    before = daemon.job(job)["priority"]
    daemon.post("/v1/rules", ALWAYS)
    assert daemon.job(job)["priority"] == before + 300
    assert "boost" in stoker(daemon, "rule", "list")
    stoker(daemon, "rule", "rm", "boost")
    assert daemon.job(job)["priority"] == before


def test_a_reservation_of_stokers_is_kept_free(daemon, cluster, folder):
    stoker(daemon, "reserve", "add", "demo", "--gpus", "6", "--for", "1h", "--user", "root")
    other = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4")
    n = ours(cluster, other)
    why = stoker(daemon, "why", f"slurm:{other}")
    assert "reserved" in why and "demo" in why, why
    mine = daemon.submit(command=SLEEP, gpus=4, workdir="/tmp", tenant="vision")
    daemon.until(mine, "running")
    assert daemon.job(n)["state"] == "waiting"
    stoker(daemon, "reserve", "rm", "demo")
    daemon.until(n, "running")


def test_it_is_foreseen_when_a_job_starts(daemon, cluster, folder):
    blocks = [ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4", "-t", "60", "-A", "guests")) for _ in range(2)]
    for n in blocks:
        daemon.until(n, "running")
    job = sbatch(cluster, folder, "true", "--gres=gpu:4", "-t", "10", "-A", "guests")
    n = ours(cluster, job)
    wait_for(lambda: daemon.job(n).get("start_p50"))
    shown = daemon.job(n)
    assert shown["position"] == 1 and 0 < shown["start_p50"] - time.time() <= 3600
    assert "expected to start" in stoker(daemon, "why", f"slurm:{job}")
    late = daemon.client().post("/v1/jobs?dry_run=1", {"command": SLEEP, "gpus": 8, "time_limit_s": 3600, "tenant": "vision", "deadline": int(time.time()) + 600, "workdir": "/tmp"})
    assert late.status in (200, 400, 422), late  # asked of a copy of the scheduler


def test_a_report_has_what_was_used_and_what_it_cost(daemon, cluster, folder):
    job = sbatch(cluster, folder, "sleep 2", "--gres=gpu:4", "-J", "counted")
    assert daemon.wait(ours(cluster, job))["cause"] == "completed"

    def counted():
        report = json.loads(stoker(daemon, "report", "--since", "1h", "--by", "user", "--json"))
        return next((g for g in report["groups"] if g["name"] == "nobody" and g["gpu_hours"] > 0), None)

    wait_for(counted)
    group = counted()
    assert group["money"] == pytest.approx(group["gpu_hours"] * 2.5, rel=1e-3)
    assert "nobody" in stoker(daemon, "report", "--since", "1h", "--by", "user")
    assert "counted" in stoker(daemon, "history", "--limit", "20")
    metrics = daemon.client().get("/metrics")
    assert metrics.status == 200 and b"stoker_tenant_used_gpus" in metrics.body


@pytest.mark.skipif(not shutil.which("node") or not shutil.which(os.environ.get("CHROMIUM", "chromium")) or not (ROOT / "web/node_modules/playwright-core").exists(),
                    reason="no Chromium or no node_modules")
def test_the_page_shows_nodes_jobs_and_slurms_numbers(daemon, cluster, folder):
    jobs = [sbatch(cluster, folder, "sleep 1000", "--gres=gpu:4", "-A", "guests", "-J", name) for name in ("one", "two", "three")]
    numbers = [ours(cluster, j) for j in jobs]
    for n in numbers[:2]:
        daemon.until(n, "running")
    done = subprocess.run(["node", str(ROOT / "tests/web/slurm_page.mjs"), daemon.login, str(numbers[0]), *map(str, jobs)],
                          capture_output=True, text=True, timeout=600, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("^the page is right$", done.stdout, re.M)
