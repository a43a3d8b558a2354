# SPDX-License-Identifier: Apache-2.0
"""Waiting for what must come. How long it takes says nothing: a machine may be slow, and others may use it too. So the
bound is there for what never comes, and is longer than anything takes.

    job = until(lambda: (j := d.job(n)).get("warning") and j)
"""
import time

PATIENCE_S = 240


def until(what, seconds=PATIENCE_S, say="what was waited for", pause=0.05):
    """The first true value that it returns."""
    end = time.monotonic() + seconds
    while not (got := what()):
        assert time.monotonic() < end, f"never: {say() if callable(say) else say}"
        time.sleep(pause)
    return got
