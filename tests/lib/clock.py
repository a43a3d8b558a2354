# SPDX-License-Identifier: Apache-2.0
"""A daemon's wall clock, which a test sets (`clock_shift.c`). It must be made before the daemon is started.

    clock = Clock(daemon)
    clock.set(3600)     # it is an hour fast from now on
"""
import time

from daemon import STOKERD


class Clock:
    def __init__(self, daemon):
        self.file = daemon.folder / "shift"
        self.set(0)
        daemon.env.update(LD_PRELOAD=str(STOKERD.parent / "libclock_shift.so"), CLOCK_SHIFT=str(self.file))

    def set(self, seconds):
        new = self.file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self.file)

    def wall(self):
        return time.time() + int(self.file.read_text())
