# SPDX-License-Identifier: Apache-2.0
"""Time limits of jobs that have started: longer, shorter, who may, what keeps them, what survives what."""
import json
import os
import signal
import time

import pytest
from daemon import Daemon, stoker
from patience import PATIENCE_S

CONFIG = """
policy: {predict: no}
queues:
  short: {job: {time: 1h}}
"""
SLEEP = ["/bin/sleep", "600"]


@pytest.fixture
def world(tmp_path):
    with Daemon(tmp_path, gpus=2, config=CONFIG) as d:
        d.mine = d.web(d.post("/v1/tokens", {"name": "t", "role": "user"})["token"])
        yield d


def submit(d, **job):
    number = d.submit(command=SLEEP, stdout="/dev/null", **job)
    d.until(number, "running")
    return number


def change(client, number, **body):
    return client.post(f"/v1/jobs/{number}/update", body)


def refused(answer):
    assert answer.status in (409, 422), answer
    return answer.json["error"]["message"]


def records(d, number):
    """What the supervisor wrote down."""
    (path,) = [p for p in (d.state / "run").iterdir() if p.name.split(".")[0] == str(number) and p.name.count(".") == 1]
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(d, number, test):
    end = time.monotonic() + PATIENCE_S
    while True:
        for r in records(d, number):
            if r.get("ev") == "limit" and test(r):
                return r
        assert time.monotonic() < end, records(d, number)
        time.sleep(0.05)


def test_it_runs_longer_and_then_to_its_new_limit_only(world):
    job = submit(world, gpus=1, time_limit_s=3000)
    assert change(world.mine, job, time_limit_s=6000).status == 200
    now = world.job(job)
    assert now["time_limit_s"] == 6000 and now["estimate_s"] == 6000
    assert now["expected_end"] - now["started"] == pytest.approx(6000, abs=1)
    assert written(world, job, lambda r: 5000e3 < r["left_ms"] <= 6000e3)
    ran = time.time() - now["started"]
    assert change(world.mine, job, time_limit_s=int(ran) + 10).status == 200
    ended = world.wait(job)
    assert ended["cause"] == "timeout" and "over its time limit of" in ended["note"]
    assert ended["time_limit_s"] == int(ran) + 10


def test_no_limit_any_more(world):
    job = submit(world, gpus=1, time_limit_s=3000)
    assert change(world.mine, job, time_limit_s=None).status == 200
    assert world.job(job)["time_limit_s"] is None
    assert "left_ms" not in written(world, job, lambda r: True)


def test_what_cannot_be_is_refused_with_a_sentence(world):
    job = submit(world, gpus=1, time_limit_s=3000)
    while world.job(job)["run_s"] < 1.2:
        time.sleep(0.2)
    assert "it has run for 0:0" in (why := refused(change(world.client(), job, time_limit_s=1))) and f"stoker cancel {job}" in why
    assert "only the time limit can be changed" in refused(change(world.client(), job, time_limit_s=60, priority=3))
    assert "only the time limit can be changed" in refused(change(world.client(), job, name="x"))
    assert world.job(job)["time_limit_s"] == 3000 and world.job(job)["state"] == "running"


def test_a_user_keeps_to_the_queues_limit_and_an_operator_need_not(world):
    job = submit(world, gpus=1, queue="short")
    assert world.job(job)["time_limit_s"] == 3600
    assert world.job(submit(world, gpus=1, queue="short", time_limit_s=0))["time_limit_s"] == 3600  # 0 is none
    assert "of at most 3600" in refused(change(world.mine, job, time_limit_s=0))
    assert "may run for at most 3600 s" in refused(change(world.mine, job, time_limit_s=3601))
    assert "of at most 3600" in refused(change(world.mine, job, time_limit_s=None))
    assert change(world.mine, job, time_limit_s=1800).status == 200
    assert change(world.client(), job, time_limit_s=7200).status == 200
    assert world.job(job)["time_limit_s"] == 7200
    assert change(world.mine, job, time_limit_s=3000).status == 200  # shorter, and within it again
    held = world.submit(command=SLEEP, queue="short", hold=True)
    assert change(world.client(), held, time_limit_s=7200).status == 200
    assert change(world.mine, held, priority=100).status == 200  # its limit is not asked about


def test_a_promised_start_is_not_put_off_by_a_user(world):
    job = submit(world, gpus=1, time_limit_s=3000)
    other = submit(world, gpus=1, time_limit_s=3500)
    head = world.submit(command=SLEEP, gpus=2, time_limit_s=100)
    assert world.job(head)["state"] == "waiting"
    assert change(world.mine, job, time_limit_s=3400).status == 200  # the other one is there until then anyway
    why = refused(change(world.mine, job, time_limit_s=9000))
    assert f"job {head} is promised a start at" in why and "operator" in why
    assert world.job(job)["time_limit_s"] == 3400
    assert change(world.client(), job, time_limit_s=9000).status == 200
    assert world.get(f"/v1/jobs/{head}/why")["expected"] == pytest.approx(world.job(job)["expected_end"], abs=2)
    assert change(world.mine, other, time_limit_s=8000).status == 200


def test_a_reservation_is_not_run_into_by_a_user(world):
    job = submit(world, gpus=2, time_limit_s=3000)
    world.post("/v1/reservations", {"name": "demo", "gpus": 1, "start": int(time.time()) + 4000, "for_s": 3600})
    assert change(world.mine, job, time_limit_s=3900).status == 200
    assert ", for demo, and this job would have some of them" in refused(change(world.mine, job, time_limit_s=5000))
    assert change(world.client(), job, time_limit_s=5000).status == 200


def test_it_holds_over_crashes_of_the_daemon_and_of_the_supervisor(world):
    job = submit(world, gpus=1, time_limit_s=3000)
    assert change(world.client(), job, time_limit_s=6000).status == 200
    written(world, job, lambda r: True)
    world.kill()
    world.start()
    assert world.job(job)["time_limit_s"] == 6000
    world.until(job, "running")
    assert change(world.client(), job, time_limit_s=4000).status == 200
    written(world, job, lambda r: r["left_ms"] <= 4000e3)
    (shim,) = [pid for pid, n in world.processes().items() if n == job and b"stoker-shim" in open(f"/proc/{pid}/cmdline", "rb").read()]
    os.kill(shim, signal.SIGKILL)
    ran = time.time() - world.job(job)["started"]
    assert change(world.client(), job, time_limit_s=int(ran) + 20).status == 200
    assert world.wait(job)["cause"] == "timeout"


def test_one_that_sleeps_and_its_words_on_the_command_line(world):
    job = submit(world, gpus=1, time_limit_s=3000)
    stoker(world, "suspend", job)
    world.until(job, "suspended")
    assert stoker(world, "update", job, "--time", "2h") == f"job {job}: changed\n"
    assert written(world, job, lambda r: 7100e3 < r["left_ms"] <= 7200e3)
    stoker(world, "resume", job)
    world.until(job, "running")
    stoker(world, "update", job, "--time", "3h")
    assert world.job(job)["time_limit_s"] == 10800
