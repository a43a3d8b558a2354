# SPDX-License-Identifier: Apache-2.0
"""Real traces under every bundle that preempts: nobody gives way in a circle (src/core/cycles.h), and every
job ends. Traces know no priorities: each job has a tier and a class by its number, so that many give way."""
import json

import pytest
from data import data_dir, simulate, stoker

TIERS = ["best-effort", "standard", "standard", "critical"]
CLASSES = [100, 500, 500, 1000]
CLUSTERS = {"venus": ("jobs.csv", "60x8"), "philly": ("philly.csv", "20x8")}  # small: jobs wait
JOBS = 6000
BUNDLES = {
    "default": [],
    "priority": [],
    "srtf": [],
    "srsf": [],
    "las": [],
    "srsf, moved": ["--bundle", "srsf", "--defrag"],
    "lucid-srtf": ["--param", "restart_s=60"],
    "tier, protected": ["--bundle", "default", "--param", "preempt.min_run_s=600", "--param", "preempt.per_day=3"],
    "tier, killed": ["--bundle", "priority", "--param", "sim.leave=kill", "--param", "sim.checkpoint_s=1800", "--param", "restart_s=60",
                     "--param", "preempt.best_effort=kill", "--param", "preempt.standard=signal"],
    "tier, suspended": ["--bundle", "default", "--param", "sim.leave=suspend", "--param", "suspend_s=20"],
    "tier, moved": ["--bundle", "default", "--defrag"],
    "reclaim": ["--bundle", "default", "--preempt", "reclaim"],
    "reclaim, tenants": ["--bundle", "default", "--preempt", "reclaim", "--param", "reclaim.critical=any", "--tenants", "TENANTS"],
    "reclaim, tenants that keep jobs up": ["--bundle", "default", "--preempt", "reclaim", "--param", "reclaim.critical=any", "--param", "preempt.min_run_s=300",
                                           "--tenants", "KEEP"],
}


@pytest.fixture(scope="module", name="traces")
def some_of_each(tmp_path_factory):
    """The first jobs of each, with tiers and priorities."""
    folder, made = tmp_path_factory.mktemp("cycles"), {}
    for name, (file, cluster) in CLUSTERS.items():
        whole = folder / "whole.jsonl"
        stoker("sim", data_dir(name) / file, "--cluster", "2000x8", "--place", "count", "--bundle", "fifo", "--trace-out", whole, "--json")
        with open(whole, encoding="utf-8") as lines, open(folder / f"{name}.jsonl", "w", encoding="utf-8") as out:
            for i, line in zip(range(JOBS), lines):
                job = json.loads(line)
                out.write(json.dumps({**job, "tier": TIERS[i % 4], "priority": CLASSES[i // 4 % 4]}) + "\n")
        made[name] = (folder / f"{name}.jsonl", cluster)
        write_tenants(folder, name, cluster)
    return made


def write_tenants(folder, name, cluster):
    """Every virtual cluster is a tenant; together they are guaranteed half of the GPUs."""
    with open(folder / f"{name}.jsonl", encoding="utf-8") as lines:
        groups = sorted({json.loads(line)["group"] for line in lines})
    nodes, gpus = map(int, cluster.split("x"))
    for kind, more in (("TENANTS", ""), ("KEEP", ", keep_up: 2")):
        rows = "".join(f"  - {{name: {json.dumps(g)}, guarantee: {nodes * gpus // 2 // len(groups)}{more}}}\n" for g in groups)
        (folder / f"{name}.{kind}").write_text("tenants:\n" + rows, encoding="utf-8")


@pytest.mark.parametrize("bundle", BUNDLES)
@pytest.mark.parametrize("name", CLUSTERS)
def test_nobody_gives_way_in_a_circle(traces, name, bundle):
    trace, cluster = traces[name]
    words = [str(trace.with_suffix("." + w)) if w in ("TENANTS", "KEEP") else w for w in BUNDLES[bundle]]
    run = simulate(trace, "--cluster", cluster, *(words or ["--bundle", bundle]))
    assert run["cycles"] == 0
    assert run["preemptions"] > 0
    assert run["finished"] == JOBS
