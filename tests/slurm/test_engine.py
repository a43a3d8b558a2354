# SPDX-License-Identifier: Apache-2.0
"""Slurm as the engine: a real stoker daemon on a real Slurm cluster with pretended GPUs. stoker
decides, Slurm runs."""
import socket
import tempfile
import time

import pytest
import slurm
from daemon import Daemon
from patience import PATIENCE_S
from slurm import wait_for
from slurm_daemon import clear, config, needed, slurm_daemon
from slurm_users import read

pytestmark = needed
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=4, gpus=8, extra="RequeueExitHold=86\nPartitionName=other Nodes=n[1-4] State=UP") as c:
        yield c


@pytest.fixture
def daemon(cluster, tmp_path):
    with slurm_daemon(tmp_path, cluster) as d:
        yield d
        clear(d, cluster)


def squeue(cluster):
    """State and nodes of what Slurm has, by comment."""
    lines = cluster.run("squeue", "-h", "-a", "-O", "jobid:20,state:20,nodelist:30,comment:80").stdout.splitlines()
    return {line[70:].strip(): line[:70].split() for line in lines}


def test_nodes_are_those_of_slurm(daemon):
    nodes = daemon.get("/v1/nodes")["nodes"]
    assert [n["name"] for n in nodes] == ["n1", "n2", "n3", "n4"]
    assert all(n["gpus"] == 8 and n["gpu_type"] == "h100" and n["pool"] == "main" for n in nodes)
    assert "  Slurm    32 GPUs on 4 nodes, partition main" in daemon.banner and not any("pretended" in line for line in daemon.banner)


def test_a_command_runs_and_its_output_is_there(daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "echo job $STOKER_JOB_ID has $CUDA_VISIBLE_DEVICES; exit 7"], gpus=2,
                      workdir=str(tmp_path), envs={"A": "it's \"b\""})
    job = daemon.wait(n)
    assert job["cause"] == "failed" and job["exit_code"] == 7
    out = read(tmp_path / f"stoker-{n}.out").split()
    assert out[:3] == ["job", str(n), "has"] and len(out[3].split(",")) == 2


def test_a_script_goes_as_it_is(daemon, tmp_path):
    n = daemon.submit(script="#!/bin/bash\necho \"$1 and $2\" ${BASH_VERSION%%.*}\n", args=["one", "it's two"], workdir=str(tmp_path))
    assert daemon.wait(n)["cause"] == "completed"
    assert read(tmp_path / f"stoker-{n}.out").startswith("one and it's two ")


def test_a_gang_runs_on_the_nodes_that_were_chosen(daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "echo $RANK of $WORLD_SIZE on $STOKER_NODE; exec sleep 1000"], gpus=8, tasks=2,
                      workdir=str(tmp_path))
    job = daemon.until(n, "running")
    chosen = [p["node"] for p in job["pieces"]]
    assert len(chosen) == 2 and [p["node"] for p in job["slurm"]["pieces"]] == chosen
    assert all(len(p["gpus"][0]["indices"]) == 8 for p in job["slurm"]["pieces"])
    wait_for(lambda: len(read(tmp_path / f"stoker-{n}.out").split()) == 10)
    lines = sorted(read(tmp_path / f"stoker-{n}.out").splitlines())
    assert [line.split()[:3] for line in lines] == [["0", "of", "2"], ["1", "of", "2"]]
    assert sorted(line.split()[4] for line in lines) == sorted(chosen)
    daemon.post(f"/v1/jobs/{n}/cancel")
    assert daemon.wait(n)["cause"] == "cancelled"


def test_a_job_gives_way_saves_and_goes_on(daemon, tmp_path):
    script = ("trap 'echo saved; exit 86' USR1\necho start ${SLURM_RESTART_COUNT:-0}\n"
              "while [ ! -e done ]; do sleep 0.1; done\n")
    low = daemon.submit(script=script, gpus=8, tasks=1, tier="best-effort", signal={"signal": "USR1", "seconds": 30, "who": "batch"},
                        workdir=str(tmp_path))
    others = [daemon.submit(command=SLEEP, gpus=8, workdir=str(tmp_path)) for _ in range(3)]
    for n in [low, *others]:
        daemon.until(n, "running")
    first = daemon.job(low)["slurm"]["job"]
    out = tmp_path / f"stoker-{low}.out"
    wait_for(lambda: read(out) == "start 0\n")
    high = daemon.submit(command=["/bin/true"], gpus=8, tier="critical", priority=1000, workdir=str(tmp_path))
    assert daemon.wait(high)["cause"] == "completed"
    job = daemon.until(low, "running")
    assert job["preemptions"] == 1 and job["slurm"]["job"] == first and job["slurm"]["restarts"] == 1
    wait_for(lambda: read(out) == "start 0\nsaved\nstart 1\n")
    (tmp_path / "done").touch()
    assert daemon.wait(low)["cause"] == "completed"


def test_one_that_has_just_begun_is_warned_again(daemon, tmp_path):
    """Slurm loses signals of jobs whose script it has not started yet. This one overhears the first itself."""
    script = ("trap 'n=$((n + 1)); [ $n = 1 ] || { echo saved; exit 86; }' USR1\necho start\n"
              "while [ ! -e done ]; do sleep 0.1; done\n")
    n = daemon.submit(script=script, gpus=8, tasks=1, signal={"signal": "USR1", "seconds": 20, "who": "batch"}, workdir=str(tmp_path))
    daemon.until(n, "running")
    out = tmp_path / f"stoker-{n}.out"
    wait_for(lambda: read(out) == "start\n")
    daemon.post(f"/v1/jobs/{n}/requeue")
    wait_for(lambda: read(out).endswith("start\n") and len(read(out)) > 6)
    (tmp_path / "done").touch()
    assert daemon.wait(n)["cause"] == "completed"
    assert read(out) == "start\nsaved\nstart\n"


def test_a_job_that_dies_of_its_signal_is_run_again(daemon, tmp_path):
    """It had not set its trap yet. For Slurm that job is over: it is requeued all the same, and how the first run ended is not its end."""
    low = daemon.submit(script="echo start >> begun\nwhile [ ! -e done ]; do sleep 0.1; done\n", gpus=8, tasks=1, tier="best-effort",
                        signal={"signal": "USR1", "seconds": 30, "who": "batch"}, workdir=str(tmp_path))
    others = [daemon.submit(command=SLEEP, gpus=8, workdir=str(tmp_path)) for _ in range(3)]
    for n in [low, *others]:
        daemon.until(n, "running")
    wait_for(lambda: read(tmp_path / "begun") == "start\n")  # not only opened
    first = daemon.job(low)["slurm"]["job"]
    high = daemon.submit(command=["/bin/true"], gpus=8, tier="critical", priority=1000, workdir=str(tmp_path))
    assert daemon.wait(high)["cause"] == "completed"
    wait_for(lambda: read(tmp_path / "begun") == "start\nstart\n")
    job = daemon.until(low, "running")
    assert job["preemptions"] == 1 and job["slurm"]["job"] == first and job["slurm"]["restarts"] == 1
    (tmp_path / "done").touch()
    assert daemon.wait(low)["cause"] == "completed"


def test_others_are_seen_and_left_alone(daemon, cluster, tmp_path):
    foreign = cluster.run("sbatch", "--parsable", "-p", "other", "-w", "n1", "--gres=gpu:6", "-o", "/dev/null", "--wrap", "sleep 1000").stdout.strip()
    wait_for(lambda: sum(g["state"] != "free" for g in daemon.get("/v1/gpus")["gpus"]) == 6 or
             [n["gpus_free"] for n in daemon.get("/v1/nodes")["nodes"]] == [2, 8, 8, 8])
    n = daemon.submit(command=SLEEP, gpus=8, tasks=3, workdir=str(tmp_path))
    assert sorted(p["node"] for p in daemon.until(n, "running")["pieces"]) == ["n2", "n3", "n4"]
    waits = daemon.submit(command=["/bin/true"], gpus=4, workdir=str(tmp_path))
    assert daemon.job(waits)["state"] == "waiting"
    cluster.run("scancel", foreign)
    assert daemon.wait(waits)["cause"] == "completed"


def test_a_drained_node_gets_nothing(daemon, cluster, tmp_path):
    cluster.run("scontrol", "update", "nodename=n1,n2,n3", "state=drain", "reason=test")
    wait_for(lambda: [n["gpus_free"] for n in daemon.get("/v1/nodes")["nodes"]] == [0, 0, 0, 8])
    n = daemon.submit(command=SLEEP, gpus=1, workdir=str(tmp_path))
    assert daemon.until(n, "running")["node"] == "n4"
    cluster.run("scontrol", "update", "nodename=n1,n2,n3", "state=resume")
    wait_for(lambda: [n["gpus_free"] for n in daemon.get("/v1/nodes")["nodes"]] == [8, 8, 8, 7])


def test_somebody_cancels_it_in_slurm(daemon, cluster, tmp_path):
    n = daemon.submit(command=SLEEP, gpus=1, workdir=str(tmp_path))
    job = daemon.until(n, "running")
    cluster.run("scancel", str(job["slurm"]["job"]))
    job = daemon.wait(n)
    assert job["cause"] == "cancelled" and "in Slurm" in job["note"]


def test_a_time_limit_is_slurms(daemon, tmp_path):
    n = daemon.submit(command=SLEEP, gpus=1, time_limit_s=3600, workdir=str(tmp_path))
    job = daemon.until(n, "running")
    shown = daemon.cluster.run("scontrol", "show", "job", str(job["slurm"]["job"])).stdout
    assert "TimeLimit=01:00:00" in shown and "Partition=main" in shown


def test_what_slurm_cannot_do_is_refused(daemon):
    for job in ({"gpus": 0.5}, {"gpus": 1, "image": "debian:12"}, {"gpus": 1, "interactive": True}):
        a = daemon.client().post("/v1/jobs", {"jobs": [{"command": ["/bin/true"], **job}]})
        assert a.status >= 400 and "Slurm" in a.message, job


def test_the_daemon_is_killed_and_comes_back(daemon, tmp_path):
    n = daemon.submit(command=SLEEP, gpus=8, tasks=2, workdir=str(tmp_path))
    short = daemon.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.1; done; exit 5"], gpus=1, workdir=str(tmp_path))
    before = daemon.until(n, "running")
    there = str(daemon.until(short, "running")["slurm"]["job"])
    daemon.kill()
    (tmp_path / "go").touch()
    wait_for(lambda: there not in daemon.cluster.run("squeue", "-h", "-t", "R,CG", "-o", "%i").stdout.split())
    daemon.start()
    after = daemon.until(n, "running")
    assert after["slurm"]["job"] == before["slurm"]["job"] and after["pieces"] == before["pieces"] and after["restarts"] == 0
    assert daemon.wait(short)["exit_code"] == 5


def test_slurmctld_is_killed_and_comes_back(daemon, cluster, tmp_path):
    n = daemon.submit(command=SLEEP, gpus=8, workdir=str(tmp_path))
    before = daemon.until(n, "running")
    cluster.saved(before["slurm"]["job"])
    cluster.stop_controller()
    later = daemon.submit(command=["/bin/true"], gpus=1, workdir=str(tmp_path))
    time.sleep(1)
    cluster.start_controller()
    assert daemon.wait(later)["cause"] == "completed"
    after = daemon.job(n)
    assert after["state"] == "running" and after["slurm"]["job"] == before["slurm"]["job"]


def test_a_node_fails_and_its_job_goes_on_elsewhere(daemon, cluster, tmp_path):
    n = daemon.submit(command=SLEEP, gpus=8, workdir=str(tmp_path))
    node = daemon.until(n, "running")["node"]
    cluster.stop_node(node)
    wait_for(lambda: (job := daemon.job(n))["state"] == "running" and job["node"] != node)

    def is_down():  # Slurm puts it back into service when it comes to know late of an answer from before
        if {x["name"]: x["state"] for x in daemon.get("/v1/nodes")["nodes"]}[node] == "down":
            return True
        cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=killed")
    wait_for(is_down)
    assert len([s for s in squeue(cluster).values() if s[1] == "RUNNING"]) == 1
    cluster.start_node(node)
    wait_for(lambda: all(x["state"] == "up" for x in daemon.get("/v1/nodes")["nodes"]))


def test_what_slurm_lost_is_sent_again(daemon, cluster, tmp_path):
    cluster.idle()
    time.sleep(6)  # everything before is written down
    cluster.run("scontrol", "update", "partitionname=main", "state=down")  # jobs are taken, and do not start
    n = daemon.submit(command=["/bin/sh", "-c", "echo once >> out"], gpus=1, workdir=str(tmp_path))
    wait_for(lambda: squeue(cluster))
    cluster.stop_controller()
    cluster.start_controller()
    wait_for(lambda: cluster.run("scontrol", "update", "partitionname=main", "state=up", check=False).returncode == 0)
    assert daemon.wait(n)["cause"] == "completed"
    assert read(tmp_path / "out") == "once\n"


def test_the_service_manager_is_told_of_slurms_gpus(cluster, tmp_path):
    with tempfile.TemporaryDirectory(prefix="stk-") as short, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(f"{short}/notify")
        s.settimeout(PATIENCE_S)
        with Daemon(tmp_path, gpus=None, config=config(cluster.conf), env={"NOTIFY_SOCKET": f"{short}/notify"}):
            while not (said := s.recv(1000).decode()).startswith("STATUS="):
                pass
            assert said == "STATUS=32 GPUs, 0 jobs run, 0 wait"


def test_what_takes_a_restart_is_named_when_the_configuration_is_read_again(daemon, cluster):
    daemon.config.write_text(config(cluster.conf, "main, other", gpu_type="h100", accounts="{a: b}"))
    daemon.reload()
    daemon.errors_with("configuration read again")
    assert [key for key in ("conf", "gpu_type", "partitions", "accounts") if any(f"slurm.{key} has changed; that takes a restart" in line for line in daemon.errors)] == \
        ["gpu_type", "partitions"]


def test_wrong_settings_say_what_to_mend(cluster, tmp_path):
    for text, words in (("engine: slurm\n", "which partitions"),
                        (config(cluster.conf, "nowhere"), "no partition \"nowhere\""),
                        (config(f"{tmp_path}/no.conf"), "No such file")):
        with pytest.raises(RuntimeError, match=words):
            Daemon(tmp_path, gpus=None, config=text).start()
