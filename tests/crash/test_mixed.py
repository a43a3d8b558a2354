# SPDX-License-Identifier: Apache-2.0
"""As test_crash.py, with every kind of job (arrays with a limit, dependencies, gangs, retries, time limits,
terminals, batches), while supervisors, the process that makes them and processes of jobs are killed too and the
configuration changes. Then the same on a disk that fills up.

STOKER_RUNS: how many runs (default 15). STOKER_SEED: the first seed.
"""
import collections
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest
from patience import until
from test_crash import BUILD, COUNTS, GPUS, Gone, Run

RUNS = int(os.environ.get("STOKER_RUNS", "15"))
SEED = int(os.environ.get("STOKER_SEED", "1"))
POLICIES = ["fifo", "sjf", "priority", "default"]


class Mixed(Run):
    def __init__(self, seed, folder):
        super().__init__(seed, folder)
        self.d.config = self.d.folder / "stoker.yaml"
        self.d.config.write_text("policy: fifo\n")
        self.first = {}       # of an acknowledged description: its number -> (description, how many jobs)
        self.killed = set()   # jobs of which a process or the supervisor was killed

    def program(self, ms, *words):
        return [str(BUILD / "gpujob"), self.work, str(ms), *words]

    def describe(self):
        kind = self.r.choice(["plain", "plain", "array", "after", "gang", "retry", "limit", "terminal", "batch"])
        job = {"command": self.program(self.r.choice([1, 5, 20, 60])), "gpus": self.r.choice([0, 1, 1, 2]), "workdir": self.work, "stdout": "/dev/null",
               "grace_s": 1, "suspend": "never", "comment": kind}
        if kind == "plain":
            return super().describe() | {"comment": "plain"}
        if kind == "array":
            job["array"] = {"first": 0, "last": self.r.randrange(1, 6), "limit": self.r.randrange(1, 4)}
        elif kind == "after" and self.first:
            on = self.r.choice(list(self.first))
            job["depends"] = [{"type": self.r.choice(["afterok", "afterany", "afternotok"]), "job": on}]
        elif kind == "gang":
            job["tasks"], job["gpus"] = 2, self.r.choice([1, 1, 2])
        elif kind == "retry":
            job["retry"] = {"error": 3}
            job["command"] = ["/bin/sh", "-c", '"$0" "$@"; exec test "$STOKER_RESTARTS" -ge 2', *job["command"]]
        elif kind == "limit":
            job["command"] = self.program(60000)
            job["time_limit_s"], job["gpus"] = 1, 0
        elif kind == "terminal":
            job["interactive"] = True
        elif kind == "batch":
            job["items"], job["workers"], job["gpus"] = [str(i) for i in range(4)], 2, 0
            job["command"] = ["/bin/sh", "-c", f"echo item $STOKER_JOB_ID {{}} >>{self.work}/items"]
        return job

    def send(self, key):
        jobs = self.unsure[key]
        try:
            answer = self.ask("POST", "/v1/jobs", {"jobs": jobs}, key=key)
        except AssertionError as e:
            if "can never be met" not in str(e):
                raise
            self.unsure.pop(key)  # refused: the job it waits for has ended badly
            return
        at = answer["id"]
        for job in self.unsure.pop(key):
            a = job.get("array")
            n = len(range(a["first"], a["last"] + 1)) if a else job.get("workers", 1)
            self.first[at] = (job, n)
            for i in range(at, at + n):
                self.jobs[i] = job
            at += n
        assert at - answer["id"] == answer["count"]

    def shoot(self):
        """kill -9 for a supervisor or a process of a job, wherever it is in its life."""
        found = self.d.processes()
        if not found:
            return
        pid, number = self.r.choice(sorted(found.items()))
        self.killed.add(number)
        self.fixed.pop(number, None)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            COUNTS["processes of jobs killed"] += 1

    def shoot_nursery(self):
        """No job may suffer from it."""
        with contextlib.suppress(OSError, TypeError):
            os.kill(self.d.nursery(), signal.SIGKILL)
            COUNTS["nurseries killed"] += 1

    def reload(self):
        self.d.config.write_text(f"policy: {self.r.choice(POLICIES)}\n")
        if self.d.alive():
            self.d.reload()

    def step(self):
        what = self.r.random()
        if what < 0.12:
            self.shoot()
        elif what < 0.17:
            self.shoot_nursery()
        elif what < 0.22:
            self.reload()
        else:
            super().step()

    def look(self, number):
        super().look(number)
        if "depends" in self.jobs[number] and number in self.fixed and self.fixed[number][0]["state"] != "done":
            self.fixed.pop(number)  # may end for what it waits for

    def check(self, records, starts, ends):
        self.check_once(records, starts)
        for number, record in records.items():
            self.check_end(number, record, records)
        self.check_limits(records)
        self.check_items(records)

    def check_end(self, number, record, records):
        job = self.jobs[number]
        if number in self.killed:
            return
        if "cancel" in self.asked[number]:
            assert record["cause"] in ("cancelled", "completed", "timeout", "dependency_failed"), record
            return
        want = {"timeout"} if "time_limit_s" in job else {"completed"}
        if dep := (job.get("depends") or [None])[0]:
            on = [records[i] for i in range(dep["job"], dep["job"] + self.first[dep["job"]][1])]
            ok = [j["cause"] == "completed" for j in on]
            met = dep["type"] == "afterany" or (all(ok) if dep["type"] == "afterok" else not any(ok))
            want = {"completed"} if met else {"dependency_failed"}
        assert record["cause"] in want, f"{record} instead of {want}; {self.words}"
        if "retry" in job:
            assert record["restarts"] >= 2, record

    def check_limits(self, records):
        """No more elements of an array at a time than its limit, by the jobs' own log."""
        running = collections.defaultdict(set)
        spoiled = {records[n]["array_id"] for n in {*self.asked, *self.killed} if n in records}
        path = pathlib.Path(self.work, "log")
        for line in path.read_text().splitlines() if path.exists() else []:
            word, number, _ = line.split(maxsplit=2)
            first = records[int(number)]["array_id"]
            if not first or first in spoiled:
                continue
            (running[first].add if word == "start" else running[first].discard)(number)
            limit = self.first[first][0].get("array", {}).get("limit")
            assert not limit or len(running[first]) <= limit, f"array {first}: {running[first]} at a time"

    def check_items(self, records):
        path = pathlib.Path(self.work, "items")
        done = collections.Counter(line.split()[2] + "/" + str(records[int(line.split()[1])]["array_id"] or line.split()[1])
                                   for line in (path.read_text().splitlines() if path.exists() else []))
        for first, (job, n) in self.first.items():
            if "items" not in job or any(i in self.asked or i in self.killed for i in range(first, first + n)):
                continue
            for item in job["items"]:
                assert done[f"{item}/{first}"] >= 1, f"item {item} of batch {first} was never done"


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
def test_every_kind_of_job_survives(seed, tmp_path):
    run = Mixed(seed, tmp_path)
    try:
        run.go()
    finally:
        run.d.close()


class Gpus(Run):
    """GPUs, or what it takes for them: jobs are suspended through stoker-gpu, which is killed as well."""

    def __init__(self, seed, folder):
        super().__init__(seed, folder)
        self.fakes = self.d.folder / "fake"
        self.fakes.mkdir()
        self.d.gpus = None
        self.d.config = self.d.folder / "stoker.yaml"
        self.d.config.write_text("gpus: {interval_ms: 200}\n")
        self.d.env.update(STOKER_GPU_LIB_DIR=str(BUILD / "tests" / "lib"), STOKER_FAKE_DIR=str(self.fakes))

    def describe(self):
        job = super().describe()
        return job | {"gpus": min(job["gpus"], 2), "envs": {"GPUJOB_CUDA": str(self.fakes)}}

    def step(self):
        if self.r.random() < 0.15:
            for pid in self.d.children("stoker-gpu"):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    COUNTS["GPU helpers killed"] += 1
        super().step()


@pytest.mark.skipif(not (BUILD / "tests/lib/libcuda.so.1").exists(), reason="not built with tests")
@pytest.mark.parametrize("seed", range(SEED, SEED + max(RUNS // 3, 1)))
def test_a_helper_that_is_killed_costs_no_job(seed, tmp_path):
    run = Gpus(seed, tmp_path)
    try:
        run.go()
    finally:
        run.d.close()


class Full(Mixed):
    """The state folder lies on a small disk that is filled and emptied again."""

    def __init__(self, seed, folder, disk):
        super().__init__(seed, folder)
        self.d.state = disk / "state"
        self.ballast = disk / "ballast"

    def ask(self, method, path, body=None, key=None, ok=(200, 201)):
        key = None if key and key.startswith("no ") else key
        a = super().ask(method, path, body, key, (*ok, 507))
        if "error" in a and a["error"]["code"] == "cannot_write":
            COUNTS["requests refused on a full disk"] += 1
            assert len(a["error"]["message"]) > 10
            raise Gone
        return a

    def send(self, key):
        """Sometimes without its key: what is refused then must not have happened."""
        if self.r.random() < 0.5:
            super().send(key)
            return
        self.unsure["no " + key] = self.unsure.pop(key)
        try:
            super().send("no " + key)
        finally:
            self.unsure.pop("no " + key, None)

    def fill(self):
        with contextlib.suppress(OSError), open(self.ballast, "ab", buffering=0) as f:
            while True:
                f.write(b"x" * 65536)

    def go(self):
        self.start(crash=False)
        for _ in range(4):
            with contextlib.suppress(Gone):
                for _ in range(10):
                    self.step()
            for _ in range(30):
                self.fill()
                with contextlib.suppress(Gone):
                    self.step()
            assert self.d.alive(), self.d.errors
            if self.r.random() < 0.5:
                self.d.kill()
                self.ballast.unlink()
                self.start(crash=False)
            else:
                self.ballast.unlink()
            until(lambda: self.ask("GET", "/v1/health")["status"] == "ok", say="it recovers")
        while self.unsure:
            self.send(next(iter(self.unsure)))
        self.finish()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount")
@pytest.mark.parametrize("seed", range(SEED, SEED + max(RUNS // 5, 1)))
def test_a_disk_that_fills_up_loses_nothing(seed, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    size = ("3m", "6m", "12m")[seed % 3]  # on the first the store alone could do it
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", disk], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    run = Full(seed, tmp_path / "run", disk)
    try:
        run.go()
    finally:
        run.d.close()
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount")
def test_a_state_folder_that_cannot_be_written_is_refused(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "none", disk], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    run = Mixed(1, tmp_path / "run")
    run.d.state = disk / "state"
    try:
        run.start(crash=False)
        number = run.d.submit(command=["/bin/true"], stdout="/dev/null")
        run.d.wait(number)
        run.d.stop()
        while subprocess.run(["mount", "-o", "remount,ro", disk], capture_output=True).returncode != 0:
            time.sleep(0.05)  # a supervisor may still be on its way out
        with pytest.raises(RuntimeError, match="(?i)read-only|cannot be written|not be written"):
            run.d.start()
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        run.start(crash=False)
        assert run.d.job(number)["cause"] == "completed"
    finally:
        run.d.close()
        subprocess.run(["umount", "-l", disk], check=True)


assert GPUS >= 4  # gangs of two with two GPUs each
