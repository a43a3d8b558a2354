# SPDX-License-Identifier: Apache-2.0
"""Orders by tenant against a small simulator of their own, and measures of fairness against the log of a run."""
import csv
import json
from fractions import Fraction

import pytest
from data import simulate

GPUS = 24
TREE = """
tenants:
  - name: org
    weight: 2
    tenants:
      - {name: team-1, weight: 3}
      - {name: team-2}
  - {name: team-3, weight: 0.5}
  - {name: team-4}
"""
PARENT = {"default": None, "org": None, "team-1": "org", "team-2": "org", "team-3": None, "team-4": None}
WEIGHT = {"default": 1, "org": 2, "team-1": 3, "team-2": 1, "team-3": 0.5, "team-4": 1}
ROWS = list(PARENT)


def run(tmp_path, *args, seed=1, load=1.4, jobs=400):
    trace, log = tmp_path / "trace.jsonl", tmp_path / "jobs.csv"
    tenants = tmp_path / "tenants.yaml"
    tenants.write_text(TREE)
    total = simulate(
        "--generate",
        f"jobs={jobs},gpus={GPUS},load={load},tenants=5,seed={seed},sizes=1:60/2:20/4:15/8:5,dur_sigma=1,day=0,week=0",
        "--cluster", f"1x{GPUS}", "--tenants", tenants, "--trace-out", trace, "--jobs-out", log, *args)
    log_rows = list(csv.DictReader(log.open()))
    return total, [json.loads(line) for line in trace.open()], log_rows


def row_of(job):
    return job["tenant"] if job["tenant"] in PARENT else "default"


def path_of(name):
    while name:
        yield name
        name = PARENT[name]


class Reference:
    """First fit in order, one pool that counts GPUs. 'share(name, now)': what a tenant has."""

    def __init__(self, jobs, share):
        self.jobs, self.share = jobs, share
        self.leases = []  # (tenant, gpus, start, end or None)
        self.held = dict.fromkeys(ROWS, 0)

    def order(self, now, waiting):
        active = {t for job in waiting for t in path_of(row_of(job))}

        def down(parent):
            kids = [t for t in ROWS if PARENT[t] == parent and t in active]
            for t in sorted(kids, key=lambda t: self.share(self, t, now) / Fraction(WEIGHT[t])):
                below = list(down(t))
                yield from below or [t]

        return list(down(None))

    def start_one(self, now, waiting, free):
        for tenant in self.order(now, waiting):
            for job in waiting:
                if row_of(job) == tenant and job["gpus"] <= free:
                    return job
        return None

    def run(self):
        arrivals, running, waiting, starts, free = sorted(self.jobs, key=lambda j: j["submit_s"]), [], [], {}, GPUS
        while arrivals or running:
            now = min([r[0] for r in running] + [j["submit_s"] for j in arrivals[:1]])
            for r in [r for r in running if r[0] == now]:
                running.remove(r)
                free += r[1]["gpus"]
                r[2][3] = now
                for t in path_of(row_of(r[1])):
                    self.held[t] -= r[1]["gpus"]
            while arrivals and arrivals[0]["submit_s"] == now:
                waiting.append(arrivals.pop(0))
            while waiting:
                job = self.start_one(now, waiting, free)
                if not job:
                    break
                waiting.remove(job)
                free -= job["gpus"]
                starts[job["id"]] = now
                lease = [row_of(job), job["gpus"], now, None]
                self.leases.append(lease)
                running.append((now + job["duration_s"], job, lease))
                for t in path_of(row_of(job)):
                    self.held[t] += job["gpus"]
        return starts


HALF, AHEAD = 20000, 3600


def fairshare(ref, tenant, now):
    """GPU-seconds at now + AHEAD, faded."""
    t, sum_ = now + AHEAD, 0.0
    for who, gpus, start, end in ref.leases:
        if tenant in path_of(who):
            sum_ += gpus * (2 ** (((t if end is None else end) - t) / HALF) - 2 ** ((start - t) / HALF))
    return Fraction(round(sum_, 9))


def drf(ref, tenant, _now):
    return Fraction(ref.held[tenant], GPUS)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("order,share,params", [
    ("fairshare", fairshare, ["--param", f"fairshare.half_life_s={HALF}", "--param", f"fairshare.ahead_s={AHEAD}",
                              "--param", "fairshare.period_s=0"]),
    ("drf", drf, [])])
def test_starts_are_those_of_a_reference_simulator(tmp_path, order, share, params, seed):
    _, jobs, log = run(tmp_path, "--order", order, "--backfill", "skip", "--place", "count", "--preempt", "none",
                       *params, seed=seed)
    starts = Reference(jobs, share).run()
    got = {int(r["id"]): float(r["first_start_s"]) for r in log}
    assert len(got) == len(jobs)
    assert got == {j["id"]: starts[j["id"]] for j in jobs}
    assert sum(got[j["id"]] > j["submit_s"] for j in jobs) > len(jobs) / 3, "many had to wait"


def parts(jobs):
    """What weights give to each tenant that has jobs."""
    busy = {t for j in jobs for t in path_of(row_of(j))}
    part = {}
    for t in ROWS:
        if t in busy:
            whole = sum(WEIGHT[k] for k in busy if PARENT[k] == PARENT[t])
            part[t] = WEIGHT[t] / whole * (part[PARENT[t]] if PARENT[t] else 1)
    return part


def window_of(jobs, log, part, start, end):
    got, want = {}, {}
    for job, row in zip(jobs, log):
        began, ended, t = float(row["first_start_s"]), float(row["end_s"]), row_of(job)

        def inside(a, b):
            return max(0.0, min(b, end) - max(a, start)) * job["gpus"]
        got[t] = got.get(t, 0) + inside(began, ended)
        want[t] = want.get(t, 0) + inside(job["submit_s"], ended)
    names = [t for t in want if want[t] > 0]
    total = sum(got[t] for t in names)
    if len(names) < 2 or total <= 0:
        return None
    due, left = {}, dict.fromkeys(names)
    while left:  # those that want less than their part have all of it
        weights = sum(part[t] for t in left)
        rest = total - sum(due.values())
        full = [t for t in left if want[t] <= rest * part[t] / weights * (1 + 1e-12)]
        for t in full or list(left):
            due[t] = min(want[t], rest * part[t] / weights)
            del left[t]
    x = [got[t] / due[t] for t in names]
    return sum(x) ** 2 / (len(x) * sum(v * v for v in x)), min(x) / max(x)


@pytest.mark.parametrize("args", [["--bundle", "easy"], ["--order", "fairshare", "--preempt", "none"],
                                  ["--order", "fifo", "--backfill", "skip"]])
def test_measures_follow_from_the_log(tmp_path, args):
    window = 8000
    result, jobs, log = run(tmp_path, *args, "--param", f"sim.window_s={window}")
    fair, part = result["fairness"], parts(jobs)
    first, last = jobs[0]["submit_s"], max(float(r["end_s"]) for r in log)
    found = []
    while first < last:
        found.append(window_of(jobs, log, part, first, min(first + window, last)))
        first += window
    found = [w for w in found if w]
    assert fair["windows"] == len(found) > 3
    assert fair["jain"] == pytest.approx(sum(w[0] for w in found) / len(found), abs=2e-6)
    assert fair["jain_worst"] == pytest.approx(min(w[0] for w in found), abs=2e-6)
    assert fair["share_ratio"] == pytest.approx(sum(w[1] for w in found) / len(found), abs=2e-6)
    assert fair["share_ratio_worst"] == pytest.approx(min(w[1] for w in found), abs=2e-6)
    drained, rho = {}, {}
    for job, row in zip(jobs, log):
        t = row_of(job)
        drained[t] = max(drained.get(t, 0), job["submit_s"]) + \
            job["gpus"] * job["duration_s"] / (GPUS * part[t])
        alone = max(drained[t] - job["submit_s"], job["duration_s"], 10)
        rho.setdefault(t, []).append(max(float(row["end_s"]) - job["submit_s"], 10) / alone)
    every = [v for t in rho for v in rho[t]]
    assert fair["rho"] == pytest.approx(sum(every) / len(every), abs=2e-6)
    assert fair["rho_worst"] == pytest.approx(max(every), abs=2e-6)
    for row in fair["tenants"]:
        mine = rho[row["tenant"]]
        assert row["jobs"] == len(mine)
        assert row["rho"] == pytest.approx(sum(mine) / len(mine), abs=2e-6)
        assert row["rho_worst"] == pytest.approx(max(mine), abs=2e-6)
    assert {r["tenant"] for r in fair["tenants"]} == set(rho)


@pytest.mark.parametrize("order", ["fairshare", "drf"])
def test_shares_come_near_weights_where_all_want_more(tmp_path, order):
    """Five tenants that always want all of the cluster; small jobs. What each had is near its part."""
    trace, tenants = tmp_path / "trace.jsonl", tmp_path / "tenants.yaml"
    tenants.write_text(TREE)
    names = [f"team-{k}" for k in range(1, 6)]
    with trace.open("w") as f:
        for i in range(12000):
            f.write(json.dumps({"id": i, "submit_s": 0, "duration_s": 300 + i * 7919 % 600, "gpus": 1 + i // 5 % 3,
                                "tenant": names[i % 5]}) + "\n")
    total = simulate(trace, "--cluster", "4x32", "--tenants", tenants, "--order", order, "--preempt", "none",
                     "--jobs-out", tmp_path / "jobs.csv")
    assert total["finished"] == 12000
    jobs = [json.loads(line) for line in trace.open()]
    log = list(csv.DictReader((tmp_path / "jobs.csv").open()))
    until, had = 10000, {}  # all of them still wait then
    for job, row in zip(jobs, log):
        time = min(float(row["end_s"]), until) - min(float(row["first_start_s"]), until)
        had[row_of(job)] = had.get(row_of(job), 0) + time * job["gpus"]
    assert max(float(r["first_start_s"]) for r in log) > until
    part = parts(jobs)
    for t, v in had.items():
        assert v / sum(had.values()) == pytest.approx(part[t], abs=0.03), t
