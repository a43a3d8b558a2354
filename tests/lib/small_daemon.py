# SPDX-License-Identifier: Apache-2.0
"""A tiny HTTP server on a real Unix socket, for testing the Python SDK's side of the protocol.

Each test says what the next requests get: `on(method, path, answer)`, where answer is (status, JSON),
bytes, or a function of the request that writes to the connection itself. Everything asked is in
`asked`, in order.
"""
import http.server
import json
import os
import socketserver
import threading
import urllib.parse


class Request:
    def __init__(self, method, target, headers, body):
        parts = urllib.parse.urlsplit(target)
        self.method, self.path = method, parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query))
        self.headers = headers
        self.body = json.loads(body) if body else None


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rbufsize = 0

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def start_stream(self, kind="text/plain"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")

    def serve(self):
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, self.headers, body)
        answer = self.server.small.next_answer(request)
        if callable(answer):
            answer(self, request)
            return
        status, value = answer if isinstance(answer, tuple) else (200, answer)
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = serve


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 32


class SmallDaemon:
    def __init__(self, path):
        self.socket = str(path)
        self.asked = []
        self._answers = {}
        self._lock = threading.Lock()
        self._server = None

    def start(self):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self._server = _Server(self.socket, _Handler)
        self._server.small = self
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def stop(self):
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        if os.path.exists(self.socket):
            os.unlink(self.socket)

    def on(self, method, path, *answers):
        """Answers in turn; the last one stays."""
        self._answers[method, path] = list(answers)

    def next_answer(self, request):
        with self._lock:
            self.asked.append(request)
            left = self._answers.get((request.method, request.path))
            if not left:
                return 404, {"error": {"code": "not_found", "message": "no " + request.path}}
            return left.pop(0) if len(left) > 1 else left[0]

    def paths(self, method=None):
        return [r.path for r in self.asked if method in (None, r.method)]


def hang_up(handler, _request):
    """Reads the request and closes without a word."""
    handler.close_connection = True
