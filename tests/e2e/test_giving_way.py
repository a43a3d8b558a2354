# SPDX-License-Identifier: Apache-2.0
"""Who gives way on a live daemon: costs, protection, budgets, and how jobs leave. Processes are real."""
import json
import subprocess
import time

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
    before, until = d.get("/v1/health")["seq"], time.monotonic() + 60
    stoker(d, "checkpointed", env={"STOKER_JOB_ID": str(saved)})
    while d.get("/v1/health")["seq"] == before:  # an event, and nobody else says anything
        assert time.monotonic() < until
        time.sleep(0.05)
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


def part(d, *words):
    return int(stoker(d, "submit", "--gpus", "0.5", *words, "--", *SLEEP).split()[-1])


def test_defrag_moves_who_may_so_that_another_starts(daemon):
    d = daemon
    jobs = [part(d, "--movable") for _ in range(4)]
    runs(d, *jobs)
    at = {j: d.job(j)["gpu_indices"] for j in jobs}
    (left, gone), (right, other) = ([j for j in jobs if at[j] == [gpu]] for gpu in (0, 1))
    for job in (gone, other):  # half of each GPU is free
        d.post(f"/v1/jobs/{job}/cancel")
        d.wait(job)
    waits = d.submit(command=SLEEP, gpus=1)
    assert state(d, waits) == "waiting"
    plan = json.loads(stoker(d, "defrag", "--plan", "--json"))
    assert plan["doing"] is False and len(plan["plans"]) == 1
    assert plan["plans"][0]["for"]["id"] == waits
    (move,) = plan["plans"][0]["moves"]
    assert move["id"] in (left, right) and plan["plans"][0]["cost_gpu_s"] > 0
    assert "would start" in stoker(d, "defrag", "--plan")
    assert state(d, waits) == "waiting" and all(state(d, j) == "running" for j in (left, right))
    assert "starts when they have gone" in stoker(d, "defrag")
    runs(d, waits, left, right)
    assert d.job(left)["gpu_indices"] == d.job(right)["gpu_indices"] != d.job(waits)["gpu_indices"]
    assert "nothing to move" in stoker(d, "defrag")


def test_defrag_moves_nobody_who_did_not_say_so(daemon):
    d = daemon
    jobs = [part(d) for _ in range(4)]
    runs(d, *jobs)
    at = {j: d.job(j)["gpu_indices"] for j in jobs}
    for gpu in (0, 1):
        job = next(j for j in jobs if at[j] == [gpu])
        d.post(f"/v1/jobs/{job}/cancel")
        d.wait(job)
    assert state(d, d.submit(command=SLEEP, gpus=1)) == "waiting"
    assert json.loads(stoker(d, "defrag", "--plan", "--json"))["plans"] == []
