# SPDX-License-Identifier: Apache-2.0
"""Jobs that share a GPU in turns (share: time), through the command line and the API, on a virtual GPU."""
import json
import random
import re
import time

import pytest
from daemon import STOKER, STOKERD, Daemon, stoker
from patience import until
from turns import counts, made_all, never_two, read

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")
CONFIG = "gpus:\n  quantum: 1s\n  switch_pct: 100\n"
GO = "go"  # a file: what was told to wait for it goes on


@pytest.fixture
def d(tmp_path):
    with Daemon(tmp_path, gpus=1, config=CONFIG) as d:
        yield d


def seat(d, name, *options):
    """A job that makes steps until it is told to go."""
    return json.loads(stoker(d, "submit", "--json", "--name", name, "--share", "time", *options, "--",
                             *counts(d.folder, name, 1, GO)))["id"]


def go(d, *numbers):
    (d.folder / GO).touch()
    for number in numbers:
        assert d.wait(number)["cause"] == "completed"


def quantum(d, text):
    """How long a turn is from now on. 1h: whoever has it, or is next, has it for as long as the test takes."""
    seen = len(d.errors)
    d.config.write_text(re.sub(r"quantum: \w+", f"quantum: {text}", d.config.read_text()))
    d.reload()
    until(lambda: any("configuration read again" in line for line in d.errors[seen:]))


def hold(d, *numbers):
    """One has its turn and keeps it, the others sleep."""
    quantum(d, "1h")
    until(lambda: sum(re.search(r"^has its turn, \d+ s left", d.job(n)["turn"]["text"]) is not None for n in numbers) == 1)


def sleeps(d, number):
    turn = d.job(number).get("turn")
    return turn and not turn["has"] and turn["turns"] > 0


def twice_each(d, *names):
    """Each has made steps in more than one turn, in no turn two."""
    rows = [row[0] for row in never_two(d.folder, names, 1)]
    return all(rows.count(name) > 1 for name in names)


def metric(d, name):
    return float(re.search(rf"^{name} (\S+)$", d.client().get("/metrics").body.decode(), re.M)[1])


def test_two_jobs_take_turns_and_lose_nothing(d):
    first, second = seat(d, "a"), seat(d, "b")
    until(lambda: read(d.folder, "b"))
    hold(d, first, second)
    text = stoker(d, "queue")
    assert "has its turn" in text and "sleeps until its turn, 1st" in text
    why = stoker(d, "why", first) + stoker(d, "why", second)
    assert "has its turn" in why and "sleeps until its turn, 1st" in why
    assert re.search(r"has its turn|sleeps until its turn", stoker(d, "show", first))
    quantum(d, "1s")
    until(lambda: twice_each(d, "a", "b"))
    go(d, first, second)
    assert d.job(first)["preemptions"] == d.job(second)["preemptions"] == 0
    assert made_all(d.folder, "a") and made_all(d.folder, "b")
    never_two(d.folder, ["a", "b"], 1)
    assert metric(d, "stoker_turns_total") >= 4
    assert metric(d, "stoker_turn_switch_seconds_total") > 0


def test_a_newcomer_is_started_in_its_turn(d):
    quantum(d, "1h")
    first, second = seat(d, "a"), seat(d, "b")
    until(lambda: read(d.folder, "a"))
    job = d.job(second)
    assert job["state"] == "starting"
    assert job["state_text"] == "is started in its turn, 1st"
    go(d, first, second)
    assert [row[0] for row in never_two(d.folder, ["a", "b"], 1)] == ["a", "b"]


def test_the_sleeping_one_can_be_cancelled_suspended_and_resumed(d):
    first, second, third = (seat(d, name, "--share-max", 3) for name in "abc")
    until(lambda: sleeps(d, first))
    stoker(d, "suspend", first)
    d.until(first, "suspended")
    before = len(read(d.folder, "a"))
    until(lambda: sleeps(d, second))
    stoker(d, "cancel", second)
    assert d.wait(second)["cause"] == "cancelled"
    until(lambda: read(d.folder, "c"))
    at = len(read(d.folder, "c"))
    until(lambda: len(read(d.folder, "c")) > at + 150)  # more than a turn: nobody else takes one
    assert len(read(d.folder, "a")) == before
    stoker(d, "resume", first)
    until(lambda: len(read(d.folder, "a")) > before + 20)
    until(lambda: sleeps(d, first))
    stoker(d, "cancel", third)
    assert d.wait(third)["cause"] == "cancelled"
    at = len(read(d.folder, "a"))
    until(lambda: len(read(d.folder, "a")) > at + 150)
    assert d.job(first)["turn"]["text"] == "has its turn, nobody waits for the next"
    never_two(d.folder, ["a", "b", "c"], 1)


def test_a_more_urgent_job_suspends_both_and_they_go_on(d):
    first, second = seat(d, "a"), seat(d, "b")
    until(lambda: sleeps(d, first) and read(d.folder, "b"))
    urgent = d.submit(command=counts(d.folder, "c", 50), gpus=1, priority=900, name="c")
    assert d.wait(urgent)["cause"] == "completed"
    go(d, first, second)
    for number in (first, second):
        job = d.job(number)
        assert job["preemptions"] == 1
        assert job["restarts"] == 0
    assert made_all(d.folder, "a") and made_all(d.folder, "b")
    never_two(d.folder, ["a", "b", "c"], 1)


def test_turns_go_on_when_the_daemon_comes_back(d):
    first, second = seat(d, "a"), seat(d, "b")
    until(lambda: read(d.folder, "b"))
    d.restart()
    d.kill()
    d.start()
    until(lambda: twice_each(d, "a", "b"))
    go(d, first, second)
    assert made_all(d.folder, "a") and made_all(d.folder, "b")
    never_two(d.folder, ["a", "b"], 1)


def test_listeners_are_told_and_the_journal_is_not(d):
    _, stream = listening = d.client(timeout=60).open("GET", "/v1/events")  # kept open by the pair
    seat(d, "a")
    seat(d, "b")
    types = []
    while types.count("exited") < 2:
        line = stream.readline().decode()
        types += [line.split()[1]] if line.startswith("event:") else []
        if types.count("turn") >= 4:
            (d.folder / GO).touch()
    assert types.count("started") == 2
    assert not {"suspended", "evict", "suspend"} & set(types)
    listening[0].close()


def test_what_cannot_take_turns_is_refused_with_a_sentence(d):
    for options, sentence in ((["--gpus", 2], "time is for one GPU: gpus 1, or part of it such as 0.5, got 2"),
                              (["--tasks", 2], "time takes one task"),
                              (["--no-suspend"], "time suspends the job between its turns")):
        assert sentence in stoker(d, "submit", "--share", "time", *options, "--", "/bin/true", code=2)


def test_parts_are_seats_and_memory_is_not_divided(d):
    quantum(d, "1h")
    jobs = [d.submit(command=["/bin/sleep", "1000"], gpus=0.4, share="time") for _ in range(3)]
    d.until(jobs[0], "running")
    assert [d.job(n)["state"] for n in jobs] == ["running", "starting", "waiting"]


# ---- with what the daemon takes for GPUs (tests/lib/fake*.c) ----

FAKES = STOKER.resolve().parent / "tests" / "lib"
ON_GPU = """
import os, pathlib, sys, time
fake, me, path, goes = pathlib.Path(sys.argv[1]), os.getpid(), sys.argv[2], sys.argv[3]
state = fake / ("%d.state" % me)
state.write_text("running")
with open(fake / "procs", "a") as f:
    f.write("%s %d 100 50\\n" % (os.environ["STOKER_GPUS"], me))
i = 0
with open(path, "a", buffering=1) as f:
    while True:
        if state.read_text().strip() == "running":  # else it would wait in its next call of CUDA
            if i > 0 and os.path.exists(goes):
                break
            i += 1
            f.write("%d %.6f\\n" % (i, time.monotonic()))
        time.sleep(0.01)
with open(path + ".last", "w") as f:
    f.write(str(i))
state.write_text("checkpointed")  # nothing of it is on the GPU any more
"""


@pytest.fixture
def fakes(tmp_path):
    if not (FAKES / "libnvidia-ml.so.1").exists():
        pytest.skip("not built with tests")
    (tmp_path / "fake").mkdir()
    with Daemon(tmp_path, gpus=None, config="gpus: {interval_ms: 200, foreign: ignore, quantum: 1s, switch_pct: 100}\n",
                env={"STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(tmp_path / "fake")}) as d:
        yield d


def on_gpu(d, name, **more):
    return d.submit(name=name, share="time", command=["/usr/bin/python3", "-S", "-c", ON_GPU, str(d.folder / "fake"),
                                                      str(d.folder / f"{name}.steps"), str(d.folder / GO)], **more)


def test_what_is_on_the_gpu_goes_and_comes_back_each_turn(fakes):
    d = fakes
    first, second = on_gpu(d, "a"), on_gpu(d, "b")
    until(lambda: sleeps(d, first))
    turn = d.job(first)["turn"]
    assert turn["suspend_s"] > 0
    until(lambda: twice_each(d, "a", "b"))
    hold(d, first, second)
    go(d, first, second)
    assert made_all(d.folder, "a") and made_all(d.folder, "b")
    never_two(d.folder, ["a", "b"], 1)
    words = [line.split()[0] for line in (d.folder / "fake" / "log").read_text().splitlines()]
    assert words.count("checkpoint") == words.count("restore") >= 2


def driver_calls(d):
    return (d.folder / "fake" / "log").read_text().count("\n")


@pytest.mark.parametrize("seed", range(3))
def test_no_step_on_the_gpu_is_lost_when_the_daemon_is_killed_in_a_switch(fakes, seed):
    d, r = fakes, random.Random(seed)
    first, second = on_gpu(d, "a"), on_gpu(d, "b")
    until(lambda: read(d.folder, "b"))
    for _ in range(4):
        done = driver_calls(d)
        until(lambda n=done: driver_calls(d) > n)
        time.sleep(r.random() * 0.05)
        d.kill()  # the driver has just done something
        d.start()
    go(d, first, second)
    assert made_all(d.folder, "a") and made_all(d.folder, "b")
    never_two(d.folder, ["a", "b"], 1)


def test_a_driver_that_refuses_leaves_the_turn_and_says_so(fakes):
    d = fakes
    d.stop()
    d.env["STOKER_FAKE_FAIL"] = "lock:0:801"
    d.start()
    first, second = on_gpu(d, "a"), on_gpu(d, "b")
    until(lambda: "cannot be suspended" in (d.job(first)["note"] or ""))
    assert "MPS" in d.job(first)["note"]
    assert "keeps its turn" in d.errors_with(f"job {first}: cannot be suspended")
    until(lambda: "keeps its turn, it cannot be suspended" in (text := stoker(d, "queue")) and "the one that has it cannot be suspended" in text)  # between two tries
    go(d, first, second)
    assert [row[0] for row in never_two(d.folder, ["a", "b"], 1)] == ["a", "b"]
