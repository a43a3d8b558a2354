# SPDX-License-Identifier: Apache-2.0
"""A whole Slurm cluster on this machine, for comparison and for tests: munged, slurmctld and several
slurmd from Debian's packages, with pretended GPUs, everything on loopback and below one folder.

    with Cluster(folder, nodes=4, gpus=8) as cluster:
        cluster.run("sinfo")
"""
import contextlib
import datetime
import glob
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from daemon import STOKER
from patience import PATIENCE_S, until

PACKAGES = ["munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"]
PLUGIN_DIR = next(iter(glob.glob("/usr/lib/*/slurm-wlm")), "/usr/lib/slurm-wlm")
OUR_PLUGINS = STOKER.parent / "src" / "slurmctld"


def installed():
    return all(shutil.which(p) for p in ("munged", "slurmctld", "slurmd", "sbatch"))


@contextlib.contextmanager
def open_folder():
    """One that other users may look into, which pytest's own may not be. What still writes there when it is to go (jobs that are about to end) is waited for."""
    folder = tempfile.mkdtemp(prefix="stoker-slurm-")
    os.chmod(folder, 0o755)
    try:
        yield folder
    finally:
        until(lambda: shutil.rmtree(folder, ignore_errors=True) or not os.path.exists(folder), say=f"{folder} is gone")


TAKEN = []  # what says that ports are ours, until this process ends


def free_port():
    """A port that stays free until somebody binds it, now or after a restart: below those that the kernel gives to anybody who connects
    (one that it chose itself may be in use a moment later), and not one of another test's. Who has one has a name in the abstract namespace."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first = int(f.read().split()[0])
    for port in random.sample(range(max(1024, first - 15000), first), 1000):
        mine = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.socket() as s:
            mine.bind(f"\0stoker-test-port-{port}")
            s.bind(("127.0.0.1", port))
            TAKEN.append(mine)
            return port
        mine.close()
    raise RuntimeError("no port is free")


def wait_for(what, timeout=PATIENCE_S):
    until(what, timeout)


def gone(pid):
    """Whether a process has ended, buried or not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def children(parent):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            if int(f.read().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(pid))
    return found


class Cluster:
    def __init__(self, folder, nodes=4, gpus=8, cpus=64, mem_mib=65536,
                 scheduler="batch_sched_delay=0,sched_min_interval=2000", extra="", plugins=False, managed=None,
                 accounting=False, settings=None, gres=True, exact=False):
        """'plugins': our sched and jobcomp plugins are in slurmctld; 'managed': partitions whose jobs our job_submit plugin holds (None: it is not there);
        'accounting': with slurmdbd, and MariaDB behind it; 'settings': of slurm.conf, over ours;
        'gres': whether nodes have GPUs, or which do; 'exact': each GPU has a type of its own, g0 and so on."""
        self.folder = str(folder)
        self.nodes, self.gpus, self.cpus, self.mem_mib = nodes, gpus, cpus, mem_mib
        self.scheduler, self.extra, self.plugins, self.managed = scheduler, extra, plugins, managed
        self.accounting, self.settings, self.ports = accounting, settings or {}, {}
        self.gres, self.exact = gres, exact
        self.dbd = self.database = None
        self.conf = f"{self.folder}/etc/slurm.conf"
        self.env = {**os.environ, "SLURM_CONF": self.conf}

    def __enter__(self):
        try:
            self.up()
        except BaseException:  # nobody else ends what there is of it
            self.down()
            raise
        return self

    def __exit__(self, *_):
        self.down()

    def run(self, *argv, check=True, **more):
        return subprocess.run(argv, env=self.env, check=check, text=True, capture_output=True, **more)

    def _write(self):
        for name in ("etc", "state", "log", "pid", "munge/run", "dev"):
            os.makedirs(f"{self.folder}/{name}", exist_ok=True)
        for name in ("", "etc", "munge", "munge/run"):
            os.chmod(f"{self.folder}/{name}", 0o755)  # munged insists
        for k in range(self.nodes):
            os.makedirs(f"{self.folder}/spool/n{k + 1}", exist_ok=True)
        for g in range(self.gpus):  # must be character devices, or jobs see no GPU
            link = f"{self.folder}/dev/nvidia{g}"
            if not os.path.islink(link):
                os.symlink("/dev/null", link)
        key = f"{self.folder}/munge/key"
        if not os.path.exists(key):
            with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
                f.write(os.urandom(1024))
        with open(f"{self.folder}/etc/gres.conf", "w") as f:
            f.write("AutoDetect=off\n")
            for name in self._with_gpus():
                for kind, which in self._kinds():
                    f.write(f"NodeName={name} Name=gpu Type={kind} File={self.folder}/dev/nvidia{which}\n")
        with open(f"{self.folder}/etc/cgroup.conf", "w") as f:
            f.write("CgroupPlugin=cgroup/v1\n")  # nothing here uses cgroups, and a newer slurmd does not start where it finds none by itself
        if self.managed is not None:
            self.manage(f"Partitions={','.join(self.managed)}\n")
        with open(self.conf, "w") as f:
            f.write(self._conf())

    def _with_gpus(self):
        return [f"n{k + 1}" for k in range(self.nodes) if self.gres is True or (self.gres and f"n{k + 1}" in self.gres)]

    def _port(self, what):
        if what not in self.ports:
            self.ports[what] = free_port()
        return self.ports[what]

    def _kinds(self):
        """GPU types and the indices of each."""
        return [(f"g{g}", g) for g in range(self.gpus)] if self.exact else [("h100", f"[0-{self.gpus - 1}]")]

    def _conf(self):
        user = subprocess.run(["id", "-un"], text=True, capture_output=True).stdout.strip()
        settings = {
            "ClusterName": "compare", "SlurmctldHost": f"{socket.gethostname().split('.')[0]}(127.0.0.1)",
            "SlurmUser": user, "SlurmdUser": user,
            "AuthType": "auth/munge", "AuthInfo": f"socket={self.folder}/munge/run/sock", "CredType": "cred/munge",
            "SlurmctldPort": self._port("ctld"), "SlurmdPort": self._port("slurmd"),
            "StateSaveLocation": f"{self.folder}/state", "SlurmdSpoolDir": f"{self.folder}/spool/%n",
            "SlurmctldPidFile": f"{self.folder}/pid/ctld", "SlurmdPidFile": f"{self.folder}/pid/%n",
            "SlurmctldLogFile": f"{self.folder}/log/ctld", "SlurmdLogFile": f"{self.folder}/log/%n",
            "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/none",
            "JobCompType": "jobcomp/none", "MpiDefault": "none", "SwitchType": "switch/none",
            "PropagateResourceLimits": "NONE", "SlurmdParameters": "config_overrides",
            "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core_Memory", "DefMemPerCPU": 16,
            "GresTypes": "gpu", "SchedulerType": "sched/backfill", "SchedulerParameters": self.scheduler,
            "PriorityType": "priority/basic", "MaxJobCount": 200000, "MaxArraySize": 100001, "MinJobAge": 300,
            "ReturnToService": 2, "SlurmdTimeout": 300, "MessageTimeout": 60, "KillWait": 5, "CompleteWait": 0,
        }
        if self.plugins or self.managed is not None:
            settings["PluginDir"] = f"{OUR_PLUGINS}:{PLUGIN_DIR}"
        if self.plugins:
            settings |= {"SchedulerType": "sched/stoker", "JobCompType": "jobcomp/stoker"}
        if self.managed is not None:
            settings["JobSubmitPlugins"] = "stoker"
        if self.accounting:
            settings |= {"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": "127.0.0.1",
                         "AccountingStoragePort": self._port("dbd"), "AccountingStorageTRES": "gres/gpu",
                         "AccountingStoragePass": f"{self.folder}/munge/run/sock"}
        lines = [f"{k}={v}" for k, v in (settings | self.settings).items()] + [self.extra]
        gres = ",".join(f"gpu:g{g}:1" for g in range(self.gpus)) if self.exact else f"gpu:h100:{self.gpus}"
        for k in range(self.nodes):
            lines.append(f"NodeName=n{k + 1} NodeHostname=n{k + 1} NodeAddr=127.0.0.1 Port={self._port(k)} "
                         f"CPUs={self.cpus} Sockets=1 CoresPerSocket={self.cpus} ThreadsPerCore=1 "
                         f"RealMemory={self.mem_mib} State=UNKNOWN" + (f" Gres={gres}" if f"n{k + 1}" in self._with_gpus() else ""))
        lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO")
        return "\n".join(lines) + "\n"

    def up(self):
        self._write()
        run = f"{self.folder}/munge/run"
        subprocess.run(["munged", "--force", f"--socket={run}/sock", f"--key-file={self.folder}/munge/key",
                        f"--log-file={run}/log", f"--pid-file={run}/pid", f"--seed-file={run}/seed"], check=True)
        if self.accounting:
            self._start_accounting()
        self.run("slurmctld", "-f", self.conf)
        for k in range(self.nodes):
            self.run("slurmd", "-f", self.conf, "-N", f"n{k + 1}")
        self.wait_nodes()

    def _start_accounting(self):
        db, run = f"{self.folder}/db", f"{self.folder}/pid"
        for _ in range(3):  # on a machine that is busy it may give up
            made = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={db}", "--user=root", "--skip-test-db"], text=True, capture_output=True)
            if made.returncode == 0:
                break
            shutil.rmtree(db, ignore_errors=True)
        assert made.returncode == 0, made.stdout + made.stderr
        self.database = subprocess.Popen(["mariadbd", "--no-defaults", f"--datadir={db}", f"--socket={db}.sock", f"--port={self._port('db')}", "--user=root",
                                          "--bind-address=127.0.0.1", f"--pid-file={run}/db", "--innodb-buffer-pool-size=32M", f"--log-error={self.folder}/log/db"])
        wait_for(lambda: subprocess.run(["mariadb", "--no-defaults", "-S", f"{db}.sock", "-u", "root", "-e",
                                         "grant all on *.* to 'slurm'@'127.0.0.1' identified by 'slurm'"], capture_output=True).returncode == 0)
        path = f"{self.folder}/etc/slurmdbd.conf"
        user = subprocess.run(["id", "-un"], text=True, capture_output=True).stdout.strip()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(f"AuthType=auth/munge\nAuthInfo=socket={self.folder}/munge/run/sock\nDbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={self._port('dbd')}\n"
                    f"SlurmUser={user}\nLogFile={self.folder}/log/dbd\nPidFile={run}/dbd\nStorageType=accounting_storage/mysql\n"
                    f"StorageHost=127.0.0.1\nStoragePort={self._port('db')}\nStorageUser=slurm\nStoragePass=slurm\nStorageLoc=acct\n")
        self.start_dbd()

    def start_dbd(self):
        with open(f"{self.folder}/log/dbd.out", "a") as out:
            self.dbd = subprocess.Popen(["slurmdbd", "-D"], env={**self.env, "SLURM_CONF": f"{self.folder}/etc/slurmdbd.conf"}, stdout=out, stderr=out)

        def up():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port("dbd")), 1):
                return True
        wait_for(up)

    def _stop_accounting(self):
        for process in filter(None, (self.dbd, self.database)):
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def resize(self, nodes):
        """So many nodes from now on: slurm.conf is another, and slurmctld is started again."""
        before, self.nodes = self.nodes, nodes
        self._write()
        pid = until(lambda: self.process("pid/ctld"))
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: gone(pid))
        for k in range(nodes, before):
            if pid := self.process(f"pid/n{k + 1}"):
                os.kill(pid, signal.SIGTERM)
        self.start_controller()
        self.wait_controller()
        for k in range(before, nodes):
            self.start_node(f"n{k + 1}")

    def wait_nodes(self):
        until(lambda: len(set(self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N", check=False).stdout.split())) >= self.nodes,
              say=f"the Slurm cluster is up: see {self.folder}/log", pause=0.2)

    def stop_controller(self):
        """kill -9."""
        pid = until(lambda: self.process("pid/ctld"))
        os.kill(pid, signal.SIGKILL)
        until(lambda: gone(pid))  # what it had bound is free then

    def saved(self, job):
        """Waits until slurmctld has written down all that it knows now, which it does every five seconds: a word that the job gets is there. The job must be
        one whose comment nobody needs."""
        word = f"saved-{time.time_ns()}"
        self.run("scontrol", "update", f"jobid={job}", f"comment={word}")

        def there():
            with contextlib.suppress(FileNotFoundError):
                return word.encode() in pathlib.Path(self.folder, "state", "job_state").read_bytes()
        wait_for(there)

    def manage(self, text):
        """What stoker.conf says from now on, all of it at once."""
        path = f"{self.folder}/etc/stoker.conf"
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def logged(self, name, words):
        """When this daemon's log ("ctld", "n1") has a line with these words, a regular expression: Unix times."""
        with open(f"{self.folder}/log/{name}", errors="replace") as f:
            return [datetime.datetime.fromisoformat(line[1:24]).timestamp() for line in f if re.search(words, line)]

    def processes(self, name, folder):
        """Those of jobs on the node that were started in the folder, and those that watch over jobs there."""
        found, log = [], f"{self.folder}/log/{name}"
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as f:
                    there = f"SLURMD_NODENAME={name}".encode() in f.read().split(b"\0") and os.readlink(f"/proc/{pid}/cwd") == str(folder)
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    watches = f.read().strip() == "slurmstepd" and log in (os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir())
                if there or watches:
                    found.append(int(pid))
        return found

    def stop_node(self, name, folder=None):
        """kill -9 of its slurmd, and of all of its jobs' processes that were started in this folder, or are about to be; Slurm is told."""
        slurmd = until(lambda: self.process(f"pid/{name}"))
        os.kill(slurmd, signal.SIGSTOP)  # it starts nothing more
        pids = [slurmd, *(children(slurmd) if folder else [])]
        while pids:
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            pids = self.processes(name, folder) if folder else []
        self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=killed")

    def start_node(self, name):
        self.run("slurmd", "-f", self.conf, "-N", name)

    def start_controller(self):
        self.run("slurmctld", "-f", self.conf)

    def wait_controller(self):
        until(lambda: self.run("scontrol", "show", "config", check=False).returncode == 0, say=f"slurmctld answers: see {self.folder}/log", pause=0.1)

    def resume(self):
        """Nodes that we or Slurm (it does, when it finds one of its numbers used again) have drained."""
        for name in self.run("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").stdout.split():
            self.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)

    def idle(self):
        """Nothing waits, runs, or is still completing."""
        until(lambda: not self.run("squeue", "-h", "-t", "R,CG,PD").stdout.strip(), say=lambda: self.run("squeue", "-h").stdout, pause=0.1)

    def _ours(self, pid):
        """Whether it is one of this cluster's daemons, and not another with the number of one that has ended."""
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            return f"{self.folder}/".encode() in f.read()
        return False

    def process(self, name):
        """The daemon of which this file has the pid, while it runs; None: it has not written that down yet, or has ended."""
        with contextlib.suppress(OSError, ValueError), open(f"{self.folder}/{name}") as f:
            pid = int(f.read())
            return pid if self._ours(pid) else None
        return None

    def pids(self):
        names = [f"pid/{n}" for n in os.listdir(f"{self.folder}/pid") if n not in ("db", "dbd")]  # those have somebody who waits for them
        return [pid for name in [*names, "munge/run/pid"] if (pid := self.process(name))]

    def down(self):
        try:
            self._down()
        finally:
            if self.accounting:
                self._stop_accounting()

    def _end_jobs(self):
        """Of all users: what they leave running nobody ends later."""
        for state in ("PENDING", "RUNNING"):
            self.run("scancel", "-t", state, check=False)
        with contextlib.suppress(AssertionError):  # a node may be gone
            until(lambda: not self.run("squeue", "-h", "-t", "R,CG", check=False).stdout, 15, pause=0.1)

    def _down(self):
        if self.process("pid/ctld"):  # else each command would wait for it for a minute
            self._end_jobs()
        pids = self.pids()
        for sig, tries in ((signal.SIGTERM, 100), (signal.SIGKILL, 20)):
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, sig)
            while (pids := [pid for pid in pids if self._ours(pid)]) and (tries := tries - 1):
                time.sleep(0.05)
