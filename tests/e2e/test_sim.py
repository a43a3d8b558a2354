# SPDX-License-Identifier: Apache-2.0
"""`stoker sim` as a user meets it: what it prints, what it writes, what it refuses and how."""
import csv
import gzip
import html.parser
import json
import os
import pty
import re
import subprocess

import pytest
from data import data_dir, program, read_csv, simulate, stoker, stoker_run

SMALL = ["--generate", "jobs=300,gpus=64,load=1.1,seed=3", "--cluster", "8x8"]
MEMBERS = ["bundle", "jobs", "finished", "sum_jct_s", "avg_jct_s", "p50_jct_s", "p90_jct_s",
           "p99_jct_s", "avg_wait_s", "p999_wait_s", "avg_bounded_slowdown", "makespan_s",
           "utilization", "gpu_hours", "preemptions", "cycles", "migrations", "migrated_gpus",
           "restarts_cost_gpu_s", "max_waiting", "events",
           "decisions", "cpu_s", "rss_mib", "digest"]


def jsonl(tmp_path, *jobs, name="t.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(j) + "\n" for j in jobs))
    return path


def rows(tmp_path, *args):
    """Simulates and returns the rows of --jobs-out by id."""
    out = tmp_path / "jobs.csv"
    stoker("sim", *args, "--json", "--jobs-out", out)
    return {r["id"]: r for r in read_csv(out)}


def refused(*args):
    run = stoker_run("sim", *args)
    assert run.returncode == 2, run
    assert run.stdout == ""
    assert run.stderr.startswith("stoker sim: ") and run.stderr.count("\n") == 1, run.stderr
    return run.stderr


def test_json_has_the_promised_members_in_order():
    (run,) = stoker("sim", *SMALL, "--json")["runs"]
    assert list(run)[:len(MEMBERS)] == MEMBERS
    assert run["jobs"] == run["finished"] == 300
    assert re.fullmatch("[0-9a-f]{16}", run["digest"])


UNLIKE = """nodes:
  - {gpus: 8, gpu_type: h100, resources: {licence: 1}}
  - {count: 2, gpus: 8, gpu_type: a100, resources: {nvme_gib: 100}}
"""


def test_jobs_run_as_fast_as_the_gpus_they_get(tmp_path):
    cluster = tmp_path / "c.yaml"
    cluster.write_text(UNLIKE)
    job = {"submit_s": 0, "duration_s": 100, "gpus": 8, "gpu_types": {"h100": 1, "a100": 0.5}}
    trace = jsonl(tmp_path, *[{"id": i} | job for i in range(4)])
    for bundle in ["fifo", "easy", "default", "srtf"]:
        done = rows(tmp_path, trace, "--cluster", cluster, "--bundle", bundle, "--paranoid")
        assert [done[str(i)]["end_s"] for i in range(4)] == ["100", "200", "200", "200"], bundle


def test_what_was_done_at_one_speed_counts_after_a_preemption(tmp_path):
    trace = jsonl(tmp_path, {"id": "long", "submit_s": 0, "duration_s": 100, "gpus": 8, "gpu_types": {"a100": 0.5}},
                  {"id": "short", "submit_s": 60, "duration_s": 10, "gpus": 8},
                  {"id": "fast", "submit_s": 300, "duration_s": 100, "gpus": 8, "gpu_types": {"a100": 2.5}},
                  {"id": "soon", "submit_s": 310, "duration_s": 10, "gpus": 8})
    done = rows(tmp_path, trace, "--cluster", "1x8:a100", "--bundle", "srtf", "--paranoid")
    assert {i: (r["end_s"], r["preemptions"]) for i, r in done.items()} == {
        "long": ("210", "1"), "short": ("70", "0"), "fast": ("350", "1"), "soon": ("320", "0")}


def test_jobs_share_named_resources(tmp_path):
    cluster = tmp_path / "c.yaml"
    cluster.write_text(UNLIKE)
    job = {"submit_s": 0, "duration_s": 100, "gpus": 1}
    trace = jsonl(tmp_path, {"id": 1, "resources": {"licence": 1}} | job,
                  {"id": 2, "resources": {"licence": 1}} | job,
                  {"id": 3, "resources": {"nvme_gib": 60}} | job,
                  {"id": 4, "resources": {"nvme_gib": 60}} | job,
                  {"id": 5, "resources": {"nvme_gib": 60}} | job)
    done = rows(tmp_path, trace, "--cluster", cluster, "--bundle", "fifo", "--backfill", "skip", "--paranoid")
    assert [done[str(i)]["first_start_s"] for i in range(1, 6)] == ["0", "100", "0", "0", "100"]
    trace = jsonl(tmp_path, {"id": "a", "resources": {"licence": 4}} | job)
    assert "job a asks for 4 of licence on one node; the most that a node it may use has is 1" in refused(
        trace, "--cluster", cluster)


def test_the_same_input_gives_the_same_digest_and_another_seed_does_not():
    a, b = simulate(*SMALL), simulate(*SMALL)
    c = simulate("--generate", "jobs=300,gpus=64,load=1.1", "--cluster", "8x8", "--seed", "4")
    assert a["digest"] == b["digest"] != c["digest"]


def test_where_no_tenants_are_given_the_default_is_by_tier_and_priority(tmp_path):
    busy = ["--generate", "jobs=2000,gpus=64,load=1.2,seed=3,tenants=5,mix=sample", "--cluster", "8x8"]
    plain = simulate(*busy, "--order", "priority", "--backfill", "easy", "--place", "stoker", "--preempt", "tier")
    assert plain["preemptions"] > 0
    assert simulate(*busy)["digest"] == simulate(*busy, "--bundle", "default")["digest"] == plain["digest"]
    teams = ["--order", "fairshare", "--backfill", "easy", "--place", "stoker", "--preempt", "reclaim"]
    path = limits(tmp_path, "tenants: [{name: tenant-1, guarantee: 8}, {name: tenant-2}]")
    assert simulate(*busy, "--lenient", "--tenants", path)["policies"] == simulate(*busy, *teams)["policies"]
    assert simulate(*busy, *teams[:-1], "tier")["digest"] == simulate(*busy, *teams)["digest"]


def test_compare_gives_each_bundle_the_result_it_has_alone():
    names = ["fifo", "sjf", "srtf", "las", "conservative", "default", "priority"]
    runs = stoker("sim", *SMALL, "--compare", ",".join(names), "--json")["runs"]
    assert [r["bundle"] for r in runs] == names
    for run in runs:
        assert run["digest"] == simulate(*SMALL, "--bundle", run["bundle"])["digest"]


def test_list_names_every_bundle_and_each_bundle_runs():
    text = stoker_run("sim", "--list").stdout
    table = text.split("bundles\n")[1].split("\n\n")[0].splitlines()[1:]
    names = [line.split()[0] for line in table]
    assert {"default", "fifo", "sjf", "ssf", "srtf", "srsf", "las", "easy"} <= set(names)
    for name in names:
        if name != "hetero" and not name.startswith("gavel-"): # those: test_bundles_for_unlike_gpus_run
            assert simulate(*SMALL, "--bundle", name)["finished"] == 300


def gavel(tmp_path, *jobs, **kinds):
    """A Gavel trace of (kind, steps, GPUs, arrival); kinds: speeds on "fast" and "slow"."""
    table = {"v100": {}, "fast": {}, "slow": {}}
    for kind, (fast, slow) in kinds.items():
        for gpus in (1, 2):
            name = f"('{kind}', {gpus})"
            table["fast"][name] = table["v100"][name] = {"null": fast}
            table["slow"][name] = {"null": slow}
    (tmp_path / "simulation_throughputs.json").write_text(json.dumps(table))
    path = tmp_path / "t.trace"
    path.write_text("".join(f"{kind}\tcmd\tdir\t-n\t1\t{steps}\t{gpus}\t1\t-1\t{at}\n"
                            for kind, steps, gpus, at in jobs))
    return path


def test_bundles_for_unlike_gpus_run(tmp_path):
    trace = gavel(tmp_path, *[("ab"[i % 2], 500 + 100 * i, 1 + i % 2, 50 * i) for i in range(20)],
                  a=(5, 4), b=(5, 0.5))
    text = stoker_run("sim", "--list").stdout
    names = [n for n in re.findall(r"^ *(\S+)", text.split("bundles\n")[1].split("\n\n")[0], re.M)
             if n == "hetero" or n.startswith("gavel-")]
    assert len(names) == 10
    for name in names:
        assert simulate(trace, "--cluster", "2x1:fast+4x1:slow", "--bundle", name, "--paranoid")["finished"] == 20


def test_a_job_goes_where_its_speed_counts_most(tmp_path):
    trace = gavel(tmp_path, ("even", 2700, 1, 0), ("picky", 3600, 1, 0), even=(10, 9), picky=(10, 1))
    got = rows(tmp_path, trace, "--cluster", "1x1:fast+1x1:slow", "--bundle", "hetero")
    assert float(got["0"]["end_s"]) == 300 # the first to come is on the slow one
    assert float(got["1"]["end_s"]) == 360


def test_what_advice_needs_is_said(tmp_path):
    run = stoker_run("sim", *SMALL, "--bundle", "hetero")
    assert run.returncode == 2 and "needs a trace that counts steps" in run.stderr
    run = stoker_run("sim", *SMALL, "--order", "advised", "--preempt", "none")
    assert run.returncode == 2 and "go together" in run.stderr
    trace = gavel(tmp_path, ("a", 10, 1, 0), a=(1, 1))
    run = stoker_run("sim", trace, "--cluster", "1x1:fast+1x1:other", "--bundle", "hetero")
    assert run.returncode == 2 and "on every GPU type of the cluster" in run.stderr


def test_json_lines_count_steps_too(tmp_path):
    trace = gavel(tmp_path, ("a", 3600, 1, 0), ("b", 3600, 2, 90), a=(10, 9), b=(10, 1))
    out = tmp_path / "t.jsonl"
    args = "--cluster", "2x1:fast+2x1:slow", "--bundle", "hetero"
    first = simulate(trace, *args, "--trace-out", out)
    assert simulate(out, *args)["digest"] == first["digest"]
    line = {"id": 1, "submit_s": 0, "duration_s": 9, "steps": 100, "job_type": "('a', 1)"}
    got = rows(tmp_path, jsonl(tmp_path, line), "--cluster", "1x1:fast")
    assert float(got["1"]["end_s"]) == 10
    for wrong, why in [({"job_type": "x"}, "a kind of job that the throughputs have"),
                       ({"steps": 0}, "a whole number (1 to")]:
        run = stoker_run("sim", jsonl(tmp_path, {**line, **wrong}), "--cluster", "1x1:fast")
        assert run.returncode == 2 and why in run.stderr
    del line["steps"]
    run = stoker_run("sim", jsonl(tmp_path, line), "--cluster", "1x1:fast")
    assert run.returncode == 2 and "go together" in run.stderr


def test_neighbours_on_one_gpu_slow_each_other_down(tmp_path):
    table = {"fast": {"a": {"null": 10, "b": [5, 4]}, "b": {"null": 10, "a": [4, 5]}}}
    (tmp_path / "simulation_throughputs.json").write_text(json.dumps(table))
    job = {"submit_s": 0, "duration_s": 1, "gpu_milli": 500, "tasks": 1}
    got = rows(tmp_path, jsonl(tmp_path, {**job, "id": 1, "steps": 100, "job_type": "a"},
                               {**job, "id": 2, "steps": 100, "job_type": "b"}), "--cluster", "1x1:fast")
    assert float(got["1"]["end_s"]) == 20
    assert float(got["2"]["end_s"]) == 22 # 80 steps at 4, then 20 at 10


def test_speeds_are_checked(tmp_path):
    trace = gavel(tmp_path, ("a", 10, 1, 0), a=(1, "quick"))
    run = stoker_run("sim", trace, "--cluster", "1x1:fast")
    assert run.returncode == 2 and "expected steps per second" in run.stderr
    trace = gavel(tmp_path, ("a", 36, 1, 0), a=(1, 0))
    got = rows(tmp_path, trace, "--cluster", "1x1:slow+1x1:fast", "--order", "fifo")
    assert float(got["0"]["end_s"]) == 36 # it does not run on the slow one


@pytest.mark.parametrize("order", ["fifo", "priority", "sjf", "ssf", "srtf", "srsf", "las"])
@pytest.mark.parametrize("place", ["pack", "first_fit", "spread", "count"])
def test_paranoid_finds_nothing(order, place):
    mix = ["--generate", "mix=sample,jobs=150,seed=5,load=1.2", "--cluster", "8x8"]
    run = simulate(*mix, "--order", order, "--place", place, "--paranoid", "--param", "restart_s=30")
    assert run["finished"] == 150


def test_jobs_out_has_one_row_per_job_in_trace_order_and_trace_time(tmp_path):
    trace = jsonl(tmp_path, {"id": "a", "submit_s": 5, "duration_s": 10, "gpus": 8},
                  {"id": "b", "submit_s": 6, "duration_s": 2.5, "gpus": 1})
    out = tmp_path / "jobs.csv"
    stoker("sim", trace, "--cluster", "1x8", "--json", "--jobs-out", out, "--bundle", "fifo")
    assert out.read_text().splitlines() == [
        "id,submit_s,first_start_s,end_s,wait_s,preemptions,nodes",
        "a,5,5,15,0,0,1", "b,6,15,17.5,9,0,1"]


def test_restart_cost_is_charged_by_size(tmp_path):
    trace = jsonl(tmp_path, {"id": "long", "submit_s": 0, "duration_s": 1000, "gpus": 8},
                  {"id": "short", "submit_s": 100, "duration_s": 50, "gpus": 8})
    for cost, end in ("0", 1050), ("30", 1080), ("4:7,*:60", 1110), ("8:40,*:60", 1090):
        r = rows(tmp_path, trace, "--cluster", "1x8", "--order", "srtf", "--param", f"restart_s={cost}")
        assert (r["short"]["end_s"], r["long"]["end_s"]) == ("150", str(end))
        assert r["long"]["preemptions"] == "1"
    assert rows(tmp_path, trace, "--cluster", "1x8", "--order", "srtf", "--preempt",
                "none")["long"]["end_s"] == "1000"


def test_a_higher_tier_takes_the_place_of_a_lower_one(tmp_path):
    trace = jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 100, "gpus": 8, "tier": "best-effort"},
                  {"id": 2, "submit_s": 10, "duration_s": 20, "gpus": 4, "tier": "critical"},
                  {"id": 3, "submit_s": 10, "duration_s": 20, "gpus": 4, "tier": "best-effort"})
    r = rows(tmp_path, trace, "--cluster", "1x8", "--order", "priority")
    assert r["2"]["first_start_s"] == "10" and r["1"]["preemptions"] == "1"
    r = rows(tmp_path, trace, "--cluster", "1x8", "--order", "priority", "--preempt", "none")
    assert r["2"]["first_start_s"] == "100"


def test_a_lower_tier_that_starts_later_still_gives_way(tmp_path):
    trace = jsonl(tmp_path,
                  {"id": "c1", "submit_s": 0, "duration_s": 100, "gpus": 4, "tier": "critical"},
                  {"id": "c2", "submit_s": 0, "duration_s": 50, "gpus": 4, "tier": "critical"},
                  {"id": "j", "submit_s": 10, "duration_s": 100, "gpus": 8, "tier": "critical"},
                  {"id": "b", "submit_s": 20, "duration_s": 10000, "gpus": 4, "tier": "best-effort"})
    assert rows(tmp_path, trace, "--cluster", "1x8", "--bundle", "priority")["j"]["end_s"] == "200"


def test_dependencies_hold_jobs_back_and_end_those_that_cannot_run(tmp_path):
    def after(on, how):
        return [{"on": on, "type": how}]
    base = {"submit_s": 0, "duration_s": 10, "gpus": 1}
    trace = jsonl(tmp_path, {"id": "good", **base}, {"id": "bad", **base, "ends": "failed"},
                  {"id": "1", **base, "after": after("good", "afterok")},
                  {"id": "2", **base, "after": after("bad", "afterok")},
                  {"id": "3", **base, "after": after("bad", "afternotok")},
                  {"id": "4", **base, "after": after("2", "afterany")})
    r = rows(tmp_path, trace, "--cluster", "1x8")
    assert [r[k]["first_start_s"] for k in "1234"] == ["10", "", "10", "10"]


def test_gangs_start_whole_and_gpu_types_are_kept(tmp_path):
    trace = jsonl(tmp_path, {"id": "gang", "submit_s": 0, "duration_s": 10, "gpus": 4, "tasks": 3},
                  {"id": "v", "submit_s": 1, "duration_s": 10, "gpus": 8, "gpu_types": ["v100"]})
    r = rows(tmp_path, trace, "--cluster", "2x8:a100+1x8:v100", "--bundle", "fifo")
    assert r["gang"]["nodes"] == "2" and r["v"]["nodes"] == "1"


def mig_cluster(tmp_path):
    path = tmp_path / "mig.yaml"
    path.write_text("nodes:\n  - {gpus: 1, gpu_type: H200, mig: true}\n  - {gpus: 1, gpu_type: H200}\n")
    return path


@pytest.mark.parametrize("place", ["pack", "spread", "fgd", "count"])
def test_mig_instances_share_a_gpu_that_whole_jobs_do_not_get(tmp_path, place):
    one = {"submit_s": 0, "duration_s": 10}
    trace = jsonl(tmp_path, *[{"id": i, **one, "mig": "1g.18gb"} for i in range(8)],
                  {"id": 8, **one}, {"id": 9, **one, "gpu_types": ["H200"]})
    r = rows(tmp_path, trace, "--cluster", mig_cluster(tmp_path), "--place", place, "--order", "fifo",
             "--backfill", "skip", "--paranoid")
    starts = [r[str(i)]["first_start_s"] for i in range(10)]
    if place != "count":
        assert starts == ["0"] * 7 + ["10", "0", "10"]


@pytest.mark.parametrize("job,says", [
    ({"mig": "1g.10gb"}, "asks for a MIG instance 1g.10gb that no GPU"),
    ({"mig": "1g"}, "the name of a MIG profile such as"),
    ({"mig": "1g.18gb", "gpus": 2}, '"gpus" must be 1'),
    ({"mig": "1g.18gb", "gpu_milli": 100}, "says it all"),
    ({"gpus": 2}, "the most that a node it may use has is 1 GPU"),
])
def test_what_no_gpu_in_mig_mode_can_give_is_refused(tmp_path, job, says):
    trace = jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 1, "tasks": 1, **job})
    assert says in refused(trace, "--cluster", mig_cluster(tmp_path))


def test_a_trace_survives_being_written_and_read(tmp_path):
    out = tmp_path / "copy.jsonl"
    a = simulate("--generate", "mix=sample,jobs=200,estimate_factor=2", "--cluster", "8x8",
                 "--trace-out", out)
    assert simulate(out, "--cluster", "8x8")["digest"] == a["digest"]
    packed = tmp_path / "copy.jsonl.gz"
    packed.write_bytes(gzip.compress(out.read_bytes()))
    assert simulate(packed, "--cluster", "8x8")["digest"] == a["digest"]
    run = subprocess.run([program(), "sim", "-", "--cluster", "8x8", "--json"], input=out.read_bytes(),
                         capture_output=True, check=True)
    assert json.loads(run.stdout)["runs"][0]["digest"] == a["digest"]


@pytest.mark.parametrize("path,cluster", [
    ("philly/philly.csv", "128x8"), ("venus/jobs.csv", "135x8"), ("openb/pods_default.csv", None),
    ("blox/blox_philly_exp_single_load7_seed1.csv", "120x1"), ("gavel/small_test.trace", "36x1")])
def test_public_formats_are_detected(path, cluster):
    data = data_dir()
    run = simulate(data / path, "--cluster", cluster or data / "openb" / "nodes.csv")
    assert run["finished"] == run["jobs"] > 0


def test_swf_is_read(tmp_path):
    line = "{id} {submit} -1 {run} {procs} -1 -1 {procs} {asked} -1 1 7 1 -1 1 1 -1 -1\n"
    path = tmp_path / "t.swf"
    path.write_text("; a comment\n" +
                    line.format(id=1, submit=0, run=100, procs=4, asked=200) +
                    line.format(id=2, submit=10, run=50, procs=8, asked=60))
    r = rows(tmp_path, path, "--cluster", "1x8", "--bundle", "fifo")
    assert [r["1"]["end_s"], r["2"]["end_s"]] == ["100", "150"]


SACCT = "JobIDRaw|JobID|User|Account|Partition|Submit|Eligible|Start|ElapsedRaw|TimelimitRaw|State|NNodes|ReqTRES|AllocTRES\n"


def sacct_row(job, at, wait, run, gpus, nodes=1, account="nlp", state="COMPLETED", limit=30):
    stamp = lambda s: f"2026-10-05T{8 + s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}"
    return (f"{job}|{job}|ann|{account}|gpu|{stamp(at)}|{stamp(at)}|{stamp(at + wait)}|{run}|{limit}|{state}|{nodes}|"
            f"billing=8,cpu=8,gres/gpu={gpus},mem=64G,node={nodes}|cpu=8,gres/gpu:a100={gpus},gres/gpu={gpus},node={nodes}\n"
            f"{job}.batch|{job}.batch||{account}||{stamp(at + wait)}|{stamp(at + wait)}|{stamp(at + wait)}|{run}||{state}|1||cpu=8\n")


def test_the_past_of_a_slurm_cluster_is_replayed(tmp_path):
    """Slurm ran these one after the other; the second could have run beside the first."""
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT + sacct_row(1, 0, 0, 1800, 8) + sacct_row(2, 60, 1740, 600, 16, nodes=2, account="vision") +
                    sacct_row(3, 120, 2280, 60, 4, state="CANCELLED by 1000", limit=10))
    run = stoker_run("sim", path, "--recorded", "--compare", "fifo,easy", "--json")
    assert run.returncode == 0
    assert "2x8:a100 is guessed" in run.stderr
    runs = {r["bundle"]: r for r in json.loads(run.stdout)["runs"]}
    assert list(runs) == ["recorded", "fifo", "easy"]
    assert runs["recorded"]["avg_wait_s"] == runs["fifo"]["avg_wait_s"] == (0 + 1740 + 2280) / 3
    assert runs["recorded"]["p99_jct_s"] == 2340 and runs["recorded"]["max_waiting"] == 2
    assert runs["recorded"]["utilization"] == runs["fifo"]["utilization"]
    assert runs["easy"]["avg_wait_s"] == (0 + 1740 + 0) / 3
    fair = runs["recorded"]["fairness"]
    assert fair["jain"] == runs["fifo"]["fairness"]["jain"] and {t["tenant"] for t in fair["tenants"]} == {"nlp", "vision"}
    out = tmp_path / "copy.jsonl"
    assert stoker_run("sim", path, "--trace-out", out, "--html", tmp_path / "r.html", "--recorded").returncode == 0
    again = stoker_run("sim", out, "--recorded", "--json")
    assert json.loads(again.stdout)["runs"][0]["avg_wait_s"] == runs["recorded"]["avg_wait_s"]


def test_what_is_missing_in_a_file_of_sacct_is_named(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text("JobID|State|Elapsed\n")
    assert "no column Submit or Eligible; make the file with: sacct -aXP" in refused(path)
    path.write_text(SACCT.replace("|Start", ""))
    assert "has no jobs" in refused(path, "--cluster", "1x8")
    path.write_text("job_id,submit_s,gpus,duration_s,vc\n0,0,1,10,a\n")
    assert "--cluster is missing" in refused(path)
    assert "how long it waited" in refused(path, "--cluster", "1x8", "--recorded")


def test_a_malformed_line_is_named_and_lenient_counts_it(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("job_id,submit_s,gpus,duration_s,vc\n0,0,1,10,a\n1,0,x,10,a\n2,5,1,10,a\n")
    assert f"{path.name}:3: expected" in refused(path, "--cluster", "1x8")
    run = stoker_run("sim", path, "--cluster", "1x8", "--lenient", "--json")
    assert run.returncode == 0 and "1 malformed lines were left out" in run.stderr
    assert json.loads(run.stdout)["runs"][0]["jobs"] == 2


def test_a_job_that_can_never_run_is_refused_or_left_out(tmp_path):
    trace = jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 1, "gpus": 4, "tasks": 4},
                  {"id": 2, "submit_s": 0, "duration_s": 1, "gpus": 1})
    assert "--lenient" in refused(trace, "--cluster", "1x8")
    run = stoker_run("sim", trace, "--cluster", "1x8", "--lenient", "--json")
    assert json.loads(run.stdout)["runs"][0]["finished"] == 1
    assert "1 of 2 jobs never ran" in run.stderr


@pytest.mark.parametrize("args,says", [
    (["--cluster", "1x8"], "name a trace file"),
    (["--generate", "jobs=5"], "--cluster is missing"),
    ([*SMALL, "--order", "nope"], "there are: fifo"),
    ([*SMALL, "--bundle", "nope"], "--list"),
    ([*SMALL, "--nope"], "--nope"),
    ([*SMALL, "--param", "nope=1"], "nope"),
    ([*SMALL, "--param", "las.round_s=1"], "no policy of this run takes it"),
    ([*SMALL, "--order", "las", "--param", "las.thresholds=5,3"], "ascending"),
    ([*SMALL, "--param", "tier.classes=1,2,3"], "at most 2"),
    ([*SMALL, "--order", "srtf", "--backfill", "easy"], "--backfill"),
    ([*SMALL, "--compare", "fifo", "--order", "sjf"], "--compare"),
    ([*SMALL, "--compare", ""], "--compare"),
    ([*SMALL, "--measure", "9-3"], "--measure"),
    ([*SMALL, "--measure", "900-901"], "no job of the trace has an id from 900 to 901"),
    ([*SMALL, "--order", "fifo", "--preempt", "tier"], "--order priority"),
    ([*SMALL, "--pools", "x"], "--split-by"),
    ([*SMALL, "--json", "--jobs-out", "-"], "standard output"),
    (["/does/not/exist", "--cluster", "1x8"], "No such file"),
    (["--generate", "jobs=0", "--cluster", "1x8"], "jobs"),
    (["--generate", "jobs=5", "--cluster", "0x8"], "0x8"),
])
def test_bad_usage_gets_one_sentence_and_exit_2(args, says):
    assert says in refused(*args)


def test_pools_of_a_cluster_file_take_the_jobs_of_their_group(tmp_path):
    cluster = tmp_path / "c.yaml"
    cluster.write_text("nodes:\n- {count: 1, gpus: 8, pool: red}\n- {count: 1, gpus: 4, pool: blue}\n")
    trace = jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 10, "gpus": 4, "pool": "blue"},
                  {"id": 2, "submit_s": 0, "duration_s": 10, "gpus": 4, "pool": "blue"},
                  {"id": 3, "submit_s": 0, "duration_s": 10, "gpus": 8, "pool": "red"})
    assert "--split-by vc" in refused(trace, "--cluster", cluster)
    r = rows(tmp_path, trace, "--cluster", cluster, "--split-by", "vc")
    assert [r[k]["first_start_s"] for k in "123"] == ["0", "10", "0"]


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href") and v and not v.startswith(("#", "data:"))]


def test_the_report_is_one_file_that_asks_for_nothing_else(tmp_path):
    out = tmp_path / "r.html"
    run = stoker_run("sim", *SMALL, "--compare", "fifo,default", "--html", out)
    assert run.returncode == 0 and str(out) in run.stdout
    page = Page()
    page.feed(out.read_text(encoding="utf-8"))
    assert page.links == [] and {"table", "script", "style"} <= set(page.tags)


def test_names_in_a_trace_cannot_inject_into_the_report(tmp_path):
    evil = "</script><script>alert(1)</script>"
    trace = jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 9, "gpus": 1, "tenant": evil})
    out = tmp_path / "r.html"
    stoker("sim", trace, "--cluster", "1x8", "--html", out, "--json")
    assert evil not in out.read_text(encoding="utf-8")


def test_the_table_has_colour_on_a_terminal_only():
    assert "\033[" not in stoker_run("sim", *SMALL, "--compare", "fifo,sjf").stdout

    def on_terminal(env):
        main, side = pty.openpty()
        subprocess.run([program(), "sim", *SMALL, "--compare", "fifo,sjf"], stdout=side,
                       stderr=subprocess.DEVNULL, env=env, check=True)
        os.close(side)
        return os.read(main, 65536).decode()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    assert "\033[" in on_terminal({**env, "TERM": "xterm"})
    assert "\033[" not in on_terminal({**env, "TERM": "xterm", "NO_COLOR": "1"})


def test_several_runs_in_jobs_out_are_told_apart(tmp_path):
    out = tmp_path / "jobs.csv"
    stoker("sim", *SMALL, "--compare", "fifo,sjf", "--jobs-out", out, "--json")
    with open(out, newline="", encoding="utf-8") as f:
        seen = [r["bundle"] for r in csv.DictReader(f)]
    assert seen.count("fifo") == seen.count("sjf") == 300


def test_an_unknown_command_suggests_the_nearest():
    run = stoker_run("simm")
    assert run.returncode == 2 and 'did you mean "sim"' in run.stderr
    assert stoker_run().returncode == 2
    assert stoker_run("help").returncode == 0
    assert stoker_run("--version").stdout.startswith("stoker ")


def test_a_trace_cannot_say_that_a_job_ends_by_eviction(tmp_path):
    trace = jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 1, "gpus": 1, "ends": "evicted"})
    assert '"ends" must be one of ok, failed' in refused(trace, "--cluster", "1x8")


# ---- tenants ----

def limits(tmp_path, text):
    path = tmp_path / "tenants.yaml"
    path.write_text(text)
    return path


def two_teams(tmp_path):
    """Two jobs of 4 GPUs of one team, then one of another and one of nobody known."""
    return jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 100, "gpus": 4, "tenant": "vision"},
                 {"id": 2, "submit_s": 0, "duration_s": 100, "gpus": 4, "tenant": "vision"},
                 {"id": 3, "submit_s": 1, "duration_s": 100, "gpus": 2, "tenant": "speech"},
                 {"id": 4, "submit_s": 1, "duration_s": 100, "gpus": 2, "tenant": "somebody"})


@pytest.mark.parametrize("backfill", ["none", "skip", "easy"])
def test_a_tenant_over_its_limit_waits_and_others_pass(tmp_path, backfill):
    words = [two_teams(tmp_path), "--cluster", "1x16", "--order", "fifo", "--backfill", backfill, "--paranoid"]
    assert {r["wait_s"] for r in rows(tmp_path, *words).values()} == {"0"}
    path = limits(tmp_path, "tenants:\n  - name: research\n    limit: 6\n    tenants:\n"
                            "      - {name: vision}\n      - {name: speech, limit: 2}\n"
                            "  - {name: default, limit: 2.5}\n")
    jobs = rows(tmp_path, *words, "--tenants", path)
    assert [jobs[i]["wait_s"] for i in "1234"] == ["0", "100", "0", "0"]
    path = limits(tmp_path, "tenants: [{name: vision, limits: {gpu: 4}}]")
    jobs = rows(tmp_path, *words, "--tenants", path)
    assert [jobs[i]["wait_s"] for i in "1234"] == ["0", "100", "0", "0"]


def test_a_tree_without_limits_changes_nothing(tmp_path):
    words = ["--generate", "jobs=500,gpus=64,tenants=5,seed=3", "--cluster", "8x8"]
    path = limits(tmp_path, "tenants: [{name: a, tenants: [{name: b}]}]")
    for more in (["--bundle", "default"], ["--order", "srtf"], ["--backfill", "conservative", "--preempt", "none"]):
        plain, tree = simulate(*words, *more), simulate(*words, *more, "--tenants", path)
        assert plain["avg_jct_s"] == tree["avg_jct_s"] and plain["avg_wait_s"] == tree["avg_wait_s"]


def test_limits_hold_on_a_busy_day_and_everybody_runs_in_the_end(tmp_path):
    words = ["--generate", "jobs=1500,gpus=64,load=1.2,tenants=4,seed=5", "--cluster", "8x8"]
    free = simulate(*words)
    path = limits(tmp_path, "tenants: [{name: default, limit: 40}]")
    tight = simulate(*words, "--tenants", path, "--paranoid")
    assert tight["finished"] == tight["jobs"] == 1500
    assert tight["avg_wait_s"] > free["avg_wait_s"]
    assert tight["utilization"] <= 40 / 64


def test_queues_have_limits_of_users_and_in_all(tmp_path):
    def job(number, gpus, queue, user):
        return {"id": number, "submit_s": 0, "duration_s": 100, "gpus": gpus, "queue": queue, "user": user}

    trace = jsonl(tmp_path, job(1, 2, "express", "ann"), job(2, 2, "express", "ann"), job(3, 2, "express", "bob"),
                  job(4, 4, "night", "ann"), job(5, 4, "night", "bob"), {"id": 6, "submit_s": 0, "duration_s": 100, "gpus": 4})
    path = limits(tmp_path, "queues:\n  express: {user: {jobs: 1}}\n  night: {class: batch, all: {gpus: 4}}\n")
    got = rows(tmp_path, trace, "--cluster", "2x8", "--tenants", path, "--paranoid")
    assert {i: r["wait_s"] for i, r in got.items()} == {"1": "0", "2": "100", "3": "0", "4": "0", "5": "100", "6": "0"}


def test_a_job_its_queue_never_takes_is_refused(tmp_path):
    trace = jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 7200, "gpus": 4, "queue": "express"})
    words = [trace, "--cluster", "2x8", "--tenants"]
    assert "job 1 needs 4 GPUs; a job in queue express may have at most 2" in refused(
        *words, limits(tmp_path, "queues: {express: {job: {gpus: 2}}}"))
    assert "job 1 takes 7200 s; a job in queue express may run for at most 3600 s" in refused(
        *words, limits(tmp_path, "queues: {express: {job: {time: 1h}}}"))
    assert "priority in queue express must be 100 to 500, got 1000" in refused(
        jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 10, "gpus": 1, "queue": "express", "priority": 1000}),
        "--cluster", "2x8", "--tenants", limits(tmp_path, "queues: {express: {classes: [batch, training]}}"))
    assert 'jobs of queue "fast", which the file' in refused(
        jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 10, "gpus": 1, "queue": "fast"}),
        "--cluster", "2x8", "--tenants", limits(tmp_path, "queues: {express: {classes: [batch, training]}}"))


def test_jobs_of_a_user_belong_to_the_tenant_that_has_them(tmp_path):
    path = limits(tmp_path, "tenants: [{name: research, limit: 4, users: [vision, speech]}]")
    got = rows(tmp_path, two_teams(tmp_path), "--cluster", "1x16", "--tenants", path, "--paranoid")
    assert [r["wait_s"] for r in got.values()].count("0") == 2


@pytest.mark.parametrize("text, message", [
    ("tenants: [{name: vision, limit: 2}]", "needs 4 GPUs; the limit of tenant vision is less"),
    ("tenants: [{name: vision, tenants: [{name: a}]}]", "which has others below it"),
    ("tenants: [{name: vision, limit: many}]", ":1: a limit is a number of GPUs"),
    ("tenants: [{name: vision, limit: 0.0005}]", ":1: a limit is a number of GPUs"),
    ("tenants: [{name: vision, limits: {A100: 2}}]", 'has no GPUs of type "A100"'),
    ("tenants:\n  - {name: a}\n  - {name: a}", ':3: there are two tenants "a"'),
    ("tenants:\n  - {limit: 3}", ":2: a tenant needs a name"),
    ("tenants: [{name: a, guaranty: 4}]", 'unknown key "guaranty"; a tenant has name, limit, limits, guarantee, '
                                          'guarantees, weight, keep_up, cpus, mem_gib, users, was, allow, tenants'),
    ("tenants: [{name: a, guarantee: all}]", ':1: a guarantee is a number of GPUs'),
    ("tenants: [{name: a, guarantees: 4}]", ':1: guarantees must be a mapping such as {A100: 16}'),
    ("tenants: [{name: a, guarantees: {gpu: }}]", ':1: a guarantee is a number of GPUs'),
    ("tenants: [{name: a, weight: -1}]", ':1: a weight is 0 to 1000000, in thousandths, got "-1"'),
    ("tenants: [{name: a, guarantee: 5, limit: 4}]",
     'tenant a: a guarantee of 5 GPUs is more than its limit of 4'),
    ("tenants: [{name: a, guarantee: 3, tenants: [{name: b, guarantee: 2}, {name: c, guarantee: 2}]}]",
     'tenant a: those below it are guaranteed 4 GPUs together, it has a guarantee of 3'),
    ("tenants: [{name: a, guarantee: 300}]", 'tenants are guaranteed 300 GPUs together; the cluster has'),
    ("tenants: [{name: a, guarantee: 1, guarantees: {gpu: 2}}]",
     'tenant a: guarantees by type are 2 GPUs together, its guarantee over all types is 1'),
    ("tenants: [{name: a, tenants: [{name: default}]}]", "default is for all who are in no other tenant"),
    ("tenants: [{name: a, tenants: 3}]", '"tenants" must be a list'),
    ("teams: []", "unknown key"),
    ("tenants: [{name: a, users: ann}]", ':1: users must be a list such as [ann, "@vision"]'),
    ("tenants: [{name: a, users: [ann], tenants: [{name: b}]}]", ":1: users belong to tenants that have none below them"),
    ("queues:\n  express: {clas: batch}", ':2: unknown key "clas"; a queue has class, classes, tier, pool, job, user, tenant, all'),
    ("queues:\n  express: {class: fast}", ':2: there is no class "fast"; there are: inference, training, batch; or say a priority'),
    ("queues:\n  express: {tier: high}", ":2: a tier is best-effort, standard or critical"),
    ("queues:\n  express: {job: {time: soon}}", ":2: a time is a number of seconds"),
    ("queues:\n  express: {user: {jobs: -1}}", ":2: jobs is how many may run at a time"),
    ("queues:\n  express: {class: 99, classes: [batch, training]}", ":2: class 99 is not within classes 100 to 500"),
    ("queues:\n  express: {classes: [training, batch]}", ":2: the lowest class, 500, is above the highest, 100"),
    ("queues:\n  express: {pool: a100}", ':2: there is no pool "a100"'),
    ("queues:\n  'a b': {class: batch}", ":2: a name is 1 to 63 letters"),
    ("queues: {express: off, standard: off, batch: off, preemptible: off, reserved: off}", ":1: all queues are off"),
    ("default_queue: slow", ':1: default_queue: there is no queue "slow"'),
    ("classes: {urgent: very}", ":1: a class is a priority"),
    ("", 'expected "tenants:"'),
])
def test_what_is_wrong_with_tenants_is_said(tmp_path, text, message):
    path = limits(tmp_path, text)
    assert message in refused(two_teams(tmp_path), "--cluster", "1x16", "--tenants", path)


def test_tenants_are_at_most_eight_levels_deep(tmp_path):
    def nest(n):
        return "tenants: [{name: n%d%s}]" % (n, ", " + nest(n - 1) if n > 1 else "")
    simulate(two_teams(tmp_path), "--cluster", "1x16", "--tenants", limits(tmp_path, nest(8)))
    assert "more than 8 levels" in refused(two_teams(tmp_path), "--cluster", "1x16", "--tenants",
                                           limits(tmp_path, nest(9)))


@pytest.mark.parametrize("words", [["--backfill", "conservative", "--preempt", "none"], ["--order", "srtf"]])
def test_limits_are_refused_where_they_would_not_hold(tmp_path, words):
    path = limits(tmp_path, "tenants: [{name: vision, limit: 4}]")
    assert "limits of tenants do not go with" in refused(two_teams(tmp_path), "--cluster", "1x16", "--tenants",
                                                         path, *words)


# ---- power ----

def powered(tmp_path, count=2, gpus=2):
    path = tmp_path / "powered.yaml"
    path.write_text(f"nodes:\n  - {{count: {count}, gpus: {gpus}, "
                    "power: {idle_w: 100, gpu_w: 200, off_w: 10, boot_s: 60}}\n")
    return path


def three_jobs(tmp_path):
    return jsonl(tmp_path, {"id": 1, "submit_s": 0, "duration_s": 600},
                 {"id": 2, "submit_s": 0, "duration_s": 600}, {"id": 3, "submit_s": 1000, "duration_s": 100})


def test_energy_is_what_nodes_and_gpus_draw_over_time(tmp_path):
    run = simulate(three_jobs(tmp_path), "--cluster", powered(tmp_path), "--order", "fifo", "--place", "pack")
    # 600 s with two nodes on and two GPUs busy, 400 s with none busy, 100 s with one
    assert run["energy_kwh"] * 3.6e6 == pytest.approx(600 * 600 + 400 * 200 + 100 * 400, abs=4)
    assert run["node_hours_on"] == pytest.approx(2 * 1100 / 3600, abs=1e-6)
    assert run["peak_w"] == 600
    assert "energy_kwh" not in simulate(three_jobs(tmp_path), "--cluster", "2x2")


def test_empty_nodes_are_switched_off_and_boot_when_a_job_comes(tmp_path):
    words = [three_jobs(tmp_path), "--cluster", powered(tmp_path), "--bundle", "energy", "--param",
             "energy.off_after_s=300", "--paranoid"]
    run = simulate(*words)
    # node 0 boots at 0, is empty at 660 and off at 960, boots at 1000; node 1 is always off
    assert run["energy_kwh"] * 3.6e6 == pytest.approx(510 * 660 + 110 * 300 + 20 * 40 + 310 * 160, abs=4)
    assert run["node_hours_on"] == pytest.approx((960 + 160) / 3600, abs=1e-6)
    assert run["peak_w"] == 510 and run["makespan_s"] == 1160
    jobs = rows(tmp_path, *words)
    assert [jobs[i]["end_s"] for i in "123"] == ["660", "660", "1160"]
    assert [jobs[i]["wait_s"] for i in "123"] == ["60", "60", "60"]
    assert float(jobs["1"]["gpu_kwh"]) == pytest.approx(200 * 600 / 3.6e6, abs=1e-6)
    table = stoker_run("sim", *words).stdout
    assert "energy" in table and "0.1 kWh" in table


@pytest.mark.parametrize("order", ["fifo", "srtf"])
def test_a_power_cap_holds_and_everybody_runs_in_the_end(tmp_path, order):
    words = ["--generate", "jobs=400,gpus=32,load=1.2,seed=5,sizes=1:60/2:20/4:20", "--cluster",
             powered(tmp_path, 8, 4), "--order", order, "--place", "energy"]
    free = simulate(*words)
    capped = simulate(*words, "--param", "energy.cap_w=4000", "--paranoid")
    assert free["peak_w"] == 8 * 100 + 32 * 200
    assert capped["peak_w"] <= 4000
    assert capped["finished"] == capped["jobs"] == 400
    assert capped["avg_wait_s"] > free["avg_wait_s"]


def test_what_a_power_cap_can_never_admit_is_refused(tmp_path):
    trace = jsonl(tmp_path, {"id": 7, "submit_s": 0, "duration_s": 1, "gpus": 4})
    message = refused(trace, "--cluster", powered(tmp_path), "--place", "energy", "--param", "energy.cap_w=900")
    assert "job 7 needs 1.0 kW with all other nodes off; the power cap is 0.9 kW" in message
    message = refused(trace, "--cluster", "2x2", "--place", "energy", "--param", "energy.cap_w=900")
    assert "a power cap (energy.cap_w) needs nodes whose power is known" in message


def test_whole_gpus_are_shared_only_under_policies_that_can(tmp_path):
    assert "does not go with --preempt afresh" in refused(*SMALL, "--order", "srtf", "--place", "share")


def test_running_jobs_move_to_make_room(tmp_path):
    """Each node has one GPU in use: 4 on one node are free only when a job moves, which costs it 60 s."""
    jobs = [{"id": i, "submit_s": i, "duration_s": 1000, "gpus": 3, "tasks": 1} for i in range(50)]
    jobs += [{"id": 100 + i, "submit_s": 60 + i, "duration_s": 10000, "gpus": 1, "tasks": 1} for i in range(50)]
    jobs += [{"id": 200, "submit_s": 2000, "duration_s": 100, "gpus": 4, "tasks": 1},
             {"id": 201, "submit_s": 5000, "duration_s": 1, "gpus": 1}]
    flags = (jsonl(tmp_path, *jobs), "--cluster", "50x4", "--order", "fifo", "--backfill", "skip",
             "--param", "restart_s=60")
    plain, run = simulate(*flags, "--fragments"), simulate(*flags, "--defrag", "--paranoid")
    assert plain["migrations"] == 0 and run["migrations"] == run["migrated_gpus"] == 1
    assert run["preemptions"] == 0 and run["restarts_cost_gpu_s"] == 60
    assert plain["sum_jct_s"] > run["sum_jct_s"]
    assert plain["blocked_gpu_s"] == plain["waiting_gpu_s"] == 4 * 3000 and 0 < plain["allocation"] <= 1


def test_moving_is_refused_where_a_policy_decides_pools_whole():
    refused(*SMALL, "--bundle", "lucid-srtf", "--defrag")
    refused(*SMALL, "--bundle", "conservative", "--defrag")


def test_forecasts_are_compared_with_what_happens(tmp_path):
    """Estimates that are true, one job at a time: every start is foreseen to the second."""
    jobs = [{"id": i, "submit_s": i, "duration_s": 100, "estimate_s": 100, "gpus": 4} for i in range(12)]
    flags = (jsonl(tmp_path, *jobs), "--cluster", "1x4", "--order", "fifo")
    plain, run = simulate(*flags), simulate(*flags, "--forecast", "1", "--paranoid")
    f = run["forecast"]
    assert "forecast" not in plain and plain["digest"] == run["digest"]
    assert (f["every"], f["unknown"], f["all"]["jobs"], f["waited"]["jobs"]) == (1, 0, 12, 11)
    assert f["all"]["p90_coverage"] == 1 and f["all"]["mean_error_s"] == 0 and f["waited"]["naive_median_error_s"] > 100
    assert f["run_error"] == f["plain_run_error"] == 0
    assert simulate(*flags, "--forecast", "5")["forecast"]["all"]["jobs"] == 3


def test_a_forecast_does_not_know_how_long_jobs_really_run(tmp_path):
    """Without estimates nothing is known at first; later ones go by what the user's earlier jobs took."""
    jobs = [{"id": i, "submit_s": 1000 * i, "duration_s": 100, "tenant": "a", "gpus": 4} for i in range(5)]
    jobs += [{"id": 10, "submit_s": 5000, "duration_s": 700, "tenant": "a", "gpus": 4},
             {"id": 11, "submit_s": 5010, "duration_s": 100, "tenant": "a", "gpus": 4}]
    f = simulate(jsonl(tmp_path, *jobs), "--cluster", "1x4", "--order", "fifo", "--forecast", "1")["forecast"]
    assert f["waited"]["jobs"] == 1 and f["waited"]["mean_error_s"] == 600
    assert f["waited"]["p90_coverage"] == 0


def test_forecast_takes_a_number():
    for bad in ("0", "x", "-1"):
        assert "--forecast takes a whole number from 1 on" in refused(*SMALL, "--forecast", bad)


def test_limits_of_tenants_do_not_go_with_a_power_cap(tmp_path):
    path = limits(tmp_path, "tenants: [{name: vision, limit: 8}]")
    cluster = tmp_path / "c.yaml"
    cluster.write_text("nodes: [{gpus: 16, power: {idle_w: 800, gpu_w: 400}}]")
    words = [two_teams(tmp_path), "--cluster", cluster, "--tenants", path, "--place", "energy"]
    simulate(*words)
    assert "limits of tenants do not go with a power cap" in refused(*words, "--param", "energy.cap_w=9000")


def test_deadlines_that_were_met_and_missed_are_counted(tmp_path):
    trace = tmp_path / "jobs.jsonl"
    rows = [{"id": 1, "submit_s": 0, "gpus": 4, "duration_s": 100, "deadline_s": 150},
            {"id": 2, "submit_s": 1, "gpus": 4, "duration_s": 100, "deadline_s": 190},
            {"id": 3, "submit_s": 2, "gpus": 4, "duration_s": 100},
            {"id": 4, "submit_s": 3, "gpus": 4, "duration_s": 10, "deadline_s": 130}]
    trace.write_text("".join(json.dumps(r) + "\n" for r in rows))

    def run(bundle):
        return simulate(trace, "--cluster", "1x4", "--bundle", bundle)

    fifo, edf = run("fifo"), run("edf")
    assert (fifo["deadlines"], fifo["deadlines_met"], fifo["deadlines_missed"]) == (3, 1, 2)
    assert (fifo["avg_late_s"], fifo["worst_late_s"]) == ((10 + 180) / 2, 180)
    assert (edf["deadlines_met"], edf["deadlines_missed"]) == (2, 1)
    table = stoker_run("sim", str(trace), "--cluster", "1x4", "--compare", "fifo,edf").stdout
    assert re.search(r"deadlines +missed", table)
    assert "deadlines" not in simulate("--generate", "jobs=50", "--cluster", "8x8")
    made = simulate("--generate", "jobs=400,deadlines=0.5", "--cluster", "8x8")
    assert 150 < made["deadlines"] < 250
