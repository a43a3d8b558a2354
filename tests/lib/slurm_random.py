# SPDX-License-Identifier: Apache-2.0
"""Random runs on a real Slurm cluster: jobs of one GPU, gangs, arrays and jobs that save when they must leave are
submitted, to stoker and by users' own sbatch, cancelled and preempted, while nodes fail and come back, nodes are drained,
and slurmctld, stokerd and stoker-libslurm are killed, one by one and together. Afterwards

- every job that was acknowledged has ended, and as it should: completed, or cancelled if that was asked for;
- none ran twice: a job that has run to its end is never started again, and no two runs of a job overlap; the jobs
  themselves write down when they start and end;
- the core was sound after every turn (--paranoid), and Slurm has nothing of ours left.

Slurm itself forgets, and then a job is run again with or without stoker. That alone is forgiven, and what slurmctld
wrote down and when is looked up in its files and its log:

- slurmctld was killed, and had not written down yet that it started the job, or that it heard of its end;
- it never heard of the end: the job's node failed first, or slurmctld had requeued the job by then;
- slurmd, when it meets a number that is used again, clears away scripts of jobs that it does not know, and with them one that it is
  just launching: its log says that it could not execute that script, and the job has failed with 2;
- an sbatch that a slurmctld took and had not written down when it was killed is gone, as it would be without stoker.

STOKER_RUNS: how many runs (default 10), STOKER_SEED: the first seed, STOKER_STEPS: what happens in each.
"""
import collections
import contextlib
import http.client
import os
import pathlib
import random
import re
import time

from slurm_daemon import slurm_daemon

RUNS = int(os.environ.get("STOKER_RUNS", "10"))
SEED = int(os.environ.get("STOKER_SEED", "1"))
STEPS = int(os.environ.get("STOKER_STEPS", "12"))
PATIENCE_S = float(os.environ.get("STOKER_PATIENCE", "600"))
COUNTS = collections.Counter()
# "$1": how long in tenths of a second; it says so in a file of its own when it starts and when it has come to its end.
SCRIPT = """#!/bin/bash
who=${TAG:+TAG=$TAG}
who=${who:-STOKER_JOB_ID=$STOKER_JOB_ID}
log=$PWD/job-${TAG:-$STOKER_JOB_ID}
say() { echo "$1 $SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0} $(date +%s.%N) $2" >>$log; }
trap 'say saved; exit 86' USR1
for pid in $(sed -n 's/^start .* //p' $log 2>/dev/null | grep -vx $$); do
    grep -qs "^$who$" <(tr '\\0' '\\n' </proc/$pid/environ) && grep -qs "$PWD" <(readlink /proc/$pid/cwd) && say overlap $pid
done
say start $$
for i in $(seq $1); do sleep 0.1; done
trap '' USR1
say end
"""


class Gone(Exception):
    """The daemon is not there."""


class Slurmctld:
    """What a slurmctld that is killed has written down, and what it heard of and when, by its log."""

    def __init__(self, cluster):
        self.cluster, self.lost = cluster, []

    def kill(self):
        saved = 0  # when it has never been
        with contextlib.suppress(FileNotFoundError):
            saved = os.path.getmtime(f"{self.cluster.folder}/state/job_state")
        self.cluster.stop_controller()
        self.lost.append((saved - 1, time.time() + 1))  # a save takes a moment

    def forgot(self, at):
        return any(a <= at <= b for a, b in self.lost)

    def said(self, words, job):
        """When it said so of the job: Unix times."""
        return self.cluster.logged("ctld", rf"{words} JobId={job}\b")


class Run:
    def __init__(self, seed, folder, cluster):
        self.r, self.cluster = random.Random(seed), cluster
        self.work = pathlib.Path(folder, "work")
        self.work.mkdir(parents=True)
        self.partitions = cluster.managed or ["main"]  # of stoker's; nodes may be in several
        self.d = slurm_daemon(folder, cluster, args=["--paranoid"], partitions=", ".join(self.partitions))
        self.words, self.did = [], []
        self.keys, self.jobs, self.unsure, self.cancelled = 0, {}, {}, set()
        self.tags = {}  # of jobs that came by sbatch: when it was acknowledged
        self.down, self.drained, self.controller = set(), set(), True
        self.slurmctld = Slurmctld(cluster)
        self.failed = []  # from when to when a node failed

    # ---- the daemons ----

    def start(self):
        if not self.d.alive() and self.controller:
            self.words += self.d.errors
            self.d.start()

    def kill(self):
        if self.d.alive():
            self.d.kill()

    def stop_controller(self):
        if self.controller:
            self.slurmctld.kill()
        self.controller = False

    def start_controller(self):
        if not self.controller:
            self.cluster.start_controller()
            self.cluster.wait_controller()
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
            job["tasks"], job["launch"] = self.r.choice([2, 3]), "once"
        if self.r.random() < 0.2:
            job["tier"], job["priority"] = "critical", 1000
        elif self.r.random() < 0.4:
            job["tier"] = "best-effort"
        if self.r.random() < 0.1:
            job["array"] = {"first": 0, "last": 2}
        if self.r.random() < 0.2:  # without time to save anything
            del job["signal"]
        if len(self.partitions) > 1:
            job["pool"] = self.r.choice(self.partitions)
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

    def sbatch(self):
        """A user's own job; whether it is acknowledged is known only when Slurm says so."""
        path = self.work / "own.sh"
        path.write_text(SCRIPT)
        for _ in range(self.r.choice([1, 2, 4]) if self.controller else 0):
            tag = f"s{len(self.tags)}"
            shape = self.r.choice([["--gpus-per-node=1"], ["--gpus-per-node=2"], ["-N2", "--gpus-per-node=4"], ["-n3", "--gpus-per-task=1"]])
            if len(self.partitions) > 1:
                shape += ["-p", self.r.choice([*self.partitions, ",".join(self.partitions)])]
            done = self.cluster.run("sbatch", "--parsable", "-D", str(self.work), "-o", "/dev/null", "-J", tag, f"--export=ALL,TAG={tag}", *shape,
                                    str(path), str(self.r.choice([1, 5, 20])), check=False)
            if done.returncode == 0:
                self.tags[tag] = time.time()
                COUNTS["sbatch jobs"] += 1

    def cancel(self):
        living = self.ask("GET", "/v1/jobs?limit=1000")["jobs"]
        if living:
            job = self.r.choice(living)
            self.cancelled |= {job["id"], job["name"]}
            self.ask("POST", f"/v1/jobs/{job['id']}/cancel", ok=(200, 404, 409))

    def node_fails(self):
        name = f"n{self.r.randrange(1, self.cluster.nodes + 1)}"
        if self.controller and name not in self.down and len(self.down) < 2:
            begin = time.time()
            self.cluster.stop_node(name, self.work)
            self.failed.append((begin, time.time()))
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
        what = self.r.choices([self.submit, self.sbatch, self.cancel, self.node_fails, self.node_returns, self.drain, self.helper, self.daemon_dies,
                               self.controller_dies, self.both_die], [8, 3, 2, 1, 1.5, 1.5, 1, 1.5, 1, 1])[0]
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
        """What people do: nodes that Slurm drained (it found a number of its own used twice) are resumed, Slurm counts GPUs anew
        where stoker says that it has lost count, and jobs are ended that a killed slurmctld thinks to be there: where stoker says that
        no node knows of them, and those of earlier runs."""
        self.cluster.resume()
        if any("scontrol reconfigure" in line for line in self.d.errors):
            COUNTS["lost count"] += 1
            self.cluster.run("scontrol", "reconfigure", check=False)
        for line in self.d.errors:
            if advice := re.search(r"until it is ended \(scancel (\d+)\)", line):
                COUNTS["revived"] += 1
                self.cluster.run("scancel", advice[1], check=False)
        for line in self.cluster.run("squeue", "-h", "-o", "%i %Z", check=False).stdout.splitlines():
            if line.split()[1] != str(self.work):
                self.cluster.run("scancel", line.split()[0], check=False)

    def left(self):
        """Jobs that have not ended: stoker's, and such that Slurm started before stoker saw them."""
        return self.ask("GET", "/v1/jobs?limit=1000")["jobs"] or self.cluster.run("squeue", "-h").stdout.split()

    def go(self):
        self.start()
        self.operator()
        for _ in range(STEPS):
            self.step()
        self.mend()
        until = time.monotonic() + PATIENCE_S
        while living := self.left():
            assert time.monotonic() < until, f"still there: {[self.d.job(j['id']) if isinstance(j, dict) else j for j in living]}"
            assert self.d.alive(), self.d.errors
            self.operator()
            time.sleep(0.3)
        self.check()

    def check(self):
        records = self.d.history()
        brought = [n for n in records if n not in self.jobs]
        names = {n: records[n]["name"] for n in brought if self.d.job(n)["workdir"] == str(self.work)}  # others are of earlier runs
        assert set(self.jobs) <= set(records), f"lost: {set(self.jobs) - set(records)}"
        assert set(names.values()) <= set(self.tags) and len(set(names.values())) == len(names), f"nobody sent: {names}"
        for number in self.jobs:
            self.check_one(number, number in self.cancelled, records[number])
        of = {name: records[n] for n, name in names.items()}
        for tag, at in self.tags.items():
            self.check_one(tag, tag in self.cancelled or self.slurmctld.forgot(at), of.get(tag))
        self.cluster.idle()

    def forgotten(self, start, end, following):
        """Slurm does not know that this run has come to its end, after which there is another."""
        job, begin, at, until = end[1].split(".")[0], float(start[2]), float(end[2]), float(following[2])
        heard = [t for t in self.slurmctld.said("_job_complete:", job) if at - 0.01 < t < until]
        begun = max((t for t in self.slurmctld.said("(Allocate|Started)", job) if t < begin + 0.01), default=begin)
        if self.slurmctld.forgot(begun) or (heard and self.slurmctld.forgot(heard[0])):
            return True
        failed = any(begun < b and (not heard or heard[0] > a) for a, b in self.failed)
        return failed or any(at - 0.01 < t < until for t in self.slurmctld.said("Requeuing", job))

    def cleared_away(self, record):
        """Its node has removed its script before it was executed."""
        job = ((record or {}).get("slurm") or {}).get("id", "")
        if not job.isdigit() or (record["cause"], record["exit_code"]) != ("failed", 2):
            return False
        words = rf"execve\(\): .*/job{int(job):05d}/slurm_script: No such file or directory"
        return any(record["started"] - 1 < at < record["ended"] + 1 for k in range(self.cluster.nodes) for at in self.cluster.logged(f"n{k + 1}", words))

    def check_one(self, name, may_not, record):
        """'may_not': it need not have come to its end."""
        path = self.work / f"job-{name}"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        what = f"job {name}: {lines}, {record}"
        starts = [line for line in lines if line[0] == "start"]
        ends = [i for i, line in enumerate(lines) if line[0] == "end"]
        last = {}
        for i, line in enumerate(lines):
            last[i] = line if line[0] == "start" else last.get(i - 1, line)
        forgotten = [i for i in ends if i < len(lines) - 1 and self.forgotten(last[i], lines[i], lines[i + 1])]
        COUNTS["starts"] += len(starts)
        COUNTS["ends that Slurm forgot"] += len(forgotten)
        assert "overlap" not in (line[0] for line in lines), what
        if not starts and self.cleared_away(record):
            COUNTS["scripts that slurmd cleared away"] += 1
            return
        assert may_not or ends, what
        if record:
            assert record["cause"] == "completed" or (may_not and record["cause"] in ("cancelled", "lost")), what
        assert len([i for i in ends if i < len(lines) - 1]) == len(forgotten), what


def go(seed, cluster, folder):
    run = Run(seed, folder, cluster)
    try:
        run.go()
    except BaseException:
        print(f"STOKER_SEED={seed} STOKER_RUNS=1: {run.did} {run.slurmctld.lost} {run.failed}")
        print(cluster.run("sinfo", "-N", "-o", "%N %T %E %G", check=False).stdout, cluster.run("squeue", "-a", "-o", "%i %T %N %r %k", check=False).stdout)
        print("\n".join(line for line in (run.words + run.d.errors)[-80:] if "get_pids" not in line))
        raise
    finally:
        run.d.close()
