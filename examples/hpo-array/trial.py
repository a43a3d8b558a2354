#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One trial of a grid search: the array index picks the setting. No packages needed.

    stoker submit job.yaml        # nine trials, at most four at a time
    python3 best.py               # afterwards: the best setting
    python3 trial.py 3            # one trial by hand
"""
import itertools
import json
import math
import os
import random
import sys

GRID = list(itertools.product([0.01, 0.1, 1.0], [0.0, 0.001, 0.1]))      # learning rate, weight decay


def index():
    for name in ("STOKER_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"):
        if os.environ.get(name):
            return int(os.environ[name])
    if len(sys.argv) == 2 and sys.argv[1].isdigit() and int(sys.argv[1]) < len(GRID):
        return int(sys.argv[1])
    sys.exit("trial.py: no array index; submit job.yaml, or give a number from 0 to %d" % (len(GRID) - 1))


def points(n, seed):
    """Two clouds on a plane, and which one each point belongs to."""
    draw = random.Random(seed)
    for _ in range(n):
        label = draw.random() < 0.5
        yield draw.gauss(1.0 if label else -1.0, 1.2), draw.gauss(0.5 if label else -0.5, 1.2), label


def chance(weights, x, y):
    z = weights[0] + weights[1] * x + weights[2] * y
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


def train(rate, decay):
    weights = [0.0, 0.0, 0.0]
    for x, y, label in points(4000, seed=1):
        error = chance(weights, x, y) - label
        weights = [w - rate * (error * v + decay * w) for w, v in zip(weights, (1.0, x, y))]
    losses = [-math.log(max(1e-9, p if label else 1 - p))
              for x, y, label in points(2000, seed=2) for p in [chance(weights, x, y)]]
    return sum(losses) / len(losses)


def main():
    number = index()
    rate, decay = GRID[number]
    loss = train(rate, decay)
    os.makedirs("trials", exist_ok=True)
    path = os.path.join("trials", "%d.json" % number)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"trial": number, "rate": rate, "decay": decay, "loss": loss}, file)
    os.replace(path + ".new", path)
    print("trial %d: rate %g, decay %g: loss %.5f" % (number, rate, decay, loss))


if __name__ == "__main__":
    main()
