# SPDX-License-Identifier: Apache-2.0
"""bench/slurm-day in small: a few jobs on four nodes, under Slurm, under stoker and in the simulator. That all of them
do their work and figures come out is what is asked here, not how good they are."""
import json
import os
import pathlib
import subprocess

from slurm_daemon import needed

pytestmark = needed
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "slurm-day"


def trace(folder):
    """One of all GPUs that gives way to smaller ones, a gang of 12 GPUs, small ones, and one that is too large."""
    rows = [(0, 0, 32, 600), (1, 100, 12, 300), (2, 110, 40, 100)]
    rows += [(k, 100 + 10 * k, 1 + k % 4, 20 * k) for k in range(3, 24)]
    (folder / "philly").mkdir()
    (folder / "philly" / "philly.csv").write_text("job_id,submit_s,gpus,duration_s,vc\n" + "".join("%d,%d,%d,%d,vc\n" % r for r in rows))


def test_a_day_in_small(tmp_path):
    trace(tmp_path)
    done = subprocess.run([BENCH, "--nodes", "4", "--hours", "0-0.2", "--keep", tmp_path / "kept"], text=True, capture_output=True,
                          env={**os.environ, "STOKER_DATA": str(tmp_path)}, timeout=1800)
    assert done.returncode in (0, 1) and done.stdout, done.stderr  # 1: a bar was missed
    result = json.loads(done.stdout)
    assert result["jobs"] == 23 and "1 larger than the cluster" in done.stderr
    assert set(result["rows"]) >= {"Slurm", "stoker", "simulator", "simulator, before"}
    assert set(result["rows"]["stoker"]["before"]) == {"start_s", "late_s", "save_s", "each_s"}
    for row in result["rows"].values():
        assert row["avg_jct_s"] > row["avg_wait_s"] >= 0 and 0 < row["utilization"] <= 1
    assert "wait_ratio" in result and set(result["fidelity"]) == {"avg_wait_s", "avg_jct_s"}
    assert 0 <= result["bound_wait_s"] <= result["rows"]["simulator, no overheads"]["avg_wait_s"] + 0.01
    assert "fidelity: the simulator is off by" in done.stderr
