# SPDX-License-Identifier: Apache-2.0
"""A Slurm that a test plays itself: stokerd starts a program in place of stoker-libslurm that hands every line on to the
test and back. So what Slurm does at which moment is the test's to say, and no Slurm is needed.

    with FakeSlurm(tmp_path, nodes=2, gpus=8) as s:
        n = s.daemon.submit(command=["/bin/true"], gpus=1)
        ask = s.expect("submit")                 # what stokerd asks of Slurm next, of this kind
        s.answer(ask, job=7)
        s.job(7, ask["comment"], state="running", pieces={"n1": [0]})
"""
import contextlib
import json
import pathlib
import queue
import shutil
import socket
import tempfile
import threading
import time

from daemon import STOKERD, Daemon
from patience import PATIENCE_S, until

RELAY = """#!/usr/bin/python3
import os, socket, sys, threading
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["FAKE_SLURM"])
def back():
    while data := s.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 65536):
    s.sendall(data)
"""

YES = {"left": {"nodes": []}, "groups": {"accounts": [], "qos": []}}  # what belongs to an answer that has more than that


def gpus(count, indices=()):
    return [{"type": "h100", "count": count, "indices": list(indices)}] if count else []


class FakeSlurm:
    def __init__(self, folder, nodes=2, gpus=8, config="", remembers_s=300, accounts=False):
        self.remembers_s, self.accounts = remembers_s, accounts
        self.n_gpus, self.names = gpus, [f"n{k + 1}" for k in range(nodes)]
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="stk-fake-"))
        programs = self.short / "bin"
        programs.mkdir()
        shutil.copy(STOKERD, programs / "stokerd")
        (programs / "stoker-libslurm").write_text(RELAY)
        (programs / "stoker-libslurm").chmod(0o755)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.short / "s"))
        self.server.listen(4)
        self.asked, self.pipe = queue.Queue(), None
        self.there = []  # jobs that a daemon finds
        threading.Thread(target=self._serve, daemon=True).start()
        self.daemon = Daemon(folder, gpus=None, config="engine: slurm\nslurm: {partitions: [main]}\n" + config, args=["--paranoid"],
                             env={"FAKE_SLURM": str(self.short / "s")})
        command = self.daemon.command
        self.daemon.command = lambda: [str(programs / "stokerd"), *command()[1:]]

    def __enter__(self):
        self.daemon.start()
        return self

    def __exit__(self, *_):
        self.daemon.close()
        self.server.close()
        shutil.rmtree(self.short)

    def _serve(self):
        while True:
            try:
                pipe = self.server.accept()[0]
            except OSError:
                return
            self.pipe, self.asked = pipe, queue.Queue()  # what another daemon asked nobody answers any more
            threading.Thread(target=self._read, args=(pipe, self.asked), daemon=True).start()
            self.say(op="hello", major=22, minor=5, micro=8, remembers_s=self.remembers_s, accounts=self.accounts)
            self.partitions()
            self.nodes(all_of_them=True)
            self.say(op="jobs", all=True, last=True, jobs=self.there, gone=[])

    def _read(self, pipe, asked):
        for line in pipe.makefile():
            asked.put(json.loads(line))

    def _next(self):
        with contextlib.suppress(queue.Empty):
            return self.asked.get(timeout=0.5)  # no longer: it may be another queue then

    def say(self, **line):
        self.pipe.sendall(json.dumps(line).encode() + b"\n")

    def partitions(self, **more):
        self.say(op="partitions", partitions=[{"name": "main", "up": True, "default": True, "nodes": self.names, "max_time_s": None, "default_time_s": None, **more}])

    def nodes(self, state="up", used=0, names=None, all_of_them=False):
        """What Slurm says of nodes: their state, and how many GPUs are in use."""
        self.say(op="nodes", all=all_of_them, nodes=[{"name": n, "state": state, "why": "", "cpus": 64, "mem_mib": 65536, "gpus": gpus(self.n_gpus),
                                                      "used": gpus(used, range(used)), "features": ""} for n in names or self.names])

    def expect(self, op, timeout=PATIENCE_S):
        """The next request of this kind; others are answered with yes."""
        end = time.monotonic() + timeout
        while True:
            ask = until(self._next, end - time.monotonic(), f"{op} is asked")
            if ask["op"] == op:
                return ask
            self.agree(ask)

    def next(self):
        """The next request, of whatever kind."""
        return until(self._next, say="something is asked")

    def agree(self, ask):
        self.answer(ask, **YES.get(ask["op"], {}))

    def answer(self, ask, ok=True, **more):
        self.say(op="answer", id=ask["id"], ok=ok, **more)

    def describe(self, number, comment, state="running", pieces=None, **more):
        """What Slurm says of a job: its state, and the GPUs it has of each node."""
        where = [{"node": n, "gpus": gpus(len(i), i)} for n, i in (pieces or {}).items()]
        return {"job": number, "state": state, "comment": comment, "admin_comment": comment, "completing": False, "held": False, "reason": "", "pieces": where,
                "submitted": 1, "started": int(state != "pending"), "ended": 0, "exit_code": 0, "signal": 0, "restarts": 0, "uid": 0, "partition": "main", **more}

    def job(self, number, comment, all_of_them=False, **more):
        """Says it; 'all_of_them': Slurm is back, and has no others."""
        self.say(op="jobs", all=all_of_them, last=True, jobs=[self.describe(number, comment, **more)], gone=[])
