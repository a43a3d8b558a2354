# SPDX-License-Identifier: Apache-2.0
"""One definition of each figure (docs/spec/figures.md): report, usage, baselines, what-if and metrics of a real daemon agree with each other
and with the journal, whatever happened to the jobs and to the daemon."""
import os
import random
import time

import prom
import pytest
from daemon import Daemon, stoker
from patience import until

SLEEP, SPIN = ["/bin/sleep", "600"], ["/bin/sh", "-c", "while :; do :; done"]
CONFIG = """
series: {step: 1s}
cost: {gpu_hour: 2.5, currency: EUR}
"""


def metrics(d):
    return prom.parse(d.web().get("/metrics").body.decode())


def leases(d, number):
    """Of a job, by its events: (from, to, preempted)."""
    events, out, since = d.get(f"/v1/jobs/{number}/events")["events"], [], None
    for e in events:
        if e["type"] == "started":
            since = e["at"]
        elif e["type"] in ("exited", "suspended") and since is not None:
            out.append((since, e.get("ended") or e["at"]))
            since = None
    assert since is None, events
    return out


def gpu_seconds(spans, gpus, since, end):
    return sum(max(0, min(b, end) - max(a, since)) for a, b in spans) * gpus


def figures(d, since, end, name):
    """Of one period, from everyone who has them."""
    report = d.get(f"/v1/report?since={since}&until={end}")
    baseline = d.post("/v1/baselines", {"name": name, "since": since, "until": end})["figures"]
    asked = d.post("/v1/whatif", {"since": since, "until": end, "changes": {}})["id"]
    answer = until(lambda: (q := d.get(f"/v1/whatif/{asked}"))["state"] in ("done", "failed") and q)
    return report, baseline, answer


def test_everyone_agrees_whatever_happened(tmp_path):
    random.seed(4)
    with Daemon(tmp_path, gpus=2, config=CONFIG) as d:
        began = int(time.time())
        gpus = {}
        first = d.submit(command=SLEEP, gpus=2, tier="best-effort")
        gpus[first] = 2
        d.until(first, "running")
        small = d.submit(command=SLEEP, gpus=0.25)  # takes the GPUs of the first, and needs little of them
        gpus[small] = 0.25
        d.until(small, "running")
        d.client().post(f"/v1/jobs/{small}/suspend", {})
        d.until(small, "suspended")
        d.until(first, "running")  # again
        time.sleep(1.1)
        d.client().post(f"/v1/jobs/{first}/requeue", {})
        until(lambda: d.job(first)["restarts"] >= 1 and d.job(first)["state"] == "running")
        held = d.submit(command=["/bin/sleep", "0.5"], gpus=1, hold=True)
        gpus[held] = 1
        short = d.submit(command=["/bin/sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"], gpus=0.5, tier="critical")  # ends while no daemon is there
        gpus[short] = 0.5
        pid = until(lambda: d.job(short).get("pids"))[0]
        d.kill()
        (tmp_path / "go").touch()
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        d.start()
        assert d.wait(short)["cause"] == "completed"
        d.until(first, "running")
        assert d.stop() == 0
        d.start()
        d.client().post(f"/v1/jobs/{small}/resume", {})
        d.client().post(f"/v1/jobs/{held}/release", {})
        for number in (held, small, first):
            if number != held:
                d.client().post(f"/v1/jobs/{number}/cancel", {})
            d.wait(number)
        assert d.stop() == 0
        d.start()  # nothing runs: the counters of this life are about the last job alone
        last = d.submit(command=["/bin/sleep", "0.3"], gpus=2)
        gpus[last] = 2
        d.wait(last)
        spans = {n: leases(d, n) for n in gpus}
        assert len(spans[first]) >= 3 and len(spans[small]) >= 1
        end = int(time.time()) + 1
        until(lambda: time.time() > end)
        periods = [(began - 5, end)] + [sorted(random.sample(range(began - 5, end + 1), 2)) for _ in range(6)]
        preemptions = 0
        for i, (a, b) in enumerate(periods):
            report, baseline, answer = figures(d, a, b, f"p{i}")
            c, every = report["cluster"], report["all"]
            want = sum(gpu_seconds(spans[n], gpus[n], a, b) for n in gpus)
            assert every["gpu_hours"] == pytest.approx(want / 3600, abs=2e-6), (a, b)
            for theirs in [baseline] + ([answer["result"]["actual"]] if answer["state"] == "done" else []):
                assert theirs["gpu_hours"] == every["gpu_hours"] == c["allocated_gpu_hours"]
                assert theirs["capacity_gpu_hours"] == c["gpu_hours"] and theirs["utilization"] == c["allocated"]
                assert (theirs["starts"], theirs["preemptions"], theirs["waited_s"]) == (every["starts"], every["preemptions"], every["waited_s"])
                assert (theirs["p50_wait_s"], theirs["p90_wait_s"]) == (every["wait_p50_s"], every["wait_p90_s"])
            if answer["state"] == "done":
                recorded = answer["result"]["recorded"]
                assert (recorded["gpu_hours"], recorded["utilization"], recorded["preemptions"]) == (c["allocated_gpu_hours"], c["allocated"], every["preemptions"])
            assert c["active_gpu_hours"] <= c["measured_gpu_hours"] <= c["allocated_gpu_hours"] <= c["gpu_hours"]
            assert c["idle_money"] <= every["money"]
            preemptions = preemptions or every["preemptions"]
        assert preemptions == sum(d.job(n)["preemptions"] for n in gpus) >= 1
        usage = d.get("/v1/usage?days=1")
        whole = d.get(f"/v1/report?since={began - 5}&until={end}")["all"]
        for key in ("gpu_hours", "active_gpu_hours", "preemptions", "starts", "waited_s", "money", "wait_p50_s", "wait_p90_s"):
            assert usage["all"][key] == whole[key], key
        v = metrics(d)
        assert prom.value(v, "stoker_allocated_gpu_seconds_total") == pytest.approx(gpu_seconds(spans[last], 2, 0, end), abs=1e-5)
        assert prom.value(v, "stoker_job_wait_seconds_count") == 1 and prom.value(v, "stoker_job_wait_seconds_sum") == pytest.approx(d.job(last)["waited_s"], abs=1e-5)
        for n in gpus:
            job = d.job(n)
            assert job["efficiency"]["gpu_hours"] == pytest.approx(gpu_seconds(spans[n], gpus[n], 0, end) / 3600, abs=2e-6)
            assert 0 <= job["waited_s"] <= job["ended"] - job["submitted"] - job["run_s"] + 1e-3
        assert "allocated" in stoker(d, "report", "--since", "1h") and "measured for" not in stoker(d, "report", "--since", "1h")


def test_a_young_daemon_counts_what_there_was_and_no_more(tmp_path):
    began = time.time()
    with Daemon(tmp_path, gpus=2, config=CONFIG) as d:
        spins = d.submit(command=SPIN, gpus=1)
        d.until(spins, "running")
        until(lambda: (d.job(spins)["efficiency"]["util"] or 0) > 0)
        d.client().post(f"/v1/jobs/{spins}/cancel", {})
        d.wait(spins)
        r = d.get(f"/v1/report?since={int(began) - 7 * 86400}")
        c, age = r["cluster"], time.time() - began
        (span,) = leases(d, spins)
        assert 0 < c["hours"] * 3600 <= age and c["gpu_hours"] == pytest.approx(2 * c["hours"], abs=2e-6)
        assert c["allocated_gpu_hours"] == pytest.approx((span[1] - span[0]) / 3600, abs=2e-6)
        assert 0 < c["active_gpu_hours"] <= c["allocated_gpu_hours"] <= c["gpu_hours"] and c["idle_money"] <= r["all"]["money"]
        assert sum(x["hours"] for x in d.get("/v1/usage?days=7")["cells"]) * 3600 <= time.time() - began
        made = d.post("/v1/baselines", {"name": "young", "since": began - 7 * 86400})["figures"]
        assert 0 < made["utilization"] <= 1 and made["preemptions"] == 0 and made["gpu_hours"] == c["allocated_gpu_hours"]


def test_time_between_samples_counts_as_active_as_the_rest(tmp_path):
    """A job trains all the time. What no sample saw of it (its end, a killed daemon's last minute) is no waste and not idle."""
    with Daemon(tmp_path, gpus=1, config=CONFIG) as d:
        spins = d.submit(command=SPIN, gpus=1)
        d.until(spins, "running")
        until(lambda: (d.job(spins)["efficiency"]["util"] or 0) > 0)
        d.kill()  # samples of the last minute are gone
        time.sleep(2)
        d.start()
        until(lambda: (d.job(spins)["efficiency"]["util"] or 0) > 0)
        d.client().post(f"/v1/jobs/{spins}/cancel", {})
        d.wait(spins)
        r = d.get(f"/v1/report?since={int(time.time()) - 3600}")
        c, every = r["cluster"], r["all"]
        assert c["measured_gpu_hours"] == c["allocated_gpu_hours"] > 2 / 3600
        assert c["active_gpu_hours"] == pytest.approx(every["util"] * c["allocated_gpu_hours"], abs=3e-6)
        assert c["idle_gpu_hours"] == pytest.approx(c["allocated_gpu_hours"] - c["active_gpu_hours"], abs=3e-6)


def test_a_report_says_when_activity_is_not_known(tmp_path):
    def unsampled():
        """A job that was shorter than the time between two samples: nearly every one of two seconds."""
        number = d.submit(command=["/bin/sleep", "2"], gpus=1)
        return d.wait(number)["efficiency"]["util"] is None and d.job(number)

    with Daemon(tmp_path, gpus=1, config="series: {step: 30s}\n") as d:
        job = until(unsampled)
        c = d.get(f"/v1/report?since={int(job['started']) + 1}")["cluster"]
        assert c["active"] is None and c["measured_gpu_hours"] == 0 < c["allocated_gpu_hours"]
        assert "not measured" in stoker(d, "report")


def test_what_a_restarted_job_waited_is_not_what_it_ran(tmp_path):
    with Daemon(tmp_path, gpus=1, config=CONFIG) as d:
        job = d.submit(command=SLEEP, gpus=1)
        d.until(job, "running")
        time.sleep(2)
        d.client().post(f"/v1/jobs/{job}/requeue", {})
        j = until(lambda: (j := d.job(job))["restarts"] == 1 and j["state"] == "running" and j)
        assert j["started"] - j["submitted"] > 2 and j["waited_s"] < j["started"] - j["submitted"] - 1.9
        other = d.submit(command=SLEEP, gpus=1)
        held = d.submit(command=SLEEP, gpus=1, hold=True)
        d.until(other, "waiting")
        time.sleep(1)
        assert d.job(other)["waited_s"] >= 1 and d.job(held)["waited_s"] == 0
        d.client().post(f"/v1/jobs/{other}/hold", {})
        waited = d.until(other, "held")["waited_s"]
        d.kill()
        d.start()
        time.sleep(0.5)
        assert d.job(other)["waited_s"] == waited >= 1
        d.client().post(f"/v1/jobs/{job}/cancel", {})
        d.wait(job)
        d.client().post(f"/v1/jobs/{other}/release", {})
        j = d.until(other, "running")
        assert waited <= j["waited_s"] < j["started"] - j["submitted"] - 0.4


def test_a_period_without_capacity_is_not_compared(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        now = int(time.time())
        d.wait(d.submit(command=["/bin/sleep", "0.3"], gpus=2))
        until(lambda: time.time() > now + 1)
        f = d.post("/v1/baselines", {"name": "before", "since": now - 7200, "until": now - 3600})["figures"]
        assert [f[k] for k in ("utilization", "jobs_per_day", "preemptions_per_day", "avg_wait_s")] == [None] * 4
        assert d.get(f"/v1/report?since={now - 7200}&until={now - 3600}")["cluster"]["allocated"] is None
        row = stoker(d, "baseline", "list").splitlines()[1].split()
        assert row[-3:] == ["0", "-", "-"], row
        said = stoker(d, "baseline", "compare", "before")
        row = next(line for line in said.splitlines() if line.startswith("utilization"))
        assert "cannot be compared" in row and " - " in row and "points" not in row, said
