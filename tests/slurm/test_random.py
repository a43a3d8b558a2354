# SPDX-License-Identifier: Apache-2.0
"""Random runs on a real Slurm cluster: jobs of one GPU, gangs, arrays and jobs that save when they must leave are
submitted, cancelled and preempted, while nodes fail and come back, nodes are drained, and slurmctld, stokerd and
stoker-libslurm are killed, one by one and together. Afterwards

- every job that was acknowledged has ended, and as it should: completed, or cancelled if that was asked for;
- none ran twice: a job that has run to its end is never started again, and no two runs of a job overlap; the jobs
  themselves write down when they start and end. Some ends Slurm cannot know, and such a job is run again, by Slurm or by
  us: those of the last seconds before its controller was killed until it was back, those of the last moment before a node
  failed, and those of the moment in which it was told to requeue the job;
- the core was sound after every turn (--paranoid), and Slurm has nothing of ours left.

They are part of `make soak` alone: with each ten runs some still fail (docs/spec/slurm-engine.md).
STOKER_RUNS: how many runs (default 10). STOKER_SEED: the first seed. The runs share one cluster.
"""
import collections
import contextlib
import http.client
import os
import pathlib
import random
import time

import pytest
import slurm
from daemon import STOKERD, Daemon
from libslurm import PROGRAM

pytestmark = [pytest.mark.skipif(not slurm.installed(), reason="Slurm is not installed"),
              pytest.mark.skipif(not os.environ.get("STOKER_SOAK"), reason="random runs: with STOKER_SOAK (make soak)"),
              pytest.mark.skipif(not PROGRAM.exists() or not STOKERD.exists(), reason="not built (libslurm-dev)")]
RUNS = int(os.environ.get("STOKER_RUNS", "10"))
SEED = int(os.environ.get("STOKER_SEED", "1"))
STEPS = int(os.environ.get("STOKER_STEPS", "14"))
COUNTS = collections.Counter()
# "$1": how long in tenths of a second; it says so in a file of its own when it starts and when it has come to its end.
SCRIPT = """#!/bin/bash
log=$PWD/job-$STOKER_JOB_ID
say() { echo "$1 $SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0} $(date +%s.%N) $2" >>$log; }
trap 'say saved; exit 86' USR1
for pid in $(sed -n 's/^start .* //p' $log 2>/dev/null); do
    grep -qs "STOKER_JOB_ID=$STOKER_JOB_ID$" <(tr '\\0' '\\n' </proc/$pid/environ) && grep -qs "$PWD" <(readlink /proc/$pid/cwd) && say overlap $pid
done
say start $$
for i in $(seq $1); do sleep 0.1; done
trap '' USR1
say end
"""


class Gone(Exception):
    """The daemon is not there."""


class Run:
    def __init__(self, seed, folder, cluster):
        self.r, self.cluster = random.Random(seed), cluster
        self.work = pathlib.Path(folder, "work")
        self.work.mkdir(parents=True)
        config = f"engine: slurm\nslurm: {{conf: {cluster.conf}, partitions: [main]}}\n"
        self.d = Daemon(folder, gpus=None, config=config, args=["--paranoid"])
        self.words, self.did = [], []
        self.keys, self.jobs, self.unsure, self.cancelled = 0, {}, {}, set()
        self.down, self.drained, self.controller = set(), set(), True
        self.blind = []  # from when to when Slurm forgot what it did

    # ---- the daemons ----

    def start(self):
        if not self.d.alive() and self.controller:
            self.words += self.d.errors
            self.d.start(timeout=120)

    def kill(self):
        if self.d.alive():
            self.d.kill()

    def stop_controller(self):
        if self.controller:
            self.cluster.stop_controller()
            self.blind.append([time.time() - 10, float("inf")])  # it writes its state down every five seconds or so
        self.controller = False

    def start_controller(self):
        if not self.controller:
            self.cluster.start_controller()
            self.cluster.wait_controller()
            self.blind[-1][1] = time.time() + 1
        self.controller = True

    def ask(self, method, path, body=None, key=None, ok=(200, 201)):
        try:
            a = self.d.client().ask(method, path, body, {"Idempotency-Key": key} if key else {})
        except (OSError, http.client.HTTPException) as e:
            raise Gone from e
        assert a.status in ok, a
        return a.json

    # ---- what may happen ----

    def describe(self):
        job = {"script": SCRIPT, "args": [str(self.r.choice([1, 2, 5, 10, 20]))], "gpus": self.r.choice([1, 1, 1, 2, 4, 8]),
               "workdir": str(self.work), "stdout": "/dev/null", "signal": {"signal": "USR1", "seconds": 20, "who": "batch"}}
        if self.r.random() < 0.15:
            job["nodes"], job["launch"] = self.r.choice([2, 3]), "once"
            job["tasks"] = job.pop("nodes")
        if self.r.random() < 0.2:
            job["tier"], job["priority"] = "critical", 1000
        elif self.r.random() < 0.4:
            job["tier"] = "best-effort"
        if self.r.random() < 0.1:
            job["array"] = {"first": 0, "last": 2}
        if self.r.random() < 0.2:  # without time to save anything
            del job["signal"]
        return job

    def submit(self):
        self.keys += 1
        self.unsure[f"key-{self.keys}"] = [self.describe() for _ in range(self.r.choice([1, 2, 4, 8]))]
        self.send(f"key-{self.keys}")

    def send(self, key):
        answer = self.ask("POST", "/v1/jobs", {"jobs": self.unsure[key]}, key=key)
        self.unsure.pop(key)
        for number in range(answer["id"], answer["id"] + answer["count"]):
            self.jobs[number] = True
            COUNTS["jobs"] += 1

    def cancel(self):
        living = self.ask("GET", "/v1/jobs?limit=1000")["jobs"]
        if living:
            number = self.r.choice(living)["id"]
            self.cancelled.add(number)
            self.ask("POST", f"/v1/jobs/{number}/cancel", ok=(200, 404, 409))

    def node_fails(self):
        name = f"n{self.r.randrange(1, self.cluster.nodes + 1)}"
        if self.controller and name not in self.down and len(self.down) < 2:
            begin = time.time()
            self.cluster.stop_node(name, self.work)
            self.blind.append([begin - 2, time.time() + 1])
            self.down.add(name)

    def node_returns(self):
        if self.controller and self.down:
            name = self.r.choice(sorted(self.down))
            self.cluster.start_node(name)
            self.down.discard(name)

    def drain(self):
        name = f"n{self.r.randrange(1, self.cluster.nodes + 1)}"
        if not self.controller or name in self.down:
            return
        state = "resume" if name in self.drained else "drain"
        if state == "resume" or len(self.drained) < 2:
            self.cluster.run("scontrol", "update", f"nodename={name}", f"state={state}", "reason=test", check=False)
            (self.drained.discard if state == "resume" else self.drained.add)(name)

    def helper(self):
        for pid in self.d.children("stoker-libslurm") if self.d.alive() else []:
            with contextlib.suppress(OSError):
                os.kill(pid, 9)

    def daemon_dies(self):
        self.kill()
        if self.r.random() < 0.5:
            time.sleep(self.r.random())
        self.start()

    def controller_dies(self):
        self.stop_controller()
        time.sleep(self.r.random())
        self.start_controller()

    def both_die(self):
        steps = [self.kill, self.stop_controller]
        self.r.shuffle(steps)
        for step in steps:
            step()
        time.sleep(self.r.random())
        self.start_controller()
        self.start()

    def step(self):
        what = self.r.choices([self.submit, self.cancel, self.node_fails, self.node_returns, self.drain, self.helper, self.daemon_dies,
                               self.controller_dies, self.both_die], [10, 2, 1, 1.5, 1.5, 1, 1.5, 1, 1])[0]
        self.did.append(what.__name__)
        COUNTS[what.__name__] += 1
        with contextlib.suppress(Gone):
            what()
        time.sleep(self.r.choice([0, 0.05, 0.3, 1]))

    # ---- how it must end ----

    def mend(self):
        self.start_controller()
        for name in sorted(self.down):
            self.cluster.start_node(name)
        self.start()
        self.operator()
        for key in list(self.unsure):
            self.send(key)

    def operator(self):
        """Nodes that Slurm drained (it found a number of its own used twice) are resumed, and jobs of earlier runs that
        a killed slurmctld thinks to be there again are ended."""
        self.cluster.resume()
        mark = (self.d.state / "slurm-mark").read_text()
        for line in self.cluster.run("squeue", "-h", "-o", "%i %k", check=False).stdout.splitlines():
            if mark not in line:
                self.cluster.run("scancel", line.split()[0], check=False)

    def go(self):
        self.start()
        self.operator()
        for _ in range(STEPS):
            self.step()
        self.mend()
        until = time.monotonic() + float(os.environ.get("STOKER_PATIENCE", "150"))
        while living := self.ask("GET", "/v1/jobs?limit=1000")["jobs"]:
            assert time.monotonic() < until, f"still there: {[self.d.job(j['id']) for j in living]}"
            assert self.d.alive(), self.d.errors
            self.operator()
            time.sleep(0.3)
        self.check()

    def check(self):
        records = self.d.history()
        assert set(records) == set(self.jobs), f"lost: {set(self.jobs) - set(records)}, nobody sent: {set(records) - set(self.jobs)}"
        for number, record in records.items():
            self.check_one(number, record)
        self.cluster.idle()

    def unknown(self, line):
        """Slurm cannot know of this end: nobody was there to hear of it, or it was told to requeue the job before it heard of it."""
        at = float(line[2])
        return any(a < at < b for a, b in self.blind) or any(at < t < at + 2 for t in self.cluster.requeued(line[1].split(".")[0]))

    def check_one(self, number, record):
        path = self.work / f"job-{number}"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        what = f"job {number}: {lines}, {record}"
        ends = [i for i, line in enumerate(lines) if line[0] == "end"]
        starts = [line for line in lines if line[0] == "start"]
        forgotten = [i for i in ends[:-1] if self.unknown(lines[i])]
        COUNTS["starts"] += len(starts)
        COUNTS["ends that Slurm forgot"] += len(forgotten)
        assert "overlap" not in (line[0] for line in lines), what
        if number in self.cancelled:
            assert record["cause"] in ("cancelled", "completed"), what
        else:
            assert record["cause"] == "completed" and ends, what
        assert len(ends) - len(forgotten) <= 1, what
        assert not ends or ends[-1] == len(lines) - 1 or self.unknown(lines[ends[-1]]) or number in self.cancelled, what


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=4, gpus=8, extra="RequeueExitHold=86") as c:
        yield c


def go(seed, cluster, folder):
    run = Run(seed, folder, cluster)
    try:
        run.go()
    except BaseException:
        print(f"STOKER_SEED={seed} STOKER_RUNS=1: {run.did} {run.blind}")
        for what in ("job", "node"):
            print(cluster.run("scontrol", "show", what, "-d", check=False).stdout)
        print(cluster.run("sinfo", "-N", "-o", "%N %T %E %G", check=False).stdout, cluster.run("squeue", "-a", "-o", "%i %T %N %r %k", check=False).stdout)
        print("\n".join(line for line in (run.words + run.d.errors)[-80:] if "get_pids" not in line))
        raise
    finally:
        run.d.close()


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
def test_no_job_is_lost_and_none_runs_twice(seed, cluster, tmp_path):
    go(seed, cluster, tmp_path)


def test_64_nodes(tmp_path):
    with slurm.Cluster(tmp_path / "slurm", nodes=64, gpus=8, extra="RequeueExitHold=86") as c:
        go(SEED, c, tmp_path / "d")
