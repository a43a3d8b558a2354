# SPDX-License-Identifier: Apache-2.0
"""stoker-libslurm as a test talks to it: requests with answers, and what it tells in between.

    with Helper(cluster) as h:
        job = h.ask(op="submit", script="#!/bin/sh\\n", uid=0, gid=0)["job"]
        h.until(lambda: h.jobs[job]["state"] == "completed")
"""
import json
import os
import pathlib
import subprocess
import threading

from daemon import STOKER
from patience import PATIENCE_S

PROGRAM = pathlib.Path(os.environ.get("STOKER_LIBSLURM", STOKER.parent / "stoker-libslurm"))


class Helper:
    def __init__(self, conf, *args):
        self.command = [str(PROGRAM), "--conf", str(conf), *args]
        self.nodes, self.partitions, self.jobs, self.gone = {}, {}, {}, set()
        self.away, self.hello, self.all, self.told = None, None, 0, 0
        self.answers, self.number, self.plugin, self.boot = {}, 0, False, None
        self.longest = 0  # bytes of a line
        self.news = threading.Condition()

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.code = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)

    def _read(self):
        for line in self.process.stdout:
            with self.news:
                self.longest = max(self.longest, len(line.encode()))
                self._take(json.loads(line))
                self.news.notify_all()

    def _take(self, m):
        op = m["op"]
        if op == "answer":
            self.answers[m["id"]] = m
        elif op == "hello":
            self.hello = m
        elif op == "away":
            self.away = m["why"]
        elif op == "plugin":
            self.plugin = m["there"]
        elif op == "back":
            self.away = None
        elif op == "nodes":
            self.nodes.update({n["name"]: n for n in m["nodes"]})
        elif op == "partitions":
            self.partitions = {p["name"]: p for p in m["partitions"]}
        elif op == "jobs":
            self.told += len(m["jobs"])
            self.jobs.update({j["job"]: j for j in m["jobs"]})
            self.gone |= set(m["gone"])
            for job in m["gone"]:
                self.jobs.pop(job, None)
            if m["all"] and m["last"]:
                self.all += 1
                self.boot = m["boot"]

    def until(self, what, timeout=PATIENCE_S):
        with self.news:
            assert self.news.wait_for(what, timeout), (self.away, self.jobs, self.nodes)

    def ask(self, **request):
        return self.ask_all([request])[0]

    def ask_all(self, requests):
        """Together; the answers in the same order."""
        first = self.number + 1
        self.number += len(requests)
        self.process.stdin.write("".join(json.dumps({"id": first + i, **r}) + "\n" for i, r in enumerate(requests)))
        self.process.stdin.flush()
        self.until(lambda: all(n in self.answers for n in range(first, self.number + 1)))
        return [self.answers[n] for n in range(first, first + len(requests))]
