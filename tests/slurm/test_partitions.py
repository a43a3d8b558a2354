# SPDX-License-Identifier: Apache-2.0
"""Several partitions of stoker's, of which some share nodes: each job runs on nodes of its own partition, and nodes that two partitions have
are there for the jobs of both."""
import re

import pytest
import slurm
from daemon import STOKER, stoker
from slurm import wait_for
from slurm_daemon import as_root, clear, needed, slurm_daemon
from slurm_users import ours, sbatch, show, user

pytestmark = [*needed, as_root]
SLEEP = ["/bin/sleep", "1000"]
# a: n1 n2, b: n2 n3, c: n4
EXTRA = "PartitionName=a Nodes=n[1-2] State=UP\nPartitionName=b Nodes=n[2-3] State=UP MaxTime=60\nPartitionName=c Nodes=n4 State=UP"
MORE = "queues: {all: {}, later: {pool: b}}\noperators: [root]\n"


@pytest.fixture(scope="module")
def cluster():
    with slurm.open_folder() as where, slurm.Cluster(where, nodes=4, gpus=4, extra=EXTRA, managed=["a", "b", "c"]) as c:
        yield c


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, MORE, partitions="a, b, c", args=["--paranoid"]) as d:
        yield d


@pytest.fixture
def daemon(shared, cluster, folder):  # which goes when no job writes there any more
    yield shared
    clear(shared, cluster, "nobody")


def nodes(d, *jobs):
    return sorted(d.until(n, "running")["node"] for n in jobs)


def waits(d, n):
    """Whether it still waits when all that was asked has been decided."""
    d.get("/v1/jobs")
    return d.job(n)["state"] == "waiting"


def test_a_node_shows_all_partitions_that_have_it(daemon):
    assert {n["name"]: n["pool"] for n in daemon.get("/v1/nodes")["nodes"]} == {"n1": "a", "n2": "a,b", "n3": "b", "n4": "c"}


def test_users_jobs_of_both_get_the_nodes_that_both_have(daemon, cluster, folder):
    first = [ours(cluster, sbatch(cluster, folder, "sleep 1000", "-p", "b", "--gres=gpu:4")) for _ in range(2)]
    assert nodes(daemon, *first) == ["n2", "n3"]
    of_b, of_a, of_c = (ours(cluster, sbatch(cluster, folder, "sleep 1000", "-p", p, "--gres=gpu:4")) for p in "bac")
    assert nodes(daemon, of_a) == ["n1"] and nodes(daemon, of_c) == ["n4"]
    assert waits(daemon, of_b)
    more = ours(cluster, sbatch(cluster, folder, "sleep 1000", "-p", "a", "--gres=gpu:4"))
    daemon.post(f"/v1/jobs/{next(n for n in first if daemon.job(n)['node'] == 'n2')}/cancel")
    assert nodes(daemon, of_b) == ["n2"]  # it was there before
    assert waits(daemon, more)
    daemon.post(f"/v1/jobs/{of_b}/cancel")
    assert nodes(daemon, more) == ["n2"]


def test_stokers_own_go_to_the_partition_that_they_name(daemon, cluster):
    jobs = {p: daemon.submit(command=SLEEP, gpus=2, pool=p) for p in "bca"}
    there = {p: daemon.until(n, "running") for p, n in jobs.items()}
    assert {p: show(cluster, j["slurm"]["job"])["Partition"] for p, j in there.items()} == {"a": "a", "b": "b", "c": "c"}
    assert re.search(r"^pool +b$", stoker(daemon, "show", jobs["b"]), re.M)
    assert there["a"]["node"] in ("n1", "n2") and there["b"]["node"] in ("n2", "n3") and there["c"]["node"] == "n4"
    none = daemon.until(daemon.submit(command=SLEEP, gpus=1), "running")
    assert show(cluster, none["slurm"]["job"])["Partition"] == "a"  # the first of the configuration


def test_a_gang_has_room_in_its_own_partition_alone(daemon):
    gang = daemon.submit(command=SLEEP, gpus=4, tasks=2, pool="b")
    assert sorted(p["node"] for p in daemon.until(gang, "running")["pieces"]) == ["n2", "n3"]
    other = daemon.submit(command=SLEEP, gpus=4, tasks=2, pool="a")
    assert waits(daemon, other)
    daemon.post(f"/v1/jobs/{gang}/cancel")
    assert sorted(p["node"] for p in daemon.until(other, "running")["pieces"]) == ["n1", "n2"]
    for more in ({"tasks": 3}, {"nodelist": ["n3"]}):
        answer = daemon.client().post("/v1/jobs", {"command": SLEEP, "gpus": 4, "pool": "a", "workdir": "/tmp", **more})
        assert answer.status == 422 and "its pool" in answer.json["error"]["message"], answer
    answer = daemon.client().post("/v1/jobs", {"command": SLEEP, "pool": "d", "workdir": "/tmp"})
    assert answer.status == 422 and 'no pool "d"; there are: a, b, c' in answer.json["error"]["message"], answer


def test_a_queue_may_be_one_of_the_partitions(daemon, cluster):
    assert {q["name"]: q["pool"] for q in daemon.get("/v1/quota")["queues"] if q["name"] in ("all", "later")} == {"all": None, "later": "b"}
    job = daemon.until(daemon.submit(command=SLEEP, gpus=4, queue="later"), "running")
    assert job["node"] in ("n2", "n3") and show(cluster, job["slurm"]["job"])["Partition"] == "b"
    answer = daemon.client().post("/v1/jobs", {"command": SLEEP, "gpus": 4, "queue": "later", "pool": "a"})
    assert answer.status == 422 and "pool b" in answer.json["error"]["message"]


def test_how_long_a_job_may_run_is_its_own_partitions(daemon, cluster):
    for pool, ok in (("a", True), ("b", False)):
        done = user(cluster, str(STOKER), "submit", "--socket", str(daemon.socket), "--pool", pool, "--gpus", "1", "--time", "2h", "sleep", "1000")
        assert (done.returncode == 0) == ok, done
        assert ok or ("1:00:00" in done.stderr and "partition b" in done.stderr), done.stderr


def test_a_partition_that_is_down_does_not_stop_the_other(daemon, cluster, folder):
    cluster.run("scontrol", "update", "partitionname=b", "state=DOWN")
    try:
        of_b = ours(cluster, sbatch(cluster, folder, "sleep 1000", "-p", "b", "--gres=gpu:4"))
        of_a = [ours(cluster, sbatch(cluster, folder, "sleep 1000", "-p", "a", "--gres=gpu:4")) for _ in range(2)]
        assert nodes(daemon, *of_a) == ["n1", "n2"]
        assert daemon.job(of_b)["state"] in ("waiting", "blocked")  # it rests if it was tried
    finally:
        cluster.run("scontrol", "update", "partitionname=b", "state=UP")
    assert nodes(daemon, of_b) == ["n3"]


def test_a_new_daemon_knows_what_is_whose(daemon, cluster, folder):
    first = [daemon.submit(command=SLEEP, gpus=4, pool="b") for _ in range(2)]
    assert nodes(daemon, *first) == ["n2", "n3"]
    of_b = [daemon.submit(command=SLEEP, gpus=4, pool="b"), ours(cluster, sbatch(cluster, folder, "sleep 1000", "-p", "b", "--gres=gpu:4"))]
    daemon.kill()
    daemon.start()
    assert nodes(daemon, *first) == ["n2", "n3"]
    assert nodes(daemon, daemon.submit(command=SLEEP, gpus=4, pool="a")) == ["n1"]
    assert all(waits(daemon, n) for n in of_b)
    for n in first:
        daemon.post(f"/v1/jobs/{n}/cancel")
    assert nodes(daemon, *of_b) == ["n2", "n3"]


def test_a_reservation_is_never_on_nodes_of_another_partition(daemon):
    words = ("reserve", "add", "mine", "--for", "1h", "--user", "root")
    assert "name nodes" in stoker(daemon, *words, "--gpus", "4", "--pool", "b", code=2)
    stoker(daemon, *words, "--nodes", "n3")
    one, two = (daemon.submit(command=SLEEP, gpus=4, pool="b") for _ in range(2))
    assert nodes(daemon, one, two) == ["n2", "n3"]
    stoker(daemon, "reserve", "rm", "mine")
    stoker(daemon, *words, "--gpus", "4", "--pool", "c")
    stoker(daemon, "reserve", "rm", "mine")


def test_a_partition_that_gets_a_node(daemon, cluster):
    first = [daemon.submit(command=SLEEP, gpus=4, pool="b") for _ in range(2)]
    assert nodes(daemon, *first) == ["n2", "n3"]
    more = daemon.submit(command=SLEEP, gpus=4, pool="b")
    assert waits(daemon, more)
    cluster.run("scontrol", "update", "partitionname=b", "nodes=n[1-3]")
    try:
        assert nodes(daemon, more) == ["n1"]
    finally:
        cluster.run("scontrol", "update", "partitionname=b", "nodes=n[2-3]")
    wait_for(lambda: {n["name"]: n["pool"] for n in daemon.get("/v1/nodes")["nodes"]}["n1"] == "a")
    assert daemon.job(more)["state"] == "running"


def test_partitions_that_share_nodes_later_stay_apart_and_it_is_said(daemon, cluster):
    cluster.run("scontrol", "update", "partitionname=c", "nodes=n[3-4]")
    try:
        daemon.errors_with("share nodes")
        assert nodes(daemon, *[daemon.submit(command=SLEEP, gpus=4, pool="b") for _ in range(2)]) == ["n2", "n3"]
        one, two = (daemon.submit(command=SLEEP, gpus=4, pool="c") for _ in range(2))
        assert nodes(daemon, one) == ["n4"] and waits(daemon, two)
    finally:
        cluster.run("scontrol", "update", "partitionname=c", "nodes=n4")


def test_one_more_partition_over_nodes_that_are_known(tmp_path):
    extra = "PartitionName=a Nodes=n1 State=UP\nPartitionName=b Nodes=n[1-2] State=UP"
    with (slurm.Cluster(tmp_path / "slurm", nodes=2, gpus=4, extra=extra) as cluster,
          slurm_daemon(tmp_path / "d", cluster, args=["--paranoid"], partitions="a") as d):
        running = d.until(d.submit(command=SLEEP, gpus=4), "running")
        more = [d.submit(command=SLEEP, gpus=4), d.submit(command=SLEEP, gpus=1, nodelist=["n1"])]
        d.kill()
        d.config.write_text(d.config.read_text().replace("[a]", "[a, b]"))
        d.start()
        assert d.until(running["id"], "running")["slurm"]["job"] == running["slurm"]["job"]
        assert nodes(d, d.submit(command=SLEEP, gpus=4, pool="b")) == ["n2"]
        assert "a,b" in stoker(d, "nodes")
        d.post(f"/v1/jobs/{d.jobs()[-1]['id']}/cancel")
        wait_for(lambda: [n["gpus_free"] for n in d.get("/v1/nodes")["nodes"]] == [0, 4])
        for n in more:
            assert waits(d, n) and d.job(n)["reason"]["code"] == "nodes", d.job(n)
        clear(d, cluster)


def test_another_order_of_the_partitions_is_refused(tmp_path):
    extra = "PartitionName=a Nodes=n1 State=UP\nPartitionName=b Nodes=n2 State=UP"
    with (slurm.Cluster(tmp_path / "slurm", nodes=2, gpus=4, extra=extra) as cluster,
          slurm_daemon(tmp_path / "d", cluster, partitions="a, b") as d):
        job = d.until(d.submit(command=SLEEP, gpus=4), "running")
        d.kill()
        d.config.write_text(d.config.read_text().replace("[a, b]", "[b, a]"))
        with pytest.raises(RuntimeError, match="slurm.partitions: a was number 1 .*Add new ones at the end"):
            d.start()
        d.config.write_text(d.config.read_text().replace("[b, a]", "[a]"))  # without the last
        d.start()
        assert d.until(job["id"], "running")["slurm"]["job"] == job["slurm"]["job"]
        clear(d, cluster)


def test_a_partition_that_has_jobs_or_a_reservation_cannot_be_left_out(tmp_path):
    extra = "PartitionName=a Nodes=n1 State=UP\nPartitionName=b Nodes=n2 State=UP"
    with (slurm.Cluster(tmp_path / "slurm", nodes=2, gpus=4, extra=extra) as cluster,
          slurm_daemon(tmp_path / "d", cluster, partitions="a, b") as d):
        runs = d.until(d.submit(command=SLEEP, gpus=4, pool="b"), "running")
        held = d.submit(command=SLEEP, gpus=4, pool="b", hold=True)
        d.kill()
        with_both = d.config.read_text()
        d.config.write_text(with_both.replace("[a, b]", "[a]"))
        with pytest.raises(RuntimeError, match="partition b has 2 jobs that have not ended.*put it back"):
            d.start()
        d.config.write_text(with_both)
        d.start()
        assert d.until(runs["id"], "running")["slurm"]["job"] == runs["slurm"]["job"]
        for n in (runs["id"], held):
            d.post(f"/v1/jobs/{n}/cancel")
            d.wait(n)
        stoker(d, "reserve", "add", "mine", "--for", "1h", "--user", "root", "--gpus", "4", "--pool", "b")
        d.kill()
        d.config.write_text(with_both.replace("[a, b]", "[a]"))
        with pytest.raises(RuntimeError, match="reservation mine is of partition b, which is left out.*reserve rm"):
            d.start()
        d.config.write_text(with_both)
        d.start()
        assert d.get("/v1/reservations")["reservations"][0]["on"] == [{"node": "n2", "gpus": 4}]
        stoker(d, "reserve", "rm", "mine")
        d.kill()
        d.config.write_text(with_both.replace("[a, b]", "[a]"))
        d.start()
        assert nodes(d, d.submit(command=SLEEP, gpus=4)) == ["n1"]
        clear(d, cluster)
