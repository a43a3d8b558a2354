# SPDX-License-Identifier: Apache-2.0
"""What Slurm says of jobs may be older than what it was asked to do, or come after it was thought to have lost one. The Slurm of these tests is
played by the tests."""
import pytest
from daemon import STOKERD
from fake_slurm import FakeSlurm

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")
JOB = {"command": ["/bin/true"], "workdir": "/tmp"}


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8) as s:
        yield s


def tell_all(slurm, after, *jobs):
    """Everything anew, as of when request 'after' was answered."""
    slurm.say(op="jobs", all=True, last=True, after=after, jobs=list(jobs), gone=[])


def asked(slurm, op):
    """Whether such a request has come, beside those that were taken."""
    return any(a["op"] == op for a in list(slurm.asked.queue))


def completes(slurm, n, ask, number=7):
    slurm.job(number, ask["comment"], pieces={ask["nodes"]: [0]})
    slurm.daemon.until(n, "running")
    slurm.job(number, ask["comment"], state="completed")
    assert slurm.daemon.wait(n)["cause"] == "completed"
    assert not asked(slurm, "submit")


def test_an_answer_older_than_the_start_does_not_lose_it(slurm):
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    tell_all(slurm, ask["id"] - 1)
    other = slurm.daemon.submit(gpus=1, **JOB)
    again = slurm.expect("submit")
    assert f" {other} " in again["admin_comment"]  # and not the first one once more
    slurm.answer(again, job=8)
    tell_all(slurm, ask["id"], slurm.describe(7, ask["comment"], state="pending"))
    completes(slurm, n, ask)
    completes(slurm, other, again, 8)


def test_one_that_waits_there_is_started_while_all_is_told(slurm):
    n = slurm.daemon.submit(gpus=8, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    waits = {"state": "pending", "nodes_wanted": 1, "tasks": 1, "tres_per_node": "gres:gpu:8"}
    slurm.job(7, ask["comment"], **waits)
    slurm.nodes("drain")
    slurm.answer(slurm.expect("update"))
    slurm.job(7, ask["comment"], held=True, **waits)
    slurm.answer(slurm.expect("left"), nodes=[], steps=[])
    slurm.daemon.until(n, "waiting")
    slurm.nodes()
    start = slurm.expect("start")
    slurm.answer(start)
    tell_all(slurm, start["id"] - 1, slurm.describe(7, ask["comment"], held=True, **waits))
    completes(slurm, n, start)


def test_a_job_that_was_lost_is_found_again(slurm):
    """Slurm tells of it while its nodes are asked."""
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    tell_all(slurm, ask["id"])
    left = slurm.expect("left")
    slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0]})
    slurm.answer(left, nodes=[], steps=[])
    completes(slurm, n, ask)


def test_a_job_that_is_found_again_can_be_cancelled(slurm):
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    tell_all(slurm, ask["id"])
    slurm.expect("left")
    slurm.daemon.post(f"/v1/jobs/{n}/cancel")
    slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0]})
    cancel = slurm.expect("cancel")
    assert cancel["job"] == 7
    slurm.answer(cancel)
    slurm.job(7, ask["comment"], state="cancelled")
    assert slurm.daemon.wait(n)["cause"] == "cancelled"


def test_a_warning_that_was_not_answered_is_sent_again(slurm):
    """slurmctld was started again, and all was not told yet: it does nothing that was meant for the one before."""
    n = slurm.daemon.submit(gpus=1, signal={"signal": "USR1", "seconds": 600}, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0]})
    slurm.daemon.until(n, "running")
    slurm.daemon.kill()  # for the next one it has not just begun
    slurm.there = [slurm.describe(7, ask["comment"], pieces={ask["nodes"]: [0]})]
    slurm.daemon.start()
    slurm.daemon.post(f"/v1/jobs/{n}/requeue")
    warning = slurm.expect("signal")
    slurm.answer(warning, ok=False, why="slurmctld was started again since this was asked for", code=0, unanswered=True, unknown=False)
    again = slurm.expect("signal")
    assert (again["job"], again["signal"]) == (7, warning["signal"])


def test_a_slurm_that_forgets_no_job_has_lost_one_that_it_does_not_know(tmp_path):
    """MinJobAge=0: ended jobs are never forgotten, so it has not ended."""
    with FakeSlurm(tmp_path, remembers_s=0) as slurm:
        n = slurm.daemon.submit(gpus=1, **JOB)
        ask = slurm.expect("submit")
        slurm.answer(ask, job=7)
        slurm.job(7, ask["comment"], pieces={ask["nodes"]: [0]})
        slurm.daemon.until(n, "running")
        tell_all(slurm, ask["id"])
        slurm.answer(slurm.expect("left"), nodes=[], steps=[])
        again = slurm.expect("submit")
        assert "Slurm lost it" in slurm.daemon.job(n)["note"]
        slurm.answer(again, job=8)
        completes(slurm, n, again, 8)


def test_a_request_says_of_which_slurmctld_its_jobs_number_is(slurm):
    n = slurm.daemon.submit(gpus=1, **JOB)
    ask = slurm.expect("submit")
    slurm.answer(ask, job=7)
    runs = slurm.describe(7, ask["comment"], pieces={ask["nodes"]: [0]})
    for boot in (1000, 2000):
        slurm.say(op="jobs", all=True, last=False, after=0, boot=boot, jobs=[runs], gone=[])
        slurm.say(op="jobs", all=True, last=True, after=0, boot=boot, jobs=[], gone=[])
        slurm.daemon.until(n, "running")
        slurm.daemon.client().ask("POST", f"/v1/jobs/{n}/signal", {"signal": "USR2"})
        assert slurm.expect("signal")["boot"] == boot
