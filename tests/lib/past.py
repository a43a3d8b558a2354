# SPDX-License-Identifier: Apache-2.0
"""A past for a daemon that is down: two weeks of measurements and jobs, written into its store.

    past.py STATE [TENANT TENANT]     # for tests in other languages

4 GPUs: first the JOBS, one after the other; then, up to now, two jobs `load` by day and none at night. Measurements over time say that GPUs are busy by
day and idle at night. The store must have been made by a daemon in which one job was submitted for each class that is used
(`specs`: the numbers of those jobs by class).
"""
import struct
import sys
import time

import storefile

QUARTER = 900
FIRST = 100000  # the number of the first job
# name, tenant (0 or 1), kind, class, GPUs, seconds, share of the time at work, GPUs that work, seconds it waited, steps an hour
JOBS = [("train", 0, 0, "", 4, 3600 * 40, 0.9, 4, 600, 1000), ("<script>alert(1)</script>", 0, 0, "", 4, 3600 * 20, 0.2, 1, 1200, 0),
        ("notebook", 1, 0, "", 1, 3600 * 30, 0.1, 1, 1800, 0), ("forgotten", 1, 0, "", 2, 3600 * 50, 0.0, 0, 2400, 0),
        ("chat-api", 1, 0, "inference", 4, 3600 * 10, 0.15, 4, 60, 0)]
BEGINS = [0, 40, 60, 60, 110]  # of the JOBS, hours after an hour from the beginning: never more than four GPUs at a time
LOAD = [(0, 3, 0.8), (1, 1, 0.2)]  # by day: tenant, GPUs, share of the time at work
CLUSTER, JOB, TENANT = 3, 1, 2  # kinds of series; their fields are in the order of src/series/fields.c


def row(db, kind, group, at, values):
    db.execute("INSERT OR REPLACE INTO series VALUES (?, 2, ?, ?, ?)",
               (kind, group, at * 10**6, struct.pack(f"<BBHHH{len(values)}f", 1, len(values), 1, 1, QUARTER, *values)))


def group_of(name):
    """As stk_series_id()."""
    h = 1469598103934665603
    for c in name.encode():
        h = (h ^ c) * 1099511628211 % 2**64
    return h >> 1


def measure(db, begin, end, tenants):
    for at in range(begin, end, QUARTER):
        day = 8 <= time.localtime(at).tm_hour < 20
        busy = 4.0 if day else 0.5
        row(db, CLUSTER, 0, at, [4.0, busy, busy / 2, 0, 1, 0, 0, 1, 60, 1, 0, 1000.0, busy / 8])
        for i, name in enumerate(tenants):
            used = busy * (0.75 if i == 0 else 0.25)
            row(db, TENANT, group_of(name), at, [used, used * (0.8 if i == 0 else 0.2), 2.0, 4.0, 2.5 if day else 2.0, 1.0 if day else 0.0, 1, 1, 1, 300.0 * (i + 1)])


def add_job(db, number, job, end, tenant, spec):
    name, _, kind, _, gpus, seconds, util, used, wait, steps = job
    begin = end - seconds
    db.execute("INSERT INTO job (number, uid, gid, user, name, kind, array, array_index, submitted, first_started, started, ended, cause, code, gpus, tasks, restarts,"
               " preemptions, served, spec, comment, note, stdout, stderr, gpu_milli, queue, tenant, waited, lease_from, lease_to, lease_waited, lease_gpus)"
               " VALUES (?,0,0,'root',?,?,0,0,?,?,?,?,1,0,?,1,0,0,?,?,'','','','',0,'standard',?,?,?,?,?,?)",
               (number, name, kind, (begin - wait) * 10**6, begin * 10**6, begin * 10**6, end * 10**6, gpus, seconds * 10**6, spec, tenant, wait * 10**6, begin * 10**6, end * 10**6, wait * 10**6, gpus * 1000))
    active = [seconds * util * gpus / max(used, 1) if g < used else 0.0 for g in range(gpus)] + [0.0] * (64 - gpus)
    had = [float(seconds)] * gpus + [0.0] * (64 - gpus)
    db.execute("INSERT INTO usage VALUES (?,?,?,?,?,?,?,?,?)", (number, seconds, seconds * gpus, seconds * gpus * util, 3.6e6 * gpus, seconds, 9216, 1000, struct.pack("<128f", *active, *had)))
    for at in range(begin - begin % QUARTER, end, QUARTER) if steps else []:
        row(db, JOB, number, at, [float(gpus), gpus * util, util, 40000.0, 400.0, 2.0, 900.0, steps * (at + QUARTER - begin) / 3600])


def plan(now, days=14):
    """All jobs of this past: (begin, as in JOBS)."""
    first = now - now % QUARTER - days * 86400
    jobs = [(first + 3600 + 3600 * at, job) for at, job in zip(BEGINS, JOBS)]
    at = max(begin + job[5] for begin, job in jobs) + 3600
    while (at := at + QUARTER) + 12 * 3600 < now:
        t = time.localtime(at)
        if t.tm_hour == 8 and t.tm_min < 15:
            jobs += [(at, ("load", tenant, 0, "", gpus, 12 * 3600, util, gpus, 60, 0)) for tenant, gpus, util in LOAD]
    return first, jobs


def many(state, n, now):
    """So many jobs of four GPUs that ran ten minutes each, within some days."""
    with storefile.edit(state) as db:
        spec = db.execute("SELECT max(id) FROM spec").fetchone()[0]
        for i in range(n):
            add_job(db, FIRST + n - i, (f"job-{i % 700}", 0, 0, "", 4, 600, 0.5, 4, 100, 0), now - 9 * i, "", spec)


def invent(state, tenants, days=14):
    now = int(time.time())
    first, jobs = plan(now, days)
    with storefile.edit(state) as db:
        measure(db, first, now - now % QUARTER, tenants)
        db.execute("INSERT INTO capacity VALUES (?, 4)", (first * 10**6,))
        specs = {}
        for spec, body in db.execute("SELECT id, body FROM spec"):
            specs["inference" if '"inference"' in (body if isinstance(body, str) else bytes(body).decode(errors="replace")) else ""] = spec
        for i, (begin, job) in enumerate(jobs):
            add_job(db, FIRST + i, job, begin + job[5], tenants[job[1]], specs[job[3]])
    return first, jobs


if __name__ == "__main__":
    invent(sys.argv[1], sys.argv[2:4])
