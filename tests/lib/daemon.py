# SPDX-License-Identifier: Apache-2.0
"""A real daemon for end-to-end tests: start, stop, kill -9, restart, each on a state folder of its own.

    d = Daemon(tmp_path, gpus=2)         # virtual GPUs; port 0
    d.start()
    d.submit(command=["/bin/true"])      # -> job number
    d.wait(1)["cause"] == "completed"
    d.kill(); d.start()                  # jobs go on in between

Unix socket paths are short (107 characters), pytest's folders are not: the socket lies in a folder of
its own under /tmp. `close()` ends the daemon and every job it left, and raises when a sanitizer has
complained meanwhile, in the daemon or in a shim (a build with -Db_sanitize).
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from patience import PATIENCE_S, until
from webclient import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
STOKER = pathlib.Path(os.environ.get("STOKER", ROOT / "build/stoker"))
STOKERD = pathlib.Path(os.environ.get("STOKERD", STOKER.parent / "stokerd"))
COMPLAINT = re.compile(r"ERROR: \w+Sanitizer|runtime error:|WARNING: \w+Sanitizer")
SHIM = re.compile(rb"stoker-shim\0--nursery\0(\d+)\.\d+[\0 ]*")  # of a launch; the nursery's has no number
JOB_ID = b"STOKER_JOB_ID="
SANITIZED = "ASAN_OPTIONS" in os.environ or "UBSAN_OPTIONS" in os.environ


def stoker(d, *words, code=0, env=None):
    """The command, to this daemon and in its folder. What it says: on stdout, or on stderr where it must fail, with this code."""
    done = subprocess.run([STOKER, *map(str, words)], env={**d.env, "STOKER_SOCKET": str(d.socket), **(env or {})}, cwd=d.folder,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == code, done
    return done.stderr if code else done.stdout


class Daemon:
    def __init__(self, folder, gpus=4, config=None, listen="127.0.0.1:0", args=(), user=None, env=None, default_cpus=0):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.gpus, self.listen, self.args, self.user = gpus, listen, list(args), user
        self.default_cpus = default_cpus  # 0: tests run more jobs at once than this machine has cores; None: as users have it
        self.env = {**os.environ, **(env or {})}
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="stk-"))
        self.short.chmod(0o755)
        self.socket = self.short / "s.sock"
        self.state = self.folder / "state"
        self.config = self.folder / "stoker.yaml" if config is not None else None
        if self.config:
            self.config.write_text(config)
        self.process = None
        self.reader = None
        self.banner, self.errors = [], []
        self.complaints = []  # of sanitizers, over all lives of the daemon
        self.url = None
        if SANITIZED:  # into files, because shims outlive the daemon and its stderr
            self.reports = pathlib.Path(tempfile.mkdtemp(prefix="stk-reports-"))
            self.reports.chmod(0o777)
            for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
                self.env[name] = self.env.get(name, "") + f":log_path={self.reports}/{name[:4].lower()}"

    # ---- life ----

    def command(self):
        c = [str(STOKERD), "--state", str(self.state), "--socket", str(self.socket), "--listen", self.listen]
        if self.gpus is not None:
            c += ["--virtual-gpus", str(self.gpus)]
        if self.default_cpus is not None:
            c += ["--default-cpus", str(self.default_cpus)]
        c += ["--config", str(self.config or "/dev/null")]  # never the machine's own
        return c + self.args

    def start(self, timeout=PATIENCE_S):
        """Returns when the daemon says that it is ready; raises with its words when it does not."""
        assert self.process is None or self.process.poll() is not None
        self.banner, self.errors = [], []
        self.url = None
        extra = {"user": self.user} if self.user is not None else {}
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
                                        cwd=self.folder, env=self.env, start_new_session=True, **extra)
        self.reader = threading.Thread(target=self._collect, args=(self.process.stderr, self.errors), daemon=True)
        self.reader.start()
        killer = threading.Timer(timeout, self.process.kill)
        killer.start()
        for line in self.process.stdout:
            self.banner.append(line.rstrip("\n"))
            if line == "ready\n":
                break
        killer.cancel()
        if not self.banner or self.banner[-1] != "ready":
            self.process.wait(PATIENCE_S)
            self.reader.join(10)  # its last words; what it started may hold the pipe longer
            raise RuntimeError("stokerd: exit %s: %s" % (self.process.returncode, "\n".join(self.banner + self.errors)))
        threading.Thread(target=self._collect, args=(self.process.stdout, self.banner), daemon=True).start()
        for line in self.banner:
            if m := re.match(r"\s+page\s+(http\S+)/$", line):
                self.url = m[1]
        return self

    def _collect(self, stream, lines):
        with contextlib.suppress(ValueError, OSError):
            for line in stream:
                lines.append(line.rstrip("\n"))
                if COMPLAINT.search(line):
                    self.complaints.append(line.rstrip("\n"))

    def check_complaints(self):
        """Raises with what sanitizers have said."""
        if self.reader:
            self.reader.join(1)  # jobs may hold the pipe longer
        if SANITIZED and self.reports.exists():
            for path in sorted(self.reports.iterdir()):
                self.complaints.append(path.read_text(errors="replace"))
            shutil.rmtree(self.reports, ignore_errors=True)
            self.reports.mkdir(mode=0o777, exist_ok=True)
        said, self.complaints = self.complaints, []
        assert not said, "\n".join(said)

    def stop(self, timeout=PATIENCE_S):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def restart(self):
        self.stop()
        return self.start()

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        """Ends the daemon and whatever jobs it left behind."""
        if self.alive():
            with contextlib.suppress(Exception):
                ids = [j["id"] for j in self.jobs()]
                if ids:
                    self.client(timeout=5).post("/v1/jobs/act", {"verb": "cancel", "ids": ids})
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stop(10)
        if self.alive():
            self.kill()
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.short, ignore_errors=True)
        try:
            self.check_complaints()
        finally:
            if SANITIZED:
                shutil.rmtree(self.reports, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    def children(self, word):
        """Processes of the daemon's own that have this word in their command."""
        found = []
        with contextlib.suppress(OSError):
            for pid in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
                if word.encode() in pathlib.Path("/proc", pid, "cmdline").read_bytes():
                    found.append(int(pid))
        return found

    def nursery(self):
        """The process that makes supervisors; None: there is none."""
        return next(iter(self.children("--nursery")), None)

    def processes(self):
        """pid -> job, of supervisors and of what they started."""
        mark = b"STOKER_SOCKET=" + os.fsencode(self.socket)
        found = {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                if m := SHIM.fullmatch(command):
                    if any(os.readlink(f).startswith(str(self.state)) for f in pathlib.Path(f"/proc/{pid}/fd").iterdir()):
                        found[pid] = int(m[1])
                    continue
                environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                number = [v[len(JOB_ID):] for v in environ if v.startswith(JOB_ID)]
                if mark in environ and number and pid != os.getpid():
                    found[pid] = int(number[0])
        return found

    # ---- talking to it ----

    def client(self, timeout=PATIENCE_S):
        return Client(self.socket, timeout=timeout)

    @property
    def tcp(self):
        host, port = self.url.split("//")[1].rsplit(":", 1)
        return host, int(port)

    @property
    def login(self):
        """A link that logs browsers in, as often as wanted. What "stoker login" prints works once."""
        return f"{self.url}/?token={self.post('/v1/tokens', {'name': 'tests'})['token']}"

    def web(self, token=None, timeout=PATIENCE_S):
        return Client(self.tcp, token=token, timeout=timeout)

    def get(self, path):
        a = self.client().get(path)
        assert a.status == 200, a
        return a.json

    def post(self, path, body=None):
        a = self.client().post(path, body)
        assert a.status in (200, 201), a
        return a.json

    def submit(self, **job):
        job.setdefault("workdir", str(self.folder))
        return self.post("/v1/jobs", job)["id"]

    def jobs(self, query=""):
        return self.get("/v1/jobs" + query)["jobs"]

    def history(self, query=""):
        """Every job that has ended, by number; follows the pages."""
        found, before = {}, ""
        while before is not None:
            page = self.get(f"/v1/history?limit=1000{query}{before}")
            found.update((j["id"], j) for j in page["jobs"])
            before = None if page["next"] is None else f"&before={page['next']}"
        return found

    def job(self, number):
        return self.get(f"/v1/jobs/{number}")

    def wait(self, number, timeout=PATIENCE_S):
        """The job once it has ended."""
        a = self.client(timeout=timeout + 10).get(f"/v1/jobs/{number}/wait?timeout_s={timeout}")
        assert a.status == 200, a
        assert a.json["state"] == "done", a.json
        return a.json

    def until(self, number, *states, timeout=PATIENCE_S):
        """The job once it is in one of the states."""
        end = time.monotonic() + timeout
        while True:
            job = self.job(number)
            if job["state"] in states:
                return job
            assert time.monotonic() < end, f"job {number} is {job['state']}, not {states}: {json.dumps(job)}"
            assert job["state"] != "done", f"job {number} has ended: {json.dumps(job)}"
            time.sleep(0.02)

    def log(self, number, query=""):
        a = self.client().get(f"/v1/jobs/{number}/log{query}")
        assert a.status == 200, a
        return a.body.decode()

    def log_with(self, number, text):
        """Waits for words in a job's output, which is all of it until then. That it runs does not mean that it has said anything yet, nor that
        there is a file for what it says."""
        def said():
            a = self.client().get(f"/v1/jobs/{number}/log")
            assert a.status == 200 or (a.status == 404 and b"no output yet" in a.body), a
            return a.body.decode() if a.status == 200 else ""
        return until(lambda: text in (log := said()) and log, say=lambda: f"{text!r} in {said()!r}")

    def errors_with(self, text):
        """Waits for a line in the daemon's log."""
        return until(lambda: next((line for line in self.errors if text in line), None), say=lambda: f"{text!r} in {self.errors!r}")
