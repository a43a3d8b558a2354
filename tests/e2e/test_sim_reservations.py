# SPDX-License-Identifier: Apache-2.0
"""Reservations in the simulator: stoker sim --reservations, and GPUs kept free for gangs with the figures of docs/spec/reservations.md."""
import csv
import json
import pathlib
import re
import subprocess
import sys

import pytest
from data import stoker_run

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOBS = [
    {"id": "a", "submit_s": 0, "duration_s": 100000, "gpus": 4},
    {"id": "lesson", "submit_s": 32400, "duration_s": 3000, "gpus": 8, "tenant": "red"},
    {"id": "show", "submit_s": 47000, "duration_s": 3000, "gpus": 4, "user": "ann"},
    {"id": "late", "submit_s": 90000, "duration_s": 100000, "gpus": 1, "reservation": "repair"},
]


def sim(tmp_path, text, *words, jobs=None, cluster="3x8"):
    (tmp_path / "r.yaml").write_text(text)
    trace = tmp_path / "t.jsonl"
    trace.write_text("\n".join(json.dumps(j) for j in jobs or JOBS) + "\n")
    return stoker_run("sim", str(trace), "--cluster", cluster, "--reservations", str(tmp_path / "r.yaml"), "--bundle", "fifo-skip", "--paranoid", *words)


def test_windows_come_again_lapse_and_are_refused_and_the_report_says_so(tmp_path):
    text = """
zone: Europe/Berlin
reservations:
  - {name: class, gpus: 8, for: 2h, cron: "0 9 * * *", tenant: red, grace: 30m}
  - {name: repair, nodes: 2, for: 4h, start: 6h}
  - {name: again, nodes: "2:4", for: 1h, start: 8h}
  - {name: demo, gpus: 4, for: 1h, start: "2026-11-16 14:00", job: show}
"""
    out = sim(tmp_path, text, "--json", "--zone", "Europe/Berlin")
    assert out.returncode == 0, out.stderr
    rows = {r["name"]: r for r in json.loads(out.stdout)["runs"][0]["reservations"]}
    assert (rows["class"]["windows"], rows["class"]["lapsed"]) == (2, 1)  # used on the first day, not on the second
    assert rows["repair"] == {"name": "repair", "windows": 1, "lapsed": 0, "refused": 0, "gpu_hours": 32}
    assert rows["again"]["refused"] == 1 and "overlaps" in rows["again"]["note"]
    assert rows["demo"]["windows"] == 1
    table = sim(tmp_path, text, "--zone", "Europe/Berlin").stdout
    assert re.search(r"reservation class: 2 windows, 1 lapsed, 0 refused", table), table
    assert "refused: node 2 has 0 GPUs left" in table


def test_with_and_without(tmp_path):
    out = sim(tmp_path, "reservations: [{name: repair, nodes: 0-2, for: 4h, start: 0}]", "--json", "--before", jobs=JOBS[:1])
    assert out.returncode == 0, out.stderr
    before, after = json.loads(out.stdout)["runs"]
    assert before["avg_wait_s"] == 0 and after["avg_wait_s"] == 4 * 3600
    assert "reservations" not in before and after["reservations"][0]["windows"] == 1


@pytest.mark.parametrize("text, said", [
    ("reservations: 7", "must be a list"),
    ("windows: []", '"windows" is not known: zone, reservations'),
    ("reservations: [{gpus: 1, for: 1h}]", "needs a name"),
    ("reservations: [{name: x, gpus: 1}]", "for must be a time such as 90m"),
    ("reservations: [{name: x, gpu: 1, for: 1h}]", '"gpu" is not known; did you mean "gpus"?'),
    ("reservations: [{name: x, gpus: 1, for: 1h}, {name: x, gpus: 1, for: 1h}]", "there is another of this name"),
    ("reservations: [{name: x, gpus: 1, for: 1h, start: 1h, cron: 0 9 * * *}]", "start or cron, not both"),
    ("reservations: [{name: x, gpus: 1, for: 1h, cron: 0 9 * *}]", "cron"),
    ("reservations: [{name: x, gpus: 1, for: 1h, cron: 0 9 * * *, tz: Nowhere/City}]", "Nowhere/City"),
    ("reservations: [{name: x, nodes: 7, for: 1h}]", 'there is no node "7" here'),
    ("reservations: [{name: x, nodes: 1, gpus: 2, for: 1h}]", "has nodes, so gpus"),
    ("reservations: [{name: x, gpus: 1, for: 1h, pool: y}]", 'there is no pool "y" here'),
    ("reservations: [{name: x, gpus: 1, for: 1h, user: a, job: b}]", "not for several"),
    ("reservations: [{name: x, gpus: 1, for: 1h, evict: perhaps}]", "evict must be yes or no"),
])
def test_what_is_wrong_is_said(tmp_path, text, said):
    out = sim(tmp_path, text)
    assert out.returncode != 0 and said in out.stderr, out.stderr


def test_a_job_that_names_none_of_them_is_refused(tmp_path):
    out = sim(tmp_path, "reservations: []")
    assert out.returncode != 0 and 'job late' in out.stderr and 'no reservation "repair"' in out.stderr, out.stderr


# ---- GPUs kept free for gangs ----

STEADY = ROOT / "examples" / "steady" / "jobs.py"
POLICIES = {
    "skip": ["--bundle", "fifo-skip"],
    "all": ["--bundle", "fifo-skip", "--param", "drain.after_s=3600"],
    "big": ["--bundle", "fifo-skip", "--param", "drain.after_s=3600", "--param", "drain.gpus=16"],
    "easy": ["--bundle", "easy"],
}


@pytest.fixture(scope="module", name="waits")
def steady_waits(tmp_path_factory):
    """Waits in hours, by policy and kind of job: mean and longest."""
    folder = tmp_path_factory.mktemp("steady")
    trace = folder / "t.jsonl"
    trace.write_text(subprocess.run([sys.executable, str(STEADY)], capture_output=True, text=True, check=True).stdout)
    gangs = {str(j["id"]) for j in map(json.loads, trace.read_text().splitlines()) if j["gpus"] * j.get("tasks", 1) >= 16}
    found = {}
    for name, words in POLICIES.items():
        rows = folder / f"{name}.csv"
        out = stoker_run("sim", str(trace), "--cluster", "8x8", "--json", "--jobs-out", str(rows), *words)
        assert out.returncode == 0, out.stderr
        run = json.loads(out.stdout)["runs"][0]
        all_waits = [(r["id"] in gangs, float(r["wait_s"]) / 3600) for r in csv.DictReader(rows.open())]
        for kind in (True, False):
            w = [wait for gang, wait in all_waits if gang == kind]
            found[name, kind] = (sum(w) / len(w), max(w))
        found[name, "utilization"] = run["utilization"]
        found[name, "drains"] = (run.get("drains", 0), run.get("drains_given_up", 0))
    return found


def test_gangs_wait_less_and_others_little_more(waits):
    assert waits["big", True][1] < waits["skip", True][1] / 10
    assert waits["big", "drains"][0] > 0 and waits["big", "drains"][1] == 0


def test_the_page_has_these_figures(waits):
    page = (ROOT / "docs" / "spec" / "reservations.md").read_text()
    for name in POLICIES:
        row = [f"{x:.1f}" for x in (*waits[name, True], *waits[name, False])] + [f"{100 * waits[name, 'utilization']:.1f}%"]
        assert " | ".join(row) in page, (name, row)
