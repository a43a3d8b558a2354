# SPDX-License-Identifier: Apache-2.0
"""A third of the random runs of test_random.py: on a cluster with all of our plugins, where slurmctld starts what it is told to at once, and
tells of ends by itself; and with two partitions of stoker's that share nodes."""
import pytest
import slurm
from slurm_daemon import needed
from slurm_random import RUNS, SEED, go

pytestmark = needed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    extra = "RequeueExitHold=86\nPartitionName=most Nodes=n[2-4] State=UP"
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=4, gpus=8, extra=extra, managed=["main", "most"], plugins=True) as c:
        yield c


@pytest.mark.parametrize("seed", range(SEED + 2, SEED + RUNS, 3))
def test_no_job_is_lost_and_none_runs_twice(seed, cluster, tmp_path):
    go(seed, cluster, tmp_path)
