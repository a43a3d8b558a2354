# SPDX-License-Identifier: Apache-2.0
"""Two daemons of one user number their jobs from 1: in one folder both jobs 1 write to stoker-1.out, and no output is lost."""
import pytest
from daemon import STOKERD, Daemon
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")


@pytest.fixture
def two(tmp_path):
    with Daemon(tmp_path / "one", gpus=1) as one, Daemon(tmp_path / "two", gpus=1) as other:
        yield one, other


def test_the_output_of_another_daemons_job_is_kept(two, tmp_path):
    one, other = two
    out = tmp_path / "stoker-1.out"
    runs = one.submit(script="#!/bin/sh\necho begin\nuntil [ -e go ]; do sleep 0.05; done\necho end\n", workdir=str(tmp_path))
    until(lambda: out.exists() and out.read_text() == "begin\n")
    second = other.submit(command=["/bin/echo", "second"], workdir=str(tmp_path))
    assert runs == second == 1 and other.wait(second)["cause"] == "completed"
    (tmp_path / "go").touch()
    assert one.wait(runs)["cause"] == "completed"
    assert out.read_text() == "second\n" and other.log(second) == "second\n"
    assert (tmp_path / "stoker-1.out.1").read_text() == "begin\nend\n"


def test_older_outputs_get_the_next_free_name(two, tmp_path):
    one, _ = two
    (tmp_path / "stoker-1.out").write_text("old\n")
    (tmp_path / "stoker-1.out.1").write_text("older\n")
    one.wait(one.submit(command=["/bin/echo", "new"], workdir=str(tmp_path)))
    assert [(tmp_path / f"stoker-1.out{end}").read_text() for end in ("", ".1", ".2")] == ["new\n", "older\n", "old\n"]


def test_truncate_and_append_do_as_they_say(two, tmp_path):
    one, _ = two
    for number, (mode, said) in enumerate([("truncate", "new\n"), ("append", "old\nnew\n")], 1):
        (tmp_path / f"stoker-{number}.out").write_text("old\n")
        one.wait(one.submit(command=["/bin/echo", "new"], workdir=str(tmp_path), open_mode=mode))
        assert (tmp_path / f"stoker-{number}.out").read_text() == said and not (tmp_path / f"stoker-{number}.out.1").exists()


def test_a_gang_keeps_an_older_output_and_empties_a_file_once(two, tmp_path):
    one, _ = two
    for number, mode in enumerate([{}, {"open_mode": "truncate"}], 1):
        out = tmp_path / f"stoker-{number}.out"
        out.write_text("old\n")
        one.wait(one.submit(command=["/bin/echo", "new"], workdir=str(tmp_path), tasks=8, **mode))
        assert out.read_text() == "new\n" * 8 and one.log(number) == "new\n" * 8
    assert (tmp_path / "stoker-1.out.1").read_text() == "old\n" and not (tmp_path / "stoker-2.out.1").exists()
