# SPDX-License-Identifier: Apache-2.0
"""A daemon that does not run as root can run jobs only as its own user: it serves nobody else, and says so at once."""
import os
import shutil
import stat
import subprocess
import tempfile

import pytest
from daemon import STOKER, STOKERD, Daemon
from patience import PATIENCE_S
from test_security import ask_as, run_as

pytestmark = [pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd"),
              pytest.mark.skipif(os.getuid() != 0, reason="needs root to be several users")]
OWNER, OTHER = 1, 65534


@pytest.fixture
def private():
    """A daemon of uid 1, in folders that all may enter."""
    folder = tempfile.mkdtemp(prefix="stk-private-")
    os.chmod(folder, 0o755)
    d = Daemon(folder + "/d", gpus=2, user=OWNER, env={"HOME": folder})
    for path in (d.folder, d.short):
        os.chown(path, OWNER, OWNER)
        path.chmod(0o755)
    try:
        d.start()
        yield d
    finally:
        d.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_only_its_own_user_may_connect(private):
    assert stat.S_IMODE(private.socket.stat().st_mode) == 0o600
    status, made = ask_as(OWNER, private, "POST", "/v1/jobs", {"command": ["/bin/true"], "workdir": "/", "stdout": "/dev/null"})
    assert status == 201
    status, job = ask_as(OWNER, private, "GET", f"/v1/jobs/{made['id']}/wait")
    assert (status, job["cause"]) == (200, "completed")
    said = run_as(OTHER, STOKER, "--socket", str(private.socket), "submit", "--", "true")
    assert said.returncode == 3 and "serves only its own user (uid 1)" in said.stderr and "stoker serve" in said.stderr, said
    for words in (["logs", "-f", "1"], ["wait", "1"]):  # nobody waits for a daemon that is not for them
        said = run_as(OTHER, STOKER, "--socket", str(private.socket), *words)
        assert said.returncode == 3 and "serves only its own user (uid 1)" in said.stderr, said


def test_root_whom_no_mode_holds_off_is_told_at_once(private):
    for method, path, body in (("POST", "/v1/jobs", {"command": ["/bin/true"], "workdir": "/"}), ("GET", "/v1/jobs", None), ("POST", "/v1/adopt", {"pid": os.getpid()})):
        a = private.client().ask(method, path, body)
        assert a.status == 403 and "runs as uid 1 and serves that user only, you are uid 0" in a.message and "stoker serve" in a.message, a
    said = subprocess.run([STOKER, "--socket", str(private.socket), "submit", "--", "true"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert said.returncode == 1 and "serves that user only" in said.stderr, said
    assert ask_as(OWNER, private, "GET", "/v1/jobs") == (200, {"jobs": [], "next": None})


def test_the_daemon_of_root_serves_all(tmp_path):
    with Daemon(tmp_path) as d:
        assert stat.S_IMODE(d.socket.stat().st_mode) == 0o666
        assert ask_as(OTHER, d, "GET", "/v1/health")[0] == 200
