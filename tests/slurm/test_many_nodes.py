# SPDX-License-Identifier: Apache-2.0
"""A random run (tests/lib/slurm_random.py) on 64 nodes of 8 GPUs."""
import slurm
from slurm_daemon import needed
from slurm_random import SEED, go

pytestmark = needed


def test_64_nodes(tmp_path):
    with slurm.Cluster(tmp_path / "slurm", nodes=64, gpus=8, extra="RequeueExitHold=86") as c:
        go(SEED, c, tmp_path / "d")
