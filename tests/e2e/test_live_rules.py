# SPDX-License-Identifier: Apache-2.0
"""Rules on a running daemon: by the clock and by condition, from a file and added, over restarts."""
import json
import socket
import time

import pytest
from daemon import Daemon, stoker
from data import stoker_run
from patience import until

# In force at any time: it begins every midnight and lasts longer than a day.
ALWAYS = {"name": "boost", "when": "0 0 * * *", "until": "30h", "zone": "Europe/Berlin", "then": [{"kind": "train", "priority": "+300"}]}
FILE = """
every: 1s
rules:
  - name: from-the-file
    zone: Asia/Tokyo
    when: 0 0 * * *
    until: 30h
    then: [{kind: train, priority: +7}]
  - name: full
    when: {utilization_above: 90%, for: 1s}
    then: [{kind: batch, priority: -40}]
"""
NODE = socket.gethostname()


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path, gpus=2, config="{}\n") as d:
        yield d


def rule(daemon, name):
    return next((r for r in daemon.get("/v1/rules")["rules"] if r["name"] == name), None)


def priority(daemon, number):
    return daemon.job(number)["priority"]


def fill(daemon, gpus=2):
    return daemon.submit(command=["/bin/sleep", "1000"], gpus=gpus)


def test_a_rule_by_the_clock_changes_what_waits_and_goes_again(daemon):
    fill(daemon)
    waiting = daemon.submit(command=["/bin/true"], gpus=1, priority=500)
    assert priority(daemon, waiting) == 500
    assert daemon.post("/v1/rules", ALWAYS) == {"name": "boost"}
    assert priority(daemon, waiting) == 800
    assert rule(daemon, "boost")["in_force"] and rule(daemon, "boost")["next"] > time.time()
    later = daemon.submit(command=["/bin/true"], gpus=1, priority=100)
    assert priority(daemon, later) == 400
    daemon.kill()
    daemon.start()
    assert rule(daemon, "boost")["in_force"] and priority(daemon, waiting) == 800
    assert "removed" in stoker(daemon, "rule", "rm", "boost")
    assert priority(daemon, waiting) == 500 and priority(daemon, later) == 100
    daemon.kill()
    daemon.start()
    assert rule(daemon, "boost") is None and priority(daemon, waiting) == 500


def test_rules_of_a_file_and_conditions(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(FILE)
    with Daemon(tmp_path / "d", gpus=2, config=f"rules: {path}\n") as d:
        assert rule(d, "from-the-file")["in_force"] and rule(d, "from-the-file")["source"] == "file"
        assert not rule(d, "full")["in_force"]
        job = fill(d)
        waiting = d.submit(command=["/bin/true"], gpus=1, priority=500)
        assert priority(d, waiting) == 507
        until(lambda: rule(d, "full")["in_force"], say="the condition is seen")
        d.kill()
        d.start()
        assert rule(d, "full")["in_force"], "a condition that has begun is known after a restart"
        d.post(f"/v1/jobs/{job}/cancel")
        until(lambda: not rule(d, "full")["in_force"], say="and that it is gone")
        assert "is in the configuration" in stoker(d, "rule", "rm", "full", code=1)
        path.write_text("rules: []\n")
        d.reload()
        until(lambda: d.get("/v1/rules")["rules"] == [], say="the file is read again")
        fill(d)
        assert priority(d, d.submit(command=["/bin/true"], gpus=2, priority=500)) == 500


def test_the_command_line_adds_lists_shows_and_tests(daemon, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("zone: America/New_York\nrules:\n  - name: day\n    when: 0 8 * * *\n    until: 0 20 * * *\n"
                    "    then: [{kind: batch, priority: -50}, {param: tier.classes, value: '300'}]\n")
    text = stoker(daemon, "rule", "test", str(path), "--days", "3")
    assert text.count("from ") >= 3 and "America/New_York" in text and "priority -50" in text and "tier.classes=300" in text
    assert daemon.get("/v1/rules")["rules"] == []
    assert "rule day added" in stoker(daemon, "rule", "add", str(path))
    assert "America/New_York" in stoker(daemon, "rule", "list") and "0 8 * * *" in stoker(daemon, "rule", "list")
    shown = json.loads(stoker(daemon, "rule", "show", "day", "--json"))
    assert shown["until"] == "0 20 * * *" and shown["source"] == "added"
    times = json.loads(stoker(daemon, "rule", "test", "day", "--json"))["times"]
    assert all(11.9 * 3600 < t["end"] - t["begin"] < 12.1 * 3600 for t in times) and len(times) >= 6
    assert "already" in stoker(daemon, "rule", "add", str(path), code=1)
    assert "there is no rule" in stoker(daemon, "rule", "show", "night", code=1)


def test_what_a_rule_changes_is_told_with_names_and_units(tmp_path):
    """Not "tenant 2, limit: 6": those numbers are nobody's but the daemon's."""
    said = {"{tenant: vision, limit: 6}": "tenant vision: limit 6 GPUs", "{tenant: vision, limit: 2.5, gpu_type: virtual}": "tenant vision: limit 2.5 GPUs of type virtual",
            "{tenant: vision, limit: none}": "tenant vision: no limit on GPUs", "{tenant: speech, guarantee: 2}": "tenant speech: guarantee 2 GPUs",
            "{tenant: speech, weight: 3}": "tenant speech: weight 3", "{tenant: speech, keep_up: 1}": "tenant speech: at least 1 job stays up",
            "{tenant: speech, cpus: 64}": "tenant speech: limit 64 CPUs", "{tenant: speech, mem_gib: 512}": "tenant speech: limit 512 GiB of memory",
            "{queue: express, user_gpus: 2, user_jobs: 4}": "queue express: at most 2 GPUs per user\n  queue express: at most 4 jobs per user",
            "{queue: express, job_time: 1h}": "queue express: at most 1:00:00 run time per job", "{queue: express, priority: +9}": "queue express: priority +9",
            "{kind: batch, priority: -50}": "jobs of kind batch: priority -50", f"{{pool: default, nodes: [{NODE}]}}": f"node {NODE}: to pool default when it is empty",
            "{param: tier.classes, value: '300'}": "parameter tier.classes=300"}
    with Daemon(tmp_path / "d", gpus=4, config="tenants: [{name: speech}, {name: vision}]\n") as d:
        wrong = []
        for then, words in said.items():
            path = tmp_path / "r.yaml"
            path.write_text(f"rules:\n  - name: r\n    when: 0 8 * * *\n    until: 0 20 * * *\n    then: [{then}]\n")
            done = stoker_run("rule", "test", path, env={**d.env, "STOKER_SOCKET": str(d.socket)})
            if words not in done.stdout:
                wrong.append((then, words, done.stdout + done.stderr))
        assert not wrong


def test_what_is_wrong_is_said(daemon):
    for change, says in [({"then": []}, "at least one"), ({"when": "0 25 * * *"}, "hour must be numbers"), ({"zone": "Europe/Atlantis"}, "no time zone"),
                         ({"until": None}, "needs an end"), ({"until": "gone"}, "needs an end"), ({"then": [{"kind": "game", "priority": "+1"}]}, "no kind of jobs"),
                         ({"then": [{"tenant": "x", "limit": 3}]}, "no tenant \"x\""), ({"then": [{"kind": "train", "priorty": "+1"}]}, "did you mean \"priority\"")]:
        body = {k: v for k, v in {**ALWAYS, **change}.items() if v is not None}
        answer = daemon.client().post("/v1/rules", body)
        assert answer.status == 422 and says in answer.json["error"]["message"], answer
    assert daemon.get("/v1/rules")["rules"] == []


def test_a_value_that_is_refused_is_told_and_the_rest_holds(daemon):
    fill(daemon)
    waiting = daemon.submit(command=["/bin/true"], gpus=1, priority=500)
    rules = {**ALWAYS, "then": [{"param": "no.such", "value": "1"}, {"kind": "train", "priority": "+300"}]}
    daemon.post("/v1/rules", rules)
    assert "no policy in use has a parameter" in rule(daemon, "boost")["error"]
    assert priority(daemon, waiting) == 800
    assert daemon.errors_with("is not followed")


def test_limits_of_tenants_and_what_was_set_by_hand(tmp_path):
    config = "tenants:\n  - {name: red, limit: 2, users: [root]}\n  - {name: blue, limit: 2}\n"
    with Daemon(tmp_path / "d", gpus=2, config=config) as d:
        d.post("/v1/tenants/blue/quota", {"limit": 1})
        d.post("/v1/rules", {**ALWAYS, "then": [{"tenant": "red", "limit": 1}]})
        limits = lambda: {t["name"]: t["limit"] for t in d.get("/v1/tenants")["tenants"]}
        assert (limits()["red"], limits()["blue"]) == (1, 1), limits()
        d.kill()
        d.start()
        assert (limits()["red"], limits()["blue"]) == (1, 1)
        stoker(d, "rule", "rm", "boost")
        assert (limits()["red"], limits()["blue"]) == (2, 1)
        d.kill()
        d.start()
        assert (limits()["red"], limits()["blue"]) == (2, 1)
