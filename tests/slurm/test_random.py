# SPDX-License-Identifier: Apache-2.0
"""Random runs (tests/lib/slurm_random.py has what happens in them, and what must hold) on a cluster with job_submit/stoker, which
holds what users send. They share the cluster."""
import pytest
import slurm
from slurm_daemon import needed
from slurm_random import RUNS, SEED, go

pytestmark = needed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=4, gpus=8, extra="RequeueExitHold=86", managed=["main"]) as c:
        yield c


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS, 3))
def test_no_job_is_lost_and_none_runs_twice(seed, cluster, tmp_path):
    go(seed, cluster, tmp_path)
