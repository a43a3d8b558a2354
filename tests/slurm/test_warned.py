# SPDX-License-Identifier: Apache-2.0
"""Who gets the signal of a job that must give way, and what becomes of one that dies of it: real slurmctld, slurmd and stokerd."""
import pytest
import slurm
from slurm import wait_for
from slurm_daemon import as_root, needed, slurm_daemon
from slurm_users import ours, read, sbatch, touch
from test_sbatch import daemon  # noqa: F401

pytestmark = [*needed, as_root]
WAITS = "while [ ! -e done ]; do sleep 0.1; done"
SAVES = f"trap 'echo saved >> log; exit 86' USR1; echo start ${{SLURM_RESTART_COUNT:-0}} >> log; {WAITS}"


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as f, slurm.Cluster(f, nodes=2, gpus=4, extra="RequeueExitHold=86", managed=["main"]) as c:
        yield c


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, args=["--paranoid"]) as d:
        yield d


def test_without_b_the_steps_are_warned_and_not_the_script(daemon, cluster, folder):
    """The script has no trap: it would die of the signal, and its step with it."""
    job = sbatch(cluster, folder, f'srun bash -c "{SAVES.replace("$", chr(92) + "$")}"', "--gres=gpu:1", "--signal=USR1@60")
    n = ours(cluster, job)
    assert daemon.job(n)["spec"]["signal"]["who"] == "all"
    daemon.until(n, "running")
    wait_for(lambda: read(folder, "log") == "start 0\n")
    daemon.post(f"/v1/jobs/{n}/requeue")
    wait_for(lambda: read(folder, "log") == "start 0\nsaved\nstart 1\n")
    again = daemon.until(n, "running")
    assert again["slurm"]["job"] == job and again["slurm"]["restarts"] == 1
    touch(folder, "done")
    assert daemon.wait(n)["cause"] == "completed"


@pytest.mark.parametrize("script", [f"echo start ${{SLURM_RESTART_COUNT:-0}} >> log; {WAITS}",
                                    f"trap 'exit 1' USR1; echo start ${{SLURM_RESTART_COUNT:-0}} >> log; {WAITS}"])
@pytest.mark.parametrize("array", [[], ["--array=3"]])
def test_one_that_dies_of_its_warning_is_requeued(daemon, cluster, folder, script, array):
    job = sbatch(cluster, folder, script, "--gres=gpu:1", "--signal=B:USR1@60", *array)
    n = ours(cluster, job)
    daemon.until(n, "running")
    wait_for(lambda: read(folder, "log") == "start 0\n")
    there = daemon.job(n)["slurm"]["job"]
    daemon.post(f"/v1/jobs/{n}/requeue")
    wait_for(lambda: read(folder, "log") == "start 0\nstart 1\n")
    again = daemon.until(n, "running")
    assert again["slurm"]["job"] == there and again["slurm"]["restarts"] == 1
    touch(folder, "done")
    assert daemon.wait(n)["cause"] == "completed"


def test_it_is_requeued_by_a_daemon_that_was_away(daemon, cluster, folder):
    script = "trap 'echo warned >> log' USR1; echo start >> log\n" + WAITS.replace("do ", "do [ ! -e die ] || { rm die; exit 1; }; ", 1)
    job = sbatch(cluster, folder, script, "--gres=gpu:1", "--signal=B:USR1@600")
    n = ours(cluster, job)
    daemon.until(n, "running")
    wait_for(lambda: read(folder, "log") == "start\n")
    daemon.post(f"/v1/jobs/{n}/requeue")
    wait_for(lambda: "warned" in read(folder, "log"))
    daemon.kill()
    touch(folder, "die")
    wait_for(lambda: "JobState=FAILED" in cluster.run("scontrol", "show", "job", str(job)).stdout)
    daemon.start()
    wait_for(lambda: read(folder, "log").count("start") == 2)
    assert daemon.until(n, "running")["slurm"]["job"] == job
    touch(folder, "done")
    assert daemon.wait(n)["cause"] == "completed"


def test_all_processes_of_a_command_are_warned(daemon, tmp_path):
    child = "trap 'echo child >> log; exit 0' USR1; echo ready >> log; while :; do sleep 0.1; done"
    (tmp_path / "child.sh").write_text(child)
    main = f"trap 'wait; echo main >> log; exit 86' USR1; sh child.sh & echo ready >> log; {WAITS}; kill $!"
    n = daemon.submit(command=["/bin/sh", "-c", main], gpus=1, signal={"signal": "USR1", "seconds": 60}, workdir=str(tmp_path))
    wait_for(lambda: read(tmp_path, "log") == "ready\nready\n")
    daemon.post(f"/v1/jobs/{n}/requeue")
    wait_for(lambda: read(tmp_path, "log").startswith("ready\nready\nchild\nmain\nready\n"))
    (tmp_path / "done").touch()
    assert daemon.wait(n)["cause"] == "completed"


def test_each_task_of_a_gang_is_warned(daemon, tmp_path):
    each = f"trap 'echo saved $RANK >> log' USR1; echo start $RANK >> log; {WAITS}"
    n = daemon.submit(command=["/bin/sh", "-c", each], gpus=2, tasks=2, tasks_per_node=1, signal={"signal": "USR1", "seconds": 600}, workdir=str(tmp_path))
    wait_for(lambda: sorted(read(tmp_path, "log").split("\n")) == ["", "start 0", "start 1"])
    daemon.post(f"/v1/jobs/{n}/requeue")
    wait_for(lambda: "saved 0" in read(tmp_path, "log") and "saved 1" in read(tmp_path, "log"))
    (tmp_path / "done").touch()
    assert daemon.wait(n)["cause"] == "completed"
