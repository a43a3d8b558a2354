# SPDX-License-Identifier: Apache-2.0
"""Rows are put into a store whose daemon is down. A plain SQLite knows nothing of the checksums of pages, which are made afterwards."""
import contextlib
import os
import pathlib
import sqlite3
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("STOKER") or ROOT / "build" / "stoker").parent


@contextlib.contextmanager
def edit(state, name="stoker.db"):
    path = pathlib.Path(state) / name
    with contextlib.closing(sqlite3.connect(path)) as db:
        with db:
            yield db
    subprocess.run([BIN / "sum_pages", path], check=True, timeout=120)
