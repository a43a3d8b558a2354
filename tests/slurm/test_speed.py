# SPDX-License-Identifier: Apache-2.0
"""The benchmark of Slurm as the engine runs, at a small size, and says what it measured."""
import json
import pathlib
import subprocess

from slurm_daemon import needed, with_plugins

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "slurm-speed"
pytestmark = [*needed, with_plugins]


def test_the_benchmark_runs():
    p = subprocess.run([BENCH, "--small"], capture_output=True, text=True, timeout=900)
    assert p.returncode == 0, p.stderr[-3000:]
    rows = json.loads(p.stdout)["rows"]
    assert len(rows) == 13 and all(r.get("p50_ms", 0) > 0 or r.get("per_s", 0) > 0 for r in rows)
