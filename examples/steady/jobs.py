#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two weeks of small jobs that never stop coming, and now and then a gang of half the cluster: for docs/spec/reservations.md.

Writes a trace in JSON Lines for 8 nodes of 8 GPUs. The small jobs alone keep 85% of the GPUs busy. All say that they take half as long again as they do.
"""
import json
import random

DAYS, GPUS = 14, 64
rng = random.Random(5)
jobs = []
t = 0.0
while t < DAYS * 86400:
    gpus = rng.choice([1, 1, 2, 2, 4])
    run = 600 + rng.random() * 6 * 3600
    jobs.append({"submit_s": int(t), "duration_s": int(run), "estimate_s": int(1.5 * run), "gpus": gpus})
    t += rng.random() * 2 * (2 * (600 + 3 * 3600)) / (0.85 * GPUS)  # two GPUs for so long, on average
for i in range(2 * DAYS):
    at = (i + rng.random()) * 43200
    jobs.append({"submit_s": int(at), "duration_s": 7200, "estimate_s": 10800, "tasks": 4, "gpus": 8})
jobs.sort(key=lambda j: j["submit_s"])
for number, job in enumerate(jobs):
    print(json.dumps({"id": number + 1, **job}))
