# SPDX-License-Identifier: Apache-2.0
"""A slurmctld that was killed has forgotten something of a job: that it ended, that it was put back, our mark on it. The Slurm
of these tests is played by the tests."""
import time

import pytest
from daemon import STOKERD
from fake_slurm import FakeSlurm, gpus
from slurm import wait_for

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")
JOB = {"command": ["/bin/true"], "workdir": "/tmp"}


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8) as s:
        yield s


def waits(slurm, mark="stoker", **more):
    """What Slurm says of job 9, which a user has sent."""
    return {**slurm.describe(9, "", state="pending", held=True, batch=True, requeue=True, tasks=1, nodes_wanted=1, max_nodes=1, gpus_per_node=gpus(2),
                             tres_per_node="gres:gpu:2", workdir="/tmp", command="own.sh", name="own", submitted=5), "admin_comment": mark, **more}


def say(slurm, job, all_of_them=False):
    slurm.say(op="jobs", all=all_of_them, last=True, jobs=[job] if job else [], gone=[])


def taken(slurm):
    """Job 9 becomes one of ours. Its number."""
    say(slurm, waits(slurm))
    wait_for(lambda: slurm.daemon.client().ask("GET", "/v1/jobs").json["jobs"])
    return slurm.daemon.client().ask("GET", "/v1/jobs").json["jobs"][0]["id"]


def started(slurm):
    """... and runs. Our mark on it."""
    ask = slurm.expect("start")
    slurm.answer(ask)
    return ask["admin_comment"], ask["nodes"]


def runs(slurm, mark, node, **more):
    where = [{"node": node, "gpus": gpus(2, [0, 1])}]
    return waits(slurm, mark, state="running", held=False, pieces=where, started=6, **more)


def finds(slurm, *jobs, new):
    """A daemon finds Slurm with these: a new one, or the one there is when slurmctld is back."""
    if not new:
        slurm.say(op="jobs", all=True, last=True, jobs=jobs, gone=[])
        return
    slurm.daemon.kill()
    slurm.there = list(jobs)
    slurm.daemon.start()


def test_one_that_runs_by_slurms_word_alone_is_put_back_after_a_restart_of_ours(slurm):
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0]})
    slurm.daemon.until(n, "running")
    slurm.daemon.kill()
    slurm.there = [slurm.describe(7, ask["comment"], pieces={ask["nodes"]: [0]})]
    slurm.daemon.start()
    assert slurm.expect("requeue")["job"] == 7  # its node was asked twice, and knew nothing of it


def test_a_users_job_that_has_ended_and_runs_again_by_slurms_word_alone_is_ended(slurm):
    n = taken(slurm)
    mark, node = started(slurm)
    say(slurm, runs(slurm, mark, node))
    slurm.daemon.until(n, "running")
    say(slurm, {**runs(slurm, mark, node), "state": "completed"})
    assert slurm.daemon.wait(n)["cause"] == "completed"
    say(slurm, runs(slurm, mark, node), all_of_them=True)
    assert slurm.expect("cancel")["job"] == 9
    wait_for(lambda: any(f"job {n} has ended" in line and "knows nothing of it" in line for line in slurm.daemon.errors))


def test_so_is_one_that_a_new_daemon_finds(slurm):
    n = taken(slurm)
    mark, node = started(slurm)
    say(slurm, runs(slurm, mark, node))
    slurm.daemon.until(n, "running")
    say(slurm, {**runs(slurm, mark, node), "state": "completed"})
    slurm.daemon.wait(n)
    slurm.daemon.kill()
    slurm.there = [runs(slurm, mark, node)]
    slurm.daemon.start()
    assert slurm.expect("cancel")["job"] == 9


@pytest.mark.parametrize("new", [False, True], ids=["slurmctld", "both"])
def test_of_one_that_was_never_ours_people_are_told(slurm, new):
    """... who comes back: slurmctld alone, or the daemon with it."""
    job = {**runs(slurm, "", "n1"), "comment": "x"}
    finds(slurm, job, new=new)
    for _ in range(2):
        ask = slurm.expect("left")
        assert (ask["job"], ask["nodes"]) == (9, "n1")
        slurm.answer(ask, nodes=[], steps=[])
    wait_for(lambda: any("scancel 9" in line for line in slurm.daemon.errors))


def test_one_whose_processes_are_there_is_left_alone(slurm):
    say(slurm, runs(slurm, "", "n1"), all_of_them=True)
    slurm.answer(slurm.expect("left"), nodes=[], steps=["n1"])
    slurm.answer(slurm.expect("left"), nodes=["n1"], steps=["n1"])
    n = slurm.daemon.submit(gpus=1, **JOB)
    slurm.expect("submit")
    assert n and not any("scancel 9" in line for line in slurm.daemon.errors)


def test_a_users_job_that_slurm_forgot_to_have_put_back_is_put_back(slurm):
    n = taken(slurm)
    mark, node = started(slurm)
    say(slurm, runs(slurm, mark, node))
    slurm.daemon.until(n, "running")
    slurm.nodes("down", names=[node])
    say(slurm, waits(slurm, mark, restarts=1))
    again, other = started(slurm)
    slurm.daemon.kill()  # before anything is heard of that
    slurm.there = [runs(slurm, mark, node)]
    slurm.daemon.start()
    ask = slurm.expect("requeue")
    assert ask["job"] == 9 and slurm.daemon.job(n)["state"] != "done"
    slurm.answer(ask)
    say(slurm, waits(slurm, mark, restarts=1))
    again, other = started(slurm)
    say(slurm, runs(slurm, again, other, restarts=1))
    say(slurm, {**runs(slurm, again, other), "state": "completed"})
    assert slurm.daemon.wait(n)["cause"] == "completed"


def test_one_without_our_mark_that_is_cancelled_at_once_is_gone(slurm):
    say(slurm, waits(slurm, "x"))  # its user holds it
    slurm.answer(slurm.expect("script"))
    wait_for(lambda: slurm.daemon.client().ask("GET", "/v1/jobs").json["jobs"])
    n = slurm.daemon.client().ask("GET", "/v1/jobs").json["jobs"][0]["id"]
    slurm.daemon.until(n, "held")
    slurm.daemon.kill()
    slurm.there = [waits(slurm, "x")]
    slurm.daemon.start()
    slurm.expect("script")
    say(slurm, {**waits(slurm, "x"), "state": "cancelled"})
    assert slurm.daemon.wait(n)["state"] == "done"


def test_one_that_slurm_could_not_launch_is_not_held_by_its_user(slurm):
    """Slurm started it before it was seen here, and has held it since."""
    say(slurm, waits(slurm, "", reason="launch failed requeued held", restarts=1))
    slurm.answer(slurm.expect("script"))
    assert slurm.expect("start")["job"] == 9


def test_the_last_element_of_an_array_that_slurm_does_not_start_is_decided_anew(slurm):
    """It has no record of its own until it runs: what is left of the array is its record."""
    array = {"array_job": 9, "array_task": None, "array_tasks": "3"}
    say(slurm, waits(slurm, **array))
    ask = slurm.expect("start")
    slurm.answer(ask)
    mark, node = ask["admin_comment"], ask["nodes"]
    assert ask["job"] == "9_3"
    say(slurm, waits(slurm, mark, held=False, reason="Resources", **array))
    slurm.nodes("drained", names=[node])
    assert slurm.expect("update")["hold"]
    say(slurm, waits(slurm, mark, **array))
    again = slurm.expect("start")
    assert again["job"] == "9_3" and again["nodes"] != node
    slurm.answer(again)
    say(slurm, {**runs(slurm, again["admin_comment"], again["nodes"]), "array_job": 9, "array_task": 3, "array_tasks": ""})
    n = slurm.daemon.client().ask("GET", "/v1/jobs").json["jobs"][0]["id"]
    slurm.daemon.until(n, "running")


@pytest.mark.parametrize("new", [False, True])
def test_an_element_that_slurm_started_by_itself_is_put_back_as_that_element(slurm, new):
    """Slurm has forgotten hold and mark of its array."""
    slurm.nodes(state="drain")
    array, element = {"array_job": 9, "array_task": None, "array_tasks": "0-2"}, {"job": 11, "array_job": 9, "array_task": 1, "array_tasks": ""}
    say(slurm, waits(slurm, **array))
    mark = slurm.expect("update")["admin_comment"]
    assert mark.split()[3:] == ["-", "0-2"]
    rest = waits(slurm, "", held=False, **{**array, "array_tasks": "0,2"})
    finds(slurm, rest, {**runs(slurm, "", "n1"), **element}, new=new)
    while (ask := slurm.expect("update"))["job"] != "9_1":
        slurm.answer(ask)
    slurm.answer(ask)
    assert ask["admin_comment"] == mark
    assert slurm.expect("requeue")["job"] == "9_1"
    say(slurm, {**rest, "admin_comment": mark, "held": True})
    say(slurm, waits(slurm, mark, **element))
    wait_for(lambda: slurm.daemon.job(int(mark.split()[2]) + 1).get("slurm", {}).get("job") == 11)
    slurm.nodes()
    assert {slurm.expect("start")["job"] for _ in range(3)} == {"9_0", "9_1", "9_2"}
    assert len(ours(slurm)) == 3


def test_one_is_not_started_again_on_a_node_that_has_just_come_back(slurm):
    """Slurm goes on for ten seconds to tell a node that failed to end what ran there."""
    slurm.nodes("drained", names=["n2"])
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    slurm.job(7, ask["comment"], pieces={"n1": [0]})
    slurm.daemon.until(n, "running")
    slurm.nodes("down", names=["n1"])
    slurm.job(7, ask["comment"], state="pending", held=True, nodes_wanted=1, tasks=1, tres_per_node="gres:gpu:1", restarts=1)
    slurm.daemon.until(n, "waiting")
    back = time.monotonic()
    slurm.nodes("up", names=["n1"])
    again = slurm.expect("start")
    assert again["nodes"] == "n1" and time.monotonic() - back > 11


def ours(slurm):
    return [j["id"] for j in slurm.daemon.client().ask("GET", "/v1/jobs").json["jobs"]]


def is_put_back(slurm, n):
    """Slurm runs job 9, without our mark: it gets that, goes back, and is the job that it was."""
    mark = slurm.expect("update")["admin_comment"]
    assert mark.split()[2] == str(n)
    assert slurm.expect("requeue")["job"] == 9
    slurm.nodes()
    at = time.monotonic()
    say(slurm, waits(slurm, mark, submitted=7))
    assert slurm.expect("start")["job"] == 9
    assert time.monotonic() >= at + 1  # Slurm would kill one that starts in the second in which it left
    assert ours(slurm) == [n]


@pytest.mark.parametrize("new", [False, True])
def test_a_users_job_of_which_slurm_forgot_that_it_put_it_back_is_the_same(slurm, new):
    """Slurm had started it before we saw it, and put it back: that counts as a submission. Then it forgot that, and our mark."""
    slurm.nodes(state="drain")
    n = taken(slurm)
    slurm.answer(slurm.expect("update"))
    before = {**runs(slurm, "", "n1"), "submitted": 4}
    finds(slurm, before, new=new)
    is_put_back(slurm, n)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("how", [{"submitted": 4}, {"mark": "", "submitted": 8, "restarts": 1, "reason": "launch failed requeued held"}])
def test_one_that_waits_as_it_did_before_is_the_same(slurm, new, how):
    """Or that Slurm tried to start by itself since then."""
    slurm.nodes(state="drain")
    n = taken(slurm)
    before = waits(slurm, **how)
    finds(slurm, before, new=new)
    slurm.nodes()
    assert slurm.expect("start")["admin_comment"].split()[2] == str(n)
    assert ours(slurm) == [n]


def tell_all(slurm, boot, *jobs, last=True):
    """By the slurmctld that was started then."""
    slurm.say(op="jobs", all=True, last=last, after=0, boot=boot, jobs=list(jobs), gone=[])


def test_what_a_telling_shows_to_be_missing_is_asked_of_the_slurmctld_that_tells(slurm):
    """It would not do what was meant for the one before, as is all that is asked of jobs that it has not told of yet."""
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    other = slurm.describe(7, ask["comment"], pieces={ask["nodes"]: [0]})
    slurm.nodes(state="drain")
    tell_all(slurm, 1000, other, waits(slurm))
    slurm.daemon.until(n, "running")
    mark = slurm.expect("update")
    assert mark["job"] == 9 and mark["boot"] == 1000
    slurm.answer(mark)
    tell_all(slurm, 2000, waits(slurm, "", held=False), last=False)
    hold = slurm.expect("update")
    assert (hold["job"], hold["hold"], hold["boot"]) == (9, True, 2000)
    slurm.daemon.client().ask("POST", f"/v1/jobs/{n}/signal", {"signal": "USR2"})
    assert slurm.expect("signal")["boot"] == 1000
    tell_all(slurm, 2000, other)


def test_marks_that_wait_for_others_are_of_the_slurmctld_that_there_is(slurm):
    """Four are under way at a time; a new slurmctld would do none of those that wait for one before it."""
    slurm.nodes(state="drain")
    jobs = [waits(slurm, job=k) for k in range(9, 17)]
    tell_all(slurm, 1000, *jobs)
    wait_for(lambda: len(ours(slurm)) == len(jobs))
    first = [slurm.expect("update") for _ in range(4)]
    tell_all(slurm, 2000, *jobs)
    for ask in first:
        slurm.answer(ask, ok=False, why="slurmctld was started again since this was asked for", code=0, unanswered=True, unknown=False)
    marked = set()
    while len(marked) < len(jobs):
        ask = slurm.expect("update")
        assert ask["boot"] == 2000
        slurm.answer(ask)
        marked.add(ask["job"])


def test_one_with_its_number_that_was_sent_later_is_another(slurm):
    slurm.nodes(state="drain")
    n = taken(slurm)
    say(slurm, waits(slurm, submitted=6), all_of_them=True)
    wait_for(lambda: ours(slurm) == [n + 1])


@pytest.mark.parametrize("mark", ["stoker", ""])
def test_one_with_its_number_of_another_user_is_another(slurm, mark):
    """Also if Slurm has started it meanwhile, and put it back."""
    slurm.nodes(state="drain")
    n = taken(slurm)
    slurm.answer(slurm.expect("update"))
    say(slurm, waits(slurm, mark, submitted=8, restarts=1, uid=65534), all_of_them=True)
    ask = slurm.expect("update")
    assert ask["job"] == 9 and ask["admin_comment"].split()[2] == str(n + 1)
    wait_for(lambda: ours(slurm) == [n + 1])


@pytest.mark.parametrize("new", [False, True])
def test_one_that_we_started_and_that_lost_our_mark_is_the_same(slurm, new):
    """Slurm has forgotten the start, too, and has started it by itself since."""
    n = taken(slurm)
    mark, node = started(slurm)
    say(slurm, runs(slurm, mark, node))
    slurm.daemon.until(n, "running")
    before = runs(slurm, "", "n2" if node == "n1" else "n1")
    finds(slurm, before, new=new)
    is_put_back(slurm, n)


def test_one_that_was_put_back_just_before_a_new_daemon_came_rests(slurm):
    n = taken(slurm)
    mark, node = started(slurm)
    say(slurm, runs(slurm, mark, node))
    slurm.daemon.until(n, "running")
    slurm.nodes("drain")
    say(slurm, waits(slurm, mark, restarts=1))
    slurm.answer(slurm.expect("left"), nodes=[], steps=[])
    slurm.daemon.until(n, "waiting")
    slurm.daemon.kill()
    slurm.there = [waits(slurm, mark, restarts=1)]
    at = time.monotonic()
    slurm.daemon.start()
    assert slurm.expect("start")["job"] == 9 and time.monotonic() >= at + 1


def test_one_that_slurm_could_not_launch_rests(slurm):
    taken(slurm)
    mark, node = started(slurm)
    slurm.nodes("drain", names=[node])
    while not (ask := slurm.expect("update")).get("hold"):  # our first mark on it
        slurm.answer(ask)
    at = time.monotonic()
    slurm.answer(ask)
    say(slurm, waits(slurm, mark, reason="launch failed requeued held", restarts=1))
    assert slurm.expect("start")["job"] == 9 and time.monotonic() >= at + 1
