# SPDX-License-Identifier: Apache-2.0
"""Real frameworks under a real daemon, on the CPU: PyTorch's DDP and torchrun, Lightning's Trainer.

They are gigabytes, so nothing installs them. STOKER_TORCH names a virtual environment that has them
(HACKING.md says how to make one); without it these tests are skipped."""
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest
from daemon import STOKER, Daemon

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = pathlib.Path(os.environ.get("STOKER_TORCH", "/nonexistent"))
COMMANDS = ["sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo", "sacct"]

pytestmark = pytest.mark.skipif(not (VENV / "bin/python3").exists(),
                                reason="STOKER_TORCH names no virtual environment with torch and lightning")


class Box:
    """A daemon, the Slurm commands, and a copy of the examples."""

    def __init__(self, daemon, folder):
        self.daemon, self.folder = daemon, folder
        (folder / "bin").mkdir()
        for name in COMMANDS:
            (folder / "bin" / name).symlink_to(STOKER.parent / "stoker-slurm")
        shutil.copytree(ROOT / "examples", folder / "examples")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "STOKER_"))}
        self.env.update(STOKER_SOCKET=str(daemon.socket), PYTHONPATH=str(ROOT / "sdk/python"), OMP_NUM_THREADS="1",
                        PATH=f"{VENV}/bin:{folder}/bin:{self.env['PATH']}")

    def stoker(self, example, *words, **env):
        done = subprocess.run([STOKER, *words], cwd=self.folder / "examples" / example, env={**self.env, **env},
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, example, *words, **env):
        return int(re.search(r"\d+", self.stoker(example, "submit", *words, **env))[0])

    def done(self, number):
        job = self.daemon.wait(number, 300)
        log = self.daemon.log(number)
        assert job["cause"] == "completed", log
        return log


@pytest.fixture
def box(tmp_path):
    with Daemon(tmp_path, gpus=4) as daemon:
        yield Box(daemon, tmp_path)


def numbers(pattern, log):
    return [int(n) for n in re.findall(pattern, log)]


def test_lightning_resumes_where_its_own_slurm_support_saved(box):
    """USR1 goes to the tasks of srun; Lightning's handler saves, calls scontrol requeue and is started again."""
    number = box.submit("lightning", "slurm.sbatch", STEPS="200", PAUSE="0.05")
    box.daemon.log_with(number, "step 20\n")
    subprocess.run(["scancel", "--signal=USR1", str(number)], env=box.env, check=True)
    log = box.done(number)
    assert log.count("rank 0 of 2 starts at step 0\n") == log.count("rank 1 of 2 starts at step 0\n") == 1
    again = numbers(r"rank \d of 2 starts at step ([1-9]\d*)", log)
    assert len(again) == 2 and len(set(again)) == 1 and 20 <= again[0] < 200, log
    assert numbers(r"(?m)^step (\d+)$", log) == list(range(10, 201, 10))
    assert log.endswith("done at step 200\n")
    assert box.daemon.job(number)["restarts"] == 1


def test_lightning_gives_way_to_a_more_urgent_job(box):
    """The same when the daemon needs the GPUs and may not suspend it: the signal comes by itself."""
    number = box.submit("lightning", "--queue", "batch", "--no-suspend", "slurm.sbatch", STEPS="200", PAUSE="0.05")
    box.daemon.log_with(number, "step 20\n")
    urgent = box.submit("lightning", "--gpus", "4", "--queue", "express", "--", "sleep", "1")
    assert box.daemon.wait(urgent, 200)["cause"] == "completed"
    log = box.done(number)
    again = numbers(r"rank \d of 2 starts at step ([1-9]\d*)", log)
    assert len(again) == 2 and len(set(again)) == 1, log
    assert numbers(r"(?m)^step (\d+)$", log) == list(range(10, 201, 10))


def test_the_lightning_callback_goes_on_where_it_was(box):
    number = box.submit("lightning", "job.yaml")
    box.daemon.until(number, "running")
    end = time.monotonic() + 120
    while not (box.daemon.job(number).get("progress") or {}).get("step"):
        assert time.monotonic() < end, box.daemon.log(number)
        time.sleep(0.2)
    box.stoker("lightning", "requeue", str(number))
    box.done(number)
    assert box.daemon.job(number)["restarts"] == 1


def test_a_gang_of_ddp_goes_on_where_it_was(box):
    number = box.submit("pytorch", "gang.yaml")
    for rank in (0, 1):
        box.daemon.log_with(number, f"rank {rank} on cpu starts at step 0")
    box.stoker("pytorch", "requeue", str(number))
    log = box.done(number)
    left, began = numbers(r"leaves at step (\d+)", log), numbers(r"starts at step ([1-9]\d*)", log)
    assert left and set(left) == set(began), log
    assert "after 2000 steps" in log


def test_torchrun_starts_two_processes_in_one_task(box):
    number = box.submit("pytorch", "--gpus", "2", "--time", "1h", "--", "torchrun", "--nproc-per-node=2", "train.py",
                        "--steps", "50", "--checkpoint", "run.pt")
    log = box.done(number)
    assert "rank 0 on cpu" in log and "rank 1 on cpu" in log and "after 50 steps" in log


def test_torchrun_meets_over_c10d_in_a_gang(box):
    """Two tasks, each a torchrun of its own with one process: they find each other through MASTER_ADDR and _PORT."""
    number = box.submit("pytorch", "--tasks", "2", "--gpus", "1", "--", "sh", "-c",
                        "exec torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-id=$STOKER_JOB_ID "
                        "--rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT train.py --steps 50 --checkpoint c10d.pt")
    log = box.done(number)
    assert "rank 0 on cpu" in log and "rank 1 on cpu" in log and "after 50 steps" in log
