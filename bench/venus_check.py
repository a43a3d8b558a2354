# SPDX-License-Identifier: Apache-2.0
"""Replays the log of a run on the Venus trace, second by second, and refuses what could not have been: GPUs used twice, a
job over more nodes than it needs, work that was not done, a job outside its wall. It knows nothing of the scheduler.

A guarantee is honoured when no job waits for more than a minute while its tenant, with it, would have no more GPUs than
are guaranteed. A clock runs for every waiting job, also one that was preempted, while that is so. Gangs and fragments
are no excuse."""
import collections
import csv
import os

MINUTE = 60
LATE = 1  # an uninterrupted run takes its duration and one second, as in the published protocol


def rows(path):
    with open(path, encoding="ascii", newline="") as f:
        yield from csv.DictReader(f)


class Trace:
    def __init__(self, folder):
        self.path, self.pools = os.path.join(folder, "jobs.csv"), os.path.join(folder, "vc_nodes.csv")
        self.nodes = {r["vc"]: int(r["nodes"]) for r in rows(self.pools)}
        jobs = list(rows(self.path))
        self.jobs = [r["job_id"] for r in jobs]
        self.vc = {r["job_id"]: r["vc"] for r in jobs}
        self.gpus = {r["job_id"]: int(r["gpu_num"]) for r in jobs}
        self.submit = {r["job_id"]: int(r["submit_s"]) for r in jobs}
        self.duration = {r["job_id"]: int(r["duration_s"]) for r in jobs}
        self.shortest = {j: self.submit[j] + self.duration[j] for j in self.jobs}
        golden = os.path.join(folder, "golden_per_job.csv")
        self.fifo_end = {r["job_id"]: int(r["fifo_end_s"]) for r in rows(golden)}

    def mean(self, jobs, end):
        return round(sum(end[j] - self.submit[j] for j in jobs) / len(jobs), 2)


class Replay:
    def __init__(self, trace, walls):
        self.trace, self.walls = trace, walls
        self.first, at = {}, 0  # first node of each wall
        for vc, n in trace.nodes.items():
            self.first[vc], at = at, at + n
        self.free = [8] * at
        self.used = collections.Counter()
        self.running, self.waiting = {}, {vc: set() for vc in trace.nodes}
        self.held, self.preempted, self.end = collections.Counter(), collections.Counter(), {}
        self.clock, self.violations = {}, 0
        self.worst_delay = {vc: 0 for vc in trace.nodes}

    def wait(self, job):
        return self.end[job] - self.trace.submit[job] - self.trace.duration[job]

    def start(self, job, now, places):
        t, vc = self.trace, self.trace.vc[job]
        self.waiting[vc].remove(job)
        assert sum(places.values()) == t.gpus[job], f"job {job}: wrong number of GPUs"
        whole, rest = divmod(t.gpus[job], 8) if t.gpus[job] > 8 else (0, t.gpus[job])
        assert sorted(places.values(), reverse=True) == [8] * whole + [rest] * (rest > 0), f"job {job}: scattered"
        for node, gpus in places.items():
            self.free[node] -= gpus
            assert self.free[node] >= 0, f"node {node} has no {gpus} GPUs at {now}"
            assert not self.walls or 0 <= node - self.first[vc] < t.nodes[vc], f"job {job}: outside its wall"
        self.running[job] = (now, places)
        self.used[vc] += t.gpus[job]

    def stop(self, job, now, ended):
        t, vc = self.trace, self.trace.vc[job]
        since, places = self.running.pop(job)
        for node, gpus in places.items():
            self.free[node] += gpus
        self.held[job] += now - since
        self.used[vc] -= t.gpus[job]
        if not ended:
            self.preempted[job] += 1
            self.waiting[vc].add(job)
            return
        lost = self.preempted[job] * (60 if t.gpus[job] > 8 else 40)
        assert self.held[job] == t.duration[job] + LATE + lost, f"job {job} ran for {self.held[job]} s"
        self.end[job] = now

    def within(self, job):
        vc = self.trace.vc[job]
        return self.used[vc] + self.trace.gpus[job] <= 8 * self.trace.nodes[vc]

    def clocks(self, now):
        for vc, jobs in self.waiting.items():
            for job in jobs:
                if job not in self.clock and self.within(job):
                    self.clock[job] = now
        for job in [j for j in self.clock if j not in self.waiting[self.trace.vc[j]] or not self.within(j)]:
            delay, vc = now - self.clock.pop(job), self.trace.vc[job]
            self.worst_delay[vc] = max(self.worst_delay[vc], delay)
            self.violations += delay > MINUTE


def replay(trace, log, walls):
    """The log, as what it says happened."""
    r = Replay(trace, walls)
    events = collections.defaultdict(list)
    for row in rows(log):
        events[int(row["at_s"])].append(row)
    arrivals = collections.defaultdict(list)
    for job in trace.jobs:
        arrivals[trace.submit[job]].append(job)
    for now in sorted(events.keys() | arrivals.keys()):
        for job in arrivals.get(now, []):
            r.waiting[trace.vc[job]].add(job)
        step(r, now, events.get(now, []))
        r.clocks(now)
    assert len(r.end) == len(trace.jobs), "some jobs never ended"
    return r


def step(r, now, events):
    """What happened in one second; a job that started and gave way in it never ran."""
    for row in events:
        if row["event"] == "start":
            places = dict(map(int, p.split(":")) for p in row["places"].split())
            r.start(row["id"], now, places)
        else:
            r.stop(row["id"], now, row["event"] == "end")
