# SPDX-License-Identifier: Apache-2.0
"""Clients that ask and do not read: answers are kept until they are read, so their bytes are bounded for each user."""
import json
import os
import select
import socket

import pytest
from daemon import Daemon
from patience import PATIENCE_S, until
from webclient import Answer, Client

MIB = 1 << 20
PLAIN = 65534  # nobody, when we are root
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user's requests")
LARGE = {"command": ["/bin/true", *["x" * 100_000] * 8], "envs": {f"K{i}": "y" * 100_000 for i in range(8)}, "hold": True, "workdir": "/"}
MEMORY_MIB = 512


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        yield d


def connect(d, uid):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE_S)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    os.seteuid(uid)
    try:
        s.connect(str(d.socket))
    finally:
        os.seteuid(0)
    return s


def ask(s, path, method="GET"):
    s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return s


def read(s):
    """The answer; the connection is closed."""
    with s, s.makefile("rb") as f:
        head, _, body = f.read().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return Answer(int(lines[0].split()[1]), dict(line.split(": ", 1) for line in lines[1:]), body)


def until_answered(socks):
    """Each of them has got the first bytes of an answer."""
    for s in socks:
        assert select.select([s], [], [], PATIENCE_S)[0], "no answer"


def status(s):
    """Of an answer that is there, which stays unread."""
    return int(s.recv(12, socket.MSG_PEEK).split()[1])


def peak_mib(d):
    with open(f"/proc/{d.process.pid}/status") as f:
        return next(int(line.split()[1]) // 1024 for line in f if line.startswith("VmHWM"))


def submit(d, uid, job):
    """As that user; the job's number."""
    s, body = connect(d, uid), json.dumps(job).encode()
    s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    a = read(s)
    assert a.status == 201, a
    return a.json["id"]


def check_refused(refused):
    """Each was told to come back."""
    for s in refused:
        a = read(s)
        assert a.status == 429 and a.json["error"]["code"] == "unread" and a.headers["Retry-After"] == "1", a


@needs_root
@pytest.mark.parametrize("who,most", [("plain", 32), ("operator", 128)])
def test_answers_that_a_user_does_not_read_are_bounded(daemon, who, most):
    uid = PLAIN if who == "plain" else 0
    n = submit(daemon, uid, LARGE)
    where = f"/v1/jobs/{n}?env=1"
    length = len(read(ask(connect(daemon, uid), where)).body)
    socks = [ask(connect(daemon, uid), where) for _ in range(200)]
    until_answered(socks)
    kept = [s for s in socks if status(s) == 200]
    assert most / 2 - length / MIB <= len(kept) * length / MIB <= most
    assert peak_mib(daemon) < MEMORY_MIB
    check_refused([s for s in socks if s not in kept])
    if uid != 0:  # others do not notice
        assert Client(daemon.socket).get(where).status == 200
    assert read(ask(connect(daemon, uid), "/v1/health")).status == 200
    assert read(ask(connect(daemon, uid), f"/v1/jobs/{n}/release", "POST")).status == 200  # changes are still made
    for s in kept:
        assert len(read(s).body) == length  # whole
    until(lambda: read(ask(connect(daemon, uid), where)).status == 200)


@needs_root
def test_lists_that_are_made_at_the_same_time_are_bounded(daemon):
    submit(daemon, PLAIN, {"command": ["/bin/true", "x" * 8000], "workdir": "/", "hold": True, "array": {"last": 999}})
    where = "/v1/jobs?limit=1000&detail=1"
    length = len(read(ask(connect(daemon, PLAIN), where)).body)
    assert length > 4 * MIB
    socks = [ask(connect(daemon, PLAIN), where) for _ in range(100)]
    until_answered(socks)
    kept = [s for s in socks if status(s) == 200]
    assert 1 <= len(kept) and len(kept) * length <= 32 * MIB
    assert peak_mib(daemon) < MEMORY_MIB
    check_refused([s for s in socks if s not in kept])
    assert all(len(read(s).body) == length for s in kept)
    until(lambda: read(ask(connect(daemon, PLAIN), where)).status == 200)


@needs_root
def test_answers_that_come_all_at_once_are_bounded(daemon):
    """Of requests that wait for the same job."""
    n = submit(daemon, PLAIN, LARGE)
    socks = [ask(connect(daemon, PLAIN), f"/v1/jobs/{n}/wait?timeout_s=600") for _ in range(100)]
    waiting = f"stoker_http_waiting {len(socks)}\n".encode()
    until(lambda: waiting in Client(daemon.socket).get("/metrics").body)
    daemon.post(f"/v1/jobs/{n}/cancel")
    until_answered(socks)
    kept = [s for s in socks if status(s) == 200]
    check_refused([s for s in socks if s not in kept])
    answers = [read(s).body for s in kept]
    assert 1 <= len(kept) < len(socks) and sum(map(len, answers)) <= 32 * MIB


def test_the_page_costs_no_memory(daemon):
    """Strangers who do not read it, on TCP: it is not copied, and not counted."""
    host, port = daemon.url.split("//")[1].rsplit(":", 1)
    length = len(Client((host, int(port))).get("/app.js").body)
    socks = []
    for _ in range(32 * MIB // length + 1):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect((host, int(port)))
        s.sendall(f"GET /app.js HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        socks.append(s)
    until_answered(socks)
    assert all(status(s) == 200 for s in socks)
    for s in socks:
        s.close()
