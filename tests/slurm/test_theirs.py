# SPDX-License-Identifier: Apache-2.0
"""Users' own jobs, at moments that only a Slurm which the test plays can show."""
import os

import pytest
from daemon import STOKERD
from fake_slurm import FakeSlurm
from patience import until

OTHER = 65534
pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8) as s:
        s.nodes("drain")  # nothing starts
        yield s


def own(slurm, number, comment="stoker", held=True, state="pending", **more):
    """What Slurm says of a user's job with 8 GPUs."""
    slurm.job(number, "", **{"admin_comment": comment, "held": held, "state": state, "batch": True, "requeue": True, "nodes_wanted": 1, "max_nodes": 1,
                             "tasks": 1, "cpus": 1, "gpus_per_node": [{"type": "", "count": 8}], "begin": 0, "name": f"own{number}", **more})


def taken(slurm, number, **more):
    """Stoker's number of it, and its mark."""
    own(slurm, number, **more)
    mark = slurm.expect("update")
    slurm.answer(mark)
    words = mark["admin_comment"]
    own(slurm, number, words, **more)
    return int(words.split()[2]), words


def test_a_job_that_is_not_held_any_more_is_held_at_once(slurm):
    """Not after the pause in which Slurm may do what it was told last: it may start the job any moment. So before all else."""
    n, words = taken(slurm, 7)
    for other in (8, 9):
        own(slurm, 7, words, held=False)
        own(slurm, other)
        asks = [slurm.expect("update"), slurm.expect("update")]
        assert [a["job"] for a in asks] == [7, other] and asks[0]["hold"] and asks[0]["admin_comment"] == words
        slurm.answer(asks[0])
        slurm.answer(asks[1])
        own(slurm, 7, words)
    assert slurm.daemon.job(n)["state"] == "waiting"


def test_a_number_that_slurm_uses_again_is_another_job(slurm):
    """A slurmctld that was killed has forgotten the first, and given its number to another user's."""
    first, words = taken(slurm, 7)
    second, other = taken(slurm, 7, submitted=2)
    assert second != first and other != words
    assert "gone from Slurm" in slurm.daemon.wait(first)["note"]
    assert slurm.daemon.job(second)["state"] == "waiting"


@pytest.mark.parametrize("free", [False, True])
def test_a_job_that_goes_into_a_reservation_while_it_is_taken_in_is_let_go(slurm, free):
    if free:
        slurm.nodes()
    own(slurm, 7)
    own(slurm, 7, reservation="res")
    words, held = "stoker", True
    while "admin_comment" not in (ask := slurm.next()) or ask["op"] != "release":  # the job may have been started before the second line was read
        slurm.agree(ask)
        words = ask.get("admin_comment", words)
        held = ask["op"] not in ("start", "release") and (held or bool(ask.get("hold")))
        own(slurm, 7, words, held=held, reservation="res")
    assert ask["job"] == 7 and ask["begin"] is (" p" in words)


def test_what_stoker_refused_it_takes_when_it_can(tmp_path):
    with FakeSlurm(tmp_path, nodes=2, gpus=8, config="limits: {jobs_per_user: 1}\n") as slurm:
        slurm.nodes("drain")
        _, words = taken(slurm, 7)
        own(slurm, 8)
        refusal = slurm.expect("update")["admin_comment"]
        assert refusal.startswith("stoker: cannot take it: ")
        own(slurm, 8, refusal)
        own(slurm, 7, words, state="cancelled")
        assert slurm.expect("update")["admin_comment"].startswith(words[:40])


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: the job is another user's")
def test_a_qos_that_its_user_may_not_use_is_left_out_and_said(slurm):
    """A plain user's QOS means a critical queue."""
    n, _ = taken(slurm, 7, uid=OTHER, qos="reserved")
    job = slurm.daemon.job(n)
    assert (job["queue"], job["tier"], job["state"]) == ("standard", "standard", "waiting")
    assert "may not use critical in queue reserved" in job["warning"]
    high, mark = taken(slurm, 8, uid=OTHER, qos="express")
    assert slurm.daemon.job(high)["queue"] == "express" and slurm.daemon.job(high)["spec"]["plain"] is True
    roots, _ = taken(slurm, 9, qos="reserved")
    assert slurm.daemon.job(roots)["tier"] == "critical"
    own(slurm, 8, mark, uid=OTHER, qos="reserved")
    until(lambda: "may not use critical" in (slurm.daemon.job(high).get("warning") or ""), say="the refusal is said")
    assert slurm.daemon.job(high)["tier"] == "standard"
