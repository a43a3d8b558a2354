# SPDX-License-Identifier: Apache-2.0
"""/metrics, /metrics/jobs and /metrics/dcgm, as Prometheus reads them."""
import getpass
import time

import prom
import pytest
from daemon import STOKER, STOKERD, Daemon
from patience import until

SLEEP = ["/bin/sleep", "600"]
ME = getpass.getuser()
CONFIG = f"""
series: {{step: 1s}}
policy: {{preempt: reclaim}}
tenants: [{{name: vision, limit: 3, guarantee: 1, users: [{ME}]}}, {{name: 'speech "x"', users: [{ME}]}}]
"""
FAKES = STOKER.resolve().parent / "tests" / "lib"


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path, gpus=2, config=CONFIG)
    d.start()
    yield d
    d.close()


def read(daemon, path="/metrics"):
    a = daemon.web().get(path)
    assert a.status == 200 and a.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = a.body.decode()
    # the names of dcgm-exporter are what they are
    prom.check(text, ("snake_case", '"_total" suffix') if path == "/metrics/dcgm" else ())
    return prom.parse(text)


def test_promtool_finds_nothing_and_numbers_are_right(daemon):
    assert prom.PROMTOOL, "promtool is not installed: scripts/bootstrap test"
    running = daemon.submit(command=SLEEP, gpus=2, tenant="vision")
    daemon.until(running, "running")
    waiting = [daemon.submit(command=SLEEP, gpus=g, tenant='speech "x"') for g in (1, 2, 2)]
    ended = daemon.submit(command=["/bin/true"], gpus=0, tenant="vision")
    assert daemon.wait(ended)["cause"] == "completed"
    daemon.client().post(f"/v1/jobs/{waiting[0]}/hold", {})
    v = read(daemon)
    assert prom.value(v, "stoker_jobs", state="running") == 1 and prom.value(v, "stoker_jobs", state="waiting") == 2
    assert prom.value(v, "stoker_jobs", state="held") == 1
    assert prom.value(v, "stoker_waiting_jobs", reason="gpus") == 2 and prom.value(v, "stoker_oldest_wait_seconds") > 0
    assert prom.value(v, "stoker_job_wait_seconds_count") == 2 and prom.value(v, "stoker_job_wait_seconds_bucket", le="+Inf") == 2
    assert prom.value(v, "stoker_jobs_submitted_total") == 5 and prom.value(v, "stoker_jobs_started_total") == 2
    assert prom.value(v, "stoker_jobs_ended_total", cause="completed") == 1
    assert prom.value(v, "stoker_decisions_total") == 2 and prom.value(v, "stoker_cycle_seconds_count") > 4
    assert prom.value(v, "stoker_commit_seconds_count") > 4 and prom.value(v, "stoker_store_bytes") > 10000
    assert prom.value(v, "stoker_gpus", state="busy") == 2 and prom.value(v, "stoker_gpu_allocated_ratio", gpu="1") == 1
    assert prom.value(v, "stoker_gpu_healthy", gpu="0") == 1
    assert prom.value(v, "stoker_tenant_used_gpus", tenant="vision") == 2 and prom.value(v, "stoker_tenant_limit_gpus", tenant="vision") == 3
    assert prom.value(v, "stoker_tenant_guarantee_gpus", tenant="vision") == 1
    assert prom.value(v, "stoker_tenant_waiting_gpus", tenant='speech \\"x\\"') == 4
    assert not [n for n, of in v if n == "stoker_tenant_limit_gpus" and ("tenant", 'speech \\"x\\"') in of]
    buckets = [n for n in v if n[0] == "stoker_job_wait_seconds_bucket"]
    assert len(buckets) == 15


def test_preemptions_and_lost_work_are_counted(daemon):
    low = daemon.submit(command=SLEEP, gpus=2, tenant='speech "x"')
    daemon.until(low, "running")
    time.sleep(1.2)
    daemon.client().post(f"/v1/jobs/{low}/requeue", {})
    daemon.until(low, "running")
    v = until(lambda: (v := read(daemon)) and prom.value(v, "stoker_stops_total", cause="hand") == 1 and v)
    assert prom.value(v, "stoker_lost_gpu_seconds_total") > 1
    high = daemon.submit(command=SLEEP, gpus=1, tenant="vision")
    daemon.until(high, "running")
    v = read(daemon)
    assert prom.value(v, "stoker_preemptions_total", cause="reclaim") == 1
    assert prom.value(v, "stoker_tenant_preemptions_total", tenant='speech \\"x\\"') == 1


def test_jobs_have_a_path_of_their_own(daemon):
    n = daemon.submit(command=["/bin/sh", "-c", "while :; do :; done"], gpus=1, name="secret-name", tenant="vision")
    daemon.until(n, "running")
    daemon.post(f"/v1/jobs/{n}/report", {"step": 12})
    v = until(lambda: (v := read(daemon, "/metrics/jobs")) and "stoker_job_steps" in prom.names(v) and "stoker_job_active_gpus" in prom.names(v) and v)
    assert prom.value(v, "stoker_job_gpus", job=str(n), user=ME, tenant="vision", queue="standard") == 1
    assert prom.value(v, "stoker_job_steps", job=str(n)) == 12 and prom.value(v, "stoker_job_run_seconds") > 0
    assert prom.value(v, "stoker_jobs_not_listed") == 0
    assert b"secret-name" not in daemon.web().get("/metrics/jobs").body
    assert not [name for name in prom.names(read(daemon)) if name.startswith("stoker_job_") and "wait" not in name]


@pytest.mark.skipif(not STOKERD.exists() or not (FAKES / "libnvidia-ml.so.1").exists(), reason="not built with tests")
def test_gpus_have_the_names_of_dcgm_exporter_too(tmp_path):
    (tmp_path / "fake").mkdir()
    d = Daemon(tmp_path, gpus=None, config="gpus: {interval_ms: 200}\nseries: {step: 1s}\n",
               env={"STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(tmp_path / "fake")})
    d.start()
    try:
        v = until(lambda: (v := read(d, "/metrics/dcgm")) and "DCGM_FI_DEV_GPU_UTIL" in prom.names(v) and v)
        gpus = d.get("/v1/gpus")["gpus"]
        want = {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"}
        for (name, labels), x in v.items():
            assert name.startswith("DCGM_FI_") and {k for k, _ in labels} == want
        for i, g in enumerate(gpus):
            assert prom.value(v, "DCGM_FI_DEV_FB_USED", gpu=str(i), UUID=g["uuid"], device=f"nvidia{i}", modelName=g["name"], Hostname=g["node"]) == g["mem_used_mib"]
        own = read(d)
        assert prom.value(own, "stoker_gpu_memory_used_bytes", gpu="0", uuid=gpus[0]["uuid"], node=gpus[0]["node"], model=gpus[0]["name"]) == gpus[0]["mem_used_mib"] * 2**20
        assert abs(prom.value(own, "stoker_gpu_utilization_ratio", gpu="0") * 100 - prom.value(v, "DCGM_FI_DEV_GPU_UTIL", gpu="0")) < 0.001
        s = until(lambda: [x for x in d.get("/v1/series?of=gpu&gpu=0")["series"][0]["power_w"] if x is not None])
        assert s[-1] == pytest.approx(prom.value(own, "stoker_gpu_power_watts", gpu="0"))
    finally:
        d.close()


def test_who_may_read(daemon):
    for path in ("/metrics", "/metrics/jobs", "/metrics/dcgm"):
        assert daemon.web().get(path).status == 200 and daemon.client().get(path).status == 200
        assert daemon.get("/openapi.json")["paths"][path]["get"]["x-needs"].startswith("none on this machine")
