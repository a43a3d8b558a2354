# SPDX-License-Identifier: Apache-2.0
"""Jobs share a GPU in turns while the daemon dies again and again, just before or just after a call that changes
something outside it, so also in the middle of a switch. Never do two run at once, every job makes all its steps once.

STOKER_RUNS: how many runs (default 3; of a soak the hundredth part of what it says). STOKER_SEED: the first seed.
"""
import contextlib
import itertools
import os
import pathlib
import threading
import time

import pytest
from patience import PATIENCE_S
from test_crash import COUNTS, Gone, Run
from turns import counts, read, turns

RUNS = max(3, int(os.environ.get("STOKER_RUNS", "3")) // 100)
SEED = int(os.environ.get("STOKER_SEED", "1"))
JOBS, STEPS = 3, 120


def at_work(pid):
    """None: it is stopped, or no more. Else what is another as soon as it has been: how often it was switched to."""
    with contextlib.suppress(OSError):
        words = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        if not words["Name"].startswith("stoker") and words["State"][0] not in "TtZX":
            return words["voluntary_ctxt_switches"], words["nonvoluntary_ctxt_switches"]
    return None


def at_once(one, other):
    """True: the other was not stopped at some instant in which this one was not."""
    before = at_work(one)
    return before is not None and at_work(other) is not None and at_work(one) == before


class Watch(threading.Thread):
    """Looks at the processes of all jobs, all the time: those of one job at most can run."""

    def __init__(self, d):
        super().__init__(daemon=True)
        self.d, self.over, self.looks, self.both = d, False, 0, []

    def run(self):
        while not self.over:
            awake = {pid: job for pid, job in self.d.processes().items() if at_work(pid)}
            for one, other in itertools.combinations(awake, 2):  # not at one instant: one may have gone to sleep before the other was looked at
                if awake[one] != awake[other] and any(at_once(one, other) for _ in range(20)):
                    self.both.append((awake[one], awake[other]))
            self.looks += 1
            time.sleep(0.01)


class Turns(Run):
    def __init__(self, seed, folder):
        super().__init__(seed, folder)
        self.d.gpus = 1
        self.d.config = self.d.folder / "stoker.yaml"
        self.d.config.write_text("gpus:\n  quantum: 0s\n  switch_pct: 40\n")

    def submit_all(self):
        while len(self.jobs) < JOBS:
            name = f"job{len(self.jobs)}"
            job = {"command": counts(self.work, name, STEPS), "share": "time", "share_max": JOBS, "workdir": self.work, "stdout": "/dev/null",
                   "name": name}
            try:
                self.jobs[self.ask("POST", "/v1/jobs", job, key=name)["id"]] = job
            except Gone:
                self.come_back()

    def come_back(self):
        if self.d.process:
            self.d.process.wait(PATIENCE_S)  # it is gone, and may not be buried yet
        while not self.start(crash=self.deaths < 12):
            pass
        self.deaths += 1

    def steps(self):
        """Where the daemon dies next: while it comes up, or during a switch or two."""
        return self.r.randrange(1, self.r.choice([60, 120, 250]))

    def ended(self):
        return {j["id"]: j for j in self.ask("GET", "/v1/history?limit=1000")["jobs"]}

    def play(self):
        self.come_back()
        watch = Watch(self.d)
        watch.start()
        try:
            self.submit_all()
            end = time.monotonic() + PATIENCE_S
            while True:
                with contextlib.suppress(Gone):  # it may die under either question, also when all jobs have ended
                    if not self.living():
                        records = self.ended()
                        break
                assert time.monotonic() < end, self.jobs
                if not self.d.alive():
                    self.come_back()
                time.sleep(self.r.random() * 0.1)
        finally:
            watch.over = True
            watch.join()
        assert not watch.both
        for number, job in self.jobs.items():
            assert records[number]["cause"] == "completed", records[number]
            assert len(read(self.work, job["name"])) == STEPS
        COUNTS["turns"] += len(turns(self.work, [j["name"] for j in self.jobs.values()]))
        COUNTS["deaths during turns"] += self.deaths


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
def test_one_at_a_time_whenever_the_daemon_dies(seed, tmp_path):
    run = Turns(seed, tmp_path)
    try:
        run.play()
    finally:
        run.d.close()
