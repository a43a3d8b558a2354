# SPDX-License-Identifier: Apache-2.0
"""A job's log is cut down to --log-max and stays text; offsets are those of the whole output, before a cut and after it."""
import re
import subprocess

import pytest

from daemon import STOKER, STOKERD, Daemon, stoker
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")

MIB = 1 << 20
# line i is at byte 20 i of the output, and says so
LINES = "awk 'BEGIN { for (i = %d; i < %d; i++) printf \"byte %%14d\\n\", 20 * i }'"
LEFT_OUT = re.compile(rb"\[stoker: (\d+) bytes of output were left out here\]\n")


@pytest.fixture(name="daemon")
def fixture_daemon(tmp_path):
    with Daemon(tmp_path, gpus=2) as d:
        yield d


def raw(d, number, query=""):
    a = d.client().get(f"/v1/jobs/{number}/log{query}")
    assert a.status == 200, a
    return a.body


def check(text, begin=0, cut=False):
    """All lines are whole, in order, and at the byte that they name; returns how many bytes were left out."""
    at, lost = begin, 0
    for line in text.splitlines(keepends=True):
        if m := LEFT_OUT.fullmatch(line):
            at += int(m[1])
            lost += int(m[1])
            continue
        whole = b"byte %14d\n" % (at // 20 * 20)
        if cut and line != whole:  # the cut has overtaken a reader within a line
            assert whole.startswith(line[:-1])
            at -= 1
        else:
            assert line == whole and at % 20 == 0
        at += len(line)
    return lost


def test_the_cap_holds_for_a_job_of_under_a_second_and_its_file_is_text(daemon):
    number = daemon.submit(command=["/bin/sh", "-c", LINES % (0, 750000)], log_max_mib=1)
    assert daemon.wait(number)["cause"] == "completed"
    file = (daemon.folder / f"stoker-{number}.out").read_bytes()
    assert len(file) <= MIB and b"\0" not in file
    assert file.startswith(b"byte              0\n") and file.endswith(b"byte       14999980\n")
    assert len([x for x in file.splitlines() if not re.fullmatch(rb"byte [ \d]{14}", x)]) == 1  # the line that says what is missing
    text = raw(daemon, number)
    assert check(text) > 13 * MIB
    assert text in (subprocess.run([STOKER, "logs", str(number)], env={**daemon.env, "STOKER_SOCKET": str(daemon.socket)}, capture_output=True, check=True).stdout,)


def test_offsets_are_those_of_the_whole_output(daemon):
    number = daemon.submit(command=["/bin/sh", "-c", LINES % (0, 750000)], log_max_mib=1)
    daemon.wait(number)
    for offset in (0, 20, 100000, 14999980, 14500000):
        assert check(raw(daemon, number, f"?offset={offset}"), offset) >= 0
    assert raw(daemon, number, "?offset=14999980") == b"byte       14999980\n"
    assert raw(daemon, number, "?offset=15000000") == b""
    middle = raw(daemon, number, "?offset=7000000")  # left out: a line says so, and what follows is at its own byte
    assert LEFT_OUT.match(middle) and check(middle, 7000000) > 0
    for offset in (0, 7000000, 14999980, 15000000):  # a client that counts is told where it is, unless what was left out follows what it has got
        a = daemon.client().get(f"/v1/jobs/{number}/log?offset={offset}&counts=line&limit=1000")
        said = sum(len(x[0]) for x in LEFT_OUT.finditer(a.body))
        assert int(a.headers["stoker-offset"]) + len(a.body) == offset + check(a.body, offset) + len(a.body) - said
    inside = raw(daemon, number, "?offset=7000003&counts=inside")
    assert inside[:1] == b"\n" and LEFT_OUT.match(inside[1:]) and check(inside[1:], 7000003) > 0
    assert daemon.client().get(f"/v1/jobs/{number}/log?counts=no").status == 400
    assert raw(daemon, number, "?tail=3") == b"byte       14999940\nbyte       14999960\nbyte       14999980\n"


def test_a_reader_goes_on_where_it_was_when_the_log_is_cut(daemon):
    """What was read so far and what comes later fit together, though the file has lost its middle in between."""
    script = "; ".join([LINES % (0, 100000), "until [ -e go ]; do sleep 0.05; done", LINES % (100000, 400000), "until [ -e on ]; do sleep 0.05; done",
                        LINES % (400000, 400010)])
    number = daemon.submit(command=["/bin/sh", "-c", script], log_max_mib=1)
    daemon.log_with(number, "1999980")
    first = raw(daemon, number)
    (daemon.folder / "go").touch()
    until(lambda: (daemon.folder / f"stoker-{number}.out").stat().st_blocks * 512 < 2 * MIB and raw(daemon, number, "?tail=1") == b"byte        7999980\n")
    assert check(raw(daemon, number)) > 0
    (daemon.folder / "on").touch()
    daemon.wait(number)
    assert raw(daemon, number, "?offset=8000000") == b"".join(b"byte %14d\n" % (8000000 + 20 * i) for i in range(10))
    assert check(first) >= 0


def test_a_follower_sees_the_end_of_a_log_that_is_cut_again_and_again(daemon):
    number = daemon.submit(command=["/bin/sh", "-c", "until [ -e go ]; do sleep 0.05; done; " + LINES % (0, 1500000)], log_max_mib=1)
    daemon.until(number, "running")
    with subprocess.Popen([STOKER, "logs", "-f", str(number)], env={**daemon.env, "STOKER_SOCKET": str(daemon.socket)}, stdout=subprocess.PIPE) as p:
        (daemon.folder / "go").touch()
        out = p.stdout.read()
    assert check(out, cut=True) >= 0 and out.endswith(b"byte       29999980\n")
    assert b"cut short" not in out


def test_tasks_and_items_that_share_a_file_are_capped_as_one(daemon):
    number = daemon.submit(command=["/bin/sh", "-c", LINES % (0, 100000)], tasks=4, stdout="all.out", log_max_mib=1)
    assert daemon.wait(number)["cause"] == "completed"
    file = (daemon.folder / "all.out").read_bytes()
    assert len(file) <= MIB and b"\0" not in file
    stoker(daemon, "show", number)
