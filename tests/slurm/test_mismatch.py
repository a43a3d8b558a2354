# SPDX-License-Identifier: Apache-2.0
"""Slurm does something else than was decided: it refuses a start, starts a job elsewhere or not at all, lays a gang out
otherwise, or a node dies in between. Each is decided anew. The Slurm of these tests is played by the tests."""
import pytest
from daemon import STOKERD
from fake_slurm import FakeSlurm
from patience import until
from slurm import wait_for

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")
JOB = {"command": ["/bin/true"], "workdir": "/tmp"}


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8) as s:
        yield s


def pieces(slurm, n):
    return {p["node"]: p["gpu_indices"] for p in slurm.daemon.job(n)["pieces"]}


def runs(slurm, ask, number, where):
    slurm.answer(ask, job=number)
    slurm.job(number, ask["comment"], pieces=where)


def ends(slurm, n, ask, number):
    slurm.job(number, ask["comment"], state="completed")
    assert slurm.daemon.wait(n)["cause"] == "completed"


def comes_back(slurm, n, ask):
    """Job 7 of two GPUs is requeued, held, started again and ends."""
    slurm.answer(slurm.expect("requeue"))
    slurm.job(7, ask["comment"], state="pending", held=True, nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:2", restarts=1)
    again = slurm.expect("start")
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: [0, 1]}, restarts=1)
    ends(slurm, n, again, 7)


def test_slurm_refuses_the_start_and_it_is_tried_again(slurm):
    n = slurm.daemon.submit(gpus=1, **JOB)
    for _ in range(2):
        slurm.answer(slurm.expect("submit"), ok=False, why="Access denied", code=2, unanswered=False, unknown=False)
    ask = slurm.expect("submit")
    assert "Slurm refused it: Access denied" in slurm.daemon.job(n)["note"]
    runs(slurm, ask, 7, {"n1": [0]})
    slurm.daemon.until(n, "running")
    ends(slurm, n, ask, 7)


def test_what_slurm_refuses_each_time_ends_with_its_sentence(slurm):
    n = slurm.daemon.submit(gpus=1, **JOB)
    for _ in range(3):
        slurm.answer(slurm.expect("submit"), ok=False, why="Access denied", code=2, unanswered=False, unknown=False)
    job = slurm.daemon.wait(n)
    assert job["cause"] == "not_started" and "Access denied" in job["note"]


def test_slurm_starts_it_elsewhere(slurm):
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    other = {"n1": "n2", "n2": "n1"}[ask["nodes"]]
    runs(slurm, ask, 7, {other: [0, 1]})
    back = slurm.expect("requeue")
    slurm.answer(back)
    slurm.job(7, ask["comment"], state="pending", held=True, nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:2", restarts=1)
    again = slurm.expect("start")
    assert again["job"] == 7 and "elsewhere" in slurm.daemon.job(n)["note"]
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: [0, 1]}, restarts=1)
    slurm.daemon.until(n, "running")
    ends(slurm, n, again, 7)


def test_one_that_slurm_starts_elsewhere_again_rests(slurm):
    """Two gangs that Slurm lays out otherwise than was decided would be in each other's way for ever."""
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    for k in range(2):
        slurm.job(7, ask["comment"], pieces={{"n1": "n2", "n2": "n1"}[ask["nodes"]]: [0, 1]}, restarts=k)
        slurm.answer(slurm.expect("requeue"))
        slurm.job(7, ask["comment"], state="pending", held=True, nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:2", restarts=k + 1)
        if k == 0:
            ask = slurm.expect("start")
            slurm.answer(ask)
    job = until(lambda: (j := slurm.daemon.job(n)).get("warning") and j)
    assert "it is tried again after 10 s" in job["warning"] and job["state"] != "starting"
    again = slurm.expect("start")
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: [0, 1]}, restarts=2)
    slurm.daemon.until(n, "running")
    wait_for(lambda: not slurm.daemon.job(n).get("warning"))
    ends(slurm, n, again, 7)


def test_a_requeue_that_slurm_does_not_do_is_asked_for_again(slurm):
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    runs(slurm, ask, 7, {{"n1": "n2", "n2": "n1"}[ask["nodes"]]: [0, 1]})
    slurm.answer(slurm.expect("requeue"), ok=False, why="Job is pending execution", code=1, unanswered=False, unknown=False)
    comes_back(slurm, n, ask)


@pytest.mark.parametrize("state", ["down", "drain", "joining"])
def test_the_node_goes_between_release_and_start(slurm, state):
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    slurm.job(7, ask["comment"], state="pending", nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:2")
    slurm.nodes(state, names=[ask["nodes"]])
    hold = slurm.expect("update")
    assert hold["job"] == 7 and hold["hold"]
    slurm.answer(hold)
    slurm.job(7, ask["comment"], state="pending", held=True, nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:2")
    again = slurm.expect("start")
    assert again["nodes"] != ask["nodes"] and "takes no jobs any more" in slurm.daemon.job(n)["note"]
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: [0, 1]})
    slurm.daemon.until(n, "running")
    slurm.nodes(names=[ask["nodes"]])  # it is not avoided for that
    wait_for(lambda: sum(x["gpus_free"] for x in slurm.daemon.get("/v1/nodes")["nodes"]) == 14)
    ends(slurm, n, again, 7)


def test_one_that_starts_after_all_goes_on(slurm):
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    slurm.job(7, ask["comment"], state="pending", nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:2")
    slurm.nodes("drain", names=[ask["nodes"]])
    hold = slurm.expect("update")
    slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0, 1]})
    slurm.answer(hold, ok=False, why="Job is no longer pending execution", code=1, unanswered=False, unknown=False)
    slurm.daemon.until(n, "running")
    ends(slurm, n, ask, 7)
    assert not any(a["op"] == "requeue" for a in list(slurm.asked.queue))


def test_slurm_does_not_start_it(slurm):
    """Its own reason is said, and it is tried elsewhere."""
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    waits = {"state": "pending", "nodes_wanted": 1, "tasks": 1, "tres_per_node": "gres:gpu:2", "reason": "Resources"}
    slurm.job(7, ask["comment"], **waits)
    slurm.answer(slurm.expect("update"))
    slurm.job(7, ask["comment"], held=True, **waits)
    again = slurm.expect("start")
    assert again["nodes"] != ask["nodes"] and slurm.daemon.job(n)["note"] == "Slurm did not start it: Resources"
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: [0, 1]})
    ends(slurm, n, again, 7)


def refuses(slurm, ask):
    """For now."""
    slurm.answer(ask, ok=False, why="Resource temporarily unavailable", code=11, unanswered=False, unknown=False, passes=True)


def rests(slurm, n):
    wait_for(lambda: slurm.daemon.job(n)["state"] == "blocked")
    assert "it is tried again after" in slurm.daemon.job(n)["warning"]


def test_what_slurm_refuses_for_now_ends_no_job(slurm):
    n = slurm.daemon.submit(gpus=1, **JOB)
    for _ in range(4):
        refuses(slurm, slurm.expect("submit"))
        rests(slurm, n)
        slurm.partitions()  # which have changed: it may be taken now
    ask = slurm.expect("submit")
    runs(slurm, ask, 7, {"n1": [0]})
    slurm.daemon.until(n, "running")
    wait_for(lambda: not slurm.daemon.job(n).get("warning"))
    ends(slurm, n, ask, 7)


def test_a_start_of_one_that_waits_there_is_refused_for_now(slurm):
    """It stays there, under its number."""
    n, ask = put_back(slurm)
    slurm.nodes()
    for _ in range(2):
        refuses(slurm, slurm.expect("start"))
        rests(slurm, n)
        slurm.partitions()
    again = slurm.expect("start")
    assert again["job"] == 7
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: list(range(8))})
    ends(slurm, n, again, 7)


def in_vain(slurm, ask, number, reason="Resources", op="submit"):
    """Slurm takes it, does not start it, and it is held."""
    slurm.answer(ask, **({"job": number} if op == "submit" else {}))
    waits = {"state": "pending", "nodes_wanted": ask["n_nodes"], "tasks": ask["tasks"], "tres_per_node": ask["tres_per_node"], "reason": reason}
    slurm.job(number, ask["comment"], **waits)
    slurm.answer(slurm.expect("update"))
    slurm.job(number, ask["comment"], held=True, **waits)
    slurm.answer(slurm.expect("left"), nodes=[], steps=[])


def shut(slurm):
    return [x["name"] for x in slurm.daemon.get("/v1/nodes")["nodes"] if x["gpus_free"] == 0]


def test_jobs_of_one_user_shut_one_node_a_minute(slurm):
    """And what fails a second time in a row rests, whatever Slurm's reason."""
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    in_vain(slurm, ask, 7)
    again = slurm.expect("start")
    assert again["nodes"] != ask["nodes"] and shut(slurm) == [ask["nodes"]]
    in_vain(slurm, again, 7, op="start")
    rests(slurm, n)
    assert slurm.daemon.job(n)["note"] == "Slurm did not start it: Resources" and again["nodes"] not in shut(slurm)


def test_what_is_not_the_nodes_fault_shuts_none(slurm):
    n = slurm.daemon.submit(gpus=2, **JOB)
    in_vain(slurm, slurm.expect("submit"), 7, reason="QOSMaxGRESPerUser")
    rests(slurm, n)
    assert shut(slurm) == [] and "QOSMaxGRESPerUser" in slurm.daemon.job(n)["warning"]
    again = slurm.expect("start")  # by itself, some seconds later
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: [0, 1]})
    ends(slurm, n, again, 7)


def test_a_gang_is_as_slurm_lays_it_out(slurm):
    n = slurm.daemon.submit(gpus=4, tasks=3, script="#!/bin/sh\ntrue\n", launch="once", workdir="/tmp")
    ask = slurm.expect("submit")
    before = pieces(slurm, n)
    assert sorted(map(len, before.values())) == [4, 8] and ask["tres_per_task"] == "gres:gpu:4" and ask["tasks"] == 3
    few, many = sorted(before, key=lambda x: len(before[x]))
    runs(slurm, ask, 7, {few: list(range(8)), many: [4, 5, 6, 7]})
    slurm.daemon.until(n, "running")
    wait_for(lambda: pieces(slurm, n) == {few: list(range(8)), many: [4, 5, 6, 7]})
    ends(slurm, n, ask, 7)
    assert [x["gpus_free"] for x in slurm.daemon.get("/v1/nodes")["nodes"]] == [8, 8]


def test_gpus_that_slurm_has_lost_count_of_are_given_to_nobody(slurm):
    slurm.nodes(used=6, names=["n1"])
    wait_for(lambda: [x["gpus_free"] for x in slurm.daemon.get("/v1/nodes")["nodes"]] == [2, 8])
    slurm.daemon.errors_with("node n1: Slurm has 6 GPUs in use there that no job has")
    ask = slurm.expect("submit") if slurm.daemon.submit(gpus=8, **JOB) else None
    assert ask["nodes"] == "n2"
    slurm.nodes(names=["n1"])
    wait_for(lambda: [x["gpus_free"] for x in slurm.daemon.get("/v1/nodes")["nodes"]] == [8, 0])


def test_gpus_that_slurm_gives_an_exclusive_job_are_not_lost(slurm):
    n = slurm.daemon.submit(gpus=1, exclusive=True, **JOB)
    ask = slurm.expect("submit")
    assert ask["exclusive"]
    runs(slurm, ask, 7, {ask["nodes"]: list(range(8))})
    slurm.daemon.until(n, "running")
    other = {"n1": "n2", "n2": "n1"}[ask["nodes"]]
    slurm.nodes(used=8, names=[ask["nodes"]])
    slurm.nodes(used=6, names=[other])
    slurm.daemon.errors_with(f"node {other}: Slurm has 6 GPUs in use there that no job has")
    assert not any(f"node {ask['nodes']}:" in line for line in slurm.daemon.errors)
    ends(slurm, n, ask, 7)


def test_a_job_that_no_node_knows_is_put_back(slurm):
    """slurmctld was killed, and thinks that a job runs which has ended."""
    n = slurm.daemon.submit(gpus=2, **JOB)
    ask = slurm.expect("submit")
    runs(slurm, ask, 7, {ask["nodes"]: [0, 1]})
    slurm.daemon.until(n, "running")
    slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0, 1]}, all_of_them=True)
    slurm.answer(slurm.expect("left"), nodes=[], steps=[ask["nodes"]])  # its end is about to be told
    for _ in range(2):
        slurm.answer(slurm.expect("left"), nodes=[], steps=[])
    comes_back(slurm, n, ask)


def test_a_daemon_that_comes_back_takes_over_the_gpus_that_slurm_chose(slurm):
    """Each of two has the GPU that is the other's in the books."""
    jobs = [slurm.daemon.submit(gpus=1, **JOB) for _ in range(2)]
    asks = [slurm.expect("submit") for _ in range(2)]
    slurm.answer(asks[0], job=7)
    slurm.answer(asks[1], job=8)
    before = [pieces(slurm, n) for n in jobs]
    assert asks[0]["nodes"] == asks[1]["nodes"] and before[0] != before[1]
    slurm.daemon.kill()
    slurm.there = [slurm.describe(7, asks[0]["comment"], pieces=before[1]), slurm.describe(8, asks[1]["comment"], pieces=before[0])]
    slurm.daemon.start()
    wait_for(lambda: [pieces(slurm, n) for n in jobs] == before[::-1])
    for n, ask, number in zip(jobs, asks, (7, 8)):
        ends(slurm, n, ask, number)


def put_back(slurm):
    """A job that was sent and is held again, before it ran; its number, and the request."""
    n = slurm.daemon.submit(gpus=8, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    slurm.job(7, ask["comment"], state="pending", nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:8")
    slurm.nodes("drain")
    slurm.answer(slurm.expect("update"))
    slurm.job(7, ask["comment"], state="pending", held=True, nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:8")
    slurm.answer(slurm.expect("left"), nodes=[], steps=[])
    slurm.daemon.until(n, "waiting")
    return n, ask


def test_a_slurmctld_that_forgot_a_hold_is_told_again(slurm):
    n, ask = put_back(slurm)
    waits = {"state": "pending", "nodes_wanted": 1, "tasks": 1, "tres_per_node": "gres:gpu:8"}
    slurm.job(7, ask["comment"], all_of_them=True, **waits)
    hold = slurm.expect("update")
    assert hold["job"] == 7 and hold["hold"]
    slurm.nodes()
    slurm.answer(slurm.expect("update"))  # it is not sent anew meanwhile
    slurm.job(7, ask["comment"], held=True, **waits)
    again = slurm.expect("start")
    slurm.answer(again)
    slurm.job(7, again["comment"], pieces={again["nodes"]: list(range(8))})
    ends(slurm, n, again, 7)


def test_one_that_ran_meanwhile_is_not_run_again(slurm):
    n, ask = put_back(slurm)
    slurm.job(7, ask["comment"], state="completed", all_of_them=True)
    slurm.nodes()
    assert slurm.daemon.wait(n)["cause"] == "completed"
    assert not any(a["op"] in ("submit", "start") for a in list(slurm.asked.queue))


def test_measuring_goes_on_when_nodes_come_and_no_job_is_there(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8, config="series: {step: 1s}\n") as slurm:
        n = slurm.daemon.submit(gpus=1, **JOB)
        ask = slurm.expect("submit")
        runs(slurm, ask, 7, {ask["nodes"]: [0]})
        slurm.daemon.until(n, "running")
        ends(slurm, n, ask, 7)
        slurm.names.append("n3")
        slurm.say(op="partitions", partitions=[{"name": "main", "up": True, "default": True, "nodes": slurm.names, "max_time_s": None, "default_time_s": None}])
        slurm.nodes(all_of_them=True)
        wait_for(lambda: len(slurm.daemon.get("/v1/nodes")["nodes"]) == 3)

        def points():
            return sum(x is not None for s in slurm.daemon.get("/v1/series?of=cluster")["series"] for x in s["allocated"])
        before = points()
        wait_for(lambda: points() > before + 2)
