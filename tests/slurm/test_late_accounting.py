# SPDX-License-Identifier: Apache-2.0
"""Accounting is asked how a job ended that Slurm has forgotten, and cannot tell yet: slurmdbd is away, or was, and hears of it later. The Slurm of these
tests is played by the tests."""
import os
import time

import pytest
from daemon import STOKERD
from fake_slurm import FakeSlurm

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm(tmp_path, nodes=1, gpus=8, accounts=True) as s:
        yield s


@pytest.fixture
def number(slurm):
    """Of a job that ran when the daemon was killed, an hour ago. Slurm knows nothing of it any more."""
    n = slurm.daemon.submit(command=["/bin/true"], workdir="/tmp", gpus=1)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0]})
    slurm.daemon.until(n, "running")
    slurm.daemon.kill()
    earlier = time.time() - 3600
    os.utime(slurm.daemon.state / "slurm-mark", (earlier, earlier))
    slurm.daemon.start()
    return n


def past(slurm, state, **more):
    return slurm.describe(7, "", state=state, **more)


def test_one_that_is_away_is_waited_for(slurm, number):
    for _ in range(18):  # once a second
        slurm.answer(slurm.expect("past"), ok=False, why="slurmdbd cannot be reached")
    job = slurm.daemon.job(number)
    assert job["state"] == "running" and "accounting cannot tell yet" in job["warning"]
    slurm.answer(slurm.expect("past"), past=past(slurm, "failed", exit_code=4))
    record = slurm.daemon.wait(number)
    assert (record["cause"], record["exit_code"], record.get("warning")) == ("failed", 4, None)
    said = [line for line in slurm.daemon.errors if "accounting cannot be asked how it ended: slurmdbd cannot be reached" in line]
    assert len(said) == 1


def test_one_that_has_not_heard_of_the_end_is_asked_again(slurm, number):
    slurm.answer(slurm.expect("past"), past=past(slurm, "running"))
    slurm.answer(slurm.expect("past"), past=past(slurm, "completed"))
    assert slurm.daemon.wait(number)["cause"] == "completed"


def test_one_that_was_away_may_not_have_heard_of_the_job_at_all(slurm, number):
    slurm.answer(slurm.expect("past"), ok=False, why="slurmdbd cannot be reached")
    slurm.answer(slurm.expect("past"), past=None)
    slurm.answer(slurm.expect("past"), past=past(slurm, "completed"))
    assert slurm.daemon.wait(number)["cause"] == "completed"


def test_what_it_has_no_trace_of_is_lost(slurm, number):
    slurm.answer(slurm.expect("past"), past=None)
    record = slurm.daemon.wait(number)
    assert record["cause"] == "lost" and "no trace" in record["note"]


def test_one_that_is_cancelled_meanwhile_has_ended_so(slurm, number):
    slurm.answer(slurm.expect("past"), ok=False, why="slurmdbd cannot be reached")
    slurm.daemon.post(f"/v1/jobs/{number}/cancel")
    assert slurm.daemon.wait(number)["cause"] == "cancelled"
