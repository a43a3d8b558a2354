# SPDX-License-Identifier: Apache-2.0
"""Jobs that count, for tests of GPUs that are shared in turns: every step is written down with its time, so two that
ran at once show afterwards."""
import pathlib

STEP = """
import os, sys, time
path, steps, i = sys.argv[1], int(sys.argv[2]), 0
with open(path, "a", buffering=1) as f:
    while i < steps or not os.path.exists(sys.argv[3]):
        i += 1
        f.write("%d %.6f\\n" % (i, time.monotonic()))
        time.sleep(0.01)
with open(path + ".last", "w") as f:
    f.write(str(i))
"""


def counts(folder, name, steps, until="/"):
    """The command of a job that makes so many steps, and more until there is a file of that name in the folder."""
    folder = pathlib.Path(folder)
    return ["/usr/bin/python3", "-S", "-c", STEP, str(folder / f"{name}.steps"), str(steps), str(folder / until)]


def made_all(folder, name):
    """It has ended, and each of its steps is there."""
    return int((pathlib.Path(folder) / f"{name}.steps.last").read_text()) == len(read(folder, name)) > 0


def read(folder, name):
    """Times of its steps; none is missing and none was made twice."""
    path = pathlib.Path(folder) / f"{name}.steps"
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    assert [int(n) for n, _ in lines] == list(range(1, len(lines) + 1)), f"{name} lost a step or made one twice"
    return [float(at) for _, at in lines]


def turns(folder, names):
    """Whose steps came after another's, in order: [(name, steps in a row, seconds)]. Fails when a job made steps while
    another had its turn: then its row is broken by one that is no turn, and that job was not at its end."""
    last = {name: len(read(folder, name)) for name in names}
    steps = sorted((at, name, i + 1) for name in names for i, at in enumerate(read(folder, name)))
    rows = []
    for at, name, i in steps:
        if rows and rows[-1][0] == name:
            rows[-1][2:] = [i, at]
        else:
            rows.append([name, at, i, at])
    return [(name, first, until, i == last[name]) for name, first, i, until in rows]


def never_two(folder, names, quantum_s):
    """A row between two of another job is a whole turn, or the end of its job."""
    rows = turns(folder, names)
    for before, row, after in zip(rows, rows[1:], rows[2:]):
        if before[0] == after[0] and not row[3]:
            assert after[1] - before[2] > 0.5 * quantum_s, f"{row} beside {before} and {after}"
    return rows
