# SPDX-License-Identifier: Apache-2.0
"""What is kept of ended jobs stays inside its bounds while users submit without a pause."""
import threading

import pytest
from daemon import STOKERD, Daemon
from patience import until

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")

MIB = 1 << 20
BOUND = 8 * MIB  # retention.size of these tests
# Beside what is kept of ended jobs the file has the newest events and two snapshots; the WAL is emptied after 16 MiB.
DB_MOST, WAL_MOST = 2 * BOUND, 40 * MIB
BATCH = 100
NOTE = "x" * 4000  # bytes of each description


class Load:
    """Users that submit jobs and cancel them, each as fast as the daemon answers: some request is always waiting."""

    def __init__(self, daemon, users=3):
        self.daemon, self.done, self.stop, self.errors = daemon, 0, False, []
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(users)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        for t in self.threads:
            t.join()
        assert not self.errors, self.errors

    def _work(self):
        jobs = [{"command": ["/bin/true"], "hold": True, "workdir": "/", "envs": {"NOTE": f"{i} {NOTE}"}} for i in range(BATCH)]
        try:
            while not self.stop:
                made = self.daemon.post("/v1/jobs", {"jobs": jobs})
                self.daemon.post("/v1/jobs/act", {"verb": "cancel", "ids": made["ids"]})
                self.done += BATCH
        except Exception as e:  # pylint: disable=broad-except
            self.errors.append(e)


def sizes(d):
    return [(d.state / f"stoker.db{end}").stat().st_size for end in ("", "-wal")]


def test_the_store_stays_small_under_load(tmp_path):
    """20,000 descriptions of 4 kB: eighty megabytes pass through a store of eight."""
    with Daemon(tmp_path, config="retention: {age: 1h, size: 8M}\n") as d, Load(d) as load:
        largest = [0, 0]
        while load.done < 20000 and not load.errors:
            largest = [max(a, b) for a, b in zip(largest, sizes(d))]
        print(f"largest: stoker.db {largest[0] / MIB:.1f} MiB, WAL {largest[1] / MIB:.1f} MiB")
        assert largest[0] < DB_MOST and largest[1] < WAL_MOST
        kept = d.get("/v1/history?limit=1")["jobs"]
        assert kept and kept[0]["id"] > 1000  # the newest stay


def test_jobs_beyond_the_age_are_forgotten_under_load(tmp_path):
    with Daemon(tmp_path, config="retention: {age: 2, size: 1G}\n") as d, Load(d) as load:
        first = until(lambda: d.get("/v1/history?limit=1")["jobs"])[0]["id"]
        until(lambda: d.client().get(f"/v1/jobs/{first}").status == 404 or load.errors, say="the first job is forgotten")


def test_a_store_that_was_large_shrinks_while_the_daemon_runs(tmp_path):
    with Daemon(tmp_path, config="retention: {age: 1h, size: 1G}\n") as d:
        with Load(d) as load:
            until(lambda: load.done >= 12000 or load.errors)
        assert sum(sizes(d)) > 4 * BOUND
        d.config.write_text("retention: {age: 1h, size: 8M}\n")
        d.reload()
        with Load(d, users=1):
            until(lambda: sizes(d)[0] < DB_MOST, say=lambda: f"the file is {sizes(d)[0] / MIB:.1f} MiB")
