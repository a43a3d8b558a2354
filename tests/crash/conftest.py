# SPDX-License-Identifier: Apache-2.0
"""Says at the end how much was tried."""
from test_crash import COUNTS


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        terminalreporter.write_line("crash: " + ", ".join(f"{n} {what}" for what, n in COUNTS.items()))
