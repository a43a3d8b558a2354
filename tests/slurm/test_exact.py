# SPDX-License-Identifier: Apache-2.0
"""Exact GPUs on a real Slurm cluster: gres.conf gives each GPU a type of its own (g0 to g7), and a
job gets those that stoker chose, each time it starts."""
import pytest
import slurm
from slurm_daemon import clear, needed, slurm_daemon, with_plugins
from slurm_users import read, show

pytestmark = [*needed, with_plugins]
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=4, gpus=8, exact=True, plugins=True, extra="RequeueExitHold=86\nPartitionName=other Nodes=ALL State=UP") as c:
        yield c


@pytest.fixture
def daemon(cluster, tmp_path):
    with slurm_daemon(tmp_path, cluster, gpu_type="h100") as d:
        yield d
        clear(d, cluster)


def decided(job):
    return {p["node"]: sorted(p["gpu_indices"]) for p in job["pieces"]}


def given(job):
    return {p["node"]: sorted(i for g in p["gpus"] for i in g["indices"]) for p in job["slurm"]["pieces"]}


def test_numbers_are_no_models(daemon):
    assert all(n["gpus"] == 8 and n["gpu_type"] == "h100" for n in daemon.get("/v1/nodes")["nodes"])


def test_each_job_gets_the_gpus_that_were_chosen(daemon, tmp_path):
    command = ["/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 1000"]
    jobs = [daemon.submit(command=command, gpus=k, workdir=str(tmp_path)) for k in (1, 3, 2, 4, 1, 5, 2, 8)]
    for n in jobs:
        job = daemon.until(n, "running")
        assert given(job) == decided(job)
        out = tmp_path / f"stoker-{n}.out"
        slurm.wait_for(lambda out=out: read(out).endswith("\n"))
        assert [int(i) for i in read(out).split(",")] == list(decided(job).values())[0]
    daemon.post(f"/v1/jobs/{jobs[1]}/cancel")  # a hole
    daemon.wait(jobs[1])
    hole = daemon.until(daemon.submit(command=SLEEP, gpus=3, workdir=str(tmp_path)), "running")
    assert given(hole) == decided(hole)


def test_a_new_daemon_knows_each_gpu_by_its_number(daemon, cluster, tmp_path):
    daemon.kill()
    daemon.start()
    jobs = [daemon.submit(command=SLEEP, gpus=k, workdir=str(tmp_path)) for k in (1, 3, 2, 4, 1, 5, 2)]
    for n in jobs:
        daemon.until(n, "running")
    daemon.post(f"/v1/jobs/{jobs[1]}/cancel")  # a hole
    daemon.wait(jobs[1])
    jobs = [*jobs[:1], *jobs[2:], daemon.submit(command=SLEEP, gpus=2, workdir=str(tmp_path))]
    for job in (daemon.until(n, "running") for n in jobs):
        assert given(job) == decided(job)
        asked = show(cluster, job["slurm"]["job"])["TresPerNode"]
        assert all(f":g{i}" in asked for i in list(decided(job).values())[0]), asked


def test_a_gang_of_whole_nodes(daemon, tmp_path):
    job = daemon.until(daemon.submit(command=SLEEP, gpus=8, tasks=3, workdir=str(tmp_path)), "running")
    assert len(given(job)) == 3 and given(job) == decided(job)


def test_started_again_elsewhere_it_has_exactly_its_gpus(daemon, cluster, tmp_path):
    script = "trap 'exit 86' USR1\necho ${SLURM_RESTART_COUNT:-0} $CUDA_VISIBLE_DEVICES\nwhile [ ! -e done ]; do sleep 0.1; done\n"
    low = daemon.submit(script=script, gpus=3, tier="best-effort", signal={"signal": "USR1", "seconds": 30, "who": "batch"}, workdir=str(tmp_path))
    first = daemon.until(low, "running")
    seen = [list(given(first).values())[0]]
    out = tmp_path / f"stoker-{low}.out"

    def lines():
        return "".join(f"{k} " + ",".join(map(str, s)) + "\n" for k, s in enumerate(seen))
    for round_ in range(1, 3):
        node = list(given(daemon.job(low)))[0]
        cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
        foreign = cluster.run("sbatch", "--parsable", "-p", "other", "-w", ",".join(sorted({"n1", "n2", "n3", "n4"} - {node})), "-N", "3", "-n", "3",
                              "--gres=" + ",".join(f"gpu:g{i}:1" for i in range(2 * round_)), "-o", "/dev/null", "--wrap", "sleep 1000").stdout.strip()
        slurm.wait_for(lambda n=2 * round_: sum(x["gpus_free"] for x in daemon.get("/v1/nodes")["nodes"]) == 3 * (8 - n))
        slurm.wait_for(lambda: read(out) == lines())
        daemon.post(f"/v1/jobs/{low}/requeue")
        slurm.wait_for(lambda r=round_: len(read(out).splitlines()) == r + 1)
        job = daemon.until(low, "running")
        assert given(job) == decided(job) and node not in given(job)
        seen.append(list(given(job).values())[0])
        cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
        cluster.run("scancel", foreign)
    assert all(len(s) == 3 for s in seen) and len({tuple(s) for s in seen}) > 1
    slurm.wait_for(lambda: read(out) == lines())
    (tmp_path / "done").touch()
    assert daemon.wait(low)["cause"] == "completed"


def test_what_others_have_is_left_alone(daemon, cluster, tmp_path):
    foreign = cluster.run("sbatch", "--parsable", "-p", "other", "-w", "n1", "--gres=gpu:g2:1,gpu:g5:1", "-o", "/dev/null", "--wrap", "sleep 1000").stdout.strip()
    slurm.wait_for(lambda: [n["gpus_free"] for n in daemon.get("/v1/nodes")["nodes"]] == [6, 8, 8, 8])
    jobs = [daemon.until(daemon.submit(command=SLEEP, gpus=8, workdir=str(tmp_path)), "running") for _ in range(3)]
    jobs.append(daemon.until(daemon.submit(command=SLEEP, gpus=6, workdir=str(tmp_path)), "running"))
    assert given(jobs[3]) == decided(jobs[3]) == {"n1": [0, 1, 3, 4, 6, 7]}
    cluster.run("scancel", foreign)


def test_one_that_slurm_starts_elsewhere_is_decided_anew(daemon, cluster, tmp_path):
    cluster.run("scontrol", "update", "partitionname=main", "state=down")
    n = daemon.submit(command=SLEEP, gpus=2, workdir=str(tmp_path))
    slurm.wait_for(lambda: cluster.run("squeue", "-h", "-o", "%i").stdout.strip())
    there = cluster.run("squeue", "-h", "-o", "%i").stdout.strip()
    chosen = list(decided(daemon.job(n)))[0]
    cluster.run("scontrol", "update", f"jobid={there}", "reqnodelist=" + ("n4" if chosen != "n4" else "n3"))
    cluster.run("scontrol", "update", "partitionname=main", "state=up")
    slurm.wait_for(lambda: daemon.job(n)["state"] == "running" and given(daemon.job(n)) == decided(daemon.job(n)))
    assert daemon.job(n)["slurm"]["restarts"] == 1
