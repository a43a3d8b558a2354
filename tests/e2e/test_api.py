# SPDX-License-Identifier: Apache-2.0
"""The API of a real daemon: every route, who may do what, pages, streams, and the document that describes it."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

import jsonschema
import prom
import pytest
from daemon import STOKERD, Daemon
from patience import PATIENCE_S, until
from webclient import until_read

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
SLEEP = ["/bin/sleep", "1000"]
OTHER = 65534  # nobody: a second user, when we are root
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to be somebody else")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("api"), gpus=2) as d:
        yield d


@pytest.fixture
def daemon(shared):
    """The daemon without jobs."""
    yield shared
    ids = [j["id"] for j in shared.jobs("?limit=1000")]
    if ids:
        shared.post("/v1/jobs/act", {"verb": "cancel", "ids": ids})
        for i in ids:
            shared.wait(i)


@pytest.fixture(scope="module")
def document(shared):
    return shared.get("/openapi.json")


def check(document, schema, value):
    jsonschema.Draft202012Validator({"$ref": "#/components/schemas/" + schema, "components": document["components"]}).validate(value)


SOMEBODY = """
import http.client, json, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.settimeout(30); self.sock.connect(sys.argv[1])
c = C("x"); c.request(sys.argv[2], sys.argv[3], sys.argv[4] or None); r = c.getresponse()
print(json.dumps([r.status, r.read().decode()]))
"""


def as_somebody(daemon, method, path, body=None):
    """The request from another user's process."""
    out = subprocess.run(["/usr/bin/python3", "-c", SOMEBODY, str(daemon.socket), method, path, json.dumps(body) if body is not None else ""],
                         user=OTHER, group=OTHER, extra_groups=[], cwd="/", capture_output=True, text=True, timeout=PATIENCE_S)
    assert out.returncode == 0, out.stderr
    status, text = json.loads(out.stdout)
    return status, json.loads(text) if text.startswith(("{", "[")) else text


# ---- the life of a job ----

def test_a_job_is_submitted_runs_and_ends(daemon, document):
    a = daemon.client().post("/v1/jobs", {"name": "first", "command": ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"],
                                          "workdir": str(daemon.folder), "gpus": 1, "comment": "hello"})
    assert a.status == 201
    check(document, "Submitted", a.json)
    job = daemon.wait(a.json["id"])
    check(document, "Job", job)
    assert (job["cause"], job["exit_code"], job["name"], job["comment"]) == ("failed", 3, "first", "hello")
    assert time.time() - 60 < job["submitted"] < time.time() and all(abs(job[k] - job["submitted"]) < 60 for k in ("started", "ended"))
    assert daemon.log(job["id"]) == "out\nerr\n"
    assert daemon.get("/v1/history?limit=1")["jobs"][0]["id"] == job["id"]


def test_running_jobs_show_where_they_run(daemon, document):
    n = daemon.submit(command=SLEEP, gpus=2, name="both")
    job = daemon.until(n, "running")
    check(document, "Job", job)
    assert job["gpu_indices"] == [0, 1] and job["node"] and job["command"] == SLEEP and job["pids"]
    gpus = daemon.get("/v1/gpus")
    check(document, "Gpus", gpus)
    assert [(g["state"], g["job"]) for g in gpus["gpus"]] == [("busy", n)] * 2
    nodes = daemon.get("/v1/nodes")
    check(document, "Nodes", nodes)
    assert nodes["nodes"][0]["gpus_busy"] == 2
    cluster = daemon.get("/v1/cluster")
    check(document, "Cluster", cluster)
    assert cluster["gpus"] == {"total": 2, "busy": 2, "free": 0, "off": 0, "drained": 0}
    assert [j["id"] for j in cluster["running"]] == [n]


def test_why_says_what_is_missing_and_what_would_help(daemon, document):
    first = daemon.submit(command=SLEEP, gpus=1, name="holder", time_limit_s=3600)
    daemon.until(first, "running")
    n = daemon.submit(command=SLEEP, gpus=2)
    why = daemon.get(f"/v1/jobs/{n}/why")
    check(document, "Why", why)
    assert (why["code"], why["need"], why["have"], why["missing"]) == ("gpus", 2, 1, 1)
    assert "needs 2 GPUs and 1 is free" in why["sentence"] and "with 1 GPU " in why["change"]
    assert [(h["id"], h["gpus"], h["name"]) for h in why["holders"]] == [(first, 1, "holder")]
    assert why["expected"] > time.time()
    job = daemon.job(n)
    assert job["state"] == "waiting" and job["reason"]["code"] == "gpus" and "needs 2 GPUs" in job["state_text"]
    assert daemon.get(f"/v1/jobs/{first}/why")["code"] == "running"
    held = daemon.submit(command=SLEEP, hold=True)
    assert f"stoker release {held}" in daemon.get(f"/v1/jobs/{held}/why")["change"]
    after = daemon.submit(command=SLEEP, depends=[{"type": "afterok", "job": first}])
    assert daemon.get(f"/v1/jobs/{after}/why")["waits_for"] == [first]
    done = daemon.submit(command=["/bin/false"])
    daemon.wait(done)
    ended = daemon.get(f"/v1/jobs/{done}/why")
    check(document, "Why", ended)
    assert ended["code"] == "ended" and "exit code 1" in ended["sentence"]


def test_verbs_do_what_they_say(daemon, document):
    n = daemon.submit(command=SLEEP, hold=True)
    assert daemon.job(n)["state"] == "held"
    check(document, "Acted", daemon.post(f"/v1/jobs/{n}/release"))
    daemon.until(n, "running")
    daemon.post(f"/v1/jobs/{n}/signal", {"signal": "SIGUSR2"})
    job = daemon.wait(n)
    assert (job["cause"], job["signal"]) == ("killed", signal.SIGUSR2)
    n = daemon.submit(command=SLEEP)
    daemon.until(n, "running")
    daemon.post(f"/v1/jobs/{n}/cancel", {})
    assert daemon.wait(n)["cause"] == "cancelled"
    a = daemon.client().post(f"/v1/jobs/{n}/cancel")
    assert a.status == 409 and "ended" in a.message
    assert daemon.client().post("/v1/jobs/999999/cancel").status == 404
    assert daemon.client().post(f"/v1/jobs/{n}/signal", {"signal": "NONSENSE"}).status == 400
    assert daemon.client().post(f"/v1/jobs/{n}/explode").status == 404


def test_many_jobs_at_once(daemon):
    made = daemon.post("/v1/jobs", {"jobs": [{"command": SLEEP, "gpus": 2, "workdir": "/"} for _ in range(50)]})
    ids = made["ids"]
    assert made["count"] == len(set(ids)) == 50
    daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": ids})
    for n in ids:
        assert daemon.wait(n)["cause"] == "cancelled"
    for bad in [{"verb": "eat", "ids": [1]}, {"verb": "cancel", "ids": []}, {"verb": "cancel"}, {"verb": "cancel", "ids": ["x"]}, [], {"ids": [1]}]:
        assert daemon.client().post("/v1/jobs/act", bad).status == 400, bad


def test_a_batch_is_taken_whole_or_not_at_all(daemon):
    before = daemon.get("/v1/health")["seq"]
    a = daemon.client().post("/v1/jobs", {"jobs": [{"command": SLEEP, "workdir": "/"}, {"command": SLEEP, "workdir": "/", "gpus": -1}]})
    assert a.status == 400 and "job 2 of 2" in a.message and "gpus" in a.message
    assert daemon.get("/v1/health")["seq"] == before


@pytest.mark.parametrize("body", [None, "", "[]", "3", "{}", '{"jobs": []}', '{"jobs": {}}', '{"command": "x"}', '{"command": ["/bin/true"], "nonsense": 1}',
                                  '{"command": ["/bin/true"], "gpus": 1000}', '{"command": ["/bin/true"], "workdir": "relative"}'])
def test_bad_jobs_get_a_sentence(daemon, body):
    a = daemon.client().post("/v1/jobs", body)
    assert 400 <= a.status < 500 and len(a.message) > 10, a


def test_dry_runs_change_nothing(daemon):
    before = daemon.get("/v1/health")["seq"]
    a = daemon.client().post("/v1/jobs?dry_run=1", {"command": SLEEP, "workdir": "/", "gpus": 1})
    assert a.status == 200, a
    assert daemon.get("/v1/health")["seq"] == before


def test_an_idempotency_key_makes_one_job(daemon):
    body = {"command": ["/bin/true"], "workdir": "/", "stdout": "/dev/null"}
    first = daemon.client().post("/v1/jobs", body, Idempotency_Key="k-1")
    again = daemon.client().post("/v1/jobs", body, Idempotency_Key="k-1")
    assert first.status == 201 and again.status in (200, 201) and first.json["id"] == again.json["id"]
    assert daemon.client().post("/v1/jobs", body, Idempotency_Key="x" * 200).status == 400
    daemon.wait(first.json["id"])


def test_lists_come_in_pages(daemon, document):
    made = daemon.post("/v1/jobs", {"jobs": [{"command": SLEEP, "hold": True, "name": "odd" if i % 2 else "even", "workdir": "/"} for i in range(25)]})
    ids = made["ids"]
    seen, after = [], 0
    while after is not None:
        page = daemon.get(f"/v1/jobs?limit=10&after={after}")
        check(document, "Jobs", page)
        assert len(page["jobs"]) <= 10
        seen += [j["id"] for j in page["jobs"]]
        after = page["next"]
    assert seen == ids
    assert [j["id"] for j in daemon.jobs("?name=odd&limit=1000")] == ids[1::2]
    assert [j["id"] for j in daemon.jobs("?state=held&user=me&limit=1000")] == ids
    assert daemon.jobs("?state=running") == [] and daemon.jobs("?user=nobody-at-all") == []
    for bad in ["limit=1001", "limit=x", "state=done", "state=asleep", "after=-1", "colour=red"]:
        assert daemon.client().get("/v1/jobs?" + bad).status == 400, bad
    daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": ids})
    seen, before = [], 0
    while before is not None and len(seen) < 25:
        page = daemon.get(f"/v1/history?limit=10&before={before}")
        seen += [j["id"] for j in page["jobs"]]
        before = page["next"]
    assert sorted(seen)[-25:] == ids
    assert all(j["cause"] == "cancelled" for j in daemon.get("/v1/history?state=cancelled&limit=5")["jobs"])
    assert daemon.get("/v1/history?until=1")["jobs"] == []
    assert daemon.client().get("/v1/history?state=running").status == 400


def test_elements_of_an_array_go_by_their_index(daemon):
    made = daemon.post("/v1/jobs", {"command": SLEEP, "hold": True, "workdir": "/", "array": {"indices": [2, 3, 7]}})
    first = made["id"]
    for i, index in enumerate([2, 3, 7]):
        job = daemon.get(f"/v1/jobs/{first}_{index}")
        assert (job["id"], job["array_id"], job["array_index"]) == (first + i, first, index)
    for bad in [f"{first}_4", f"{first}_", f"{first}_x", "0", "x", "4294967295", "99999999999999999999"]:
        assert daemon.client().get("/v1/jobs/" + bad).status == 404, bad


def test_a_batch_has_as_many_workers_as_it_asks_for(daemon, tmp_path):
    log = tmp_path / "log"
    made = daemon.post("/v1/jobs", {"command": ["/bin/sh", "-c", f"echo begin {{}} >>{log}; sleep 0.2; echo end {{}} >>{log}"], "workdir": "/",
                                    "stdout": "/dev/null", "kind": "batch", "workers": 2, "items": [str(i) for i in range(8)]})
    for n in range(made["id"], made["id"] + made["count"]):
        assert daemon.wait(n)["cause"] == "completed"
    at_work, most, begun = 0, 0, []
    for line in log.read_text().splitlines():
        word, item = line.split()
        at_work += 1 if word == "begin" else -1
        most = max(most, at_work)
        begun += [item] if word == "begin" else []
    assert most <= 2 and sorted(begun) == [str(i) for i in range(8)]


# ---- waiting, output, events ----

def test_waiting_ends_with_the_job_or_with_its_time(daemon):
    n = daemon.submit(command=SLEEP)
    daemon.until(n, "running")
    assert daemon.get(f"/v1/jobs/{n}/wait?timeout_s=0")["state"] == "running"
    assert daemon.get(f"/v1/jobs/{n}/wait?timeout_s=1")["state"] == "running"
    got = []
    waiting = [threading.Thread(target=lambda: got.append(daemon.wait(n))) for _ in range(5)]
    for t in waiting:
        t.start()
    time.sleep(0.2)
    daemon.post(f"/v1/jobs/{n}/cancel")
    for t in waiting:
        t.join(30)
    assert [j["cause"] for j in got] == ["cancelled"] * 5
    assert daemon.client().get("/v1/jobs/999999/wait").status == 404


def test_waiting_ends_with_another_state(daemon):
    n = daemon.submit(command=SLEEP, hold=True)
    assert daemon.get(f"/v1/jobs/{n}/wait?while=running")["state"] == "held"
    got = []
    waiting = threading.Thread(target=lambda: got.append(daemon.get(f"/v1/jobs/{n}/wait?while=held")))
    waiting.start()
    daemon.post(f"/v1/jobs/{n}/release")
    waiting.join(30)
    assert got[0]["state"] in ("waiting", "starting", "running")
    assert daemon.client().get(f"/v1/jobs/{n}/wait?while=asleep").status == 400
    daemon.post(f"/v1/jobs/{n}/cancel")
    daemon.wait(n)
    assert daemon.get(f"/v1/jobs/{n}/wait?while=running")["state"] == "done"


def test_output_is_followed_until_the_job_has_ended(daemon):
    go = daemon.folder / "go"
    n = daemon.submit(command=["/bin/sh", "-c", f"echo one; while ! [ -e {go} ]; do sleep 0.05; done; echo two; echo three >&2"], hold=True)
    _, r = following = daemon.client(timeout=60).open("GET", f"/v1/jobs/{n}/log?follow=1")  # before there is any
    assert r.status == 200 and following
    daemon.post(f"/v1/jobs/{n}/release")
    assert r.read1(100) == b"one\n"
    go.touch()
    assert r.read() == b"two\nthree\n"
    assert daemon.wait(n)["cause"] == "completed"
    assert daemon.log(n) == "one\ntwo\nthree\n"
    assert daemon.log(n, "?offset=4&limit=3") == "two"
    assert daemon.log(n, "?tail=1") == "three\n"
    assert daemon.log(n, "?tail=100") == "one\ntwo\nthree\n"
    assert daemon.log(n, "?offset=1000") == ""
    assert daemon.client().get(f"/v1/jobs/{n}/log?stream=stdlog").status == 400


def test_output_is_only_read_from_the_owners_regular_files(daemon, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    link = daemon.folder / "link.out"
    n = daemon.submit(command=["/bin/true"], stdout=str(link))
    daemon.wait(n)
    link.unlink()
    link.symlink_to(secret)
    assert daemon.client().get(f"/v1/jobs/{n}/log").status == 403
    link.unlink()
    assert daemon.client().get(f"/v1/jobs/{n}/log").status == 404
    os.mkfifo(link)
    assert daemon.client().get(f"/v1/jobs/{n}/log").status == 403  # and does not hang
    link.unlink()
    if os.getuid() == 0:
        link.write_text("somebody else's")
        os.chown(link, OTHER, OTHER)
        assert daemon.client().get(f"/v1/jobs/{n}/log").status == 403


def test_holes_in_output_are_named(daemon):
    path = daemon.folder / "holes.out"
    n = daemon.submit(command=["/bin/true"], stdout=str(path))
    daemon.wait(n)
    with open(path, "wb") as f:
        f.write(b"begin\n")
        f.truncate(1 << 20)
        f.seek(1 << 20)
        f.write(b"end\n")
    text = daemon.log(n)
    assert text.rstrip("\0").endswith("end\n") and "bytes of output were left out here" in text and len(text) < 20000


def events(response, n):
    """The next n events of a stream, as (id, type, data)."""
    out, current = [], {}
    while len(out) < n:
        line = response.readline()
        assert line, "the stream has ended"
        line = line.decode().rstrip("\n")
        if not line and "data" in current:
            out.append((int(current.get("id", 0)), current["event"], json.loads(current["data"])))
            current = {}
        elif ":" in line and not line.startswith(":"):
            key, value = line.split(":", 1)
            current[key] = value.strip()
    return out


def test_events_come_in_order_and_resume_where_they_were_left(daemon):
    start = daemon.get("/v1/health")["seq"]
    _, r = listening = daemon.client(timeout=60).open("GET", "/v1/events")
    assert r.headers["Content-Type"] == "text/event-stream" and listening
    n = daemon.submit(command=["/bin/true"], gpus=1)
    daemon.wait(n)
    live = events(r, 4)
    assert [e[1] for e in live] == ["submit", "place", "started", "exited"]
    assert all(e[2]["job"] == n for e in live) and live[3][2]["cause"] == "completed" and len(live[1][2]["gpu_indices"]) == 1
    assert [e[0] for e in live] == sorted(e[0] for e in live)
    again = events(daemon.client().open("GET", f"/v1/events?after={start}")[1], 4)
    assert again == live
    rest = events(daemon.client().open("GET", "/v1/events", headers={"Last-Event-ID": str(live[1][0])})[1], 2)
    assert rest == live[2:]
    gap = events(daemon.client().open("GET", "/v1/events?after=1000000000")[1], 1)
    assert gap[0][1] == "gap"
    assert daemon.client().ask("GET", "/v1/events", headers={"Last-Event-ID": "x"}).status == 400


def test_progress_is_shown_and_answered_with_orders(daemon, document):
    n = daemon.submit(command=SLEEP, grace_s=7)
    daemon.until(n, "running")
    report = {"step": 10, "total": 100, "checkpoint": {"step": 5, "seconds": 1.5}, "metrics": {"loss": 0.5}}
    control = daemon.post(f"/v1/jobs/{n}/report", report)
    check(document, "Control", control)
    assert control["checkpoint"] is False and control["grace_s"] == 7 and control["interrupt_rate_per_h"] > 0
    assert daemon.get(f"/v1/jobs/{n}/control")["checkpoint"] is False
    progress = daemon.job(n)["progress"]
    assert progress["step"] == 10 and progress["metrics"] == {"loss": 0.5}
    for bad in [{"stap": 1}, {"step": "x"}, {"metrics": [1]}, {"metrics": {"a": "b"}}, [], {"checkpoint": 3}]:
        assert daemon.client().post(f"/v1/jobs/{n}/report", bad).status == 400, bad
    assert daemon.client().post("/v1/jobs/999999/report", report).status == 404


# ---- who may do what ----

def test_over_tcp_a_token_is_needed(daemon):
    web = daemon.web()
    for path in ["/v1/health", "/v1/cluster", "/metrics", "/", "/app.js", "/app.css", "/openapi.json"]:
        assert web.get(path).status == 200, path
    for path in ["/v1/jobs", "/v1/jobs/1", "/v1/history", "/v1/gpus", "/v1/nodes", "/v1/tokens", "/v1/events", "/v1/jobs/1/log"]:
        assert web.get(path).status == 401, path
    for path in ["/v1/jobs", "/v1/jobs/1/cancel", "/v1/tokens", "/v1/jobs/act"]:
        assert web.post(path, {}).status == 401, path


def test_tokens_are_made_used_and_deleted(daemon, document):
    made = daemon.post("/v1/tokens", {"name": "laptop", "expires_s": 3600})
    check(document, "TokenMade", made)
    assert daemon.web(made["token"]).get("/v1/jobs").status == 200
    listed = daemon.get("/v1/tokens")
    check(document, "Tokens", listed)
    mine = [t for t in listed["tokens"] if t["id"] == made["id"]]
    assert len(mine) == 1 and mine[0]["name"] == "laptop" and made["token"] not in json.dumps(listed)
    weak = daemon.post("/v1/tokens", {"role": "user"})
    assert daemon.web(weak["token"]).get("/v1/health").json["you"]["role"] == "user"
    assert daemon.web(weak["token"]).post("/v1/gpus/0/drain").status == 403
    assert daemon.client().ask("DELETE", f"/v1/tokens/{made['id']}").status == 200
    assert daemon.web(made["token"]).get("/v1/jobs").status == 401
    assert daemon.client().ask("DELETE", f"/v1/tokens/{made['id']}").status == 404
    for bad in [{"role": "king"}, {"expires_s": -1}, {"name": 5}, {"colour": 1}]:
        assert daemon.client().post("/v1/tokens", bad).status == 400, bad
    assert daemon.client().post("/v1/tokens", {"name": "x" * 200}).status == 422


def test_the_end_of_a_job_is_told_in_the_words_of_the_api(daemon):
    good, bad = daemon.submit(command=["true"]), daemon.submit(command=["false"])
    for n, how in [(good, f"job {good} has already completed"), (bad, f"job {bad} has already ended (failed)")]:
        daemon.wait(n)
        for verb in ["suspend", "cancel", "hold"]:
            a = daemon.client().post(f"/v1/jobs/{n}/{verb}", {})
            assert a.status == 409 and a.message == how


def test_a_chain_of_dependencies_names_the_job_that_failed(daemon):
    first = daemon.submit(command=["false"], hold=True)
    chain = [first]
    for _ in range(3):
        chain.append(daemon.submit(command=["true"], depends=[{"type": "afterok", "job": chain[-1]}]))
    assert daemon.client().post(f"/v1/jobs/{first}/release", {}).status == 200
    notes = [daemon.wait(n)["note"] for n in chain[1:]]
    root = f"job {first} failed with exit code 1"
    assert notes == [root, f"job {chain[1]} did not run: {root}", f"job {chain[2]} did not run: {root}"]


@needs_root
def test_users_see_all_queues_and_change_only_their_own(daemon):
    n = daemon.submit(command=SLEEP, envs={"KEY": "value"}, name="private")
    daemon.until(n, "running")
    status, jobs = as_somebody(daemon, "GET", "/v1/jobs")
    assert status == 200 and [j["id"] for j in jobs["jobs"]] == [n]
    status, job = as_somebody(daemon, "GET", f"/v1/jobs/{n}")
    assert status == 200 and job["name"] == "private"
    assert not {"command", "script", "envs", "spec", "stdout", "workdir", "pids"} & set(job)
    assert as_somebody(daemon, "GET", f"/v1/jobs/{n}/log")[0] == 403
    assert as_somebody(daemon, "GET", f"/v1/jobs/{n}/control")[0] == 403
    assert as_somebody(daemon, "POST", f"/v1/jobs/{n}/report", {"step": 1})[0] == 403
    for verb in ["cancel", "hold", "suspend", "requeue", "signal"]:
        assert as_somebody(daemon, "POST", f"/v1/jobs/{n}/{verb}", {"signal": 9} if verb == "signal" else {})[0] == 403, verb
    assert as_somebody(daemon, "POST", "/v1/gpus/0/drain")[0] == 403
    assert as_somebody(daemon, "POST", "/v1/jobs/act", {"verb": "cancel", "ids": [n]})[0] in (200, 207, 403)
    assert daemon.job(n)["state"] == "running"
    status, made = as_somebody(daemon, "POST", "/v1/tokens", {"name": "mine"})
    assert status == 201 and made["role"] == "user"
    assert [t["name"] for t in as_somebody(daemon, "GET", "/v1/tokens")[1]["tokens"]] == ["mine"]
    assert as_somebody(daemon, "POST", "/v1/tokens", {"role": "admin"})[0] == 403


@needs_root
def test_jobs_run_as_the_user_who_submits_them(daemon):
    with tempfile.TemporaryDirectory() as theirs:
        os.chown(theirs, OTHER, OTHER)
        status, made = as_somebody(daemon, "POST", "/v1/jobs", {"command": ["/bin/sh", "-c", "id -u"], "workdir": "/", "stdout": f"{theirs}/out"})
        assert status == 201, made
        job = daemon.wait(made["id"])
        assert job["uid"] == OTHER and job["cause"] == "completed"
        assert daemon.log(made["id"]) == f"{OTHER}\n"  # an admin may read it
        assert as_somebody(daemon, "GET", f"/v1/jobs/{made['id']}/log") == (200, f"{OTHER}\n")


@needs_root
def test_operators_act_on_everybodys_jobs(tmp_path):
    with Daemon(tmp_path, gpus=1, config="operators: [nobody]\n") as d:
        n = d.submit(command=SLEEP)
        d.until(n, "running")
        assert as_somebody(d, "GET", "/v1/health")[1]["you"] == {"user": "nobody", "uid": OTHER, "role": "operator"}
        assert as_somebody(d, "GET", f"/v1/jobs/{n}")[1]["command"] == SLEEP
        assert as_somebody(d, "POST", f"/v1/jobs/{n}/cancel")[0] == 200
        assert d.wait(n)["cause"] == "cancelled"
        assert as_somebody(d, "POST", "/v1/gpus/0/drain")[0] == 200
        assert d.get("/v1/gpus")["gpus"][0]["state"] == "drained"


def test_drained_gpus_take_no_jobs(daemon):
    daemon.post("/v1/gpus/1/drain")
    assert [g["state"] for g in daemon.get("/v1/gpus")["gpus"]] == ["free", "drained"]
    n = daemon.submit(command=SLEEP, gpus=2)
    assert daemon.job(n)["state"] == "waiting"
    name = daemon.get("/v1/nodes")["nodes"][0]["name"]
    daemon.post(f"/v1/nodes/{name}/drain")
    assert daemon.get("/v1/nodes")["nodes"][0]["state"] == "drained"
    without = daemon.submit(command=["/bin/true"], gpus=0)
    assert daemon.job(without)["state"] == "waiting"
    why = daemon.get(f"/v1/jobs/{without}/why")
    assert why["code"] == "closed" and "takes new jobs" in why["sentence"]
    daemon.restart()
    assert daemon.job(without)["state"] == "waiting"
    daemon.post(f"/v1/nodes/{name}/resume")
    daemon.until(n, "running")
    assert daemon.wait(without)["cause"] == "completed"
    assert daemon.client().post("/v1/gpus/7/drain").status == 404
    assert daemon.client().post("/v1/nodes/nowhere/drain").status == 404


# ---- the document, the page, the metrics ----

def test_the_document_has_every_route_and_only_those(daemon, document):
    table = (pathlib.Path(__file__).resolve().parents[2] / "src/api/routes.c").read_text()
    rows = set(re.findall(r'\{"(GET|POST|DELETE)", "([^"]+)"', table))
    rows |= {("POST", "/v1/jobs/{id}/" + v) for v in re.findall(r'VERB\("(\w+)"', table)}
    listed = {(m.upper(), path) for path, methods in document["paths"].items() for m in methods}
    assert listed == rows and len(rows) > 30
    for path, methods in document["paths"].items():
        for method, op in methods.items():
            refs = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(op))
            assert all(r in document["components"]["schemas"] for r in refs), (path, method)
            assert op["summary"] and set(re.findall(r"{(\w+)}", path)) == {p["name"] for p in op["parameters"] if p["in"] == "path"}
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        for ref in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)):
            assert ref in document["components"]["schemas"], (name, ref)
    spec = (pathlib.Path(__file__).resolve().parents[2] / "docs/spec/api.md").read_text()
    for method, path in rows:
        assert f"`{method} {path}`" in spec, f"docs/spec/api.md lacks {method} {path}"


def test_errors_follow_the_schema(daemon, document):
    for a in [daemon.client().get("/v1/nothing"), daemon.client().get("/v1/jobs/0"), daemon.client().post("/v1/jobs", b"{"), daemon.web().get("/v1/jobs"),
              daemon.client().ask("DELETE", "/v1/jobs"), daemon.client().post("/v1/adopt", {"pid": 1})]:
        assert a.status >= 400
        check(document, "Error", a.json)
    check(document, "Health", daemon.get("/v1/health"))
    check(document, "Health", daemon.web().get("/v1/health").json)
    check(document, "Document", document)


def test_every_answer_has_the_security_headers(daemon):
    for a in [daemon.web().get("/"), daemon.web().get("/v1/cluster"), daemon.web().get("/v1/nothing")]:
        assert a.headers["X-Content-Type-Options"] == "nosniff" and "default-src 'none'" in a.headers["Content-Security-Policy"]
        assert a.headers["X-Frame-Options"] == "DENY" and a.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in a.headers


def test_the_page_is_complete_in_itself(daemon):
    html = daemon.web().get("/").body.decode()
    assert "<title>stoker</title>" in html and 'src="/app.js"' in html and 'href="/app.css"' in html and "http" not in html.split("<body>")[1]
    js, css = daemon.web().get("/app.js"), daemon.web().get("/app.css")
    assert js.headers["Content-Type"].startswith("text/javascript") and css.headers["Content-Type"].startswith("text/css")
    assert len(js.body) < 400_000 and b"url(" not in css.body  # nothing is loaded beside them
    policy = dict(p.strip().split(" ", 1) for p in js.headers["Content-Security-Policy"].split(";"))
    assert policy["script-src"] == "'self'" and policy["style-src"] == "'self'" and policy["default-src"] == "'none'"


def test_the_life_of_a_job_is_its_events(daemon, document):
    n = daemon.submit(command=["/bin/true"], gpus=1)
    daemon.wait(n)
    life = daemon.get(f"/v1/jobs/{n}/events")
    check(document, "JobEvents", life)
    assert [e["type"] for e in life["events"]] == ["submit", "place", "started", "exited"] and not life["more"]
    assert {e["job"] for e in life["events"]} == {n} and life["events"][1]["gpu_indices"] and life["events"][3]["cause"] == "completed"
    assert daemon.client().get("/v1/jobs/999999/events").status == 404 and daemon.web().get(f"/v1/jobs/{n}/events").status == 401


def test_waiting_jobs_have_a_place_in_line(daemon):
    first = daemon.submit(command=SLEEP, gpus=2)
    daemon.until(first, "running")
    low, high = daemon.submit(command=SLEEP, gpus=2, priority=400), daemon.submit(command=SLEEP, gpus=2)
    assert [daemon.job(n).get("position") for n in (first, high, low)] == [None, 1, 2]
    daemon.post(f"/v1/jobs/{high}/hold")
    assert [daemon.job(n).get("position") for n in (high, low)] == [None, 1]
    assert {j["id"]: j.get("position") for j in daemon.jobs()} == {first: None, low: 1, high: None}


def test_a_daemon_can_pretend_to_have_many_machines(tmp_path, document):
    with Daemon(tmp_path, gpus="20x4") as d:
        nodes = d.get("/v1/nodes")
        check(document, "Nodes", nodes)
        assert [n["name"][-5:] for n in nodes["nodes"]][:2] == ["-0001", "-0002"] and len(nodes["nodes"]) == 20
        assert [n["rack"] for n in nodes["nodes"]] == [1] * 8 + [2] * 8 + [3] * 4
        assert d.get("/v1/cluster")["gpus"]["total"] == 80
        n = d.submit(command=SLEEP, gpus=4, tasks=3, tasks_per_node=1)
        d.until(n, "running")
        gpus = d.get("/v1/gpus?limit=80")["gpus"]
        assert len({g["node"] for g in gpus if g["job"] == n}) == 3 and sum(g["job"] == n for g in gpus) == 12
        d.restart()
        assert d.job(n)["state"] == "running" and d.get("/v1/cluster")["gpus"]["busy"] == 12


def test_metrics_are_what_prometheus_reads(daemon):
    n = daemon.submit(command=SLEEP, gpus=1)
    daemon.until(n, "running")
    values = prom.parse(daemon.web().get("/metrics").body.decode())
    assert prom.value(values, "stoker_jobs", state="running") == 1
    assert prom.value(values, "stoker_gpus", state="busy") == 1 and prom.value(values, "stoker_gpus", state="free") == 1
    assert prom.value(values, "stoker_http_requests_total") > 0 and prom.value(values, "stoker_trouble") == 0


# ---- GPUs that are not virtual: stand-ins for the driver's libraries ----

FAKES = STOKERD.parent / "tests/lib"


@pytest.mark.skipif(not (FAKES / "libnvidia-ml.so.1").exists(), reason="built without tests")
def test_gpus_that_others_use_are_left_alone(tmp_path, document):
    stranger = subprocess.Popen(["/bin/sleep", "1000"])
    fake = tmp_path / "fake"
    fake.mkdir()
    env = {"STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(fake)}
    try:
        with Daemon(tmp_path, gpus=None, config="gpus: {interval_ms: 100}\n", env=env) as d:
            assert any(re.search(r"GPUs\s+2 x ", line) for line in d.banner), d.banner

            def gpus(want):
                def seen():
                    check(document, "Gpus", found := d.get("/v1/gpus"))
                    return [g["state"] for g in found["gpus"]] == want and found["gpus"]
                return until(seen)

            first = gpus(["free", "free"])[0]
            assert first["uuid"].startswith("GPU-") and first["mem_mib"] > 1000
            (fake / "procs").write_text(f"0 {stranger.pid} 5000 50 \n")
            off = gpus(["off", "free"])[0]
            assert off["foreign"][0]["pid"] == stranger.pid and off["off"]
            n = d.submit(command=SLEEP, gpus=2)
            assert d.job(n)["state"] == "waiting" and d.get(f"/v1/jobs/{n}/why")["off"] == 1
            (fake / "procs").write_text("")
            job = d.until(n, "running")
            assert job["gpu_indices"] == [0, 1]
            (fake / "procs").write_text(f"0 {job['pids'][0]} 5000 50 \n")  # our own
            time.sleep(0.5)
            assert [g["state"] for g in d.get("/v1/gpus")["gpus"]] == ["busy", "busy"] and "off" not in d.get("/v1/gpus")["gpus"][0]
            assert "stoker_gpu_memory_used_bytes" in d.client().get("/metrics").body.decode()
    finally:
        stranger.kill()
        stranger.wait()


# ---- the daemon ----

def test_a_stopped_daemon_leaves_its_jobs_and_finds_them_again(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        n = d.submit(command=["/bin/sh", "-c", f"while ! [ -e {tmp_path}/go ]; do sleep 0.05; done; exit 5"], gpus=1)
        d.until(n, "running")
        _, r = listening = d.client().open("GET", "/v1/events")
        waiting = d.client().socket()
        waiting.sendall(f"GET /v1/jobs/{n}/wait HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until_read(waiting)
        assert d.stop() == 0
        assert b" 503 " in waiting.recv(1000)
        assert b"event: stopping" in r.read() and listening
        assert not d.socket.exists()
        d.start()
        assert any("1 with processes" in line for line in d.banner)
        assert d.job(n)["state"] == "running"
        (tmp_path / "go").touch()
        assert d.wait(n)["exit_code"] == 5


def test_launches_that_die_with_the_nursery_are_made_again(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        d.wait(d.submit(command=["/bin/true"], stdout="/dev/null"))
        nursery = d.nursery()
        os.kill(nursery, signal.SIGSTOP)
        jobs = [d.submit(command=["/bin/sh", "-c", f"echo {i} >>runs"], stdout="/dev/null", gpus=1) for i in range(4)]
        for n in jobs:
            d.until(n, "starting")
        os.kill(nursery, signal.SIGKILL)
        assert {d.wait(n)["cause"] for n in jobs} == {"completed"}
        assert sorted((tmp_path / "runs").read_text().split()) == ["0", "1", "2", "3"]
        assert d.nursery() not in (None, nursery)


def ok(d):
    return until(lambda: d.get("/v1/health")["status"] == "ok")


def fill(disk):
    """Leaves no room on the disk, whatever was given back since the last time."""
    fd = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.close(fd)


@needs_root
@pytest.mark.parametrize("size", ["2m", "12m"])  # so small that the store alone could fill it, and not
def test_a_full_disk_is_said_and_survived(size, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    try:
        with Daemon(disk, gpus=1) as d:
            def send():
                return d.client().post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/", "stdout": "/dev/null", "hold": True, "comment": "x" * 1000})

            first = d.submit(command=["/bin/true"], stdout="/dev/null")
            d.wait(first)
            made, refused = [], []
            end = time.monotonic() + PATIENCE_S
            while len(refused) < 30:  # in a row: the store may have some room left in its own files
                fill(disk)
                a = send()
                assert a.status in (201, 507), a
                made, refused = (made, [*refused, a]) if a.status == 507 else ([*made, a.json["id"]], [])
                assert time.monotonic() < end, "each waits for a timer"
                if len(refused) in (1, 10, 20):
                    time.sleep(1.2)  # it tries again, in vain
            for a in refused:
                assert a.json["error"]["code"] == "cannot_write" and "no space left" in a.json["error"]["message"], a
            told = 0
            while told < 25:  # in a row, likewise; whether somebody asks or not
                fill(disk)
                health = d.get("/v1/health")
                told = told + 1 if health["status"] == "trouble" else 0
                assert told == 0 or "no space left" in health["trouble"], health
                assert time.monotonic() < end + PATIENCE_S, health
                time.sleep(0.1)
            assert d.job(first)["state"] == "done"  # reading goes on
            (disk / "ballast").unlink()
            assert ok(d)
            n = d.submit(command=["/bin/true"], stdout="/dev/null", gpus=1)
            assert d.wait(n)["cause"] == "completed"
            assert sorted(j["id"] for j in d.jobs()) == sorted(made)
            assert d.restart().job(n)["cause"] == "completed"
            assert sorted(j["id"] for j in d.jobs()) == sorted(made)
            fill(disk)
            a = d.client().post("/v1/gpus/0/drain", {})
            assert a.status == 507, a  # so it is not drained
            (disk / "ballast").unlink()
            assert ok(d)
            n = d.submit(command=["/bin/true"], stdout="/dev/null", gpus=1)
            assert d.wait(n)["cause"] == "completed"
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@needs_root
def test_a_job_that_cannot_be_started_for_lack_of_room_waits(tmp_path):
    d = Daemon(tmp_path, gpus=1)
    d.start()
    d.stop()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", d.state / "run"], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    try:
        d.start()
        fill(d.state / "run")
        n = d.submit(command=["/bin/true"], stdout="/dev/null")
        told = d.submit(command=["/bin/true"], stdout="/dev/null", gpus=0)
        until(lambda: "No space left" in d.job(n).get("engine_text", ""), say=lambda: d.job(n))
        d.post(f"/v1/jobs/{told}/cancel")
        assert d.wait(told)["cause"] == "cancelled"
        d.kill()
        d.start()
        assert d.job(n)["state"] != "done"
        os.truncate(d.state / "run" / "ballast", 4096)  # room for the one, not for the other's script
        big = d.submit(script="#!/bin/sh\nexit 0\n" + "#" * 100_000, stdout="/dev/null", gpus=0)
        assert d.wait(n)["cause"] == "completed"
        until(lambda: "No space left" in d.job(big).get("engine_text", ""), say=lambda: d.job(big))
        subprocess.run(["mount", "-o", "remount,size=1m", d.state / "run"], check=True)
        assert d.wait(big)["cause"] == "completed"
    finally:
        d.close()
        subprocess.run(["umount", "-l", d.state / "run"], check=True)


def test_a_second_daemon_is_refused(tmp_path):
    with Daemon(tmp_path) as d:
        second = Daemon(tmp_path, gpus=1)
        with pytest.raises(RuntimeError, match="another|in use|pid"):
            second.start()
        second.close()
        third = subprocess.run([STOKERD, "--state", tmp_path / "other", "--socket", d.socket, "--listen", "off"], capture_output=True, text=True, timeout=PATIENCE_S)
        assert third.returncode == 1 and "another daemon" in third.stderr
        assert d.get("/v1/health")["status"] == "ok"


def test_reloading_takes_a_good_file_and_leaves_a_bad_one(tmp_path):
    with Daemon(tmp_path, config="policy: fifo\n") as d:
        assert d.get("/v1/health")["policy"] == "fifo"
        d.config.write_text("policy:\n  bundle: sfj\n")
        d.reload()
        line = d.errors_with("not changed")
        assert "stoker.yaml:2: policy.bundle" in line and 'did you mean "sjf"' in line
        assert d.get("/v1/health")["policy"] == "fifo"
        n = d.submit(command=SLEEP, gpus=1)
        d.until(n, "running")
        d.config.write_text("policy: sjf\nlisten: 127.0.0.1:1\n")
        d.reload()
        d.errors_with("read again")
        assert d.get("/v1/health")["policy"] == "sjf" and d.job(n)["state"] == "running"


@pytest.mark.parametrize("args, code, words", [
    (["--listen", "0.0.0.0:0"], 2, "without TLS"), (["--nonsense"], 2, "nonsense"), (["word"], 2, "takes no words"), (["--virtual-gpus", "many"], 2, "0 to 64"),
    (["--listen", "somewhere"], 2, "ADDRESS:PORT"), (["--config", "/nonexistent.yaml"], 1, "/nonexistent.yaml"), (["--tls-cert", "/etc/hostname"], 2, "both"),
    (["--socket", "relative.sock"], 2, "must begin with /"), (["--socket", "/tmp/" + "x" * 200], 2, "at most 107"),
])
def test_bad_usage_gets_a_sentence(tmp_path, args, code, words):
    with tempfile.TemporaryDirectory(prefix="stk-") as short:  # a socket's path must be
        p = subprocess.run([STOKERD, "--state", tmp_path / "state", *(["--socket", short + "/s.sock"] if "--socket" not in args else []), *args],
                           capture_output=True, text=True, timeout=PATIENCE_S)
    assert (p.returncode, words in p.stderr) == (code, True), p.stderr


def test_help_and_the_keys_of_the_configuration(tmp_path):
    p = subprocess.run([STOKERD, "--help"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert p.returncode == 0 and "--virtual-gpus" in p.stdout
    keys = subprocess.run([STOKERD, "--help-config"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
    documented = (pathlib.Path(__file__).resolve().parents[2] / "docs/config.md").read_text()
    assert keys in documented, "docs/config.md is not what --help-config prints"


def test_the_service_manager_is_told(tmp_path):
    import socket
    path = f"/tmp/stk-notify-{os.getpid()}"
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(path)
    s.settimeout(PATIENCE_S)
    try:
        with Daemon(tmp_path, config="policy: fifo\n", env={"NOTIFY_SOCKET": path}) as d:
            assert "stk_" not in "".join(d.banner) and "#/login/" not in "".join(d.banner)  # a secret does not go into a service's log
            said = [s.recv(1000).decode()]
            d.reload()
            d.errors_with("read again")
            s.setblocking(False)
            for end in (lambda: None, d.stop):  # there is room for few words
                end()
                with contextlib.suppress(BlockingIOError):
                    while True:
                        said.append(s.recv(1000).decode())
            assert "READY=1" in said and "RELOADING=1" in said and "STOPPING=1" in said and any(x.startswith("STATUS=2") or x.startswith("STATUS=4") for x in said)
    finally:
        os.unlink(path)


def test_placement_policies_that_need_tables_or_power_are_taken_live(tmp_path):
    with Daemon(tmp_path / "energy", gpus=2, config="policy:\n  place: energy\n") as d:
        assert d.wait(d.submit(command=["true"], gpus=2))["state"] == "done"
    config = "policy:\n  place: share\n  params: {share.all: 'true'}\n"
    with Daemon(tmp_path / "share", gpus=1, config=config) as d:
        first, second = (d.submit(command=SLEEP, gpus=1) for _ in range(2))
        d.until(first, "running")
        assert d.job(second)["state"] == "waiting"  # nobody has measured how they get on
        d.config.write_text(config.replace("}", ", share.unknown: 'true'}"))
        d.reload()
        d.errors_with("read again")
        d.until(second, "running")
        assert d.job(first)["gpu_indices"] == d.job(second)["gpu_indices"] == [0]
        assert d.job(d.submit(command=SLEEP, gpus=1))["state"] == "waiting"  # two at most
    capped = Daemon(tmp_path / "capped", config="policy:\n  place: energy\n  params: {energy.cap_w: 500}\n")
    with pytest.raises(Exception, match=r"a power cap \(energy.cap_w\) needs nodes whose power is known"):
        capped.start()
    capped.close()


def test_no_parameter_of_a_route_is_described_twice(daemon):
    for path, verbs in daemon.get("/openapi.json")["paths"].items():
        for verb, route in verbs.items():
            names = [(p["in"], p["name"]) for p in route.get("parameters", [])]
            assert len(names) == len(set(names)), (verb, path, names)
    names = [p["name"] for p in daemon.get("/openapi.json")["paths"]["/v1/history"]["get"]["parameters"]]
    assert "since" in names and "until" in names


def test_quotas_of_a_question_that_are_no_object_are_refused(daemon):
    a = daemon.client().post("/v1/whatif", {"changes": {"quotas": [None, None]}})
    assert a.status == 400 and "quotas must be" in a.message
