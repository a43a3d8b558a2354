# SPDX-License-Identifier: Apache-2.0
"""The experiment of FGD (ATC 2023): pods come one at a time, nothing ends. The rules published there give the
published figures at every level of arrivals, for every trace and seed that the data has."""
import concurrent.futures
import csv
import gzip
import json
import os
import random
import statistics
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STOKER = os.path.join(ROOT, "build", "stoker")
DATA = os.path.join(os.environ.get("STOKER_DATA", os.path.join(ROOT, "..", "shared", "data")), "openb")
TRACES = ["cpu100", "default", "gpushare40", "gpushare80", "gpuspec20", "multigpu20"]
SEEDS = range(42, 52)
NAMES = {"BestFit": "bestfit", "DotProd": "dotprod", "GpuPacking": "gpupacking",
         "GpuClustering": "gpuclustering", "FGD": "fgd"}

pytestmark = pytest.mark.skipif(not os.path.isdir(DATA), reason=f"no openb data at {DATA}")


def fill(place, trace, seed, *options):
    out = subprocess.run([STOKER, "sim", "--format", "openb", f"{DATA}/pods_{trace}.csv", "--cluster",
                          f"{DATA}/nodes.csv", "--sequence", f"{DATA}/seq/{trace}.{seed}.gz", "--place", place,
                          "--json", *options], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["runs"][0]


def expected():
    with open(f"{DATA}/expected.csv", encoding="ascii") as f:
        return list(csv.DictReader(f))


def test_seed_42_to_the_last_digit():
    fgd = fill("fgd", "default", 42)
    assert (fgd["placed"], fgd["dropped"], fgd["used_milli"], fgd["frag_milli"]) == (8334, 2532, 5919410, 291361.65)
    at = fgd["arrivals"][100]
    assert at["pct"] == 100 and round(at["alloc_pct"], 2) == 95.14 and round(at["frag_pct"], 2) == 4.83
    best = fill("bestfit", "default", 42)
    assert (best["dropped"], best["used_milli"], best["frag_milli"]) == (2676, 5785450, 422360.83)
    assert round(best["arrivals"][100]["alloc_pct"], 2) == 92.94


@pytest.mark.parametrize("published", NAMES)
def test_published_figures(published):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {t: list(pool.map(lambda s, t=t: fill(NAMES[published], t, s), SEEDS)) for t in TRACES}
    checked = 0
    for row in expected():
        if row["policy"] != published or row["trace"] not in runs:
            continue
        pct = int(row["arrived_pct"])
        at = [r["arrivals"][pct] for r in runs[row["trace"]]]
        alloc = statistics.mean(a["alloc_pct"] for a in at)
        frag = statistics.mean(a["frag_pct"] for a in at)
        assert abs(alloc - float(row["alloc_pct_mean"])) <= 0.01, (row, alloc)
        assert abs(frag - float(row["frag_pct_of_total_mean"])) <= 0.01, (row, frag)
        checked += 1
    assert checked >= 6 * 9


def test_chance_is_fair():
    """Its own numbers, so the published mean is met within what ten runs may differ by."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for trace in ("default", "multigpu20"):
            runs = list(pool.map(lambda s, t=trace: fill("random", t, s, "--param", f"random.seed={s}"), SEEDS))
            for row in expected():
                if row["policy"] != "Random" or row["trace"] != trace or int(row["arrived_pct"]) < 100:
                    continue
                at = [r["arrivals"][int(row["arrived_pct"])]["alloc_pct"] for r in runs]
                spread = max(float(row["alloc_pct_std"]), statistics.stdev(at)) * (2 / 10) ** 0.5
                assert abs(statistics.mean(at) - float(row["alloc_pct_mean"])) < 4 * spread + 0.01, (row, at)


# ---- running pods that move ----

def rows(path):
    with open(path, encoding="ascii") as f:
        return list(csv.DictReader(f))


def check_places(path, trace, run):
    """Who is where at the end, looked at without our code: every pod that was placed is there, once, on GPUs of a
    type it accepts, and no GPU, CPU or memory is given twice."""
    pods, nodes = rows(f"{DATA}/pods_{trace}.csv"), rows(f"{DATA}/nodes.csv")
    left = [{"cpu": int(n["cpu_milli"]), "mem": int(n["memory_mib"]), "gpus": [1000] * int(n["gpu"])} for n in nodes]
    placed, used = rows(path), 0
    assert len(placed) == run["placed"] == len({p["arrival"] for p in placed})
    for p in placed:
        pod, node = pods[int(p["job"])], left[int(p["node"])]
        gpus = [int(g) for g in p["gpus"].split()]
        milli = int(pod["gpu_milli"]) if int(pod["num_gpu"]) == 1 else 1000
        assert len(gpus) == len(set(gpus)) == int(pod["num_gpu"])
        assert not gpus or not pod["gpu_spec"] or nodes[int(p["node"])]["model"] in pod["gpu_spec"].split("|")
        node["cpu"] -= int(pod["cpu_milli"])
        node["mem"] -= int(pod["memory_mib"])
        for g in gpus:
            node["gpus"][g] -= milli
            used += milli
        assert node["cpu"] >= 0 and node["mem"] >= 0 and min(node["gpus"] or [0]) >= 0, p
    assert used == run["used_milli"]


@pytest.mark.parametrize("place", ["stoker", "fgd"])
@pytest.mark.parametrize("trace", ["default", "gpuspec20"])
def test_moves_make_room_and_lose_nobody(trace, place, tmp_path):
    """At most 2% of placements are moves; more is given away than without, and by ours 98% of what a linear program
    allows even with pods left out at will (96.98 for both traces)."""
    plain = fill(place, trace, 42)
    run = fill(place, trace, 42, "--defrag", "--jobs-out", f"{tmp_path}/places.csv")
    check_places(f"{tmp_path}/places.csv", trace, run)
    assert plain["migrations"] == 0 < run["migrations"] <= 0.02 * run["placed"]
    assert run["migrated_gpus"] <= run["migrations"]  # pods with several GPUs are not what moves here
    assert run["used_milli"] >= plain["used_milli"]
    at = run["arrivals"][100]["alloc_pct"]
    assert at >= plain["arrivals"][100]["alloc_pct"]
    assert place != "stoker" or at >= 0.98 * 96.98


# ---- our own ----

def shuffled(trace, seed, folder):
    """The same pods in the same order; the nodes in another."""
    with gzip.open(f"{DATA}/seq/{trace}.{seed}.gz", "rt", encoding="ascii") as f:
        words = f.read().split()
    n, nodes = int(words[0]), int(words[1])
    ranks = words[3 + n:3 + n + nodes]
    random.Random(seed).shuffle(ranks)
    path = os.path.join(folder, f"{trace}.{seed}")
    with open(path, "w", encoding="ascii") as f:
        f.write(" ".join(words[:3]) + "\n" + "\n".join(words[3:3 + n] + ranks) + "\n")
    return path


def published_fgd():
    return {r["trace"]: float(r["alloc_pct_mean"]) for r in expected()
            if r["policy"] == "FGD" and r["arrived_pct"] == "100"}


def test_ours_is_better_and_needs_no_lucky_order(tmp_path):
    published, gains = published_fgd(), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for trace in TRACES:
            runs = list(pool.map(lambda s, t=trace: fill("stoker", t, s), SEEDS))
            mean = statistics.mean(r["arrivals"][100]["alloc_pct"] for r in runs)
            gains.append(mean - published[trace])
            assert gains[-1] > 0.5, (trace, mean)
            other = fill("stoker", trace, 42, "--sequence", shuffled(trace, 42, tmp_path))
            assert abs(other["arrivals"][100]["alloc_pct"] - runs[0]["arrivals"][100]["alloc_pct"]) <= 0.3, trace
    assert statistics.mean(gains) > 0.9, gains


def test_ours_is_better_when_it_learns_what_comes():
    """Nobody says in advance what pods there are: the mix is that of those that have come."""
    published, gains = published_fgd(), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for trace in TRACES:
            runs = pool.map(lambda s, t=trace: fill("stoker", t, s, "--param", "sim.mix=learned"), SEEDS)
            gains.append(statistics.mean(r["arrivals"][100]["alloc_pct"] for r in runs) - published[trace])
    assert statistics.mean(gains) >= 0.5 and min(gains) > 0, gains
