# SPDX-License-Identifier: Apache-2.0
"""What the daemon does when files, memory, its socket or the safety of its configuration are wanting."""
import contextlib
import os
import resource
import shutil
import socket
import subprocess

import pytest
from daemon import STOKERD, Daemon, stoker
from patience import PATIENCE_S, until
from webclient import Client

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class FewFiles(Daemon):
    """Its limits of open files: the soft one, the hard one."""
    files = (64, 64)

    def command(self):
        soft, hard = self.files
        return ["prlimit", f"--nofile={soft}:{hard}", *super().command()]


def connect(d):
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(d.socket))
    return s


def test_a_hundred_idle_connections_with_64_files_do_not_stop_service(tmp_path):
    with FewFiles(tmp_path, gpus=1) as d:
        idle = [connect(d) for _ in range(100)]
        assert Client(d.socket).get("/v1/health").status == 200
        web = []
        for _ in range(100):
            web.append(socket.create_connection(d.tcp))
        assert Client(d.socket).get("/v1/health").status == 200
        assert Client(d.tcp).get("/v1/health").status == 200
        number = d.submit(command=["/bin/true"])  # files for itself are left
        assert d.wait(number)["cause"] == "completed"
        for s in idle + web:
            s.close()


def test_a_daemon_with_too_few_files_says_so_and_does_not_start(tmp_path):
    d = FewFiles(tmp_path, gpus=1)
    d.files = (24, 63)
    with pytest.raises(RuntimeError, match="may have 63 files open, and needs at least 64"):
        d.start()
    d.close()
    assert not d.state.exists()


def test_those_who_wait_leave_room_for_others_where_files_are_few(tmp_path):
    with FewFiles(tmp_path, gpus=1) as d:
        number = d.submit(command=["/bin/true"], hold=True)
        waiting, answers = [], []
        for _ in range(30):
            s = connect(d)
            s.settimeout(PATIENCE_S)
            s.sendall(b"GET /v1/jobs/%d/wait?timeout_s=600 HTTP/1.1\r\nHost: x\r\n\r\n" % number)
            waiting.append(s)
            assert Client(d.socket).get("/v1/health").status == 200
        for s in waiting:
            s.setblocking(False)
            try:
                answers.append(s.recv(65536))
            except BlockingIOError:
                answers.append(None)  # it waits
        assert answers.count(None) >= 4
        assert any(a and (b" 429 " in a or b" 503 " in a) for a in answers), answers


def test_the_soft_limit_of_files_is_raised_to_the_hard_one(tmp_path):
    d = FewFiles(tmp_path, gpus=1)
    d.files = (64, 512)
    with d:
        assert resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE) == (512, 512)
        idle = [connect(d) for _ in range(80)]  # more than a daemon with 64 would keep
        assert Client(d.socket).get("/v1/health").status == 200
        assert len(os.listdir(f"/proc/{d.process.pid}/fd")) > 80
        for s in idle:
            s.close()


def reached(d):
    """An answer over the socket's file; None while it is not there, or nobody listens on it yet."""
    with contextlib.suppress(OSError):
        return d.get("/v1/health")


def test_a_socket_file_that_was_removed_is_made_again(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        number = d.submit(command=["/bin/true"], hold=True)
        old = connect(d)
        d.socket.unlink()
        d.errors_with("was made again")
        assert d.socket.stat().st_mode & 0o777 == (0o666 if os.geteuid() == 0 else 0o600)
        assert d.job(number)["state"] == "held"
        old.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b" 200 " in old.recv(100)  # those who were connected stay
        for _ in range(5):  # again and again
            d.socket.unlink()
            assert until(lambda: reached(d))
        (d.socket.parent / "s.sock.lock").unlink()
        d.socket.unlink()
        until(lambda: reached(d))
        assert stoker(d, "queue")


def test_a_socket_that_another_program_answers_on_is_left_alone(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(d.socket) + ".new")
        other.listen()
        os.rename(str(d.socket) + ".new", d.socket)
        inode = d.socket.stat().st_ino
        d.errors_with("cannot be made again: another daemon answers")
        assert d.socket.stat().st_ino == inode
        other.close()  # nobody answers any more
        d.errors_with("was made again")
        assert d.get("/v1/health")
        d.stop()
        assert not d.socket.exists()


def test_a_socket_of_somebody_else_is_not_removed_at_the_end(tmp_path):
    d = Daemon(tmp_path, gpus=1).start()
    try:
        other = d.socket.with_suffix(".new")
        other.write_text("not ours")
        other.replace(d.socket)
        assert d.stop() == 0
        assert d.socket.read_text() == "not ours"
    finally:
        d.close()


@pytest.mark.parametrize("what", ["bytes", "values"])
def test_lack_of_memory_is_told_from_bad_json(tmp_path, what):
    body = b'{"jobs":[{"script":"' + b"x" * 50_000_000 + b'"}]}' if what == "bytes" else b'{"ids":[' + b"{}," * 490_000 + b"{}]}"
    with Daemon(tmp_path, gpus=1) as d:
        size = next(int(line.split()[1]) << 10 for line in open(f"/proc/{d.process.pid}/status") if line.startswith("VmSize"))
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (size + (24 << 20), resource.RLIM_INFINITY))
        a = Client(d.socket).post("/v1/jobs" if b"jobs" in body else "/v1/jobs/act", body)
        assert a.status == 503 and a.json["error"]["code"] == "no_memory", a
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert d.get("/v1/health")


LONG_BODIES = [("/v1/notes", {"text": "y" * 1_500_000}), ("/v1/whatif", {"question": "x" * 900_000}),
               ("/v1/jobs", {"command": ["/bin/true"], "hold": True, "comment": "c" * 60_000, "script": "s" * 1_000_000}),
               ("/v1/jobs", {"jobs": [{"command": ["/bin/true"], "hold": True, "script": "s" * 950_000}]})]


@pytest.fixture(scope="module")
def plain_answers(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("plenty"), gpus=1) as d:
        return [Client(d.socket).post(path, body).status for path, body in LONG_BODIES]


@pytest.mark.parametrize("more_kib", [1024, 2048, 2560, 3072, 3584, 4096, 6144, 8192])
def test_a_long_string_without_memory_for_it_is_refused_and_does_no_harm(tmp_path, plain_answers, more_kib):
    with Daemon(tmp_path, gpus=1) as d:
        size = next(int(line.split()[1]) << 10 for line in open(f"/proc/{d.process.pid}/status") if line.startswith("VmSize"))
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (size + (more_kib << 10), resource.RLIM_INFINITY))
        for (path, body), plain in zip(LONG_BODIES, plain_answers):
            a = Client(d.socket).post(path, body)
            assert a.status == plain or (a.status == 503 and a.json["error"]["code"] == "no_memory"), (path, a)
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert [Client(d.socket).post(path, body).status for path, body in LONG_BODIES] == plain_answers


# ---- the configuration of a daemon that runs as root ----

def serve(config, *args, cwd=None, stdin=None):
    return subprocess.run([STOKERD, "--config", config, *args], capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd, stdin=stdin)


@needs_root
@pytest.mark.parametrize("what", ["others", "group", "owner", "folder", "link"])
def test_a_configuration_that_others_may_write_is_refused_by_root(tmp_path, what):
    folder = tmp_path / "etc"
    folder.mkdir()
    config = folder / "stoker.yaml"
    config.write_text("virtual_gpus: 1\n")
    given, culprit = config, config
    if what == "others":
        config.chmod(0o646)
    elif what == "group":
        config.chmod(0o664)
        os.chown(config, 0, 65534)
    elif what == "owner":
        os.chown(config, 65534, 0)
    elif what == "folder":
        folder.chmod(0o777)
        culprit = folder
    else:
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        given = tmp_path / "open" / "link.yaml"
        given.symlink_to(config)
        culprit = tmp_path / "open"
    done = serve(given, "--state", tmp_path / "state", "--socket", tmp_path / "s", "--listen", "off")
    assert done.returncode != 0 and "others than root may change" in done.stderr, done
    assert f"{culprit} (owner" in done.stderr and f"mode {culprit.stat().st_mode & 0o7777:04o}" in done.stderr, done
    assert f"run: {'chown root:root' if what == 'owner' else 'chmod go-w'} {culprit}\n" in done.stderr, done
    assert not (tmp_path / "state").exists()


def lead_astray(tmp_path, what, config):
    """A path to the file that somebody else than root can lead elsewhere, and the path that must be named."""
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    if what == "link in a sticky folder":
        given = culprit = tmp_path / "sticky" / "link"
        given.symlink_to(config)
    elif what == "folder in a sticky folder":
        culprit = tmp_path / "sticky" / "etc"
        culprit.symlink_to(config.parent)
        given = culprit / config.name
    elif what == "relative link behind ours":
        culprit = tmp_path / "sticky" / "link"
        culprit.symlink_to(f"../{config.parent.name}/{config.name}")
        given = tmp_path / "ours"
        given.symlink_to("sticky/link")
    else:
        culprit = tmp_path / "theirs"
        culprit.mkdir()
        (culprit / "link").symlink_to(config)
        given = tmp_path / "ours"
        given.symlink_to(culprit / "link")
    os.chown(culprit, 65534, 65534, follow_symlinks=False)
    return given, culprit


ASTRAY = ["link in a sticky folder", "folder in a sticky folder", "relative link behind ours", "link in a folder of theirs"]


@needs_root
@pytest.mark.parametrize("what", ASTRAY)
@pytest.mark.parametrize("key", ["config", "rules"])
def test_links_of_others_on_the_way_to_a_configuration_are_refused_by_root(tmp_path, what, key):
    folder = tmp_path / "etc"
    folder.mkdir()
    file = folder / "file.yaml"
    file.write_text("virtual_gpus: 1\n" if key == "config" else "rules: []\n")
    given, culprit = lead_astray(tmp_path, what, file)
    config = given
    if key == "rules":
        config = folder / "stoker.yaml"
        config.write_text(f"virtual_gpus: 1\nrules: {given}\n")
    done = serve(config, "--check")
    assert done.returncode != 0 and "others than root may change" in done.stderr, done
    assert f"{culprit} (owner 65534" in done.stderr and "root:root /" in done.stderr, done


@needs_root
def test_a_file_that_the_group_of_root_may_write_is_refused(tmp_path):
    """So does an access control list look that lets another user write."""
    config = tmp_path / "stoker.yaml"
    config.write_text("virtual_gpus: 1\n")
    config.chmod(0o664)
    done = serve(config, "--check")
    assert done.returncode != 0 and f"others than root may change {config} (owner 0, mode 0664)" in done.stderr, done
    config.chmod(0o644)
    assert serve(config, "--check").returncode == 0


@needs_root
def test_links_of_root_are_followed(tmp_path):
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "real.yaml").write_text("virtual_gpus: 1\n")
    (folder / "a.yaml").symlink_to("real.yaml")
    (tmp_path / "b").symlink_to("etc/../etc/.//")
    (tmp_path / "c.yaml").symlink_to(tmp_path / "b" / "a.yaml")
    (tmp_path / "round").symlink_to("round")
    for good in (folder / "a.yaml", tmp_path / "b" / "a.yaml", tmp_path / "c.yaml", "/dev/null"):
        done = serve(good, "--check")
        assert done.returncode == 0, (good, done)
    assert serve("./c.yaml", "--check", cwd=tmp_path).returncode == 0
    with open(folder / "real.yaml", encoding="utf-8") as given:
        assert serve("/dev/stdin", "--check", stdin=given).returncode == 0
    for bad, says in ((tmp_path / "round", "symbolic links"), (folder, "directory"), (folder / "none", "No such file"), (folder / "a.yaml" / "x", "directory")):
        done = serve(bad, "--check")
        assert done.returncode != 0 and str(bad) in done.stderr and says in done.stderr, done


def make_pair(folder):
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
def test_a_key_that_others_may_read_or_write_is_refused(tmp_path):
    cert, key = make_pair(tmp_path)
    config = tmp_path / "stoker.yaml"
    config.write_text(f"virtual_gpus: 1\nlisten: 127.0.0.1:0\ntls:\n  cert: {cert}\n  key: {key}\n")
    for mode, good in ((0o600, True), (0o640, True), (0o644, False), (0o604, False), (0o660, False), (0o602, False)):
        key.chmod(mode)
        done = serve(config, "--check")
        assert (done.returncode == 0) == good, (oct(mode), done)
        assert good or ("others" in done.stderr and str(key) in done.stderr and f"mode {mode:04o}" in done.stderr), done


@needs_root
@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
@pytest.mark.parametrize("which", ["cert", "key"])
def test_a_certificate_or_key_behind_a_link_of_others_is_refused_by_root(tmp_path, which):
    (tmp_path / "etc").mkdir()
    cert, key = make_pair(tmp_path / "etc")
    given, culprit = lead_astray(tmp_path, ASTRAY[0], cert if which == "cert" else key)
    cert, key = (given, key) if which == "cert" else (cert, given)
    config = tmp_path / "stoker.yaml"
    config.write_text(f"virtual_gpus: 1\nlisten: 127.0.0.1:0\ntls:\n  cert: {cert}\n  key: {key}\n")
    done = serve(config, "--check")
    assert done.returncode != 0 and f"tls.{which}" in done.stderr and f"others than root may change the link {culprit}" in done.stderr, done


@needs_root
def test_rules_and_a_reload_are_held_to_the_same(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: []\n")
    with Daemon(tmp_path / "d", gpus=1, config=f"rules: {rules}\n") as d:
        d.config.chmod(0o666)
        d.reload()
        d.errors_with("others than root may change")
        assert d.get("/v1/health")  # it goes on with what it had
        d.config.chmod(0o644)
    rules.chmod(0o666)
    d = Daemon(tmp_path / "e", gpus=1, config=f"rules: {rules}\n")
    with pytest.raises(RuntimeError, match="others than root may change"):
        d.start()
    d.close()
