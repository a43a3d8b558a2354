# SPDX-License-Identifier: Apache-2.0
"""stoker-store, which `stoker store` runs: check, export, backup, restore and prune."""
import contextlib
import json
import os
import pathlib
import pty
import signal
import stat
import subprocess

import pytest
import storefile
from daemon import Daemon, stoker
from data import program
from patience import PATIENCE_S

BIN = pathlib.Path(program()).parent
JOBS = 40


def tool(*args, state=None, **kwargs):
    where = ["--state", str(state)] if state else []
    return subprocess.run([str(BIN / "stoker-store"), *map(str, args), *where], capture_output=True,
                          text=True, timeout=120, check=False, **kwargs)


def make(state, jobs=JOBS):
    subprocess.run([str(BIN / "make_store"), str(state), str(jobs)], check=True,
                   stdout=subprocess.DEVNULL, timeout=120)


@contextlib.contextmanager
def daemon(state, jobs=JOBS):
    """Someone who has the store open, as the daemon has."""
    with subprocess.Popen([str(BIN / "make_store"), str(state), str(jobs), "hold"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            yield p
        finally:
            p.stdin.close()


def sql(state, text, name="stoker.db"):
    with storefile.edit(state, name) as db:
        db.executescript(text)


@pytest.fixture
def state(tmp_path):
    path = tmp_path / "state"
    make(path)
    return path


def refused(run, code, *parts):
    assert run.returncode == code, run
    assert run.stdout == ""
    assert run.stderr.startswith("stoker store: ") and run.stderr.count("\n") == 1, run.stderr
    for part in parts:
        assert part in run.stderr


def test_check_finds_nothing_wrong_with_a_sound_store(state):
    run = tool("check", state=state)
    assert run.returncode == 0, run
    assert "no problems; events 1 to 40" in run.stdout
    told = json.loads(tool("check", "--json", state=state).stdout)
    assert told["ok"] is True and told["problems"] == 0 and told["told"] == []
    assert (told["first_event"], told["last_event"]) == (1, JOBS)


def test_check_tells_each_problem_and_exits_1(state):
    sql(state, "UPDATE job SET cause = 0 WHERE number = 3; DELETE FROM spec WHERE id = 4;"
               "UPDATE journal SET body = x'ff00' WHERE seq = 5;"
               "UPDATE journal SET type = 0 WHERE seq = 6")
    run = tool("check", state=state)
    assert run.returncode == 1, run
    lines = run.stdout.splitlines()
    assert lines[:4] == ["event 5 (job 5) cannot be decoded", "event 6 (job 6) cannot be decoded",
                         "job 3 ended without a cause", "job 4 has no description"]
    assert "4 problems" in lines[4] and "stoker store restore" in lines[4]
    run = tool("check", "--json", state=state)
    assert run.returncode == 1
    assert json.loads(run.stdout)["problems"] == 4
    assert len(json.loads(run.stdout)["told"]) == 4


def test_a_description_without_a_job_is_no_damage_and_is_pruned(state):
    sql(state, "INSERT INTO spec VALUES (70, x'7b7d'), (9000, x'7b7d')")
    run = tool("check", state=state)
    assert run.returncode == 0 and "no problems" in run.stdout, run
    assert tool("prune", "--older", "10000d", state=state).returncode == 0
    with storefile.edit(state) as db:
        assert db.execute("SELECT count(*), max(id) FROM spec").fetchone() == (JOBS, JOBS)
    assert tool("check", state=state).returncode == 0


def test_a_refused_change_of_a_job_leaves_nothing_in_the_store(tmp_path):
    d = Daemon(tmp_path, gpus="4x8").start()
    try:
        job = d.submit(command=["true"], gpus=1, hold=True)
        for _ in range(5):
            assert "gpus" in stoker(d, "update", job, "--gpus", 41, code=1).lower()
        stoker(d, "update", job, "--gpus", 2)
        d.stop()
        with storefile.edit(d.state) as db:
            assert db.execute("SELECT count(*) FROM spec").fetchone() == (1,)
            assert db.execute("SELECT gpus FROM job").fetchone() == (2,)
        assert tool("check", state=d.state).returncode == 0
    finally:
        d.close()


def test_a_damaged_file_is_told_in_a_sentence(state):
    path = state / "stoker.db"
    path.write_bytes(path.read_bytes()[:5000])
    run = tool("check", state=state)
    assert run.returncode == 1
    assert "malformed" in run.stdout + run.stderr and "stoker store restore" in run.stdout + run.stderr
    path.write_bytes(b"x" * 5000)
    refused(tool("check", state=state), 1, "damaged", "restore a backup")


def test_export_is_json_lines_with_descriptions(state, tmp_path):
    run = tool("export", state=state)
    assert run.returncode == 0, run
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [r["id"] for r in rows] == list(range(1, JOBS + 1))
    assert rows[0]["cause"] == "completed" and rows[0]["exit_code"] == 0
    assert rows[0]["ended"] - rows[0]["started"] == 1
    assert rows[1]["cause"] is None and rows[1]["ended"] is None
    assert rows[1]["spec"] == {"name": "train", "gpus": 2, "command": ["true"]}
    out = tmp_path / "out.jsonl"
    assert tool("export", "--output", out, state=state).returncode == 0
    assert out.read_text(encoding="utf-8") == run.stdout
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    refused(tool("export", "--output", out, state=state), 1, "File exists")
    with open("/dev/full", "w", encoding="ascii") as full:
        run = subprocess.run([str(BIN / "stoker-store"), "export", "--state", str(state)], stdout=full,
                             stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    assert run.returncode == 1 and "No space left" in run.stderr


def test_backup_and_restore_with_and_without_a_daemon(state, tmp_path):
    copy = tmp_path / "copy.db"
    with daemon(tmp_path / "other") as holder:
        other = tmp_path / "other"
        run = tool("backup", copy, "--json", state=other)
        assert run.returncode == 0, run
        assert json.loads(run.stdout)["bytes"] == copy.stat().st_size
        assert tool("check", state=other).returncode == 0
        assert tool("export", state=other).stdout.count("\n") == JOBS
        for command in (["restore", copy], ["prune", "--older", "1d"]):
            refused(tool(*command, state=other), 1, f"in use by the process with pid {holder.pid}")
    refused(tool("backup", copy, state=state), 1, "there already")
    sql(state, "DELETE FROM journal WHERE seq = 9")
    assert tool("check", state=state).returncode == 1
    run = tool("restore", copy, state=state)
    assert run.returncode == 0 and "stoker.db.replaced" in run.stdout
    assert tool("check", state=state).returncode == 0
    assert (state / "stoker.db.replaced").exists()
    refused(tool("restore", tmp_path / "none", state=state), 1, "not there")
    refused(tool("restore", __file__, state=state), 1, "not a backup")
    assert tool("check", state=state).returncode == 0


def test_prune_forgets_old_jobs_and_keeps_the_living(state):
    run = tool("prune", "--older", "1d", "--json", state=state)
    assert run.returncode == 0, run
    assert json.loads(run.stdout)["bytes_after"] > 0
    rows = [json.loads(line) for line in tool("export", state=state).stdout.splitlines()]
    assert [r["id"] for r in rows] == list(range(2, JOBS + 1, 2))
    assert tool("check", state=state).returncode == 0
    assert tool("prune", "--larger", "1G", state=state).returncode == 0


@pytest.mark.parametrize("args, part", [
    (["chek"], "did you mean \"check\"?"),
    (["backup"], "needs a file"),
    (["check", "x"], "takes no file"),
    (["backup", "a", "b"], "one file at a time"),
    (["check", "--nope"], "no option --nope"),
    (["check", "--state"], "needs a value"),
    (["prune"], "--older or --larger"),
    (["prune", "--older", "5"], "like 90d"),
    (["prune", "--older", "-5d"], "like 90d"),
    (["prune", "--larger", "5X"], "like 10G"),
    (["check", "--older", "5d"], "are for prune"),
    (["check", "--output", "x"], "is for export"),
])
def test_bad_usage_is_a_sentence_and_exit_2(args, part):
    refused(tool(*args), 2, part)


def test_help_and_no_command():
    run = tool("--help")
    assert run.returncode == 0 and "usage: stoker store" in run.stdout
    assert tool("check", "--help").stdout == run.stdout
    run = tool()
    assert run.returncode == 2 and "usage" in run.stderr and run.stdout == ""


@pytest.mark.parametrize("command", [["check"], ["export"], ["backup", "f"],
                                     ["prune", "--older", "1d"]])
def test_a_state_directory_without_a_store_is_refused_and_left_alone(tmp_path, command):
    refused(tool(*command, state=tmp_path / "none", cwd=tmp_path), 1, "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir(mode=0o700)
    refused(tool(*command, state=tmp_path / "empty", cwd=tmp_path), 1, "no stoker.db")
    assert not list((tmp_path / "empty").iterdir())


def test_the_default_state_directory_is_that_of_the_user(state, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root's is /var/lib/stoker")
    link = tmp_path / "xdg"
    link.mkdir()
    state.rename(link / "stoker")
    assert tool("check", env={"XDG_STATE_HOME": str(link)}).returncode == 0


def test_nothing_is_drawn_on_a_terminal_for_quick_work(state, tmp_path):
    """The progress line is for long work; and never without a terminal."""
    leader, follower = pty.openpty()
    run = subprocess.run([str(BIN / "stoker-store"), "backup", str(tmp_path / "c"), "--state",
                          str(state)], stderr=follower, stdout=subprocess.PIPE, text=True,
                         timeout=PATIENCE_S, check=False)
    os.close(follower)
    assert run.returncode == 0
    os.set_blocking(leader, False)
    with contextlib.suppress(OSError):
        assert os.read(leader, 1000) == b""
    os.close(leader)


def test_an_interrupted_backup_leaves_no_file(tmp_path):
    """Whenever the signal comes, the copy is there whole or not at all."""
    state = tmp_path / "state"
    make(state, 60000)
    for i, delay in enumerate([0.005, 0.01, 0.02, 0.04]):
        copy = tmp_path / f"copy{i}"
        with subprocess.Popen([str(BIN / "stoker-store"), "backup", str(copy), "--state", str(state)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as p:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(delay)
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=PATIENCE_S)
        assert not (tmp_path / f"copy{i}.partial").exists() or p.returncode == -signal.SIGINT
        if copy.exists():
            assert tool("restore", copy, state=tmp_path / f"r{i}").returncode == 0
        else:
            assert p.returncode in (130, -signal.SIGINT)
