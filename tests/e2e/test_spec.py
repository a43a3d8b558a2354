# SPDX-License-Identifier: Apache-2.0
"""The table in docs/spec/job-states.md is the table the core has."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = ROOT / "docs" / "spec" / "job-states.md"
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build"))


def cells(line):
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def targets(cell):
    return frozenset() if cell == "-" else frozenset(re.findall(r"[a-z_]+", cell))


def spec_table():
    """(state, event) -> set of states, from the one table whose columns are events."""
    lines = SPEC.read_text(encoding="utf-8").splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("|") and "submit" in cells(line)]
    assert len(heads) == 1, "one table of states and events"
    events = cells(lines[heads[0]])[1:]
    table = {}
    for line in lines[heads[0] + 2:]:
        if not line.startswith("|"):
            break
        state, *row = cells(line)
        assert len(row) == len(events), f"row {state} has a cell for every event"
        table.update({(state, event): targets(cell) for event, cell in zip(events, row)})
    return table


def core_table():
    program = BUILD / "dump_lifecycle"
    if not program.exists():
        pytest.skip(f"{program.name} is not built; set STOKER_BUILD")
    table = {}
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        state, event, _, to = line.split(" ", 3)
        table[(state, event)] = targets(to)
    return table


@pytest.mark.skipif(not SPEC.exists(), reason="there is no spec")
def test_job_states_table_is_the_cores():
    assert spec_table() == core_table()
