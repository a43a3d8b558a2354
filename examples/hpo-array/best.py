#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the trials, best first."""
import glob
import json
import sys


def main():
    trials = []
    for path in glob.glob("trials/*.json"):
        with open(path, encoding="utf-8") as file:
            trials.append(json.load(file))
    if not trials:
        sys.exit("best.py: no results in trials/; run the trials first")
    for trial in sorted(trials, key=lambda t: (t["loss"], t["trial"])):
        print("%(loss).5f  trial %(trial)d  rate %(rate)g  decay %(decay)g" % trial)


if __name__ == "__main__":
    main()
