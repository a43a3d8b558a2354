# SPDX-License-Identifier: Apache-2.0
"""data.py - what the Python tests share: the program under test and the public traces.

The program is $STOKER (default build/stoker). The traces are not part of the project: they are looked
for at $STOKER_DATA (default ../shared/data beside the repository). Where they are absent, tests that
need them are skipped and say so, except with CI=true, where that is a failure.
"""
import csv
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 600


def program():
    return os.environ.get("STOKER") or str(ROOT / "build" / "stoker")


def stoker_run(*args, **kwargs):
    """Runs the program and returns the CompletedProcess, whatever its exit code."""
    return subprocess.run([program(), *map(str, args)], capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False, **kwargs)


def stoker(*args):
    """Runs the program, which must succeed, and returns its JSON output (None when it has none)."""
    run = stoker_run(*args)
    assert run.returncode == 0, f"exit {run.returncode}: stoker {' '.join(map(str, args))}\n{run.stderr}"
    return json.loads(run.stdout) if run.stdout.strip() else None


def simulate(*args):
    """Runs `stoker sim` once and returns the totals of its only run."""
    (run,) = stoker("sim", *args, "--json")["runs"]
    return run


def data_path():
    return pathlib.Path(os.environ.get("STOKER_DATA") or ROOT.parent / "shared" / "data")


def data_dir(name=""):
    """The folder of one trace. Skips the test, or fails it with CI=true, when it is not there."""
    path = data_path() / name
    if not path.is_dir():
        why = f"no public traces at {path}; set STOKER_DATA"
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    return path


def read_csv(path):
    """Rows of a CSV file with a header line, as dictionaries."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def reference_rows(name):
    """Rows of a reference file, for @parametrize. One None when it is absent, so that the test
    exists and data_dir() can say why it does not run."""
    path = data_path() / name
    return read_csv(path) if path.exists() else [None]
