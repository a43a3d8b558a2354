# SPDX-License-Identifier: Apache-2.0
"""A day on a real Slurm cluster (tests/lib/slurm.py), under Slurm's own scheduler and under stoker. For
bench/slurm-day.

Every job is the same script, whoever starts it. It sleeps as long as its work takes, and writes a line into one
log when it begins, when it is told to go (USR1: it notes how much it has done, exits with 86, and goes on from
there when it is started again) and when it is done; work of @TIME lasts until then. All figures are made from that log: neither scheduler is
asked how long its jobs waited."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

import daemon as live
import slurm

SCRIPT = r"""#!/bin/bash
trap 'save' USR1
begin=${EPOCHREALTIME/./}
log=$1 folder=$2 id=$3 work=$4 had=0 pid=
save() {
    now=${EPOCHREALTIME/./}
    had=$((had + now - begin))
    echo "$had" >"$folder/$id"
    echo "$id saved $now $had" >>"$log"
    [ -z "$pid" ] || kill "$pid"
    exit 86
}
[ ! -e "$folder/$id" ] || read -r had <"$folder/$id"
echo "$id start $begin $SLURM_JOB_NODELIST" >>"$log"
[ "${work#@}" = "$work" ] || work=$((${work#@} - begin))
left=$((work > had ? work - had : 0))
printf -v left '%d.%06d' $((left / 1000000)) $((left % 1000000))
sleep "$left" &
pid=$!
wait "$pid"
trap '' USR1
echo "$id end ${EPOCHREALTIME/./}" >>"$log"
"""
STUCK_S = 240      # nothing happens for so long: something is wrong
PROGRESS_S = 15
BATCH_S = 0.02     # arrivals this close are sent in one request
SBATCH_AT_ONCE = 8


def nodes_of(text):
    """n[1-3,7] -> n1 n2 n3 n7"""
    m = re.fullmatch(r"(\w+?)\[([\d,-]+)\]", text)
    if not m:
        return [text]
    found = []
    for part in m[2].split(","):
        first, _, last = part.partition("-")
        found += [f"{m[1]}{k}" for k in range(int(first), int(last or first) + 1)]
    return found


class Log:
    """What the jobs have written, in seconds since the day began."""

    def __init__(self, day, path):
        self.day, self.path, self.at, self.t0 = day, path, 0, None
        self.runs = {}   # id -> [[start, end or None, nodes]]
        self.ended, self.saves, self.rest = {}, 0, b""

    def read(self):
        """Takes in what is new; how many lines that were."""
        with open(self.path, "rb") as f:
            f.seek(self.at)
            data = self.rest + f.read()
            self.at = f.tell()
        *lines, self.rest = data.split(b"\n")
        for line in lines:
            self.take(line.decode().split())
        return len(lines)

    def take(self, words):
        job, what, at = int(words[0]), words[1], int(words[2]) / 1e6 - self.t0
        runs = self.runs.setdefault(job, [])
        if what == "start":
            runs.append([at, None, nodes_of(words[3])])
            return
        if runs and runs[-1][1] is None:
            runs[-1][1] = at
        else:
            raise RuntimeError(f"job {job}: {what}, and it did not run")
        if what == "end":
            if job in self.ended:
                raise RuntimeError(f"job {job} ran twice")
            self.ended[job] = at
        else:
            self.saves += 1

    def running(self):
        return sum(1 for r in self.runs.values() if r[-1][1] is None)

    def check(self):
        """No GPU had two jobs, and every job did all its work."""
        steps = []
        for job, runs in self.runs.items():
            j = self.day.by_id[job]
            if any(end is None for _, end, _ in runs):
                raise RuntimeError(f"job {job} was killed without a word: {runs}")
            if sum(end - start for start, end, _ in runs) < j.work_s - 0.01:
                raise RuntimeError(f"job {job} did not do all its work: {runs}")
            for start, end, nodes in runs:
                if len(nodes) != j.nodes:
                    raise RuntimeError(f"job {job} ran on {len(nodes)} nodes, not on {j.nodes}")
                steps += [(start, 1, j.per_node, nodes), (end, 0, j.per_node, nodes)]
        used = {}
        for _, begins, gpus, nodes in sorted(steps, key=lambda s: s[:2]):
            for n in nodes:
                used[n] = used.get(n, 0) + (gpus if begins else -gpus)
                if used[n] > 8:
                    raise RuntimeError(f"node {n}: {used[n]} GPUs in use")


def say(text):
    print(text, file=sys.stderr, flush=True)


def live_through(name, ground, send):
    """Sends jobs as they arrive and waits for the last end."""
    day, log = ground.day, ground.log
    log.t0 = time.time() + 0.5
    at, told, last, news = 0, 0, 0, time.time()
    while len(log.ended) < len(day.jobs):
        now = time.time() - log.t0
        batch = []
        while at < len(day.jobs) and day.jobs[at].submit_s <= now:
            batch.append(day.jobs[at])
            at += 1
        if batch:
            send(batch)
        if time.time() - last >= 0.2:
            last = time.time()
            news = last if log.read() or batch else news
        if last - told >= PROGRESS_S:
            told = last
            run = log.running()
            ground.busy.append(os.getloadavg()[0])
            say(f"bench: {name}: {max(now, 0):.0f} of {day.length_s:.0f} s, {at} of {len(day.jobs)} jobs submitted, "
                f"{at - run - len(log.ended)} wait, {run} run, {len(log.ended)} have ended, {log.saves} gave way")
        if last - news > STUCK_S:
            missing = [j.id for j in day.jobs if j.id not in log.ended]
            raise RuntimeError(f"{name}: nothing has happened for {STUCK_S} s, and {len(missing)} jobs have not ended, "
                               f"such as {missing[:5]}")
        time.sleep(BATCH_S)
    log.read()


class Ground:
    """A cluster, where its jobs write, and how long after their arrival jobs were accepted."""

    def __init__(self, folder, day, nodes, scheduler, extra, plugins=False):
        os.makedirs(f"{folder}/had", exist_ok=True)
        self.folder, self.day, self.accepted, self.busy = folder, day, [], []
        self.script = f"{folder}/job.sh"
        with open(self.script, "w", encoding="ascii") as f:
            f.write(SCRIPT)
        self.log = Log(day, f"{folder}/log")
        open(self.log.path, "w", encoding="ascii").close()
        self.cluster = slurm.Cluster(f"{folder}/slurm", nodes=nodes, scheduler=scheduler, extra=extra, plugins=plugins)

    def args(self, job):
        return [self.log.path, f"{self.folder}/had", str(job.id), str(round(job.work_s * 1e6))]


    def accept(self, job):
        self.accepted.append(time.time() - self.log.t0 - job.submit_s)

    def outcome(self, **more):
        self.log.check()
        return self.log, {"accepted_after_s": round(sum(self.accepted) / len(self.accepted), 3),
                          "machine_load": round(sum(self.busy) / max(len(self.busy), 1), 1), **more}


# ---- Slurm alone ----

# No batching delay, a pass at every event, and a backfill pass every second over the whole queue: on a day that is
# 200 times shorter its usual 30 s would be an hour and a half.
TUNED = ("batch_sched_delay=0,sched_min_interval=2000,sched_interval=1,default_queue_depth=10000,"
         "bf_interval=1,bf_resolution=1,bf_max_job_test=10000,bf_window=60,bf_continue,bf_yield_interval=500000")
MULTIFACTOR = "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityMaxAge=0-01:00:00\nPriorityWeightJobSize=1000\n" \
              "PriorityFavorSmall=YES\nPriorityCalcPeriod=1"


def under_slurm(folder, day, nodes, extra=""):
    ground = Ground(folder, day, nodes, TUNED, extra)
    with ground.cluster as c, concurrent.futures.ThreadPoolExecutor(SBATCH_AT_ONCE) as pool:
        pending = []

        def submit(j):
            c.run("sbatch", "-o", "/dev/null", f"-N{j.nodes}", "--ntasks-per-node=1", f"--gres=gpu:{j.per_node}",
                  f"-t{j.limit_s // 60}", ground.script, *ground.args(j))
            ground.accept(j)

        def send(batch):
            pending.extend(pool.submit(submit, j) for j in batch)
            while pending and pending[0].done():
                pending.pop(0).result()

        live_through("Slurm", ground, send)
        for p in pending:
            p.result()
    return ground.outcome()


# ---- under stoker ----

def spec(ground, j):
    o = {"script": SCRIPT, "args": ground.args(j), "name": str(j.id), "gpus": j.per_node, "time_limit_s": j.limit_s,
         "signal": {"signal": "USR1", "seconds": 30, "who": "batch"}, "stdout": "/dev/null", "workdir": ground.folder}
    if j.nodes > 1:
        o.update(tasks=j.nodes, launch="once")
    return o


def events(d, ids):
    """The daemon's own events of these jobs, from its stream, until the last of them has ended."""
    connection, answer = d.client(timeout=60).open("GET", "/v1/events?after=0")
    left = set(ids)
    while left:
        line = answer.readline()
        if not line.startswith(b"data: "):
            continue
        e = json.loads(line[6:])
        if e.get("job") not in ids:
            continue
        yield e
        if e["type"] == "exited" and e["cause"] != "evicted":
            if e["cause"] != "completed":
                raise RuntimeError(f"job {ids[e['job']]} has ended, and stoker says {e['cause']}")
            left.discard(e["job"])
    connection.close()


def delays(log, ids, happened):
    """What each start, end and giving way took beyond the job's own work: from the decision to the script's first line,
    from its last line to the daemon's knowing, and from the decision that it goes until it is gone."""
    took = {"start_s": [], "end_s": [], "leave_s": []}
    runs = {job: iter(r) for job, r in log.runs.items()}
    placed, told, run = {}, {}, {}
    for e in happened:
        job, what, at = ids[e["job"]], e["type"], e["at"] - log.t0
        if what == "place":
            placed[job], run[job] = at, None
        elif what == "started":
            run[job] = next(runs[job], None)
            took["start_s"] += [run[job][0] - placed[job]] if run[job] else []
        elif what == "evict":
            told[job] = at
        elif what == "exited" and e["cause"] == "evicted":
            took["leave_s"].append(at - told.get(job, at))
        elif what == "exited" and run.get(job):
            took["end_s"].append(at - run[job][1])
    return took


def overheads(took):
    """The same in the mean of all."""
    return {k: round(sum(v) / len(v), 3) if v else 0 for k, v in took.items()}


def under_stoker(folder, day, nodes, policy, plugins=True, before=None):
    """`before`: is called with the daemon before the day begins, and what it returns is handed on."""
    ground = Ground(folder, day, nodes, "batch_sched_delay=0,sched_min_interval=2000", "RequeueExitHold=86", plugins)
    ids = {}
    with ground.cluster as c:
        config = f"engine: slurm\nslurm: {{conf: {c.conf}, partitions: [main]}}\npolicy: {json.dumps(policy)}\n"
        with live.Daemon(f"{folder}/stoker", gpus=None, config=config) as d:

            def send(batch):
                answer = d.post("/v1/jobs", {"jobs": [spec(ground, j) for j in batch]})
                ids.update(zip(answer.get("ids", [answer["id"]]), (j.id for j in batch)))
                for j in batch:
                    ground.accept(j)

            found = before(d, ground, nodes) if before else {}
            live_through("stoker", ground, send)
            happened = list(events(d, ids))
            with open(f"{folder}/events", "w", encoding="ascii") as f:
                f.writelines(json.dumps({**e, "job": ids[e["job"]], "at": e["at"] - ground.log.t0}) + "\n" for e in happened)
    return ground.outcome(overheads=overheads(delays(ground.log, ids, happened)), before=found)
