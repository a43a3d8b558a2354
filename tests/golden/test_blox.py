# SPDX-License-Identifier: Apache-2.0
"""A trace of Blox's generator, scheduled in 300 s rounds on 120 one-GPU slots: the averages that Blox
itself reports over its measured window, jobs 1500 to 1700."""
import pytest
from data import data_dir, simulate

TRACE = "blox_philly_exp_single_load7_seed1.csv"


@pytest.mark.parametrize("order, avg_jct_s, preemptions, rounds", [
    ("fifo", 55872.09, 0, 4752),
    ("las", 58490.00, 6467, 5746),
    ("srtf", 55781.05, 942, 5329),
])
def test_averages_preemptions_and_rounds_are_those_of_blox(order, avg_jct_s, preemptions, rounds):
    got = simulate(data_dir("blox") / TRACE, "--format", "blox", "--cluster", "120x1",
                   "--param", "round_s=300", "--measure", "1500-1700", "--order", order)
    assert round(got["avg_jct_s"], 2) == avg_jct_s
    assert got["preemptions"] == preemptions
    assert got["rounds"] == rounds
    assert got["jobs"] == got["finished"] == 201
