# SPDX-License-Identifier: Apache-2.0
"""Scenarios of KAI-Scheduler's integration tests: an outside opinion on quotas, preemption, gangs and fractions."""
import json
import subprocess
from pathlib import Path

import pytest

from lib.data import data_dir

REPLAY = Path(__file__).resolve().parents[2] / "build/tests/kai_replay"
PASSED = 77  # of 80; never fewer


def replay(path):
    run = subprocess.run([REPLAY, path, "--json"], capture_output=True, text=True, timeout=120)
    return run.returncode, run.stdout, run.stderr


def test_what_another_scheduler_expects_happens_here():
    code, out, err = replay(data_dir("kai") / "scenarios.json")
    result = json.loads(out)
    assert code == 0, err
    assert list(result) == ["passed", "failed", "unsupported", "failures"]
    assert result["passed"] + result["failed"] + result["unsupported"] == 80
    assert result["failed"] == len(result["failures"])
    assert result["passed"] >= PASSED, result["failures"]
    assert result["unsupported"] <= 1
    for failure in result["failures"]:
        assert list(failure) == ["name", "expected", "got"]


@pytest.mark.parametrize("text, says", [("", "line"), ("[", "line"), ("{}", "not an array")])
def test_a_file_that_is_not_of_the_format_is_refused(tmp_path, text, says):
    path = tmp_path / "bad.json"
    path.write_text(text)
    code, out, err = replay(path)
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.parametrize("entry", [
    1, {}, {"scenario": 1}, {"scenario": {}}, {"scenario": {"Nodes": {"a": {"GPUs": -1}}}},
    {"scenario": {"Nodes": {"a": {"GPUs": 1e300}}, "Queues": [{"Name": "q"}], "Jobs": []}},
    {"scenario": {"Nodes": {"a": {"GPUs": 8}}, "Queues": [{"Name": "q", "ParentQueue": "q"}], "Jobs": []}},
    {"scenario": {"Nodes": {"a": {"GPUs": 8}}, "Queues": [{"Name": "q"}, {"Name": "q"}], "Jobs": []}},
    {"scenario": {"Nodes": {"a": {"GPUs": 8}}, "Queues": [{"Name": "q"}],
                  "Jobs": [{"Name": "j", "QueueName": "q", "Tasks": [{"State": "Running", "NodeName": "b"}]}]}},
])
def test_an_entry_that_makes_no_sense_does_not_pass(tmp_path, entry):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps([entry]))
    code, out, err = replay(path)
    assert code == 0, err
    assert json.loads(out)["passed"] == 0
