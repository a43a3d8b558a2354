# SPDX-License-Identifier: Apache-2.0
"""Where tasks lie to each other: what a job may ask for, on one machine and in the simulator."""
import json
import os
import subprocess

import pytest
from daemon import STOKER, STOKERD, Daemon

live = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")


def run(daemon, *words):
    env = dict(os.environ, STOKER_SOCKET=str(daemon.socket))
    return subprocess.run([str(STOKER), *words], capture_output=True, text=True, env=env, timeout=120)


@live
def test_an_exclusive_job_has_the_machine_to_itself(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        first = d.submit(command=["sleep", "600"], gpus=1, exclusive=True)
        d.until(first, "running")
        second = d.submit(command=["true"], gpus=1)
        cpu = d.submit(command=["true"])
        assert d.get(f"/v1/jobs/{second}/why")["code"] == "gpus"
        assert d.job(cpu)["state"] == "waiting"
        d.restart()
        assert d.job(cpu)["state"] == "waiting" and d.job(first)["state"] == "running"
        assert run(d, "cancel", str(first)).returncode == 0
        assert d.wait(second)["cause"] == "completed" and d.wait(cpu)["cause"] == "completed"


@live
def test_an_exclusive_job_waits_for_the_last_to_leave(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        other = d.submit(command=["sleep", "600"])
        d.until(other, "running")
        said = run(d, "submit", "--gpus", "1", "--exclusive", "--", "true")
        assert said.returncode == 0, said.stderr
        alone = max(j["id"] for j in d.jobs())
        why = d.get(f"/v1/jobs/{alone}/why")
        assert why["code"] == "topology" and "tasks lie as they must" in why["sentence"]
        assert run(d, "cancel", str(other)).returncode == 0
        assert d.wait(alone)["cause"] == "completed"


@live
def test_what_one_machine_cannot_give_is_refused(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        for words, sentence in [
            (["--gpus", "1", "--tasks", "4", "--tasks-per-node", "2"],
             "asks for 4 tasks of 1 GPU, 2 on each node; the most that all nodes it may use can hold is 2"),
            (["--gpus", "2", "--topology", "link"],
             "asks for 1 task of 2 GPUs, all in one link; the most that one it may use can hold is 0"),
            (["--gpus", "1", "--tasks", "4", "--group", "3:node"],
             "4 tasks are not a multiple of subgroups of 3 inside one node"),
            (["--group", "3"], "--group takes N:LEVEL such as 8:link"),
            (["--topology", "rack", "--prefer", "zone"], "must be nearer than the one required"),
        ]:
            said = run(d, "submit", *words, "--", "true")
            assert said.returncode != 0 and sentence in said.stderr, (words, said.stderr)
        assert d.jobs() == []
        gang = run(d, "run", "--gpus", "1", "--tasks", "4", "--topology", "rack", "--group", "2:node", "--", "true")
        assert gang.returncode == 0, gang.stderr


def test_a_trace_is_placed_as_its_jobs_ask(tmp_path):
    """Two racks of two nodes: what fits the cluster but no rack waits, and fragments do not break a gang apart."""
    (tmp_path / "c.yaml").write_text("nodes:\n  - {racks: 2, per_rack: 2, gpus: 8, islands: 2, zone: a}\n")
    jobs = [dict(id=1, submit_s=0, duration_s=100, gpus=8), dict(id=2, submit_s=1, duration_s=10, gpus=16, level="rack"),
            dict(id=3, submit_s=2, duration_s=10, gpus=16, level="rack"),
            dict(id=4, submit_s=3, duration_s=10, gpus=1, tasks=8, subgroup=4, subgroup_level="link", level="rack"),
            dict(id=5, submit_s=4, duration_s=1, gpus=24, level="rack"),
            dict(id=6, submit_s=5, duration_s=10, gpus=2, tasks=4, per_node=1)]
    (tmp_path / "j.jsonl").write_text("".join(json.dumps(j) + "\n" for j in jobs))
    base = [str(STOKER), "sim", str(tmp_path / "j.jsonl"), "--cluster", str(tmp_path / "c.yaml"), "--paranoid"]
    r = subprocess.run([*base, "--json"], capture_output=True, text=True, timeout=120)
    assert r.returncode != 0 and "needs 24 GPUs in one rack; the largest rack it may use has 16" in r.stderr
    (tmp_path / "j.jsonl").write_text("".join(json.dumps(j) + "\n" for j in jobs if j["id"] != 5))
    for place in ("pack", "topology", "spread", "stoker"):
        r = subprocess.run([*base, "--place", place, "--backfill", "skip", "--preempt", "none",
                            "--jobs-out", str(tmp_path / "o.csv"), "--json"], capture_output=True, text=True, timeout=120)
        assert r.returncode == 0, r.stderr
        head, *rows = [line.split(",") for line in (tmp_path / "o.csv").read_text().split()]
        start = {row[head.index("id")]: float(row[head.index("first_start_s")]) for row in rows}
        assert start["2"] == 1 and start["3"] == 11, start  # 24 GPUs are free, in racks of 8 and 16
        assert start["4"] == 3
