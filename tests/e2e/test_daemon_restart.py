# SPDX-License-Identifier: Apache-2.0
"""A restart of the daemon is invisible: whatever waits for a job or follows its output goes on by itself, after a clean stop (systemctl restart, an
upgrade) as after kill -9, several times in a row, and while output is being written. No byte is lost, none comes twice."""
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk" / "python"))

import stoker as sdk
from daemon import STOKER, Daemon
from patience import PATIENCE_S, until
from terminal import Terminal
from test_log_cap import LEFT_OUT, LINES, MIB, check

WRITER = "i=0; while [ ! -e go ]; do echo line $i; i=$((i+1)); sleep 0.002; done; echo last; exit 7"
ENDS = {"stop": Daemon.stop, "kill": Daemon.kill}


@pytest.fixture(params=sorted(ENDS))
def bounce(request):
    """Ends the daemon, cleanly or with kill -9, and starts it again: three times, with output written in between."""
    def again(d, number=1):
        for _ in range(3):
            size = os.path.getsize(d.job(number)["stdout"])
            ENDS[request.param](d)
            d.start()
            until(lambda: os.path.getsize(d.job(number)["stdout"]) > size)
    return again


@pytest.fixture
def d(tmp_path):
    with Daemon(tmp_path, gpus=2) as made:
        yield made


def begin(d, *words, program=STOKER, **more):
    return subprocess.Popen([str(program), *map(str, words)], cwd=d.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**d.env, "STOKER_SOCKET": str(d.socket)}, **more)


class Reader:
    """Reads all that a command writes, so that it is never held up."""

    def __init__(self, p):
        self.p, self.out, self.err = p, b"", b""
        self.threads = [threading.Thread(target=self.read, args=a, daemon=True) for a in ((p.stdout, "out"), (p.stderr, "err"))]
        for t in self.threads:
            t.start()

    def read(self, f, name):
        while data := os.read(f.fileno(), 65536):
            setattr(self, name, getattr(self, name) + data)

    def end(self):
        code = self.p.wait(PATIENCE_S)
        for t in self.threads:
            t.join()
        return code


def held(d, n):
    """Waits until the daemon holds this many requests that wait for something."""
    until(lambda: int(re.search(r"^stoker_http_waiting (\d+)", d.client().get("/metrics").body.decode(), re.M)[1]) >= n)


def writer(d):
    number = d.submit(script=WRITER)
    d.log_with(number, "line 1\n")
    return number


@pytest.mark.parametrize("command", ["run", "srun"])
def test_run_goes_on_and_ends_with_the_code_of_the_job(d, bounce, command):
    if command == "run":
        p = begin(d, "run", "--", "sh", "-c", WRITER)
    else:
        p = begin(d, "-o", "out.txt", "sh", "-c", WRITER, program=STOKER.parent / "slurm" / "srun")
    r = Reader(p)
    until(lambda: b"line 1\n" in r.out)
    bounce(d)
    (d.folder / "go").touch()
    assert r.end() == 7, r.err
    assert r.out == pathlib.Path(d.job(1)["stdout"]).read_bytes() and r.out.endswith(b"last\n")


def test_wait_ends_with_the_code_of_the_job(d, bounce):
    number = writer(d)
    p = Reader(begin(d, "wait", number))
    held(d, 1)
    bounce(d)
    assert p.p.poll() is None, p.err
    (d.folder / "go").touch()
    assert p.end() == 7, p.err
    assert p.out.decode().startswith(f"job {number} "), p.out


def test_logs_that_are_followed_go_on_at_the_byte_where_they_were(d, bounce):
    number = writer(d)
    whole, tail = Reader(begin(d, "logs", "-f", number)), Reader(begin(d, "logs", "-f", "--tail", 1, number))
    until(lambda: whole.out.count(b"\n") > 2 and tail.out.count(b"\n") > 2)
    bounce(d)
    (d.folder / "go").touch()
    assert (whole.end(), tail.end()) == (0, 0), (whole.err, tail.err)
    out = pathlib.Path(d.job(number)["stdout"]).read_bytes()
    assert whole.out == out and out.endswith(tail.out) and tail.out.endswith(b"last\n")


def test_the_sdk_goes_on(d, bounce):
    number = writer(d)
    client = sdk.Client(socket=str(d.socket))
    found = {}

    def follow():
        found["logs"] = "".join(client.logs(number, follow=True))

    def wait():
        found["wait"] = client.wait(number)[0]

    def events():
        seen = found["events"] = []
        for e in client.events(after=0):
            seen.append(e.seq)
            if e.type == "exited":
                return
    threads = [threading.Thread(target=f, daemon=True) for f in (follow, wait, events)]
    for t in threads:
        t.start()
    until(lambda: found.get("events"))
    held(d, 3)
    bounce(d)
    (d.folder / "go").touch()
    for t in threads:
        t.join(PATIENCE_S)
    assert found["wait"].exit_code == 7 and found["logs"] == pathlib.Path(d.job(number)["stdout"]).read_text()
    numbers = [n for n in found["events"] if n >= 0]
    assert numbers == sorted(set(numbers)) and numbers[0] == 1


class Sdk:
    """Client.logs() of the SDK, as a Reader."""

    def __init__(self, d, number):
        self.out, self.err = b"", b""
        self.thread = threading.Thread(target=self.read, args=(sdk.Client(socket=str(d.socket)), number), daemon=True)
        self.thread.start()

    def read(self, client, number):
        for text in client.logs(number, follow=True):
            self.out += text.encode()

    def end(self):
        self.thread.join(PATIENCE_S)
        return self.thread.is_alive()


@pytest.mark.parametrize("end", sorted(ENDS))
@pytest.mark.parametrize("client", ["logs", "run", "sdk"])
def test_output_goes_on_at_its_byte_when_the_cap_has_cut_the_log(d, client, end):
    """The middle of the log is left out while the daemon is away and the client is inside a line; then the daemon is restarted once more."""
    wait = "until [ -e go%d ]; do sleep 0.05; done"
    script = "; ".join([LINES % (0, 20000), "printf 'byte '", wait % 1, "printf '%14d\\n' 400000", LINES % (20001, 400000), wait % 2, LINES % (400000, 400010)])
    if client == "run":
        r = Reader(begin(d, "run", "--log-max", "1M", "--", "sh", "-c", script))
        number = 1
    else:
        number = d.submit(script=script, log_max_mib=1)
        r = Reader(begin(d, "logs", "-f", number)) if client == "logs" else Sdk(d, number)
    until(lambda: len(r.out) >= 400000 + 5 * (client != "run"))  # run may hold the beginning of a line
    file = pathlib.Path(d.job(number)["stdout"])
    ENDS[end](d)
    (d.folder / "go1").touch()
    until(lambda: file.stat().st_blocks * 512 < 2 * MIB and file.read_bytes().endswith(b"byte        7999980\n"))
    d.start()
    until(lambda: r.out.endswith(b"byte        7999980\n"))
    ENDS[end](d)
    (d.folder / "go2").touch()
    d.start()
    assert r.end() == 0, r.err
    assert check(r.out, cut=True) > 0 and len(LEFT_OUT.findall(r.out)) == 1
    kept = file.read_bytes()
    assert r.out.startswith(kept[:200000]) and r.out.endswith(kept[-700000:]) and kept.endswith(b"byte        8000180\n")


@pytest.mark.parametrize("end", sorted(ENDS))
def test_a_line_of_the_job_that_looks_like_ours_is_output(d, end):
    said = "[stoker: 4000 bytes of output were left out here]\n"
    number = d.submit(script=f"echo '{said.strip()}'; until [ -e go ]; do sleep 0.05; done; echo last")
    r = Reader(begin(d, "logs", "-f", number))
    until(lambda: r.out == said.encode())
    ENDS[end](d)
    d.start()
    (d.folder / "go").touch()
    assert r.end() == 0 and r.out == said.encode() + b"last\n"


def test_a_command_that_waits_says_so_once_and_a_command_that_does_not_fails(d):
    number = writer(d)
    p = Reader(begin(d, "wait", number))
    held(d, 1)
    d.stop()
    until(lambda: b"waiting for it" in p.err)
    other = Reader(begin(d, "queue"))
    assert other.end() == 3 and b"no daemon at" in other.err
    d.start()
    (d.folder / "go").touch()
    assert p.end() == 7 and p.err.count(b"\n") == 1, p.err


def test_an_interrupt_while_the_daemon_is_away_cancels_the_job_when_it_is_back(d):
    p = Reader(begin(d, "run", "--", "sh", "-c", WRITER))
    until(lambda: b"line 1\n" in p.out)
    d.stop()
    p.p.send_signal(2)
    until(lambda: b"cancelling job 1" in p.err)
    d.start()
    assert p.end() == 143, p.err
    assert d.job(1)["cause"] == "cancelled"


def test_a_daemon_that_stops_says_that_it_can_be_asked_again(d):
    number = writer(d)
    answers = []
    t = threading.Thread(target=lambda: answers.append(d.client().get(f"/v1/jobs/{number}/wait")), daemon=True)
    t.start()
    held(d, 1)
    d.stop()
    t.join(PATIENCE_S)
    (a,) = answers
    assert a.status == 503 and a.json["error"]["code"] == "stopping" and a.headers.get("retry-after") == "1", a


def test_a_terminal_goes_on_and_its_end_is_told_when_the_daemon_is_back(d):
    for end in ENDS.values():
        t = Terminal(d, ["shell"], d.folder)
        t.type(b"echo in-$((40+2))\n")
        t.expect("in-42")
        end(d)
        t.type(b"echo out-$((40+2))\n")
        t.expect("out-42")
        d.start()
        end(d)
        t.type(b"exit 5\n")
        t.expect("waiting for it")
        d.start()
        assert t.end() == 5
