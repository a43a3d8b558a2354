# SPDX-License-Identifier: Apache-2.0
"""Processes that were started by hand become jobs."""
import contextlib
import json
import os
import subprocess

import pytest
from daemon import STOKERD, Daemon, stoker

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
OTHER = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to be somebody else")


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        yield d


@pytest.fixture
def process(tmp_path):
    """Starts processes by hand; those that are left are ended."""
    made = []

    def start(*command, **more):
        made.append(subprocess.Popen(command or ["/bin/sleep", "1000"], start_new_session=True, **more))
        return made[-1]

    yield start
    for p in made:
        with contextlib.suppress(OSError):
            p.kill()
        p.wait()


def test_a_process_becomes_a_job_with_gpus_until_it_ends(daemon, process):
    p = process(cwd="/tmp")
    n = daemon.post("/v1/adopt", {"pid": p.pid, "gpus": [1, 3], "name": "by hand"})["id"]
    job = daemon.until(n, "running")
    assert (job["name"], job["gpu_indices"], job["pids"], job["command"]) == ("by hand", [1, 3], [p.pid], ["/bin/sleep", "1000"])
    assert job["workdir"] == "/tmp" and job["uid"] == os.getuid()
    assert [g["job"] for g in daemon.get("/v1/gpus")["gpus"]] == [None, n, None, n]
    waits = daemon.submit(command=["/bin/true"], gpus=3)
    assert daemon.job(waits)["state"] == "waiting"
    p.kill()
    p.wait()
    job = daemon.wait(n)
    assert job["cause"] == "lost" and job["exit_code"] is None and "exit code is not known" in job["note"]
    assert daemon.wait(waits)["cause"] == "completed"


def test_it_can_be_ended_and_signalled_but_not_requeued(daemon, process):
    p = process()
    n = daemon.post("/v1/adopt", {"pid": p.pid})["id"]
    assert daemon.until(n, "running")["gpu_indices"] == []
    a = daemon.client().post(f"/v1/jobs/{n}/requeue")
    assert a.status == 409 and "started by hand" in a.message
    daemon.post(f"/v1/jobs/{n}/cancel")
    p.wait(30)
    assert daemon.wait(n)["cause"] == "cancelled"


def test_it_stays_a_job_over_a_restart_of_the_daemon(daemon, process):
    p, gone = process(), process()
    n = daemon.post("/v1/adopt", {"pid": p.pid, "gpus": [0]})["id"]
    other = daemon.post("/v1/adopt", {"pid": gone.pid, "gpus": [1]})["id"]
    daemon.until(n, "running")
    daemon.until(other, "running")
    daemon.kill()
    gone.kill()
    gone.wait()
    daemon.start()
    assert daemon.wait(other)["cause"] == "lost"
    assert daemon.until(n, "running")["gpu_indices"] == [0]
    a = daemon.client().post("/v1/adopt", {"pid": p.pid})
    assert a.status == 409 and f"job {n}" in a.message


def test_what_cannot_be_adopted_is_refused_with_a_sentence(daemon, process):
    def refused(status, words, **body):
        a = daemon.client().post("/v1/adopt", body)
        assert a.status == status and words in a.message, a

    p, q = process(), process()
    holder = daemon.submit(command=["/bin/sleep", "1000"], gpus=4)
    job = daemon.until(holder, "running")
    refused(409, f"leased to job {holder}", pid=p.pid, gpus=[2])
    refused(409, f"belongs to job {holder}", pid=job["pids"][0])
    refused(403, "supervisor", pid=job["supervisor"])
    refused(403, "", pid=daemon.process.pid)
    refused(404, "no process", pid=4194000)
    refused(422, "there are 4", pid=p.pid, gpus=[4])
    refused(400, "must be", pid="x")
    refused(400, "not known", pid=p.pid, start=3)
    refused(400, "name", pid=p.pid, name="a/b")
    n = daemon.post("/v1/adopt", {"pid": q.pid})["id"]
    refused(409, "job", pid=q.pid)
    daemon.until(n, "running")
    refused(409, f"job {n}", pid=q.pid)
    assert len(daemon.jobs()) == 2


def test_users_cannot_send_what_the_server_adds(daemon):
    a = daemon.client().post("/v1/jobs", {"command": ["x"], "adopt": {"pid": 1, "start": 1}})
    assert a.status == 400 and "adopt" in a.message


@needs_root
def test_only_the_owner_and_operators_may(daemon, process):
    from test_api import as_somebody

    mine, theirs = process(), process(user=OTHER, group=OTHER, cwd="/")
    status, body = as_somebody(daemon, "POST", "/v1/adopt", {"pid": mine.pid})
    assert status == 403 and "not yours" in body["error"]["message"]
    status, body = as_somebody(daemon, "POST", "/v1/adopt", {"pid": theirs.pid, "gpus": [0]})
    assert status == 201
    assert daemon.until(body["id"], "running")["uid"] == OTHER
    another = process(user=OTHER, group=OTHER, cwd="/")
    n = daemon.post("/v1/adopt", {"pid": another.pid})["id"]  # an admin; the job is its owner's
    assert daemon.until(n, "running")["uid"] == OTHER


def test_from_the_command_line(daemon, process, tmp_path):
    with open(tmp_path / "o%ut", "wb") as out:
        p = process("/bin/sh", "-c", "echo hello; exec sleep 1000", stdout=out)
    assert f"Process {p.pid} is job 1" in stoker(daemon, "adopt", "--name", "mine", "--gpus", "0,2", p.pid)
    assert daemon.until(1, "running")["gpu_indices"] == [0, 2]
    daemon.log_with(1, "hello")
    assert json.loads(stoker(daemon, "show", "--json", 1))["name"] == "mine"
    stoker(daemon, "adopt", "--gpus", "zero", p.pid, code=2)
