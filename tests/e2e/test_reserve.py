# SPDX-License-Identifier: Apache-2.0
"""Reservations of a real daemon: made, used, lapsed, removed, and still there after a restart."""
import json
import os
import pwd
import time

import pytest
from daemon import Daemon
from data import stoker_run
from patience import until

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(name="d")
def daemon(tmp_path):
    with Daemon(tmp_path / "d", gpus=4) as d:
        d.tmp = tmp_path
        yield d


def cli(d, *args, **kwargs):
    env = {**os.environ, "STOKER_SOCKET": str(d.socket), "LC_ALL": "C.UTF-8"}
    return stoker_run(*args, env=env, cwd=d.tmp, **kwargs)


def reserve(d, *args):
    out = cli(d, "reserve", "add", *args, "--json")
    assert out.returncode == 0, out
    return json.loads(out.stdout)


def listed(d, name):
    out = cli(d, "reserve", "list", "--json")
    assert out.returncode == 0, out
    return [r for r in json.loads(out.stdout)["reservations"] if r["name"] == name][-1]


def submit(d, *args):
    out = cli(d, "submit", "--json", *args)
    assert out.returncode == 0, out
    return json.loads(out.stdout)["id"]


def job(d, number):
    return json.loads(cli(d, "show", "--json", str(number)).stdout)


def test_in_its_window_only_those_who_name_it_get_the_gpus(d):
    reserve(d, "demo", "--gpus", "3", "--for", "1h")
    assert listed(d, "demo")["state"] == "open"
    other = submit(d, "--gpus", "2", "--time", "10m", "--", "sleep", "600")
    why = cli(d, "why", str(other)).stdout
    assert "reserved" in why and "demo" in why, why
    mine = submit(d, "--gpus", "3", "--time", "10m", "--reservation", "demo", "--", "sleep", "600")
    until(lambda: job(d, mine)["state"] == "running")
    assert job(d, other)["state"] == "waiting"
    assert listed(d, "demo")["gpus_used"] == 3
    assert cli(d, "reserve", "rm", "demo").returncode == 0
    assert listed(d, "demo")["state"] == "removed"
    cli(d, "cancel", str(mine))
    until(lambda: job(d, other)["state"] == "running")


def test_a_job_that_would_run_into_it_waits_and_a_short_one_does_not(d):
    reserve(d, "night", "--gpus", "4", "--for", "1h", "--start", "now+1h", "--user", ME)
    listing = cli(d, "reserve", "list")
    assert "night" in listing.stdout and "pending" in listing.stdout, listing
    short = submit(d, "--gpus", "1", "--time", "5m", "--", "sleep", "600")
    until(lambda: job(d, short)["state"] == "running")


def test_one_that_nobody_uses_lapses_and_says_so(d):
    reserve(d, "brief", "--gpus", "2", "--for", "1h", "--grace", "1s")
    until(lambda: listed(d, "brief")["state"] == "lapsed")
    assert listed(d, "brief")["last"]["why"] == "lapsed"
    until(lambda: any("reservation.lapsed" in line and "brief" in line for line in d.errors))


def test_what_overlaps_is_refused_with_what_it_overlaps(d):
    reserve(d, "first", "--gpus", "3", "--for", "1h")
    out = cli(d, "reserve", "add", "second", "--gpus", "2", "--for", "1h")
    assert out.returncode == 1 and "overlaps" in out.stderr, out
    out = cli(d, "reserve", "add", "first", "--gpus", "1", "--for", "1h")
    assert out.returncode == 1 and "first" in out.stderr, out
    out = cli(d, "reserve", "add", "third", "--gpus", "1")
    assert out.returncode == 2 and "--for" in out.stderr, out
    out = cli(d, "reserve", "add", "x", "--gpus", "1", "--for", "1h", "--user", "nobody-of-that-name")
    assert out.returncode == 2 and "no user" in out.stderr, out
    out = cli(d, "reserve", "add", "x", "--gpus", "1", "--for", "1h", "--cron", "0 9 * *")
    assert out.returncode == 2, out


def test_it_repeats_and_survives_a_restart(d):
    made = reserve(d, "daily", "--gpus", "1", "--for", "1h", "--cron", "0 9 * * *", "--tz", "Europe/Berlin")
    assert made["start"] > time.time() and made["end"] == made["start"] + 3600
    reserve(d, "now", "--gpus", "2", "--for", "1h")
    d.kill()
    d.start()
    assert listed(d, "daily")["state"] == "pending" and listed(d, "daily")["start"] == made["start"]
    assert listed(d, "now")["state"] == "open" and listed(d, "now")["gpus_held"] == 2
    shown = cli(d, "reserve", "show", "daily")
    assert json.loads(shown.stdout)["tz"] == "Europe/Berlin"


@pytest.fixture(name="many")
def many_nodes(tmp_path):
    config = "policy: {bundle: fifo-skip, params: {drain.after_s: 3}}\n"
    with Daemon(tmp_path / "d", gpus="3x4", config=config) as d:
        d.tmp = tmp_path
        yield d


def names(d):
    return [n["name"] for n in json.loads(cli(d, "nodes", "--json").stdout)["nodes"]]


def test_exact_nodes_and_some_of_their_gpus(many):
    first, second, third = names(many)
    made = reserve(many, "repair", "--nodes", f"{second},{third}:1", "--for", "1h")
    assert made["gpus"] == 5
    shown = listed(many, "repair")
    assert shown["on"] == [{"node": second, "gpus": 4}, {"node": third, "gpus": 1}] and shown["gpus_held"] == 5, shown
    jobs = [submit(many, "--gpus", "1", "--time", "10m", "--", "sleep", "600") for _ in range(8)]
    until(lambda: sum(job(many, j)["state"] == "running" for j in jobs) == 7)
    waiting = [j for j in jobs if job(many, j)["state"] == "waiting"]
    assert "repair" in cli(many, "why", str(waiting[0])).stdout
    many.kill()
    many.start()
    assert listed(many, "repair")["on"] == shown["on"]
    for words, said in (
        (["--nodes", "nowhere"], 'no node "nowhere"'),
        (["--nodes", f"{first}:9"], "has 4 GPUs"),
        (["--nodes", f"{first},{first}"], "each once"),
        (["--nodes", second], "overlaps"),
        (["--nodes", first, "--pool", "x"], "follow from them"),
        (["--nodes", first, "--gpus", "2"], "--nodes"),
        ([], "--nodes"),
    ):
        out = cli(many, "reserve", "add", "x", *words, "--for", "1h")
        assert out.returncode != 0 and said in out.stderr, (words, out)


def test_for_one_job(d):
    full = submit(d, "--gpus", "4", "--time", "10m", "--", "sleep", "600")
    until(lambda: job(d, full)["state"] == "running")
    mine = submit(d, "--gpus", "2", "--time", "10m", "--", "sleep", "600")
    submit(d, "--gpus", "4", "--time", "10m", "--", "sleep", "600")
    reserve(d, "his", "--gpus", "2", "--for", "1h", "--job", str(mine))
    cli(d, "cancel", str(full))
    until(lambda: job(d, mine)["state"] == "running")
    assert listed(d, "his")["gpus_used"] == 2
    out = cli(d, "reserve", "add", "x", "--gpus", "1", "--for", "1h", "--job", "999999")
    assert out.returncode != 0 and "no job 999999" in out.stderr, out
    out = cli(d, "reserve", "add", "x", "--gpus", "1", "--for", "1h", "--job", str(mine), "--user", ME)
    assert out.returncode != 0 and "not for several" in out.stderr, out


def test_gpus_are_kept_free_for_a_gang_that_has_waited_while_others_passed_it(many):
    """Small jobs fill all nodes, until the gang has waited three seconds: what ends then is followed by nobody."""
    held = ["--time", "10m", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.1; done"]
    for _ in range(3):
        submit(many, "--gpus", "3", *held)
    gang = submit(many, "--gpus", "4", "--tasks", "3", "--time", "10m", "--", "sleep", "600")
    passes = [submit(many, "--gpus", "1", *held) for _ in range(3)]
    until(lambda: all(job(many, j)["state"] == "running" for j in passes))
    until(lambda: any(r.get("drain") for r in json.loads(cli(many, "reserve", "list", "--json").stdout)["reservations"]))
    kept = next(r for r in json.loads(cli(many, "reserve", "list", "--json").stdout)["reservations"] if r.get("drain"))
    assert kept["job"] == gang and kept["gpus"] == 12 and len(kept["on"]) == 3
    assert "kept free for it" in cli(many, "why", str(gang)).stdout
    assert "has waited long" in cli(many, "reserve", "list").stdout
    late = submit(many, "--gpus", "1", "--time", "20m", "--", "sleep", "600")
    (many.tmp / "go").touch()
    until(lambda: job(many, gang)["state"] == "running")
    assert job(many, late)["state"] == "waiting"
    assert not any(r.get("drain") for r in json.loads(cli(many, "reserve", "list", "--json").stdout)["reservations"])


def test_sbatch_scripts_name_it_too(d):
    reserve(d, "lab", "--gpus", "4", "--for", "1h")
    script = d.tmp / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --gpus=2 --time=10 --reservation=lab\nsleep 600\n")
    mine = submit(d, str(script))
    until(lambda: job(d, mine)["state"] == "running")
    assert listed(d, "lab")["gpus_used"] == 2
