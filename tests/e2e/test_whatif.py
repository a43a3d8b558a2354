# SPDX-License-Identifier: Apache-2.0
"""What would have happened: the daemon's own past replayed, imported pasts, baselines, and notes of what was changed. Against
a real daemon with real jobs; the simulator runs in a program beside it."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from daemon import STOKER, STOKERD, Daemon, stoker  # noqa: E402
from patience import until  # noqa: E402

CONFIG = """
policy: {bundle: fifo}
tenants:
  - {name: vision, limit: 2, users: [root]}
  - {name: nlp, limit: 4}
"""
pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    """A daemon of four GPUs with a little past: jobs of two GPUs that a limit made wait for each other."""
    with Daemon(tmp_path_factory.mktemp("whatif"), gpus=4, config=CONFIG) as d:
        d.began = time.time() - 1
        jobs = [d.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; sleep 1"], gpus=2)]
        d.post(f"/v1/jobs/{jobs[0]}/report", {"step": 500})  # nobody says anything of one that has ended
        jobs += [d.submit(command=["/bin/sleep", "1"], gpus=2) for _ in range(2)]
        jobs.append(d.submit(command=["/bin/sleep", "0.2"], gpus=1, depends=[{"type": "afterok", "job": jobs[0]}]))
        (d.folder / "go").touch()
        d.past = jobs
        for job in jobs:
            assert d.wait(job)["cause"] == "completed"
        yield d


def check(d, schema, value):
    document = d.get("/openapi.json")
    jsonschema.Draft202012Validator({"$ref": "#/components/schemas/" + schema, "components": document["components"]}).validate(value)


def answer(d, question, code=201):
    a = d.client().post("/v1/whatif", question)
    assert a.status == code, a
    if code != 201:
        return a.message
    number = a.json["id"]
    def answered():
        check(d, "WhatIf", q := d.get(f"/v1/whatif/{number}"))
        return q["state"] in ("done", "failed") and q
    return until(answered, pause=0.1)


def test_the_past_is_replayed_as_it_was_and_with_changes(past):
    q = answer(past, {"since": past.began, "changes": {"quotas": {"vision": {"limit": 4}}}, "title": "twice as much"})
    assert q["state"] == "done", q
    r = q["result"]
    assert r["jobs"]["compared"] == 4
    assert r["recorded"]["finished"] == r["before"]["finished"] == r["after"]["finished"] == 4
    # with a limit of two GPUs they ran one after the other, and do so in the simulator, which loses no time in between
    end, waits = 0, []
    for job in map(past.job, past.past):
        waits.append(max(end - job["submitted"], 0))
        end = job["submitted"] + waits[-1] + job["run_s"]
    assert r["before"]["avg_wait_s"] == pytest.approx(sum(waits) / 4, abs=0.1) and r["recorded"]["avg_wait_s"] > r["before"]["avg_wait_s"] - 0.1
    assert r["before"]["max_waiting"] >= 2
    assert r["after"]["avg_wait_s"] < r["before"]["avg_wait_s"] - 0.3
    # the same work in the same period, in which all of it got done
    assert r["after"]["utilization"] == r["before"]["utilization"] <= 1 and r["after"]["makespan_s"] < r["before"]["makespan_s"]
    assert r["before"]["gpu_hours"] == pytest.approx(r["recorded"]["gpu_hours"], abs=1e-5)
    assert all(r["recorded"][k] == r["actual"][k] for k in ("utilization", "gpu_hours", "preemptions"))
    assert q["question"]["title"] == "twice as much"
    q = answer(past, {"since": past.began, "changes": {"add_nodes": "1x4", "policy": {"bundle": "easy", "params": ["sim.window_s=60"]}}})
    assert q["state"] == "done", q
    assert (q["result"]["before"]["gpus"], q["result"]["after"]["gpus"]) == (4, 8)
    assert "backfill=easy" in q["result"]["after"]["policies"] and "backfill=none" in q["result"]["before"]["policies"]
    listed = past.get("/v1/whatif")
    check(past, "WhatIfs", listed)
    assert listed["questions"][0]["summary"]["after"]["avg_wait_s"] == q["result"]["after"]["avg_wait_s"]
    assert "result" not in listed["questions"][0] and "summary" not in listed["questions"][0]["question"]


def test_the_load_over_time_and_the_tenants_are_in_the_answer(past):
    q = answer(past, {"since": past.began, "changes": {"add_nodes": "2x4", "remove_nodes": "1x4"}})
    assert q["state"] == "done", q
    r = q["result"]
    assert r["machines"]["after"][0]["count"] == 2 and r["machines"]["before"][0]["count"] == 1
    assert r["before"]["gpus"] == 4 and r["after"]["gpus"] == 8
    (vision,) = r["before"]["tenants"]
    assert vision["tenant"] == "vision" and vision["jobs"] == 4
    assert vision["avg_wait_s"] == pytest.approx(r["before"]["avg_wait_s"], abs=0.01)
    assert vision["avg_jct_s"] == pytest.approx(r["before"]["avg_jct_s"], abs=0.01)
    s = r["series"]
    for side in ("recorded", "before", "after"):
        gpus, waiting = s[side]["gpus"], s[side]["waiting"]
        assert len(gpus) == len(waiting) <= 240
        # never more than the limit of vision; what was in use adds up to the GPU-hours
        assert 0 < max(x for x in gpus if x is not None) <= 3
        hours = sum(x for x in gpus if x is not None) * s["step_s"] / 3600
        assert hours == pytest.approx(r[side]["gpu_hours"], rel=0.1), side


def test_the_world_is_resolved_as_the_daemon_does(tmp_path):
    """Where tenants are configured and no bundle is, the daemon runs "teams": so does what is simulated."""
    with Daemon(tmp_path, gpus=2, config="tenants:\n  - {name: a, users: [root]}\n") as d:
        began = time.time() - 1
        d.wait(d.submit(command=["/bin/true"], gpus=1))
        r = answer(d, {"since": began, "changes": {"policy": {"preempt": "none"}}})["result"]
        assert "order=fairshare" in r["before"]["policies"] and "preempt=reclaim" in r["before"]["policies"]
        assert "drain.after_s=7200" in r["after"]["policies"]


def test_what_there_is_to_choose_from(past):
    p = past.get("/v1/policies")
    check(past, "Policies", p)
    assert p["present"] == "fifo" and p["words"]["bundle"] == "fifo"
    names = [b["name"] for b in p["bundles"]]
    assert "easy" in names and "teams" in names and "hetero" not in names and "lucid-srtf" not in names
    for kind in ("order", "backfill", "place", "preempt"):
        for policy in p[kind]:
            assert set(policy["params"]) <= set(p["params"]), policy
    for bundle in ("easy", "fair", "teams"):  # what is offered can be asked for
        q = answer(past, {"since": past.began, "changes": {"policy": {"bundle": bundle}}})
        assert q["state"] == "done", q["error"]


@pytest.mark.parametrize("question,sentence", [
    ({"changes": {}}, "since must be given"),
    ({"since": 1, "until": 2, "what": 1}, "a question has"),
    ({"import": {"format": "sacct"}}, "import.text"),
    ({"since": 1, "until": 2, "changes": {"policy": {"colour": "red"}}}, "policy must be an object"),
    ({"since": 1, "until": 2, "changes": {"policy": {"order": 1}}}, "policy must be an object"),
    ({"since": 1, "until": 2, "changes": {"quotas": {"vision": None}}}, "quotas must be"),
    ({"since": 1, "until": 2, "changes": {"quotas": {"vision": {"limit": "8"}}}}, "quotas must be"),
    ({"since": 1, "until": 2, "changes": {"add_nodes": 2}}, "add_nodes and remove_nodes are texts"),
    ({"since": 1, "until": 2, "changes": {"weather": 1}}, "changes has policy, add_nodes"),
])
def test_what_is_no_question_is_refused(past, question, sentence):
    assert sentence in answer(past, question, code=400)


@pytest.mark.parametrize("question,status,sentence", [
    ({"since": 5, "until": 4}, 422, "since must be before until"),
    ({"since": 0}, 422, "at most 366 days"),
    ({"import": {"text": "x" * (9 << 20)}}, 413, "larger than 8 MiB"),
    ({"import": {"text": "x", "name": "n" * 3000}}, 413, "at most 2048 bytes"),
    ({"since": 1, "until": 2, "changes": {"policy": {"params": ["x" * 300000]}}}, 413, "more than 256 KiB"),
])
def test_a_question_that_is_too_large_or_of_no_period_is_refused(past, question, status, sentence):
    assert sentence in answer(past, question, code=status)


@pytest.mark.parametrize("changes,sentence", [
    ({"policy": {"order": "nonsense"}}, "policy: "),
    ({"policy": {"params": ["no.such=1"]}}, "there is no parameter \"no.such\""),
    ({"policy": {"params": ["las.round_s=60"]}}, "no policy of this run takes las.round_s=60"),
    ({"quotas": {"nobody": {"limit": 1}}}, "there was no tenant \"nobody\""),
    ({"quotas": {"vision": {"limit": -1}}}, "a number from 0 on"),
    ({"add_nodes": "/etc/passwd"}, "words such as 4x8:H100"),
    ({"add_nodes": "1000000x8"}, "at most 100000 nodes"),
    ({"remove_nodes": "../x"}, "remove_nodes must be words such as 4x8:H100"),
    ({"remove_nodes": "2x4"}, "not that many nodes of 4 GPUs"),
    ({"remove_nodes": "1x4:H100"}, "not that many nodes of 4 GPUs of type H100"),
    ({"remove_nodes": "1x4"}, "no machine would be left"),
])
def test_a_change_that_cannot_be_says_why(past, changes, sentence):
    q = answer(past, {"since": past.began, "changes": changes})
    assert q["state"] == "failed" and sentence in q["error"], q


def test_an_imported_past_needs_no_history(past):
    head = "JobIDRaw|JobID|User|Account|Submit|Start|ElapsedRaw|State|AllocTRES\n"
    row = "{0}|{0}|ann|nlp|2026-10-05T08:00:0{0}|2026-10-05T0{1}:00:00|3600|COMPLETED|gres/gpu:a100=4,gres/gpu=4\n"
    text = head + row.format(1, 9) + row.format(2, 9)
    q = answer(past, {"import": {"text": text}, "changes": {"policy": {"order": "sjf"}}})
    assert q["state"] == "done", q
    assert q["result"]["recorded"]["avg_wait_s"] > 3500 and q["result"]["before"]["avg_wait_s"] == 0
    digest = q["question"]["import"].pop("digest")
    assert len(digest) == 16 and q["question"]["import"] == {"bytes": len(text)}
    q = answer(past, {"import": {"text": text, "name": "october.txt"}, "changes": {"quotas": {"nlp": {"limit": 4}}, "add_nodes": "1x4:a100"}})
    assert q["state"] == "done", q
    assert q["question"]["import"] == {"bytes": len(text), "digest": digest, "name": "october.txt"}
    assert q["result"]["after"]["avg_wait_s"] > 1700 and q["result"]["before"]["avg_wait_s"] == 0  # one after the other
    q = answer(past, {"import": {"text": text + "\n"}, "changes": {"quotas": {"who": {"limit": 4}}}})
    assert q["question"]["import"]["digest"] != digest
    assert q["state"] == "failed" and "there was no tenant \"who\"" in q["error"]
    q = answer(past, {"import": {"text": text, "cluster": "1x4:a100"}, "changes": {}})
    assert q["result"]["before"]["gpus"] == 4 and q["result"]["after"] is None
    q = answer(past, {"import": {"text": "JobID|State\n1|RUNNING\n"}, "changes": {}})
    assert q["state"] == "failed" and "make the file with: sacct" in q["error"]
    q = answer(past, {"import": {"text": text, "cluster": "/etc/shadow"}, "changes": {}})
    assert q["state"] == "failed" and "words such as" in q["error"]


def test_a_period_of_which_no_job_has_ended_says_so(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        d.until(d.submit(command=["/bin/sleep", "600"], gpus=1), "running")
        said = stoker(d, "whatif", "--since", "1h", code=1)
        assert "no job of that period can be replayed: none was submitted in it, ran and ended (1 still run" in said and "a longer period" in said


def test_the_command_asks_waits_and_shows(past, tmp_path):
    a = stoker(past, "whatif", "--since", "1h", "--quota", "vision.limit=4", "--set", "bundle=easy")
    assert "recorded" in a and "with changes" in a and "wait, mean" in a
    a = json.loads(stoker(past, "whatif", "--since", "1h", "--quota", "vision.limit=none", "--json"))
    assert a["state"] == "done" and a["question"]["changes"] == {"quotas": {"vision": {"limit": None}}}
    assert str(a["id"]) in stoker(past, "whatif", "list")
    assert "completion, mean" in stoker(past, "whatif", "show", a["id"])
    stoker(past, "whatif", "rm", a["id"])
    assert "there is no question" in stoker(past, "whatif", "show", a["id"], code=1)
    assert "no tenant" in stoker(past, "whatif", "--quota", "x.limit=1", code=1)
    assert "--quota takes" in stoker(past, "whatif", "--quota", "x=1", code=2)
    assert "--since takes" in stoker(past, "whatif", "--since", "never", code=2)
    swf = tmp_path / "t.swf"
    swf.write_text("; past\n1 0 5 100 4 -1 -1 4 200 -1 1 7 1 -1 1 1 -1 -1\n2 0 105 100 4 -1 -1 4 200 -1 1 7 1 -1 1 1 -1 -1\n")
    assert "2 jobs from" in stoker(past, "whatif", "--trace", swf, "--add-nodes", "1x4")
    assert "2 jobs from" in stoker(past, "whatif", "--trace", swf, "--cluster", "4x4", "--remove-nodes", "3x4")


def test_the_past_is_exported_for_the_simulator(past, tmp_path):
    folder = tmp_path / "past"
    a = subprocess.run([str(STOKER), "export", str(folder), "--since", "1h", "--state", str(past.state)],
                       capture_output=True, text=True, check=True)
    words = a.stdout.splitlines()[-1].split()
    assert words[:2] == ["stoker", "sim"]
    jobs = [json.loads(line) for line in (folder / "jobs.jsonl").read_text().splitlines()]
    assert [j["tenant"] for j in jobs] == ["vision"] * 4 and jobs[3]["after"] == [{"on": 1, "type": "afterok"}]
    runs = json.loads(subprocess.run([str(STOKER), *words[1:], "--json"], capture_output=True, text=True, check=True).stdout)["runs"]
    assert [r["bundle"] for r in runs] == ["recorded", "fifo"] and runs[1]["finished"] == 4
    q = answer(past, {"import": {"text": (folder / "jobs.jsonl").read_text(), "name": "jobs.jsonl", "cluster": "1x4"}, "changes": {"quotas": {"vision": {"limit": 2}}}})
    assert q["state"] == "done" and q["result"]["recorded"]["finished"] == 4, q
    assert q["result"]["after"]["avg_wait_s"] > q["result"]["before"]["avg_wait_s"]
    again = subprocess.run([str(STOKER), "export", str(folder), "--state", str(past.state)], capture_output=True, text=True)
    assert again.returncode == 1 and "exists" in again.stderr


def test_a_baseline_is_kept_and_compared_with(past):
    a = stoker(past, "baseline", "add", "first", "--since", "1h", "--note", "two GPUs for vision")
    assert "4 jobs" in a or "jobs; compare" in a
    assert "already" in stoker(past, "baseline", "add", "first", "--since", "1h", code=1)
    stoker(past, "quota", "set", "vision", "limit=4")
    try:
        job = past.submit(command=["/bin/sleep", "0.3"], gpus=4)
        past.wait(job)
        c = past.get("/v1/baselines/first/compare?since=%d" % past.began)
        check(past, "Compared", c)
        figures = c["baseline"]["figures"]
        assert figures["jobs"] == 4 and figures["completed"] == 4 and figures["gpus"] == 4
        assert figures["jobs_with_steps"] == 1 and figures["steps_per_gpu_hour"] == pytest.approx(500 * 3600 / 2 / past.job(past.past[0])["run_s"], rel=0.05)
        assert c["period"]["jobs"] == 5 and 0 < c["period"]["utilization"] <= 1
        assert any(n["kind"] == "quota" and "limit" in n["text"] and n["user"] for n in c["notes"])
        shown = stoker(past, "baseline", "compare", "first")
        assert "wait, mean" in shown and "What was changed:" in shown and "two GPUs for vision" in shown
        shown = stoker(past, "report", "--since", "1h", "--against", "first")
        assert "Against first" in shown and "What was changed:" in shown
        report = json.loads(stoker(past, "report", "--since", "1h", "--against", "first", "--json"))
        check(past, "Compared", report["against"])
        check(past, "Baselines", past.get("/v1/baselines"))
        assert "first" in stoker(past, "baseline", "list")
    finally:
        stoker(past, "quota", "set", "vision", "limit=config")
    stoker(past, "baseline", "rm", "first")
    assert past.client().get("/v1/baselines/first/compare").status == 404


def test_changes_are_written_down_and_last(tmp_path):
    with Daemon(tmp_path, gpus=2, config="policy: {bundle: fifo}\n") as d:
        (first,) = d.get("/v1/notes")["notes"]
        assert first["kind"] == "config"
        d.config.write_text("policy: {bundle: easy}\n")
        d.reload()
        notes = until(lambda: len(found := d.get("/v1/notes")["notes"]) > 1 and found)
        assert notes[0]["text"] == 'policy.bundle: "fifo" -> "easy"'
        check(d, "Notes", {"notes": notes})
        d.restart()
        assert d.get("/v1/notes")["notes"] == notes  # nothing was changed
        d.post("/v1/rules", {"name": "boost", "when": "0 0 * * *", "until": "30h", "then": [{"kind": "train", "priority": "+7"}]})
        assert d.get("/v1/notes")["notes"][0]["text"] == "rule boost added"
        assert d.client().ask("DELETE", "/v1/rules/boost").status == 200
        assert d.get("/v1/notes")["notes"][0]["text"] == "rule boost removed"
        d.config.write_text("policy: {bundle: easy}\ntenants:\n  - {name: a, limit: 1}\n")
        d.restart()
        assert "teams.tenants" in d.get("/v1/notes")["notes"][0]["text"]
        # what was asked outlives the daemon
        job = d.submit(command=["/bin/true"], gpus=1)
        d.wait(job)
        q = answer(d, {"since": time.time() - 600, "changes": {}})
        d.kill()
        d.start()
        assert d.get(f"/v1/whatif/{q['id']}")["result"] == q["result"]


def test_people_add_notes(past):
    noted = past.post("/v1/notes", {"text": "new driver 580"})
    check(past, "Note", noted)
    assert noted["kind"] == "note" and noted["user"] and past.get("/v1/notes")["notes"][0] == noted
    earlier = past.post("/v1/notes", {"text": "the cooling was mended", "at": past.began - 3600})
    assert past.get("/v1/notes")["notes"][-1] == earlier, "by when it was, not when it was written"
    assert "noted" in stoker(past, "baseline", "note", "more memory")
    assert past.get("/v1/notes")["notes"][0]["text"] == "more memory"
    user = past.web(past.post("/v1/tokens", {"role": "user"})["token"])
    assert user.post("/v1/notes", {"text": "x"}).status == 403
    for body, sentence in (({}, "a note has text"), ({"text": ""}, "1 to 1000 bytes"), ({"text": "x" * 1001}, "1 to 1000 bytes"),
                           ({"text": "x", "at": time.time() + 99}, "now or of the past"), ({"text": "x", "kind": "config"}, "a note has text")):
        a = past.client().post("/v1/notes", body)
        assert a.status == (422 if "past" in sentence or len(body.get("text", "")) > 1000 else 400) and sentence in a.message, body


def ask_and_hold(d, user, question):
    """Asks until the program that answers could be stopped over it: the question's number, and the program's process."""
    while True:
        a = user.post("/v1/whatif", question)
        assert a.status == 201, a
        while d.get(f"/v1/whatif/{a.json['id']}")["state"] in ("waiting", "running"):
            for pid in d.children("stoker-whatif"):
                os.kill(pid, signal.SIGSTOP)
                if d.get(f"/v1/whatif/{a.json['id']}")["state"] == "running":
                    return a.json["id"], pid


def test_a_user_has_one_question_at_a_time(past):
    line = "{0} {0} 5 100 4 -1 -1 4 200 -1 1 7 1 -1 1 1 -1 -1\n"
    text = "; past\n" + "".join(line.format(i) for i in range(1, 60000))
    user = past.web(past.post("/v1/tokens", {"role": "user"})["token"])
    first, simulator = ask_and_hold(past, user, {"import": {"text": text}, "changes": {}})
    second = user.post("/v1/whatif", {"import": {"text": text}, "changes": {}})
    assert second.status == 429 and "only operators may have several" in second.message
    third = past.client().post("/v1/whatif", {"import": {"text": text}, "changes": {}})
    assert third.status == 201  # an admin may
    assert past.get(f"/v1/whatif/{third.json['id']}")["state"] == "waiting"
    os.kill(simulator, signal.SIGCONT)
    for number in (third.json["id"], first):  # taken back, whether they wait, run or are done
        assert past.client().ask("DELETE", f"/v1/whatif/{number}").status == 200
        assert past.client().get(f"/v1/whatif/{number}").status == 404
    assert user.post("/v1/baselines", {"name": "x", "since": 1}).status == 403


def test_scheduling_goes_on_while_the_past_is_simulated(past):
    line = "{0} {0} 5 100 4 -1 -1 4 200 -1 1 7 1 -1 1 1 -1 -1\n"
    text = "; past\n" + "".join(line.format(i) for i in range(1, 100000))
    number = past.post("/v1/whatif", {"import": {"text": text}, "changes": {"policy": {"bundle": "sjf"}}})["id"]
    for _ in range(5):
        assert past.wait(past.submit(command=["/bin/true"], gpus=1))["cause"] == "completed"
    past.client().ask("DELETE", f"/v1/whatif/{number}")
