# SPDX-License-Identifier: Apache-2.0
"""Says at the end how much was tried in random runs."""
import pytest
from slurm_random import COUNTS


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
