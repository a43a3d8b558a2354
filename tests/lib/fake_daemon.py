# SPDX-License-Identifier: Apache-2.0
"""A daemon of canned answers on a Unix socket, for what a real one would never say: hostile text,
broken answers, many pages, a restart at the wrong moment.

    with FakeDaemon({"GET /v1/jobs": lambda req: {"jobs": [], "next": None}}) as d: ...

A route's function gets a Request and returns JSON, (status, JSON), or Raw bytes for the connection."""
import json
import os
import socket
import socketserver
import tempfile
import threading
import urllib.parse


class Raw(bytes):
    """Bytes to send as they are, after which the connection is closed."""


class Request:
    def __init__(self, method, target, headers, body):
        parts = urllib.parse.urlsplit(target)
        self.method, self.path = method, parts.path
        self.query = {k: v[-1] for k, v in urllib.parse.parse_qs(parts.query).items()}
        self.headers, self.body = headers, body

    def json(self):
        return json.loads(self.body)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            line = self.rfile.readline().decode()
            if not line:
                return
            method, target, _ = line.split(" ", 2)
            headers = {}
            while (h := self.rfile.readline().decode().strip()):
                name, value = h.split(":", 1)
                headers[name.lower()] = value.strip()
            body = self.rfile.read(int(headers.get("content-length", 0)))
            if not self.answer(Request(method, target, headers, body)):
                return

    def answer(self, req):
        daemon = self.server.daemon_
        daemon.seen.append(req)
        fn = daemon.routes.get(f"{req.method} {req.path}")
        reply = fn(req) if fn else (404, {"error": {"code": "not_found", "message": f"no {req.path}"}})
        if isinstance(reply, Raw):
            self.wfile.write(reply)
            return False
        status, body = reply if isinstance(reply, tuple) else (200, reply)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.wfile.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(data), data))
        return True


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that leave early are part of the tests


class FakeDaemon:
    def __init__(self, routes):
        self.routes, self.seen = routes, []
        self.dir = tempfile.TemporaryDirectory(prefix="stk-fake-")
        self.socket = os.path.join(self.dir.name, "s")

    def __enter__(self):
        self.server = Server(self.socket, Handler)
        self.server.daemon_ = self
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        self.dir.cleanup()

    def paths(self):
        return [f"{r.method} {r.path}" for r in self.seen]


def job(number, **more):
    """A job object as the API shows it."""
    return {"id": number, "name": f"job{number}", "user": "ada", "uid": 1000, "state": "running",
            "state_text": "", "kind": "train", "gpus": 1, "tasks": 1, "priority": 500, "tier": "standard",
            "submitted": 1.0e9, "started": 1.0e9, "ended": None, "exit_code": None, "signal": None,
            "cause": None, "run_s": 5.0, "restarts": 0, "preemptions": 0, "gpu_indices": [0], "node": "n0",
            "array_id": None, "array_index": None, "comment": "", "note": None, **more}


def ended(number, cause="completed", code=0, **more):
    return job(number, **{"state": "done", "cause": cause, "exit_code": code, "ended": 1.0e9 + 5,
                          "gpu_indices": [], "node": None, **more})
