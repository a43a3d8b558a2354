# SPDX-License-Identifier: Apache-2.0
"""Nodes that come to a Slurm cluster and go from it, while the daemon runs and while it does not."""
import pytest
import slurm
from slurm import wait_for
from slurm_daemon import needed, slurm_daemon

pytestmark = needed
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture
def cluster(tmp_path):
    with slurm.Cluster(tmp_path / "slurm", nodes=2, gpus=4) as c:
        yield c


def states(d):
    return {n["name"]: n["state"] for n in d.get("/v1/nodes")["nodes"]}


def test_nodes_come_and_go_while_jobs_run(cluster, tmp_path):
    with slurm_daemon(tmp_path / "d", cluster, args=["--paranoid"]) as d:
        n = d.submit(command=SLEEP, gpus=4)
        before = d.until(n, "running")
        gang = d.submit(command=SLEEP, gpus=4, tasks=2)
        assert d.job(gang)["state"] == "waiting"
        cluster.resize(3)
        wait_for(lambda: states(d) == {"n1": "up", "n2": "up", "n3": "up"})
        job = d.until(gang, "running")
        assert sorted(p["node"] for p in job["pieces"]) == sorted({"n1", "n2", "n3"} - {before["node"]})
        after = d.job(n)
        assert after["state"] == "running" and after["slurm"]["job"] == before["slurm"]["job"] and after["pieces"] == before["pieces"]
        d.post(f"/v1/jobs/{gang}/cancel")
        d.wait(gang)
        # A restart finds the same nodes in the same places.
        d.kill()
        d.start()
        assert [x["name"] for x in d.get("/v1/nodes")["nodes"]] == ["n1", "n2", "n3"]
        assert d.until(n, "running")["slurm"]["job"] == before["slurm"]["job"]
        # One goes: it is down, and stays in its place.
        cluster.resize(2)
        wait_for(lambda: states(d) == {"n1": "up", "n2": "up", "n3": "down"})
        d.kill()
        cluster.resize(4)  # and two come, one of them again, while nobody looks
        d.start()
        wait_for(lambda: states(d) == {"n1": "up", "n2": "up", "n3": "up", "n4": "up"})
        assert d.until(n, "running")["pieces"] == before["pieces"]
        d.post(f"/v1/jobs/{n}/cancel")
        wide = d.submit(command=["/bin/true"], gpus=4, tasks=4)
        assert d.wait(wide)["cause"] == "completed"


def test_a_node_that_has_become_another_while_nobody_looked(cluster, tmp_path):
    with slurm_daemon(tmp_path / "d", cluster, args=["--paranoid"]) as d:
        before = d.until(d.submit(command=SLEEP, gpus=4), "running")
        free = ({"n1", "n2"} - {before["node"]}).pop()
        d.kill()
        cluster.cpus = 32
        cluster.resize(2)
        d.start()
        after = d.until(before["id"], "running")
        assert after["pieces"] == before["pieces"] and after["slurm"]["job"] == before["slurm"]["job"]

        def cpus():
            return {n["name"]: n["cpus"] for n in d.get("/v1/nodes")["nodes"]}
        wait_for(lambda: cpus()[free] == 32)
        assert cpus()[before["node"]] == 64  # it is not empty
        d.post(f"/v1/jobs/{before['id']}/cancel")
        wait_for(lambda: cpus() == {"n1": 32, "n2": 32})
        assert d.until(d.submit(command=SLEEP, gpus=4, tasks=2), "running")


def test_a_partition_of_other_nodes(cluster, tmp_path):
    with slurm_daemon(tmp_path / "d", cluster, args=["--paranoid"]) as d:
        cluster.run("scontrol", "update", "partitionname=main", "nodes=n1")
        wait_for(lambda: states(d) == {"n1": "up", "n2": "down"})
        n = d.submit(command=SLEEP, gpus=1)
        assert d.until(n, "running")["node"] == "n1"
        cluster.run("scontrol", "update", "partitionname=main", "nodes=n1,n2")
        wait_for(lambda: states(d) == {"n1": "up", "n2": "up"})


@pytest.mark.parametrize("flags", ["maint,ignore_jobs", "ignore_jobs"])
def test_a_node_that_slurm_has_reserved_gets_nothing(cluster, tmp_path, flags):
    with slurm_daemon(tmp_path / "d", cluster, args=["--paranoid"]) as d:
        cluster.run("scontrol", "create", "reservation", "reservationname=fix", "starttime=now", "duration=60", "users=root", f"flags={flags}", "nodes=n1")
        wait_for(lambda: [n["gpus_free"] for n in d.get("/v1/nodes")["nodes"]] == [0, 4])
        bare = d.submit(command=SLEEP, gpus=0)  # before it: the first node would be its
        n = d.submit(command=SLEEP, gpus=1)
        assert d.until(n, "running")["node"] == "n2"
        assert d.until(bare, "running")["node"] == "n2"
        cluster.run("scontrol", "delete", "reservationname=fix")
        wait_for(lambda: [n["gpus_free"] for n in d.get("/v1/nodes")["nodes"]] == [4, 3])


def test_nothing_is_started_that_would_run_into_a_reservation_of_slurms(cluster, tmp_path):
    def ours():
        return [(r["name"], r["nodes"], r["for_s"]) for r in d.get("/v1/reservations")["reservations"] if r["state"] in ("pending", "open")]
    with slurm_daemon(tmp_path / "d", cluster, args=["--paranoid"]) as d:
        cluster.run("scontrol", "create", "reservation", "reservationname=fix", "starttime=now+2hours", "duration=60", "users=root", "nodes=n1")
        wait_for(lambda: ours() == [("slurm:fix", ["n1"], 3600)])
        long = d.submit(command=SLEEP, gpus=4, time_limit_s=4 * 3600)
        assert d.until(long, "running")["node"] == "n2"
        waits = d.submit(command=SLEEP, gpus=4, time_limit_s=4 * 3600)
        why = d.get(f"/v1/jobs/{waits}/why")
        assert why["code"] == "booked" and "slurm:fix" in why["sentence"], why
        short = d.submit(command=SLEEP, gpus=2, time_limit_s=1800)
        assert d.until(short, "running")["node"] == "n1"
        d.kill()
        cluster.run("scontrol", "update", "reservationname=fix", "duration=90")
        d.start()  # it hears what has changed meanwhile
        wait_for(lambda: ours() == [("slurm:fix", ["n1"], 5400)])
        cluster.run("scontrol", "delete", "reservationname=fix")
        wait_for(lambda: not ours())
        d.post(f"/v1/jobs/{short}/cancel")
        assert d.until(waits, "running")["node"] == "n1"
