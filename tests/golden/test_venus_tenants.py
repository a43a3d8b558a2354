# SPDX-License-Identifier: Apache-2.0
"""The Venus trace with its virtual clusters as walls, and as tenants with guarantees in one pool: bench/venus, which
replays the log of each run by itself, and the check of that check."""
import csv
import json
import os
import subprocess
import sys

import pytest
from data import ROOT, data_dir, program

sys.path.insert(0, str(ROOT / "bench"))
from venus_check import Trace, replay  # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture(name="figures", scope="module")
def fixture_figures():
    env = {**os.environ, "STOKER": program(), "STOKER_DATA": str(data_dir("venus").parent)}
    out = subprocess.run([sys.executable, ROOT / "bench" / "venus"], env=env, stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def test_both_averages_are_below_their_bars(figures):
    assert figures["walls_avg_jct_s"] <= 13200
    assert figures["tenants_avg_jct_s"] <= 11900


def test_nobody_is_worse_off_and_every_guarantee_is_honoured(figures):
    assert figures["tenants_worse"] == 0
    assert figures["guarantee_violations"] == 0
    assert len(figures["tenants"]) == 15
    for row in figures["tenants"]:
        assert row["floor_s"] < row["tenants_s"] <= row["fifo_walls_s"]
        assert row["worst_delay_s"] <= 60
    assert sum(row["preemptions"] for row in figures["tenants"]) == figures["preemptions"]


def small(tmp_path, log):
    """Two walls of one node, three jobs, and a log of them."""
    def write(name, rows):
        with open(tmp_path / name, "w", encoding="ascii", newline="") as f:
            csv.writer(f).writerows(rows)
    write("vc_nodes.csv", [["vc", "nodes"], ["a", 1], ["b", 1]])
    write("jobs.csv", [["job_id", "submit_s", "vc", "user", "gpu_num", "cpu_num", "duration_s", "state"],
                       [1, 0, "a", "u", 8, 1, 100, "x"], [2, 0, "a", "u", 8, 1, 100, "x"],
                       [3, 10, "b", "u", 4, 1, 100, "x"]])
    write("golden_per_job.csv", [["job_id", "fifo_end_s"], [1, 100], [2, 200], [3, 110]])
    write("log.csv", [["at_s", "event", "id", "places"], *log])
    return replay(Trace(tmp_path), tmp_path / "log.csv", False)


BEGIN = [[0, "start", 1, "0:8"], [0, "start", 2, "1:8"]]


def test_a_guarantee_that_is_taken_back_at_once_is_honoured(tmp_path):
    r = small(tmp_path, [*BEGIN, [10, "preempt", 2, ""], [10, "start", 3, "1:4"], [101, "end", 1, ""],
                         [101, "start", 2, "0:8"], [111, "end", 3, ""], [232, "end", 2, ""]])
    assert (r.violations, r.worst_delay["b"], r.preempted["2"]) == (0, 0, 1)


def test_one_that_waits_for_longer_is_seen(tmp_path):
    r = small(tmp_path, [*BEGIN, [101, "end", 1, ""], [101, "end", 2, ""], [101, "start", 3, "1:4"],
                         [202, "end", 3, ""]])
    assert (r.violations, r.worst_delay["b"]) == (1, 91)


@pytest.mark.parametrize("log", [
    [[0, "start", 1, "0:8"], [0, "start", 2, "0:8"]],
    [[0, "start", 1, "0:4 1:4"]],
    [[0, "start", 1, "0:7"]],
    [[0, "start", 1, "0:8"], [50, "end", 1, ""]],
    [[0, "start", 1, "0:8"], [101, "end", 1, ""]],
], ids=["twice", "scattered", "too few", "too short", "not all"])
def test_what_cannot_have_been_is_refused(tmp_path, log):
    with pytest.raises(AssertionError):
        small(tmp_path, log)
