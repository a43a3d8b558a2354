# SPDX-License-Identifier: Apache-2.0
"""A command on a pseudo terminal: what it shows, and what is typed."""
import os
import pty
import select
import threading
import time

from data import program
from patience import PATIENCE_S


class Terminal:
    """A command on a pty."""

    def __init__(self, daemon, args, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ.update({"STOKER_SOCKET": str(daemon.socket), "TERM": "xterm", "SHELL": "/bin/sh", "PS1": "$ "})
            os.execv(program(), [program(), *args])
        self.shown = ""

    def expect(self, text, timeout=PATIENCE_S):
        end = time.monotonic() + timeout
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.shown += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
        assert text in self.shown, self.shown
        self.shown = self.shown.split(text, 1)[1]

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self):
        drain = threading.Thread(target=self._drain, daemon=True)
        drain.start()
        _, status = os.waitpid(self.pid, 0)
        drain.join(5)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)

    def _drain(self):
        try:
            while data := os.read(self.fd, 65536):
                self.shown += data.decode(errors="replace")
        except OSError:
            pass
