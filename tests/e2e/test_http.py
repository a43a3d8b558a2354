# SPDX-License-Identifier: Apache-2.0
"""The HTTP layer alone: what it does with good, bad, slow and absent clients."""
import contextlib
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

import pytest
from patience import PATIENCE_S, until
from webclient import Client, until_read, raw

BUILD = pathlib.Path(os.environ.get("STOKER", pathlib.Path(__file__).resolve().parents[2] / "build/stoker")).parent
SERVER = BUILD / "http_server"
pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="built without tests")


class Server:
    def __init__(self, folder, *args, before=()):
        self.path = folder / "s.sock"
        self.process = subprocess.Popen([*before, SERVER, self.path, *(args or ["127.0.0.1:0"])], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.url = self.process.stdout.readline().strip()
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        host, port = self.url.split("//")[1].rsplit(":", 1)
        self.tcp = (host, int(port))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err


@pytest.fixture
def server(tmp_path):
    s = Server(tmp_path)
    yield s
    if s.process.poll() is None:
        code, _, err = s.stop()
        assert code == 0, err


def test_answers_over_both_doors_and_knows_who_asks(server):
    assert Client(server.path).get("/hello").json == {"uid": os.getuid()}
    assert Client(server.tcp).get("/hello").json == {"uid": None}
    assert Client(server.tcp, token="good").get("/mine").json == {"uid": 1}
    assert Client(server.path).get("/mine").json == {"uid": os.getuid()}


def test_access_is_by_token_and_role(server):
    a = Client(server.tcp).get("/mine")
    assert a.status == 401 and "token" in a.message and a.headers["WWW-Authenticate"].startswith("Bearer")
    assert Client(server.tcp, token="bad").get("/mine").status == 401
    assert Client(server.tcp, token="good").get("/boss").status == 403
    assert Client(server.tcp, token="boss").get("/boss").status == 200
    assert Client(server.tcp).get("/local").status == 200
    # a wrong token is an error even where none is needed
    assert Client(server.tcp, token="bad").get("/hello").status == 401


def test_a_session_needs_both_halves_and_one_of_our_own_pages(server):
    c = Client(server.tcp)
    own, page = {"Origin": "http://%s:%d" % server.tcp}, {"Stoker-Session": "half"}
    cookie = {"Cookie": "stoker-%d=other" % server.tcp[1]}
    assert c.ask("GET", "/mine", headers={**cookie, **page}).status == 200
    assert c.ask("POST", "/mine", headers={**cookie, **page, **own}).status == 200
    assert c.ask("POST", "/mine", headers={**cookie, **page}).status == 401
    assert c.ask("POST", "/mine", headers={**cookie, **page, "Origin": "http://127.0.0.1:1"}).status == 401
    assert c.ask("GET", "/mine", headers={**cookie, **page, "Sec-Fetch-Site": "same-site"}).status == 401
    for half in (cookie, page, {"Cookie": "stoker=other", **page}, {"Cookie": "stoker-1=other", **page}, {"Stoker-Session": "other", "Cookie": cookie["Cookie"]}):
        assert c.ask("GET", "/mine", headers=half).status == 401, half
    # others on this host may set cookies of our name: they do not lock anybody out
    assert c.ask("GET", "/mine", headers={"Cookie": "stoker-%d=bad; %s; stoker-%d=worse" % (server.tcp[1], cookie["Cookie"], server.tcp[1]), **page}).status == 200
    # a session that is over makes a stranger of its browser, who can still read the page
    a = c.ask("GET", "/hello", headers={"Cookie": "stoker-%d=bad" % server.tcp[1], **page})
    assert (a.status, a.json) == (200, {"uid": None})
    assert "log in again" in c.ask("GET", "/mine", headers={"Cookie": "stoker-%d=bad" % server.tcp[1], **page}).message
    assert Client(server.path).ask("GET", "/mine", headers=page).status == 200  # the socket has no sessions


def test_names_that_are_not_ours_are_refused_on_tcp(server):
    c = Client(server.tcp)
    for host, status in [("evil.example", 403), ("evil.example:80", 403), ("localhost", 200), ("a.localhost:1", 200),
                         ("127.0.0.1", 200), ("[::1]:80", 200), (socket.gethostname(), 200)]:
        assert c.ask("GET", "/hello", headers={"Host": host}).status == status, host
    assert Client(server.path).ask("GET", "/hello", headers={"Host": "evil.example"}).status == 200


def test_paths_that_are_not_there_name_the_nearest(server):
    a = Client(server.path).get("/helo")
    assert a.status == 404 and "/hello" in a.message
    assert "/later/{name}" in Client(server.path).get("/latr/x").message
    assert "openapi" in Client(server.path).get("/something/else").message


def test_wrong_methods_name_the_right_ones(server):
    a = Client(server.path).ask("DELETE", "/mine")
    assert a.status == 405 and a.headers["Allow"] == "GET, POST"
    assert Client(server.path).ask("OPTIONS", "/mine").status == 405
    assert Client(server.path).ask("HEAD", "/hello").status == 200


def test_queries_are_checked(server):
    a = Client(server.path).get("/count?too=5")
    assert a.status == 400 and "too" in a.message and "to" in a.message
    assert Client(server.path).get("/hello?x=1").status == 400
    for bad in ["-1", "1.5", "x", "", "99999999999999999999999"]:
        assert Client(server.path).get("/later/x?ms=" + bad).status == 400, bad


def test_bad_json_says_where(server):
    a = Client(server.path).post("/echo", b'{"a": 1,\n "b": }')
    assert a.status == 400 and "line 2" in a.message
    assert Client(server.path).post("/echo", b'{"a": 1, "a": 2}').status == 400
    assert Client(server.path).post("/echo", b"").status == 400
    assert Client(server.path).post("/echo", b'{"a": "\xff\xfe"}').status == 400
    assert Client(server.path).post("/echo", b"[" * 100000).status == 400
    assert Client(server.path).post("/echo", {"a": ["b", None, 1.5]}).json == {"a": ["b", None, 1.5]}


def test_bodies_up_to_the_limit_are_taken(server):
    big = "x" * (8 << 20)
    assert Client(server.path).post("/echo", json.dumps([big])).json == [big]
    # announced too large: refused before it is sent
    s = Client(server.path).socket()
    s.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 67108865\r\n\r\n")
    assert b" 413 " in s.recv(65536)
    # in pieces, without saying how much
    c = Client(server.path, timeout=60).connection()
    c.putrequest("POST", "/echo")
    c.putheader("Transfer-Encoding", "chunked")
    c.endheaders()
    piece = b"x" * (1 << 20)
    for i in range(66):
        begin = b'["' if i == 0 else b""
        c.send(b"%x\r\n%s%s\r\n" % (len(begin + piece), begin, piece))
    c.send(b"0\r\n\r\n")
    r = c.getresponse()
    assert r.status == 413 and b"larger" in r.read()
    assert Client(server.path).get("/hello").status == 200


def test_refusals_come_after_the_body_so_that_clients_see_them(server):
    a = Client(server.tcp).post("/mine", b"x" * 60000)
    assert a.status == 401


def test_long_urls_and_headers_are_refused(server):
    c = Client(server.path)
    assert c.get("/hello/" + "x" * 5000).status == 414
    s = c.socket()
    assert raw(s, b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 414")
    s = c.socket()
    assert b" 431 " in raw(s, b"GET /hello HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"y" * 40000 + b"\r\n\r\n")


@pytest.mark.parametrize("head,says", [
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\n[1]\n", "Content-Length"),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n", "both Content-Length and Transfer-Encoding"),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n[]", "Transfer-Encoding"),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n", "Transfer-Encoding"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "two Host headers"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nHOST: x\r\n\r\n", "two Host headers"),
    (b"GET /hello HTTP/1.1\r\n\r\n", "Host"),
    (b"GET /hello\0x HTTP/1.1\r\nHost: x\r\n\r\n", "NUL"),
    (b"GET /hello%00x HTTP/1.1\r\nHost: x\r\n\r\n", "NUL"),
    (b"GET /hello?a=%00 HTTP/1.1\r\nHost: x\r\n\r\n", "NUL"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length : 35\r\n\r\n", "name of a header"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length\t: 35\r\n\r\n", "name of a header"),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n[]", "name of a header"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\n: 35\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX(Y): 35\r\n\r\n", "name of a header"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX\x80: 35\r\n\r\n", "name of a header"),
    (b"GET /hello HTTP/1.1\r\n Host: y\r\nHost: x\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX: a\rHost: y\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX: a\r\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX: a\x1bb\r\n\r\n", "control character"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX: a\x7f\r\n\r\n", "control character"),
    (b"GET /hello HTTP/1.1\r\nX: a\0b\r\nHost: x\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nX: a\0\0Y: b\r\nHost: x\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nX: a\0\r\nHost: x\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nX\0Y: a\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nX: a\r\n b\r\nHost: x\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nX: a\r\n \r\nHost: x\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\n\ty\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\n \r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Len: 0\r\n gth\r\n\r\n", ""),
    (b"GET /hello HTTP/1.1\nHost: x\n\n", ""),
    (b"GET /hello HTTP/1.1\r\nX: a\nHost: x\r\n\r\n", ""),
    (b"GET /hello HTTP/1.2\r\nHost: x\r\n\r\n", ""),
    (b"GET /hello\r\nHost: x\r\n\r\n", ""),
    (b"POST /echo HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n", "Transfer-Encoding"),
    (b"GET /hello HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer a\r\n\r\n", "two Authorization headers"),
    (b"GET /hello HTTP/1.1\r\nHost: localhost:99x\r\n\r\n", "port"),
    (b"GET /hello HTTP/1.1\r\nHost: localhost:65536\r\n\r\n", "port"),
    (b"GET /hello HTTP/1.1\r\nHost: [::1]x\r\n\r\n", "port"),
    (b"GET /hello HTTP/1.1\r\nHost: [::1\r\n\r\n", "port"),
])
def test_heads_that_can_be_read_in_two_ways_are_refused(server, head, says):
    """The answer is 400 and the connection is closed: what follows cannot be taken for another request."""
    out = raw(Client(server.path).socket(), head + b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    assert out.startswith(b"HTTP/1.1 400 "), out
    assert says.encode() in out.split(b"\r\n\r\n", 1)[1], out
    assert b"HTTP/1.1 200 " not in out, out


def test_the_same_connection_is_good_for_heads_that_are_clear(server):
    one = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
    chunked = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n"
    out = raw(Client(server.path).socket(), one + chunked + b"GET /later/a%20b?ms=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert out.count(b"HTTP/1.1 200 ") == 3, out


@pytest.mark.parametrize("header", [b"X:", b"X:\ta \t b", b"X:   ", b"X-1_!#$%&'*+.^`|~: \xc3\xa9", b"X: " + b"y" * 9000, b"Cookie: a=b; c=d",
                                    b"\r\n".join(b"X-%d: %d" % (i, i) for i in range(60)), b"Authorization: Bearer a:b, c"], ids=range(8))
@pytest.mark.parametrize("host", [b"x", b"x:80", b"x:", b"[::1]", b"[::1]:80"])
def test_heads_that_are_unusual_and_clear_are_taken(server, header, host):
    """In pieces, whole, and as the second request on a connection."""
    s = Client(server.path, timeout=PATIENCE_S).socket()
    head = b"GET /hello HTTP/1.1\r\nHost: " + host + b"\r\n" + header + b"\r\n\r\n"
    for piece in (head[:30], head[30:-3], head[-3:] + head):
        s.sendall(piece)
        until_read(s)
    out = raw(s, head.replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n"))
    assert out.count(b"200 OK") == 3, out



@pytest.mark.parametrize("junk", [
    b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 1000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", b"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n", b"GET /hello%00x HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
])
def test_junk_does_no_harm(server, junk):
    s = Client(server.path, timeout=2).socket()
    try:
        s.sendall(junk)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    except OSError:
        pass
    s.close()
    assert Client(server.path).get("/hello").status == 200


def test_answers_may_come_later_and_in_any_order(server):
    slow = Client(server.path).open("GET", "/later/a?ms=0")[1]
    c = Client(server.path).connection()
    for ms in (30, 0, 5):  # the same connection, again and again
        c.request("GET", f"/later/x?ms={ms}")
        assert json.loads(c.getresponse().read()) == {"later": True}
    assert json.loads(slow.read()) == {"later": True}


def test_streams_sleep_and_wake(server):
    a = Client(server.path).get("/count?to=100")
    assert a.body.split() == [b"%d" % i for i in range(100)]
    assert a.headers["Transfer-Encoding"] == "chunked"


def test_a_client_that_leaves_a_stream_is_forgotten(server):
    c, r = Client(server.path).open("GET", "/count?to=1000000000")
    assert r.read(100)
    r.close()
    c.close()
    assert server.process.stdout.readline() == "done\n"


def test_a_client_that_leaves_while_it_waits_is_forgotten(server):
    s = Client(server.path).socket()
    s.sendall(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
    until_read(s)
    s.close()
    assert server.process.stdout.readline() == "gone\n"


def test_stopping_ends_streams_and_answers_those_who_wait(server):
    _, r = streaming = Client(server.path).open("GET", "/count?to=1000000000")
    assert r.read(10)
    s = Client(server.path).socket()
    s.sendall(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
    idle = Client(server.path).socket()
    until_read(s)
    assert Client(server.path).get("/hello").status == 200  # so the one before was let in
    server.process.send_signal(signal.SIGTERM)
    assert b" 503 " in s.recv(65536)
    assert r.read().endswith(b"stopping\n")
    assert streaming
    assert server.process.wait(PATIENCE_S) == 0
    assert idle.recv(10) == b""
    assert not server.path.exists()


def test_a_stale_socket_is_replaced_and_one_in_use_is_not(server, tmp_path):
    second = subprocess.run([SERVER, server.path, "127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert second.returncode == 1 and "another daemon" in second.stderr
    server.process.kill()
    server.process.wait()
    assert server.path.exists()
    again = Server(tmp_path)
    assert Client(again.path).get("/hello").status == 200
    assert again.stop()[0] == 0
    server.path.write_text("precious")
    third = subprocess.run([SERVER, server.path, "127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert third.returncode == 1 and "not a socket" in third.stderr and server.path.read_text() == "precious"


def test_folders_that_others_can_write_to_are_refused(tmp_path):
    tmp_path.chmod(0o777)
    p = subprocess.run([SERVER, tmp_path / "s.sock", "127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert p.returncode == 1 and "others may write" in p.stderr


def test_beyond_this_machine_only_with_tls(tmp_path):
    p = subprocess.run([SERVER, tmp_path / "s.sock", "0.0.0.0:0"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert p.returncode == 1 and "without TLS" in p.stderr
    for bad in ["nonsense", "1.2.3.4.5:80", "127.0.0.1:99999", "127.0.0.1:", "example.com:80"]:
        p = subprocess.run([SERVER, tmp_path / "s.sock", bad], capture_output=True, text=True, timeout=PATIENCE_S)
        assert p.returncode == 1 and bad.split(":")[0] in p.stderr, (bad, p.stderr)


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
def test_https_with_a_certificate(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    server = Server(tmp_path, "0.0.0.0:0", cert, key)
    assert server.url.startswith("https://" + socket.gethostname())
    context = ssl.create_default_context(cafile=cert)
    for path, status in [("/hello", 200), ("/local", 401), ("/mine", 401)]:  # beyond loopback a token is needed
        c = http.client.HTTPSConnection("127.0.0.1", server.tcp[1], context=context, timeout=PATIENCE_S)
        c.request("GET", path)
        assert c.getresponse().status == status, path
    plain = Client(("127.0.0.1", server.tcp[1])).socket()
    plain.settimeout(PATIENCE_S)
    assert b"200" not in raw(plain, b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    assert server.stop()[0] == 0
    cert.chmod(0o600)  # as a key must be
    p = subprocess.run([SERVER, tmp_path / "s.sock", "127.0.0.1:0", cert, cert], capture_output=True, text=True, timeout=PATIENCE_S)
    assert p.returncode == 1 and "a pair" in p.stderr


def test_the_socket_is_open_to_all_users(server):
    assert server.path.stat().st_mode & 0o777 == 0o666


def test_slow_clients_do_not_keep_others_waiting(server):
    slow = [Client(server.path).socket() for _ in range(50)]
    for s in slow:
        s.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    for _ in range(100):
        assert Client(server.path).get("/hello").status == 200
    for s in slow:  # and none of them was turned out for it
        s.setblocking(False)
        with pytest.raises(BlockingIOError):
            s.recv(1)
        s.close()


def test_requests_that_never_end_are_cut_off(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTP_MS", "10000")
    server = Server(tmp_path)
    drips = {name: Client(server.path, timeout=PATIENCE_S).socket() for name in ("silent", "head", "body")}
    never = Client(server.path, timeout=PATIENCE_S).socket()
    never.sendall(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
    drips["head"].sendall(b"GET /hello HTTP/1.1\r\nX-A: ")
    drips["body"].sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    closed = set()
    for _ in range(2000):  # a byte at a time keeps no connection alive
        for name, s in drips.items():
            try:
                if name != "silent":
                    s.send(b"x")
                s.setblocking(False)
                if s.recv(1000) == b"":
                    closed.add(name)
            except BlockingIOError:
                pass
            except OSError:
                closed.add(name)
        if len(closed) == 3:
            break
        time.sleep(0.05)
    assert closed == {"silent", "head", "body"}
    never.setblocking(False)
    with pytest.raises(BlockingIOError):  # a request that came whole may wait
        never.recv(10)
    assert server.stop()[0] == 0


def test_a_client_that_reads_nothing_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTP_STALL_S", "5")
    server = Server(tmp_path)
    deaf, body = Client(server.path).socket(), json.dumps(["x" * 10_000_000]).encode()
    with contextlib.suppress(OSError):  # we were stopped in the middle for longer than that
        deaf.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    over = select.poll()
    over.register(deaf, 0)  # the end of the connection, whatever is there to read
    assert until(lambda: over.poll(100) and over.poll(0)[0][1] & select.POLLHUP)
    assert Client(server.path).get("/hello").status == 200
    assert server.stop()[0] == 0


def test_ten_thousand_idle_connections_do_not_stop_service(server):
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = min(10000, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle = []
    try:
        for i in range(want):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.connect(str(server.path))
            if i % 3 == 0:
                s.send(b"GET /hello HTTP/1.1\r\nHo")
            idle.append(s)
        assert Client(server.path).get("/hello").status == 200
        assert Client(server.tcp).get("/hello").status == 200
        assert len(Client(server.path).get("/count?to=50").body.split()) == 50
    finally:
        for s in idle:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user's requests")
def test_a_burst_of_one_user_lets_others_in_between():
    burst, others, folder = [], [], pathlib.Path(tempfile.mkdtemp(prefix="stk-"))
    folder.chmod(0o755)
    server = Server(folder)
    server.process.send_signal(signal.SIGSTOP)  # so that all of them come at once
    for i in range(60):
        uid = 65534 if i in (0, 30, 59) else 0
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE_S)
        os.seteuid(uid)
        try:
            s.connect(str(server.path))
        finally:
            os.seteuid(0)
        s.sendall(b"GET /work?ms=20 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        (others if uid else burst).append(s)
    server.process.send_signal(signal.SIGCONT)
    before = [json.loads(s.makefile("rb").read().split(b"\r\n\r\n")[1])["before"] for s in others]
    assert max(before) < 30, before
    assert all(b" 200 " in s.makefile("rb").readline() for s in burst)
    assert server.stop()[0] == 0
    shutil.rmtree(folder)


@pytest.fixture
def narrow(tmp_path, monkeypatch):
    """A server with 64 files that closes no connection because of its age."""
    monkeypatch.setenv("HTTP_MS", "1000000000")
    monkeypatch.setenv("HTTP_STALL_S", "1000000")
    s = Server(tmp_path, before=["prlimit", "--nofile=64:64"])
    yield s
    if s.process.poll() is None:
        code, _, err = s.stop()
        assert code == 0, err


@pytest.mark.parametrize("door", ["path", "tcp"])
def test_a_burst_of_idle_connections_makes_room_for_a_request(narrow, door):
    where = getattr(narrow, door)
    narrow.process.send_signal(signal.SIGSTOP)  # all of them are there at once when it goes on
    idle = [Client(where).socket() for _ in range(40)]
    narrow.process.send_signal(signal.SIGCONT)
    for _ in range(3):
        assert Client(where).get("/hello").status == 200
    for s in idle:
        s.close()


@pytest.mark.parametrize("door,other", [("path", "path"), ("path", "tcp"), ("tcp", "path"), ("tcp", "tcp")])
def test_idle_connections_give_their_files_back_when_none_is_left(narrow, door, other):
    """The rest of the process took all files: an idle connection of either door is closed for a new one."""
    import resource
    idle = [Client(getattr(narrow, other)).socket() for _ in range(8)]
    idle[-1].sendall(b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b" 200 " in idle[-1].recv(65536)  # all of them were accepted
    used = {int(fd) for fd in os.listdir(f"/proc/{narrow.process.pid}/fd")}
    resource.prlimit(narrow.process.pid, resource.RLIMIT_NOFILE, (min(set(range(64)) - used), 64))
    for _ in range(3):
        assert Client(getattr(narrow, door)).get("/hello").status == 200
    for s in idle:
        s.close()


def test_one_user_cannot_hold_every_place(server):
    held = []
    status = None
    for _ in range(520):
        s = Client(server.path).socket()
        s.sendall(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
        held.append(s)
    for s in held[-5:]:
        s.settimeout(PATIENCE_S)
        status = s.recv(100)
        assert b" 429 " in status
    for s in held:
        s.close()
