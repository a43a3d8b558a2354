# SPDX-License-Identifier: Apache-2.0
"""What one user can do to another, and what a stranger can do to the daemon. It runs as root here; the
owner of the jobs is uid 1, the one who should not get at them is uid 65534. Everything lies in folders that
all may enter, so that only stoker's own care protects it."""
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import pytest
from daemon import SANITIZED, STOKERD, Daemon
from patience import PATIENCE_S, until
from webclient import Client

pytestmark = [pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd"),
              pytest.mark.skipif(os.getuid() != 0, reason="needs root to be several users")]
OWNER, OTHER = 1, 65534
SLEEP = ["/bin/sleep", "1000"]
LIB = str(pathlib.Path(__file__).resolve().parents[1] / "lib")
MIB = 1 << 20

ASK = """
import json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from webclient import Client
a = Client(sys.argv[2], timeout=60).ask(sys.argv[3], sys.argv[4], sys.argv[5].encode() or None)
print(json.dumps([a.status, a.body.decode()]))
"""


def run_as(uid, *args, **more):
    return subprocess.run(args, user=uid, group=uid, extra_groups=[], cwd="/", capture_output=True, text=True, timeout=120, **more)


def ask_as(uid, daemon, method, path, body=None):
    """The request from a process of that user."""
    lib = daemon.short / "lib"  # the source tree need not be readable to all
    if not lib.exists():
        lib.mkdir()
        for name in ("webclient.py", "patience.py"):
            shutil.copy(f"{LIB}/{name}", lib)
        lib.chmod(0o755)
    out = run_as(uid, sys.executable, "-c", ASK, str(lib), str(daemon.socket), method, path, json.dumps(body) if body is not None else "")
    assert out.returncode == 0, out.stderr
    status, text = json.loads(out.stdout)
    return status, json.loads(text) if text.startswith("{") else text


def submit_as(uid, daemon, **job):
    job.setdefault("workdir", "/")
    job.setdefault("stdout", "/dev/null")
    status, made = ask_as(uid, daemon, "POST", "/v1/jobs", job)
    assert status == 201, made
    return made["id"]


@pytest.fixture(scope="module")
def shared():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-sec-"))
    folder.chmod(0o755)
    try:
        with Daemon(folder, gpus=2) as d:
            yield d
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def daemon(shared):
    """The daemon without jobs; still there afterwards."""
    yield shared
    assert shared.alive(), shared.errors
    while ids := [j["id"] for j in shared.jobs("?limit=1000")]:
        shared.post("/v1/jobs/act", {"verb": "cancel", "ids": ids})
        for i in ids:
            shared.until(i, "done")


@pytest.fixture
def yard():
    """A folder of the other user's."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="stk-yard-"))
    os.chown(path, OTHER, OTHER)
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def secret(tmp_path_factory):
    """A file of root's that nobody else may read, in a folder that all may enter."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-root-"))
    folder.chmod(0o755)
    path = folder / "secret"
    path.write_text("top secret\n")
    path.chmod(0o600)
    yield path
    assert path.read_text() == "top secret\n"
    shutil.rmtree(folder)


def memory(daemon, what="VmRSS"):
    for line in pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(what)


def cpu_s(daemon):
    words = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def bounded(daemon, mib):
    """The most memory the daemon ever had; a sanitizer needs its own and is not asked."""
    if not SANITIZED:
        assert memory(daemon, "VmHWM") < mib * MIB, f"{memory(daemon, 'VmHWM') >> 20} MiB"


# ---- other people's jobs ----

def test_nobody_else_can_touch_a_job(daemon):
    n = submit_as(OWNER, daemon, command=["/bin/sleep", "1000"], envs={"KEY": "s3cret"}, name="mine")
    held = submit_as(OWNER, daemon, script="#!/bin/sh\necho s3cret\n", hold=True)
    daemon.until(n, "running")
    for verb in ["cancel", "hold", "release", "suspend", "resume", "requeue", "signal"]:
        for i in (n, held):
            status, why = ask_as(OTHER, daemon, "POST", f"/v1/jobs/{i}/{verb}", {"signal": 9} if verb == "signal" else {})
            assert status == 403 and "belongs to" in why["error"]["message"], (verb, why)
    status, acted = ask_as(OTHER, daemon, "POST", "/v1/jobs/act", {"verb": "cancel", "ids": [n, held]})
    assert status != 200 or not any(r["ok"] for r in acted["results"])
    for path in [f"/v1/jobs/{n}/log", f"/v1/jobs/{n}/log?stream=stderr&follow=1", f"/v1/jobs/{n}/control"]:
        assert ask_as(OTHER, daemon, "GET", path)[0] == 403, path
    assert ask_as(OTHER, daemon, "POST", f"/v1/jobs/{n}/report", {"step": 1})[0] == 403
    for path in [f"/v1/jobs/{n}", f"/v1/jobs/{n}?env=1", f"/v1/jobs/{held}", "/v1/jobs?detail=1", f"/v1/jobs/{n}/why", "/v1/history?detail=1", "/v1/cluster", "/v1/gpus",
                 f"/v1/jobs/{n}/wait?timeout_s=0"]:
        status, seen = ask_as(OTHER, daemon, "GET", path)
        assert status == 200 and "s3cret" not in json.dumps(seen) and "/bin/sleep" not in json.dumps(seen), path
    assert "s3cret" not in json.dumps(ask_as(OWNER, daemon, "GET", f"/v1/jobs/{n}")[1])
    assert "s3cret" in json.dumps(ask_as(OWNER, daemon, "GET", f"/v1/jobs/{n}?env=1")[1])
    assert daemon.job(n)["state"] == "running" and daemon.job(held)["state"] == "held"
    daemon.post(f"/v1/jobs/{n}/cancel")
    daemon.wait(n)
    status, seen = ask_as(OTHER, daemon, "GET", f"/v1/jobs/{n}")  # nor when it has ended
    assert status == 200 and "s3cret" not in json.dumps(seen) and "spec" not in seen and "stdout" not in seen
    assert ask_as(OTHER, daemon, "GET", f"/v1/jobs/{n}/log")[0] == 403


def test_nobody_gains_limits_that_the_daemon_has_not(tmp_path, yard):
    d = Daemon(tmp_path, gpus=1)
    plain = d.command()
    d.command = lambda: ["prlimit", "--fsize=1000000000:2000000000", *plain]
    with d:
        n = submit_as(OTHER, d, command=["/bin/cat", "/proc/self/limits"], stdout=str(yard / "out"), rlimits={"fsize": [-1, -1]})
        assert d.wait(n)["cause"] == "completed"
    line = next(x for x in (yard / "out").read_text().splitlines() if x.startswith("Max file size"))
    assert line.split()[3:5] == ["2000000000", "2000000000"]


def test_who_somebody_is_cannot_be_said(daemon, yard):
    for body in [{"uid": 0}, {"gid": 0}, {"groups": [0]}, {"user": "root"}, {"home": "/root"}, {"shell": "/bin/sh"}]:
        status, a = ask_as(OTHER, daemon, "POST", "/v1/jobs", {"command": ["/bin/true"], "workdir": "/", **body})
        assert status == 400 and "set by the server" in a["error"]["message"], a
    n = submit_as(OTHER, daemon, command=["/bin/sh", "-c", "id -u; id -G; cat /proc/self/status | grep CapEff"], stdout=str(yard / "who"))
    assert daemon.wait(n)["cause"] == "completed"
    uid, groups, caps = (yard / "who").read_text().splitlines()
    assert (uid, groups, int(caps.split()[1], 16)) == (str(OTHER), str(OTHER), 0)


STEAL = """
import os, socket, sys
top, bad = sys.argv[1], []
for path in sys.stdin.read().split("\\0"):
    if path.endswith(".sock"):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path); bad.append("connected to " + path)
        except OSError:
            pass
        continue
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            os.close(os.open(path, flags)); bad.append("opened " + path)
        except OSError:
            pass
    try:
        os.unlink(path); bad.append("removed " + path)
    except OSError:
        pass
for d in ["", "run", "attach", "script", "backup"]:
    try:
        os.listdir(os.path.join(top, d)); bad.append("listed " + d)
    except OSError:
        pass
    try:
        os.close(os.open(os.path.join(top, d, "planted"), os.O_CREAT | os.O_WRONLY)); bad.append("planted in " + d)
    except OSError:
        pass
print("\\n".join(bad))
"""


def test_nothing_in_the_state_folder_can_be_read_or_reached(daemon):
    shell = submit_as(OWNER, daemon, command=["/bin/cat"], interactive=True)
    script = submit_as(OWNER, daemon, script="sleep 1000\n")
    daemon.until(shell, "running")
    daemon.until(script, "running")
    daemon.restart()  # a snapshot, WAL and all
    paths = [str(p) for p in daemon.state.rglob("*") if not p.is_dir()]
    assert any("/attach/" in p for p in paths) and any("/run/" in p for p in paths) and any("/script/" in p for p in paths), paths
    out = run_as(OTHER, sys.executable, "-c", STEAL, str(daemon.state), input="\0".join(paths))
    assert out.returncode == 0 and out.stdout.strip() == "", out.stdout + out.stderr
    attach = daemon.job(shell)["attach"]
    connect = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.close()"
    assert run_as(OWNER, sys.executable, "-c", connect, attach).returncode == 0  # the owner may
    assert "PermissionError" in run_as(OTHER, sys.executable, "-c", connect, attach).stderr
    assert daemon.job(script)["state"] == "running"


@pytest.mark.parametrize("trick", ["owner", "run", "attach", "script", "db", "db-wal", "lock", "others"])
def test_a_state_folder_that_was_tampered_with_is_refused(trick, yard):
    place = pathlib.Path(tempfile.mkdtemp(prefix="stk-sec-"))
    place.chmod(0o755)
    d = Daemon(place, gpus=1)
    try:
        d.state.mkdir(mode=0o711)
        if trick == "owner":
            os.chown(d.state, OTHER, OTHER)
        elif trick == "others":
            d.state.chmod(0o777)
        elif trick.startswith("db"):
            (d.state / f"stoker.{trick}").symlink_to(yard / "mine.db")
        else:
            (d.state / trick).symlink_to(yard)
        with pytest.raises(RuntimeError, match="stokerd: .*(state|%s|folder|link|belongs|write)" % trick):
            d.start()
        assert not list(yard.iterdir())
    finally:
        d.close()
        shutil.rmtree(place, ignore_errors=True)


# ---- log files ----

def end_of(daemon, **job):
    return daemon.wait(submit_as(OTHER, daemon, command=["/bin/echo", "overwritten"], **job))


def test_output_never_goes_where_the_user_may_not_write(daemon, yard, secret):
    link = yard / "link"
    link.symlink_to(secret)
    (yard / "folder").symlink_to(secret.parent)
    os.link(secret, yard / "hard")
    for path in [secret, link, yard / "hard", yard / "folder" / "secret", yard / "folder" / "new", str(yard) + "/../" + str(secret)[5:], "/nonexistent/x", yard]:
        for mode in ("append", "truncate"):
            job = end_of(daemon, stdout=str(path), open_mode=mode)
            assert job["cause"] == "not_started" and "output file" in job["note"], (path, job)
    assert sorted(p.name for p in secret.parent.iterdir()) == ["secret"]
    job = end_of(daemon, workdir=str(secret.parent), name="..", stdout="%x/%x/" + secret.name)
    assert job["cause"] == "not_started", job
    assert ask_as(OTHER, daemon, "POST", "/v1/jobs", {"command": ["/bin/true"], "name": "../../x"})[0] == 400


def test_output_is_never_read_from_a_file_that_is_not_the_owners(daemon, yard, secret):
    log = yard / "d" / "log"
    log.parent.mkdir()
    os.chown(log.parent, OTHER, OTHER)
    n = submit_as(OTHER, daemon, command=["/bin/echo", "fine"], stdout=str(log))
    assert daemon.wait(n)["cause"] == "completed"
    assert ask_as(OTHER, daemon, "GET", f"/v1/jobs/{n}/log") == (200, "fine\n")

    def refused():
        status, a = ask_as(OTHER, daemon, "GET", f"/v1/jobs/{n}/log")
        assert status == 403 and "top secret" not in json.dumps(a), a
        assert daemon.client().get(f"/v1/jobs/{n}/log").status == 403  # nor is root led astray

    log.unlink()
    log.symlink_to(secret)
    refused()
    log.unlink()
    os.link(secret, log)
    refused()
    log.unlink()
    os.mkfifo(log)
    os.chown(log, OTHER, OTHER)
    refused()
    log.unlink()
    os.mknod(log, 0o020666, os.makedev(1, 5))  # zeros without end
    os.chown(log, OTHER, OTHER)
    refused()
    log.unlink()
    log.parent.rmdir()
    (secret.parent / "log").write_text("top secret")
    log.parent.symlink_to(secret.parent)  # the folder instead of the file
    refused()
    (secret.parent / "log").chmod(0o600)
    refused()


def test_pipes_and_devices_as_output_hold_nobody_up(daemon, yard):
    fifo = yard / "fifo"
    os.mkfifo(fifo, 0o666)
    fifo.chmod(0o666)
    job = end_of(daemon, stdout=str(fifo))
    assert job["cause"] == "not_started" and "fifo" in job["note"]
    assert end_of(daemon, stdout="/dev/null")["cause"] == "completed"
    assert end_of(daemon, stdout="/dev/full")["cause"] == "failed"
    assert end_of(daemon, stdout="/dev/tty")["cause"] == "not_started"
    for stream in ("stdout", "stderr"):
        n = submit_as(OTHER, daemon, command=["/bin/true"], stdout="/dev/zero")
        daemon.wait(n)
        assert daemon.client().get(f"/v1/jobs/{n}/log?stream={stream}").status == 403
    n = submit_as(OTHER, daemon, command=["/bin/cat"], stdin=str(fifo))  # waits for a writer that never comes
    time.sleep(0.3)
    daemon.post(f"/v1/jobs/{n}/cancel")
    assert daemon.wait(n)["cause"] == "cancelled"


def test_secrets_and_scripts_are_read_with_the_users_own_rights(daemon, secret):
    job = end_of(daemon, secrets={"S": str(secret)})
    assert job["cause"] == "not_started" and "top secret" not in json.dumps(job)
    job = end_of(daemon, stdin=str(secret))
    assert job["cause"] == "not_started"
    job = end_of(daemon, workdir="/root")
    assert job["cause"] == "not_started" or run_as(OTHER, "/bin/ls", "/root").returncode == 0


# ---- tokens and names ----

def test_tokens_stand_for_their_user_and_end(daemon):
    n = submit_as(OWNER, daemon, command=SLEEP, envs={"KEY": "s3cret"})
    status, other = ask_as(OTHER, daemon, "POST", "/v1/tokens", {"name": "o"})
    assert status == 201
    web = daemon.web(other["token"])
    assert web.get("/v1/health").json["you"]["uid"] == OTHER
    assert web.post(f"/v1/jobs/{n}/cancel").status == 403 and "s3cret" not in web.get(f"/v1/jobs/{n}").body.decode()
    status, own = ask_as(OWNER, daemon, "POST", "/v1/tokens", {"name": "w"})
    assert daemon.web(own["token"]).get(f"/v1/jobs/{n}?env=1").json["envs"] == {"KEY": "s3cret"}
    assert ask_as(OTHER, daemon, "DELETE", f"/v1/tokens/{own['id']}")[0] == 404  # not theirs to take
    assert daemon.web(own["token"]).get("/v1/jobs").status == 200
    short = ask_as(OWNER, daemon, "POST", "/v1/tokens", {"expires_s": 1})[1]["token"]
    bad = ["", "x", "stk_", own["token"][:-1], own["token"] + "0", own["token"].upper(), "stk_" + "0" * 64, "%s" * 50, "a" * 5000, "' OR 1=1 --"]
    for t in bad:
        for path in ["/v1/jobs", "/v1/health", "/"]:
            a = daemon.web().ask("GET", path, headers={"Authorization": "Bearer " + t})
            assert a.status in (401, 431), (t, path)
    for header in ["Basic cm9vdDo=", own["token"], "bearer", "Bearer  " + own["token"]]:
        assert daemon.web().ask("GET", "/v1/jobs", headers={"Authorization": header}).status == 401, header
    for way in [f"/v1/jobs?token={own['token']}", f"/v1/jobs?access_token={own['token']}"]:
        assert daemon.web().get(way).status == 401
    until(lambda: daemon.web(short).get("/v1/jobs").status != 200)
    assert daemon.web(short).get("/v1/jobs").status == 401
    assert ask_as(OWNER, daemon, "DELETE", f"/v1/tokens/{own['id']}")[0] == 200
    assert daemon.web(own["token"]).get("/v1/jobs").status == 401
    daemon.restart()
    for t in (own["token"], short):
        assert daemon.web(t).get("/v1/jobs").status == 401
    assert daemon.web(other["token"]).get("/v1/jobs").status == 200


def test_tcp_gives_strangers_only_what_is_public(daemon):
    submit_as(OWNER, daemon, command=SLEEP, envs={"KEY": "s3cret"})
    document = daemon.get("/openapi.json")
    public = {"/v1/health", "/v1/cluster", "/metrics", "/metrics/jobs", "/metrics/dcgm", "/openapi.json", "/", "/app.js", "/app.css"}
    for path, methods in document["paths"].items():
        for method in methods:
            url = path.replace("{id}", "1").replace("{name}", "x").replace("{index}", "0")
            a = daemon.web().ask(method.upper(), url, b"{}" if method == "post" else None)
            refused = 403 if path in ("/v1/login", "/v1/logout") else 401  # for browsers, on our own page
            assert a.status == (200 if path in public else refused), (method, path, a)
            assert b"s3cret" not in a.body and b"/bin/sleep" not in a.body
            for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "x" * 300]:
                a = daemon.web().ask(method.upper(), url, b"{}" if method == "post" else None, headers={"Host": host})
                assert a.status in (400, 403), (host, path)


# ---- nonsense ----

def test_names_are_plain_text(daemon):
    for name in ["", "a\nb", "a\0b", "a\x1b[31mb", "a/b", "x" * 129, "\x7f", "a\u0085b", "\u202eevil"]:
        a = daemon.client().post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/", "name": name})
        assert a.status == 400 and a.message, (name, a)
    for raw in [b'{"command":["/bin/true"],"name":"\xff"}', b'{"command":["/bin/true"],"name":"\xc0\xaf"}', b'{"command":["\xed\xa0\x80"]}']:
        assert daemon.client().post("/v1/jobs", raw).status == 400
    for path in ["/v1/jobs?name=%ff", "/v1/jobs?user=%00", "/v1/history?name=%c0%af", "/v1/jobs/%2e%2e%2fx", "/v1/jobs/1%00", "/v1/nodes/%ff/drain", "/%ff%fe"]:
        for method in ("GET", "POST"):
            a = daemon.client().ask(method, path)
            assert a.status < 500 and (a.status == 200 or a.message), (path, a)


def test_sentences_about_long_words_are_whole(daemon):
    """A message that ends within a character of several bytes would be no JSON, and was lost."""
    for n in range(6):
        for body in [{"pool": "x" * n + "é" * 30}, {"gpu_types": ["x" * n + "日本" * 10]}, {"x" * n + "é" * 300: 1}, {"tier": "x" * n + "é" * 100},
                     {"envs": {"x" * n + "日本語" * 30: 1}}, {"workdir": "x" * n + "é" * 100}]:
            a = daemon.client().post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/", **body})
            assert a.status in (400, 422) and len(a.message) > 10, (body, a)
            two = daemon.client().post("/v1/jobs", {"jobs": [{"command": ["/bin/true"], "workdir": "/"}, {"command": ["/bin/true"], "workdir": "/", **body}]})
            assert two.status == a.status and "job 2 of 2" in two.message, two


NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, -2**63, 1.5, 1e308, -0.0, "1", "", True, None, [], {}, [2**63 - 1]]


def test_no_number_breaks_anything(daemon):
    def walk(schema, path):
        for key, sub in schema.get("properties", {}).items():
            yield path + [key], sub
            yield from walk(sub, path + [key])
            if "items" in sub and "properties" in sub["items"]:
                for p, s in walk(sub["items"], []):
                    yield path + [key, 0] + p, s

    document = daemon.get("/openapi.json")
    schema = document["components"]["schemas"]["JobSpec"]
    keys = list(walk(schema, []))
    assert len(keys) > 50
    for path, _ in keys:
        jobs = []
        for value in NUMBERS:
            inner = value
            for p in reversed(path):
                inner = [inner] if p == 0 else {p: inner}
            jobs.append({"command": ["/bin/true"], "workdir": "/", "stdout": "/dev/null", **inner, "hold": True})
        for job in jobs:
            a = daemon.client().post("/v1/jobs?dry_run=1", job)
            assert a.status in (200, 400, 422), (job, a)
    for word in ["99999999999999999999", "1e400", "-1e400", "-99999999999999999999", "NaN", "Infinity", "0x10", "01"]:
        a = daemon.client().post("/v1/jobs", '{"command":["/bin/true"],"gpus":%s}' % word)
        assert a.status == 400, (word, a)
    for path in ["/v1/jobs?limit={}", "/v1/jobs?after={}", "/v1/history?since={}", "/v1/history?until={}", "/v1/history?before={}", "/v1/history?limit={}",
                 "/v1/jobs/{}", "/v1/jobs/1_{}", "/v1/jobs/{}_1", "/v1/jobs/1/log?offset={}", "/v1/jobs/1/log?tail={}", "/v1/jobs/1/log?task={}",
                 "/v1/jobs/1/wait?timeout_s={}", "/v1/events?after={}", "/v1/gpus/{}/drain", "/v1/tokens/{}", "/v1/nodes?limit={}", "/v1/gpus?after={}"]:
        for value in ["-1", "18446744073709551615", "18446744073709551616", "9223372036854775808", "1.5", "", "1e3", "+1", " 1", "0x1"]:
            url = path.format(value).replace(" ", "%20")
            method = "DELETE" if "tokens" in path else "POST" if "drain" in path else "GET"
            if url in ("/v1/jobs/", "/v1/tokens/"):
                continue
            a = daemon.client().ask(method, url) if "events" not in path else daemon.client().open(method, url)[1]
            assert a.status in (400, 404), (method, url, a)
    for body in [{"signal": v} for v in NUMBERS + [65, 1000]]:
        assert daemon.client().post("/v1/jobs/1/signal", body).status in (400, 404, 409), body
    for body in [{"verb": "cancel", "ids": [v]} for v in NUMBERS]:
        assert daemon.client().post("/v1/jobs/act", body).status in (400, 404, 409, 200), body
    for v in NUMBERS:
        assert daemon.client().post("/v1/tokens", {"expires_s": v}).status in (201, 400), v
        assert daemon.client().post("/v1/adopt", {"pid": v}).status in (400, 403, 404, 409, 422, 501), v


def test_deep_and_wide_json(daemon):
    for body in [b"[" * 5_000_000, b'{"a":' * 1_000_000, b'{"command":' + b"[" * 2000 + b"]" * 2000 + b"}", b'{"jobs":[' + b"{}," * 1_000_000 + b"{}]}",
                 b'{"command":[' + b'"",' * 2_000_000 + b'""]}', b'"' + b"\\u0000" * 1_000_000 + b'"',
                 b"{" + b",".join(b'"k%d":1' % i for i in range(300_000)) + b"}"]:
        a = daemon.client(timeout=120).post("/v1/jobs", body)
        assert a.status in (400, 413), a
    bounded(daemon, 1500)


def test_arrays_of_millions_are_refused_without_being_made(daemon):
    for array in [{"first": 0, "last": 2**31 - 1}, {"first": 0, "last": 2**31 - 2}, {"first": 0, "last": 4_000_000}, {"indices": list(range(200_001))}]:
        a = daemon.client(timeout=120).post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/", "array": array})
        assert a.status == (400 if "indices" in array else 422), a
    before = memory(daemon)
    one = {"command": ["/bin/true"], "workdir": "/", "hold": True, "array": {"first": 0, "last": 99_999}}
    a = daemon.client(timeout=300).post("/v1/jobs", {"jobs": [one] * 5000})
    assert a.status == 413, a
    if not SANITIZED:
        assert memory(daemon, "VmHWM") - before < 600 * MIB


def test_what_a_job_says_of_itself_is_small(daemon):
    n = daemon.submit(command=SLEEP, stdout="/dev/null")
    big = "x" * (8 * MIB)
    for body in [{"checkpoint": {"step": 1, "seconds": 1, "junk": big}}, {"metrics": {big: 1}}, {"metrics": {"a": big}}, {"step": big}, {"junk": big},
                 {"metrics": {str(i): i for i in range(1000)}}]:
        assert daemon.client().post(f"/v1/jobs/{n}/report", body).status in (400, 413), list(body)


def test_pages_with_large_descriptions_stay_small(daemon):
    script = "#" * (MIB - 1)
    for _ in range(2):
        daemon.client(timeout=120).post("/v1/jobs", {"jobs": [{"script": script, "hold": True, "workdir": "/"} for _ in range(50)]})
    before = memory(daemon)
    seen, after = [], 0
    while after is not None:
        a = daemon.client(timeout=120).get(f"/v1/jobs?detail=1&limit=1000&after={after}")
        assert a.status == 200 and len(a.body) < 64 * MIB
        seen += [j["id"] for j in a.json["jobs"]]
        after = a.json["next"]
    assert len(seen) == len(set(seen)) == 100
    daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": seen})
    for path in ["/v1/history?detail=1&limit=1000"]:
        a = daemon.client(timeout=120).get(path)
        assert a.status == 200 and len(a.body) < 64 * MIB
    if not SANITIZED:
        assert memory(daemon) - before < 600 * MIB


def test_an_array_that_follows_an_array_is_taken_at_once(daemon):
    """Element k waits for element k: that is a look-up, not a search through all of them."""
    first = daemon.post("/v1/jobs", {"command": SLEEP, "workdir": "/", "hold": True, "array": {"first": 0, "last": 19_999}})["id"]
    a = daemon.client(timeout=100).post("/v1/jobs", {"command": SLEEP, "workdir": "/", "array": {"first": 0, "last": 19_999},
                                                     "depends": [{"type": "aftercorr", "job": first}]})
    assert a.status == 201, a
    second = a.json["id"]
    daemon.post(f"/v1/jobs/{first + 777}/cancel")
    assert daemon.job(second + 777)["cause"] == "dependency_failed"
    assert [daemon.job(second + k)["state"] for k in (776, 778)] == ["blocked", "blocked"]
    for start in (first, second):
        daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": list(range(start, start + 20_000))})


def test_a_bad_dependency_refuses_its_own_request_only(daemon):
    """Found before the first element is made; and an array, however long, is one dependency."""
    many = daemon.post("/v1/jobs", {"command": SLEEP, "workdir": "/", "hold": True, "array": {"first": 1, "last": 2000}})["id"]
    five = daemon.post("/v1/jobs", {"command": SLEEP, "workdir": "/", "hold": True, "array": {"indices": [5]}})["id"]
    depends = [{"type": "afterany", "job": many}, {"type": "aftercorr", "job": five}]
    a = daemon.client().post("/v1/jobs", {"command": SLEEP, "workdir": "/", "array": {"indices": [0, 5]}, "depends": depends})
    assert a.status == 201 and a.json["count"] == 2, a
    last = a.json["id"] + 1
    depends.append({"type": "afterany", "job": five, "index": 4})
    a = daemon.client().post("/v1/jobs", {"command": SLEEP, "workdir": "/", "array": {"indices": [0, 5]}, "depends": depends})
    assert a.status == 422 and f"{five}_4" in a.message, a
    assert daemon.client().get(f"/v1/jobs/{last + 1}").status == 404


def test_a_request_that_makes_us_search_for_long_is_refused(daemon):
    """One thread serves all: a batch whose dependencies need a look at everything, again and again, is too much."""
    first = daemon.post("/v1/jobs", {"command": SLEEP, "workdir": "/", "hold": True, "array": {"first": 1, "last": 20_000}})["id"]
    a = daemon.client(timeout=100).post("/v1/jobs", {"jobs": [{"command": SLEEP, "workdir": "/", "singleton": True, "name": f"n{i}"} for i in range(20_000)]})
    assert a.status == 422 and "too many jobs" in a.message, a
    daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": list(range(first, first + 20_000))})


# ---- too much ----

def test_bodies_together_have_a_bound(daemon):
    socks = []
    for _ in range(8):
        s = daemon.client(timeout=60).socket()
        s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n[" % (60 * MIB))
        s.settimeout(20)
        socks.append(s)
    piece = b'"' + b"x" * (MIB - 3) + b'",'
    for s in socks:
        try:
            for _ in range(58):
                s.sendall(piece)
        except OSError:
            pass
    assert daemon.client().get("/v1/health").status == 200
    bounded(daemon, 1500)
    for s in socks:
        s.close()
    assert daemon.client().get("/v1/health").status == 200


def test_pipelined_requests_and_garbage(daemon):
    s = daemon.client().socket()
    s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n" * 200 + b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    got = b""
    while piece := s.recv(65536):
        got += piece
    assert got.count(b"HTTP/1.1 200") == 201
    r = __import__("random").Random(7)
    for door in (daemon.client(timeout=0.5), daemon.web(timeout=0.5)):
        for _ in range(100):
            s = door.socket()
            junk = bytes(r.randrange(256) for _ in range(r.randrange(1, 2000)))
            begin = r.choice([b"", b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n", b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
                              b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n"])
            try:
                s.sendall(begin + junk + r.choice([b"", b"\r\n\r\n"]))
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
            except OSError:
                pass
            s.close()
    assert daemon.client().get("/v1/health").status == 200


def test_headers_have_a_bound(daemon):
    for head in [b"X: " + b"y" * 100_000 + b"\r\n", b"".join(b"H%d: x\r\n" % i for i in range(20_000)), b"Cookie: " + b"a=b;" * 30_000 + b"\r\n"]:
        s = daemon.client().socket()
        try:
            s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n")
            got = s.recv(65536)
        except OSError:
            got = b""
        assert b" 200 " not in got, got[:200]
        s.close()
    assert daemon.client().get("/v1/health").status == 200


def test_ten_thousand_idle_connections(daemon):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle = []
    try:
        for i in range(min(10_000, hard - 200)):
            door = socket.socket(socket.AF_UNIX) if i % 2 else socket.socket()
            door.connect(str(daemon.socket) if i % 2 else daemon.tcp)
            if i % 3 == 0:
                door.send(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            idle.append(door)
        for door in (daemon.client(), daemon.web()):  # those before have been let in then
            assert door.get("/v1/health").status == 200
        before = cpu_s(daemon)
        time.sleep(2)
        assert cpu_s(daemon) - before < 1, "they cost time although they are idle"
        n = daemon.submit(command=["/bin/true"], stdout="/dev/null")
        assert daemon.wait(n)["cause"] == "completed"
        assert daemon.web().get("/v1/health").status == 200
    finally:
        for s in idle:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    bounded(daemon, 1500)


def test_listeners_that_do_not_read_cost_little(daemon):
    before = memory(daemon)
    deaf = []
    for _ in range(300):
        s = socket.socket(socket.AF_UNIX)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(str(daemon.socket))
        s.sendall(b"GET /v1/events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        deaf.append(s)
    for _ in range(10):
        made = daemon.post("/v1/jobs", {"command": SLEEP, "workdir": "/", "hold": True, "array": {"first": 1, "last": 1000}})
        daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": list(range(made["id"], made["id"] + 1000))})
    assert daemon.client().get("/v1/health").status == 200
    if not SANITIZED:
        assert memory(daemon) - before < 300 * MIB
    for s in deaf:
        s.close()


def test_one_user_does_not_take_every_place(daemon):
    n = submit_as(OWNER, daemon, command=SLEEP)
    held = []
    for _ in range(600):
        s = daemon.client().socket()
        s.sendall(b"GET /v1/jobs/%d/wait HTTP/1.1\r\nHost: x\r\n\r\n" % n)
        held.append(s)
    held[-1].settimeout(PATIENCE_S)
    assert b" 429 " in held[-1].recv(100)
    assert ask_as(OTHER, daemon, "GET", f"/v1/jobs/{n}")[0] == 200
    for s in held:
        s.close()
    until(lambda: daemon.client().get("/v1/jobs?limit=1").status == 200)  # it has seen that they are gone


def test_the_queue_of_a_user_has_an_end(tmp_path):
    with Daemon(tmp_path, gpus=1, config="limits:\n  jobs: 150\n  jobs_per_user: 100\n") as d:
        job = {"command": SLEEP, "workdir": "/", "stdout": "/dev/null", "hold": True}
        first = submit_as(OWNER, d, **job, array={"first": 1, "last": 100})
        status, answer = ask_as(OWNER, d, "POST", "/v1/jobs", job)
        assert status == 429 and "100" in answer["error"]["message"], answer
        assert d.client().post("/v1/jobs", job).status == 201  # root is an operator: only limits.jobs holds
        d.post(f"/v1/jobs/{first}/cancel")
        assert ask_as(OWNER, d, "POST", "/v1/jobs", job)[0] == 201


def test_a_terminal_that_is_never_quiet_can_be_ended(daemon):
    n = submit_as(OWNER, daemon, command=["/usr/bin/yes"], interactive=True, grace_s=1)
    daemon.until(n, "running")
    client = Client(daemon.job(n)["attach"]).socket()  # and nobody reads
    time.sleep(0.5)
    daemon.post(f"/v1/jobs/{n}/cancel")
    assert daemon.wait(n)["cause"] == "cancelled"
    client.close()


def test_jobs_that_end_at_once_push_nothing_out_of_memory(daemon):
    """An array whose dependency has failed ends as it is made; more elements than ended jobs are remembered."""
    bad = daemon.submit(command=["/bin/false"], stdout="/dev/null")
    daemon.wait(bad)
    for kind in ("afterok", "aftercorr"):
        a = daemon.client(timeout=100).post("/v1/jobs", {"command": SLEEP, "workdir": "/", "array": {"first": 0, "last": 14_999, "limit": 12_000},
                                                         "depends": [{"type": kind, "job": bad}]})
        assert a.status == 201, a
        assert [daemon.job(a.json["id"] + k)["cause"] for k in (0, 9_999, 10_001, 14_999)] == ["dependency_failed"] * 4
        bad = daemon.submit(command=["/bin/false"], stdout="/dev/null")
        daemon.wait(bad)
