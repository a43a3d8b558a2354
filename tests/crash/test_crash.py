# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every step: random runs of submit, start, finish, cancel, hold, preempt, suspend, in which
the daemon dies again and again, just before or just after a call that changes something outside it
(tests/lib/crash_at.c counts them). Afterwards nothing that was acknowledged is lost, nothing ran twice
and no GPU had two owners.

STOKER_RUNS: how many runs (default 50). STOKER_SEED: the first seed.
"""
import collections
import http.client
import json
import os
import random
import signal
import subprocess
import time

import pytest
from daemon import SANITIZED, STOKER, Daemon

RUNS = int(os.environ.get("STOKER_RUNS", "50"))
SEED = int(os.environ.get("STOKER_SEED", "1"))
GPUS = 4
BUILD = STOKER.parent


class Gone(Exception):
    """The daemon died while it was asked."""


class Run:
    """One random run. The daemon may be gone at any call; then it is started again."""

    def __init__(self, seed, folder):
        self.r = random.Random(seed)
        self.folder = str(folder)
        self.work = f"{folder}/work"
        os.makedirs(self.work)
        os.chmod(self.work, 0o777)
        self.d = Daemon(folder, gpus=GPUS, listen="127.0.0.1:0")
        self.keys = 0
        self.jobs = {}        # acknowledged: id -> description
        self.unsure = {}      # key -> description, sent without an answer
        self.touched = set()  # ids that were cancelled or requeued, perhaps without an answer
        self.deaths = 0
        self.words = []

    def start(self, crash=True):
        """True: it is up; it may have died before that."""
        self.words += self.d.errors
        for name in ("LD_PRELOAD", "CRASH_AT", "CRASH_AFTER"):
            self.d.env.pop(name, None)
        if crash:
            self.d.env.update(LD_PRELOAD=str(BUILD / "libcrash_at.so"), CRASH_AT=str(self.steps()),
                              CRASH_AFTER=str(self.r.randrange(2)))
            if SANITIZED:  # its runtime wants to come first
                self.d.env["ASAN_OPTIONS"] += ":verify_asan_link_order=0"
        try:
            self.d.start()
            return True
        except RuntimeError as e:
            assert crash and self.d.process.returncode == -signal.SIGKILL, e
            self.deaths += 1
            return False

    def ask(self, method, path, body=None, key=None, ok=(200, 201)):
        headers = {"Idempotency-Key": key} if key else {}
        try:
            a = self.d.client().ask(method, path, body, headers)
        except (OSError, http.client.HTTPException) as e:
            raise Gone from e
        assert a.status in ok, a
        return a.json

    def steps(self):
        """Near the start, or anywhere in a run."""
        return self.r.randrange(1, self.r.choice([20, 60, 200, 600]))

    def describe(self):
        gpus = self.r.choice([0, 1, 1, 1, 2, 2, 4])
        suspend = self.r.random() < 0.4
        job = {"command": [str(BUILD / "gpujob"), self.work, str(self.r.choice([1, 5, 20, 60, 150]))],
               "gpus": gpus, "workdir": self.work, "stdout": "/dev/null", "grace_s": 1,
               "suspend": "auto" if suspend else "never"}
        if suspend:
            job["command"].append("nolock")
        if self.r.random() < 0.2:
            job["tier"], job["priority"] = "critical", 1000
        elif self.r.random() < 0.3:
            job["tier"] = "best-effort"
        if self.r.random() < 0.1:
            job["hold"] = True
        return job

    def submit(self):
        self.keys += 1
        key = f"key-{self.keys}"
        jobs = [self.describe() for _ in range(self.r.choice([1, 1, 1, 3, 8]))]
        for i, job in enumerate(jobs):
            job["name"] = f"{key}.{i}"
        self.unsure[key] = jobs
        self.send(key)

    def send(self, key):
        answer = self.ask("POST", "/v1/jobs", {"jobs": self.unsure[key]}, key=key)
        first = answer["id"]
        for i, job in enumerate(self.unsure.pop(key)):
            self.jobs[first + i] = job

    def act(self):
        verb = self.r.choice(["cancel", "hold", "release", "suspend", "resume", "requeue"])
        ids = [j["id"] for j in self.ask("GET", "/v1/jobs?limit=1000")["jobs"]]
        if not ids:
            return
        number = self.r.choice(ids)
        if verb in ("cancel", "requeue", "suspend"):
            self.touched.add(number)
        self.ask("POST", f"/v1/jobs/{number}/{verb}", {}, ok=(200, 404, 409))

    def step(self):
        what = self.r.random()
        if self.unsure:
            self.send(next(iter(self.unsure)))
        elif what < 0.5:
            self.submit()
        elif what < 0.8:
            self.act()
        else:
            time.sleep(self.r.choice([0.001, 0.01, 0.03]))

    def go(self):
        for _ in range(self.r.randrange(2, 5)):  # lives of the daemon
            while not self.start():
                pass
            try:
                for _ in range(self.r.randrange(5, 25)):
                    self.step()
            except Gone:
                self.deaths += 1
            self.d.kill()
        self.start(crash=False)
        while self.unsure:
            self.send(next(iter(self.unsure)))
        self.finish()

    def finish(self):
        until = time.monotonic() + 120
        while True:
            left = self.ask("GET", "/v1/jobs?limit=1000")["jobs"]
            if not left:
                break
            assert time.monotonic() < until, f"jobs never ended: {left}"
            for j in left:
                if j["state"] in ("held", "suspended"):
                    self.ask("POST", f"/v1/jobs/{j['id']}/release", {}, ok=(200, 404, 409))
            time.sleep(0.02)
        self.check()
        self.d.stop()
        self.check_state()

    def check_state(self):
        """The stopped daemon's folder: sound, and nothing of any job left in it."""
        tool = subprocess.run([BUILD / "stoker-store", "check", "--state", self.d.state], capture_output=True, text=True, timeout=120)
        assert tool.returncode == 0, tool.stdout + tool.stderr
        left = [str(p) for name in ("run", "attach", "script") for p in (self.d.state / name).glob("*")]
        assert not left, left

    def log(self):
        starts, ends = collections.Counter(), collections.Counter()
        path = f"{self.work}/log"
        if os.path.exists(path):
            with open(path, encoding="ascii") as f:
                for line in f:
                    word, job, rest = line.split(maxsplit=2)
                    assert word != "conflict", f"two owners of a GPU: {line}"
                    counter = starts if word == "start" else ends
                    counter[int(job), rest.split()[0]] += 1
        return starts, ends

    def check(self):
        starts, ends = self.log()
        records = {}
        page = self.ask("GET", "/v1/history?limit=1000")
        while page["jobs"]:
            records.update((j["id"], j) for j in page["jobs"])
            if page["next"] is None:
                break
            page = self.ask("GET", f"/v1/history?limit=1000&before={page['next']}")
        twice = [k for k, n in starts.items() if n > 1]
        assert not twice, f"ran twice: {twice}"
        lost = [n for n in self.jobs if n not in records]
        assert not lost, f"acknowledged and lost: {lost}"
        names = collections.Counter(j["name"] for j in records.values())
        assert all(n == 1 for n in names.values()), f"submitted twice: {names}"
        for number, record in records.items():
            n_ends = sum(n for (job, _), n in ends.items() if job == number)
            if number in self.touched:
                continue
            assert record["cause"] == "completed", json.dumps(record) + repr(self.words)
            # one that was evicted may just have said its last word when it was told to go
            assert 1 <= n_ends <= 1 + record["preemptions"], f"job {number} ended {n_ends} times: {record}"


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
def test_nothing_is_lost(seed, tmp_path):
    run = Run(seed, tmp_path)
    try:
        run.go()
    finally:
        run.d.close()
