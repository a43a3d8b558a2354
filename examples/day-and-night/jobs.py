#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A week of inference by day and training at any time, as JSON Lines for `stoker sim`.

    jobs.py ZONE:POOL...        inference in the hours of each zone, and training for all of them
"""
import json
import math
import random
import sys
import zoneinfo
from datetime import datetime, timedelta, timezone

DAYS = 7
START = datetime(2026, 11, 16, tzinfo=timezone.utc)  # a Monday


def inference(rng, zone, pool):
    """Replicas that come with the day's traffic: few at 08:00 and 19:00, most about noon, none at night."""
    for day in range(-1, DAYS + 1):
        midnight = datetime(2026, 11, 16, tzinfo=zoneinfo.ZoneInfo(zone)) + timedelta(days=day)
        for minute in range(8 * 60, 19 * 60 + 30, 5):
            at = (midnight + timedelta(minutes=minute)).astimezone(timezone.utc)
            traffic = math.sin(math.pi * (minute / 60 - 7.5) / 12.5)
            if START <= at < START + timedelta(days=DAYS) and rng.random() < 0.68 * traffic:
                left = (midnight + timedelta(hours=20) - at).total_seconds()
                yield {"submit_s": (at - START).total_seconds(), "gpus": rng.choice([1, 1, 2, 4]), "kind": "service",
                       "duration_s": round(min(left, rng.uniform(3600, 4 * 3600))), "tier": "critical", "priority": 1000, "pool": pool}


def training(rng, regions):
    """Gangs that come at all hours, more than two nodes of each region can take."""
    at = 0.0
    while at < DAYS * 86400:
        at += rng.expovariate(regions / 1500)
        yield {"submit_s": round(at), "gpus": rng.choice([1, 2, 4, 8, 8, 16]), "kind": "train",
               "duration_s": round(min(rng.lognormvariate(math.log(5400), 1.0), 43200)), "tier": "standard", "priority": 500,
               "pool": "training"}


def main():
    rng = random.Random(2026)
    regions = [word.split(":") for word in sys.argv[1:]] or [["Europe/Berlin", "inference"]]
    jobs = [job for zone, pool in regions for job in inference(rng, zone, pool)] + list(training(rng, len(regions)))
    for number, job in enumerate(sorted(jobs, key=lambda j: j["submit_s"])):
        print(json.dumps({"id": f"job-{number}", **job}))


main()
