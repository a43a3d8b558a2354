# SPDX-License-Identifier: Apache-2.0
"""A trace of Blox's generator, scheduled in 300 s rounds on 120 one-GPU slots: the averages that Blox
itself reports over its measured window, jobs 1500 to 1700."""
import pytest
from data import data_dir, simulate

TRACE = "blox_philly_exp_single_load7_seed1.csv"


# Preemptions are those of the whole run. Blox stops counting when its window is done, so its own
# numbers are lower (las 6467, srtf 942).
@pytest.mark.parametrize("order, avg_jct_s, preemptions", [
    ("fifo", 55872.09, 0),
    ("las", 58490.00, 6480),
    ("srtf", 55781.05, 1026),
])
def test_average_and_preemptions_are_those_of_blox(order, avg_jct_s, preemptions):
    got = simulate(data_dir("blox") / TRACE, "--format", "blox", "--cluster", "120x1",
                   "--place", "count", "--param", "round_s=300", "--measure", "1500-1700",
                   "--order", order, "--backfill", "skip")
    assert round(got["avg_jct_s"], 2) == avg_jct_s
    assert got["preemptions"] == preemptions
