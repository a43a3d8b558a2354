# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests on a Slurm cluster, which is each file's own fixture `cluster`. And how much was tried in random runs: said at the end."""
import os

import pytest
import slurm
from slurm_daemon import clear, slurm_daemon
from slurm_random import COUNTS


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster) as d:
        yield d


@pytest.fixture
def daemon(shared, cluster, folder):  # which goes when no job writes there any more
    yield shared
    clear(shared, cluster)


@pytest.fixture
def folder():
    """Where users may write."""
    with slurm.open_folder() as f:
        os.chmod(f, 0o777)
        yield f


def pytest_sessionfinish(session):
    """In one of several processes that share the tests: hands its counts over."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["slurm"] = dict(COUNTS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    COUNTS.update(getattr(node, "workeroutput", {}).get("slurm", {}))


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        terminalreporter.write_line("slurm: " + ", ".join(f"{n} {what}" for what, n in COUNTS.items()))
