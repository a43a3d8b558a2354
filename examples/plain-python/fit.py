#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The smallest job that survives: fits a line by stochastic gradient descent, no packages needed.

    stoker submit job.yaml        # as a job
    python3 fit.py                # by hand; the same program

Stop it in any way and start it again: it goes on at its last checkpoint, and ends with the very
same numbers as if it had never been stopped.
"""
import argparse
import json
import os
import random
import sys
import time

try:
    import stoker
except ModuleNotFoundError:     # not installed: use the one in this tree
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk", "python"))
    import stoker


def save(path, state):
    """All or nothing: a reader sees the old file or the new one, never half of one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {"step": 0, "slope": 0.0, "offset": 0.0}


def one_step(state):
    """One sample of y = 3 x - 1 with noise. The step's number seeds it, so a rerun draws the same."""
    draw = random.Random(state["step"])
    x = draw.uniform(-1, 1)
    error = state["slope"] * x + state["offset"] - (3 * x - 1 + draw.gauss(0, 0.1))
    state["slope"] -= 0.02 * error * x
    state["offset"] -= 0.02 * error
    state["step"] += 1
    return error * error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--checkpoint", default="fit.json")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to watch it")
    args = parser.parse_args()

    run = stoker.current()
    state = load(args.checkpoint)
    print("starting at step", state["step"], flush=True)
    while state["step"] < args.steps:
        loss = one_step(state)
        time.sleep(args.pause)
        run.progress(state["step"], args.steps, loss=loss)
        if run.should_checkpoint():
            with run.checkpointing(state["step"]):
                save(args.checkpoint, state)
            if run.should_stop():
                print("saved step", state["step"], "and leaving", flush=True)
                run.requeue()
    save(args.checkpoint, state)
    print("y = %.6f x + %.6f" % (state["slope"], state["offset"]))


if __name__ == "__main__":
    main()
