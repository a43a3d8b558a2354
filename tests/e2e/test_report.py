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
    """Two weeks of jobs and measurements of 4 GPUs, written while the daemon is down; the jobs, as past.plan() has them."""
    for words in ({}, {"class": "inference"}):
        daemon.wait(daemon.submit(command=["/bin/true"], gpus=0, tenant="speech", **words))
    assert daemon.stop() == 0
    first, jobs = past.invent(daemon.state, ["vision <b>", "speech"])
    daemon.start()
    return first, jobs


def hours(jobs, since, until, share=False):
    """GPU-hours of jobs in a period; with 'share' those at work."""
    return sum(max(0, min(begin + j[5], until) - max(begin, since)) * j[4] * (j[6] if share else 1) for begin, j in jobs) / 3600


def test_a_period_in_numbers_on_the_terminal_as_json_and_as_a_page(daemon, tmp_path):
    first, jobs = invent(daemon)
    since = int(time.time()) - 14 * 86400
    r = valid(daemon, "Summary", daemon.get(f"/v1/report?since={since}"))
    c, now = r["cluster"], int(time.time())
    allocated, active = hours(jobs, since, now), hours(jobs, since, now, share=True)
    assert c["gpus"] == 4 and c["gpu_hours"] == pytest.approx((now - max(first, since)) * 4 / 3600, rel=1e-4) and c["gpu_hours"] == pytest.approx(4 * c["hours"])
    assert c["allocated_gpu_hours"] == pytest.approx(allocated, abs=0.01) and c["active_gpu_hours"] == pytest.approx(active, rel=1e-4)
    assert c["allocated"] == pytest.approx(allocated / c["gpu_hours"], rel=1e-4) and c["active"] == pytest.approx(active / c["gpu_hours"], rel=1e-4)
    assert c["kwh"] == pytest.approx(14 * 24, rel=0.02) and c["idle_money"] == pytest.approx(c["idle_gpu_hours"] * 2.5)
    assert (r["all"]["gpu_hours"], r["all"]["active_gpu_hours"]) == (c["allocated_gpu_hours"], c["active_gpu_hours"])
    groups = {g["name"]: g for g in r["groups"]}
    vision, own = groups["vision <b>"], [(b, j) for b, j in jobs if j[1] == 0]
    assert vision["jobs"] == len(own) and vision["gpu_hours"] == pytest.approx(hours(own, 0, now), abs=0.01) and vision["money"] == pytest.approx(vision["gpu_hours"] * 2.5)
    assert vision["util"] == pytest.approx(hours(own, 0, now, share=True) / hours(own, 0, now), rel=0.01) and vision["wait_p50_s"] == 60
    assert vision["wait_p90_s"] == sorted(j[8] for _, j in own)[-(-9 * len(own) // 10) - 1] and vision["waited_s"] == sum(j[8] for _, j in own)
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
    week = daemon.get(f"/v1/report?since={since + 2 * 86400}&until={since + 9 * 86400}")  # some began before it, some have not begun
    assert week["cluster"]["allocated_gpu_hours"] == pytest.approx(hours(jobs, since + 2 * 86400, since + 9 * 86400), abs=0.01)
    assert week["cluster"]["gpu_hours"] == 7 * 24 * 4 and week["all"]["jobs"] == sum(b < since + 9 * 86400 and b + j[5] > since + 2 * 86400 for b, j in jobs)
    by = {u["name"] for u in daemon.get("/v1/report?by=user")["groups"]}
    assert "root" in by and daemon.client().get("/v1/report?by=colour").status == 400 and daemon.client().get("/v1/report?since=9&until=3").status == 422
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
    first, jobs = invent(daemon)
    u = valid(daemon, "Usage", daemon.get("/v1/usage?days=14"))
    cells = {(c["weekday"], c["hour"]): c for c in u["cells"]}
    assert len(cells) == 7 * 24
    begin, end, want = int(max(first, u["since"])), int(u["until"]), {}
    for quarter in range(begin - begin % 900, end, 900):
        lo, hi, t = max(quarter, begin), min(quarter + 900, end), time.localtime(quarter)
        n = want.setdefault((t.tm_wday, t.tm_hour), [0, 0, 0])
        for i, more in enumerate((hours(jobs, lo, hi), hours(jobs, lo, hi, share=True), (hi - lo) * 4 / 3600)):
            n[i] += more
    for key, c in cells.items():
        assert c["allocated"] == pytest.approx(want[key][0] / want[key][2], abs=0.005) and c["active"] == pytest.approx(want[key][1] / want[key][2], abs=0.005), key
        assert c["active"] <= c["allocated"] <= 1 and 0 < c["hours"] <= 3
    assert u["cluster"]["allocated_gpu_hours"] == pytest.approx(hours(jobs, begin, end), abs=0.01)
    assert {t["name"] for t in u["tenants"]} >= {"speech", "vision <b>"}
    assert {x["kind"] for x in u["recommendations"]} == {"idle_nights", "idle_jobs", "fewer_gpus", "share_gpu", "service_shrink"}
    assert [(t["job"], t["name"], t["unit"]) for t in u["throughput"]] == [(100000, "train", "steps")] and u["throughput"][0]["per_gpu_hour"] == pytest.approx(250, rel=0.02)
    year = valid(daemon, "Usage", daemon.get("/v1/usage?days=400"))  # more than one answer of measurements can have
    assert sum(c["hours"] for c in year["cells"]) == pytest.approx(year["cluster"]["hours"]) == pytest.approx(14 * 24, rel=0.01) and year["throughput"][0]["per_gpu_hour"] == pytest.approx(250, rel=0.05)
    assert daemon.client().get("/v1/usage?days=4000").status == 400


def test_what_a_job_cost_and_how_well_it_used_its_gpus(daemon):
    busy = daemon.submit(command=SPIN, gpus=1, tenant="speech")
    idle = daemon.submit(command=SLEEP, gpus=2, tenant="speech")
    steps = daemon.submit(command=SLEEP, gpus=1, tenant="speech")
    for number in (busy, idle, steps):
        daemon.until(number, "running")
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
