# SPDX-License-Identifier: Apache-2.0
"""HTTP over a Unix socket or TCP for tests: http.client with AF_UNIX, and a few raw helpers."""
import fcntl
import http.client
import json
import socket
import struct
import termios

from patience import PATIENCE_S, until


def until_read(sock):
    """Returns when the other side of a Unix socket has taken all that was sent."""
    until(lambda: struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4))[0] == 0, say="somebody reads it")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=PATIENCE_S):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        """The sentence of an error."""
        return self.json["error"]["message"]

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Client:
    """target: path of a Unix socket, or (host, port)."""

    def __init__(self, target, token=None, timeout=PATIENCE_S):
        self.target, self.token, self.timeout = target, token, timeout

    def connection(self):
        if isinstance(self.target, tuple):
            return http.client.HTTPConnection(*self.target, timeout=self.timeout)
        return UnixConnection(self.target, self.timeout)

    def socket(self):
        """A bare connected socket."""
        c = self.connection()
        c.connect()
        return c.sock

    def open(self, method, path, body=None, headers=None):
        """The response, its body not read yet; keep the pair alive."""
        c = self.connection()
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        c.request(method, path, body=body, headers=headers)
        return c, c.getresponse()

    def ask(self, method, path, body=None, headers=None):
        c, r = self.open(method, path, body, headers)
        try:
            return Answer(r.status, r.headers, r.read())
        finally:
            c.close()

    def get(self, path, **headers):
        return self.ask("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path, body=None, **headers):
        return self.ask("POST", path, body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def raw(sock, data):
    """Sends bytes, returns all that comes back until the other side closes."""
    sock.sendall(data)
    out = b""
    while True:
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            return out
        if not piece:
            return out
        out += piece
