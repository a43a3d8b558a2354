# SPDX-License-Identifier: Apache-2.0
"""A daemon that pretends to be several machines: gangs over nodes, with real processes that all run
here."""
import re
import sqlite3
import subprocess

import pytest
from daemon import STOKER, STOKERD, Daemon, stoker
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
SLEEP = ["/bin/sleep", "1000"]
NODES = 21  # STK_EV_NODES


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


def test_a_set_of_nodes_is_no_event_of_a_job(tmp_path):
    """Job 1 has slot 0 of the core's table, which an event without a job has as its job, too."""
    with Daemon(tmp_path, gpus="2x2") as d:
        names = [n["name"] for n in d.get("/v1/nodes")["nodes"]]
        first = d.submit(command=SLEEP, gpus=1)
        d.until(first, "running")
        d.until(d.submit(command=SLEEP, gpus=1, nodelist=[names[1]]), "running")
        with sqlite3.connect(f"file:{d.state}/stoker.db?mode=ro", uri=True) as db:
            filed = db.execute("SELECT number FROM journal WHERE type = ?", (NODES,)).fetchall()
        assert filed == [(0,)]
        life = d.get(f"/v1/jobs/{first}/events")["events"]
        assert [e["type"] for e in life] == ["submit", "place", "started"]


def test_outputs_named_by_node_are_found_for_every_task(tmp_path):
    with Daemon(tmp_path, gpus="2x2") as d:
        names = [n["name"] for n in d.get("/v1/nodes")["nodes"]]
        n = d.submit(command=["/bin/sh", "-c", "echo task $RANK"], gpus=1, tasks=2, nodelist=[names[1]], stdout="%N-%t.log")
        d.wait(n)
        assert sorted(p.name for p in d.folder.glob("*-?.log")) == [f"{names[1]}-0.log", f"{names[1]}-1.log"]
        assert [d.log(n, f"?task={t}") for t in (0, 1)] == ["task 0\n", "task 1\n"]


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
        assert lines[1] == names[0] and lines[4] == names[1] and "drained" in lines[6]  # below the heads of the columns


def variables(text):
    """Lines of "task: A=1 B=2", by task."""
    found = {}
    for line in text.splitlines():
        task, words = line.split(": ", 1)
        found[int(task)] = dict(w.split("=", 1) for w in words.split())
    return [found[t] for t in sorted(found)]


SAY = ('echo "${RANK:-$SLURM_PROCID}: CUDA=$CUDA_VISIBLE_DEVICES PROCID=$SLURM_PROCID LOCALID=$SLURM_LOCALID NODEID=$SLURM_NODEID NODE=$SLURMD_NODENAME OURS=$STOKER_NODE'
       ' LIST=$SLURM_JOB_NODELIST N=$SLURM_NNODES PER=$SLURM_TASKS_PER_NODE GPUS=$SLURM_GPUS_ON_NODE STEP=$SLURM_STEP_NUM_NODES')


def test_each_task_of_a_gang_sees_its_own_node(tmp_path):
    with Daemon(tmp_path, gpus="4x8") as d:
        n = d.submit(command=["/bin/sh", "-c", SAY + ' LOCAL=$LOCAL_RANK WORLD=$LOCAL_WORLD_SIZE RANKS=$WORLD_SIZE GROUP=$GROUP_RANK NODES=$NUM_NODES NODE_RANK=$NODE_RANK"'],
                     gpus=4, tasks=8)
        d.wait(n)
        tasks = variables(d.log(n))
        names = nodes_of(d)
        for t, v in enumerate(tasks):
            assert v == {"CUDA": "0,1,2,3" if t % 2 == 0 else "4,5,6,7", "PROCID": str(t), "LOCALID": str(t % 2), "NODEID": str(t // 2),
                         "NODE": v["NODE"], "OURS": v["NODE"], "LIST": tasks[0]["LIST"], "N": "4", "PER": "2(x4)", "GPUS": "8", "STEP": "4",
                         "LOCAL": str(t % 2), "WORLD": "2", "RANKS": "8", "GROUP": str(t // 2), "NODES": "4", "NODE_RANK": str(t // 2)}
            assert v["NODE"] == v["LIST"].split(",")[t // 2]
        assert sorted(tasks[0]["LIST"].split(",")) == sorted(names)


def test_a_script_and_its_srun_see_several_nodes(tmp_path):
    """As on a cluster: the script has the GPUs of the first node, each task of srun those of its own."""
    script = "#!/bin/bash\n#SBATCH --nodes=4 --ntasks-per-node=2 --gpus-per-node=8\n"
    body = ("echo \"100: CUDA=$CUDA_VISIBLE_DEVICES NODE=$SLURMD_NODENAME LIST=$SLURM_JOB_NODELIST N=$SLURM_JOB_NUM_NODES GPUS=$SLURM_GPUS_ON_NODE\"\n"
            f"srun bash -c '{SAY}\"'\n")
    with Daemon(tmp_path, gpus="4x8") as d:
        (d.folder / "gang.sh").write_text(script + body)
        out = stoker(d, "submit", "gang.sh")
        n = int(re.search(r"\d+", out)[0])
        d.wait(n)
        *tasks, first = variables(d.log(n))
        names = first["LIST"].split(",")
        assert sorted(names) == sorted(nodes_of(d))
        assert (first["CUDA"], first["NODE"], first["N"], first["GPUS"]) == ("0,1,2,3,4,5,6,7", names[0], "4", "8")
        assert len(tasks) == 8
        for t, v in enumerate(tasks):
            assert (v["PROCID"], v["LOCALID"], v["NODEID"], v["NODE"], v["OURS"]) == (str(t), str(t % 2), str(t // 2), names[t // 2], names[t // 2])
            assert (v["N"], v["STEP"], v["PER"]) == ("4", "4", "2(x4)")
            assert v["CUDA"] == "0,1,2,3,4,5,6,7"  # of its own node; the step did not ask for GPUs per task


def nodes_of(d):
    return [n["name"] for n in d.get("/v1/nodes")["nodes"]]


def test_idle_gpus_are_lent_on_every_node(tmp_path):
    """Node 0 is full of jobs at work; on node 1 an idle job has one GPU and the other is free."""
    with Daemon(tmp_path, gpus="2x2") as d:
        names = nodes_of(d)
        d.until(d.submit(command=SLEEP, gpus=2, nodelist=[names[0]]), "running")
        idle = d.submit(command=SLEEP, gpus=1, nodelist=[names[1]], idle={"suspend_s": 1})
        d.until(idle, "running")
        other = d.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"], gpus=2)
        d.until(idle, "suspended")
        assert d.until(other, "running")["node"] == names[1]
        (d.folder / "go").touch()
        d.wait(other)
        assert d.until(idle, "running")["node"] == names[1]  # though the GPUs of that number on node 0 are in use


def test_idle_gpus_that_help_nobody_are_not_lent(tmp_path):
    """A job that needs two GPUs of one node gets none from one that is free here and one that is idle there."""
    with Daemon(tmp_path, gpus="2x2") as d:
        names = nodes_of(d)
        d.until(d.submit(command=SLEEP, gpus=1, nodelist=[names[0]]), "running")
        d.until(d.submit(command=SLEEP, gpus=1, nodelist=[names[1]]), "running")
        idle = d.submit(command=SLEEP, gpus=1, nodelist=[names[1]], idle={"warn_s": 1, "suspend_s": 1})
        d.until(idle, "running")
        waiting = d.submit(command=SLEEP, gpus=2)
        ended = d.submit(command=SLEEP, idle={"end_s": 4})  # its end tells that there was time for a look
        assert d.wait(ended)["cause"] == "cancelled"
        assert d.job(idle)["state"] == "running" and d.job(waiting)["state"] == "waiting"


def test_a_gang_that_cannot_sleep_is_promised_no_lending(tmp_path):
    with Daemon(tmp_path, gpus="2x2") as d:
        gang = d.submit(command=SLEEP, gpus=2, tasks=2, idle={"warn_s": 1, "suspend_s": 2})
        d.until(gang, "running")
        waiting = d.submit(command=SLEEP, gpus=1)
        warning = until(lambda: d.job(gang).get("warning"))
        assert "lent" not in warning
        ended = d.submit(command=SLEEP, idle={"end_s": 4})  # its end tells that there was time for a look
        assert d.wait(ended)["cause"] == "cancelled"
        assert d.job(gang)["state"] == "running" and d.job(gang)["restarts"] == 0
        assert d.job(waiting)["state"] == "waiting"


def test_drained_gpus_of_any_node_are_named(tmp_path):
    with Daemon(tmp_path, gpus="2x2") as d:
        names = nodes_of(d)
        stoker(d, "drain", "--gpu", f"{names[1]}:0")
        stoker(d, "drain", "--gpu", f"{names[1]}:1")
        d.until(d.submit(command=SLEEP, gpus=2), "running")
        assert "2 are not to be used (drained)" in stoker(d, "why", d.submit(command=SLEEP, gpus=2))


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
