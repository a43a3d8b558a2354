# SPDX-License-Identifier: Apache-2.0
"""The benchmark of Slurm as the engine runs, at a small size, and says what it measured."""
import json
import pathlib
import subprocess

import pytest
import slurm
from daemon import STOKERD
from libslurm import PROGRAM

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "slurm-speed"
pytestmark = [pytest.mark.skipif(not slurm.installed(), reason="Slurm is not installed"),
              pytest.mark.skipif(not PROGRAM.exists() or not STOKERD.exists(), reason="not built (libslurm-dev)"),
              pytest.mark.skipif(not slurm.OUR_PLUGINS.exists(), reason="the plugins are not built (libslurm-dev)")]


def test_the_benchmark_runs():
    p = subprocess.run([BENCH, "--small"], capture_output=True, text=True, timeout=900)
    assert p.returncode == 0, p.stderr[-3000:]
    rows = json.loads(p.stdout)["rows"]
    assert len(rows) == 13 and all(r.get("p50_ms", 0) > 0 or r.get("per_s", 0) > 0 for r in rows)
