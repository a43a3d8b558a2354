# SPDX-License-Identifier: Apache-2.0
"""The machine's clock is set, while the daemon runs and while it does not: time goes on, run times are what really passed, and what
people asked for by the clock follows the clock. A preloaded library shifts the daemon's wall clock, and nothing else."""
import contextlib
import os
import re
import signal
import time

import pytest
from clock import Clock
from daemon import STOKERD, Daemon, stoker
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
HOUR, DAY = 3600, 86400
SLEEP_S = 2
LEAST_S = SLEEP_S * 0.9  # time that is being worked off runs 5% slower


class Shifted(Daemon):
    """A daemon whose wall clock is off by `shift` seconds."""

    def __init__(self, folder):
        super().__init__(folder)
        self.clock = Clock(self)
        self.set, self.wall = self.clock.set, self.clock.wall

    def sleeps(self):
        """Runs `sleep`, and gives how long it ran."""
        job = self.wait(self.submit(command=["/bin/sleep", str(SLEEP_S)]))
        assert job["cause"] == "completed"
        return ran(job)

    def held(self, **more):
        """A job that runs until the file `go` is there."""
        n = self.submit(command=["/bin/sh", "-c", f"until [ -e {self.folder}/go ]; do sleep 0.1; done; rm {self.folder}/go"], **more)
        self.until(n, "running")
        return n

    def let_go(self, n):
        (self.folder / "go").touch()
        return ran(self.wait(n))


def ran(job):
    return job["run_s"]


@pytest.fixture
def d(tmp_path):
    with contextlib.closing(Shifted(tmp_path)) as daemon:
        yield daemon


def follows_the_clock(d):
    """A schedule of every minute and a begin in a second come by the wall clock."""
    n = d.submit(command=["/bin/true"], schedule={"cron": "* * * * *"})
    assert d.job(n)["schedule"]["next"] - d.wall() < 61
    later = d.submit(command=["/bin/true"], begin=int(d.wall()) + 2)
    assert d.wait(later)["cause"] == "completed"


def test_a_clock_that_was_days_ahead_before_a_restart(d):
    d.set(9 * DAY)
    d.start()
    assert d.sleeps() > LEAST_S
    d.stop()
    d.set(0)
    d.start()
    assert d.get("/v1/health")["clock_ahead_s"] > 8 * DAY
    d.errors_with("ahead of the clock")
    assert d.sleeps() > LEAST_S
    follows_the_clock(d)
    d.kill()  # and again, after kill -9
    d.start()
    assert d.sleeps() > LEAST_S


def test_a_job_that_runs_over_the_restart_keeps_its_run_time(d):
    d.set(9 * DAY)
    d.start()
    n = d.held()
    d.kill()
    d.set(0)
    d.start()
    d.until(n, "running")
    assert d.sleeps() > LEAST_S
    assert LEAST_S < d.let_go(n) < HOUR


def test_the_clock_is_set_back_while_jobs_run(d):
    d.start()
    n = d.held()
    d.set(-HOUR)
    until(lambda: d.get("/v1/health")["clock_ahead_s"] > HOUR / 2)
    assert d.sleeps() > LEAST_S
    assert d.let_go(n) > LEAST_S
    until(lambda: any("set back" in line for line in d.errors))
    follows_the_clock(d)
    d.stop()
    d.start()
    assert d.sleeps() > LEAST_S
    follows_the_clock(d)


def test_the_clock_is_set_forward_while_jobs_run(d):
    d.start()
    n = d.held()
    d.set(HOUR)
    assert LEAST_S < d.sleeps() < HOUR / 2
    assert LEAST_S < d.let_go(n) < HOUR / 2
    until(lambda: any("set forward" in line for line in d.errors))
    assert d.get("/v1/health")["clock_ahead_s"] < 1
    follows_the_clock(d)
    d.stop()
    d.start()
    assert d.sleeps() > LEAST_S


def alerts(d):
    return {a["kind"]: a for a in d.get("/v1/alerts")["alerts"]}


@pytest.mark.parametrize("how", ["running", "restarted", "killed"])
def test_two_days_that_were_skipped_count_nowhere(d, how):
    """Neither as run time, nor as GPU-hours, waiting or doing nothing; not while the job runs, and not after a restart."""
    d.config = d.folder / "stoker.yaml"
    d.config.write_text("series: {step: 1s}\n")
    d.start()
    n = d.held(gpus=3, time_limit_s=HOUR)
    waits = d.submit(command=["/bin/true"], gpus=4, time_limit_s=60)
    d.until(waits, "waiting")
    d.set(2 * DAY)
    until(lambda: d.get("/v1/health")["now"] > time.time() + DAY)
    assert d.get("/v1/health")["up_s"] < HOUR
    if how != "running":
        (d.stop if how == "restarted" else d.kill)()
        d.start()
        d.until(n, "running")
    job = d.job(n)
    assert job["run_s"] < HOUR and job["waited_s"] < HOUR and abs(job["started"] - d.wall()) < HOUR
    assert d.job(waits)["waited_s"] < HOUR
    assert d.get("/v1/report")["all"]["gpu_hours"] < 3
    d.post(f"/v1/jobs/{n}/update", {"time_limit_s": HOUR // 2})
    d.set(0)
    until(lambda: alerts(d).get("clock_behind"))  # conditions were looked at since
    assert not {"idle_allocation", "waiting_over_target"} & set(alerts(d))
    assert d.let_go(n) < HOUR
    assert d.wait(waits)["waited_s"] < HOUR
    assert d.get("/v1/report")["all"]["gpu_hours"] < 3


def test_a_job_is_not_idle_while_the_clock_jumps(d):
    d.start()
    n = d.submit(command=["/bin/sleep", "1000"], gpus=1, idle={"warn_s": HOUR, "end_s": HOUR + 60})
    d.until(n, "running")
    m = d.submit(command=["/bin/sleep", "1000"], gpus=1, idle={"warn_s": 1})
    until(lambda: d.job(m).get("warning"))  # jobs have been looked at
    d.set(2 * HOUR)
    until(lambda: d.get("/v1/health")["now"] > time.time() + HOUR)
    m = d.submit(command=["/bin/sleep", "1000"], gpus=1, idle={"warn_s": 1})
    until(lambda: d.job(m).get("warning"))  # and have since
    assert d.job(n)["state"] == "running" and not d.job(n).get("warning")


@pytest.mark.parametrize("how", ["running", "killed", "started"])
def test_a_clock_that_was_wrong_for_a_moment_deletes_nothing(d, how):
    """A hundred days ahead, while the daemon runs or when it starts: old jobs are not older than they are."""
    d.start()
    old = [d.submit(command=["/bin/true"]) for _ in range(5)]
    for n in old:
        d.wait(n)
    if how == "started":
        d.stop()
    d.set(100 * DAY)
    if how == "started":
        d.start()
    until(lambda: d.get("/v1/health")["now"] > time.time() + 99 * DAY)
    d.errors_with("nothing is deleted because of its age")
    if how == "killed":
        d.kill()
        d.start()
    new = [d.submit(command=["/bin/sleep", "0.2"]) for _ in range(10)]  # old rows are deleted a moment after turns
    for n in new:
        d.wait(n)
    d.set(0)
    new.append(d.submit(command=["/bin/sleep", "0.2"]))
    d.wait(new[-1])
    assert set(d.history()) == {*old, *new}


def test_a_clock_that_was_far_behind_is_set_right(d):
    """As on a machine that boots without a clock and hears of the time later."""
    d.set(-int(time.time()) + 2 * DAY)
    d.start()
    n = d.held()
    d.set(0)
    assert LEAST_S < d.sleeps() < HOUR
    assert LEAST_S < d.let_go(n) < HOUR
    follows_the_clock(d)


def wrong_for_a_moment(d):
    """The clock was 10 days ahead for a moment: stoker's time stays there."""
    d.set(10 * DAY)
    until(lambda: d.get("/v1/health")["now"] > time.time() + 9 * DAY)
    d.set(0)
    until(lambda: d.get("/v1/health")["clock_ahead_s"] > 9 * DAY)


def reservation(d, name):
    return next(r for r in d.get("/v1/reservations")["reservations"] if r["name"] == name)


def rule(d, name):
    return next(r for r in d.get("/v1/rules")["rules"] if r["name"] == name)


def cron_at(seconds):
    t = time.gmtime(seconds)
    return f"{t.tm_min} {t.tm_hour} {t.tm_mday} {t.tm_mon} *"


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_times_that_people_named_come_by_the_wall_clock(d, restart):
    d.start()
    before = d.submit(command=["/bin/true"], begin=int(d.wall()) + 20 * DAY)  # named while the clock was right
    wrong_for_a_moment(d)
    at = int(d.wall()) + 10 * HOUR  # hours, so that how long the test takes does not matter
    d.post("/v1/reservations", {"name": "demo", "gpus": 1, "start": at, "for_s": 60 * HOUR})
    begins = d.submit(command=["/bin/true"], begin=at)
    done = d.submit(command=["/bin/true"], begin=at + 60 * HOUR, deadline=at + 120 * HOUR, time_limit_s=60)
    d.post("/v1/rules", {"name": "noon", "zone": "UTC", "when": cron_at(at + HOUR), "until": "10h", "then": [{"kind": "train", "priority": "+300"}]})
    assert abs(rule(d, "noon")["next"] - at - HOUR) <= 60

    def states():
        return (reservation(d, "demo")["state"], d.job(begins)["state"], d.job(done)["state"], rule(d, "noon")["in_force"], d.job(done)["deadline"]["answer"])

    def wall_is(seconds):
        d.set(seconds)
        if restart:
            d.kill()
            d.start()

    wall_is(0)
    assert states() == ("pending", "blocked", "blocked", False, "feasible")
    assert d.job(done)["deadline"]["at"] == at + 120 * HOUR
    assert 50 * HOUR < d.job(done)["deadline"]["margin_s"] <= 60 * HOUR
    assert re.search(time.strftime("at (%F )?%H:%M \\(in", time.localtime(at)), d.get(f"/v1/jobs/{begins}/why")["sentence"])
    wall_is(9 * HOUR)
    assert states() == ("pending", "blocked", "blocked", False, "feasible")
    wall_is(12 * HOUR)
    until(lambda: states()[:4] == ("open", "done", "blocked", True))
    wall_is(30 * HOUR)
    until(lambda: not rule(d, "noon")["in_force"])
    assert states()[:3] == ("open", "done", "blocked")
    wall_is(65 * HOUR)
    until(lambda: reservation(d, "demo")["state"] == "open" and d.job(done)["state"] == "blocked")
    wall_is(75 * HOUR)
    until(lambda: reservation(d, "demo")["state"] == "ended" and d.job(done)["state"] == "done")
    assert d.job(before)["state"] == "blocked"
    wall_is(21 * DAY)
    until(lambda: d.job(before)["state"] == "done")


def test_the_queue_shows_run_times_and_starts_by_the_clock(d):
    """Stoker's time is ten days ahead: a job has run as long as it has, and the next is expected within hours."""
    d.start()
    wrong_for_a_moment(d)
    n = d.submit(command=["/bin/sleep", "1000"], gpus=4, time_limit_s=HOUR, name="runs")
    d.until(n, "running")
    waits = d.submit(command=["/bin/true"], gpus=4, time_limit_s=60, name="waits")
    until(lambda: d.job(waits).get("start_p50") and d.job(n)["run_s"] > 1)
    lines = stoker(d, "queue", env={"LD_PRELOAD": "", "TZ": "UTC"}).splitlines()
    assert " 0:00 " not in next(line for line in lines if "runs" in line)
    days = [time.strftime("%b %-d", time.gmtime(time.time() + s)) for s in (-HOUR, 0, HOUR, 2 * HOUR)]
    said = next(line for line in lines if "waits" in line).partition("starts about ")[2]
    assert re.match(r"\d\d:\d\d", said) or any(day in re.sub(r" +", " ", said) for day in days)


def test_what_repeats_does_not_wait_for_the_days_that_were_skipped(d):
    """Times that had been worked out while the clock was wrong are worked out again."""
    d.start()
    n = d.submit(command=["/bin/true"], schedule={"cron": "0 12 * * *"})
    d.post("/v1/reservations", {"name": "daily", "gpus": 1, "cron": "0 12 * * *", "tz": "UTC", "for_s": 60})
    d.post("/v1/rules", {"name": "noon", "zone": "UTC", "when": "0 12 * * *", "until": "10m", "then": [{"kind": "train", "priority": "+300"}]})
    wrong_for_a_moment(d)

    def soon():
        return [t - d.wall() < DAY + 60 for t in (d.job(n)["schedule"]["next"], reservation(d, "daily")["start"], rule(d, "noon")["next"])]

    until(lambda: all(soon()))
    d.kill()
    d.start()
    assert all(soon())


def test_a_deadline_that_has_not_come_by_the_wall_clock_ranks_its_job(d):
    """Jobs whose deadline can be met come first; one that is over counts for nothing."""
    d.start()
    wrong_for_a_moment(d)
    blocker = d.submit(command=["/bin/sleep", "1000"], gpus=4)
    d.until(blocker, "running")
    first = d.submit(command=["/bin/true"], gpus=4, time_limit_s=60)
    urgent = d.submit(command=["/bin/true"], gpus=4, time_limit_s=60, deadline=int(d.wall()) + HOUR)
    d.post(f"/v1/jobs/{blocker}/cancel")
    assert d.wait(urgent)["started"] < d.wait(first)["started"]


def orphan(d, limit_s):
    """A job that nobody watches: its supervisor is killed. With how long it may run from now on."""
    n = d.submit(command=["/bin/sleep", "1000"], time_limit_s=10 * HOUR)
    d.until(n, "running")
    os.kill(until(lambda: d.job(n).get("supervisor")), signal.SIGKILL)
    d.post(f"/v1/jobs/{n}/update", {"time_limit_s": int(d.job(n)["run_s"]) + limit_s})
    return n


def test_the_time_limit_of_a_job_without_a_supervisor_counts_time_that_passed(d):
    """The clock is set while it runs, and stoker's time was ahead before: its limit is neither over at once nor put off."""
    d.start()
    wrong_for_a_moment(d)
    long, short = orphan(d, 2 * HOUR), orphan(d, 3)
    assert d.wait(short)["cause"] == "timeout"
    assert d.job(long)["state"] == "running"
    d.set(11 * DAY)
    until(lambda: any("set forward" in line for line in d.errors))
    assert d.wait(orphan(d, 3))["cause"] == "timeout"
    assert d.job(long)["state"] == "running"


def test_a_job_that_ends_while_no_daemon_runs_keeps_its_run_time(d):
    d.start()
    wrong_for_a_moment(d)
    n = d.held()
    pid = until(lambda: d.job(n).get("pids"))[0]
    until(lambda: d.job(n)["run_s"] > SLEEP_S)
    d.kill()
    (d.folder / "go").touch()
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    d.start()
    assert LEAST_S < ran(d.wait(n)) < HOUR


def test_a_clock_that_is_behind_is_an_alert_that_ends_by_itself(d):
    def alert():
        return next((a for a in d.get("/v1/alerts")["alerts"] if a["kind"] == "clock_behind"), {"state": ""})

    d.config = d.folder / "stoker.yaml"
    d.config.write_text("series: {step: 1s}\n")
    d.start()
    wrong_for_a_moment(d)
    until(lambda: alert()["state"] == "firing")
    agrees = time.strftime("%F", time.localtime(time.time() + 20 * 10 * DAY))
    assert "10 days behind stoker's time" in alert()["text"] or "9 days behind" in alert()["text"]
    assert agrees in alert()["text"] or time.strftime("%F", time.localtime(time.time() + 20 * 10 * DAY - HOUR)) in alert()["text"]
    d.kill()
    d.start()
    until(lambda: alert()["state"] == "firing")
    d.set(11 * DAY)
    until(lambda: alert()["state"] == "resolved")
