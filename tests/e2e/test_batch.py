# SPDX-License-Identifier: Apache-2.0
"""Batches of items: each is run once, whatever happens to workers and daemon, and what came of it is shown."""
import json
import os
import pathlib
import signal
import time

import pytest
from daemon import STOKERD, Daemon, stoker
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        yield d


def batch(daemon, items, script, **more):
    """Submits; (number, jobs it made). Every run appends its item to the file "ran"."""
    made = daemon.post("/v1/jobs", {"command": ["/bin/sh", "-c", 'echo "$STOKER_ITEM" >>ran; ' + script, "x", "{}"],
                                    "workdir": str(daemon.folder), "items": items, **more})
    return made["id"], list(range(made["id"], made["id"] + made["count"]))


def ran(daemon):
    path = daemon.folder / "ran"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def items_of(daemon, number, query=""):
    return daemon.get(f"/v1/jobs/{number}/items{query}")


def test_every_item_is_run_once_by_some_worker(daemon):
    items = [f"item {i}" for i in range(20)]
    n, workers = batch(daemon, items, 'test "$1" = "$STOKER_ITEM"', workers=3, gpus=1)
    assert len(workers) == 3 and daemon.job(n)["items"]["total"] == 20
    assert [daemon.wait(w)["cause"] for w in workers] == ["completed"] * 3
    assert sorted(ran(daemon)) == sorted(items)
    assert daemon.job(workers[-1])["items"] == {"total": 20, "todo": 0, "given": 0, "done": 20, "failed": 0}
    listed = items_of(daemon, n)
    assert [i["text"] for i in listed["items"]] == items and listed["next"] is None and listed["batch"] == n
    assert {(i["state"], i["code"], i["attempts"]) for i in listed["items"]} == {("done", 0, 1)}
    assert {i["worker"] for i in listed["items"]} <= set(workers)


def test_a_single_worker_is_no_array(daemon):
    n, workers = batch(daemon, ["a", "b"], "true")
    job = daemon.wait(n)
    assert workers == [n] and job["array_id"] is None and job["cause"] == "completed" and job["kind"] == "batch"
    assert ran(daemon) == ["a", "b"]


def test_there_are_no_more_workers_than_items(daemon):
    _, workers = batch(daemon, ["a", "b"], "true", workers=50)
    assert len(workers) == 2


def test_items_that_fail_are_counted_and_named(daemon):
    n, _ = batch(daemon, ["ok", "bad", "worse", "fine"], 'case "$1" in bad) exit 3;; worse) kill -9 $$;; esac')
    job = daemon.wait(n)
    assert (job["cause"], job["exit_code"], job["note"]) == ("failed", 1, "2 of 4 items failed")
    assert job["state_text"] == "failed with exit code 1: 2 of 4 items failed"
    assert job["items"] == {"total": 4, "todo": 0, "given": 0, "done": 2, "failed": 2}
    assert [(i["index"], i["code"]) for i in items_of(daemon, n, "?state=failed")["items"]] == [(1, 3), (2, 137)]


def test_the_worker_whose_item_failed_has_failed(daemon):
    n, workers = batch(daemon, ["a", "b", "bad", "d", "e", "f"], '[ "$1" != bad ]', workers=2)
    assert daemon.wait(n)["cause"] == "failed"  # the worst of them
    jobs = {w: daemon.job(w) for w in workers}
    guilty = items_of(daemon, n, "?state=failed")["items"][0]["worker"]
    assert {w: j["cause"] for w, j in jobs.items()} == {w: "failed" if w == guilty else "completed" for w in workers}
    assert "1 item failed here" in jobs[guilty]["note"]
    after = daemon.submit(command=["/bin/true"], depends=[{"type": "afterok", "job": n}])
    assert daemon.wait(after)["cause"] == "dependency_failed"


def test_items_that_fail_are_tried_again_as_often_as_allowed(daemon):
    n, _ = batch(daemon, ["a", "flaky", "bad"],
                 'case "$1" in flaky) [ -e once ] || { >once; exit 1; };; bad) exit 1;; esac', retry={"error": 2})
    job = daemon.wait(n)
    assert (job["cause"], job["note"], job["restarts"]) == ("failed", "1 of 3 items failed", 0)
    assert [i["attempts"] for i in items_of(daemon, n)["items"]] == [1, 2, 3]
    n, _ = batch(daemon, ["x"], "exit 7", retry={"error": 9, "exit_codes": [8]})
    daemon.wait(n)
    assert items_of(daemon, n)["items"][0]["attempts"] == 1


def test_a_worker_that_comes_too_late_ends_well(daemon):
    (daemon.folder / "wait").touch()
    n, workers = batch(daemon, ["a", "b"], "true", workers=2, gpus=4)  # one after the other
    assert [daemon.wait(w)["cause"] for w in workers] == ["completed", "completed"]
    assert sorted(ran(daemon)) == ["a", "b"] and daemon.job(n)["items"]["done"] == 2


SLOW = 'while [ ! -e go ] && [ "$1" = slow ]; do sleep 0.02; done'


def test_an_item_that_was_cut_short_is_done_again(daemon):
    n, _ = batch(daemon, ["a", "slow", "c"], SLOW)
    until(lambda: "slow" in ran(daemon))
    assert daemon.job(n)["items"] == {"total": 3, "todo": 1, "given": 1, "done": 1, "failed": 0}
    daemon.post(f"/v1/jobs/{n}/requeue")
    until(lambda: ran(daemon).count("slow") == 2)
    (daemon.folder / "go").touch()
    job = daemon.wait(n)
    assert job["cause"] == "completed" and job["items"]["done"] == 3 and job["restarts"] == 1
    assert ran(daemon) == ["a", "slow", "slow", "c"]
    assert [i["attempts"] for i in items_of(daemon, n)["items"]] == [1, 2, 1]


def test_the_item_of_a_killed_worker_goes_back(daemon):
    n, workers = batch(daemon, ["slow", "b"], SLOW, workers=2)
    holder = until(lambda: next((i["worker"] for i in items_of(daemon, n)["items"] if i["text"] == "slow" and i["state"] == "given"), None))
    until(lambda: "slow" in ran(daemon))
    other = next(w for w in workers if w != holder)
    daemon.wait(f"{n}_{other - n}")
    daemon.post(f"/v1/jobs/{holder}/cancel")
    daemon.wait(n)
    assert daemon.job(n)["items"] == {"total": 2, "todo": 1, "given": 0, "done": 1, "failed": 0}


def test_nothing_is_lost_or_done_twice_when_the_daemon_is_killed(daemon):
    items = [f"i{k}" for k in range(60)]
    n, workers = batch(daemon, items, "sleep 0.03", workers=4)
    for k in range(5):
        until(lambda k=k: len(ran(daemon)) >= 8 * (k + 1))
        daemon.kill()
        time.sleep(0.1)  # items end meanwhile, and nobody hands out the next
        daemon.start()
    assert [daemon.wait(w)["cause"] for w in workers] == ["completed"] * 4
    assert sorted(ran(daemon)) == sorted(items)
    assert daemon.job(n)["items"] == {"total": 60, "todo": 0, "given": 0, "done": 60, "failed": 0}
    assert {i["attempts"] for i in items_of(daemon, n)["items"]} == {1}


def test_the_outcome_of_a_supervisor_that_ended_while_nobody_looked_counts(daemon):
    n, _ = batch(daemon, ["slow"], SLOW + "; exit 5")
    until(lambda: ran(daemon) == ["slow"])
    shim = daemon.job(n)["supervisor"]
    daemon.kill()
    (daemon.folder / "go").touch()
    run_file = next(p for p in (daemon.state / "run").iterdir() if p.suffix != ".sock")
    until(lambda: "item_done" in run_file.read_text())
    os.kill(shim, signal.SIGKILL)  # it never said goodbye
    daemon.start()
    daemon.wait(n)
    assert [(i["state"], i["code"], i["attempts"]) for i in items_of(daemon, n)["items"]] == [("failed", 5, 1)]
    assert ran(daemon) == ["slow"]


def test_items_come_in_pages_and_only_to_those_who_may_see_them(daemon):
    n, _ = batch(daemon, [str(i) for i in range(25)], "true", hold=True)
    seen, after = [], ""
    while True:
        page = items_of(daemon, n, "?limit=10" + after)
        seen += [i["text"] for i in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == [str(i) for i in range(25)]
    assert {(i["state"], i["code"], i["worker"]) for i in items_of(daemon, n)["items"]} == {("todo", None, None)}
    assert daemon.client().get(f"/v1/jobs/{n}/items?state=odd").status == 400
    assert daemon.client().get("/v1/jobs/99999/items").status == 404
    plain = daemon.submit(command=["/bin/true"], hold=True)
    assert daemon.client().get(f"/v1/jobs/{plain}/items").status == 404


def test_tasks_and_items_do_not_go_together(daemon):
    a = daemon.client().post("/v1/jobs", {"command": ["x"], "items": ["a"], "tasks": 2})
    assert a.status == 422 and "workers" in a.message


def test_the_command_line_shows_progress(daemon):
    n, _ = batch(daemon, ["a", "slow"], SLOW)
    until(lambda: "slow" in ran(daemon))
    assert "items        1 of 2 items done, 1 under way" in stoker(daemon, "show", n)
    assert "1 of 2 items done" in stoker(daemon, "queue")
    assert json.loads(stoker(daemon, "show", "--json", n))["items"]["given"] == 1


def test_many_items_with_many_workers(daemon):
    items = [str(i) for i in range(300)]
    made = daemon.post("/v1/jobs", {"command": ["/bin/sh", "-c", ": >done-{}"], "workdir": str(daemon.folder), "items": items, "workers": 16})
    for w in range(made["id"], made["id"] + 16):
        assert daemon.wait(w)["cause"] == "completed"
    assert len(list(pathlib.Path(daemon.folder).glob("done-*"))) == 300
