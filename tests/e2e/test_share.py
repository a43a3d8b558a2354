# SPDX-License-Identifier: Apache-2.0
"""Jobs with parts of GPUs, on virtual GPUs and on what the daemon takes for GPUs (tests/lib/fake_nvml.c)."""
import pytest
from daemon import STOKER, STOKERD, Daemon

FAKES = STOKER.resolve().parent / "tests" / "lib"
pytestmark = pytest.mark.skipif(not STOKERD.exists() or not (FAKES / "libnvidia-ml.so.1").exists(), reason="not built with tests")
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture
def virtual(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        yield d


def refused(d, **job):
    a = d.client().post("/v1/jobs", {"command": SLEEP, **job})
    assert a.status == 400, a
    return a.json["error"]["message"]


# ---- asking ----

def test_parts_of_one_gpu_go_together_and_whole_jobs_get_another(virtual):
    d = virtual
    first = d.submit(command=SLEEP, gpus=0.5)
    d.until(first, "running")
    second, third = d.submit(command=SLEEP, gpus=0.5), d.submit(command=SLEEP, gpus=1)
    where = [d.until(n, "running")["gpu_indices"] for n in (first, second, third)]
    assert where[0] == where[1] != where[2]
    waits = d.submit(command=SLEEP, gpus=0.25)
    assert d.job(waits)["state"] == "waiting"


def test_what_cannot_be_shared_is_refused_with_a_sentence(virtual):
    d = virtual
    assert "there is no MPS here: the GPUs are virtual" in refused(d, gpus=0.5, share="mps")
    assert "memory of the GPUs here is not known" in refused(d, gpu_mem_mib=1024)
    assert "below 1, got 1.5" in refused(d, gpus=1.5)
