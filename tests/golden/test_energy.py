# SPDX-License-Identifier: Apache-2.0
"""The Venus trace on nodes that say what they draw: energy saved by switching empty nodes off, and a power cap."""
import pytest
from data import data_dir, simulate

POWER = "{idle_w: 800, gpu_w: 400, off_w: 20, boot_s: 120}"


@pytest.fixture(name="venus")
def fixture_venus(tmp_path):
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(f"nodes:\n  - {{count: 135, gpus: 8, power: {POWER}}}\n")
    path = data_dir("venus") / "jobs.csv"

    def run(place, *more):
        return simulate(path, "--cluster", cluster, "--order", "fifo", "--backfill", "skip", "--place", place, *more)
    return run


def test_switching_empty_nodes_off_saves_energy_and_costs_little_time(venus):
    pack, spread, energy = (venus(place) for place in ("pack", "spread", "energy"))
    assert pack["energy_kwh"] == pytest.approx(341415, rel=1e-4)
    assert spread["energy_kwh"] == pytest.approx(341419, rel=1e-4)
    assert energy["energy_kwh"] == pytest.approx(304897, rel=1e-4)
    assert energy["node_hours_on"] == pytest.approx(78506, rel=1e-4)
    assert energy["avg_wait_s"] < pack["avg_wait_s"] + 10
    # what busy GPUs draw is the same whatever the policy
    assert energy["gpu_hours"] == pack["gpu_hours"]


@pytest.mark.parametrize("cap_w", [300000, 150000])
def test_a_cap_is_kept_over_a_month(venus, cap_w):
    run = venus("energy", "--param", f"energy.cap_w={cap_w}")
    assert run["peak_w"] <= cap_w
    assert run["finished"] == run["jobs"]
