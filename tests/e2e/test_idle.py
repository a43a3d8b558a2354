# SPDX-License-Identifier: Apache-2.0
"""Jobs that do nothing: warned, their GPUs lent while others wait, ended where that was asked for."""
import contextlib
import socket
import struct
import threading
import time

import pytest
from daemon import STOKERD, Daemon, stoker
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        yield d


def state_of(daemon, number):
    """The last letter of ps: T is stopped."""
    pid = daemon.job(number)["pids"][0]
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def test_a_job_that_does_nothing_is_warned(daemon):
    heard = []

    def listen():
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.connect(str(daemon.socket))
            s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            while data := s.recv(65536):
                heard.append(data.decode())
                if "event: warning" in "".join(heard):
                    return

    t = threading.Thread(target=listen, daemon=True)
    t.start()
    until(lambda: heard)
    n = daemon.submit(command=SLEEP, gpus=1, idle={"warn_s": 1, "end_s": 3600})
    job = until(lambda: (j := daemon.job(n)).get("warning") and j)
    assert "no activity for" in job["warning"] and "after 60 min it is ended" in job["warning"] and job["state"] == "running"
    t.join(30)
    assert f'"job":{n}' in "".join(heard) and "no activity" in "".join(heard)
    assert "no activity for" in stoker(daemon, "queue")


def test_a_job_at_work_is_not(daemon):
    n = daemon.submit(command=["/bin/sh", "-c", "while :; do :; done"], gpus=1, idle={"warn_s": 1, "suspend_s": 2, "end_s": 3})
    m = daemon.submit(command=SLEEP, gpus=1, idle={"warn_s": 1, "suspend_s": 2, "end_s": 3})
    assert daemon.wait(m)["cause"] == "cancelled"
    job = daemon.job(n)
    assert job["state"] == "running" and "warning" not in job


def test_its_gpus_are_lent_while_others_wait(daemon):
    n = daemon.submit(command=SLEEP, gpus=2, idle={"suspend_s": 1})
    until(lambda: daemon.job(n).get("warning"))
    time.sleep(1.5)
    assert daemon.job(n)["state"] == "running"  # nobody wants them
    other = daemon.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"], gpus=1)
    job = daemon.until(n, "suspended")
    daemon.until(other, "running")
    assert state_of(daemon, n) == "T" and "without activity" in job["note"] and f"stoker resume {n}" in job["note"]
    assert "resumes by itself when they are free again" in job["state_text"]
    assert "resumes by itself" in stoker(daemon, "why", n) and "resumes by itself" in stoker(daemon, "show", n)
    (daemon.folder / "go").touch()
    assert daemon.wait(other)["cause"] == "completed"
    daemon.until(n, "running")  # by itself
    until(lambda: state_of(daemon, n) == "S")
    assert daemon.job(n)["restarts"] == 0


def test_its_owner_can_have_it_back(daemon):
    n = daemon.submit(command=SLEEP, gpus=2, idle={"suspend_s": 1})
    other = daemon.submit(command=SLEEP, gpus=1)
    daemon.until(n, "suspended")
    daemon.until(other, "running")
    daemon.post(f"/v1/jobs/{n}/resume")
    daemon.post(f"/v1/jobs/{other}/cancel")
    daemon.until(n, "running")


def test_a_restarted_daemon_wakes_what_the_one_before_put_to_sleep(daemon):
    n = daemon.submit(command=SLEEP, gpus=2, idle={"suspend_s": 1})
    person = daemon.submit(command=SLEEP, gpus=2)
    daemon.until(n, "suspended")
    daemon.until(person, "running")
    time.sleep(1.2)
    daemon.kill()
    daemon.start()
    until(lambda: "resumes by itself" in daemon.job(n)["state_text"])
    daemon.post(f"/v1/jobs/{person}/suspend")  # a person's wish is not undone
    assert "until somebody resumes it" in daemon.until(person, "suspended")["state_text"]
    daemon.until(n, "running")
    assert daemon.job(person)["state"] == "suspended"


def test_what_must_not_be_suspended_is_left_alone(daemon):
    n = daemon.submit(command=SLEEP, gpus=2, suspend="never", idle={"suspend_s": 1, "warn_s": 1})
    other = daemon.submit(command=SLEEP, gpus=1)
    until(lambda: daemon.job(n).get("warning"))
    time.sleep(2.5)
    assert daemon.job(n)["state"] == "running" and daemon.job(other)["state"] == "waiting"


def test_it_is_ended_where_that_was_asked_for(daemon):
    n = daemon.submit(command=SLEEP, idle={"end_s": 2})
    job = daemon.wait(n)
    assert job["cause"] == "cancelled" and "ended after" in job["note"] and "without activity" in job["note"]
    assert "without activity" in job["state_text"]


def test_sessions_have_a_rule_of_their_own(tmp_path):
    with Daemon(tmp_path, gpus=1, config="idle: {shell_suspend: 10s}\n") as d:
        n = d.submit(interactive=True, command=["/bin/cat"], gpus=1)
        path = d.until(n, "running")["attach"]
        batch = d.submit(command=SLEEP, gpus=1)
        assert d.job(batch)["state"] == "waiting"
        d.until(n, "suspended")
        d.until(batch, "running")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            time.sleep(2.1)  # input in the second in which it fell asleep does not count
            s.sendall(b"D" + struct.pack(">I", 3) + b"hi\n")  # somebody is there again
            until(lambda: d.job(n)["state"] == "suspended" and d.job(n)["reason"]["code"] != "held")
            d.post(f"/v1/jobs/{batch}/cancel")
            d.until(n, "running")
