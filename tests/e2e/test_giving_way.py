# SPDX-License-Identifier: Apache-2.0
"""Who gives way on a live daemon: costs, protection, budgets, and how jobs leave. Processes are real."""
import json
import re
import subprocess

import prom
import pytest
from daemon import STOKER, Daemon, stoker
from patience import until

SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path, gpus=2)
    d.start()
    yield d
    d.close()


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
    before = d.get("/v1/health")["seq"]
    stoker(d, "checkpointed", env={"STOKER_JOB_ID": str(saved)})
    until(lambda: d.get("/v1/health")["seq"] != before)  # an event, and nobody else says anything
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


def test_a_job_is_warned_saves_and_is_queued_again(tmp_path):
    d = Daemon(tmp_path, gpus=1, config="policy:\n  params:\n    preempt.best_effort: signal\n")
    d.start()
    try:
        marks = tmp_path / "marks"
        job = d.submit(command=["/bin/sh", "-c", f"trap 'echo saved >> {marks}; exit 0' USR1; echo run $STOKER_RESTARTS >> {marks}; while :; do sleep 0.1; done"],
                       gpus=1, queue="preemptible", signal={"signal": "USR1", "seconds": 60})
        runs(d, job)
        until(marks.exists)  # its trap is set
        other = high(d)
        runs(d, other)
        assert state(d, job) == "waiting" and d.job(job)["preemptions"] == 1
        assert marks.read_text() == "run 0\nsaved\n"
        d.post(f"/v1/jobs/{other}/cancel")
        d.wait(other)
        runs(d, job)
        assert d.job(job)["restarts"] == 1
    finally:
        d.close()


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
        counts = prom.parse(d.web().get("/metrics").body.decode())  # in the words of the queue
        counts = {s: prom.value(counts, "stoker_jobs", state=s) for s in ("suspended", "waiting", "held")}
        assert counts == {s: int(s in states) for s in counts}
        assert {s: d.get("/v1/cluster")["jobs"][s] for s in counts} == counts
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
    gain = plan["plans"][0]["gain"]
    assert [j["id"] for j in gain["starts"]] == [waits] and 0 <= gain["fragmentation_after"] <= gain["fragmentation_before"] <= 1
    text = stoker(d, "defrag", "--plan")
    assert "would start" in text and "GPU-seconds; gain:" in text
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


@pytest.fixture
def nodes(tmp_path):
    with Daemon(tmp_path, gpus=4, config="virtual_nodes: 3\n") as d:
        yield d


def node(d, job):
    return d.job(job)["node"]


def test_a_node_is_emptied_for_maintenance(nodes):
    d = nodes
    a, b, c = (int(stoker(d, "submit", "--gpus", str(n), "--movable", "--", *SLEEP).split()[-1]) for n in (1, 2, 3))
    runs(d, a, b, c)
    first = node(d, a)
    assert node(d, b) == first != node(d, c)
    plan = json.loads(stoker(d, "defrag", "--empty", first, "--plan", "--json"))
    (plan,) = plan["plans"]
    assert plan["possible"] and plan["empty"] == first and plan["for"] is None and plan["stays"] == []
    assert [m["id"] for m in plan["moves"]] == [b, a]  # the largest first
    assert all(m["to"] != first for m in plan["moves"]) and plan["cost_gpu_s"] == sum(m["cost_gpu_s"] for m in plan["moves"]) > 0
    text = stoker(d, "defrag", "--empty", first, "--plan")
    assert f"node {first} would be empty" in text and re.search(r"fragmentation \d+% -> \d+%", text), text
    assert node(d, a) == first and d.job(a)["restarts"] == 0  # nothing was done
    assert f"node {first} takes no new jobs" in stoker(d, "defrag", "--empty", first)
    until(lambda: first not in (node(d, a), node(d, b)) and all(state(d, j) == "running" for j in (a, b)))
    assert {m["id"]: m["to"] for m in plan["moves"]} == {j: node(d, j) for j in (a, b)}
    assert (d.job(a)["restarts"], d.job(c)["restarts"]) == (1, 0) and d.job(a)["preemptions"] == 0
    row = {n["name"]: n for n in d.get("/v1/nodes")["nodes"]}[first]
    assert (row["state"], row["gpus_busy"], row["gpus_drained"]) == ("drained", 0, 4)
    late = d.submit(command=SLEEP, gpus=4)
    assert state(d, late) == "waiting"
    d.restart()
    assert state(d, late) == "waiting" and "the node is empty" in stoker(d, "defrag", "--empty", first)
    stoker(d, "undrain", first)
    d.until(late, "running")
    assert node(d, late) == first


def test_what_keeps_a_node_is_said_and_best_chooses_another(nodes):
    d = nodes
    stays = d.submit(command=SLEEP, gpus=3)
    goes = d.submit(command=SLEEP, gpus=2, movable=True)
    fills = d.submit(command=SLEEP, gpus=1, movable=True)
    runs(d, stays, goes, fills)
    done = subprocess.run([STOKER, "--socket", d.socket, "defrag", "--empty", node(d, stays)], capture_output=True, text=True, env=d.env)
    assert done.returncode == 1 and f"job {stays} did not say that it may be moved" in done.stdout
    best = json.loads(stoker(d, "defrag", "--empty", "best", "--plan", "--json"))["plans"][0]
    assert best["empty"] == node(d, goes) and best["moves"][0]["id"] == goes
    a = d.client().get("/v1/defrag?empty=nowhere")
    assert a.status == 404 and "best chooses one" in a.json["error"]["message"]
    user = d.web(d.post("/v1/tokens", {"name": "t", "role": "user"})["token"])
    assert user.get("/v1/defrag?empty=best").status == 200 and user.post("/v1/defrag?empty=best", {}).status == 403


def evictions(d, job):
    return [e for e in d.get(f"/v1/jobs/{job}/events")["events"] if e["type"] == "evict"]


def test_its_life_says_for_whom_it_was_preempted_and_why(daemon):
    d = daemon
    stopped, slept = low(d, suspend="never"), low(d)
    runs(d, stopped, slept)
    other = d.submit(command=SLEEP, gpus=2, tier="critical", name="big")
    runs(d, other)
    user = d.job(other)["user"]
    for job, text in ((stopped, f"preempted by job {other} ({user}, tier critical) to make room: 2 GPUs"),
                      (slept, f"suspended for job {other} ({user}, tier critical) to make room: 2 GPUs")):
        (event,) = evictions(d, job)
        assert event["sentence"] == text
        assert (event["for"]["id"], event["for"]["user"], event["for"]["tier"], event["for"]["gpus"]) == (other, user, "critical", 2)
    assert f"preempted by job {other} ({user}, tier critical) to make room: 2 GPUs" in stoker(d, "show", stopped)
    d.post(f"/v1/jobs/{other}/cancel")
    d.wait(other)
    runs(d, stopped, slept)
    later = [low(d) for _ in range(20)]  # whoever has the slot of the other job by now
    d.restart()
    (event,) = evictions(d, stopped)
    assert event["for"]["id"] == other and event["for"]["user"] == user and "2 GPUs" in event["sentence"]
    d.post(f"/v1/jobs/{slept}/suspend")
    d.until(slept, "suspended")
    assert evictions(d, slept)[-1]["sentence"] == "suspended by hand" and evictions(d, slept)[-1]["for"] is None
    stoker(d, "cancel", *later)
