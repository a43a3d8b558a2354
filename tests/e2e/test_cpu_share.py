# SPDX-License-Identifier: Apache-2.0
"""Jobs that ask for neither GPUs nor CPUs get a default share of CPUs, so that a machine runs no more of them at once than it has room for."""
import os
import pathlib

import pytest

from daemon import STOKERD, Daemon, stoker
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")

CORES = os.sysconf("SC_NPROCESSORS_ONLN")
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture(name="daemon")
def fixture_daemon(tmp_path):
    with Daemon(tmp_path, gpus=2, default_cpus=None) as d:
        yield d


def running(d):
    return d.get("/v1/cluster")["jobs"]["running"]


def settled(d, total):
    """Counts of jobs, once all were submitted and nothing is on its way to a start."""
    def look():
        jobs = d.get("/v1/cluster")["jobs"]
        return jobs if jobs["total"] == total and jobs["running"] + jobs["waiting"] == total else None
    return until(look, say=lambda: d.get("/v1/cluster")["jobs"])


def test_ten_thousand_jobs_without_gpus_run_as_many_at_once_as_there_are_cores(daemon):
    first = daemon.submit(command=SLEEP, array={"first": 0, "last": 9999})
    until(lambda: running(daemon) >= CORES)
    jobs = settled(daemon, 10000)
    assert jobs["running"] == CORES
    assert len({p for p, job in daemon.processes().items() if pathlib.Path(f"/proc/{p}/comm").read_text() == "sleep\n"}) <= CORES
    last = daemon.job(first + 9999)
    assert last["state"] == "waiting" and "CPU" in last["state_text"] and "GPU" not in last["state_text"], last["state_text"]
    daemon.client().post(f"/v1/jobs/{first}/cancel")


def test_the_share_is_shown_with_where_it_came_from(daemon):
    number = daemon.submit(command=SLEEP)
    job = daemon.job(number)
    assert (job["cpus"], job["cpus_default"]) == (1, True)
    assert "1 (default)" in stoker(daemon, "show", number)
    asked = daemon.submit(command=SLEEP, cpus=0.5)
    assert (daemon.job(asked)["cpus"], daemon.job(asked)["cpus_default"]) == (0.5, False)
    assert "(default)" not in stoker(daemon, "show", asked)
    daemon.until(number, "running")
    more = [daemon.submit(command=SLEEP) for _ in range(CORES)]
    said = stoker(daemon, "why", more[-1])
    assert "CPU" in said and "default" in said, said


def test_a_job_that_needs_no_cpu_takes_a_tenth_of_one(daemon):
    numbers = [daemon.submit(command=SLEEP, cpus=0) for _ in range(10 * CORES + 5)]
    until(lambda: running(daemon) >= 10 * CORES)
    assert settled(daemon, len(numbers))["running"] == 10 * CORES
    assert daemon.job(numbers[0])["cpus"] == 0.1


def test_jobs_with_gpus_take_no_share(daemon):
    for _ in range(CORES):
        daemon.submit(command=SLEEP)
    whole, part = daemon.submit(command=SLEEP, gpus=1), daemon.submit(command=SLEEP, gpus=0.5)
    assert daemon.until(whole, "running")["cpus"] is None
    assert daemon.until(part, "running")["cpus"] is None


def test_tasks_that_would_not_fit_divide_the_cpus(daemon):
    number = daemon.submit(command=SLEEP, tasks=4 * CORES)
    assert daemon.until(number, "running")["cpus"] == 0.25


def test_the_share_follows_an_update(daemon):
    for _ in range(CORES):
        daemon.submit(command=SLEEP)
    number = daemon.submit(command=SLEEP)
    daemon.post("/v1/jobs/act", {"verb": "update", "ids": [number], "gpus": 1})
    assert daemon.until(number, "running")["cpus"] is None


def test_only_the_server_sets_the_share(daemon):
    a = daemon.client().post("/v1/jobs", {"command": SLEEP, "cpu_share": 0.001})
    assert a.status == 400 and "set by the server" in a.json["error"]["message"], a


def test_the_share_is_the_sites_and_can_be_turned_off(tmp_path):
    d = Daemon(tmp_path, gpus=1, default_cpus=None, config="defaults: {cpus: 0.5}\n")
    with d:
        number = d.submit(command=SLEEP)
        assert d.job(number)["cpus"] == 0.5
        d.config.write_text("defaults: {cpus: 0}\n")
        d.reload()
        d.errors_with("configuration read again")
        jobs = [d.submit(command=SLEEP) for _ in range(3 * CORES)]
        for j in jobs:
            assert d.until(j, "running")["cpus"] is None
        assert d.job(number)["cpus"] == 0.5


@pytest.mark.skipif(os.geteuid() != 0, reason="cgroups are for root")
def test_a_share_is_a_weight_and_not_a_limit(daemon):
    number = daemon.submit(command=SLEEP)
    pid = daemon.until(number, "running")["pids"][0]
    groups = dict(line.split(":", 2)[1:] for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    path = next((p for names, p in groups.items() if "cpu" in names.split(",")), groups.get("", ""))
    v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu" + path), pathlib.Path("/sys/fs/cgroup" + path)
    if (v1 / "cpu.shares").exists():
        assert (v1 / "cpu.shares").read_text() == "1024\n" and (v1 / "cpu.cfs_quota_us").read_text() == "-1\n"
    elif (v2 / "cpu.weight").exists():
        assert (v2 / "cpu.weight").read_text() == "100\n" and (v2 / "cpu.max").read_text().startswith("max ")
    else:
        pytest.skip("there is no cpu controller")
    assert "stoker" in path, groups
