# SPDX-License-Identifier: Apache-2.0
"""Rules of live jobs that users count on: retries, times, output files, limits."""
import json
import os
import resource
import subprocess
import time

import pytest
import storefile
from daemon import STOKER, Daemon
from patience import until
from webclient import Client


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path) as d:
        yield d


def gone(pid):
    """Waits until a process is no more."""
    until(lambda: not os.path.exists(f"/proc/{pid}"))


# ---- retries ----

def test_exit_codes_worth_a_restart_use_the_budget(daemon):
    n = daemon.submit(command=["sh", "-c", "exit 75"], retry={"error": 2, "exit_codes": [75]})
    job = daemon.wait(n)
    assert (job["cause"], job["exit_code"], job["restarts"]) == ("failed", 75, 2)


def test_other_exit_codes_are_not_retried(daemon):
    n = daemon.submit(command=["sh", "-c", "exit 3"], retry={"error": 2, "exit_codes": [75]})
    assert daemon.wait(n)["restarts"] == 0


# ---- times and files ----

def test_a_job_that_ended_while_nobody_looked_ended_when_it_did(daemon):
    n = daemon.submit(command=["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; date +%s.%N > ended"])
    pid = daemon.until(n, "running")["supervisor"]
    daemon.kill()
    (daemon.folder / "go").touch()
    gone(pid)
    before = time.time()
    time.sleep(0.5)
    daemon.start()
    ended = float((daemon.folder / "ended").read_text())
    job = daemon.wait(n)
    assert ended <= job["ended"] <= before
    assert daemon.get("/v1/history")["jobs"][0]["ended"] == job["ended"]


def test_the_default_output_file_is_emptied_once_and_a_restart_appends(daemon):
    (daemon.folder / "stoker-1.out").write_text("of an older job 1\n")
    n = daemon.submit(command=["sh", "-c", "echo $STOKER_RESTARTS; exit 1"], retry={"error": 1})
    daemon.wait(n)
    assert (daemon.folder / "stoker-1.out").read_text() == "0\n1\n"


def test_a_named_output_file_is_appended_to_unless_it_is_to_be_emptied(daemon):
    (daemon.folder / "out").write_text("older\n")
    daemon.wait(daemon.submit(command=["echo", "more"], stdout="out"))
    assert (daemon.folder / "out").read_text() == "older\nmore\n"
    n = daemon.submit(command=["sh", "-c", "echo {}"], items=["a", "b", "c"], stdout="out", open_mode="truncate")
    daemon.wait(n)
    assert (daemon.folder / "out").read_text() == "a\nb\nc\n"


# ---- dependencies ----

def test_a_job_may_depend_on_an_array_of_any_size(daemon):
    array = daemon.post("/v1/jobs", {"command": ["true"], "array": {"last": 4999}, "hold": True})["id"]
    on = lambda kind: {"command": ["true"], "depends": [{"type": kind, "job": array}]}  # noqa: E731
    well, ended = daemon.post("/v1/jobs", on("afterok"))["id"], daemon.post("/v1/jobs", on("afterany"))["id"]
    many = daemon.post("/v1/jobs", {**on("afterok"), "array": {"last": 999}})
    assert many["count"] == 1000
    daemon.kill()
    daemon.start()
    daemon.restart()  # once from the journal, once from a snapshot
    assert daemon.get(f"/v1/jobs/{well}/why")["waits_for"] == [array]
    daemon.post(f"/v1/jobs/{array + 4321}/cancel")
    assert daemon.wait(well)["cause"] == daemon.wait(many["id"] + 999)["cause"] == "dependency_failed"
    assert daemon.job(ended)["state"] == "blocked"
    daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": [array + i for i in range(5000) if i != 4321]})
    assert daemon.wait(ended)["cause"] == "completed"
    late = daemon.client().post("/v1/jobs", on("afterok"))  # none is left, and some have ended badly
    assert late.status == 422 or daemon.wait(late.json["id"])["cause"] == "dependency_failed"
    assert daemon.wait(daemon.post("/v1/jobs", on("afternotok"))["id"])["cause"] == "completed"


# ---- limits of processes ----

def limits_of(daemon, n):
    """name -> (soft, hard), as the job saw them."""
    assert daemon.wait(n)["cause"] == "completed"
    names = {"Max open files": "nofile", "Max core file size": "core", "Max stack size": "stack", "Max file size": "fsize"}
    seen = {}
    for line in daemon.log(n).splitlines():
        for words, name in names.items():
            if line.startswith(words):
                seen[name] = tuple(-1 if v == "unlimited" else int(v) for v in line[len(words):].split()[:2])
    return seen


SHOW = ["cat", "/proc/self/limits"]


def test_a_job_has_the_limits_of_who_sent_it(daemon):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 400))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
    env = {**os.environ, "STOKER_SOCKET": str(daemon.socket)}
    out = subprocess.run([STOKER, "submit", "--json", "--", *SHOW], env=env, cwd=daemon.folder, preexec_fn=lower,
                         capture_output=True, text=True, check=True).stdout
    seen = limits_of(daemon, json.loads(out)["id"])
    assert (seen["nofile"], seen["core"]) == ((300, 400), (0, 4096))


def test_a_job_without_limits_has_the_daemons_as_they_were(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    d = Daemon(tmp_path)
    resource.setrlimit(resource.RLIMIT_NOFILE, (600, hard))
    try:
        d.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        assert limits_of(d, d.submit(command=SHOW))["nofile"] == (600, -1 if hard == resource.RLIM_INFINITY else hard)
    finally:
        d.close()


def test_bad_limits_are_refused(daemon):
    for bad, status, words in [({"nofile": [5]}, 422, "two numbers"), ({"nofile": [9, 5]}, 422, "soft"), ({"nofile": [-1, 5]}, 422, "soft"),
                               ({"nofile": [-2, 5]}, 400, "-1"), ({"files": [1, 2]}, 400, "not a known key")]:
        a = daemon.client().post("/v1/jobs", {"command": SHOW, "rlimits": bad})
        assert a.status == status and words in a.json["error"]["message"], a


# ---- schedules ----

def children(daemon, n):
    """Jobs that the schedule has submitted, ended or not, in their order."""
    every = daemon.jobs() + daemon.get("/v1/history")["jobs"]
    return sorted(j["id"] for j in every if daemon.job(j["id"])["spec"].get("schedule_id") == n)


def until_children(daemon, n, count):
    return until(lambda: len(found := children(daemon, n)) >= count and found, say=lambda: daemon.errors, pause=0.2)


def test_a_schedule_submits_jobs_by_the_clock_until_it_is_cancelled(daemon):
    n = daemon.submit(command=["sh", "-c", "date >> ran"], schedule={"cron": "* * * * *"}, name="beat")
    seen = daemon.job(n)
    assert seen["state"] == "held" and seen["schedule"]["next"] - time.time() <= 60
    assert "next job" in daemon.get(f"/v1/jobs/{n}/why")["sentence"]
    for verb in ["hold", "release", "suspend", "requeue"]:
        a = daemon.client().post(f"/v1/jobs/{n}/{verb}")
        assert a.status == 409 and "schedule" in a.json["error"]["message"], a
    (child,) = until_children(daemon, n, 1)
    job = daemon.wait(child)
    assert (job["cause"], job["name"]) == ("completed", "beat")
    assert daemon.job(n)["schedule"]["last_job"] == child
    daemon.post(f"/v1/jobs/{n}/cancel")
    assert daemon.wait(n)["cause"] == "cancelled"


def test_times_that_passed_without_a_daemon_come_to_one_job(daemon):
    n = daemon.submit(command=["sleep", "1000"], schedule={"cron": "* * * * *"}, array={"last": 1})
    waits = daemon.submit(command=["true"], schedule={"cron": "0 0 29 2 *"})
    daemon.kill()
    with storefile.edit(daemon.state) as db:
        (text,) = db.execute("select value from meta where name = 'schedules'").fetchone()
        old = json.loads(text)
        assert [x[0] for x in old] == [n, waits]
        old[0][1] -= 3600 * 1000000  # it waits since an hour ago
        db.execute("update meta set value = ? where name = 'schedules'", [json.dumps(old).encode()])
    daemon.start()
    first = until_children(daemon, n, 2)
    assert len(first) == 2  # one array of two
    daemon.until(first[0], "running")
    old_next = daemon.job(n)["schedule"]["next"]
    daemon.kill()
    daemon.start()  # the same jobs go on
    until(lambda: daemon.job(n)["schedule"]["next"] != old_next, pause=0.2)
    assert children(daemon, n) == first  # left out while they run
    assert daemon.job(waits)["schedule"]["last_job"] is None


def test_a_large_array_of_a_schedule_is_made_in_slices(tmp_path):
    """Others are served while its jobs are made; a daemon that dies in between makes all of them when it is back, once."""
    n = 100_000
    d = Daemon(tmp_path, gpus=1).start()
    try:
        d.until(d.submit(command=["sleep", "1000"], gpus=1), "running")  # so that the others wait
        schedule = d.submit(command=["true"], gpus=1, schedule={"cron": "0 0 29 2 *"}, array={"last": n - 1})

        made = {None}  # the last jobs of the schedule that are known

        def new_job():
            last = d.job(schedule)["schedule"]["last_job"]
            return None if last in made else last

        def seen_in_the_midst():
            d.kill()
            with storefile.edit(d.state) as db:  # it waits since ten years ago
                long_ago = json.dumps([[schedule, int((time.time() - 10 * 366 * 86400) * 1e6), 0]])
                db.execute("update meta set value = ? where name = 'schedules'", [long_ago.encode()])
            d.start()
            c = Client(d.socket)
            until(lambda: c.post("/v1/notes", {"text": "x"}).status == 503 or new_job())  # a long request is being worked on
            jobs = d.jobs()
            last = new_job()
            if not last:
                assert len(jobs) == 2
                return True
            made.add(last)  # the machine stopped this test for as long as that took: once more
            d.post(f"/v1/jobs/{last}/cancel")
            until(lambda: len(d.jobs()) == 2)
            return False

        until(seen_in_the_midst)
        d.kill()
        d.start()
        first = until(new_job)
        assert d.job(f"{first}_{n - 1}")["spec"]["schedule_id"] == schedule
        assert d.get("/v1/health")["jobs"] == n + 2
    finally:
        d.close()


def test_bad_schedules_are_refused(daemon):
    for more, words in [({"schedule": {"cron": "0 0 30 2 *"}}, "never comes"), ({"schedule": {"cron": "x"}}, "minute"),
                        ({"schedule": {}}, "needs \"cron\""), ({"schedule": {"cron": "@daily"}, "hold": True}, "together with schedule")]:
        a = daemon.client().post("/v1/jobs", {"command": ["true"], **more})
        assert a.status == (400 if "needs" in words else 422) and words in a.json["error"]["message"], a
    a = daemon.client().post("/v1/jobs?dry_run=1", {"command": ["true"], "schedule": {"cron": "@yearly"}})
    assert a.status == 200 and a.json["answer"] == "later" and a.json["expected_start"] > time.time(), a
