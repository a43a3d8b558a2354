# SPDX-License-Identifier: Apache-2.0
"""The Philly trace on one pool of GPUs, counting only: every policy gives the exact results of an
independent reference simulator, for four cluster sizes."""
import pytest
from data import data_dir, reference_rows, simulate

FLAGS = {
    "fifo": ["--order", "fifo", "--backfill", "none"],
    "fifo-skip": ["--order", "fifo", "--backfill", "skip"],
    "easy": ["--order", "fifo", "--backfill", "easy"],
    "sjf": ["--order", "sjf", "--backfill", "none"],
    "sjf-skip": ["--order", "sjf", "--backfill", "skip"],
    "ssf-skip": ["--order", "ssf", "--backfill", "skip"],
    "srtf": ["--order", "srtf", "--backfill", "skip"],
    "srsf": ["--order", "srsf", "--backfill", "skip"],
    "las2d": ["--order", "las", "--backfill", "skip", "--param", "las.thresholds={param}"],
    "las2d-q": ["--order", "las", "--backfill", "skip", "--param", "las.round_s={param}"],
}
MEMBERS = {  # column of the reference -> member of our JSON
    "jobs": "jobs",
    "sum_jct_s": "sum_jct_s",
    "p50_s": "p50_jct_s",
    "p90_s": "p90_jct_s",
    "p99_s": "p99_jct_s",
    "preemptions": "preemptions",
    "max_waiting": "max_waiting",
}


def name(row):
    return "-".join(filter(None, (row["policy"], row["param"], row["G"]))) if row else "no-data"


@pytest.mark.parametrize("row", reference_rows("philly/refsim_results.csv"), ids=name)
def test_results_equal_the_reference_simulator(row):
    trace = data_dir("philly") / "philly.csv"
    param = row["param"].replace(" ", ",")
    flags = [flag.format(param=param) for flag in FLAGS[row["policy"]]]

    got = simulate(trace, "--cluster", f"{int(row['G']) // 8}x8", "--place", "count", *flags)

    assert {column: got[member] for column, member in MEMBERS.items()} == {
        column: int(row[column]) for column in MEMBERS}
