# SPDX-License-Identifier: Apache-2.0
"""Shared by the GPU proofs: counters, waiting, checks, the report."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.environ.get("PYTHON", sys.executable)


class Report:
    """Named results; a check that fails makes the exit code 1 at the end, and stops nothing."""

    def __init__(self, name):
        self.name, self.rows, self.failed = name, [], []

    def note(self, what, **values):
        self.rows.append({"what": what, **values})
        print(f"  {what}: {json.dumps(values)}", file=sys.stderr, flush=True)

    def check(self, what, ok, **values):
        self.note(what, ok=bool(ok), **values)
        if not ok:
            self.failed.append(what)
        return bool(ok)

    def finish(self):
        print(json.dumps({"bench": self.name, "rows": self.rows, "failed": self.failed}, indent=1))
        for what in self.failed:
            print(f"bench: failed: {what}", file=sys.stderr)
        sys.exit(1 if self.failed else 0)


def wait_for(what, limit_s, every_s=0.05):
    """The first true value of what(), or its last one."""
    end = time.monotonic() + limit_s
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(every_s)


def read_steps(path):
    """(steps by the GPU, steps by the CPU, word) or None before the first."""
    try:
        with open(path, encoding="ascii") as f:
            gpu, cpu, word = f.read().split()
        return int(gpu), int(cpu), word
    except (OSError, ValueError):
        return None


def read_log(path):
    """What trainer.py wrote: [(step, seconds)]; a line that is being written does not count."""
    try:
        with open(path, encoding="ascii") as f:
            return [(int(n), float(at)) for n, at in (line.split() for line in f.read().split("\n")[:-1])]
    except OSError:
        return []


def read_json(path):
    try:
        with open(path, encoding="ascii") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


class Counter:
    """counter.py as a child of ours."""

    def __init__(self, gib, *args, env=None):
        self.file = tempfile.mktemp(prefix="counter-", dir=tempfile.gettempdir())
        self.child = subprocess.Popen(
            [PYTHON, os.path.join(HERE, "counter.py"), self.file, "--gib", str(gib), *args],
            env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)
        self.pid = self.child.pid

    def steps(self):
        return read_steps(self.file)

    def reach(self, n, limit_s=240):
        """Waits for step n; the steps then, None when it ended or is too late."""
        def there():
            now = self.steps()
            return now if now and now[1] >= n else self.child.poll() is not None and (0, 0, "ended")
        now = wait_for(there, limit_s)
        return now if now and now[1] >= n else None

    def end(self):
        self.child.kill()
        self.child.wait()
        if os.path.exists(self.file):
            os.unlink(self.file)


ENDED = {"completed", "failed", "killed", "out_of_memory", "timeout", "node_lost", "gpu_error",
         "not_started", "cancelled", "dependency_failed", "lost", "done"}


class Stoker:
    """A daemon of our own in a folder of its own."""

    def __init__(self, build, folder, gpus="foreign: block\n  interval_ms: 1000"):
        self.program = os.path.join(os.path.abspath(build), "stoker")
        self.dir = folder
        self.env = {**os.environ, "STOKER_SOCKET": os.path.join(folder, "stoker.sock")}
        self.config = os.path.join(folder, "stoker.yaml")
        self.configure(gpus)
        self.log = open(os.path.join(folder, "daemon.log"), "wb")
        self.start()

    def start(self):
        self.daemon = subprocess.Popen([self.program, "serve", "--config", self.config], env=self.env,
                                       stdout=self.log, stderr=self.log)

    def die(self):
        """kill -9, and a new daemon."""
        self.daemon.kill()
        self.daemon.wait()
        self.start()
        wait_for(lambda: self.run("queue").returncode == 0, 60, 0.1)

    def configure(self, gpus):
        with open(self.config, "w", encoding="ascii") as f:
            f.write(f"state: {self.dir}/state\nsocket: {self.dir}/stoker.sock\nlisten: 127.0.0.1:0\ngpus:\n  {gpus}\n")

    def reload(self, gpus):
        self.configure(gpus)
        self.daemon.send_signal(signal.SIGHUP)

    def run(self, *args):
        return subprocess.run([self.program, *map(str, args)], env=self.env, capture_output=True,
                              text=True, check=False, timeout=120, cwd=self.dir)

    def json(self, *args):
        run = self.run(args[0], "--json", *args[1:])
        try:
            return json.loads(run.stdout)
        except ValueError:
            return {"error": run.stderr.strip() or run.stdout, "exit": run.returncode}

    def submit(self, name, options, command):
        """Its id, and the whole answer."""
        reply = self.json("submit", "--name", name, *options, "--", *command)
        return reply.get("id"), reply

    def job(self, number):
        return self.json("show", number)

    def state(self, number):
        job = self.job(number)
        return job.get("cause") or job.get("state") if job.get("state") == "done" else job.get("state")

    def until(self, number, states, limit_s=240):
        wait_for(lambda: self.state(number) in states, limit_s, 0.05)
        return self.state(number)

    def close(self):
        self.daemon.terminate()
        try:
            self.daemon.wait(60)
        except subprocess.TimeoutExpired:
            self.daemon.kill()


def reach(path, n, limit_s=240):
    def there():
        now = read_steps(path)
        return now if now and now[1] >= n else None
    return wait_for(there, limit_s)
