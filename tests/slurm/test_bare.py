# SPDX-License-Identifier: Apache-2.0
"""What users do with scontrol, and what their scripts say, where Slurm shows it without our plugin and where it does not."""
import pytest
from slurm import wait_for
from slurm_daemon import as_root, needed
from slurm_users import ours, read, sbatch, show, touch, user
from test_own_limits import stoker
from test_sbatch import cluster, daemon  # noqa: F401

pytestmark = [*needed, as_root]
SAVES = ("trap 'echo saved; exit 86' USR1\necho start ${SLURM_RESTART_COUNT:-0}\n"
         "while [ ! -e done ]; do sleep 0.1; done")


def full(daemon):
    for _ in range(4):
        daemon.until(daemon.submit(command=["/bin/sleep", "1000"], gpus=8, tier="critical", workdir="/tmp"), "running")


@pytest.mark.parametrize("held", [False, True])
def test_the_signal_that_a_script_names_is_known_and_its_output_goes_on(daemon, cluster, folder, held):
    job = sbatch(cluster, folder, "#SBATCH --signal=B:USR1@30\n" + SAVES, "--gres=gpu:8", "--open-mode=append", *(["-H"] if held else []))
    n = ours(cluster, job)
    assert daemon.job(n)["spec"]["signal"] == {"signal": "10" if cluster.plugin else "USR1", "seconds": 30, "who": "batch"}
    if held:
        daemon.until(n, "held")
        assert user(cluster, "scontrol", "release", str(job)).returncode == 0
    daemon.until(n, "running")
    out = f"slurm-{job}.out"
    wait_for(lambda: read(folder, out) == "start 0\n")
    daemon.post(f"/v1/jobs/{n}/requeue")
    wait_for(lambda: read(folder, out) == "start 0\nsaved\nstart 1\n")
    again = daemon.until(n, "running")
    assert again["slurm"]["job"] == job and again["slurm"]["restarts"] == 1
    touch(folder, "done")
    assert daemon.wait(n)["cause"] == "completed"
    assert read(folder, out) == "start 0\nsaved\nstart 1\n"


def test_a_signal_of_the_command_line_is_known_from_the_plugin_alone(daemon, cluster, folder):
    n = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:1", "--signal=B:USR1@30"))
    assert ("signal" in daemon.job(n)["spec"]) == cluster.plugin


def test_a_users_hold_of_a_job_that_waits_is_seen_with_the_plugin_alone(daemon, cluster, folder):
    """To a job that an administrator holds Slurm says yes, and writes nothing down: should that change, we want to know."""
    full(daemon)
    job = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8")
    n = ours(cluster, job)
    wait_for(lambda: show(cluster, job)["Priority"] == "0")
    assert user(cluster, "scontrol", "hold", str(job)).returncode == 0
    if cluster.plugin:
        daemon.until(n, "held")
        assert user(cluster, "scontrol", "release", str(job)).returncode == 0
        daemon.until(n, "waiting")
        return
    assert show(cluster, job)["Reason"] == "JobHeldAdmin"
    assert user(cluster, "scontrol", "release", str(job)).returncode != 0  # nor does it start
    assert daemon.job(n)["state"] == "waiting"


def test_a_job_that_its_user_sent_held_goes_on_when_its_user_says_so(daemon, cluster, folder):
    job = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:1", "-H")
    n = ours(cluster, job)
    daemon.until(n, "held")
    assert "scontrol release" in daemon.job(n)["warning"]
    assert user(cluster, "scontrol", "release", str(job)).returncode == 0
    daemon.until(n, "running")


def test_stoker_hold_and_release_work_either_way(daemon, cluster, folder):
    """It is held here, whatever else becomes of it in Slurm, and is not started when there is room."""
    full(daemon)
    job = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8")
    n = ours(cluster, job)
    assert stoker(daemon, cluster, "hold", f"slurm:{job}").returncode == 0
    daemon.until(n, "held")
    for b in daemon.jobs("?state=running"):
        daemon.post(f"/v1/jobs/{b['id']}/cancel")
        daemon.wait(b["id"])
    assert user(cluster, "scontrol", "update", f"jobid={job}", "timelimit=7").returncode == 0
    wait_for(lambda: daemon.job(n)["time_limit_s"] == 420)
    assert daemon.job(n)["state"] == "held" and show(cluster, job)["JobState"] == "PENDING"
    assert stoker(daemon, cluster, "release", f"slurm:{job}").returncode == 0
    assert daemon.until(n, "running")["slurm"]["job"] == job


def test_a_job_that_is_moved_out_does_not_stop_the_daemon(daemon, cluster, folder):
    """To a partition that is not stoker's."""
    full(daemon)
    job = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8")
    moved = ours(cluster, job)
    cluster.run("scontrol", "update", f"jobid={job}", "partition=other", "timelimit=7")
    assert "left to Slurm" in daemon.until(moved, "held")["warning"]
    n = daemon.submit(command=["/bin/true"], workdir="/tmp")
    assert daemon.wait(n)["cause"] == "completed"
