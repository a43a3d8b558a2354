# SPDX-License-Identifier: Apache-2.0
"""The table in docs/spec/job.md is the table of src/spec/keys.c."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "spec" / "job.md"
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build"))


def page_rows():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("| key |")]
    assert len(heads) == 1, "one table of keys"
    rows = []
    for line in lines[heads[0] + 2:]:
        if not line.startswith("|"):
            break
        rows.append(line)
    return rows


def test_the_table_of_keys_is_the_programs():
    program = BUILD / "dump_keys"
    if not program.exists():
        pytest.skip(f"{program.name} is not built; set STOKER_BUILD")
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert page_rows() == out.splitlines()


def test_every_word_of_job_files_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    words = ROOT / "src" / "spec" / "yaml_words.c"
    taken = [line.split('"')[1] for line in words.read_text(encoding="utf-8").splitlines()
             if line.startswith("    {\"") and "refuse" not in line]
    assert len(taken) > 20
    missing = [w for w in taken if f"`{w}`" not in page and f"`{w.split('.')[-1]}`" not in page]
    assert [w for w in missing if w not in ("type", "resources.cpu", "resources.priority")] == []
