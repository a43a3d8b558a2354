# SPDX-License-Identifier: Apache-2.0
"""Slurm tells times of the machine's clock; stoker's own time may be ahead of that. The Slurm of these tests is played by the tests."""
import pytest
from clock import Clock
from daemon import STOKERD
from fake_slurm import FakeSlurm
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")
JOB = {"command": ["/bin/true"], "workdir": "/tmp"}
RAN_S, HOUR, DAY = 60, 3600, 86400


@pytest.fixture
def slurm(tmp_path):
    s = FakeSlurm(tmp_path, nodes=1, gpus=8)
    s.clock = Clock(s.daemon)
    with s:
        yield s


def wrong_for_a_moment(slurm):
    d = slurm.daemon
    slurm.clock.set(10 * DAY)
    until(lambda: d.get("/v1/health")["now"] > slurm.clock.wall() - HOUR)
    slurm.clock.set(0)
    until(lambda: d.get("/v1/health")["clock_ahead_s"] > 9 * DAY)


def runs(slurm):
    """A job that Slurm has started now, by its clock. Its number, what Slurm says of it, and when it started."""
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    at = int(slurm.clock.wall())
    where = {"pieces": {ask["nodes"]: [0]}, "started": at}
    slurm.job(7, ask["comment"], **where)
    slurm.daemon.until(n, "running")
    return n, at, lambda **more: slurm.describe(7, ask["comment"], **{**where, **more})


@pytest.mark.parametrize("ahead", [False, True], ids=["right", "ahead"])
def test_an_end_that_is_told_late_is_when_it_was(slurm, ahead):
    """An hour passes while there is no daemon, and the job ended in its first minute."""
    if ahead:
        wrong_for_a_moment(slurm)
    n, at, told = runs(slurm)
    slurm.daemon.kill()
    slurm.there = [told(state="completed", ended=at + RAN_S)]
    slurm.clock.set(11 * DAY if ahead else HOUR)
    slurm.daemon.start()
    assert RAN_S - 2 <= slurm.daemon.wait(n)["run_s"] <= RAN_S + 30


def test_a_clock_that_is_set_between_start_and_end_does_not_count(slurm):
    """The job was started while the clock was ten days ahead, and it was set right since: it has not run for less than no time."""
    slurm.clock.set(10 * DAY)
    until(lambda: slurm.daemon.get("/v1/health")["now"] > slurm.clock.wall() - HOUR)
    n, _, told = runs(slurm)
    slurm.clock.set(0)
    until(lambda: slurm.daemon.get("/v1/health")["clock_ahead_s"] > 9 * DAY)
    slurm.say(op="jobs", all=False, last=True, jobs=[told(state="completed", ended=int(slurm.clock.wall()))], gone=[])
    assert 0 <= slurm.daemon.wait(n)["run_s"] < HOUR


def test_a_job_that_rests_is_tried_again_by_the_wall_clock(slurm):
    """Slurm refuses it, and it waits for some seconds: not for the days by which stoker's time is ahead."""
    wrong_for_a_moment(slurm)
    n = slurm.daemon.submit(gpus=1, **JOB)
    slurm.answer(slurm.expect("submit"), ok=False, why="Resource temporarily unavailable", code=11, unanswered=False, unknown=False, passes=True)
    until(lambda: slurm.daemon.job(n)["state"] == "blocked" or not slurm.asked.empty(), say="it rests, or did")
    slurm.clock.set(HOUR)
    assert slurm.expect("submit")
