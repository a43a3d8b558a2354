# SPDX-License-Identifier: Apache-2.0
"""Says at the end how much was tried."""
import pytest
from test_crash import COUNTS


def pytest_sessionfinish(session):
    """In one of several processes that share the tests: hands its counts over."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["crash"] = dict(COUNTS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    COUNTS.update(getattr(node, "workeroutput", {}).get("crash", {}))


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        terminalreporter.write_line("crash: " + ", ".join(f"{n} {what}" for what, n in COUNTS.items()))
