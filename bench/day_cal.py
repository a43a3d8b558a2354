# SPDX-License-Identifier: Apache-2.0
"""What starting, ending and leaving take on a cluster under stoker, measured before the day begins, in half a minute. For
bench/slurm-day.

First some jobs one by one: what a launch takes (sim.start_s) and until an end is known (sim.late_s) when nothing else
happens. Then a burst: many are decided at once, and all end at once. They are dealt with one after the other, so in the mean
of n each waits for (n + 1) / 2 turns (sim.each_s). Then jobs of whole nodes give way to as many others (sim.save_s); one
that leaves is dealt with twice, so it waits for n + 1 turns.
Nothing of the day is used."""
import json
import os
import time

import day_live

ALONE = 8
BURST = 128
UNTIL_S = 8  # all of the burst end so long after they were sent
LONG_S, SHORT_S = 180, 60  # limits: those with the short one go first


def mean(values):
    return sum(values) / len(values) if values else 0


def turn(delays, alone_s):
    """Of jobs that were dealt with one after the other, what each took; alone it takes 'alone_s'."""
    return max(mean(delays) - alone_s, 0) * 2 / (len(delays) + 1)


class Burst:
    """Jobs beside those of the day, with a log of their own."""

    def __init__(self, d, ground):
        self.d, self.folder = d, f"{ground.folder}/before"
        os.makedirs(f"{self.folder}/had", exist_ok=True)
        self.log = day_live.Log(None, f"{self.folder}/log")
        open(self.log.path, "w", encoding="ascii").close()
        self.log.t0 = time.time()
        self.ids = {}

    def send(self, n, gpus, limit_s, work):
        first = len(self.ids)
        jobs = [{"script": day_live.SCRIPT, "args": [self.log.path, f"{self.folder}/had", str(first + k), work], "name": f"before-{first + k}", "gpus": gpus,
                 "time_limit_s": limit_s, "signal": {"signal": "USR1", "seconds": 30, "who": "batch"}, "stdout": "/dev/null",
                 "workdir": self.folder} for k in range(n)]
        answer = self.d.post("/v1/jobs", {"jobs": jobs})
        self.ids.update(zip(answer.get("ids", [answer["id"]]), range(first, first + n)))

    def run(self, n):
        """Waits until so many run."""
        deadline = time.time() + 120
        while self.log.running() < n and time.time() < deadline:
            time.sleep(0.1)
            self.log.read()

    def delays(self):
        """Waits for the end of all."""
        happened = list(day_live.events(self.d, self.ids))
        self.log.read()
        return day_live.delays(self.log, self.ids, happened)


def one_by_one(d, ground):
    took = {"start_s": [], "end_s": []}
    for _ in range(ALONE):
        job = Burst(d, ground)
        job.send(1, 1, SHORT_S, "500000")
        for k, v in job.delays().items():
            took.setdefault(k, []).extend(v)
    return took


def measure(d, ground, nodes):
    alone = one_by_one(d, ground)
    start_s, late_s = mean(alone["start_s"]), mean(alone["end_s"])
    burst = Burst(d, ground)
    burst.send(min(BURST, 8 * nodes), 1, SHORT_S, f"@{round((time.time() + UNTIL_S) * 1e6)}")
    took = burst.delays()
    each = (turn(took["start_s"], start_s) + turn(took["end_s"], late_s)) / 2
    leaving = Burst(d, ground)
    leaving.send(nodes, 8, LONG_S, "4000000")
    leaving.run(nodes)
    leaving.send(nodes, 8, SHORT_S, "1000000")
    left = leaving.delays()["leave_s"]
    save_s = max(mean(left) - each * (len(left) + 1), 0)
    found = {"start_s": start_s, "late_s": late_s, "save_s": save_s, "each_s": each}
    with open(f"{ground.folder}/before/found", "w", encoding="ascii") as f:
        json.dump({**found, "alone": alone, "burst": took, "leave_s": left}, f)
    return {k: round(v, 4) for k, v in found.items()}
