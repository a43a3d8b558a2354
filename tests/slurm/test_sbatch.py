# SPDX-License-Identifier: Apache-2.0
"""Users' own sbatch into a partition of stoker's: real slurmctld, slurmd and stokerd. Once with the plugin that holds
jobs as they come, once without it."""
import pytest
import slurm
from slurm import wait_for
from slurm_daemon import as_root, clear, needed
from slurm_users import ours, read, sbatch, show, touch, user

pytestmark = [*needed, as_root]
EXTRA = "RequeueExitHold=86\nPartitionName=other Nodes=n[1-4] State=UP"
# Without the plugin jobs are held when they are seen: Slurm must not be quicker. It looks at its queue every four seconds, and jobs are sent
# just after it has. Its backfill comes by at times of its own, and starts what the other one has not seen: not within any test.
DEFER = "defer,sched_interval=4,sched_min_interval=4000000,bf_interval=3600"


@pytest.fixture(scope="module", params=["plugin", "bare"])
def cluster(request):
    plugin = request.param == "plugin"
    more = {"managed": ["main"]} if plugin else {"scheduler": DEFER}
    with slurm.open_folder() as folder, slurm.Cluster(folder, nodes=4, gpus=8, extra=EXTRA, **more) as c:
        c.plugin = plugin
        yield c


@pytest.fixture
def daemon(shared, cluster, folder):  # which goes when no job writes there any more
    yield shared
    clear(shared, cluster, "root", "nobody")


def test_a_script_runs_as_it_is(daemon, cluster, folder):
    job = sbatch(cluster, folder, 'echo $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES $(id -un); exit 3', "--gres=gpu:2", "-t", "10", "-J", "mine")
    n = ours(cluster, job)
    done = daemon.wait(n)
    assert done["cause"] == "failed" and done["exit_code"] == 3 and done["name"] == "mine" and done["user"] == "nobody"
    assert done["gpus"] == 2 and done["time_limit_s"] == 600
    assert done["stdout"] == f"{folder}/slurm-{job}.out"
    words = read(folder, f"slurm-{job}.out").split()
    assert words[0] == str(job) and len(words[1].split(",")) == 2 and words[2] == "nobody"


def test_it_is_placed_by_stoker_among_stokers_own(daemon, cluster, folder):
    own = [daemon.submit(command=["/bin/sleep", "1000"], gpus=8, workdir="/tmp") for _ in range(4)]
    for n in own:
        daemon.until(n, "running")
    job = sbatch(cluster, folder, "sleep 1000", "--gpus-per-node=8")
    n = ours(cluster, job)
    assert daemon.job(n)["state"] == "waiting" and "8 GPUs" in daemon.get(f"/v1/jobs/{n}/why")["sentence"]
    daemon.post(f"/v1/jobs/{own[2]}/cancel")
    running = daemon.until(n, "running")
    assert running["node"] == show(cluster, job)["NodeList"] and running["slurm"]["job"] == job
    assert len(running["slurm"]["pieces"][0]["gpus"][0]["indices"]) == 8
    daemon.post(f"/v1/jobs/{n}/cancel")
    assert daemon.wait(n)["cause"] == "cancelled"
    wait_for(lambda: show(cluster, job)["JobState"] == "CANCELLED")


@pytest.mark.parametrize("args,nodes,gpus", [(["-N2", "--gpus-per-node=4"], 2, 8), (["-N", "2", "-n", "4", "--gpus-per-task=2"], 2, 8), (["--gpus=16"], 2, 16),
                                            (["-G", "h100:3"], 1, 3), (["-N4", "-n8", "--gres=gpu:h100:1", "-c", "4"], 4, 4),
                                            (["-n", "2", "-c", "3", "--mem=1G"], 1, 0)])
def test_gangs_have_what_slurm_gives_them(daemon, cluster, folder, args, nodes, gpus):
    if not cluster.plugin:
        pytest.skip("once is enough")
    job = sbatch(cluster, folder, "sleep 1000", *args)
    running = daemon.until(ours(cluster, job), "running")
    assert len(running["pieces"]) == nodes and sorted(p["node"] for p in running["slurm"]["pieces"]) == sorted(p["node"] for p in running["pieces"])
    assert sum(g["count"] for p in running["slurm"]["pieces"] for g in p["gpus"]) == gpus == running["gpus"]


def test_users_hold_and_release(daemon, cluster, folder):
    job = sbatch(cluster, folder, "true", "-H", "--gres=gpu:1")
    n = ours(cluster, job)
    held = daemon.job(n)
    assert held["state"] == "held" and "in Slurm" in held["warning"]
    assert user(cluster, "scontrol", "release", str(job)).returncode == 0
    assert daemon.wait(n)["cause"] == "completed"


def test_a_user_cannot_release_what_stoker_holds(daemon, cluster, folder):
    blocks = [daemon.submit(command=["/bin/sleep", "1000"], gpus=8, workdir="/tmp") for _ in range(4)]
    for b in blocks:
        daemon.until(b, "running")
    job = sbatch(cluster, folder, "true", "-n1")
    big = sbatch(cluster, folder, "true", "--gres=gpu:8")
    assert daemon.wait(ours(cluster, job))["cause"] == "completed"  # needs no GPU
    n = ours(cluster, big)
    wait_for(lambda: show(cluster, big)["Reason"] == "JobHeldAdmin")
    user(cluster, "scontrol", "release", str(big))
    user(cluster, "scontrol", "update", f"jobid={big}", "priority=100")
    assert daemon.job(n)["state"] == "waiting" and show(cluster, big)["Priority"] == "0"


def test_scancel_and_changes_are_seen_while_it_waits(daemon, cluster, folder):
    for _ in range(4):
        daemon.until(daemon.submit(command=["/bin/sleep", "1000"], gpus=8, workdir="/tmp"), "running")
    job = sbatch(cluster, folder, "true", "--gres=gpu:1", "-t", "60")
    n = ours(cluster, job)
    assert daemon.job(n)["time_limit_s"] == 3600
    user(cluster, "scontrol", "update", f"jobid={job}", "timelimit=30", "jobname=other")
    wait_for(lambda: daemon.job(n)["time_limit_s"] == 1800 and daemon.job(n)["name"] == "other")
    cluster.run("scontrol", "update", f"jobid={job}", "gres=gpu:2")
    wait_for(lambda: daemon.job(n)["gpus"] == 2)
    user(cluster, "scancel", str(job))
    done = daemon.wait(n)
    assert done["cause"] == "cancelled" and "in Slurm" in done["note"]


def test_stoker_cancels_what_waits(daemon, cluster, folder):
    job = sbatch(cluster, folder, "true", "-H")
    n = ours(cluster, job)
    daemon.post(f"/v1/jobs/{n}/cancel")
    wait_for(lambda: show(cluster, job)["JobState"] == "CANCELLED")


def test_other_partitions_are_left_alone(daemon, cluster, folder):
    job = sbatch(cluster, folder, "sleep 1000", "-p", "other", "-w", "n1", "--gres=gpu:6")
    wait_for(lambda: [n["gpus_free"] for n in daemon.get("/v1/nodes")["nodes"]] == [2, 8, 8, 8])
    assert not daemon.jobs() and "AdminComment" not in show(cluster, job)


def test_others_that_are_suspended_keep_their_gpus(daemon, cluster, folder):
    if not cluster.plugin:
        pytest.skip("once is enough")
    job = sbatch(cluster, folder, "sleep 1000", "-p", "other", "-w", "n1", "--gres=gpu:6")
    wait_for(lambda: show(cluster, job)["JobState"] == "RUNNING")
    cluster.run("scontrol", "suspend", str(job))
    assert daemon.wait(ours(cluster, sbatch(cluster, folder, "true")))["cause"] == "completed"  # it is known by now
    assert [n["gpus_free"] for n in daemon.get("/v1/nodes")["nodes"]] == [2, 8, 8, 8]
    assert "gpu:h100:6" in cluster.run("scontrol", "show", "node", "n1", "-d").stdout
    cluster.run("scontrol", "resume", str(job))


def test_what_cannot_be_is_said_and_mended(daemon, cluster, folder):
    job = sbatch(cluster, folder, "true", "-N2", "--gpus=3")
    wait_for(lambda: "cannot take it" in show(cluster, job).get("AdminComment", ""))
    assert show(cluster, job)["JobState"] == "PENDING" and not daemon.jobs()
    cluster.run("scontrol", "update", f"jobid={job}", "numnodes=1")
    assert daemon.wait(ours(cluster, job))["cause"] == "completed"


def test_each_element_of_an_array_is_a_job(daemon, cluster, folder):
    job = sbatch(cluster, folder, "echo $SLURM_ARRAY_TASK_ID; sleep 0.2", "--array=1-7:2%2", "--gres=gpu:1")
    numbers = ours(cluster, job, 4)
    for n, index in zip(numbers, (1, 3, 5, 7)):
        done = daemon.wait(n)
        assert done["cause"] == "completed" and done["array_index"] == index and done["array_id"] == numbers[0]
        assert done["stdout"] == f"{folder}/slurm-{job}_{index}.out" and read(folder, f"slurm-{job}_{index}.out") == f"{index}\n"


def test_elements_wait_run_and_are_cancelled_one_by_one(daemon, cluster, folder):
    job = sbatch(cluster, folder, "sleep 1000", "--array=0-5", "--gres=gpu:8")
    numbers = ours(cluster, job, 6)
    wait_for(lambda: [daemon.job(n)["state"] for n in numbers] == ["running"] * 4 + ["waiting"] * 2)
    user(cluster, "scancel", f"{job}_4")
    assert daemon.wait(numbers[4])["cause"] == "cancelled"
    daemon.post(f"/v1/jobs/{numbers[5]}/cancel")
    wait_for(lambda: f"{job}_5" not in cluster.run("squeue", "-h", "-r", "-t", "PD,R", "-o", "%i").stdout.split())
    daemon.post(f"/v1/jobs/{numbers[1]}/cancel")
    assert daemon.wait(numbers[1])["cause"] == "cancelled"
    assert [daemon.job(n)["state"] for n in (numbers[0], *numbers[2:4])] == ["running"] * 3


def test_how_many_elements_run_at_a_time_is_kept(daemon, cluster, folder):
    job = sbatch(cluster, folder, "while [ ! -e go ]; do sleep 0.1; done", "--array=0-3%2", "--gres=gpu:1")
    numbers = ours(cluster, job, 4)
    wait_for(lambda: [daemon.job(n)["state"] for n in numbers] == ["running"] * 2 + ["blocked"] * 2)
    touch(folder, "go")
    assert [daemon.wait(n)["cause"] for n in numbers] == ["completed"] * 4


def test_dependencies_are_slurms(daemon, cluster, folder):
    first = sbatch(cluster, folder, "while [ ! -e go ]; do sleep 0.1; done; echo first >> out", "--gres=gpu:1")
    then = sbatch(cluster, folder, "echo then >> out", "--gres=gpu:1", "-d", f"afterok:{first}")
    never = sbatch(cluster, folder, "echo never >> out", "--gres=gpu:1", "-d", f"afternotok:{first}")
    n = ours(cluster, then)
    held = daemon.job(n)
    assert held["state"] == "held" and f"afterok:{first}" in held["warning"]
    daemon.client().post(f"/v1/jobs/{n}/release")  # does not help
    wait_for(lambda: daemon.job(n)["state"] == "held")
    touch(folder, "go")
    assert daemon.wait(n)["cause"] == "completed"
    assert read(folder, "out") == "first\nthen\n"
    assert daemon.job(ours(cluster, never))["state"] == "held"


def test_a_job_gives_way_and_goes_on_elsewhere(daemon, cluster, folder):
    script = "trap 'echo saved >> log; exit 86' USR1\necho start ${SLURM_RESTART_COUNT:-0} >> log\nwhile [ ! -e done ]; do sleep 0.1; done"
    args = ["--gres=gpu:8", "--signal=B:USR1@30"]
    stays = sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8", "--no-requeue")
    daemon.until(ours(cluster, stays), "running")
    low = sbatch(cluster, folder, script, *args)
    n = ours(cluster, low)
    daemon.until(n, "running")
    wait_for(lambda: read(folder, "log") == "start 0\n")
    for _ in range(2):
        daemon.until(daemon.submit(command=["/bin/sleep", "1000"], gpus=8, tier="critical", workdir="/tmp"), "running")
    high = daemon.submit(command=["/bin/sleep", "1"], gpus=8, tier="critical", priority=1000, workdir="/tmp")
    assert daemon.wait(high)["cause"] == "completed"
    again = daemon.until(n, "running")
    assert again["preemptions"] == 1 and again["slurm"]["job"] == low and again["slurm"]["restarts"] == 1
    wait_for(lambda: read(folder, "log") == ("start 0\nsaved\nstart 1\n" if cluster.plugin else "start 0\nstart 1\n"))
    assert daemon.job(ours(cluster, stays))["preemptions"] == 0
    touch(folder, "done")
    assert daemon.wait(n)["cause"] == "completed"


def test_which_nodes_is_heeded(daemon, cluster, folder):
    every = sbatch(cluster, folder, "true", "--gres=gpu:1", "-N4", "-w", "n[1-4]")
    assert daemon.wait(ours(cluster, every))["cause"] == "completed"
    there = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8", "-w", "n3"))
    assert daemon.until(there, "running")["node"] == "n3"
    waits = ours(cluster, sbatch(cluster, folder, "true", "--gres=gpu:8", "-w", "n3"))
    why = daemon.get(f"/v1/jobs/{waits}/why")
    assert why["code"] == "nodes" and "on the 1 node it may use 0 are free" in why["sentence"]
    other = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8", "-N3", "-x", "n3"))
    assert sorted(p["node"] for p in daemon.until(other, "running")["pieces"]) == ["n1", "n2", "n4"]
    daemon.post(f"/v1/jobs/{there}/cancel")
    assert daemon.wait(waits)["cause"] == "completed"


def test_features_are_heeded_and_may_change(daemon, cluster, folder):
    for name, features in (("n1", "old"), ("n2", "old,nvme"), ("n3", "new"), ("n4", "new,nvme")):
        cluster.run("scontrol", "update", f"nodename={name}", f"availablefeatures={features}", f"activefeatures={features}")
    wait_for(lambda: [n["features"] for n in daemon.get("/v1/nodes")["nodes"]] == ["old", "old,nvme", "new", "new,nvme"])
    both = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8", "-C", "new&nvme"))
    assert daemon.until(both, "running")["node"] == "n4"
    either = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:8", "-N2", "-C", "old|nvme"))
    assert sorted(p["node"] for p in daemon.until(either, "running")["pieces"]) == ["n1", "n2"]
    waits = ours(cluster, sbatch(cluster, folder, "true", "--gres=gpu:8", "-C", "nvme"))
    assert daemon.get(f"/v1/jobs/{waits}/why")["code"] == "nodes"
    cluster.run("scontrol", "update", "nodename=n3", "availablefeatures=new,nvme", "activefeatures=new,nvme")
    assert daemon.wait(waits)["cause"] == "completed"
    mixed = sbatch(cluster, folder, "true", "--gres=gpu:1", "-C", "[old*1&new*1]", "-N2")
    wait_for(lambda: "constraint cannot be taken" in show(cluster, mixed).get("AdminComment", ""))
    for name in ("n1", "n2", "n3", "n4"):
        cluster.run("scontrol", "update", f"nodename={name}", "availablefeatures=", "activefeatures=")


def test_one_that_starts_once_is_not_requeued(daemon, cluster, folder):
    n = ours(cluster, sbatch(cluster, folder, "sleep 1000", "--gres=gpu:1", "--no-requeue"))
    daemon.until(n, "running")
    refused = daemon.client().post(f"/v1/jobs/{n}/requeue")
    assert refused.status == 409 and "--no-requeue" in refused.message
