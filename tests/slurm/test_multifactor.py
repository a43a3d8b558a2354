# SPDX-License-Identifier: Apache-2.0
"""A site keeps its priority/multifactor, and partitions may share nodes: what stoker has released starts before what others' partitions have waiting."""
import pytest
import slurm
from slurm import wait_for
from slurm_daemon import as_root, needed, slurm_daemon
from slurm_users import ours, read, sbatch

pytestmark = [*needed, as_root]
SETTINGS = {"PriorityType": "priority/multifactor", "PriorityWeightAge": 1000, "PriorityWeightPartition": 10000, "PriorityWeightJobSize": 1000}
MANY = 150  # more than a pass of Slurm's looks at (default_queue_depth)
# Backfill would start it in the end; Slurm's main scheduler passes over nodes that something before it waits for.
SCHEDULER = "batch_sched_delay=0,sched_min_interval=2000,stoker_no_backfill"


@pytest.mark.parametrize("kind", ["multifactor", "basic"])
def test_what_is_released_starts_though_many_wait_for_the_same_nodes(tmp_path, folder, kind):
    extra = "PartitionName=other Nodes=n[1-2] State=UP PriorityJobFactor=100"
    with slurm.open_folder() as where, slurm.Cluster(where, nodes=2, gpus=2, managed=["main"], plugins=True, scheduler=SCHEDULER, extra=extra,
                                                               settings=SETTINGS if kind == "multifactor" else {}) as c, \
            slurm_daemon(tmp_path, c) as d:
        blocks = [d.submit(command=["/bin/sleep", "1000"], gpus=2, workdir="/tmp") for _ in range(2)]
        for n in blocks:
            d.until(n, "running")
        c.run("sbatch", "-p", "other", "-N2", "--exclusive", f"--array=1-{MANY}", "-o", "/dev/null", "--wrap", "true")  # there is never room for them
        one, two = (sbatch(c, folder, f"echo {k} >> order", "--gres=gpu:2", "--nice=" + str(100 * k)) for k in (2, 1))
        numbers = [ours(c, one), ours(c, two)]
        wait_for(lambda: all(d.job(n)["state"] == "waiting" for n in numbers))
        d.post(f"/v1/jobs/{blocks[0]}/cancel")
        for n in numbers:
            assert d.wait(n)["cause"] == "completed"
        assert read(folder, "order").split() == ["1", "2"]
        c.run("scancel", "-u", "root")
        c.idle()
