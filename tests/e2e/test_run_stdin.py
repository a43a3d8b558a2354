# SPDX-License-Identifier: Apache-2.0
"""Standard input of "stoker run" is that of the job: pipes, files, a terminal; to its end, at the job's pace, over restarts of the daemon."""
import hashlib
import os
import subprocess
import threading

import pytest
from daemon import STOKER, Daemon
from patience import PATIENCE_S, until
from terminal import Terminal


@pytest.fixture
def d(tmp_path):
    with Daemon(tmp_path, gpus=2, env={"XDG_RUNTIME_DIR": str(tmp_path)}) as made:
        yield made


def begin(d, *words, stdin):
    return subprocess.Popen([str(STOKER), "run", *words], cwd=d.folder, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**d.env, "STOKER_SOCKET": str(d.socket)})


def left(d):
    return list(d.folder.glob("stoker-run-*"))


@pytest.mark.parametrize("data", [b"", b"one line\n", b"no line end", os.urandom(1 << 22)], ids=["empty", "line", "rest", "4M"])
def test_a_pipe_reaches_the_job_to_its_end(d, data):
    p = begin(d, "--", "sha256sum", stdin=subprocess.PIPE)
    out, err = p.communicate(data, timeout=PATIENCE_S)
    assert (p.returncode, out.split()[0].decode()) == (0, hashlib.sha256(data).hexdigest()), err
    assert left(d) == []


def test_a_file_reaches_the_job_from_where_it_is_read_to(d):
    (d.folder / "in.txt").write_text("first\nsecond\n")
    with open(d.folder / "in.txt", "rb") as f:
        os.lseek(f.fileno(), 6, os.SEEK_SET)
        out, err = (p := begin(d, "--", "cat", stdin=f)).communicate(timeout=PATIENCE_S)
    assert (p.returncode, out) == (0, b"second\n"), err


def test_nothing_is_read_where_there_is_nothing_or_it_is_not_wanted(d):
    p = begin(d, "--", "cat", stdin=subprocess.DEVNULL)
    assert (p.communicate(timeout=PATIENCE_S)[0], p.returncode) == (b"", 0)
    assert d.job(1).get("stdin") in (None, "/dev/null")
    r, w = os.pipe()
    os.write(w, b"for the loop\n")
    p = begin(d, "--no-stdin", "--", "cat", stdin=r)
    assert (p.communicate(timeout=PATIENCE_S)[0], p.returncode) == (b"", 0)
    os.close(w)
    assert os.read(r, 100) == b"for the loop\n"
    os.close(r)


def test_a_job_that_does_not_read_ends_all_the_same(d):
    r, w = os.pipe()
    p = begin(d, "--", "sh", "-c", "exit 4", stdin=r)
    assert p.wait(PATIENCE_S) == 4
    os.close(r)
    os.close(w)


@pytest.mark.parametrize("end", [Daemon.stop, Daemon.kill], ids=["stop", "kill"])
def test_input_goes_on_over_restarts_of_the_daemon(d, end):
    data = os.urandom(1 << 20)
    p = begin(d, "--", "sha256sum", stdin=subprocess.PIPE)
    until(lambda: d.jobs() and d.jobs()[0]["state"] == "running")
    for i in range(4):
        p.stdin.write(data[i << 18:(i + 1) << 18])
        p.stdin.flush()
        end(d)
        d.start()
    out, err = p.communicate(timeout=PATIENCE_S)
    assert (p.returncode, out.split()[0].decode()) == (0, hashlib.sha256(data).hexdigest()), err


def test_input_waits_for_the_job(d):
    blocker = d.submit(command=["sleep", "1000"], gpus=2)
    d.until(blocker, "running")
    p = begin(d, "--gpus", "2", "--", "cat", stdin=subprocess.PIPE)
    p.stdin.write(b"early\n")
    p.stdin.close()
    until(lambda: len(d.jobs()) == 2)
    assert d.client().post(f"/v1/jobs/{blocker}/cancel", {}).status == 200
    assert (p.stdout.read(), p.wait(PATIENCE_S)) == (b"early\n", 0)


def test_a_job_that_has_read_some_is_not_started_again_and_one_that_has_not_is(d):
    p = begin(d, "--", "cat", stdin=subprocess.PIPE)
    until(lambda: d.jobs() and d.jobs()[0]["state"] == "running")
    assert d.client().post("/v1/jobs/1/requeue", {}).status == 200
    until(lambda: (j := d.job(1))["restarts"] == 1 and j["state"] == "running")
    p.stdin.write(b"some\n")
    p.stdin.flush()
    d.log_with(1, "some\n")
    assert d.client().post("/v1/jobs/1/requeue", {}).status == 200
    job = d.wait(1)
    assert job["cause"] == "not_started" and "cannot be sent again" in job["note"], job
    threading.Thread(target=p.communicate, daemon=True).start()
    assert p.wait(PATIENCE_S) not in (0, None)


def test_a_run_that_is_killed_ends_the_input(d):
    p = begin(d, "--", "sh", "-c", "cat; echo over", stdin=subprocess.PIPE)
    until(lambda: d.jobs() and d.jobs()[0]["state"] == "running")
    p.kill()
    p.communicate()
    assert d.wait(1)["cause"] == "completed" and d.log(1) == "over\n"
    blocker = d.submit(command=["sleep", "1000"], gpus=2)
    d.until(blocker, "running")
    p = begin(d, "--gpus", "1", "--", "sh", "-c", "cat; echo over", stdin=subprocess.PIPE)
    until(lambda: len(d.jobs()) == 2)
    p.kill()
    p.communicate()
    assert d.client().post(f"/v1/jobs/{blocker}/cancel", {}).status == 200
    assert d.wait(blocker + 1)["cause"] == "completed"  # it starts when nobody holds its input


def test_what_is_typed_on_a_terminal_reaches_the_job(d):
    t = Terminal(d, ["run", "--", "sh", "-c", "read x; echo got $x; cat; echo end"], d.folder)
    until(lambda: d.jobs() and d.jobs()[0]["state"] == "running")
    t.type(b"hello\n")
    t.expect("got hello")
    t.type(b"\x04")
    t.expect("end")
    assert t.end() == 0


def test_of_several_tasks_the_first_reads_it(d):
    data = os.urandom(1 << 20)
    p = begin(d, "--tasks", "3", "-o", str(d.folder / "out"), "--", "sh", "-c", "echo $RANK $(sha256sum)", stdin=subprocess.PIPE)
    _, err = p.communicate(data, timeout=PATIENCE_S)
    assert p.returncode == 0, err
    said = sorted(line.split()[:2] for line in (d.folder / "out").read_text().splitlines())
    empty = hashlib.sha256(b"").hexdigest()
    assert said == [["0", hashlib.sha256(data).hexdigest()], ["1", empty], ["2", empty]]


LOST = "stoker: standard input is not sent to the job: "


def run_with(d, *words, data):
    """What it says on standard error, with this in a pipe."""
    r, w = os.pipe()
    os.write(w, data)
    os.close(w)
    p = begin(d, *words, stdin=r)
    os.close(r)
    err = p.communicate(timeout=PATIENCE_S)[1].decode()
    assert p.returncode == 0, err
    return err


def test_input_that_would_be_lost_is_told_of(d):
    (d.folder / "items").write_text("cat\n")
    for words, why in ((["--detach", "--", "cat"], "with --detach nobody stays to send it"),
                       (["--items", "items", "--", "true"], "a batch is many commands")):
        assert LOST + why in run_with(d, *words, data=b"lost\n")
        assert LOST not in run_with(d, *words, data=b"")  # there is none
        assert LOST not in run_with(d, "--no-stdin", *words, data=b"kept\n")
    p = begin(d, "--items", "items", "--", "sh", "-c", f"until [ -e {d.folder}/go ]; do sleep 0.1; done", stdin=subprocess.PIPE)
    until(lambda: d.jobs())
    p.stdin.write(b"comes later\n")
    p.stdin.flush()
    line = b""
    while LOST.encode() not in line:
        line = p.stderr.readline()
        assert line
    (d.folder / "go").touch()
    p.communicate(timeout=PATIENCE_S)
