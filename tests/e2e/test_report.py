# SPDX-License-Identifier: Apache-2.0
"""stoker report, /v1/report, /v1/usage and what a job cost: on a real daemon, and on a past that was made up."""
import getpass
import json
import re
import subprocess
import threading
import time

import jsonschema
import past
import pytest
from daemon import Daemon, stoker
from patience import PATIENCE_S, until

SLEEP = ["/bin/sleep", "600"]
SPIN = ["/bin/sh", "-c", "while :; do :; done"]
ME = getpass.getuser()
CONFIG = f"""
series: {{step: 1s}}
cost: {{gpu_hour: 2.5, currency: EUR}}
tenants: [{{name: "vision <b>", users: [{ME}]}}, {{name: speech, users: [{ME}]}}]
"""


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path, gpus=4, config=CONFIG)
    d.start()
    yield d
    d.close()


def valid(daemon, name, answer):
    document = daemon.get("/openapi.json")
    jsonschema.validate(answer, {**document["components"]["schemas"][name], "components": document["components"]})
    return answer


def invent(daemon):
    """Two weeks of measurements and jobs: 4 GPUs, busy by day, idle at night; written while the daemon is down."""
    for words in ({}, {"class": "inference"}):
        daemon.wait(daemon.submit(command=["/bin/true"], gpus=0, tenant="speech", **words))
    assert daemon.stop() == 0
    past.invent(daemon.state, ["vision <b>", "speech"])
    daemon.start()


def test_a_period_in_numbers_on_the_terminal_as_json_and_as_a_page(daemon, tmp_path):
    invent(daemon)
    r = valid(daemon, "Summary", daemon.get(f"/v1/report?since={int(time.time()) - 14 * 86400}"))
    c = r["cluster"]
    assert c["gpus"] == 4 and c["gpu_hours"] == pytest.approx(14 * 24 * 4, rel=0.02)
    assert c["allocated"] == pytest.approx((4 * 12 + 0.5 * 12) / 24 / 4, rel=0.05) and c["active"] == pytest.approx(c["allocated"] / 2, rel=0.02)
    assert c["kwh"] == pytest.approx(14 * 24, rel=0.02) and c["idle_money"] == pytest.approx(c["idle_gpu_hours"] * 2.5)
    groups = {g["name"]: g for g in r["groups"]}
    vision = groups["vision <b>"]
    assert vision["jobs"] == 2 and vision["gpu_hours"] == pytest.approx(4 * 40 + 4 * 20) and vision["money"] == pytest.approx(240 * 2.5)
    assert vision["util"] == pytest.approx((160 * 0.9 + 80 * 0.2) / 240, rel=0.01) and vision["wait_p50_s"] == 600 and vision["wait_p90_s"] == 1200
    assert [w["id"] for w in r["waits"]][:2] == [100003, 100002]
    assert r["waste"][0]["name"] == "forgotten" and r["waste"][0]["idle_gpu_hours"] == pytest.approx(100)
    kinds = {x["kind"]: x for x in r["recommendations"]}
    assert set(kinds) == {"idle_nights", "idle_jobs", "fewer_gpus", "share_gpu", "service_shrink"}
    assert "chat-api" in kinds["service_shrink"]["text"] and "from 4 GPUs to 1" in kinds["service_shrink"]["text"] and "15% of the time" in kinds["service_shrink"]["evidence"]
    assert kinds["service_shrink"]["gpu_hours"] == pytest.approx(30) and kinds["service_shrink"]["jobs"] == [100004]
    assert "notebook" in kinds["share_gpu"]["text"] and "--gpus 0.25" in kinds["share_gpu"]["text"] and "9.0 GiB of GPU memory" in kinds["share_gpu"]["evidence"]
    assert "ask for 1" in kinds["fewer_gpus"]["text"] and kinds["fewer_gpus"]["jobs"] == [100001] and kinds["fewer_gpus"]["gpu_hours"] == pytest.approx(60)
    assert "%" in kinds["idle_nights"]["evidence"] and kinds["idle_nights"]["gpu_hours"] > 100
    assert all(x["money"] == pytest.approx(x["gpu_hours"] * 2.5, abs=0.01) for x in r["recommendations"])
    by = {u["name"] for u in daemon.get("/v1/report?by=user")["groups"]}
    assert "root" in by and daemon.client().get("/v1/report?by=colour").status == 400 and daemon.client().get("/v1/report?since=9&until=3").status == 400
    out = stoker(daemon, "report", "--since", "14d", "--by", "team")
    for words in ("utilization", "waste", "EUR", "vision <b>", "what could be better", "longest waits", "job 100003"):
        assert words in out, out
    assert json.loads(stoker(daemon, "report", "--since", "14d", "--json"))["by"] == "tenant"
    page = tmp_path / "week.html"
    stoker(daemon, "report", "--since", "14d", "--html", page)
    text = page.read_text()
    assert "<script" not in text and "vision &lt;b&gt;" in text and "&lt;script&gt;alert(1)" in text and "http" not in text
    assert re.search(r"<h2>By tenant</h2>", text) and "What could be better" in text and text.endswith("</html>\n")
    stoker(daemon, "report", "--html", "/nowhere/x.html", code=1)
    stoker(daemon, "report", "--since", "sometime", code=2)


def test_use_by_hour_and_weekday(daemon):
    invent(daemon)
    u = valid(daemon, "Usage", daemon.get("/v1/usage?days=14"))
    cells = {(c["weekday"], c["hour"]): c for c in u["cells"]}
    assert len(cells) == 7 * 24
    for (_, hour), c in cells.items():
        assert c["allocated"] == pytest.approx(1.0 if 8 <= hour < 20 else 0.125, abs=0.2) and 0 < c["hours"] <= 3
    assert {t["name"] for t in u["tenants"]} >= {"speech", "vision <b>"}
    assert {x["kind"] for x in u["recommendations"]} == {"idle_nights", "idle_jobs", "fewer_gpus", "share_gpu", "service_shrink"}
    assert [(t["job"], t["name"], t["unit"]) for t in u["throughput"]] == [(100000, "train", "steps")] and u["throughput"][0]["per_gpu_hour"] == pytest.approx(250, rel=0.02)
    year = valid(daemon, "Usage", daemon.get("/v1/usage?days=400"))  # more than one answer of measurements can have
    assert sum(c["hours"] for c in year["cells"]) == pytest.approx(14 * 24, rel=0.01) and year["throughput"][0]["per_gpu_hour"] == pytest.approx(250, rel=0.05)
    assert daemon.client().get("/v1/usage?days=4000").status == 400


def test_what_a_job_cost_and_how_well_it_used_its_gpus(daemon):
    busy = daemon.submit(command=SPIN, gpus=1, tenant="speech")
    idle = daemon.submit(command=SLEEP, gpus=2, tenant="speech")
    steps = daemon.submit(command=SLEEP, gpus=1, tenant="speech")
    daemon.until(steps, "running")
    assert valid(daemon, "Job", daemon.job(busy))["efficiency"]["verdict"] == "unknown"
    for i in range(3):
        daemon.post(f"/v1/jobs/{steps}/report", {"step": 10 * i})
        time.sleep(2)
    until(lambda: daemon.job(idle)["efficiency"]["verdict"] == "idle")
    e = daemon.job(idle)["efficiency"]
    assert e["util"] < 0.02 and e["gpus_idle"] == 2 and "--gpus 0" in e["advice"]
    assert e["gpu_hours"] > 2 * 30 / 3600 and e["money"] == pytest.approx(e["gpu_hours"] * 2.5, abs=1e-4) and e["currency"] == "EUR" and e["kwh"] is None
    until(lambda: daemon.job(busy)["efficiency"]["verdict"] == "good")
    assert daemon.job(busy)["efficiency"]["advice"] is None
    out = stoker(daemon, "show", str(idle))
    assert "GPU-hours" in out and "EUR" in out and "did nothing" in out
    assert "efficiency" not in daemon.get("/v1/jobs")["jobs"][0] and "efficiency" in daemon.get("/v1/jobs?detail=1")["jobs"][0]
    daemon.client().post(f"/v1/jobs/{idle}/cancel", {})
    assert daemon.wait(idle)["efficiency"]["verdict"] == "idle"
    assert daemon.stop() == 0
    daemon.start()
    assert daemon.job(idle)["efficiency"]["gpus_idle"] == 2


def test_a_long_look_is_cut_into_slices_and_all_who_ask_get_the_same(daemon):
    daemon.wait(daemon.submit(command=["/bin/true"], gpus=0, tenant="speech"))
    assert daemon.stop() == 0
    now = int(time.time())
    past.many(daemon.state, 3000, now)
    daemon.start()
    running = [daemon.submit(command=SLEEP, gpus=1, tenant="speech", name=f"now-{i}") for i in range(2)]
    for n in running:
        daemon.until(n, "running")
    path = f"/v1/report?since={now - 7 * 86400}&until={now + 60}&by=user"
    gone = subprocess.Popen(["curl", "-s", "--unix-socket", str(daemon.socket), f"http://localhost{path}"], stdout=subprocess.DEVNULL)
    gone.kill()
    gone.wait()
    answers = []
    threads = [threading.Thread(target=lambda p=p: answers.append(daemon.get(p))) for p in [path] * 6 + ["/v1/usage?days=28"] * 3]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE_S)
    assert len(answers) == 9
    reports = [a for a in answers if "waits" in a]
    assert len(reports) == 6 and all(r["all"]["jobs"] == 3000 + 1 + 2 and not r["truncated"] for r in reports)
    assert sum(g["jobs"] for g in reports[0]["groups"]) == 3003 and reports[0]["all"]["gpu_hours"] == pytest.approx(3000 * 4 / 6, rel=0.01)
    assert daemon.stop() == 0  # also while somebody asks
    daemon.start()
    asking = subprocess.Popen(["curl", "-s", "--unix-socket", str(daemon.socket), f"http://localhost{path}"], stdout=subprocess.DEVNULL)
    assert daemon.stop() == 0
    asking.wait(60)
