# SPDX-License-Identifier: Apache-2.0
"""The Helios Venus trace, 15 virtual clusters with real placement: every single job ends when the
published logs of the Lucid simulator say it ends."""
from decimal import Decimal

import pytest
from data import data_dir, read_csv, simulate

SHOWN = 10  # differences worth printing


def per_job(tmp_path, *policy):
    """What the program says about each job, by job id."""
    venus = data_dir("venus")
    out = tmp_path / "jobs.csv"
    simulate(venus / "jobs.csv", "--cluster", "135x8", "--split-by", "vc", "--pools",
             venus / "vc_nodes.csv", *policy, "--jobs-out", out)
    return {row["id"]: row for row in read_csv(out)}


def differences(got, columns):
    """Compares our columns with those of the reference, {ours: theirs}, for every job."""
    golden = {row["job_id"]: row for row in read_csv(data_dir("venus") / "golden_per_job.csv")}
    assert got.keys() == golden.keys()
    return [f"job {job} {ours}: got {got[job][ours]}, expected {golden[job][theirs]}"
            for job in golden for ours, theirs in columns.items()
            if Decimal(got[job][ours]) != Decimal(golden[job][theirs])]


def assert_same(got, columns):
    bad = differences(got, columns)
    assert not bad, f"{len(bad)} differences, the first:\n" + "\n".join(bad[:SHOWN])


@pytest.mark.parametrize("order", ["fifo", "sjf"])
def test_every_job_waits_and_ends_as_published(order, tmp_path):
    got = per_job(tmp_path, "--order", order, "--backfill", "none", "--place", "pack")
    assert_same(got, {"end_s": f"{order}_end_s", "wait_s": f"{order}_queue_s"})


@pytest.mark.parametrize("policy", ["srtf", "tiresias"])
def test_every_job_waits_is_preempted_and_ends_as_published(policy, tmp_path):
    got = per_job(tmp_path, "--bundle", f"lucid-{policy}")
    assert_same(got, {"end_s": f"{policy}_end_s", "wait_s": f"{policy}_queue_s",
                      "preemptions": f"{policy}_preempt"})
