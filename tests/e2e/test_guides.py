# SPDX-License-Identifier: Apache-2.0
"""The guides: every link leads somewhere, and every job file in them is YAML."""
import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "guide").glob("*.md")) + [ROOT / "examples" / "README.md"]


def anchors(page):
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if name == "../spec/job.md" and not (ROOT / "src" / "spec").exists():
            continue        # comes with the code it describes
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_piece_of_yaml_is_yaml(page):
    for text in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        assert isinstance(yaml.safe_load(text), dict), text


def test_the_first_page_leads_to_all_others():
    first = (ROOT / "docs" / "guide" / "getting-started.md").read_text(encoding="utf-8")
    for page in PAGES[:-1]:
        assert page.stem == "getting-started" or "(%s)" % page.name in first
