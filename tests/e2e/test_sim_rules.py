# SPDX-License-Identifier: Apache-2.0
"""Rules in the simulator; the case studies of examples/day-and-night with the figures of docs/guide/day-and-night.md."""
import csv
import json
import pathlib
import subprocess
import sys

import pytest
from data import stoker_run

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDY = ROOT / "examples" / "day-and-night"
STUDIES = {"day": ("", []), "sun": ("sun-", ["Europe/Berlin:inference-eu", "America/New_York:inference-us", "Asia/Tokyo:inference-ap"])}


@pytest.fixture(scope="module", name="study", params=sorted(STUDIES))
def study_runs(request, tmp_path_factory):
    """Both runs of a study as JSON, and the waits of its jobs by bundle and kind."""
    prefix, words = STUDIES[request.param]
    folder = tmp_path_factory.mktemp("study")
    trace, rows = folder / "jobs.jsonl", folder / "jobs.csv"
    trace.write_text(subprocess.run([sys.executable, str(STUDY / "jobs.py"), *words], capture_output=True, text=True, check=True).stdout)
    jobs = {j["id"]: j for j in map(json.loads, trace.read_text().splitlines())}
    out = stoker_run("sim", str(trace), "--cluster", str(STUDY / f"{prefix}cluster.yaml"), "--split-by", "vc", "--rules", str(STUDY / f"{prefix}rules.yaml"),
                     "--before", "--param", "restart_s=60", "--paranoid", "--json", "--jobs-out", str(rows))
    assert out.returncode == 0, out.stderr
    waits = {}
    for row in csv.DictReader(rows.open()):
        waits.setdefault((row["bundle"], jobs[row["id"]]["kind"]), []).append(float(row["wait_s"]))
    return request.param, json.loads(out.stdout), waits


def test_all_train_at_night_and_inference_does_not_suffer(study):
    _, runs, waits = study
    before, after = runs["runs"]
    assert after["utilization"] > 2 * before["utilization"] and after["utilization"] > 0.7
    mean = {k: sum(v) / len(v) for k, v in waits.items()}
    plain, ruled = before["bundle"], after["bundle"]
    assert mean[ruled, "train"] < mean[plain, "train"] / 10
    assert mean[ruled, "service"] == mean[plain, "service"] < 200
    assert before["preemptions"] == 0 < after["preemptions"]


def test_the_guide_has_these_figures(study):
    name, runs, _ = study
    guide = (ROOT / "docs" / "guide" / "day-and-night.md").read_text()
    for run in runs["runs"]:
        assert f"{100 * run['utilization']:.1f}%" in guide, (name, run["bundle"])


def sim(tmp_path, rules, *words, jobs=None, cluster="2x8"):
    (tmp_path / "r.yaml").write_text(rules)
    trace = tmp_path / "t.jsonl"
    trace.write_text("\n".join(json.dumps(j) for j in jobs or [{"id": 1, "submit_s": 0, "duration_s": 100, "gpus": 1}]) + "\n")
    return stoker_run("sim", str(trace), "--cluster", cluster, "--rules", str(tmp_path / "r.yaml"), "--json", "--paranoid", *words)


def test_a_wait_turns_the_queue_around(tmp_path):
    """A batch job that has waited for ten minutes is put before the training that keeps coming."""
    jobs = [{"id": i + 1, "submit_s": 100 * i, "duration_s": 600, "gpus": 16, "kind": "train", "priority": 500} for i in range(10)]
    jobs.insert(2, {"id": 100, "submit_s": 110, "duration_s": 60, "gpus": 16, "kind": "batch", "priority": 100})
    rules = "rules: [{name: old, when: {wait_above: 10m}, until: 2h, then: [{kind: batch, priority: +1000}]}]"
    words = ["--bundle", "fifo", "--order", "priority", "--preempt", "none", "--jobs-out", str(tmp_path / "j.csv")]
    out = sim(tmp_path, rules, "--before", *words, jobs=jobs)
    assert out.returncode == 0, out.stderr
    waits = {(r["bundle"], r["id"]): float(r["wait_s"]) for r in csv.DictReader((tmp_path / "j.csv").open())}
    by_rule = [v for (bundle, number), v in waits.items() if number == "100"]
    assert by_rule[0] > 5000 and by_rule[1] < 1300


def test_limits_by_the_clock(tmp_path):
    """By day the team has four GPUs, at night all."""
    (tmp_path / "teams.yaml").write_text("tenants: [{name: red}]\n")
    jobs = [{"id": i + 1, "submit_s": 0, "duration_s": 3600, "gpus": 4, "tenant": "red"} for i in range(8)]
    rules = "zone: Europe/Berlin\nrules: [{name: day, when: 0 8 * * *, until: 0 20 * * *, then: [{tenant: red, limit: 4}]}]"
    out = sim(tmp_path, rules, "--tenants", str(tmp_path / "teams.yaml"), "--start", "2026-07-01 17:00", "--zone", "Europe/Berlin", jobs=jobs)
    assert out.returncode == 0, out.stderr
    # one at a time until 20:00, then four at a time: 3 h and then 5 jobs in two hours
    assert json.loads(out.stdout)["runs"][0]["makespan_s"] == pytest.approx(5 * 3600, abs=1)


@pytest.mark.parametrize(("rules", "words", "says"), [
    ("rules: [{name: x, when: 0 8 * * *, until: 1h, then: [{pool: mars, nodes: 0}]}]", [], 'there is no pool "mars"'),
    ("rules: [{name: x, when: 0 0 * * *, until: 24h, then: [{param: no.such, value: 1}]}]", [], 'rule "x": no policy in use has a parameter "no.such"'),
    ("rules: []", ["--start", "yesterday"], "a date is 2026-11-16"),
    ("rules: []", ["--zone", "Europe/Atlantis"], "there is no time zone"),
    ("rules: 3", [], "rules must be a list"),
])
def test_what_is_wrong_is_said(tmp_path, rules, words, says):
    out = sim(tmp_path, rules, *words)
    assert out.returncode == 2 and says in out.stderr, out.stderr


def test_before_needs_rules():
    out = stoker_run("sim", "--generate", "jobs=5", "--cluster", "2x8", "--before")
    assert out.returncode == 2 and "go with --rules" in out.stderr
