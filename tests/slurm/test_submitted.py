# SPDX-License-Identifier: Apache-2.0
"""What is sent by `stoker submit` and the API, and run by a real Slurm: it is what it would be without Slurm."""
import pytest
import slurm
from daemon import STOKERD, Daemon
from libslurm import PROGRAM
from slurm import wait_for

pytestmark = [pytest.mark.skipif(not slurm.installed(), reason="Slurm is not installed"),
              pytest.mark.skipif(not PROGRAM.exists() or not STOKERD.exists(), reason="not built (libslurm-dev)")]
ARRAY = "$STOKER_ARRAY_ID $STOKER_ARRAY_INDEX $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT " \
        "$SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=4, extra="RequeueExitHold=86") as c:
        yield c


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    config = f"engine: slurm\nslurm: {{conf: {cluster.conf}, partitions: [main]}}\n"
    with Daemon(tmp_path_factory.mktemp("stoker"), gpus=None, config=config, args=["--paranoid"]) as d:
        yield d


@pytest.fixture
def daemon(shared, cluster):
    yield shared
    for job in shared.jobs():
        shared.client().post(f"/v1/jobs/{job['id']}/cancel")
    cluster.idle()
    wait_for(lambda: not shared.jobs())


@pytest.mark.parametrize("what", [{"command": ["/bin/sh", "-c", f"echo {ARRAY}"]}, {"script": f"#!/bin/bash\necho {ARRAY}\n"}])
@pytest.mark.parametrize("array,indices,said", [({"first": 2, "last": 7, "step": 2}, (2, 4, 6), "3 2 6 2"),
                                                ({"indices": [9, 1]}, (1, 9), "2 1 9 1")])
def test_elements_of_an_array_know_who_they_are(daemon, tmp_path, what, array, indices, said):
    first = daemon.submit(array=array, gpus=1, workdir=str(tmp_path), **what)
    for n, index in enumerate(indices, first):
        job = daemon.wait(n)
        assert job["cause"] == "completed" and job["array_index"] == index
        assert job["stdout"] == f"{tmp_path}/stoker-{first}_{index}.out"
        assert daemon.log(n) == f"{first} {index} {first} {index} {said}\n"


def test_names_of_output_files_know_of_arrays(daemon, tmp_path):
    first = daemon.submit(command=["/bin/sh", "-c", "echo out; echo err >&2"], array={"first": 5, "last": 6}, name="x", stdout="%x-%A_%3a.out", stderr="%j.err",
                          workdir=str(tmp_path))
    for n, index in ((first, 5), (first + 1, 6)):
        assert daemon.wait(n)["cause"] == "completed"
        assert (tmp_path / f"x-{first}_00{index}.out").read_text() == daemon.log(n) == "out\n"
        assert (tmp_path / f"{n}.err").read_text() == daemon.log(n, "?stream=stderr") == "err\n"


def test_one_that_is_no_element_hears_nothing_of_arrays(daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "env | grep -c ARRAY"], workdir=str(tmp_path))
    daemon.wait(n)
    assert daemon.log(n) == "0\n"
