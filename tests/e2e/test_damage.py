# SPDX-License-Identifier: Apache-2.0
"""A daemon whose store was damaged while it was down has every job it acknowledged, or refuses to start and says what to do."""
import contextlib
import subprocess

import pytest
from daemon import STOKER, STOKERD, Daemon

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
JOBS = 30


def killed(folder):
    """A daemon that has acknowledged 30 jobs, each in a turn of its own, and was killed."""
    d = Daemon(folder)
    d.start()
    for _ in range(JOBS):
        d.submit(command=["/bin/true"], hold=True)
    d.kill()
    return d


def store(d, *words):
    return subprocess.run([STOKER, "store", *words, "--state", str(d.state)], capture_output=True, text=True, timeout=120, check=False)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 0x10
    path.write_bytes(data)


def test_a_flipped_bit_in_the_wal_is_refused_told_and_accepted(tmp_path):
    with contextlib.closing(killed(tmp_path)) as d:
        flip(d.state / "stoker.db-wal", 0.5)
        with pytest.raises(RuntimeError, match=r"stoker\.db-wal is damaged after page \d+ of \d+.*stoker store restore"):
            d.start()
        checked = store(d, "check")
        assert checked.returncode == 1 and "were acknowledged and are missing" in checked.stdout + checked.stderr
        copy = store(d, "backup", str(tmp_path / "copy"))
        assert copy.returncode == 0 and "warning" in copy.stderr and "missing" in copy.stderr
        accepted = store(d, "accept")
        assert accepted.returncode == 0 and "missing" in accepted.stdout
        d.start()
        assert 0 < len(d.jobs()) < JOBS
        (note,) = [n for n in d.get("/v1/notes")["notes"] if "accepted with a loss" in n["text"]]
        assert "missing" in note["text"]
        assert store(d, "check").returncode == 0


def test_a_flipped_bit_in_the_database_is_refused_told_and_accepted(tmp_path):
    with contextlib.closing(Daemon(tmp_path)) as d:
        d.start()
        for i in range(JOBS):
            d.submit(command=["/bin/true", f"marker-{i}"], hold=True)
        d.stop()
        path = d.state / "stoker.db"
        data = bytearray(path.read_bytes())
        at = data.index(b"marker-7")
        data[at] ^= 0x10
        path.write_bytes(data)
        with pytest.raises(RuntimeError, match=rf"page {at // 8192 + 1} does not match its checksum.*stoker store accept --state {d.state}"):
            d.start()
        checked = store(d, "check")
        assert checked.returncode == 1 and f"page {at // 8192 + 1} of stoker.db does not match its checksum" in checked.stdout
        copy = store(d, "backup", str(tmp_path / "copy"))
        assert copy.returncode == 1 and "does not match its checksum" in copy.stderr and not (tmp_path / "copy").exists()
        accepted = store(d, "accept")
        assert accepted.returncode == 0 and f"1 page of stoker.db did not match: {at // 8192 + 1}" in accepted.stdout
        # What it says to do next can be pasted, and it does not say again what was just done.
        assert f"stoker store check --state {d.state}" in accepted.stdout and "stoker store accept" not in accepted.stdout
        d.start()
        assert len(d.jobs()) == JOBS
        assert [n for n in d.get("/v1/notes")["notes"] if "did not match" in n["text"]]
        assert store(d, "check").returncode == 0


def test_a_page_damaged_while_the_daemon_runs_is_not_exported(tmp_path):
    with contextlib.closing(Daemon(tmp_path)) as d:
        d.start()
        n = d.submit(command=["/bin/true"], comment="x" * 50 + "marker")
        d.wait(n)
        d.stop()
        d.start()
        path = d.state / "stoker.db"
        at = path.read_bytes().index(b"marker")
        with open(path, "r+b") as f:
            f.seek(at)
            f.write(b"n")
        told = store(d, "export")
        assert told.returncode == 1 and "does not match its checksum" in told.stderr and "narker" not in told.stdout


@pytest.mark.parametrize("name", ["stoker.db", "stoker.db-wal", "stoker.ack"])
def test_a_file_that_is_gone_is_refused(tmp_path, name):
    with contextlib.closing(killed(tmp_path)) as d:
        kept = (d.state / name).read_bytes()
        (d.state / name).unlink()
        with pytest.raises(RuntimeError, match=r"is gone.*stoker store restore"):
            d.start()
        (d.state / name).write_bytes(kept)
        d.start()
        assert len(d.jobs()) == JOBS


def test_a_backup_takes_the_place_of_a_damaged_store(tmp_path):
    with contextlib.closing(killed(tmp_path)) as d:
        backup = tmp_path / "copy"
        assert store(d, "backup", str(backup)).returncode == 0
        flip(d.state / "stoker.db-wal", 0.3)
        with pytest.raises(RuntimeError):
            d.start()
        assert store(d, "restore", str(backup)).returncode == 0
        d.start()
        assert len(d.jobs()) == JOBS
        assert store(d, "check").returncode == 0
