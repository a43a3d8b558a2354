# SPDX-License-Identifier: Apache-2.0
"""Named resources and GPU types with speeds, on a real daemon with real processes."""
import json
import re

import pytest
from daemon import Daemon, stoker

CONFIG = "resources: {licence: 1, nvme_gib: 100}\n"


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path, gpus=4, config=CONFIG)
    d.start()
    yield d
    d.close()


def submit(d, *args):
    return int(re.search(r"job (\d+)", stoker(d, "submit", *args))[1])


def resources(d):
    (node,) = json.loads(stoker(d, "nodes", "--json"))["nodes"]
    return {name: (r["free"], r["total"]) for name, r in node["resources"].items()}


def test_two_jobs_with_one_licence_run_one_after_the_other(daemon, tmp_path):
    gate = tmp_path / "gate"
    first = submit(daemon, "--resource", "licence=1", "--resource", "nvme_gib=60", "--name", "first", "--",
                   "sh", "-c", f"while ! [ -e {gate} ]; do sleep 0.1; done")
    daemon.until(first, "running")
    assert resources(daemon) == {"licence": (0, 1), "nvme_gib": (40, 100)}
    second = submit(daemon, "--resource", "licence=1", "--", "true")
    third = submit(daemon, "--resource", "nvme_gib=40", "--gpus", "1", "--", "true")
    assert daemon.wait(third)["cause"] == "completed"
    why = stoker(daemon, "why", str(second))
    assert why.startswith(f"job {second} needs 1 of licence and 0 are free"), why
    assert f"Who has licence:\n  job {first}  first" in why
    assert "needs 1 of licence and 0 are free" in stoker(daemon, "queue")
    part = submit(daemon, "--resource", "licence=1", "--gpus", "0.5", "--", "true")
    assert "needs 1 of licence and 0 are free" in stoker(daemon, "why", str(part))
    stoker(daemon, "cancel", str(part))
    answer = json.loads(stoker(daemon, "why", str(second), "--json"))
    assert (answer["code"], answer["resource"], answer["need"], answer["have"]) == ("resource", "licence", 1, 0)
    assert [(h["id"], h["amount"]) for h in answer["holders"]] == [(first, 1)]
    assert "resources" in (shown := stoker(daemon, "show", str(first))) and "1 licence, 60 nvme_gib" in shown
    assert "licence  0 of 1 free\nnvme_gib  40 of 100 free\n" in stoker(daemon, "gpus")
    daemon.kill()  # what is held is known again
    daemon.start()
    assert resources(daemon) == {"licence": (0, 1), "nvme_gib": (40, 100)}
    gate.touch()
    done = [daemon.wait(job) for job in (first, second)]
    assert [j["cause"] for j in done] == ["completed", "completed"]
    assert done[1]["started"] >= done[0]["ended"]
    assert resources(daemon) == {"licence": (1, 1), "nvme_gib": (100, 100)}


def test_what_is_not_there_is_refused_by_name(daemon, tmp_path):
    assert ("asks for 4 of licence on one node; the most that a node it may use has is 1"
            in stoker(daemon, "submit", "--resource", "licence=4", "--", "true", code=2))
    assert ('there is no resource "nic" here; there are: licence, nvme_gib'
            in stoker(daemon, "submit", "--resource", "nic=1", "--", "true", code=2))
    assert ('--resource takes NAME=N such as nvme_gib=100, got "nic"'
            in stoker(daemon, "submit", "--resource", "nic", "--", "true", code=2))
    assert ("resources.a b: must be a name"
            in stoker(daemon, "submit", "--resource", "a b=1", "--", "true", code=2))
    job = tmp_path / "job.yaml"
    job.write_text("run: 'true'\nresources:\n  named: {licence: 1.5}\n")
    assert (":3: resources.named.licence: must be a whole number from 0 to 4294967295, got 1.5"
            in stoker(daemon, "submit", str(job), code=2))


def test_job_files_and_sbatch_scripts_ask_for_resources(daemon, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("run: 'true'\ngpus: 1\ngpu_types: {virtual: 0.5, h100: 1}\nresources:\n  named: {licence: 1}\n")
    spec = daemon.wait(submit(daemon, str(job)))["spec"]
    assert spec["resources"] == {"licence": 1} and spec["gpu_types"] == {"virtual": 0.5, "h100": 1}
    script = tmp_path / "job.sbatch"
    script.write_text("#!/bin/sh\n#SBATCH --licenses=licence:1,nvme_gib:50\n#SBATCH -n 1\ntrue\n")
    assert daemon.wait(submit(daemon, str(script)))["spec"]["resources"] == {"licence": 1, "nvme_gib": 50}
    script.write_text("#!/bin/sh\n#SBATCH -L nvme_gib:50\n#SBATCH -n 2\ntrue\n")
    assert daemon.wait(submit(daemon, str(script)))["spec"]["resources"] == {"nvme_gib": 25}
    script.write_text("#!/bin/sh\n#SBATCH -L licence\n#SBATCH -n 2\ntrue\n")
    assert "1 of licence cannot be shared evenly by 2 tasks" in stoker(daemon, "submit", str(script), code=2)
    script.write_text("#!/bin/sh\n#SBATCH -L licence|nvme_gib\ntrue\n")
    assert "must be NAME[:N] joined by commas" in stoker(daemon, "submit", str(script), code=2)


def test_a_slower_type_is_expected_to_take_longer(daemon):
    job = submit(daemon, "--gpus", "1", "--gpu-type", "h100:1,virtual:0.5", "--time", "10m", "--estimate", "5m", "--",
                 "sleep", "1000")
    daemon.until(job, "running")
    shown = daemon.job(job)
    assert 590 < shown["expected_end"] - shown["started"] < 610
    assert "there are no GPUs of type" in stoker(daemon, "submit", "--gpus", "1", "--gpu-type", "h100:1,a100:0.5", "--", "true", code=2)
    assert "--gpu-type takes TYPE[:SPEED]" in stoker(daemon, "submit", "--gpus", "1", "--gpu-type", "h100:fast", "--", "true", code=2)
    assert "must be a speed from 0.001 to 65.535" in stoker(daemon, "submit", "--gpus", "1", "--gpu-type", "h100:0", "--", "true", code=2)


def test_other_resources_need_a_clean_end(daemon):
    held = submit(daemon, "--hold", "--resource", "licence=1", "--", "true")
    daemon.kill()
    daemon.config.write_text("resources: {nvme_gib: 100, licence: 2}\n")
    with pytest.raises(RuntimeError, match='were "licence,nvme_gib" when the daemon last ran'):
        daemon.start()
    daemon.config.write_text(CONFIG)
    daemon.start()
    daemon.stop()
    daemon.config.write_text("resources: {nic: 4, licence: 2}\n")
    daemon.start()
    assert resources(daemon) == {"nic": (4, 4), "licence": (2, 2)}
    stoker(daemon, "release", str(held))
    assert daemon.wait(held)["cause"] == "completed"
