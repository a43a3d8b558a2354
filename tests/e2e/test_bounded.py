# SPDX-License-Identifier: Apache-2.0
"""One user's large, deep and endless requests: they are refused while they are read, or done in slices between which others are answered."""
import itertools
import json
import os
import select
import signal
import socket
import subprocess

import pytest
from daemon import Daemon
from patience import PATIENCE_S, until
from webclient import Client, until_read

OTHER = 65534  # nobody: a plain user, when we are root
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user's requests")
JOB = {"command": ["/bin/true"], "hold": True}
SEND = """
import http.client, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.settimeout(600); self.sock.connect(sys.argv[1])
c = C("x")
try:
    c.request("POST", sys.argv[2], sys.stdin.buffer.read())
except OSError:
    pass  # refused in the middle; the answer is there
r = c.getresponse(); print(r.status); print(r.read().decode())
"""


def as_user(d, path, body):
    """The request from a plain user's process: status and answer."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    out = subprocess.run(["/usr/bin/python3", "-c", SEND, str(d.socket), path], input=body, user=OTHER, group=OTHER, extra_groups=[], cwd="/",
                         capture_output=True, timeout=PATIENCE_S, check=False)
    assert out.returncode == 0, out
    status, text = out.stdout.decode().split("\n", 1)
    return int(status), json.loads(text)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    d = Daemon(tmp_path_factory.mktemp("bounded"), gpus=1).start()
    yield d
    d.close()


def memory_kib(d):
    with open(f"/proc/{d.process.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))


WORST = {
    "empty descriptions": (b'{"jobs":[' + b"{}," * 20_000_000 + b"{}]}", 413, "bytes"),
    "empty descriptions, within the bytes": (b'{"jobs":[' + b"{}," * 5_000_000 + b"{}]}", 413, "job descriptions"),
    "values": (b'{"jobs":[{"command":[' + b'"",' * 4_000_000 + b'""]}]}', 413, "values"),
    "members": (b"{" + b",".join(b'"k%d":0' % i for i in range(1_000_000)) + b"}", 413, "values"),
    "depth": (b'{"jobs":' + b"[" * 1_000_000, 400, "nested deeper"),
}


@needs_root
@pytest.mark.parametrize("what", WORST)
def test_the_worst_bodies_are_refused_while_they_are_read(daemon, what):
    body, status, says = WORST[what]
    before = memory_kib(daemon)
    got, answer = as_user(daemon, "/v1/jobs", body)
    assert got == status and says in answer["error"]["message"], answer
    assert memory_kib(daemon) - before < 100 << 10  # parsed it would be gigabytes
    assert daemon.get("/v1/jobs")["jobs"] == []


@needs_root
def test_limits_are_those_of_the_role(daemon):
    many = {"jobs": [JOB] * 20_001}
    status, answer = as_user(daemon, "/v1/jobs", many)
    assert status == 413 and "20000 job descriptions" in answer["error"]["message"] and "split" in answer["error"]["message"], answer
    array = {**JOB, "array": {"last": 59_999}}
    status, answer = as_user(daemon, "/v1/jobs", {"jobs": [array, array]})
    assert status == 413 and answer["error"]["code"] == "too_many" and "at most 100000 jobs" in answer["error"]["message"], answer
    status, answer = as_user(daemon, "/v1/jobs", array)  # one description
    assert status == 201 and answer["count"] == 60_000, answer
    status, answer = as_user(daemon, "/v1/jobs", array)
    assert status == 429 and "at most 100000 jobs" in answer["error"]["message"] and "has 60000" in answer["error"]["message"], answer
    made = daemon.post("/v1/jobs", many)  # an operator may
    assert made["count"] == 20_001 and len(made["ids"]) == 20_001


@needs_root
def test_one_user_may_have_so_many_jobs_and_operators_more(tmp_path):
    with Daemon(tmp_path, gpus=1, config="limits: {jobs_per_user: 10}\n") as d:
        assert as_user(d, "/v1/jobs", {"jobs": [JOB] * 10})[0] == 201
        status, answer = as_user(d, "/v1/jobs", JOB)
        assert status == 429 and "at most 10 jobs" in answer["error"]["message"], answer
        assert d.post("/v1/jobs", {"jobs": [JOB] * 11})["count"] == 11
        d.post("/v1/jobs/act", {"verb": "cancel", "ids": [j["id"] for j in d.jobs("?user=nobody")][:3]})
        assert as_user(d, "/v1/jobs", {"jobs": [JOB] * 3})[0] == 201
        assert as_user(d, "/v1/jobs", JOB)[0] == 429


@needs_root
def test_one_user_may_have_so_many_schedules_and_operators_more(tmp_path):
    job = {"command": ["/bin/true"], "schedule": {"cron": "0 0 1 1 *"}}
    with Daemon(tmp_path, gpus=1, config="limits: {schedules_per_user: 3}\n") as d:
        assert as_user(d, "/v1/jobs", {"jobs": [job] * 2})[0] == 201
        for more in ({"jobs": [job] * 2}, {"jobs": [job] * 4}):
            status, answer = as_user(d, "/v1/jobs", more)
            assert status == 422 and "at most 3 schedules, and has 2" in answer["error"]["message"], answer
        assert as_user(d, "/v1/jobs", job)[0] == 201
        assert as_user(d, "/v1/jobs", job)[0] == 422
        assert d.post("/v1/jobs", {"jobs": [job] * 4})["count"] == 4
        d.post(f"/v1/jobs/{d.jobs('?user=nobody')[0]['id']}/cancel")
        d.kill()
        d.start()
        assert as_user(d, "/v1/jobs", job)[0] == 201
        assert as_user(d, "/v1/jobs", job)[0] == 422


@needs_root
def test_dependencies_of_one_user_are_bounded(daemon):
    first = daemon.submit(**JOB)
    on = [{"type": "afterok", "job": first}] * 1000
    status, answer = as_user(daemon, "/v1/jobs", {**JOB, "array": {"last": 2000}, "depends": on})
    assert status == 429 and "dependencies" in answer["error"]["message"], answer


RETAINED = 10_000  # jobs that the daemon's core knows after their end


def check_dependents_ended(d, first, n, parent, cause):
    """Dependents first .. first + n - 1 are in history only, and every verb says so."""
    ended = d.history()
    assert ended[parent]["cause"] == cause
    assert all(ended[first + i]["cause"] == "dependency_failed" and ended[first + i]["ended"] for i in range(n))
    assert d.jobs() == []
    for number in (parent, first, first + n - 1):
        for verb in ("cancel", "hold", "release", "suspend", "requeue"):
            a = d.client().post(f"/v1/jobs/{number}/{verb}")
            assert a.status == 409 and "has already ended" in a.message, a


@pytest.mark.parametrize("end", ["cancel", "exit 1"])
def test_an_end_that_ends_more_dependents_than_are_retained_is_recorded_for_each(tmp_path, end):
    n = RETAINED + 5
    with Daemon(tmp_path, gpus=1) as d:
        parent = d.submit(command=["/bin/sh", "-c", "until [ -e go ]; do sleep 0.1; done; exit 1"], gpus=0)
        first = d.post("/v1/jobs", {"command": ["/bin/true"], "gpus": 1, "array": {"last": n - 1}, "workdir": "/",
                                    "depends": [{"type": "afterok", "job": parent}]})["id"]
        if end == "cancel":
            d.post(f"/v1/jobs/{parent}/cancel")
        else:
            (tmp_path / "go").touch()
        cause = d.wait(parent)["cause"]
        assert cause == ("cancelled" if end == "cancel" else "failed")
        check_dependents_ended(d, first, n, parent, cause)
        d.kill()
        d.start()
        check_dependents_ended(d, first, n, parent, cause)
        assert d.wait(d.submit(command=["/bin/true"], gpus=0))["cause"] == "completed"
        check_dependents_ended(d, first, n, parent, cause)


def test_questions_after_a_large_fan_out_take_no_memory_for_room_that_is_not_used(tmp_path):
    """Room is made ready for every dependent that an end may queue; a question works on a copy of what is in use."""
    n = 99_000
    with Daemon(tmp_path, gpus=1) as d:
        parent = d.submit(**JOB)
        first = d.post("/v1/jobs", {"command": ["/bin/true"], "gpus": 1, "array": {"last": n - 1}, "workdir": "/",
                                    "depends": [{"type": "afterany", "job": parent}]})["id"]
        d.post("/v1/gpus/0/drain")  # so all of them wait
        d.post(f"/v1/jobs/{parent}/cancel")
        for _ in range(2):
            d.get(f"/v1/jobs/{first + n - 1}/why")
        assert memory_kib(d) < 512 << 10


def test_jobs_may_depend_on_large_arrays_that_have_ended(tmp_path):
    """On all elements of one, and on many of its elements by index: each element is looked at once."""
    n = 30_000
    with Daemon(tmp_path, gpus=1) as d:
        first = d.post("/v1/jobs", {**JOB, "array": {"last": n - 1}})["id"]
        d.post("/v1/jobs/act", {"verb": "cancel", "ids": list(range(first, first + n))})
        for on in ([{}], [{"index": 29 * k + 1} for k in range(1000)]):
            a = Client(d.socket).post("/v1/jobs", {**JOB, "depends": [{"type": "afterany", "job": first, **one} for one in on]})
            assert a.status == 201, a
        a = Client(d.socket).post("/v1/jobs", {**JOB, "depends": [{"type": "afterany", "job": first}] * 1000})
        assert a.status == 422 and "too many jobs must be looked at" in a.message, a


def send(d, path, body):
    """Sends a request and returns its connection."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(d.socket))
    s.settimeout(PATIENCE_S)
    body = json.dumps(body).encode()
    s.sendall(b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
    return s


def begin(d, body, headers=b""):
    """Sends a submission; returns its connection when the daemon has read all of it."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(d.socket))
    s.settimeout(PATIENCE_S)
    body = json.dumps(body).encode()
    s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n" % (headers, len(body)) + body)
    until_read(s)
    return s


def until_in_a_new_folder(tmp_path, what):
    rounds = itertools.count()
    until(lambda: what(tmp_path / str(next(rounds))), say="others are answered meanwhile: the request was done in one piece")


def answered(s):
    return bool(select.select([s], [], [], 0)[0])


def test_others_are_answered_between_the_slices_of_a_long_request(tmp_path):
    """Its jobs are seen by nobody before all of them are there."""
    n = 100_000

    def others_answered(folder):
        """How often others are answered meanwhile: never, where the machine stops this test for as long as the request takes."""
        between = 0
        with Daemon(folder, gpus=1) as d:
            c = Client(d.socket)
            s = begin(d, {**JOB, "array": {"last": n - 1}})
            while not answered(s):
                a = c.get("/v1/jobs?limit=1")
                assert a.status == 200
                if a.json["jobs"]:  # all of them are there, and its own answer is under way
                    assert c.get(f"/v1/jobs?after={n - 1}").json["jobs"], "some are shown before all of them are there"
                    until(lambda: answered(s), say="the answer to the long request")
                elif not answered(s):
                    between += 1
            assert b" 201 " in s.recv(100)
            assert c.get("/v1/jobs?limit=1").json["jobs"] != []
            assert d.get(f"/v1/jobs?after={n - 1}")["jobs"][0]["array_index"] == n - 1
        return between

    until_in_a_new_folder(tmp_path, others_answered)


def test_changes_that_come_meanwhile_are_made_after_it(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        s = begin(d, {**JOB, "array": {"last": 49_999}})
        other = d.submit(**JOB)
        first = json.loads(s.recv(65536).split(b"\r\n\r\n")[1])["id"]
        assert not first <= other < first + 50_000
        assert d.job(f"{first}_49999")["id"] == first + 49_999  # nobody came in between


def test_a_long_request_that_dies_with_the_daemon_never_was(tmp_path):
    d = Daemon(tmp_path, gpus=1).start()
    try:
        c, key = Client(d.socket), b"Idempotency-Key: once\r\n"
        job = {**JOB, "array": {"last": 99_999}}
        s = begin(d, job, key)
        assert c.get("/v1/health").status == 200  # it has begun
        d.kill()
        d.start()
        there = len(d.jobs("?limit=1"))
        again = Client(d.socket).post("/v1/jobs", job, **{"Idempotency-Key": "once"})
        assert again.status == (200 if there else 201) and again.json["count"] == 100_000
        assert d.get("/v1/jobs?after=99999")["jobs"][0]["array_index"] == 99_999
        assert d.get("/v1/jobs?after=100000")["jobs"] == []  # made once
    finally:
        d.close()


def test_a_stop_in_the_midst_of_a_long_request_leaves_nothing_of_it(tmp_path):
    d = Daemon(tmp_path, gpus=1).start()
    try:
        s = begin(d, {**JOB, "array": {"last": 99_999}})
        assert d.stop() == 0
        d.start()
        assert len(d.jobs("?limit=1")) == (1 if b" 201 " in s.recv(100) else 0)
    finally:
        d.close()


def test_acting_on_many_jobs_lets_others_in(tmp_path):
    def others_answered(folder):
        with Daemon(folder, gpus=1) as d:
            d.submit(**JOB, array={"last": 49_999})
            c, between = Client(d.socket), 0
            s = send(d, "/v1/jobs/act", {"verb": "cancel", "ids": list(range(1, 50_001))})
            until_read(s)
            while not answered(s):
                assert c.get("/v1/health").status == 200
                between += not answered(s)
            assert b" 200 " in s.recv(100)
            assert until(lambda: d.jobs() == [])
        return between

    until_in_a_new_folder(tmp_path, others_answered)


def test_an_end_that_was_seen_survives_a_crash(tmp_path):
    """Of many jobs that are cancelled in slices: what is shown of the first is on the disk."""
    d = Daemon(tmp_path, gpus=1).start()
    try:
        d.submit(**JOB, array={"last": 49_999})
        c, s = Client(d.socket), send(d, "/v1/jobs/act", {"verb": "cancel", "ids": list(range(1, 50_001))})
        seen = until(lambda: (j := c.get("/v1/jobs/1").json)["state"] == "done" and j)
        d.kill()
        s.close()
        d.start()
        assert d.job(1)["ended"] == seen["ended"], "an end was shown before it was durable"
        assert all(j["state"] == "held" for j in d.jobs("?limit=1000"))  # those that it had not come to
    finally:
        d.close()


def test_a_job_that_was_seen_survives_a_crash(tmp_path):
    """It was taken in together with a long request, which goes on after it."""
    d = Daemon(tmp_path, gpus=1).start()
    try:
        c = Client(d.socket)
        assert c.get("/v1/health").status == 200
        os.kill(d.process.pid, signal.SIGSTOP)
        short, long = send(d, "/v1/jobs", JOB), send(d, "/v1/jobs", {**JOB, "array": {"last": 99_999}})
        os.kill(d.process.pid, signal.SIGCONT)
        seen = until(lambda: c.get("/v1/jobs?limit=1").json["jobs"])
        counted = c.get("/v1/health").json["jobs"]
        d.kill()
        short.close()
        long.close()
        d.start()
        assert d.jobs("?limit=1")[0]["submitted"] == seen[0]["submitted"], "a job was shown before it was durable"
        assert counted <= d.get("/v1/health")["jobs"], "jobs were counted before they were durable"
    finally:
        d.close()


LONG = {**JOB, "command": ["/bin/true"] + ["xx"] * 4000, "array": {"last": 499}}  # a page of these with descriptions is 8 MiB


def ask_for(d, path):
    """Asks, and returns the connection when the daemon has read the request."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(d.socket))
    s.settimeout(PATIENCE_S)
    s.sendall(b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
    until_read(s)
    return s


def read_all(s):
    """What a connection brings until its end; it is closed."""
    with s, s.makefile("rb") as f:
        head, _, body = f.read().partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], head
    return json.loads(body)


def waiting(c):
    """How many requests the daemon has taken up and not answered."""
    lines = c.get("/metrics").body.decode().splitlines()
    return int(next(line for line in lines if line.startswith("stoker_http_waiting ")).split()[1])


def pages(d, path, word):
    """The jobs of all pages, and how many pages there were."""
    jobs, after, n = [], 0, 0
    while after is not None:
        page = d.get(f"{path}{word}={after}")
        jobs, after, n = jobs + page["jobs"], page["next"], n + 1
    return jobs, n


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/history"])
def test_others_are_answered_between_the_slices_of_a_long_list(tmp_path, path):
    """And the list has every job once, in order, page by page."""
    with Daemon(tmp_path, gpus=1) as d:
        first, c = d.submit(**LONG), Client(d.socket)
        ids = list(range(first, first + 500))
        if path == "/v1/history":
            assert c.post("/v1/jobs/act", {"verb": "cancel", "ids": ids}).status == 200
            assert until(lambda: d.jobs() == [])

        def seen_meanwhile():
            s = ask_for(d, f"{path}?limit=1000&detail=1")
            n = waiting(c)  # is answered while the list is not complete, or after it
            assert 0 < len(read_all(s)["jobs"]) < 500
            return n > 0

        assert until(seen_meanwhile)
        jobs, n = pages(d, f"{path}?limit=1000&detail=1&", "after" if path == "/v1/jobs" else "before")
        assert n > 1 and sorted(j["id"] for j in jobs) == ids
        assert [j["id"] for j in jobs] == [j["id"] for j in pages(d, f"{path}?limit=7&", "after" if path == "/v1/jobs" else "before")[0]]
        assert all(j["spec"]["command"] == j["command"] == LONG["command"] for j in jobs)


WAITING = {"command": ["/bin/true"], "gpus": 2, "array": {"last": 59_999}}  # more GPUs than there are free


def test_others_are_answered_while_it_is_tried_what_would_start_a_job(tmp_path):
    """Each try copies the state, so with many jobs there are some tries at a time."""
    with Daemon(tmp_path, gpus=2) as d:
        d.until(d.submit(command=["/bin/sleep", "1000000"], gpus=1), "running")
        n, c = d.submit(**WAITING) + 30_000, Client(d.socket)

        def seen_meanwhile():
            s = ask_for(d, f"/v1/jobs/{n}/why")
            waits = waiting(c)  # is answered before it is, or after it
            why = read_all(s)
            assert why["id"] == n and why["code"] == "gpus", why
            return waits > 0

        assert until(seen_meanwhile)


def test_those_who_ask_why_may_leave_and_the_daemon_may_stop(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        d.until(d.submit(command=["/bin/sleep", "1000000"], gpus=1), "running")
        first, c = d.submit(**WAITING), Client(d.socket)
        for i in range(20):
            ask_for(d, f"/v1/jobs/{first + i}/why").close()
        assert until(lambda: waiting(c) == 0)
        asked = ask_for(d, f"/v1/jobs/{first}/why")
        ask_for(d, f"/v1/jobs/{first + 1}/why").close()
        assert c.post(f"/v1/jobs/{first}/cancel").status == 200  # before it is explained, or after it
        assert read_all(asked)["state"] in ("waiting", "done")
        left = [ask_for(d, f"/v1/jobs/{first + i}/why") for i in range(2, 10)]
        assert d.stop() == 0
        assert all(s.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 503") for s in left)  # whole, or refused


def test_a_reader_who_leaves_and_a_stop_end_a_long_list(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        d.submit(**LONG)
        c = Client(d.socket)
        for _ in range(20):
            ask_for(d, "/v1/jobs?limit=1000&detail=1").close()
        assert until(lambda: waiting(c) == 0)
        assert len(d.jobs("?limit=1000")) == 500
        left = [ask_for(d, "/v1/jobs?limit=1000&detail=1") for _ in range(8)]
        assert d.stop() == 0
        assert all(s.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 503") for s in left)  # whole, or refused
