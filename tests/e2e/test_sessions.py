# SPDX-License-Identifier: Apache-2.0
"""Browsers that are logged in, tokens, and what ends them: halves that are worth nothing alone, ends that nothing outlives, streams that stop
when what they came with is revoked."""
import json
import os
import pathlib
import pty
import re
import subprocess
import threading

import pytest
from clock import Clock
from daemon import STOKER, STOKERD, Daemon, stoker
from patience import PATIENCE_S, until
from test_api import check

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
SLEEP, HOUR = ["/bin/sleep", "1000"], 3600
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture
def d(tmp_path):
    with Daemon(tmp_path, gpus=1) as daemon:
        yield daemon


class Browser:
    """What a browser sends that is logged in with this."""

    def __init__(self, d, **how):
        self.d, self.own = d, {"Origin": d.url, "Sec-Fetch-Site": "same-origin"}
        a = d.web().ask("POST", "/v1/login", how, self.own)
        assert a.status == 201, a
        self.answer, self.id, self.page = a, a.json["id"], a.json["session"]
        self.cookie = a.headers["Set-Cookie"].split(";")[0]

    @property
    def headers(self):
        return {**self.own, "Cookie": self.cookie, "Stoker-Session": self.page}

    def ask(self, method, path, body=None):
        return self.d.web().ask(method, path, body, self.headers)

    def get(self, path):
        return self.ask("GET", path)

    def you(self):
        a = self.get("/v1/health")
        assert a.status == 200, a
        return a.json.get("you")


def log_in(d, **more):
    return Browser(d, code=d.post("/v1/login/code")["code"], **more)


def make(client, **body):
    a = client.ask("POST", "/v1/tokens", body) if isinstance(client, Browser) else client.post("/v1/tokens", body)
    assert a.status == 201, a
    return a.json


def tokens(d):
    return {t["id"]: t for t in d.get("/v1/tokens")["tokens"]}


# ---- sessions ----

def test_a_link_logs_in_once(d):
    document = d.get("/openapi.json")
    made = d.post("/v1/login/code")
    check(document, "LoginCode", made)
    assert made["url"] == f"{d.url}/#/login/{made['code']}", "not in the query: addresses are written down on the way"
    b = Browser(d, code=made["code"])
    check(document, "LoggedIn", b.answer.json)
    assert b.you()["role"] == "admin" and b.get("/v1/jobs").status == 200
    a = d.web().ask("POST", "/v1/login", {"code": made["code"]}, b.own)
    assert a.status == 401 and "was used already" in a.message and "stoker login" in a.message
    assert b.you(), "the second try changes nothing"


def test_a_token_logs_in_and_bounds_the_session(d):
    made = make(d.client(), role="user", expires_s=100, name="short")
    b = Browser(d, token=made["token"])
    assert b.you()["role"] == "user"
    assert b.answer.json["ends"] <= made["expires"] and int(re.search(r"Max-Age=(\d+)", b.answer.headers["Set-Cookie"])[1]) <= 100
    assert d.web().ask("POST", "/v1/login", {"token": "stk_" + "0" * 64}, b.own).status == 401
    assert d.web().ask("POST", "/v1/login", {"token": "x" * 100_000}, b.own).status == 413, "who is not known yet sends little"
    for bad in ({}, {"token": "x", "code": "y"}, {"token": 1}, [], {"token": "x", "more": 1}):
        assert d.web().ask("POST", "/v1/login", bad, b.own).status == 400, bad


def test_neither_half_is_worth_anything_alone(d):
    b = log_in(d)
    half = b.cookie.split("=")[1]
    assert b.get("/v1/jobs").status == 200
    web = d.web()
    for headers in ({"Cookie": b.cookie}, {"Stoker-Session": b.page}, {"Cookie": b.cookie, "Stoker-Session": half}, {"Cookie": f"{b.cookie.split('=')[0]}={b.page}", "Stoker-Session": b.page},
                    {"Authorization": f"Bearer {half}"}, {"Authorization": f"Bearer {b.page}"}, {"Authorization": f"Bearer {half}", "Stoker-Session": b.page, "Cookie": b.cookie},
                    {**b.headers, "Origin": "http://127.0.0.1:1"}, {**b.headers, "Sec-Fetch-Site": "same-site"}):
        for method, path in (("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("POST", "/v1/tokens"), ("POST", "/v1/login/code")):
            assert web.ask(method, path, {} if method == "POST" else None, headers).status == 401, (headers, path)
    for how in ({"token": half}, {"token": b.page}, {"code": half}, {"code": b.page}):
        assert web.ask("POST", "/v1/login", how, b.own).status == 401, how
    assert b.get("/v1/jobs").status == 200


def test_two_sessions_do_not_fit_each_other(d):
    one, two = log_in(d), log_in(d)
    assert d.web().ask("GET", "/v1/jobs", None, {**one.headers, "Stoker-Session": two.page}).status == 401


def test_the_cookie_is_for_this_host_and_not_for_scripts(d):
    b = log_in(d)
    cookie = b.answer.headers["Set-Cookie"]
    assert cookie.startswith(f"stoker-{d.tcp[1]}=stc_"), "several daemons on one host have names of their own"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; ")) and "Secure" not in cookie and "Domain" not in cookie
    # behind a proxy that speaks https
    code = d.post("/v1/login/code")["code"]
    host = "%s:%d" % d.tcp
    a = d.web().ask("POST", "/v1/login", {"code": code}, {"Origin": f"https://{host}"})
    assert a.status == 201 and a.headers["Set-Cookie"].startswith(f"__Host-stoker-{d.tcp[1]}=") and "; Secure" in a.headers["Set-Cookie"]
    assert d.web().ask("GET", "/v1/jobs", None, {"Cookie": a.headers["Set-Cookie"].split(";")[0], "Stoker-Session": a.json["session"]}).status == 200


def test_foreign_pages_and_programs_cannot_log_in(d):
    code = d.post("/v1/login/code")["code"]
    for headers in ({"Origin": "http://127.0.0.1:1"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site", "Origin": d.url}, {}):
        a = d.web().ask("POST", "/v1/login", {"code": code}, headers)
        assert a.status == 403 and "Set-Cookie" not in a.headers, headers
    assert d.client().ask("POST", "/v1/login", {"code": code}).status == 403
    Browser(d, code=code)  # and it was not used up
    a = d.web().ask("OPTIONS", "/v1/jobs", None, {"Origin": "http://127.0.0.1:1", "Access-Control-Request-Headers": "stoker-session", "Access-Control-Request-Method": "GET"})
    assert a.status == 405 and not [h for h in a.headers if h.lower().startswith("access-control")]


def test_with_a_session_that_is_over_the_page_is_there_and_one_can_log_in(d):
    b = log_in(d)
    stale = {**b.headers, "Stoker-Session": b.page}
    assert d.client().ask("DELETE", f"/v1/tokens/{b.id}").status == 200
    for path in ("/", "/app.js", "/app.css", "/?token=anything", "/v1/health", "/v1/cluster"):
        assert d.web().ask("GET", path, None, stale).status == 200, path
    assert b.you() is None
    a = b.get("/v1/jobs")
    assert a.status == 401 and "log in again" in a.message
    again = d.web().ask("POST", "/v1/login", {"code": d.post("/v1/login/code")["code"]}, stale)
    assert again.status == 201


def test_logging_out_revokes_the_session(d):
    b = log_in(d)
    a = b.ask("POST", "/v1/logout")
    assert a.status == 200 and "Max-Age=0" in a.headers["Set-Cookie"]
    assert b.you() is None and b.id not in tokens(d)
    assert b.ask("POST", "/v1/logout").status == 200  # once more


def test_sessions_are_listed_with_what_they_are(d):
    b = log_in(d)
    listed = b.get("/v1/tokens").json
    check(d.get("/openapi.json"), "Tokens", listed)
    (mine,) = [t for t in listed["tokens"] if t["current"]]
    assert (mine["id"], mine["kind"], mine["role"], mine["made_with"]) == (b.id, "session", "admin", None) and mine["expires"] <= mine["ends"]
    assert b.page not in json.dumps(listed) and b.cookie not in json.dumps(listed)
    said = stoker(d, "token", "list")
    assert "KIND" in said and re.search(rf"^\s*{b.id} +session ", said, re.M), said
    assert "revoked" in stoker(d, "token", "revoke", b.id)
    assert b.you() is None


def test_a_browser_stays_logged_in_over_a_restart(tmp_path):
    d = Daemon(tmp_path, gpus=1)
    try:
        d.start()
        d.listen = "%s:%d" % d.tcp
        b, token = log_in(d), make(d.client())["token"]
        d.restart()
        assert b.you() and d.web(token).get("/v1/jobs").status == 200
        d.kill()
        d.start()
        assert b.you()
    finally:
        d.close()


@pytest.fixture
def timed(tmp_path):
    """A daemon with sessions that lie idle for an hour at most, and a clock (`clock`) to set."""
    def make_daemon():
        d = Daemon(tmp_path, gpus=1, config="sessions: {idle: 1h, age: 1d}\n")
        d.clock = Clock(d)
        return d
    return make_daemon


def test_a_session_ends_when_it_is_not_used_and_in_any_case(timed):
    with timed() as d:
        idle, busy = log_in(d), log_in(d)
        for minutes in (20, 40, 60):
            d.clock.set(60 * minutes)
            until(lambda: d.get("/v1/health")["now"] > d.clock.wall() - 60)
            assert busy.get("/v1/jobs").status == 200
        until(lambda: idle.id not in tokens(d), say="the idle one is over")
        assert idle.you() is None and busy.you()
        d.config.write_text("sessions: {idle: 1h, age: 2s}\n")
        d.reload()
        d.errors_with("read again")
        old = log_in(d)
        until(lambda: old.you() is None, say="used or not, it is over")


def test_sessions_of_a_user_are_bounded(tmp_path):
    with Daemon(tmp_path, gpus=1, config="limits: {sessions_per_user: 2}\n") as d:
        one, two = log_in(d), log_in(d)
        c, stream = d.web().open("GET", "/v1/events", headers=one.headers)
        assert stream.status == 200 and stream.read(1)
        three = log_in(d)
        assert one.you() is None and two.you() and three.you()
        with pytest.raises(Exception):
            while stream.read(1):
                pass
            raise EOFError
        c.close()
        assert len([t for t in tokens(d).values() if t["kind"] == "session"]) == 2


def test_a_browser_that_logs_in_again_has_one_session(d):
    b = log_in(d)
    again = d.web().ask("POST", "/v1/login", {"code": d.post("/v1/login/code")["code"]}, b.headers).json["id"]
    assert set(tokens(d)) == {again}


def test_a_login_leaves_what_it_was_made_with(d):
    b = log_in(d)
    token = make(b)
    lower = make(d.web(token["token"]))
    for made in (token, lower):
        a = d.web().ask("POST", "/v1/login", {"token": made["token"]}, b.headers)
        assert a.status == 201 and d.web(made["token"]).get("/v1/jobs").status == 200, a
        assert tokens(d)[a.json["id"]]["made_with"] == made["id"]
    assert {b.id, token["id"], lower["id"]} <= set(tokens(d))
    d.client().ask("DELETE", f"/v1/tokens/{b.id}")
    assert tokens(d) == {}, "all was made with it"


def test_a_login_makes_no_room_at_the_cost_of_its_own_token(tmp_path):
    with Daemon(tmp_path, gpus=1, config="limits: {sessions_per_user: 1}\n") as d:
        b = log_in(d)
        token = make(b)
        a = d.web().ask("POST", "/v1/login", {"token": token["token"]}, b.own)
        assert a.status == 401 and "limits.sessions_per_user" in a.message and "stoker login" in a.message, a
        assert set(tokens(d)) == {b.id, token["id"]} and b.you() and d.web(token["token"]).get("/v1/jobs").status == 200


# ---- tokens ----

def test_what_a_token_makes_does_not_outlive_it(d):
    short = make(d.client(), expires_s=500)
    web = d.web(short["token"])
    child = make(web)
    assert child["expires"] == short["expires"], "with no word of its end it has the other's"
    assert make(web, expires_s=5)["expires"] < short["expires"]
    a = web.post("/v1/tokens", {"expires_s": 5000})
    assert a.status == 403 and "expires_s is 5000" in a.message and "cannot last longer" in a.message and "stoker token create" in a.message
    b = Browser(d, code=web.post("/v1/login/code").json["code"])
    assert b.answer.json["ends"] <= short["expires"]
    by_session = make(b)
    assert by_session["expires"] <= b.answer.json["ends"] and tokens(d)[by_session["id"]]["made_with"] == b.id
    assert d.client().ask("DELETE", f"/v1/tokens/{short['id']}").status == 200
    assert d.web(child["token"]).get("/v1/jobs").status == 401 and d.web(by_session["token"]).get("/v1/jobs").status == 401 and b.you() is None
    assert tokens(d) == {}


def test_a_code_of_a_token_that_is_revoked_is_worth_nothing(d):
    made = make(d.client())
    code = d.web(made["token"]).post("/v1/login/code").json["code"]
    d.client().ask("DELETE", f"/v1/tokens/{made['id']}")
    assert d.web().ask("POST", "/v1/login", {"code": code}, {"Origin": d.url}).status == 401


def test_a_session_makes_tokens_that_end_with_it(tmp_path):
    with Daemon(tmp_path, gpus=1, config="sessions: {idle: 1h}\n") as d:
        b = log_in(d)
        assert make(b)["expires"] <= b.answer.json["expires"] < b.answer.json["ends"]
        assert b.ask("POST", "/v1/tokens", {"expires_s": 7200}).status == 403


def test_a_token_revokes_no_token_above_it(d):
    admin, user, other = make(d.client(), name="admin"), make(d.client(), role="user"), make(d.client(), role="user")
    web = d.web(user["token"])
    a = web.ask("DELETE", f"/v1/tokens/{admin['id']}")
    assert a.status == 403 and f"token {admin['id']} has the role admin, which is above that of the one you use (user)" in a.message
    assert web.post("/v1/tokens", {"role": "admin"}).status == 403
    assert Browser(d, token=user["token"]).ask("DELETE", f"/v1/tokens/{admin['id']}").status == 403
    assert web.ask("DELETE", f"/v1/tokens/{other['id']}").status == 200 and web.ask("DELETE", f"/v1/tokens/{user['id']}").status == 200
    assert d.web(admin["token"]).get("/v1/jobs").status == 200 and d.web(user["token"]).get("/v1/jobs").status == 401


def test_tokens_of_a_user_are_bounded(tmp_path):
    with Daemon(tmp_path, gpus=1, config="limits: {tokens_per_user: 3}\n") as d:
        first, *others = [make(d.client()) for _ in range(3)]
        log_in(d)  # sessions do not count
        a = d.client().post("/v1/tokens")
        assert a.status == 409 and "has 3 tokens, and 3 are the most (limits.tokens_per_user)" in a.message and "stoker token revoke" in a.message
        for token in others:
            assert d.client().ask("DELETE", f"/v1/tokens/{token['id']}").status == 200
            make(d.client(), expires_s=1)
        for _ in others:
            until(lambda: d.client().post("/v1/tokens").status == 201, say="expired ones make room")
        assert d.client().post("/v1/tokens").status == 409
        assert d.client().ask("DELETE", f"/v1/tokens/{first['id']}").status == 200
        make(d.client())


@needs_root
def test_a_token_of_root_below_admin_runs_no_jobs_as_root(d):
    own = d.submit(command=SLEEP)
    for role in ("user", "operator"):
        web = d.web(make(d.client(), role=role)["token"])
        for path, body in (("/v1/jobs", {"command": ["/usr/bin/id"], "workdir": "/"}), ("/v1/adopt", {"pid": os.getpid()})):
            a = web.post(path, body)
            assert a.status == 403 and "would run as root" in a.message and "role admin" in a.message, (path, a)
        assert web.get("/v1/jobs").status == 200 and web.get(f"/v1/jobs/{own}").status == 200
    assert d.web(make(d.client(), role="admin")["token"]).post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/"}).status == 201


# ---- what is open when it is revoked ----

def stream(d, client, path, headers=None):
    """Opens it, reads in a thread; (thread, what was read)."""
    c, r = client.open("GET", path, headers=headers)
    got = []

    def read():
        try:
            while piece := r.read1(1000):
                got.append(piece)
        except Exception as e:  # cut off
            got.append(e)
        finally:
            c.close()
    t = threading.Thread(target=read, daemon=True)
    t.start()
    return t, got, r


@pytest.fixture
def talking(d):
    return start_talking(d)


def start_talking(d):
    """A job that has said something and runs on."""
    n = d.submit(command=["/bin/sh", "-c", "echo hello; exec sleep 1000"])
    d.log_with(n, "hello")
    d.talks = n
    return d


def open_all(d, client, headers=None):
    events, log = (stream(d, client, path, headers) for path in ("/v1/events", f"/v1/jobs/{d.talks}/log?follow=1"))
    wait = []
    waiter = threading.Thread(target=lambda: wait.append(client.ask("GET", f"/v1/jobs/{d.talks}/wait?timeout_s=3600", None, headers)), daemon=True)
    waiter.start()
    until(lambda: events[1] and log[1], say="both have begun")
    until(lambda: held(d) >= 3, say="the wait has begun")
    return events, log, (waiter, wait)


def held(d):
    """Requests that wait or stream."""
    return int(re.search(r"^stoker_http_waiting (\d+)", d.client().get("/metrics").body.decode(), re.M)[1])


def all_end(opened):
    (events, _, r), (log, _, _), (waiter, wait) = opened
    for t in (events, log, waiter):
        t.join(PATIENCE_S)
        assert not t.is_alive(), "it goes on"
    assert r.status == 200 and wait[0].status == 401 and "no longer valid" in wait[0].message, wait


def test_revoking_a_token_ends_what_is_open_with_it(talking):
    made, other = make(talking.client()), make(talking.client())
    opened = open_all(talking, talking.web(made["token"]))
    t, got, _ = stream(talking, talking.web(other["token"]), "/v1/events")
    assert talking.client().ask("DELETE", f"/v1/tokens/{made['id']}").status == 200
    all_end(opened)
    n = talking.submit(command=["/bin/true"])
    until(lambda: f'"job":{n}'.encode() in b"".join(got), say="others go on")
    assert t.is_alive()


def test_revoking_or_leaving_a_session_ends_what_is_open_with_it(talking):
    for end in (lambda b: talking.client().ask("DELETE", f"/v1/tokens/{b.id}"), lambda b: b.ask("POST", "/v1/logout")):
        b = log_in(talking)
        opened = open_all(talking, talking.web(), b.headers)
        assert end(b).status == 200
        all_end(opened)


def test_what_expires_ends_what_is_open_with_it(timed):
    with timed() as d:
        start_talking(d)
        opened = open_all(d, d.web(make(d.client(), expires_s=HOUR)["token"]))
        d.clock.set(HOUR)
        all_end(opened)


def test_an_open_stream_keeps_a_session_alive(timed):
    with timed() as d:
        b, idle = log_in(d), log_in(d)
        t, got, _ = stream(d, d.web(), "/v1/events", b.headers)
        for minutes in (40, 80):
            first = tokens(d)[b.id]["expires"]
            d.clock.set(60 * minutes)
            until(lambda: tokens(d)[b.id]["expires"] > first + 60, say="it goes on")
        until(lambda: idle.id not in tokens(d), say="one that is not used ends")
        assert t.is_alive() and b.you()


def test_a_body_on_its_way_when_its_token_is_revoked_is_not_taken(d):
    made = make(d.client())
    s = d.web().socket()
    body = json.dumps({"command": ["/bin/true"], "workdir": "/"})
    s.sendall(f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {made['token']}\r\nContent-Length: {len(body)}\r\n\r\n{body[:5]}".encode())
    until(lambda: tokens(d)[made["id"]]["used"], say="the head was read")
    d.client().ask("DELETE", f"/v1/tokens/{made['id']}")
    s.sendall(body[5:].encode())
    assert s.recv(4096).startswith(b"HTTP/1.1 401")
    s.close()
    assert d.jobs() == [] and d.history() == {}


# ---- the login link ----

def test_a_link_is_printed_to_a_terminal_only(tmp_path):
    with Daemon(tmp_path / "piped") as d:
        said = "\n".join(d.banner)
        assert 'log in   "stoker login" prints a link' in said and "#/login/" not in said and "stk_" not in said
        link = stoker(d, "login").strip()
        assert re.fullmatch(rf"{d.url}/#/login/[0-9a-f]+", link)
        assert Browser(d, code=link.rsplit("/", 1)[1]).you()["role"] == "admin"
        assert json.loads(stoker(d, "login", "--json"))["url"].startswith(d.url)
        assert "too many words" in stoker(d, "login", "now", code=2)
    d = Daemon(tmp_path / "terminal")
    main, sub = pty.openpty()
    d.folder.mkdir(exist_ok=True)
    p = subprocess.Popen(d.command(), stdout=sub, stderr=subprocess.DEVNULL, cwd=d.folder, start_new_session=True)
    os.close(sub)
    text = ""
    try:
        while "ready" not in text:
            text += os.read(main, 4096).decode()
        link = re.search(r"log in\s+(http\S+)/#/login/(\S+)", text)
        d.url = link[1]
        assert Browser(d, code=link[2]).you()["role"] == "admin" and "works once" in text
    finally:
        p.terminate()
        p.wait(PATIENCE_S)
        os.close(main)
        d.close()


def test_a_daemon_without_a_page_says_so(tmp_path):
    with Daemon(tmp_path, listen="off") as d:
        assert "does not listen on TCP" in stoker(d, "login", code=1)


def test_documents_name_commands_that_exist():
    root = pathlib.Path(__file__).resolve().parents[2]
    for path in [root / "README.md", *root.glob("docs/**/*.md")]:
        for verb in re.findall(r"stoker token ([a-z]+)", path.read_text()):
            assert verb in ("create", "list", "revoke"), f"{path}: stoker token {verb}"
