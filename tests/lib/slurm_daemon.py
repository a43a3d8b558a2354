# SPDX-License-Identifier: Apache-2.0
"""stokerd on a whole Slurm cluster (slurm.py), and what tests of that need. tests/slurm/conftest.py has the fixtures.

    pytestmark = [*needed, as_root]

    with slurm_daemon(folder, cluster) as d:
        ...
        clear(d, cluster)
"""
import os
import shutil

import pytest
import slurm
from daemon import STOKERD, Daemon
from libslurm import PROGRAM

installed = pytest.mark.skipif(not slurm.installed(), reason="Slurm is not installed")
needed = [installed, pytest.mark.skipif(not PROGRAM.exists() or not STOKERD.exists(), reason="not built (libslurm-dev)")]
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
with_plugins = pytest.mark.skipif(not slurm.OUR_PLUGINS.exists(), reason="the plugins are not built (libslurm-dev)")
with_accounting = pytest.mark.skipif(not slurm.installed() or not shutil.which("slurmdbd") or not shutil.which("mariadbd"),
                                     reason="Slurm, slurmdbd or MariaDB is not installed")


def config(conf, partitions="main", **more):
    """stoker.yaml for the cluster of this slurm.conf; 'more': what else it says of Slurm, in YAML."""
    said = "".join(f", {name}: {value}" for name, value in more.items())
    return f"engine: slurm\nslurm: {{conf: {conf}, partitions: [{partitions}]{said}}}\n"


def slurm_daemon(folder, cluster, more="", args=(), **settings):
    """'more': of stoker.yaml, after what it says of Slurm; 'settings': of that."""
    d = Daemon(folder, gpus=None, config=config(cluster.conf, **settings) + more, args=args)
    d.cluster = cluster
    return d


def clear(d, cluster, *users):
    """After a test: nothing is left of it, neither here nor in Slurm. 'users': what is theirs is cancelled by Slurm first."""
    if users:
        cluster.run("scancel", *(word for name in users for word in ("-u", name)), check=False)
    for job in d.jobs():
        d.client().post(f"/v1/jobs/{job['id']}/cancel")
    cluster.idle()
    slurm.wait_for(lambda: not d.jobs())
