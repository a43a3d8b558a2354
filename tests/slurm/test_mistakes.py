# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster that is not set up for stoker: every mistake is said in a sentence that says what to mend."""
import os
import re
import shutil
import subprocess

import pytest
import slurm
from daemon import STOKERD, Daemon
from patience import PATIENCE_S
from slurm_daemon import config, needed, slurm_daemon

pytestmark = needed


def said(conf, folder, partition="main"):
    """What the daemon says that does not start."""
    d = Daemon(folder, gpus=None, config=config(conf, partition))
    with pytest.raises(RuntimeError) as e:
        d.start()
    return str(e.value)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=4) as c:
        yield c


def test_there_is_no_such_partition(cluster, tmp_path):
    assert "Slurm has no partition \"gpu\"; sinfo lists them" in said(cluster.conf, tmp_path, "gpu")


@pytest.mark.parametrize("patience", [5, 300], ids=["libslurm gives up", "the daemon gives up first"])
def test_slurmctld_is_down(cluster, tmp_path, patience):
    with open(cluster.conf) as f:
        (tmp_path / "slurm.conf").write_text(f.read().replace("MessageTimeout=60", f"MessageTimeout={patience}"))
    cluster.stop_controller()
    words = said(tmp_path / "slurm.conf", tmp_path / "d")
    cluster.start_controller()
    cluster.wait_controller()
    assert "is slurmctld running" in words


def test_munged_has_another_key(cluster, tmp_path):
    """A munged beside the cluster's, and a slurm.conf that names it."""
    run = tmp_path / "munge"
    run.mkdir(mode=0o755)
    os.chmod(tmp_path, 0o755)
    with open(os.open(run / "key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
        f.write(os.urandom(1024))
    subprocess.run(["munged", "--force", f"--socket={run}/sock", f"--key-file={run}/key", f"--log-file={run}/log", f"--pid-file={run}/pid",
                    f"--seed-file={run}/seed"], check=True)
    try:
        with open(cluster.conf) as f:
            text = f.read().replace(f"{cluster.folder}/munge/run/sock", f"{run}/sock")
        (tmp_path / "slurm.conf").write_text(text)
        assert "munged" in said(tmp_path / "slurm.conf", tmp_path / "d")
    finally:
        os.kill(int((run / "pid").read_text()), 15)


def test_munged_is_not_there(cluster, tmp_path):
    with open(cluster.conf) as f:
        (tmp_path / "slurm.conf").write_text(f.read().replace(f"{cluster.folder}/munge/run/sock", f"{tmp_path}/nothing"))
    assert "munged" in said(tmp_path / "slurm.conf", tmp_path / "d")


def test_no_node_has_gpus(tmp_path):
    with slurm.Cluster(tmp_path / "slurm", nodes=1, gpus=4, gres=False) as c:
        assert "Gres=gpu" in said(c.conf, tmp_path / "d") and "gres.conf" in said(c.conf, tmp_path / "e")


def test_a_node_without_gpus_is_named(tmp_path):
    with slurm.Cluster(tmp_path / "slurm", nodes=2, gpus=4, gres=["n1"]) as c:
        with slurm_daemon(tmp_path / "d", c) as d:
            assert "node n2 has no GPUs" in d.errors_with("no GPUs")
            assert d.wait(d.submit(command=["/bin/true"], gpus=4))["cause"] == "completed"


def programs(folder, without):
    """Those of stoker's but for one. They find each other in their own folder."""
    for path in STOKERD.parent.glob("stoker*"):
        if path.is_file() and path.name != without:
            shutil.copy(path, folder)


def run(cluster, folder):
    """The daemon of that folder."""
    where = folder / "d"
    where.mkdir()
    (where / "stoker.yaml").write_text(config(cluster.conf))
    return subprocess.run([folder / "stokerd", "--config", where / "stoker.yaml", "--state", where / "state", "--socket", folder / "s", "--listen", "off"],
                          text=True, capture_output=True, timeout=PATIENCE_S)


def test_stoker_libslurm_is_missing(cluster, tmp_path):
    programs(tmp_path, "stoker-libslurm")
    p = run(cluster, tmp_path)
    assert p.returncode != 0 and "libslurm-dev" in p.stderr


def test_the_library_of_slurm_is_missing(cluster, tmp_path):
    """As where the package of another machine was installed: the loader does not start stoker-libslurm."""
    programs(tmp_path, "stoker-libslurm")
    program = re.sub(rb"libslurm\.so\.", b"libslurm.no.", (STOKERD.parent / "stoker-libslurm").read_bytes())
    (tmp_path / "stoker-libslurm").write_bytes(program)
    (tmp_path / "stoker-libslurm").chmod(0o755)
    p = run(cluster, tmp_path)
    assert p.returncode != 0 and "libslurm.no." in p.stderr
    assert "stoker-libslurm cannot be loaded" in p.stderr and "apt install libslurm" in p.stderr and "slurm.conf that" not in p.stderr


def test_there_is_no_slurm_conf(tmp_path):
    words = said(tmp_path / "nothing" / "slurm.conf", tmp_path)
    assert f"cannot read {tmp_path}/nothing/slurm.conf: No such file" in words and "slurm.conf in stoker's configuration" in words


def test_slurm_conf_makes_no_sense(tmp_path):
    (tmp_path / "slurm.conf").write_text("Cluster=\n")
    words = said(tmp_path / "slurm.conf", tmp_path / "d")
    assert "slurm.conf in stoker's configuration" in words
