# SPDX-License-Identifier: Apache-2.0
"""100,000 jobs wait, the daemon dies: the next one is there in less than two seconds, with all of them."""
import os
import pathlib
import time

import pytest
from daemon import SANITIZED, Daemon

JOBS, A_TIME = 100_000, 25_000


def cpu_s(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("end", ["kill", "stop"])  # the journal alone; a snapshot
def test_a_long_queue_is_back_at_once(end, tmp_path):
    d = Daemon(tmp_path, gpus=1, config=f"limits: {{jobs: {JOBS + 10}, jobs_per_user: {JOBS + 10}}}\n")
    d.start()
    try:
        runs = d.submit(command=["/bin/sleep", "1000"], gpus=1, stdout="/dev/null")
        d.until(runs, "running")
        for first in range(0, JOBS, A_TIME):
            a = d.client(timeout=120).post("/v1/jobs", {"jobs": [{"command": ["/bin/true", str(i)], "name": f"job-{i}", "gpus": 1, "workdir": "/"}
                                                                 for i in range(first, first + A_TIME)]})
            assert a.status == 201 and a.json["count"] == A_TIME, a
        getattr(d, end)()
        begin = time.monotonic()
        d.start()
        took, cpu = time.monotonic() - begin, cpu_s(d.process.pid)
        assert d.job(runs)["state"] == "running"
        last = d.job(runs + JOBS)
        assert last["name"] == f"job-{JOBS - 1}" and last["state"] == "waiting", last
        assert SANITIZED or cpu < 2, f"{cpu} s of CPU, {took} s"
    finally:
        d.close()
