# SPDX-License-Identifier: Apache-2.0
"""Why a job waits and what would start it: what "stoker why" says to type is typed, and the job runs."""
import getpass
import json
import os
import pathlib
import re
import shlex
import time

import pytest
from daemon import Daemon
from data import stoker_run
from patience import until


@pytest.fixture(name="why")
def why_of(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        def call(*args, code=0):
            out = stoker_run(*args, env={**os.environ, "STOKER_SOCKET": str(d.socket), "LC_ALL": "C.UTF-8"}, cwd=tmp_path)
            assert out.returncode == code, out
            return out.stdout if code == 0 else out.stderr

        call.daemon = d
        yield call


def submit(why, *args):
    return json.loads(why("submit", "--json", *args))["id"]


def asked(why, job):
    return json.loads(why("why", job, "--json"))


def started(why, job):
    why.daemon.until(job, "running")


def change(why, job, kind):
    found = [c for c in asked(why, job)["changes"] if c["kind"] == kind]
    assert len(found) == 1, asked(why, job)
    return found[0]


def test_every_change_that_is_named_starts_the_job(why):
    busy = submit(why, "--gpus", "3", "--time", "8h", "--", "sleep", "600")
    started(why, busy)
    first = submit(why, "--gpus", "2", "--time", "1h", "--", "sleep", "600")
    kinds = [c["kind"] for c in asked(why, first)["changes"]]
    why("cancel", first)
    assert kinds == ["gpus", "queue", "priority", "tier"]
    for kind in kinds:
        job = submit(why, "--gpus", "2", "--time", "1h", "--", "sleep", "600")
        found = change(why, job, kind)
        assert found["command"].startswith(f"stoker update {job} --") and "would start now" in found["sentence"]
        assert found["sentence"] + ": " + found["command"] in why("why", job)
        assert asked(why, job)["change"] == asked(why, job)["changes"][0]["sentence"]
        assert why(*shlex.split(found["command"])[1:]) == f"job {job}: changed\n"
        started(why, job)
        why("cancel", job)
        why.daemon.wait(job)
        started(why, busy)      # it gave way, and comes back


def test_a_held_job_and_one_that_begins_later(why):
    held = submit(why, "--gpus", "1", "--hold", "--", "sleep", "600")
    found = change(why, held, "release")
    assert found["command"] == f"stoker release {held}"
    why(*shlex.split(found["command"])[1:])
    started(why, held)
    later = submit(why, "--gpus", "1", "--begin", "now+5h", "--", "sleep", "600")
    why(*shlex.split(change(why, later, "begin")["command"])[1:])
    started(why, later)


def test_a_part_of_a_gpu_and_what_is_beside_it(why):
    submit(why, "--gpus", "3", "--", "sleep", "600")
    half = submit(why, "--gpus", "0.5", "--share", "none", "--", "sleep", "600")
    started(why, half)
    job = submit(why, "--gpus", "1", "--", "sleep", "600")
    found = change(why, job, "part_of_gpu")
    assert found["to"] == 500 and found["command"] == f"stoker update {job} --gpus 0.5"
    why(*shlex.split(found["command"])[1:])
    started(why, job)
    shown = json.loads(why("show", job, "--json"))
    assert shown["gpus"] == 0.5


def test_a_job_that_is_changed_keeps_its_number_and_survives_a_restart(why):
    submit(why, "--gpus", "4", "--", "sleep", "600")
    job = submit(why, "--gpus", "4", "--time", "1h", "--topology", "node", "--", "sh", "-c", "echo $STOKER_GPUS; sleep 600")
    before = json.loads(why("show", job, "--json"))
    assert why("update", job, "--gpus", "2", "--topology", "none", "--time", "2h", "--cpus", "1") == f"job {job}: changed\n"
    why.daemon.kill()
    why.daemon.start()
    shown = json.loads(why("show", job, "--json"))
    assert shown["gpus"] == 2 and shown["submitted"] == before["submitted"] and shown["time_limit_s"] == 7200
    for words, sentence, code in [(["--gpus", "9"], "9 GPUs", 1), (["--tasks", "0"], "tasks", 2), (["--gpu-type", "nonesuch"], "nonesuch", 2),
                                  (["--pool", "nowhere"], "no pool", 2), (["--topology", "moon"], "topology", 2)]:
        assert sentence in why("update", job, *words, code=code), words
    assert "yes or no" in why("update", job, "--exclusive", "maybe", code=2)
    assert json.loads(why("show", job, "--json"))["gpus"] == 2


def test_all_reasons_and_who_has_the_gpus(why):
    busy = submit(why, "--gpus", "3", "--time", "8h", "--name", "big", "--", "sleep", "600")
    started(why, busy)
    job = submit(why, "--gpus", "2", "--", "sleep", "600")
    answer = asked(why, job)
    assert [r["code"] for r in answer["reasons"]][0] == answer["code"] == "gpus"
    assert [h["id"] for h in answer["holders"]] == [busy]
    text = why("why", job)
    assert "needs 2 GPUs and 1 is free" in text and f"job {busy}  big" in text
    assert asked(why, busy)["reasons"][0]["code"] == "running" and asked(why, busy)["changes"] == []
    why("cancel", busy)
    started(why, job)


def test_when_a_job_will_start(why):
    busy = submit(why, "--gpus", "3", "--time", "2h", "--", "sleep", "600")
    started(why, busy)
    job = submit(why, "--gpus", "4", "--time", "1h", "--", "sleep", "600")
    end = json.loads(why("show", busy, "--json"))["expected_end"]
    for answer in (asked(why, job), json.loads(why("show", job, "--json")), json.loads(why("queue", "--json"))["jobs"][1]):
        assert abs(answer["start_p50"] - end) < 2 and answer["start_p90"] >= answer["start_p50"] and answer["end_p50"] > answer["start_p50"]
        assert [len(p["gpu_indices"]) for p in answer["start_pieces"]] == [4]
    assert "It is expected to start about " in why("why", job) and "gpu 0-3." in why("why", job) and "; starts about " in why("queue")
    assert "start_p50" not in json.loads(why("show", busy, "--json"))
    for _ in range(4):      # what jobs of this user take is learned as they end
        short = submit(why, "--gpus", "1", "--time", "1h", "--", "sleep", "0.2")
        why("wait", short)
    why("cancel", job)
    later = submit(why, "--gpus", "1", "--time", "1h", "--begin", "now+5h", "--", "true")
    answer = until(lambda: "start_p50" in (a := asked(why, later)) and a)
    assert abs(answer["start_p50"] - time.time() - 5 * 3600) < 120


def test_deadlines_are_answered_at_once_and_shown(why):
    busy = submit(why, "--gpus", "4", "--time", "2h", "--", "sleep", "600")
    started(why, busy)
    good = json.loads(why("submit", "--json", "--gpus", "1", "--time", "1h", "--deadline", "+5h", "--", "true"))
    assert good["deadline"]["answer"] == "feasible" and abs(good["deadline"]["margin_s"] - 2 * 3600) < 60
    bad = json.loads(why("submit", "--json", "--gpus", "1", "--time", "1h", "--deadline", "+90m", "--", "true"))
    assert bad["deadline"]["answer"] == "infeasible" and bad["deadline"]["earliest"] > bad["deadline"]["at"]
    assert "infeasible: expected to end by" in why("why", bad["id"]) and "; deadline infeasible" in why("queue")
    assert "feasible with" in why("show", good["id"])
    text = why("submit", "--gpus", "1", "--time", "1h", "--deadline", "+90m", "--deadline-required", "--", "true", code=1)
    assert "would not end by its deadline" in text and "the earliest that it would keep is" in text
    job = {"command": ["/bin/true"], "workdir": "/", "gpus": 1, "time_limit_s": 3600}
    soon, later = int(time.time()) + 5400, int(time.time()) + 36000
    many = [{**job, "deadline": soon}, job, {**job, "deadline": later}, {**job, "deadline": later, "array": {"indices": [1, 2]}}]
    reply = why.daemon.post("/v1/jobs", {"jobs": many})
    assert [d and d["answer"] for d in reply["deadlines"]] == ["infeasible", None, "feasible", "feasible"] and reply["count"] == 5
    refused = why.daemon.client().post("/v1/jobs", {"jobs": [job, {**job, "deadline": soon, "deadline_required": True}]})
    assert refused.status == 409 and "job 2 of 2 would not end by its deadline" in refused.json["error"]["message"]
    why("cancel", *[str(i) for i in reply["ids"]])
    for deadline, word in [("+5h", "feasible"), ("+90m", "infeasible")]:
        dry = json.loads(why("submit", "--json", "--dry-run", "--gpus", "1", "--time", "1h", "--deadline", deadline, "--", "true"))
        assert dry["dry_run"] and dry["deadline"]["answer"] == word
    assert why("update", good["id"], "--deadline", "+30m") == f"job {good['id']}: changed\n"
    assert json.loads(why("show", good["id"], "--json"))["deadline"]["answer"] == "infeasible"
    assert "is before begin" in why("submit", "--deadline", "+1h", "--begin", "now+2h", "--", "true", code=2)
    over = submit(why, "--gpus", "1", "--deadline", str(int(time.time()) - 5), "--", "true")
    assert asked(why, over)["deadline"]["answer"] == "late" and "; deadline missed" in why("queue")


def test_the_guide_is_true(why, tmp_path):
    """Every command of docs/guide/why.md is run, on the queue it describes."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "why.md").read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text("pass\n", encoding="utf-8")
    submit(why, "--name", "first", "--", "true")
    started(why, submit(why, "--gpus", "2", "--time", "8h", "--name", "resnet", "--", "sleep", "600"))
    submit(why, "--gpus", "4", "--time", "1h", "--name", "eval", "--", "sleep", "600")
    said = why("why", 3).splitlines()
    shown = re.search(r"\$ stoker why 3\n(.*?)```", page, re.S)[1].splitlines()
    for line in shown[2:6]:
        assert line in said, (line, said)
    assert said[0][:35] == shown[0][:35] and said[1][:30] == shown[1][:30] and "Who has the GPUs:" in said
    commands = re.findall(r"^    (stoker .*)$", page, re.M)
    assert len(commands) == 5
    why("hold", 3)      # so that it can be changed more than once
    for command in commands:
        why(*shlex.split(command)[1:])


def test_limits_of_queues_and_tenants(tmp_path):
    config = "queues: {express: {user: {gpus: 1}}}\ntenants: [{name: lab, limit: 3, users: [%s]}, {name: night, users: [%s]}]\n"
    config %= (getpass.getuser(), getpass.getuser())
    with Daemon(tmp_path, gpus=4, config=config) as d:
        def call(*args, code=0):
            out = stoker_run(*args, env={**os.environ, "STOKER_SOCKET": str(d.socket), "LC_ALL": "C.UTF-8"}, cwd=tmp_path)
            assert out.returncode == code, out
            return out.stdout if code == 0 else out.stderr

        call.daemon = d
        first = submit(call, "--queue", "express", "--gpus", "1", "--", "sleep", "600")
        started(call, first)
        job = submit(call, "--queue", "express", "--gpus", "1", "--", "sleep", "600")
        answer = asked(call, job)
        assert answer["code"] == "queue_limit" and [h["id"] for h in answer["holders"]] == [first]
        found = change(call, job, "queue")
        assert found["command"] == f"stoker update {job} --queue standard"
        call(*shlex.split(found["command"])[1:])
        started(call, job)
        more = submit(call, "--gpus", "2", "--", "sleep", "600")
        answer = asked(call, more)
        assert answer["code"] == "limit" and [h["id"] for h in answer["holders"]] == [first, job]
        assert {h["tenant"] for h in answer["holders"]} == {"lab"}
        assert change(call, more, "gpus")["to"] == 1
        found = change(call, more, "tenant")
        assert found["command"] == f"stoker update {more} --tenant night"
        call(*shlex.split(found["command"])[1:])
        started(call, more)
        assert "limit of tenant lab" in call("submit", "--gpus", "4", "--", "true", code=2)     # it could never run



LENT = """
policy: {preempt: reclaim}
tenants:
  - {name: vision, guarantee: 4, users: [%(me)s]}
  - {name: speech, users: [%(me)s]}
  - {name: text, guarantee: 1, users: [%(me)s]}
"""


def test_who_borrowed_what_is_told(tmp_path):
    with Daemon(tmp_path / "lent", gpus=6, config=LENT % {"me": getpass.getuser()}) as d:
        stay = {"keep_up": {"group": "g", "min": 2}}
        a = d.submit(command=["/bin/sleep", "600"], gpus=3, tenant="speech", time_limit_s=3600, **stay)
        b = d.submit(command=["/bin/sleep", "600"], gpus=3, tenant="speech", time_limit_s=7200, **stay)
        d.until(a, "running"), d.until(b, "running")
        c = d.submit(command=["/bin/sleep", "600"], gpus=2, tenant="vision")
        said = d.get("/v1/tenants")
        rows = {t["name"]: t for t in said["tenants"]}
        assert (rows["vision"]["lent"], rows["vision"]["idle"], rows["text"]["lent"]) == (4, 4, 1)
        assert rows["speech"]["borrowed"] == 6 and rows["vision"]["types"] == {k: {**v, "lent": 0} for k, v in rows["vision"]["types"].items()}
        assert {(x["from"], x["to"], x["gpus"]) for x in said["lending"]} == {("vision", "speech", 4), ("text", "speech", 1)}
        assert said["lending_cut"] is False
        claim = d.get(f"/v1/jobs/{c}/why")["claim"]
        assert (claim["title"], claim["tenant"], claim["used"], claim["amount"]) == ("guarantee", "vision", 0, 4)
        assert claim["borrowers"] == [{"tenant": "speech", "used": 6, "guarantee": 0, "due": rows["speech"]["due"], "borrowed": 6}]
        holders = d.get(f"/v1/jobs/{c}/why")["holders"]
        assert [(h["id"], h["borrowed"], h["protected"]["by"]) for h in holders] == [(a, True, "group"), (b, True, "group")]
        assert abs(claim["back"] - holders[0]["expected_end"]) < 1
        cli = lambda *words: stoker_run(*map(str, words), env={**os.environ, "STOKER_SOCKET": str(d.socket)}).stdout
        text = cli("why", c)
        assert "It is within the guarantee of vision, which uses 0 of 4 GPUs; what it needs comes back at " in text
        assert "speech has borrowed 6: uses 6, is guaranteed 0" in text
        assert ", borrowed, so many of its group must stay up" in text
        text = cli("tenants")
        assert re.search(r"^LENDER +BORROWER +GPUS +TYPE\nvision +speech +4 +all\n", text, re.M), text
