# SPDX-License-Identifier: Apache-2.0
"""Jobs are expected to run as long as their user's past jobs did, on a live daemon."""
import os
import time

import pytest
from daemon import Daemon
from data import stoker_run
from patience import until

LIMIT = 3600


def past(d, n=3, gpus=1):
    for _ in range(n):
        d.wait(d.submit(gpus=gpus, time_limit_s=LIMIT, command=["sleep", "0.3"]))


def crowd(d):
    """Three of four GPUs are taken for half an hour, and the first in line wants all."""
    runs = d.submit(gpus=3, time_limit_s=LIMIT // 2, command=["sleep", "1000"])
    d.until(runs, "running")
    return d.submit(gpus=4, time_limit_s=LIMIT, command=["true"])


def test_a_users_past_jobs_let_a_short_one_pass_where_its_limit_would_not(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        past(d)
        head = crowd(d)
        small = d.submit(gpus=1, time_limit_s=LIMIT, command=["sleep", "1"])
        shown = d.job(small)
        assert shown["estimate_s"] == LIMIT
        assert 0 < shown["expected_run_s"] < 60
        assert d.wait(small)["cause"] == "completed"
        assert d.job(head)["state"] == "waiting"


def test_without_prediction_or_a_past_the_limit_counts(tmp_path):
    with Daemon(tmp_path, gpus=4, config="policy: {predict: no}\n") as d:
        past(d)
        crowd(d)
        small = d.submit(gpus=1, time_limit_s=LIMIT, command=["true"])
        assert d.job(small)["expected_run_s"] == LIMIT
        assert d.job(small)["state"] == "waiting"


def test_two_past_jobs_are_too_few(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        past(d, n=2)
        small = d.submit(gpus=1, time_limit_s=LIMIT, command=["sleep", "1000"])
        assert d.job(small)["expected_run_s"] == LIMIT


def test_the_past_outlives_a_restart(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        past(d)
        d.restart()
        small = d.submit(gpus=1, time_limit_s=LIMIT, command=["sleep", "1000"])
        assert 0 < d.job(small)["expected_run_s"] < 60


@pytest.mark.parametrize("restart", [False, True])
def test_a_job_that_outruns_what_was_expected_is_given_twice_as_long(tmp_path, restart):
    with Daemon(tmp_path, gpus=4) as d:
        past(d)
        job = d.submit(gpus=1, time_limit_s=LIMIT, command=["sleep", "1000"])
        first = d.job(job)["expected_run_s"]
        grown, end = first, time.monotonic() + 60
        while grown <= max(2, first) and time.monotonic() < end:
            time.sleep(0.1)
            grown = d.job(job)["expected_run_s"]
        assert first < grown <= LIMIT
        if restart:
            d.restart()
            assert d.job(job)["expected_run_s"] >= grown
        env = {**os.environ, "STOKER_SOCKET": str(d.socket)}
        assert "expected run" in stoker_run("show", str(job), env=env).stdout


def test_an_update_is_expected_anew(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        past(d)
        head = crowd(d)
        assert d.job(head)["expected_run_s"] == LIMIT
        d.post(f"/v1/jobs/{head}/update", {"time_limit_s": 100})
        assert (d.job(head)["estimate_s"], d.job(head)["expected_run_s"]) == (100, 100)


def report(d, job, step, of):
    """The job says so; between which times by the clock it had run so far."""
    started = d.job(job)["started"]
    before = time.time() - started
    d.post(f"/v1/jobs/{job}/report", {"step": step, "total": of})
    return before, time.time() - started


def test_a_job_that_reports_its_steps_is_expected_to_take_as_long_as_they_say(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        past(d, gpus=4)
        job = d.submit(gpus=4, time_limit_s=LIMIT, command=["sleep", "1000"])
        d.until(job, "running")
        after = d.submit(gpus=4, time_limit_s=LIMIT, command=["true"])
        assert d.job(job)["expected_run_s"] < 60  # as those before it; it may have grown since

        def heeded():
            low, high = report(d, job, 40, 600)
            shown = d.job(job)
            return (low, high, shown) if shown["expected_run_s"] > 14 * low and shown["expected_end"] else None

        low, high, shown = until(heeded)
        assert 15 * low <= shown["expected_run_s"] + .1 and shown["expected_run_s"] <= 15 * high + 60, (low, high, shown)
        assert shown["expected_end"] - shown["started"] > .95 * 15 * low, (low, shown)  # 560 of 600 steps are left: it is not nearly done
        waits = until(lambda: (lambda j: j if j.get("start_p50") else None)(d.get(f"/v1/jobs/{after}")))
        assert waits["start_p50"] - shown["started"] > low + .5 * 14 * low, waits  # forecasts know it, too
        until(lambda: report(d, job, 41, 600)[0] > low + 1)
        for step in range(42, 342):
            report(d, job, step, 600)
        d.kill()
        d.start()
        assert d.job(job)["expected_run_s"] > 14 * low  # it is in the journal


def test_steps_do_not_reach_beyond_a_limit_and_nonsense_changes_nothing(tmp_path):
    with Daemon(tmp_path, gpus=4) as d:
        past(d)
        job = d.submit(gpus=1, time_limit_s=LIMIT, command=["sleep", "1000"])
        d.until(job, "running")
        for step, of in [(-5, 600), (700, 600), (1e17, 1e18), (5, 0), (5, -1)]:
            d.post(f"/v1/jobs/{job}/report", {"step": step, "total": of})
        assert d.client().post(f"/v1/jobs/{job}/report", {"step": 1e300, "total": 1e308}).status == 400
        assert d.job(job)["expected_run_s"] < 120
        until(lambda: report(d, job, 20, 10**9) and d.job(job)["expected_run_s"] == LIMIT)


def test_without_prediction_steps_are_shown_and_not_heeded(tmp_path):
    with Daemon(tmp_path, gpus=4, config="policy: {predict: no}\n") as d:
        job = d.submit(gpus=1, time_limit_s=LIMIT, command=["sleep", "1000"])
        d.until(job, "running")
        until(lambda: report(d, job, 599, 600)[0] > 1.5)
        assert d.job(job)["expected_run_s"] == LIMIT and d.job(job)["progress"] == {"step": 599, "total": 600}
