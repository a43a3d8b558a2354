# SPDX-License-Identifier: Apache-2.0
"""stoker for Python: submit and follow GPU jobs, and be a good job inside one.

One file, standard library only, Python 3.8 or newer. Copy it next to your code if you cannot
install it.

From outside a job::

    import stoker

    client = stoker.Client()
    job = client.submit(command=["python3", "train.py"], gpus=1, time_limit="8h")
    for text in job.logs(follow=True):
        print(text, end="")
    job.wait(check=True)

Inside a job (all of this does nothing harmful when the program runs by hand)::

    run = stoker.current()
    for step in range(start, total):
        loss = train_one_step()
        run.progress(step, total, loss=loss)
        if run.should_checkpoint():
            with run.checkpointing(step):
                save(step)
            if run.should_stop():
                run.requeue()          # leaves the process; the job starts again later

How it talks: HTTP/1.1 on the daemon's Unix socket, one connection per request, so a client may
be shared between threads. What it asks and gets is in docs/spec/api.md; ``/openapi.json`` of a
running daemon has every field.
"""
from __future__ import annotations

import codecs
import contextlib
import datetime
import http.client
import json
import logging
import math
import os
import re
import resource
import signal as _signal
import socket as _socket
import sys
import threading
import time
import urllib.parse
import uuid
import warnings
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, NoReturn, Optional,
                    Sequence, Tuple, Union)

__all__ = ["Client", "Job", "Event", "Run", "current", "items", "daly_interval", "young_interval",
           "default_socket", "EXIT_REQUEUE", "StokerError", "Unreachable", "Refused", "NotFound",
           "NotAllowed", "JobFailed", "WaitTimeout"]
__version__ = "0.1.0"

#: Exit status that asks for another start. Name it in the job:
#: ``retry: {error: always, exit_codes: [75]}``.
#: 75 is EX_TEMPFAIL of sysexits.h: "try again later".
EXIT_REQUEUE = 75

#: What is assumed before anything was measured.
PRIOR_COST_S = 30.0
PRIOR_MTBI_S = 8 * 3600.0

_LIVE = frozenset(["held", "blocked", "waiting", "starting", "running", "suspended", "stopping"])
_SYSTEM_SOCKET = "/run/stoker/stoker.sock"
_PAGE = 1000    # rows asked for at a time
_UNKNOWN_S = 10.0   # how long a daemon is waited for that has never answered
_log = logging.getLogger("stoker")
_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


# ---------------------------------------------------------------------------------- errors

class StokerError(Exception):
    """Something was refused or went wrong; the text says what, and what to do about it.

    ``status`` is the HTTP status (0 when there was no answer), ``code`` the daemon's own word.
    """

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Unreachable(StokerError):
    """No daemon answered, or it is just stopping."""


class Refused(StokerError):
    """The daemon understood and said no (HTTP 400, 409, 413, 422, 429)."""


class NotFound(StokerError):
    """No such job, node or route (HTTP 404)."""


class NotAllowed(StokerError):
    """Not yours to see or change (HTTP 401, 403)."""


class JobFailed(StokerError):
    """A job that was waited for with ``check=True`` did not complete. ``job`` is that job."""

    def __init__(self, message: str, job: "Job") -> None:
        super().__init__(message)
        self.job = job


class WaitTimeout(StokerError, TimeoutError):
    """The time given to ``wait`` passed first. The jobs go on."""


def _error_from(status: int, body: bytes, what: str) -> StokerError:
    code, message = "", ""
    try:
        error = json.loads(body.decode("utf-8", "replace"))["error"]
        code, message = str(error.get("code", "")), str(error.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    message = message or "%s: the daemon answered HTTP %d" % (what, status)
    if status in (401, 403):
        kind: Callable[..., StokerError] = NotAllowed
    elif status == 404:
        kind = NotFound
    elif 400 <= status < 500:
        kind = Refused
    elif status == 503 and code == "stopping":
        kind = Unreachable
    else:
        kind = StokerError
    return kind(message, status, code)


# --------------------------------------------------------------------------------- transport

def default_socket() -> str:
    """The daemon's socket: STOKER_SOCKET, else the system's if it is there, else this user's."""
    named = os.environ.get("STOKER_SOCKET")
    if named:
        return named
    if os.path.exists(_SYSTEM_SOCKET) or os.geteuid() == 0:
        return _SYSTEM_SOCKET
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    own = [os.path.join(runtime, "stoker.sock")] if runtime else []
    own.append(os.path.join(state, "stoker", "stoker.sock"))
    found = [path for path in own if os.path.exists(path)]
    if not found and _has_service():
        return _SYSTEM_SOCKET
    return (found or own)[0]


def _has_service(root: str = "") -> bool:
    """systemd has the service "stoker"."""
    return any(os.path.exists("%s%s/systemd/system/stoker.service" % (root, folder))
               for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))


def _advice(url: Optional[str], socket: str, root: str = "") -> str:
    """How to start the daemon that was looked for."""
    if url:
        return "Is the daemon running there, with 'listen' set?"
    other = " Or say where it listens: STOKER_SOCKET=/path or Client(socket=...)."
    if socket == _SYSTEM_SOCKET and _has_service(root):
        return "Start the service with 'systemctl start stoker'; 'systemctl status stoker' has its state." + other
    if socket == _SYSTEM_SOCKET:
        return "Start one, as root, with 'stoker serve'." + other
    return "Start one there with 'stoker serve --socket %s'.%s" % (socket, other)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP on a Unix socket."""

    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__("localhost")
        self._path = path
        self._seconds = timeout

    def connect(self) -> None:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            sock.settimeout(self._seconds)
            sock.connect(self._path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


_DROPPED = (http.client.HTTPException, ConnectionError, _socket.timeout, OSError)


class _Transport:
    """One HTTP exchange per call. Knows where the daemon is and nothing of jobs."""

    def __init__(self, socket: Optional[str], url: Optional[str], token: Optional[str],
                 timeout: float) -> None:
        if socket and url:
            raise ValueError("give socket or url, not both")
        self.url = url
        self.token = token
        self.timeout = timeout
        self.socket = "" if url else os.fspath(socket or default_socket())
        self.answered = False   # ever

    def _connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if not self.url:
            return _UnixConnection(self.socket, timeout)
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url must look like https://host:port, got %r" % self.url)
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def no_answer(self, exc: BaseException) -> Unreachable:
        where = self.url or self.socket
        if isinstance(exc, (FileNotFoundError, ConnectionRefusedError)):
            hint = _advice(self.url, self.socket)
        elif isinstance(exc, PermissionError):
            hint = "You may not open that socket; ask its owner, or name another with STOKER_SOCKET."
        elif isinstance(exc, _socket.timeout):
            hint = "It is busy or stuck; its log may tell more ('journalctl -u stoker')."
        else:
            hint = "It may be restarting; try again."
        return Unreachable("cannot reach the stoker daemon at %s (%s). %s" % (where, exc, hint))

    def open(self, method: str, path: str, body: Optional[bytes] = None,
             headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None,
             stream: bool = False) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request and returns the connection and a 2xx response; errors are raised."""
        send = {"Accept": "application/json", "Connection": "close"}
        if body is not None:
            send["Content-Type"] = "application/json"
        if self.token:
            send["Authorization"] = "Bearer " + self.token
        send.update(headers or {})
        conn = self._connection(None if stream else (timeout or self.timeout))
        try:
            conn.request(method, path, body=body, headers=send)
            response = conn.getresponse()
            self.answered = True
            if not 200 <= response.status < 300:
                raise _error_from(response.status, response.read(1 << 20), "%s %s" % (method, path))
        except _DROPPED as exc:
            conn.close()
            raise self.no_answer(exc) from exc
        except BaseException:
            conn.close()
            raise
        return conn, response

    def call(self, method: str, path: str, body: Any = None, headers: Optional[Mapping[str, str]] = None,
             timeout: Optional[float] = None) -> Any:
        """One request, one JSON reply."""
        data = None if body is None else json.dumps(body).encode()
        conn, response = self.open(method, path, data, headers, timeout)
        try:
            text = response.read()
        except _DROPPED as exc:
            raise self.no_answer(exc) from exc
        finally:
            conn.close()
        if not text:
            return {}
        try:
            return json.loads(text.decode("utf-8"))
        except ValueError as exc:
            raise StokerError("%s %s: the answer is not JSON; is %s really stoker's socket?"
                              % (method, path, self.url or self.socket)) from exc


def _query(**given: Any) -> str:
    pairs = {k: ("1" if v is True else v) for k, v in given.items() if v is not None and v is not False}
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


# -------------------------------------------------------------------------------------- jobs

def _seconds(value: Union[int, float, str, datetime.timedelta], name: str) -> float:
    """90, "90", "15m", "8h", "1d12h", "01:30:00" or a timedelta, in seconds."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)):
        return float(value)
    text = value.strip().lower()
    if ":" in text and all(part.isdigit() for part in text.split(":")) and text.count(":") <= 2:
        total = 0
        for part in text.split(":"):
            total = total * 60 + int(part)
        return float(total)
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(w|d|h|min|m|s|)", text)
    if not parts or re.sub(r"\d+(?:\.\d+)?\s*(w|d|h|min|m|s|)|\s", "", text):
        raise ValueError("%s must be seconds or a time such as 90, '15m', '8h' or '1d12h', got %r"
                         % (name, value))
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _mib(value: Union[int, str], name: str) -> int:
    """20480, "20G", "512M" or "1.5T", in MiB."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = isinstance(value, str) and re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mgt]?)(?:i?b)?", value.strip().lower())
    if not found:
        raise ValueError("%s must be MiB or a size such as '20G' or '512M', got %r" % (name, value))
    return int(math.ceil(float(found[1]) * 1024 ** "mgt".index(found[2] or "m")))


def describe(description: Optional[Mapping[str, Any]] = None, **fields: Any) -> Dict[str, Any]:
    """The job description as the daemon takes it.

    Everything in docs/spec/job.md may be given, as a mapping, as keywords, or both (keywords
    win). On top of that: ``command`` as one string becomes a script for the shell;
    ``time_limit`` takes ``"8h"`` and timedeltas; ``gpu_mem`` takes ``"20G"``; ``after`` takes jobs or numbers that must
    complete first; ``array`` takes a range or list. ``workdir`` is the current folder unless given.
    """
    job: Dict[str, Any] = dict(description or {})
    job.update(fields)
    if isinstance(job.get("command"), str):
        if "script" in job:
            raise ValueError("give command or script, not both")
        job["script"] = job.pop("command")
    elif "command" in job:
        job["command"] = [os.fspath(word) if isinstance(word, os.PathLike) else str(word)
                          for word in job["command"]]
    if "command" not in job and "script" not in job:
        raise ValueError("a job needs command=[...] (program and arguments) or script='...'")
    if "time_limit" in job:
        job["time_limit_s"] = int(math.ceil(_seconds(job.pop("time_limit"), "time_limit")))
    if "gpu_mem" in job:
        job["gpu_mem_mib"] = _mib(job.pop("gpu_mem"), "gpu_mem")
    after = job.pop("after", None)
    if after is not None:
        job["depends"] = list(job.get("depends", ())) + [
            {"type": "afterok", "job": int(_number(one))} for one in _many(after)]
    if "array" in job and not isinstance(job["array"], Mapping):
        job["array"] = {"indices": [int(i) for i in job["array"]]}
    if "envs" in job:
        job["envs"] = {str(k): str(v) for k, v in job["envs"].items()}
    job["workdir"] = os.path.abspath(os.fspath(job.get("workdir") or os.getcwd()))
    job.setdefault("rlimits", _rlimits())
    return job


def _rlimits() -> Dict[str, List[int]]:
    """The limits of this process, which the job gets too. -1: none."""
    told = {}
    for name in ("as", "core", "cpu", "fsize", "memlock", "nofile", "nproc", "stack"):
        both = resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper()))
        told[name] = [v if 0 <= v <= 1 << 53 else -1 for v in both]
    return told


class Job:
    """A job as the daemon last showed it. ``info`` has every field; ``refresh()`` asks again."""

    def __init__(self, client: "Client", info: Mapping[str, Any]) -> None:
        self.client = client
        self.info: Dict[str, Any] = dict(info)

    @property
    def id(self) -> int:
        """The job's number."""
        return int(self.info["id"])

    @property
    def name(self) -> str:
        return str(self.info.get("name") or "")

    @property
    def state(self) -> str:
        """held, blocked, waiting, starting, running, suspended, stopping, or an ended state."""
        return str(self.info.get("state") or "")

    @property
    def cause(self) -> str:
        """How it ended (completed, failed, timeout, ...); empty while it has not."""
        return str(self.info.get("cause") or (self.state if self.done else ""))

    @property
    def done(self) -> bool:
        """It has ended and will not start again."""
        return bool(self.state) and self.state not in _LIVE

    @property
    def ok(self) -> bool:
        """It ended, and well."""
        return self.done and self.cause == "completed"

    @property
    def exit_code(self) -> Optional[int]:
        code = self.info.get("exit_code")
        return None if code is None else int(code)

    def refresh(self) -> "Job":
        """Asks the daemon; returns self."""
        self.info = self.client.job(self).info
        return self

    def wait(self, timeout: Optional[float] = None, check: bool = False) -> "Job":
        """Returns self when the job has ended. See Client.wait."""
        self.info = self.client.wait(self, timeout=timeout, check=check)[0].info
        return self

    def logs(self, follow: bool = False, **options: Any) -> Iterator[str]:
        """See Client.logs."""
        return self.client.logs(self, follow=follow, **options)

    def why(self) -> Dict[str, Any]:
        """Why it is not running, and what would start it."""
        return self.client.why(self)

    def cancel(self) -> None:
        self.client.cancel(self)

    def hold(self) -> None:
        self.client.hold(self)

    def release(self) -> None:
        self.client.release(self)

    def suspend(self) -> None:
        self.client.suspend(self)

    def resume(self) -> None:
        self.client.resume(self)

    def requeue(self) -> None:
        self.client.requeue(self)

    def __getitem__(self, key: str) -> Any:
        return self.info[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return "<stoker.Job %s %r %s>" % (self.info.get("id"), self.name, self.cause or self.state or "?")


JobLike = Union[Job, int, str]


class Event(NamedTuple):
    """One entry of the daemon's journal. Hand ``seq`` to ``events(after=)`` to go on behind it."""

    seq: int
    type: str
    data: Dict[str, Any]


def _number(job: JobLike) -> str:
    """A job, number, or "12_3" (array and index), as it goes into a path."""
    text = str(job.id if isinstance(job, Job) else job)
    if not re.fullmatch(r"[0-9]{1,18}(_[0-9]{1,10})?", text):
        raise ValueError("a job is a Job, its number, or 'ARRAY_INDEX'; got %r" % (job,))
    return text


def _many(jobs: Union[JobLike, Iterable[JobLike]]) -> List[JobLike]:
    if isinstance(jobs, (Job, int, str)):
        return [jobs]
    return list(jobs)


class Client:
    """The daemon, seen from Python.

    socket    path of its Unix socket; else STOKER_SOCKET, else the usual places
    url       instead of a socket: ``https://host:port``, with ``token`` (or STOKER_TOKEN)
    timeout   seconds an ordinary request may take
    patience  seconds that wait(), logs(follow=True) and events() wait for a daemon that is away,
              for instance while it is upgraded. Without limit unless given, once the daemon has
              answered this client; at most 10 seconds before that. After a second of waiting the
              logger "stoker" gets a warning.
    """

    def __init__(self, socket: Optional[str] = None, url: Optional[str] = None, token: Optional[str] = None,
                 timeout: float = 30.0, patience: float = math.inf) -> None:
        if url and token is None:
            token = os.environ.get("STOKER_TOKEN")
        self._http = _Transport(socket, url, token, timeout)
        self.patience = patience

    @property
    def socket(self) -> str:
        """The socket in use; empty with a url."""
        return self._http.socket

    def health(self) -> Dict[str, Any]:
        """What the daemon says about itself."""
        return dict(self._http.call("GET", "/v1/health"))

    # -- submitting

    def _post_jobs(self, body: Dict[str, Any], key: Optional[str], dry_run: bool) -> Dict[str, Any]:
        """Posts with an idempotency key, so that asking again after a lost reply makes no twin."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        path = "/v1/jobs" + _query(dry_run=dry_run)
        patience = _Patience(min(_UNKNOWN_S, self.patience))
        sent = False
        while True:
            try:
                return dict(self._http.call("POST", path, body, headers))
            except Unreachable as exc:
                sent = sent or not isinstance(exc.__cause__, (FileNotFoundError, ConnectionRefusedError,
                                                              PermissionError))
                if not sent or not patience.bear():
                    raise

    def submit(self, description: Optional[Mapping[str, Any]] = None, *, key: Optional[str] = None,
               **fields: Any) -> Job:
        """Submits one job. See describe() for what may be given.

        ``key`` makes it safe to repeat: the same key gives the same job, however often it is sent.
        """
        reply = self._post_jobs(describe(description, **fields), key, False)
        reply.setdefault("id", reply.get("first"))      # an array: its number
        return Job(self, reply)

    def submit_many(self, descriptions: Iterable[Mapping[str, Any]], *, key: Optional[str] = None) -> List[Job]:
        """Submits all or none, in one request, in this order."""
        jobs = [describe(one) for one in descriptions]
        if not jobs:
            return []
        reply = self._post_jobs({"jobs": jobs}, key, False)
        return [Job(self, {"id": number, "name": job.get("name", "")})
                for number, job in zip(reply["ids"], jobs)]

    def try_submit(self, description: Optional[Mapping[str, Any]] = None, **fields: Any) -> Dict[str, Any]:
        """What submit would do, without doing it (a dry run)."""
        return self._post_jobs(describe(description, **fields), None, True)

    # -- looking

    def job(self, job: JobLike) -> Job:
        """One job, as it is now."""
        return Job(self, self._http.call("GET", "/v1/jobs/" + _number(job)))

    def why(self, job: JobLike) -> Dict[str, Any]:
        """Why a job is not running, and what would start it."""
        return dict(self._http.call("GET", "/v1/jobs/%s/why" % _number(job)))

    def _pages(self, path: str, cursor: str, limit: Optional[int], filters: Dict[str, Any]) -> List[Job]:
        found: List[Job] = []
        while True:
            left = _PAGE if limit is None else min(_PAGE, limit - len(found))
            if left <= 0:
                return found
            page = self._http.call("GET", path + _query(limit=left, **filters))
            found.extend(Job(self, info) for info in page["jobs"])
            after = page.get("next")
            if after is None:
                return found
            filters[cursor] = after

    def queue(self, *, state: Optional[str] = None, user: Optional[str] = None, name: Optional[str] = None,
              limit: Optional[int] = None) -> List[Job]:
        """Jobs that have not ended, in the order of their numbers. ``user="me"`` is you."""
        return self._pages("/v1/jobs", "after", limit, {"state": state, "user": user, "name": name})

    def history(self, *, user: Optional[str] = None, name: Optional[str] = None, state: Optional[str] = None,
                since: Optional[float] = None, until: Optional[float] = None,
                limit: Optional[int] = 100) -> List[Job]:
        """Jobs that have ended, newest first. ``state`` is how ("failed"); times are Unix seconds."""
        return self._pages("/v1/history", "before", limit,
                           {"user": user, "name": name, "state": state,
                            "since": None if since is None else int(since),
                            "until": None if until is None else math.ceil(until)})

    def gpus(self) -> Dict[str, Any]:
        """The GPUs, what they do, and for whom."""
        return dict(self._http.call("GET", "/v1/gpus"))

    # -- changing

    def _act(self, verb: str, jobs: Union[JobLike, Iterable[JobLike]],
             args: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        numbers = [_number(one) for one in _many(jobs)]
        if not numbers:
            return {}
        if len(numbers) == 1:
            return dict(self._http.call("POST", "/v1/jobs/%s/%s" % (numbers[0], verb), args or {}))
        body: Dict[str, Any] = {"verb": verb, "ids": [int(n) if n.isdigit() else n for n in numbers]}
        if args:
            body.update(args)
        return dict(self._http.call("POST", "/v1/jobs/act", body))

    def cancel(self, jobs: Union[JobLike, Iterable[JobLike]]) -> Dict[str, Any]:
        """Ends jobs: signal, grace, kill. Waiting ones just leave the queue."""
        return self._act("cancel", jobs)

    def hold(self, jobs: Union[JobLike, Iterable[JobLike]]) -> Dict[str, Any]:
        """Keeps waiting jobs from starting."""
        return self._act("hold", jobs)

    def release(self, jobs: Union[JobLike, Iterable[JobLike]]) -> Dict[str, Any]:
        """Undoes hold."""
        return self._act("release", jobs)

    def suspend(self, jobs: Union[JobLike, Iterable[JobLike]]) -> Dict[str, Any]:
        """Takes jobs off their GPUs; they go on later."""
        return self._act("suspend", jobs)

    def resume(self, jobs: Union[JobLike, Iterable[JobLike]]) -> Dict[str, Any]:
        """Lets suspended jobs go on when there is room."""
        return self._act("resume", jobs)

    def requeue(self, jobs: Union[JobLike, Iterable[JobLike]]) -> Dict[str, Any]:
        """Stops jobs and puts them back in the queue under the same number."""
        return self._act("requeue", jobs)

    def signal(self, jobs: Union[JobLike, Iterable[JobLike]], name: str) -> Dict[str, Any]:
        """Sends a signal such as "USR1" to running jobs."""
        return self._act("signal", jobs, {"signal": name})

    # -- following

    def _patience(self) -> "_Patience":
        return _Patience(self.patience, self.patience if self._http.answered else _UNKNOWN_S)

    def _wait_one(self, number: str, deadline: Optional[float]) -> Job:
        patience = self._patience()
        asked = False
        while True:
            left = math.inf if deadline is None else deadline - time.monotonic()
            if asked and left <= 0:
                raise WaitTimeout("job %s has not ended in the time given; it goes on" % number)
            slice_s = max(0.0, min(left, 30.0))
            asked = True
            try:
                path = "/v1/jobs/%s/wait%s" % (number, _query(timeout_s=str(math.ceil(slice_s))))
                job = Job(self, self._http.call("GET", path, timeout=slice_s + 30.0))
                if job.done:
                    return job
                patience.good()
            except Unreachable:
                if not patience.bear(left):
                    raise

    def wait(self, jobs: Union[JobLike, Iterable[JobLike]], timeout: Optional[float] = None,
             check: bool = False) -> List[Job]:
        """Returns the jobs, in the order given, when all have ended.

        Raises WaitTimeout after ``timeout`` seconds. With ``check``, raises JobFailed for the
        first that did not complete. Outlives a restart of the daemon.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        ended = [self._wait_one(_number(one), deadline) for one in _many(jobs)]
        for job in ended:
            if check and not job.ok:
                text = job.info.get("state_text") or "exit code %s" % job.exit_code
                raise JobFailed("job %d %s: %s. See 'stoker logs %d'." % (job.id, job.cause, text, job.id), job)
        return ended

    def _stream(self, path: str, headers: Mapping[str, str],
                head: Optional[Callable[[Any], None]] = None) -> Iterator[bytes]:
        """The body of a long answer; a connection that breaks off raises Unreachable.

        ``head`` is called when the head of the answer has come.
        """
        conn, response = self._http.open("GET", path, headers=headers, stream=True)
        with contextlib.closing(conn):
            if head:
                head(response)
            while True:
                try:
                    data = response.read1(65536)
                except _DROPPED as exc:
                    raise self._http.no_answer(exc) from exc
                if not data:
                    return
                yield data

    def logs(self, job: JobLike, follow: bool = False, *, stream: str = "stdout", task: int = 0,
             offset: int = 0) -> Iterator[str]:
        """The job's output as pieces of text; with ``follow``, until the job has ended.

        Bytes that are not UTF-8 come out as replacement characters. Outlives a restart of the daemon.
        """
        if stream not in ("stdout", "stderr"):
            raise ValueError("stream must be 'stdout' or 'stderr', got %r" % stream)
        path = "/v1/jobs/%s/log" % _number(job)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        patience = self._patience()
        inside = False      # the last byte was not the end of a line

        def head(response: Any) -> None:
            nonlocal offset
            offset = int(response.getheader("Stoker-Offset", offset))
        while True:
            query = _query(stream=stream, task=str(task), offset=str(offset), follow=follow,
                           counts=("inside" if inside else "line") if follow else None)
            try:
                for data in self._stream(path + query, {"Accept": "*/*"}, head):
                    patience.good()
                    offset += len(data)
                    inside = not data.endswith(b"\n")
                    text = decoder.decode(data)
                    if text:
                        yield text
                break
            except Unreachable:
                if not follow or not patience.bear():
                    raise
        text = decoder.decode(b"", True)
        if text:
            yield text

    def events(self, after: Optional[int] = None) -> Iterator[Event]:
        """Everything that happens, as it happens; never ends by itself.

        ``after`` is the ``seq`` of the last event already seen; without it, from now on. After a
        lost connection it goes on where it was: nothing is missed and nothing comes twice. Should the
        daemon no longer keep what is asked for, an event of type "gap" says so.
        """
        last = after
        patience = self._patience()
        while True:
            headers = {"Accept": "text/event-stream"}
            if last is not None:
                headers["Last-Event-ID"] = str(last)
            error = Unreachable("the stoker daemon closed the stream of events and did not come back")
            try:
                for seq, kind, text in _sse(_lines(self._stream("/v1/events", headers))):
                    patience.good()
                    last = last if seq is None else seq
                    if text is not None and kind != "stopping":     # that one: the daemon goes
                        yield Event(-1 if seq is None else seq, kind, json.loads(text))
            except Unreachable as exc:
                error = exc
            if not patience.bear():
                raise error


class _Patience:
    """How long to go on without a daemon: waits between attempts, and says when it is enough."""

    def __init__(self, seconds: float, first: float = math.inf) -> None:
        self._answered = seconds            # once something came
        self._seconds = min(first, seconds)
        self._since: Optional[float] = None
        self._tried = 0.0
        self._delay = 0.1
        self._said = False

    def good(self) -> None:
        """Something came."""
        self._seconds = self._answered
        self._since = None
        self._delay = 0.1
        self._said = False

    def bear(self, at_most: float = math.inf) -> bool:
        """The connection was lost or refused. Waits, and says whether to try again."""
        now = time.monotonic()
        if self._since is not None and now - self._tried > 5.0:
            self.good()     # it was open for a while, only quiet
        self._since = now if self._since is None else self._since
        if not self._said and now - self._since >= 1.0:
            self._said = True
            _log.warning("the daemon does not answer (it may be restarting); waiting for it")
        if now - self._since + self._delay > self._seconds:
            return False
        time.sleep(max(0.0, min(self._delay, at_most)))
        self._delay = min(self._delay * 2, 1.0)
        self._tried = time.monotonic()
        return True


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for data in pieces:
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r").decode("utf-8", "replace")


def _sse(lines: Iterable[str]) -> Iterator[Tuple[Optional[int], str, Optional[str]]]:
    """Server-sent events: (id, type, data) for each blank line; data is None when it had none."""
    seq: Optional[int] = None
    kind = "message"
    data: List[str] = []
    for line in lines:
        if not line:
            if data or seq is not None:
                yield seq, kind, "\n".join(data) if data else None
            kind, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "data":
            data.append(value)
        elif field == "event":
            kind = value
        elif field == "id" and value.isdigit():
            seq = int(value)


# ------------------------------------------------------------------- how often to checkpoint

def young_interval(cost_s: float, mtbi_s: float) -> float:
    """Young's first-order optimum sqrt(2 C M) (CACM 1974): right while C is tiny against M."""
    _check_costs(cost_s, mtbi_s)
    return math.sqrt(2.0 * cost_s * mtbi_s)


def daly_interval(cost_s: float, mtbi_s: float) -> float:
    """Seconds of work between two checkpoints that lose the least time.

    ``cost_s`` is what one checkpoint costs, ``mtbi_s`` the mean time between interruptions. This is
    the higher-order estimate of Daly (Future Generation Computer Systems 22, 2006). For a
    small cost it is Young's sqrt(2 C M); from C = 2 M on it is M.
    """
    _check_costs(cost_s, mtbi_s)
    if cost_s >= 2.0 * mtbi_s:
        return mtbi_s
    x = cost_s / (2.0 * mtbi_s)
    return math.sqrt(2.0 * cost_s * mtbi_s) * (1.0 + math.sqrt(x) / 3.0 + x / 9.0) - cost_s


def _check_costs(cost_s: float, mtbi_s: float) -> None:
    if not cost_s >= 0 or not mtbi_s > 0 or math.isinf(cost_s):
        raise ValueError("the cost must be >= 0 and the time between interruptions > 0, got %r and %r"
                         % (cost_s, mtbi_s))


# ------------------------------------------------------------------------------ inside a job

def _env_number(*names: str) -> int:
    """The first of these variables that holds a number; else 0."""
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return 0


class Run:
    """The job this process belongs to. Get it with stoker.current().

    False in a boolean context when the program runs outside stoker. Then nothing is sent, but
    should_checkpoint() still works by time, so the same loop serves both.

    Nothing here raises because of the daemon: a report that cannot be sent costs one warning, then
    silence and rarer attempts. Under several ranks only rank 0 talks to the daemon. Let it
    decide for all (broadcast what should_checkpoint() said), or the ranks will disagree.
    """

    #: Seconds between reports and between questions; bounds of what is advised and believed.
    report_every_s = 5.0
    poll_every_s = 1.0
    least_interval_s = 10.0
    most_interval_s = 24 * 3600.0
    most_mtbi_s = 30 * 86400.0

    def __init__(self, job_id: Optional[int] = None, client: Optional[Client] = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.id = job_id
        self.rank = _env_number("RANK", "STOKER_TASK", "SLURM_PROCID", "LOCAL_RANK")
        #: How often this job has been started before; 0 the first time.
        self.restarts = _env_number("STOKER_RESTARTS", "SLURM_RESTART_COUNT")
        #: Why the job is being stopped, in the daemon's words; empty while it is not.
        self.reason = ""
        self._clock = clock
        self._client = client
        self._quiet = job_id is None or self.rank != 0
        self._retry_at = -math.inf
        self._backoff = 1.0
        self._warned = False
        self._reported = -math.inf
        self._polled = -math.inf
        self._can_poll = True
        self._saved = clock()
        self._cost: Optional[float] = None
        self._mtbi: Optional[float] = None
        self._due = False
        self._signalled = False
        self._told_stop = False
        self._installed = False

    def __bool__(self) -> bool:
        return self.id is not None

    def __repr__(self) -> str:
        return "<stoker.Run %s>" % ("outside a job" if self.id is None else "of job %d" % self.id)

    # -- talking to the daemon

    def _ask(self, method: str, what: str, body: Optional[Dict[str, Any]] = None) -> Optional[Dict[str, Any]]:
        """A short exchange that never raises; None when it did not work."""
        now = self._clock()
        if self._quiet or now < self._retry_at:
            return None
        try:
            if self._client is None:
                self._client = Client(timeout=2.0)
            reply = self._client._http.call(method, "/v1/jobs/%d/%s" % (self.id or 0, what), body)
        except Exception as exc:  # pylint: disable=broad-except
            self._could_not(what, exc)
            return None
        self._backoff = 1.0
        return reply if isinstance(reply, dict) else {}

    def _could_not(self, what: str, exc: Exception) -> None:
        if isinstance(exc, NotFound) and what == "control":
            self._can_poll = False      # a daemon that has no such route; signals still work
            return
        self._retry_at = self._clock() + self._backoff
        self._backoff = min(self._backoff * 2, 300.0)
        if not self._warned:
            self._warned = True
            warnings.warn("stoker: could not send '%s' for job %s: %s Training goes on; further failures are "
                          "not shown." % (what, self.id, exc), RuntimeWarning, stacklevel=4)

    def _learn(self, reply: Optional[Mapping[str, Any]]) -> None:
        """Takes in what the daemon says about this job."""
        if not reply:
            return
        rate = reply.get("interrupt_rate_per_h")
        if isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate >= 0:
            self._mtbi = min(3600.0 / rate if rate > 0 else math.inf, self.most_mtbi_s)
        reason = reply.get("reason")
        stop = bool(reply.get("checkpoint")) and reason is not None
        if reply.get("checkpoint") and not (stop and self._told_stop):
            self._due = True
        self._told_stop = stop
        self.reason = str(reason) if stop else ""

    # -- telling

    def progress(self, step: int, total: Optional[int] = None, **metrics: float) -> None:
        """Says how far the job is. Call it every step: most calls only look at the clock.

        The first call, the last step (``step == total``) and at most one every few seconds are
        sent. With a total, the daemon expects the job to end when these steps say. Metrics are numbers by name, such as loss=0.3; other things are left out.
        """
        now = self._clock()
        if self._quiet or (now - self._reported < self.report_every_s and step != total):
            return
        self._reported = now
        numbers = {}
        for name, value in metrics.items():
            with contextlib.suppress(Exception):
                number = float(value)
                if math.isfinite(number):
                    numbers[name] = number
        body: Dict[str, Any] = {"metrics": numbers}
        with contextlib.suppress(Exception):
            body["step"] = int(step)
            if total is not None:
                body["total"] = int(total)
        self._learn(self._ask("POST", "report", body))

    # -- checkpoints

    @property
    def cost_s(self) -> float:
        """What a checkpoint costs: a moving average of what was measured."""
        return PRIOR_COST_S if self._cost is None else self._cost

    @property
    def mtbi_s(self) -> float:
        """Mean time between interruptions, as the daemon has counted them; else a guess."""
        return PRIOR_MTBI_S if self._mtbi is None else self._mtbi

    @property
    def interval(self) -> float:
        """Advised seconds of work between checkpoints: daly_interval(cost_s, mtbi_s), bounded."""
        best = daly_interval(self.cost_s, self.mtbi_s)
        return max(self.least_interval_s, min(best, self.most_interval_s))

    def on_signal(self, *signals: Union[int, str]) -> None:
        """Makes these signals mean "save and leave": the handler sets a flag and calls the one before.

        Without arguments: USR1, USR2 and TERM, but not one that a library written in C has taken (as
        some versions of NCCL do with USR1). Must be called in the main thread. should_checkpoint() does
        it by itself inside a job if you did not.
        """
        self._installed = True
        for one in signals or ("USR1", "USR2", "TERM"):
            number = _signal_number(one)
            if signals or _signal.getsignal(number) is not None:
                _chain(number, self._on_flag)

    def _on_flag(self) -> None:
        self._due = True
        self._signalled = True

    def _poll(self) -> None:
        now = self._clock()
        if self._quiet or not self._can_poll or now - self._polled < self.poll_every_s:
            return
        self._polled = now
        self._learn(self._ask("GET", "control"))

    def should_checkpoint(self) -> bool:
        """True when now is a good time: a signal came, the job is being stopped, or the interval passed.

        Cheap; call it every step. It asks the daemon at most once a second.
        """
        if not self._installed and self.id is not None:
            self._installed = True
            if threading.current_thread() is threading.main_thread():
                self.on_signal()
        self._poll()
        return self._due or self._clock() - self._saved >= self.interval

    def should_stop(self) -> bool:
        """True when the job is being stopped: save (once), then leave with requeue() or sys.exit()."""
        self._poll()
        return self._signalled or self._told_stop

    @contextlib.contextmanager
    def checkpointing(self, step: Optional[int] = None) -> Iterator[None]:
        """Goes around the saving: measures what it costs and tells the daemon that work is safe.

        If the saving raises, nothing is counted and the exception goes on.
        """
        begun = self._clock()
        yield
        ended = self._clock()
        cost = max(0.0, ended - begun)
        self._cost = cost if self._cost is None else 0.7 * self._cost + 0.3 * cost
        self._saved = ended
        self._due = False
        safe: Dict[str, Any] = {"seconds": round(cost, 6)}
        if step is not None:
            safe["step"] = int(step)
        self._learn(self._ask("POST", "report", {"checkpoint": safe}))

    def requeue(self) -> NoReturn:
        """Leaves, and asks to be started again under the same number. Save first.

        Asks the daemon; and exits with EXIT_REQUEUE, which does the same by itself in a job that has
        ``retry: {error: always, exit_codes: [75]}``. Outside a job it just exits with that status.
        """
        if self.id is not None:
            self._polled = self._retry_at = -math.inf
            self._poll()
            if not self._told_stop:     # else it is being stopped already, and queued again unless cancelled
                self._ask("POST", "requeue", {})
        sys.stdout.flush()
        raise SystemExit(EXIT_REQUEUE)


def _signal_number(name: Union[int, str]) -> int:
    if not isinstance(name, str):
        return int(name)
    if name.isdigit():
        return int(name)
    text = name.upper()
    text = text if text.startswith("SIG") else "SIG" + text
    try:
        return int(_signal.Signals[text])
    except KeyError:
        raise ValueError("no signal is called %r; try USR1, USR2 or TERM" % name) from None


def _chain(number: int, flag: Callable[[], None]) -> None:
    """Installs a handler that sets the flag and then calls the earlier Python handler, if any."""
    earlier = _signal.getsignal(number)

    def handler(signum: int, frame: Any) -> None:
        flag()
        if callable(earlier) and earlier is not _signal.default_int_handler:
            earlier(signum, frame)

    _signal.signal(number, handler)


_current: Optional[Run] = None


def current() -> Run:
    """The job this process runs in; outside one, a Run that is False and sends nothing."""
    global _current  # pylint: disable=global-statement
    if _current is None:
        number = os.environ.get("STOKER_JOB_ID", "")
        _current = Run(int(number) if number.isdigit() else None)
    return _current


def items(otherwise: Sequence[str] = ()) -> Iterator[str]:
    """The items this process is to work on: ``for item in stoker.items(): ...``.

    In a job of kind batch, STOKER_ITEM names it. Elsewhere ``otherwise`` is used, so that
    ``stoker.items(sys.argv[1:])`` also works by hand.
    """
    item = os.environ.get("STOKER_ITEM")
    if item is not None:
        yield item
    else:
        yield from otherwise
