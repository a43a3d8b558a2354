#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One item of a batch: counts the words of a file. Each item is run once, in any order.

    stoker submit job.yaml              # every item of the list, two at a time
    python3 count.py texts/one.txt      # by hand

An item that is interrupted runs again, so write results all or nothing and skip what is there.
"""
import collections
import json
import os
import sys

try:
    import stoker
except ModuleNotFoundError:     # not installed: use the one in this tree
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk", "python"))
    import stoker


def count(path, out):
    target = os.path.join(out, os.path.basename(path) + ".json")
    if os.path.exists(target):
        print("already there:", target)
        return
    with open(path, encoding="utf-8") as file:
        words = collections.Counter(file.read().lower().split())
    with open(target + ".new", "w", encoding="utf-8") as file:
        json.dump(words.most_common(10), file)
    os.replace(target + ".new", target)
    print("wrote", target)


def main():
    out = os.environ.get("OUT", "counts")
    os.makedirs(out, exist_ok=True)
    for item in stoker.items(sys.argv[1:]):
        count(item, out)


if __name__ == "__main__":
    main()
