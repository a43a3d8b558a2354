# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks: run a program, take its CPU time and memory, print a table and JSON."""
import json
import os
import platform
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STOKER = os.environ.get("STOKER", os.path.join(ROOT, "build", "stoker"))
DATA = os.environ.get("STOKER_DATA", os.path.join(ROOT, "..", "shared", "data"))


def run(argv):
    """Runs to the end; returns (stdout, CPU seconds user + system, peak MiB)."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as p:
        out = p.stdout.read()
        _, status, use = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        sys.exit(f"bench: {' '.join(argv)} failed with {p.returncode}")
    return out.decode(), use.ru_utime + use.ru_stime, use.ru_maxrss / 1024


def sim(*args):
    """One simulated run; returns (its JSON object, CPU seconds, MiB)."""
    out, cpu, mib = run([STOKER, "sim", *args, "--json"])
    return json.loads(out)["runs"][0], cpu, mib


def machine():
    model = ""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.release()}


def finish(name, rows):
    """Prints a table for people on stderr and JSON on stdout; exits 1 when a bar was missed."""
    keys = list(dict.fromkeys(k for r in rows for k in r))
    cells = [[str(r.get(k, "")) for k in keys] for r in rows]
    width = [max(len(k), *(len(c[i]) for c in cells)) for i, k in enumerate(keys)]
    for line in [keys, *cells]:
        print("  ".join(v.ljust(w) for v, w in zip(line, width)).rstrip(), file=sys.stderr)
    print(json.dumps({"bench": name, "machine": machine(), "rows": rows}, indent=1))
    missed = [r for r in rows if r.get("ok") is False]
    for r in missed:
        print(f"bench: missed its bar: {r}", file=sys.stderr)
    sys.exit(1 if missed else 0)
