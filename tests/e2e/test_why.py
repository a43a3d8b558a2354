# SPDX-License-Identifier: Apache-2.0
"""Why a job waits and what would start it: what "stoker why" says to type is typed, and the job runs."""
import json
import os
import shlex

import pytest
from daemon import Daemon
from data import stoker_run


@pytest.fixture(name="why")
def why_of(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        def call(*args, code=0):
            out = stoker_run(*args, env={**os.environ, "STOKER_SOCKET": str(d.socket), "LC_ALL": "C.UTF-8"}, cwd=tmp_path)
            assert out.returncode == code, out
            return out.stdout if code == 0 else out.stderr

        call.daemon = d
        yield call


def submit(why, *args):
    return json.loads(why("submit", "--json", *args))["id"]


def asked(why, job):
    return json.loads(why("why", job, "--json"))


def started(why, job):
    why.daemon.until(job, "running")


def change(why, job, kind):
    found = [c for c in asked(why, job)["changes"] if c["kind"] == kind]
    assert len(found) == 1, asked(why, job)
    return found[0]


def test_every_change_that_is_named_starts_the_job(why):
    busy = submit(why, "--gpus", "3", "--time", "8h", "--", "sleep", "600")
    started(why, busy)
    first = submit(why, "--gpus", "2", "--time", "1h", "--", "sleep", "600")
    kinds = [c["kind"] for c in asked(why, first)["changes"]]
    why("cancel", first)
    assert kinds == ["gpus", "priority", "tier"]
    for kind in kinds:
        job = submit(why, "--gpus", "2", "--time", "1h", "--", "sleep", "600")
        found = change(why, job, kind)
        assert found["command"].startswith(f"stoker update {job} --") and "would start now" in found["sentence"]
        assert found["sentence"] + ": " + found["command"] in why("why", job)
        assert asked(why, job)["change"] == asked(why, job)["changes"][0]["sentence"]
        assert why(*shlex.split(found["command"])[1:]) == f"job {job}: changed\n"
        started(why, job)
        why("cancel", job)
        started(why, busy)      # it gave way, and comes back


def test_a_held_job_and_one_that_begins_later(why):
    held = submit(why, "--gpus", "1", "--hold", "--", "sleep", "600")
    found = change(why, held, "release")
    assert found["command"] == f"stoker release {held}"
    why(*shlex.split(found["command"])[1:])
    started(why, held)
    later = submit(why, "--gpus", "1", "--begin", "now+5h", "--", "sleep", "600")
    why(*shlex.split(change(why, later, "begin")["command"])[1:])
    started(why, later)


def test_a_part_of_a_gpu_and_what_is_beside_it(why):
    submit(why, "--gpus", "3", "--", "sleep", "600")
    half = submit(why, "--gpus", "0.5", "--share", "none", "--", "sleep", "600")
    started(why, half)
    job = submit(why, "--gpus", "1", "--", "sleep", "600")
    found = change(why, job, "part_of_gpu")
    assert found["to"] == 500 and found["command"] == f"stoker update {job} --gpus 0.5"
    why(*shlex.split(found["command"])[1:])
    started(why, job)
    shown = json.loads(why("show", job, "--json"))
    assert shown["gpus"] == 0.5


def test_a_job_that_is_changed_keeps_its_number_and_survives_a_restart(why):
    submit(why, "--gpus", "4", "--", "sleep", "600")
    job = submit(why, "--gpus", "4", "--time", "1h", "--topology", "node", "--", "sh", "-c", "echo $STOKER_GPUS; sleep 600")
    before = json.loads(why("show", job, "--json"))
    assert why("update", job, "--gpus", "2", "--topology", "none", "--time", "2h", "--cpus", "1") == f"job {job}: changed\n"
    why.daemon.kill()
    why.daemon.start()
    shown = json.loads(why("show", job, "--json"))
    assert shown["gpus"] == 2 and shown["submitted"] == before["submitted"] and shown["time_limit_s"] == 7200
    for words, sentence, code in [(["--gpus", "9"], "9 GPUs", 1), (["--tasks", "0"], "tasks", 2), (["--gpu-type", "nonesuch"], "nonesuch", 2),
                                  (["--pool", "nowhere"], "no pool", 2), (["--topology", "moon"], "topology", 2)]:
        assert sentence in why("update", job, *words, code=code), words
    assert "yes or no" in why("update", job, "--exclusive", "maybe", code=2)
    assert json.loads(why("show", job, "--json"))["gpus"] == 2


def test_all_reasons_and_who_has_the_gpus(why):
    busy = submit(why, "--gpus", "3", "--time", "8h", "--name", "big", "--", "sleep", "600")
    started(why, busy)
    job = submit(why, "--gpus", "2", "--", "sleep", "600")
    answer = asked(why, job)
    assert [r["code"] for r in answer["reasons"]][0] == answer["code"] == "gpus"
    assert [h["id"] for h in answer["holders"]] == [busy]
    text = why("why", job)
    assert "needs 2 GPUs and 1 is free" in text and f"job {busy}  big" in text
    assert asked(why, busy)["reasons"][0]["code"] == "running" and asked(why, busy)["changes"] == []
    why("cancel", busy)
    started(why, job)
