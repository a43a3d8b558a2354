# SPDX-License-Identifier: Apache-2.0
"""A job whose supervisor was killed is found by what nobody else can have: pids with start times, and a secret of the launch in processes of the
job's own user. Processes of others, whatever their environment says, are neither waited for nor ended."""
import contextlib
import os
import pathlib
import signal
import subprocess

import pytest

from daemon import SHIM, STOKERD, Daemon
from patience import PATIENCE_S, until

pytestmark = [pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd"),
              pytest.mark.skipif(os.geteuid() != 0, reason="users other than this one need root")]

OWNER, OTHER = 1, 65534
# its second process is in a session of its own: only its mark tells whose it is
ESCAPES = "setsid sleep 1000 & exec sleep 1000"


@pytest.fixture(name="daemon")
def fixture_daemon(tmp_path):
    tmp_path.chmod(0o755)
    for p in tmp_path.parents[:2]:
        p.chmod(0o755)
    with Daemon(tmp_path, gpus=2) as d:
        d.state.chmod(0o711)
        yield d


@pytest.fixture(name="started")
def fixture_started():
    """Starts processes; they are ended."""
    every = []

    def start(uid, **env):
        p = subprocess.Popen(["/bin/sleep", "1000"], user=uid, group=uid, extra_groups=[], cwd="/", env=env, start_new_session=True)
        every.append(p)
        return p
    yield start
    for p in every:
        p.kill()
        p.wait(PATIENCE_S)


def environ(pid):
    return dict(v.split(b"=", 1) for v in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if b"=" in v)


def submit(d, command, uid=OWNER, **more):
    """A job of this user's."""
    import json  # noqa: PLC0415
    body = json.dumps({"command": ["/bin/sh", "-c", command], "workdir": "/", "stdout": "/dev/null", "grace_s": 0, **more})
    out = subprocess.run(["curl", "-s", "--unix-socket", str(d.socket), "-d", body, "-H", "Content-Type: application/json", "http://localhost/v1/jobs"],
                         user=uid, group=uid, extra_groups=[], cwd="/", capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
    return json.loads(out)["id"]


def parts(d, number):
    """The supervisor's pid, and those of the job's processes."""
    every = {pid: job for pid, job in d.processes().items() if job == number}
    shims = [pid for pid in every if SHIM.fullmatch(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())]
    return shims[0], [pid for pid in every if pid not in shims]


def run(d, command=ESCAPES, processes=2, **more):
    number = submit(d, command, **more)
    d.until(number, "running")
    return number, *until(lambda: (p := parts(d, number)) and len(p[1]) == processes and p)


def end(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_process_of_another_user_with_the_jobs_mark_is_not_the_jobs(daemon, started):
    number, shim, pids = run(daemon)
    mark = environ(pids[0])[b"STOKER_MARK"].decode()
    theirs = started(OTHER, STOKER_MARK=mark)
    os.kill(shim, signal.SIGKILL)
    until(lambda: "unwatched" in daemon.job(number)["state_text"] or "unwatched" in str(daemon.job(number)))
    end(pids)
    assert daemon.wait(number)["cause"] == "lost"  # it is not kept running
    assert theirs.poll() is None

    number, shim, pids = run(daemon)
    theirs = started(OTHER, STOKER_MARK=environ(pids[0])[b"STOKER_MARK"].decode())
    os.kill(shim, signal.SIGKILL)
    daemon.post(f"/v1/jobs/{number}/cancel")
    assert daemon.wait(number)["cause"] == "cancelled"
    until(lambda: not [p for p in pids if os.path.exists(f"/proc/{p}")])  # the one that left its session, too
    assert theirs.poll() is None


def test_a_mark_cannot_be_guessed_from_another(daemon, started):
    """Not from another job's, and not from what the machine shows of a job."""
    number, shim, pids = run(daemon)
    other, _, other_pids = run(daemon)
    a, b = (environ(p[0])[b"STOKER_MARK"].decode() for p in (pids, other_pids))
    assert len(a) >= 32 and len(os.path.commonprefix([a, b])) < 8
    shown = pathlib.Path(f"/proc/{pids[0]}/cgroup").read_text() + pathlib.Path(f"/proc/{shim}/cmdline").read_text() + str(daemon.job(number)) + str(daemon.errors)
    assert a not in shown and a[:12] not in shown
    file = next((daemon.state / "run").glob(f"{number}.*[0-9]"))
    assert file.stat().st_mode & 0o777 == 0o600 and a in file.read_text()
    guess = started(OWNER, STOKER_MARK=b.replace(f"-{other}-", f"-{number}-"))  # of the owner's own, but of no job
    os.kill(shim, signal.SIGKILL)
    daemon.post(f"/v1/jobs/{number}/cancel")
    assert daemon.wait(number)["cause"] == "cancelled"
    assert guess.poll() is None and all(os.path.exists(f"/proc/{p}") for p in other_pids)


def test_a_job_from_before_secrets_is_found_by_its_user_and_its_mark(daemon, started):
    number, shim, pids = run(daemon)
    mark = environ(pids[0])[b"STOKER_MARK"].decode()
    old = f"0123456789abcdef-{number}-1"
    daemon.kill()
    os.kill(shim, signal.SIGKILL)
    file = next((daemon.state / "run").glob(f"{number}.*[0-9]"))
    file.write_text(file.read_text().replace(mark, old))
    own, theirs = started(OWNER, STOKER_MARK=old), started(OTHER, STOKER_MARK=old)
    daemon.start()
    end(pids)
    daemon.until(number, "running")  # there is one with its mark left
    daemon.post(f"/v1/jobs/{number}/cancel")
    assert daemon.wait(number)["cause"] == "cancelled"
    assert own.wait(PATIENCE_S) == -signal.SIGTERM and theirs.poll() is None
