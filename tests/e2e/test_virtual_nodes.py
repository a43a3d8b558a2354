# SPDX-License-Identifier: Apache-2.0
"""A daemon that pretends to be several machines: gangs over nodes, with real processes that all run
here."""
import subprocess

import pytest
from daemon import STOKER, STOKERD, Daemon, stoker

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
SLEEP = ["/bin/sleep", "1000"]


def test_a_gang_has_gpus_of_several_nodes(tmp_path):
    with Daemon(tmp_path, gpus="4x8") as d:
        assert [n["gpus"] for n in d.get("/v1/nodes")["nodes"]] == [8, 8, 8, 8]
        n = d.submit(command=["/bin/sh", "-c", "echo $RANK of $STOKER_NODE has $STOKER_GPUS; sleep 1000"], gpus=8, tasks=2)
        job = d.until(n, "running")
        assert job["gpus"] == 16 and len(job["gpu_indices"]) == 16
        assert [p["gpu_indices"] for p in job["pieces"]] == [list(range(8))] * 2
        names = [p["node"] for p in job["pieces"]]
        assert len(set(names)) == 2 and job["node"] == names[0]
        shown = stoker(d, "queue")
        assert f"{names[0]} gpu 0-7, {names[1]} gpu 0-7" in shown
        busy = {x["name"]: x["gpus_busy"] for x in d.get("/v1/nodes")["nodes"]}
        assert [busy[x] for x in names] == [8, 8] and sum(busy.values()) == 16


def test_a_job_lives_on_over_a_restart(tmp_path):
    with Daemon(tmp_path, gpus="3x4") as d:
        n = d.submit(command=SLEEP, gpus=4, tasks=3)
        before = d.until(n, "running")
        d.kill()
        d.start()
        after = d.until(n, "running")
        assert after["pieces"] == before["pieces"] and after["pids"] == before["pids"]


def test_gpus_are_drained_by_node(tmp_path):
    with Daemon(tmp_path, gpus="2x2") as d:
        names = [n["name"] for n in d.get("/v1/nodes")["nodes"]]
        assert "say which" in stoker(d, "drain", "--gpu", "1", code=2)
        stoker(d, "drain", "--gpu", f"{names[1]}:1")
        assert "no node" in stoker(d, "drain", "--gpu", "nowhere:1", code=1)
        assert "no GPU 2" in stoker(d, "drain", "--gpu", f"{names[1]}:2", code=1)
        states = [(g["node"], g["index"]) for g in d.get("/v1/gpus")["gpus"] if g["state"] == "drained"]
        assert states == [(names[1], 1)]
        lines = stoker(d, "gpus").splitlines()
        assert lines[0] == names[0] and lines[3] == names[1] and "drained" in lines[5]


def test_ten_thousand_gpus(tmp_path):
    with Daemon(tmp_path, gpus="1250x8") as d:
        n = d.submit(command=SLEEP, gpus=8, tasks=3)
        assert len(d.until(n, "running")["pieces"]) == 3
        seen, after = [], 0
        while after is not None:
            page = d.get(f"/v1/gpus?after={after}&limit=1000")
            seen += page["gpus"]
            after = page["next"]
        assert len(seen) == 10000 and sum(g["state"] == "busy" for g in seen) == 24


def test_numbers_that_are_wrong_are_refused(tmp_path):
    for text in ("x8", "8x", "0x8", "4x65", "5000x8", "4x8x2", "many"):
        p = subprocess.run([STOKER, "serve", "--virtual-gpus", text, "--state", str(tmp_path)], capture_output=True, text=True)
        assert p.returncode == 2 and "--virtual-gpus takes" in p.stderr, text


def test_jobs_name_nodes_they_may_and_may_not_have(tmp_path):
    with Daemon(tmp_path, gpus="3x2", args=["--paranoid"]) as d:
        names = [n["name"] for n in d.get("/v1/nodes")["nodes"]]
        first = d.submit(command=SLEEP, gpus=2, nodelist=[names[1]])
        assert d.until(first, "running")["node"] == names[1]
        stem = names[0][:-1]
        other = d.submit(command=SLEEP, gpus=2, tasks=2, nodelist=[f"{stem[:-3]}[0001-0003]"], exclude=[names[1]])
        assert sorted(p["node"] for p in d.until(other, "running")["pieces"]) == [names[0], names[2]]
        waits = d.submit(command=["/bin/true"], gpus=2, nodelist=[names[1]])
        assert "on the 1 node it may use 0 are free" in stoker(d, "why", str(waits))
        d.kill()
        d.start()
        assert d.get(f"/v1/jobs/{waits}/why")["code"] == "nodes"
        stoker(d, "update", str(waits), "--nodelist", names[0])
        d.post(f"/v1/jobs/{first}/cancel")
        d.wait(first)
        assert d.job(waits)["state"] == "waiting"  # that is not its node any more
        stoker(d, "update", str(waits), "--nodelist", "none")
        assert d.wait(waits)["cause"] == "completed"
        assert "there is no node \"nowhere\"" in stoker(d, "submit", "--gpus", "1", "-w", "nowhere", "--", "/bin/true", code=2)
        assert "parentheses" in stoker(d, "submit", "--gpus", "1", "-C", "a&b|c", "--", "/bin/true", code=2)
        assert "no node of its pool" in stoker(d, "submit", "--gpus", "1", "-C", "fast", "--", "/bin/true", code=2)
        assert "1 node" in stoker(d, "submit", "--gpus", "2", "-n", "2", "-w", names[0], "--", "/bin/true", code=2)
        done = d.submit(command=["/bin/true"], gpus=1, constraint="virtual")  # the kind of GPU is a feature here
        assert d.wait(done)["cause"] == "completed"
