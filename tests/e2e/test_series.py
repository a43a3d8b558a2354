# SPDX-License-Identifier: Apache-2.0
"""Measurements over time, on a real daemon with real processes."""
import getpass
import sqlite3
import time

import jsonschema
import pytest

from daemon import Daemon
from patience import until

SPIN = ["/bin/sh", "-c", "while :; do :; done"]
SLEEP = ["/bin/sleep", "600"]
ME = getpass.getuser()
CONFIG = f"series: {{step: 1s}}\npolicy: {{preempt: reclaim}}\ntenants: [{{name: vision, limit: 3, guarantee: 1, users: [{ME}]}}, {{name: speech, users: [{ME}]}}]\n"


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path, gpus=4, config=CONFIG)
    d.start()
    yield d
    d.close()


def series(daemon, **query):
    a = daemon.get("/v1/series?" + "&".join(f"{k}={v}" for k, v in query.items()))
    document = daemon.get("/openapi.json")
    jsonschema.validate(a, {**document["components"]["schemas"]["Series"], "components": document["components"]})
    for s in a["series"]:
        for column in s.values():
            if isinstance(column, list):
                assert len(column) == round((a["until"] - a["since"]) / a["step_s"])
    return a


def known(column):
    return [v for v in column if v is not None]


def test_jobs_gpus_tenants_and_the_whole_are_measured(daemon):
    busy = daemon.submit(command=SPIN, gpus=2, tenant="vision")
    idle = daemon.submit(command=SLEEP, gpus=1, tenant="speech")
    daemon.until(busy, "running")
    daemon.until(idle, "running")
    daemon.post(f"/v1/jobs/{busy}/report", {"step": 7})
    until(lambda: 7 in known(series(daemon, of="job", id=busy)["series"][0]["step"]))
    until(lambda: len(known(series(daemon, of="job", id=idle)["series"][0]["cpus"])) > 2)
    j = series(daemon, of="job", id=busy)["series"][0]
    assert known(j["gpus"])[-1] == 2 and max(known(j["active"])) == 2 and max(known(j["cpus"])) > 0.05 and max(known(j["rss_mib"])) > 0.1
    assert known(series(daemon, of="job", id=idle)["series"][0]["active"])[-1] == 0
    each = series(daemon, of="job_gpu", id=busy)["series"]
    assert [g["member"] for g in each] == [0, 1] and [known(g["index"])[-1] for g in each] == daemon.job(busy)["gpu_indices"]
    assert all(max(known(g["active"])) == 1 and not known(g["util"]) for g in each)
    assert not known(series(daemon, of="job_gpu", id=idle)["series"][0]["active"]), "of one GPU, the job's own series says it all"
    gpus = series(daemon, of="gpu")["series"]
    assert [g["gpu"] for g in gpus] == [0, 1, 2, 3] and sum(known(g["allocated"])[-1] for g in gpus) == 3
    assert sum(max(known(g["active"])) for g in gpus) == 2 and not known(gpus[0]["util"])
    assert len(series(daemon, of="gpu", gpu=2)["series"]) == 1
    tenants = {t["name"]: t for t in series(daemon, of="tenant")["series"]}
    assert {"vision", "speech"} <= set(tenants)
    assert known(tenants["vision"]["used"])[-1] == 2 and known(tenants["vision"]["limit"])[-1] == 3 and not known(tenants["speech"]["limit"])
    assert sum(known(tenants["vision"]["started"])) == 1 and known(tenants["vision"]["wait_s"])
    whole = series(daemon, of="cluster")["series"][0]
    assert known(whole["gpus"])[-1] == 4 and known(whole["allocated"])[-1] == 3 and sum(known(whole["started"])) == 2
    daemon.client().post(f"/v1/jobs/{idle}/cancel", {})
    until(lambda: sum(known(series(daemon, of="cluster")["series"][0]["ended"])) == 1)


def test_a_restart_loses_nothing_and_coarser_steps_say_the_same(daemon):
    n = daemon.submit(command=SLEEP, gpus=1, tenant="speech")
    daemon.until(n, "running")
    since = int(time.time()) - 5
    until(lambda: len(known(series(daemon, of="job", id=n, since=since)["series"][0]["gpus"])) > 3)
    before = len(known(series(daemon, of="job", id=n, since=since)["series"][0]["gpus"]))
    assert daemon.stop() == 0
    daemon.start()
    until(lambda: len(known(series(daemon, of="job", id=n, since=since)["series"][0]["gpus"])) > before)
    for step in (1, 60, 900):
        a = series(daemon, of="job", id=n, since=since, step=step)
        assert a["step_s"] == step and set(known(a["series"][0]["gpus"])) == {1}
    a = series(daemon, of="cluster", since=since - 7 * 86400, step=1)
    assert a["step_s"] == 900 and known(a["series"][0]["gpus"]) == [4] * len(known(a["series"][0]["gpus"])) and known(a["series"][0]["gpus"])


def test_what_cannot_be_answered_is_refused_with_a_reason(daemon):
    c = daemon.client()
    for query, status in [("of=moon", 400), ("", 400), ("of=job", 422), ("of=job_gpu", 422), ("of=gpu&node=nowhere", 404), ("of=tenant&name=nobody", 404),
                          ("of=cluster&since=100&until=50", 422), ("of=gpu&since=x", 400), ("of=cluster&colour=red", 400)]:
        a = c.get("/v1/series?" + query)
        assert a.status == status and a.json["error"]["message"], query
    assert daemon.web().get("/v1/series?of=cluster").status == 401
    many = c.get(f"/v1/series?of=gpu&since={int(time.time()) - 390 * 86400}&step=900")
    assert many.status == 413 and "longer step" in many.json["error"]["message"]
    assert not known(series(daemon, of="job", id=4711)["series"][0]["gpus"])


def test_what_a_job_used_is_kept_with_it(daemon):
    n = daemon.submit(command=["/bin/sh", "-c", "i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done; sleep 4"], gpus=1, tenant="speech")
    assert daemon.wait(n, timeout=120)["cause"] == "completed"
    assert daemon.stop() == 0
    rows = sqlite3.connect(daemon.state / "stoker.db").execute("SELECT number, seen_s, gpu_s, active_s, cpu_s FROM usage").fetchall()
    daemon.start()
    assert [r[0] for r in rows] == [n]
    assert rows[0][1] > 2 and abs(rows[0][2] - rows[0][1]) < 0.01 and rows[0][3] < rows[0][2] and rows[0][4] > 0
