# SPDX-License-Identifier: Apache-2.0
"""Who gives way on a live daemon: costs, protection, budgets, and how jobs leave. Processes are real."""
import subprocess

import pytest
from daemon import STOKER, Daemon

SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path, gpus=2)
    d.start()
    yield d
    d.close()


def stoker(d, *words, env=None):
    done = subprocess.run([STOKER, "--socket", d.socket, *words], capture_output=True, text=True, timeout=60,
                          env={**d.env, **(env or {})})
    assert done.returncode == 0, done.stderr
    return done.stdout


def state(d, job):
    return d.job(job)["state"]


def runs(d, *jobs):
    for job in jobs:
        d.until(job, "running")


def low(d, **more):
    return d.submit(command=SLEEP, gpus=1, queue="preemptible", **more)


def high(d, **more):
    return d.submit(command=SLEEP, gpus=1, queue="express", **more)


def test_who_has_saved_its_work_goes_first(daemon):
    d = daemon
    saved, other = low(d, suspend="never"), low(d, suspend="never")  # of equals the later one would go
    runs(d, saved, other)
    stoker(d, "checkpointed", env={"STOKER_JOB_ID": str(saved)})
    runs(d, high(d))
    assert state(d, saved) == "waiting" and state(d, other) == "running"


def test_a_job_may_ask_to_be_left_alone_for_a_while(daemon):
    d = daemon
    first, second = low(d, min_run_s=3600), low(d)
    runs(d, first, second)
    runs(d, high(d))
    assert state(d, first) == "running"
    waits = high(d)
    assert state(d, waits) == "waiting" and state(d, first) == "running"


def test_of_a_group_so_many_stay_up(daemon):
    d = daemon
    members = [int(stoker(d, "submit", "--gpus", "1", "--queue", "preemptible", "--keep-up", "serving:1", "--", *SLEEP).split()[-1])
               for _ in range(2)]
    runs(d, *members)
    runs(d, high(d))
    waits = high(d)
    assert state(d, waits) == "waiting"
    assert sorted(state(d, m) == "running" for m in members) == [False, True]


@pytest.mark.parametrize("how, states", [("suspend", {"suspended"}), ("kill", {"waiting"})])
def test_the_tier_says_how_jobs_leave(tmp_path, how, states):
    d = Daemon(tmp_path, gpus=1, config=f"policy:\n  params:\n    preempt.best_effort: {how}\n")
    d.start()
    try:
        mark = tmp_path / "mark"
        job = d.submit(command=["/bin/sh", "-c", f"trap 'sleep 1; echo saved > {mark}; exit 0' USR1; while :; do sleep 0.1; done"],
                       gpus=1, queue="preemptible", signal={"signal": "USR1", "seconds": 30})
        runs(d, job)
        runs(d, high(d))
        assert state(d, job) in states
        assert not mark.exists()  # asleep it need not save; killed it cannot
    finally:
        d.close()
