# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every step: random runs of submit, start, finish, cancel, hold, preempt, suspend, reload, backup, in
which the daemon dies again and again, just before or just after a call that changes something outside it
(tests/lib/crash_at.c counts them). Afterwards

- every job that was acknowledged is there once, and has ended as it should; what was acknowledged after that
  (a hold, a suspend, an end) has stayed so until somebody asked for something else;
- no lease was started twice, no job had two processes at a time, and no GPU two owners: the jobs themselves look
  (tests/lib/gpujob.c);
- the store is sound and nothing of any job is left in the state folder.

STOKER_RUNS: how many runs (default 50). STOKER_SEED: the first seed.
"""
import collections
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import time

import pytest
from daemon import SANITIZED, STOKER, Daemon
from patience import PATIENCE_S

RUNS = int(os.environ.get("STOKER_RUNS", "50"))
SEED = int(os.environ.get("STOKER_SEED", "1"))
GPUS = 4
BUILD = STOKER.parent
COUNTS = collections.Counter()  # of the whole session, shown at its end


class Gone(Exception):
    """The daemon died while it was asked."""


def store(*args):
    return subprocess.run([BUILD / "stoker-store", *args], capture_output=True, text=True, timeout=120)


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
        self.asked = collections.defaultdict(set)  # id -> what was done to it, perhaps without an answer
        self.fixed = {}       # id -> how it was last seen, and how often it had started: it must stay so
        self.backups = []     # (process, file, jobs acknowledged before)
        self.deaths = 0
        self.words = []

    # ---- the daemon ----

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
        return self.r.randrange(1, self.r.choice([20, 60, 200, 600, 1500]))

    # ---- what may happen ----

    def describe(self):
        gpus = self.r.choice([0, 1, 1, 1, 2, 2, 4])
        suspend = self.r.random() < 0.4
        job = {"command": [str(BUILD / "gpujob"), self.work, str(self.r.choice([1, 5, 20, 60, 150]))],
               "gpus": gpus, "workdir": self.work, "stdout": "/dev/null", "grace_s": 1,
               "suspend": "auto" if suspend else "never"}
        if suspend:
            job["command"].append("sleeps")
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

    def living(self):
        return self.ask("GET", "/v1/jobs?limit=1000")["jobs"]

    def act(self):
        verb = self.r.choice(["cancel", "hold", "hold", "release", "suspend", "suspend", "resume", "requeue", "update"])
        ids = [j["id"] for j in self.living()]
        if not ids:
            return
        number = self.r.choice(ids)
        self.fixed.pop(number, None)
        self.asked[number].add(verb)
        body = {"priority": self.r.randrange(400, 600)} if verb == "update" else {}
        self.ask("POST", f"/v1/jobs/{number}/{verb}", body, ok=(200, 404, 409))
        self.look(number)

    def look(self, number):
        """What has no reason to change is to be found again."""
        job = self.ask("GET", f"/v1/jobs/{number}")
        if job["state"] == "done" or job.get("reason", {}).get("code") == "held":
            self.fixed[number] = (job, self.starts_of(number))

    def backup(self):
        path = self.d.folder / f"backup-{len(self.backups)}"
        p = subprocess.Popen([BUILD / "stoker-store", "backup", "--state", self.d.state, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.backups.append((p, path, set(self.jobs)))

    def step(self):
        what = self.r.random()
        if self.unsure:
            self.send(next(iter(self.unsure)))
        elif what < 0.45:
            self.submit()
        elif what < 0.8:
            self.act()
        elif what < 0.83:
            self.d.reload()
        elif what < 0.84:
            self.backup()
        elif what < 0.9 and self.jobs:
            self.look(self.r.choice(list(self.jobs)))
        else:
            time.sleep(self.r.choice([0.001, 0.01, 0.03]))

    def end_life(self):
        """By the counter, by kill -9, or stopped in good order unless the counter runs out on the way."""
        if self.d.alive() and self.r.random() < 0.3:
            if self.d.stop() != 0:
                self.deaths += 1
        elif self.d.alive():
            self.deaths += 1
            self.d.kill()

    def go(self):
        for _ in range(self.r.randrange(2, 5)):  # lives of the daemon
            while not self.start():
                pass
            try:
                for _ in range(self.r.randrange(5, 25)):
                    self.step()
            except Gone:
                self.d.process.wait(PATIENCE_S)
                self.deaths += 1
            self.end_life()
        self.start(crash=False)
        while self.unsure:
            self.send(next(iter(self.unsure)))
        self.finish()

    # ---- afterwards ----

    def finish(self):
        self.check_fixed()
        until = time.monotonic() + PATIENCE_S
        while left := self.living():
            assert time.monotonic() < until, f"jobs never ended: {left}"
            for j in left:
                if j["state"] in ("held", "suspended"):
                    self.ask("POST", f"/v1/jobs/{j['id']}/release", {}, ok=(200, 404, 409))
            time.sleep(0.02)
        starts, ends = self.log()
        records = self.d.history()
        self.check(records, starts, ends)
        self.d.stop()
        self.check_state()
        self.check_backups()
        COUNTS.update(runs=1, kills=self.deaths, jobs=len(records), starts=sum(starts.values()))

    def log(self):
        """(job, restarts, lease) -> how often it began, and ended."""
        starts, ends = collections.Counter(), collections.Counter()
        with contextlib.suppress(FileNotFoundError), open(f"{self.work}/log", encoding="ascii") as f:
            for line in f:
                word, job, rest = line.split(maxsplit=2)
                assert word != "conflict", f"not alone: {line}{self.words}"
                restarts, lease, *_ = rest.split()
                (starts if word == "start" else ends)[int(job), int(restarts), int(lease)] += 1
        return starts, ends

    def starts_of(self, number):
        return sum(n for (job, *_), n in self.log()[0].items() if job == number)

    def check_fixed(self):
        for number, (was, starts) in self.fixed.items():
            job = self.ask("GET", f"/v1/jobs/{number}")
            same = ("state", "cause", "ended", "restarts", "exit_code")
            assert [job[k] for k in same] == [was[k] for k in same], f"{was} became {job}; {self.words}"
            assert self.starts_of(number) == starts, f"started while {was['state']}: {job}"

    def check_once(self, records, starts):
        """Nothing is lost, nothing twice."""
        lost = [n for n in self.jobs if n not in records]
        assert not lost, f"acknowledged and lost: {lost}"
        more = [n for n in records if n not in self.jobs]
        assert not more, f"never acknowledged, or twice: {more}"
        for (job, *which), n in starts.items():
            assert n <= self.jobs[job].get("tasks", 1), f"job {job}, start and lease {which}: {n} processes"

    def check(self, records, starts, ends):
        self.check_once(records, starts)
        names = collections.Counter(j["name"] for j in records.values())
        assert all(n == 1 for n in names.values()), f"submitted twice: {names}"
        for number, record in records.items():
            asked = self.asked[number]
            causes = ("completed", "cancelled") if "cancel" in asked else ("completed",)
            assert record["cause"] in causes, json.dumps(record) + repr(self.words)
            n_ends = sum(n for (job, *_), n in ends.items() if job == number)
            # one that was evicted may just have said its last word when it was told to go
            most = 1 + record["restarts"] + record["preemptions"]
            least = record["cause"] == "completed"
            assert least <= n_ends <= most, f"job {number} ended {n_ends} times: {record}"

    def check_state(self):
        """The stopped daemon's folder: sound, and nothing of any job left in it."""
        tool = store("check", "--state", self.d.state)
        assert tool.returncode == 0, tool.stdout + tool.stderr
        left = [str(p) for name in ("run", "attach", "script") for p in (self.d.state / name).glob("*")]
        assert not left, left

    def check_backups(self):
        """Whole, with all that was acknowledged before they began."""
        for p, path, before in self.backups:
            said = p.communicate(timeout=120)[0]
            assert p.returncode == 0, said
            state = path.with_suffix(".state")
            state.mkdir(mode=0o700)
            for command in ("restore", path), ("check",):
                tool = store(*command, "--state", state)
                assert tool.returncode == 0, tool.stdout + tool.stderr
            there = {json.loads(line)["id"] for line in store("export", "--state", state).stdout.splitlines()}
            assert before <= there, f"not in the backup: {before - there}"
        COUNTS.update(backups=len(self.backups))


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
def test_nothing_is_lost(seed, tmp_path):
    run = Run(seed, tmp_path)
    try:
        run.go()
    finally:
        run.d.close()
