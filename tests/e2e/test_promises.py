# SPDX-License-Identifier: Apache-2.0
"""What backfill promises, where it is hardest to keep: fragments, CPU, jobs that outrun their estimate."""
import json

import pytest
from data import read_csv, simulate, stoker_run


def starts(tmp_path, jobs, *args):
    """When each job started, by id."""
    trace, out = tmp_path / "t.jsonl", tmp_path / "out.csv"
    trace.write_text("".join(json.dumps(j) + "\n" for j in jobs))
    simulate(trace, *args, "--jobs-out", out, "--paranoid")
    return {r["id"]: float(r["first_start_s"]) for r in read_csv(out)}


def job(name, submit, duration, gpus, **more):
    return {"id": name, "submit_s": submit, "duration_s": duration, "gpus": gpus, **more}


def stream(first, step, count, duration, gpus, **more):
    return [job(f"s{i}", first + i * step, duration, gpus, **more) for i in range(count)]


@pytest.mark.parametrize("bundle", ["easy", "conservative", "default"])
def test_small_jobs_do_not_starve_one_that_waits_for_a_whole_node(bundle, tmp_path):
    jobs = [job("r1", 0, 100, 4), job("f1", 0, 5, 4), job("r2", 0, 100, 4), job("f2", 0, 5, 4),
            job("h", 1, 10, 8), *stream(20, 25, 200, 100, 4)]
    assert starts(tmp_path, jobs, "--cluster", "2x8", "--bundle", bundle)["h"] == 100


@pytest.mark.parametrize("bundle", ["easy", "conservative", "default"])
def test_a_job_that_outruns_its_estimate_costs_nobody_a_place_in_line(bundle, tmp_path):
    jobs = [job("r", 0, 1000, 6, estimate_s=10), job("h", 1, 10, 8), job("k1", 30, 5000, 2)]
    assert starts(tmp_path, jobs, "--cluster", "1x8", "--bundle", bundle)["h"] == 1000


@pytest.mark.parametrize("bundle", ["easy", "conservative", "default"])
def test_small_jobs_do_not_starve_one_that_waits_for_cpus(bundle, tmp_path):
    cluster = tmp_path / "c.yaml"
    cluster.write_text("nodes:\n- {count: 1, gpus: 8, cpus: 8}\n")
    jobs = [job("r", 0, 100, 1, cpus=4), job("h", 1, 10, 1, cpus=8),
            *stream(10, 40, 100, 100, 1, cpus=2)]
    assert starts(tmp_path, jobs, "--cluster", cluster, "--bundle", bundle)["h"] == 100


@pytest.mark.parametrize("bundle", ["easy", "default"])
def test_who_waits_for_a_licence_keeps_nobody_from_gpus_it_does_not_need(bundle, tmp_path):
    cluster = tmp_path / "c.yaml"
    cluster.write_text("nodes:\n- {gpus: 8, resources: {licence: 1}}\n")
    licence = {"resources": {"licence": 1}}
    jobs = [job("r", 0, 1000, 1, **licence), job("h", 1, 10, 4, **licence), job("beside", 2, 5000, 4),
            job("over", 2, 5000, 1), job("short", 2, 500, 3)]
    got = starts(tmp_path, jobs, "--cluster", cluster, "--bundle", bundle)
    assert got == {"r": 0, "h": 1000, "beside": 2, "over": 1010, "short": 2}


@pytest.mark.parametrize("bundle", ["easy", "conservative", "default"])
def test_small_jobs_do_not_starve_one_that_waits_for_a_licence(bundle, tmp_path):
    cluster = tmp_path / "c.yaml"
    cluster.write_text("nodes:\n- {gpus: 8, resources: {licence: 4}}\n")
    jobs = [job("r", 0, 100, 1, resources={"licence": 2}), job("h", 1, 10, 1, resources={"licence": 4}),
            *stream(10, 40, 100, 100, 1, resources={"licence": 1})]
    assert starts(tmp_path, jobs, "--cluster", cluster, "--bundle", bundle)["h"] == 100


def test_what_a_reserved_node_has_to_spare_is_used_when_it_comes_free(tmp_path):
    jobs = [job("a", 0, 20, 6), job("b", 0, 19, 6), job("c", 0, 10, 2), job("head", 1, 100, 14),
            job("long", 2, 500, 2)]
    got = starts(tmp_path, jobs, "--cluster", "2x8", "--bundle", "easy")
    assert (got["long"], got["head"]) == (10, 20)


def test_a_promise_is_made_anew_when_its_time_passes(tmp_path):
    jobs = [job("r1", 0, 100, 4, estimate_s=10), job("r2", 0, 12, 2), job("h", 1, 10, 6),
            job("k", 15, 50, 2)]
    got = starts(tmp_path, jobs, "--cluster", "1x8", "--bundle", "easy")
    assert (got["k"], got["h"]) == (15, 100)


def test_conservative_starts_jobs_in_the_holes_an_early_end_leaves(tmp_path):
    jobs = [job("r", 0, 10, 8, estimate_s=100), job("a", 1, 50, 8), job("b", 2, 10, 4)]
    got = starts(tmp_path, jobs, "--cluster", "1x8", "--bundle", "conservative")
    assert (got["a"], got["b"]) == (10, 60)


def test_conservative_plans_a_little_at_a_time_with_the_same_end(tmp_path):
    args = ["--generate", "jobs=400,gpus=64,load=3,seed=9,estimate_factor=3", "--cluster", "8x8",
            "--bundle", "conservative", "--paranoid"]
    assert simulate(*args, "--param", "backfill.depth=10")["finished"] == 400
    assert simulate(*args)["finished"] == 400


def test_a_demand_no_node_limits_makes_no_difference(tmp_path):
    plain = [job(i, i, 50, 1) for i in range(40)]
    named = [{**j, "mem_mib": 1000 + i, "cpus": 1 + i} for i, j in enumerate(plain)]
    args = ("--cluster", "1x8", "--bundle", "easy")
    assert starts(tmp_path, plain, *args) == starts(tmp_path, named, *args)


def test_utilization_is_right_beyond_sixty_four_bits(tmp_path):
    jobs = [job(i, 0, 100000000, 100000) for i in range(6)]
    trace = tmp_path / "t.jsonl"
    trace.write_text("".join(json.dumps(j) + "\n" for j in jobs))
    assert simulate(trace, "--cluster", "12500x8", "--bundle", "fifo")["utilization"] == 1


def test_a_run_that_only_preempts_is_ended_with_a_sentence(tmp_path):
    trace = tmp_path / "t.jsonl"
    trace.write_text("".join(json.dumps(job(i, 0, 100, 1)) + "\n" for i in (1, 2)))
    run = stoker_run("sim", trace, "--cluster", "1x1", "--order", "las", "--param", "las.round_s=60",
                     "--param", "restart_s=60")
    assert run.returncode == 1 and "no job has ended" in run.stderr
    run = stoker_run("sim", trace, "--cluster", "1x1", "--order", "las", "--param",
                     "las.round_s=0.000001")
    assert run.returncode == 2 and "at least 0.001" in run.stderr


def test_las_promotes_a_job_that_has_waited_long_enough(tmp_path):
    jobs = [job("long", 0, 100, 1), *[job(f"s{i}", 10 + 5 * i, 5, 1) for i in range(100)]]
    out = tmp_path / "out.csv"
    trace = tmp_path / "t.jsonl"
    trace.write_text("".join(json.dumps(j) + "\n" for j in jobs))

    def end_of_long(*args):
        simulate(trace, "--cluster", "1x1", "--order", "las", "--param", "las.thresholds=10",
                 "--jobs-out", out, "--paranoid", *args)
        return float(next(r["end_s"] for r in read_csv(out) if r["id"] == "long"))
    starved = end_of_long()
    assert starved == 600  # after the last of the short ones
    assert end_of_long("--param", "las.promote=1") == 550
