# SPDX-License-Identifier: Apache-2.0
"""stoker-libslurm and a whole Slurm cluster on this machine: nodes of pretended GPUs, real daemons."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import slurm
from libslurm import PROGRAM, Helper
from slurm_daemon import installed
from slurm_users import read

pytestmark = [installed, pytest.mark.skipif(not PROGRAM.exists(), reason="stoker-libslurm was not built (libslurm-dev)")]
WHO = {"uid": os.getuid(), "gid": os.getgid()}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=3, gpus=4, extra="RequeueExitHold=86\nPartitionName=other Nodes=n3 State=UP") as c:
        yield c


@pytest.fixture
def helper(cluster):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1 and h.nodes and h.partitions)
        h.ask(op="every", ms=50)
        yield h


def submit(h, folder, script, **more):
    out = os.path.join(folder, "out")
    a = h.ask(op="submit", name="t", script="#!/bin/sh\n" + script + "\n", workdir=str(folder), stdout=out, env={"PATH": "/usr/bin:/bin"}, **WHO, **more)
    assert a["ok"], a
    return a["job"], out


def until_text(path, text):
    slurm.wait_for(lambda: read(path) == text)


def test_it_says_what_there_is(helper):
    assert helper.hello["major"] >= 22
    assert sorted(helper.nodes) == ["n1", "n2", "n3"]
    n = helper.nodes["n2"]
    assert n["state"] == "up" and n["gpus"] == [{"type": "h100", "count": 4, "indices": []}] and n["cpus"] == 64
    p = helper.partitions["main"]
    assert p["up"] and p["default"] and p["nodes"] == ["n1", "n2", "n3"] and p["max_time_s"] is None


def test_a_job_runs_where_it_is_sent(helper, tmp_path):
    job, out = submit(helper, tmp_path, "echo $SLURM_JOB_NODELIST $CUDA_VISIBLE_DEVICES; exit 3", nodes="n2,n3", n_nodes=2, tasks=2,
                      tasks_per_node=1, tres_per_node="gres:gpu:2", time_limit_s=600, comment="mark 7")
    helper.until(lambda: helper.jobs.get(job, {}).get("state") == "failed")
    j = helper.jobs[job]
    assert j["exit_code"] == 3 and j["signal"] == 0 and j["comment"] == "mark 7" and j["time_limit_s"] == 600
    assert read(out).split()[0] == "n[2-3]" and len(read(out).split()[1].split(",")) == 2


def test_a_held_job_waits_and_is_started_on_exact_nodes(helper, tmp_path):
    job, out = submit(helper, tmp_path, "echo $SLURM_JOB_NODELIST; sleep 300", tres_per_node="gres:gpu:1", n_nodes=1, hold=True)
    helper.until(lambda: helper.jobs.get(job, {}).get("held"))
    assert helper.jobs[job]["state"] == "pending" and helper.jobs[job]["pieces"] == []
    assert helper.ask(op="start", job=job, nodes="n3")["ok"]
    helper.until(lambda: helper.jobs[job]["state"] == "running")
    piece = helper.jobs[job]["pieces"]
    assert len(piece) == 1 and piece[0]["node"] == "n3" and piece[0]["gpus"][0]["count"] == 1 and len(piece[0]["gpus"][0]["indices"]) == 1
    helper.until(lambda: helper.nodes["n3"]["used"][0]["count"] == 1)
    assert helper.ask(op="cancel", job=job)["ok"]
    helper.until(lambda: helper.jobs[job]["state"] == "cancelled" and not helper.jobs[job]["completing"])
    helper.until(lambda: helper.nodes["n3"]["used"][0]["count"] == 0)


def test_a_job_is_started_in_another_partition_every_time(helper, tmp_path):
    jobs = [submit(helper, tmp_path, "true", partition="main", hold=True)[0] for _ in range(30)]
    for job in jobs:
        a = helper.ask(op="start", job=job, partition="other", nodes="n3")
        assert a["ok"], a
    helper.until(lambda: all(helper.jobs.get(job, {}).get("state") == "completed" and helper.jobs[job]["partition"] == "other" for job in jobs))


def test_a_job_saves_leaves_and_goes_on_elsewhere(helper, tmp_path):
    script = ("trap 'echo saved; exit 86' USR1\necho start ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME\n"
              "while :; do sleep 0.05; done")
    job, out = submit(helper, tmp_path, script, nodes="n2", tres_per_node="gres:gpu:4")
    helper.until(lambda: helper.jobs.get(job, {}).get("state") == "running")
    until_text(out, "start 0 on n2\n")
    assert helper.ask(op="signal", job=job, signal=int(signal.SIGUSR1), to="batch")["ok"]
    helper.until(lambda: helper.jobs[job]["state"] == "pending" and helper.jobs[job]["held"] and not helper.jobs[job]["completing"])
    time.sleep(1.1)  # a start in the same second would be killed
    assert helper.ask(op="start", job=job, nodes="n3")["ok"]
    until_text(out, "start 0 on n2\nsaved\nstart 1 on n3\n")
    assert helper.jobs[job]["restarts"] == 1
    assert helper.ask(op="requeue", job=job)["ok"]  # by force
    helper.until(lambda: helper.jobs[job]["restarts"] == 2 and helper.jobs[job]["held"])
    helper.ask(op="cancel", job=job)


def test_refusals_say_what_to_do(helper):
    a = helper.ask(op="submit", script="#!/bin/sh\n", name="x", workdir="/", env={"A": "b"}, partition="nowhere", **WHO)
    assert not a["ok"] and "partition" in a["why"].lower() and "sinfo" in a["why"]
    assert "needs job" in helper.ask(op="cancel")["why"]
    assert "there are:" in helper.ask(op="dance")["why"]
    assert not helper.ask(op="cancel", job=999999)["ok"]


def test_nodes_come_and_go(helper, cluster):
    cluster.run("scontrol", "update", "nodename=n1", "state=drain", "reason=fan")
    helper.until(lambda: helper.nodes["n1"]["state"] == "drain")
    assert helper.nodes["n1"]["why"] == "fan"
    cluster.run("scontrol", "update", "nodename=n1", "state=resume")
    helper.until(lambda: helper.nodes["n1"]["state"] == "up")


def test_only_what_changed_is_told(helper, tmp_path):
    jobs = [submit(helper, tmp_path, "true", tres_per_node="gres:gpu:1", hold=True)[0] for _ in range(20)]
    helper.until(lambda: all(j in helper.jobs for j in jobs))
    before = helper.told
    helper.ask(op="cancel", job=jobs[0])
    helper.until(lambda: helper.jobs[jobs[0]]["state"] == "cancelled")
    assert helper.told - before < 10
    for j in jobs[1:]:
        helper.ask(op="cancel", job=j)


def test_slurmctld_dies_and_comes_back(cluster, tmp_path):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1)
        cluster.stop_controller()
        h.until(lambda: h.away is not None)
        assert "slurmctld" in h.away
        cluster.start_controller()
        h.until(lambda: h.away is None and h.all == 2)
        assert sorted(h.nodes) == ["n1", "n2", "n3"]


def copied(folder, to):
    """Whether that went well: slurmctld may just be writing there."""
    shutil.rmtree(to, ignore_errors=True)
    with contextlib.suppress(shutil.Error):
        return shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.sock"))


def test_a_job_that_is_lost_at_once_is_gone(cluster, tmp_path):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1)
        before, _ = submit(h, tmp_path, "true", hold=True)
        cluster.saved(before)
        slurm.wait_for(lambda: copied(cluster.folder + "/state", tmp_path / "state"))
        h.ask(op="every", ms=60000)
        job, _ = submit(h, tmp_path, "true", hold=True)
        cluster.stop_controller()
        shutil.copytree(tmp_path / "state", cluster.folder + "/state", dirs_exist_ok=True)  # it may have been quick
        cluster.start_controller()
        h.ask(op="every", ms=50)
        h.until(lambda: job in h.gone or h.all == 2)
        h.ask(op="cancel", job=before)


def test_a_configuration_that_is_not_there(tmp_path):
    with Helper(tmp_path / "no.conf") as h:
        h.until(lambda: h.away is not None)
        assert "No such file" in h.away
    assert h.code == 1


def test_it_ends_with_its_daemon(cluster):
    with Helper(cluster.conf) as h:
        h.until(lambda: h.all == 1)
    assert h.code == 0


DAEMON = """
import subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdout.readline()
p.stdin.write(sys.stdin.buffer.readline())
p.stdin.flush()
print(p.pid, flush=True)
p.wait()
"""


def test_what_a_daemon_that_was_killed_had_asked_for_is_not_done_later(cluster, tmp_path):
    """Slurm's library tries for a minute to reach a slurmctld; another daemon may have sent the job by then."""
    cluster.stop_controller()
    ask = {"op": "submit", "name": "late", "script": "#!/bin/sh\n", "workdir": str(tmp_path), "stdout": "/dev/null", "env": {"A": "b"}, "hold": True, **WHO}
    command = [sys.executable, "-c", DAEMON, str(PROGRAM), "--conf", str(cluster.conf)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as daemon:
        daemon.stdin.write(json.dumps(ask) + "\n")
        daemon.stdin.flush()
        pid = int(daemon.stdout.readline())
        daemon.kill()
    cluster.start_controller()
    cluster.wait_controller()
    slurm.wait_for(lambda: slurm.gone(pid))
    assert "late" not in cluster.run("squeue", "-h", "-a", "-o", "%j").stdout.split()


def test_lines_that_are_wrong_are_answered(helper):
    helper.process.stdin.write("{\n[]\n\n")
    a = helper.ask(op="every", ms=5)
    assert not a["ok"] and "10 to 60000" in a["why"]
    assert helper.answers[None]["ok"] is False


def test_help():
    p = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    assert "usage: stoker-libslurm" in p.stdout


def test_a_slurmctld_that_was_restarted_unseen_is_told_anew(helper, cluster):
    """What it says to run may not: it was killed and was back before anybody asked it anything."""
    helper.process.send_signal(signal.SIGSTOP)
    cluster.stop_controller()
    cluster.start_controller()
    cluster.wait_controller()
    helper.process.send_signal(signal.SIGCONT)
    helper.until(lambda: helper.all == 2)
    helper.until(lambda: all(n["state"] == "up" for n in helper.nodes.values()))
    assert helper.away is None


def test_what_was_asked_for_before_slurmctld_was_started_again_is_not_done(helper, cluster, tmp_path):
    """It may have given the job's number to another."""
    job, _ = submit(helper, tmp_path, "true", hold=True)
    assert helper.ask(op="update", job=job, begin=5, boot=helper.boot)["ok"]
    helper.ask(op="every", ms=60000)
    before, told = helper.boot, helper.all
    slurm.wait_for(lambda: time.time() >= before + 1)  # it is known by the second
    cluster.stop_controller()
    cluster.start_controller()
    cluster.wait_controller()
    other = int(cluster.run("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true").stdout)
    for request in ({"op": "cancel"}, {"op": "signal", "signal": 9}, {"op": "requeue"}, {"op": "update", "admin_comment": "x"},
                    {"op": "start", "nodes": "n1", "n_nodes": 1}, {"op": "release"}):
        a = helper.ask(job=other, boot=before, **request)
        assert not a["ok"] and a["unanswered"] and "started again" in a["why"], a
    helper.until(lambda: helper.all > told and helper.boot > before and helper.jobs.get(other, {}).get("held"))
    assert helper.jobs[other]["admin_comment"] == "" and helper.jobs[other]["state"] == "pending"
    assert helper.ask(op="cancel", job=other, boot=helper.boot)["ok"]
    helper.ask(op="cancel", job=job)
