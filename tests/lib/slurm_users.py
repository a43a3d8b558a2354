# SPDX-License-Identifier: Apache-2.0
"""What users do with Slurm's own commands, and what is seen of it: they are nobody, tests run as root."""
import os
import pathlib
import re
import subprocess

from patience import PATIENCE_S
from slurm import wait_for


def user(cluster, *argv, folder="/tmp"):
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *map(str, argv)], env=cluster.env, cwd=folder,
                          text=True, capture_output=True, timeout=PATIENCE_S)


def passes(cluster):
    """How often Slurm has looked at its queue."""
    return int(re.search(r"Main schedule.*?Total cycles:\s*(\d+)", cluster.run("sdiag").stdout, re.S)[1])


def sbatch(cluster, folder, script, *args):
    """Slurm's number of the job. Where no plugin holds what comes (cluster.plugin), it is sent just after Slurm has looked at its queue."""
    if not getattr(cluster, "plugin", True):
        before = passes(cluster)
        wait_for(lambda: passes(cluster) != before)
    path = os.path.join(folder, "job.sh")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/bash\n" + script + "\n")
    done = user(cluster, "sbatch", "--parsable", *args, path, folder=folder)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.strip())


def sbatch_sleep(cluster, *args):
    """The same, of a job that does nothing and says nothing."""
    done = user(cluster, "sbatch", "--parsable", "-o", "/dev/null", *args, "--wrap", "sleep 1000")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def show(cluster, job):
    """What Slurm says of a job; of an array, of its first record."""
    lines = cluster.run("scontrol", "-o", "show", "job", str(job)).stdout.splitlines()
    return {k: v.strip() for k, v in re.findall(r"(\w+)=(.*?)(?= [\w:]+=|$)", lines[0])} if lines else {}


def ours(cluster, job, n=1):
    """Our number of a Slurm job, or the numbers of an array's elements, once it is marked with it."""
    wait_for(lambda: re.match(r"stoker \w+ \d+ ", show(cluster, job).get("AdminComment", "")))
    first = int(show(cluster, job)["AdminComment"].split()[2])
    return first if n == 1 else list(range(first, first + n))


def read(*path):
    """The file's text; "" as long as there is none."""
    path = pathlib.Path(*path)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def touch(folder, name):
    pathlib.Path(folder, name).touch()
