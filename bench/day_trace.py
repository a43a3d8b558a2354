# SPDX-License-Identifier: Apache-2.0
"""A day of the Philly trace, made so short that real clusters can live through it: arrivals and run times
divided by the same number. For bench/slurm-day.

A job of more GPUs than a node has is a gang of whole nodes (12 GPUs: two of six). Run times end at the
site's longest (`longest_h`): the day has an end then. What schedulers are told is a time limit: a tenth more
than the run time and some seconds, in whole minutes of the short day, since Slurm counts limits in minutes;
divided by 200 that is steps of 3 h 20 min, so a job of 42 minutes asks for five times what it needs."""
import csv
import json
import math
import os

DAY_S = 86400
NODE_GPUS = 8
MARGIN_S = 10  # of a limit, for the launch


class Job:
    def __init__(self, row, start_s, compress, longest_s):
        gpus = int(row["gpus"])
        self.id = int(row["job_id"])
        self.submit_s = round((float(row["submit_s"]) - start_s) / compress, 3)
        self.work_s = round(min(float(row["duration_s"]), longest_s) / compress, 3)
        self.vc = row["vc"]
        self.nodes = -(-gpus // NODE_GPUS)
        self.per_node = -(-gpus // self.nodes)
        self.gpus = self.nodes * self.per_node
        self.limit_s = 60 * math.ceil((1.1 * self.work_s + MARGIN_S) / 60)

    def line(self):
        """For the simulator."""
        o = {"id": self.id, "submit_s": self.submit_s, "duration_s": self.work_s, "estimate_s": self.limit_s,
             "gpus": self.per_node, "tenant": self.vc}
        if self.nodes > 1:
            o.update(tasks=self.nodes, per_node=1)
        return json.dumps(o)


class Day:
    """The jobs that were submitted on one day, from `from_h` to `to_h`, in order."""

    def __init__(self, path, number, compress=200, longest_h=6, from_h=0, to_h=24, gpus=256, every=1):
        start_s = number * DAY_S + from_h * 3600
        end_s = number * DAY_S + to_h * 3600
        jobs = [Job(r, start_s, compress, longest_h * 3600) for r in rows(path)
                if start_s <= float(r["submit_s"]) < end_s]
        self.number, self.compress, self.longest_h, self.gpus = number, compress, longest_h, gpus
        self.length_s = (end_s - start_s) / compress
        self.too_large = [j for j in jobs if j.gpus > gpus]
        self.jobs = sorted((j for j in jobs if j.gpus <= gpus), key=lambda j: (j.submit_s, j.id))[::every]
        self.by_id = {j.id: j for j in self.jobs}

    def load(self):
        """GPU time asked for, as a part of what the cluster has while jobs arrive."""
        return sum(j.work_s * j.gpus for j in self.jobs) / (self.gpus * self.length_s)

    def write(self, path):
        with open(path, "w", encoding="ascii") as f:
            f.writelines(j.line() + "\n" for j in self.jobs)


def rows(path):
    with open(path, encoding="ascii") as f:
        return list(csv.DictReader(f))


def busiest(path, longest_h):
    """Days by the GPU time that was asked for on them, no run longer than that; the busiest first."""
    asked = {}
    for r in rows(path):
        day = int(float(r["submit_s"]) // DAY_S)
        asked[day] = asked.get(day, 0) + int(r["gpus"]) * min(float(r["duration_s"]), longest_h * 3600)
    return sorted(asked, key=lambda d: (-asked[d], d))


def find(data):
    return os.path.join(data, "philly", "philly.csv")
