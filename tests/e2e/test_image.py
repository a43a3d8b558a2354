# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers, with the real podman, on a root file system made here: a shell and a few programs.

Podman works in a storage folder of its own, so that what it lists is ours. Where it cannot make a container
at all (no root, no right to mount) these tests are skipped and say what it said. Docker and apptainer are
not run: of those the command line is tested, with stand-ins (tests/unit/engine/test_local_env.c)."""
import contextlib
import json
import os
import pathlib
import pty
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from daemon import STOKER, Daemon
from patience import until

PROGRAMS = ("sh", "cat", "id", "ls", "sleep", "stat", "head", "tail", "true", "env")
UNIFIED = pathlib.Path("/sys/fs/cgroup/unified")


def make_root(folder):
    for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp"):
        (folder / name).mkdir(parents=True)
    for name in PROGRAMS:
        path = os.path.realpath(shutil.which(name, path="/usr/bin:/bin"))
        shutil.copy(path, folder / "bin" / name)
        needs = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for lib in re.findall(r"(/\S+)", needs):
            target = folder / lib[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(lib), target)
    return folder


def make_podman(folder):
    """The real podman with a storage of its own. Its crun refuses machines where a cgroup v2 tree with
    controllers in it lies beside v1: there it is run where that tree is not mounted."""
    hide = UNIFIED / "cgroup.controllers"
    begin = ""
    if hide.exists() and hide.read_text().strip():
        begin = f"unshare --mount sh -c 'umount {UNIFIED}; exec \"$0\" \"$@\"' "
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "podman"
    program.write_text(f"#!/bin/sh\nexec {begin}/usr/bin/podman --root {folder}/storage --runroot {folder}/run "
                       f"--tmpdir {folder}/tmp --cgroup-manager cgroupfs \"$@\"\n")
    program.chmod(0o755)
    return program


class Machine:
    """A daemon, a root file system and a podman."""

    def __init__(self, daemon, root, podman):
        self.daemon, self.root, self.podman = daemon, root, podman

    def submit(self, *words, **job):
        job.setdefault("image", str(self.root))
        job["envs"] = {"PATH": f"{self.podman.parent}:/usr/sbin:/usr/bin:/sbin:/bin", **job.get("envs", {})}
        return self.daemon.submit(command=list(words), **job)

    def sh(self, text, **job):
        return self.submit("/bin/sh", "-c", text, **job)

    def done(self, text, **job):
        number = self.sh(text, **job)
        return self.daemon.wait(number), self.daemon.log(number)

    def containers(self):
        return subprocess.run([self.podman, "ps", "--all", "--noheading"], capture_output=True, text=True,
                              check=True).stdout

    def log_with(self, number, text):
        self.daemon.until(number, "running")
        self.daemon.log_with(number, text)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    if os.geteuid() != 0 or not os.path.exists("/usr/bin/podman"):
        pytest.skip("needs root and podman")
    folder = tmp_path_factory.mktemp("podman")
    root, podman = make_root(folder / "root"), make_podman(folder)
    limit = os.sysconf("SC_OPEN_MAX")
    tried = subprocess.run([podman, "run", "--rm", "--network=host", "--cgroups=disabled", "--ulimit",
                            f"nofile={limit}:{limit}", "--ulimit", "nproc=1024:1024", "--rootfs", f"{root}:O",
                            "/bin/true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip("podman cannot make a container here: " + tried.stderr.strip())
    return root, podman


@pytest.fixture
def machine(tmp_path, parts):
    with Daemon(tmp_path, gpus=4) as daemon:
        yield Machine(daemon, *parts)


def test_output_exit_code_and_surroundings(machine):
    (machine.daemon.folder / "data").write_text("from outside\n")
    job, log = machine.done("cat data; echo made inside >made; id -u; echo gpus=$CUDA_VISIBLE_DEVICES of $STOKER_JOB_ID;"
                            " echo first=$$; pwd; echo $TOKEN; ls /usr/bin 2>&1; echo oops >&2; exit 7",
                            gpus=2, envs={"TOKEN": "abc def"})
    assert (job["cause"], job["exit_code"]) == ("failed", 7)
    lines = log.splitlines()
    assert lines[:2] == ["from outside", "0"]
    assert lines[2] == f"gpus=0,1 of {job['id']}"
    assert lines[3:6] == ["first=1", str(machine.daemon.folder), "abc def"]
    assert "/usr/bin" in lines[6]  # the machine's programs are not there
    assert lines[7:] == ["oops"]
    assert (machine.daemon.folder / "made").read_text() == "made inside\n"
    assert machine.containers() == ""


def test_what_it_writes_beside_the_working_directory_is_thrown_away(machine):
    job, _ = machine.done("echo x >/bin/made && cat /bin/made")
    assert job["cause"] == "completed"
    assert not (machine.root / "bin/made").exists()


def test_a_script_and_setup_lines_run_inside(machine):
    number = machine.daemon.submit(script="#!/bin/sh\necho $WORD; ls /proc/1/root/bin | head -n1\n",
                                   setup="export WORD=ready", image=str(machine.root),
                                   envs={"PATH": f"{machine.podman.parent}:/usr/bin:/bin"})
    assert machine.daemon.wait(number)["cause"] == "completed"
    assert machine.daemon.log(number) == "ready\ncat\n"


def test_a_gang_is_a_container_for_each_task(machine):
    number = machine.sh("echo $RANK of $WORLD_SIZE sees $CUDA_VISIBLE_DEVICES first=$$ >rank.$RANK", tasks=2, gpus=1)
    assert machine.daemon.wait(number)["cause"] == "completed"
    assert (machine.daemon.folder / "rank.0").read_text() == "0 of 2 sees 0 first=1\n"
    assert (machine.daemon.folder / "rank.1").read_text() == "1 of 2 sees 1 first=1\n"
    assert machine.containers() == ""


def test_items_of_a_batch_follow_each_other(machine):
    number = machine.daemon.submit(command=["/bin/sh", "-c", "echo item {}"], items=["a", "b", "c"], workers=1,
                                   image=str(machine.root), envs={"PATH": f"{machine.podman.parent}:/usr/bin:/bin"})
    assert machine.daemon.wait(number)["cause"] == "completed"
    assert machine.containers() == ""


def test_a_program_that_is_not_there_is_told(machine):
    number = machine.submit("/bin/nothing")
    assert machine.daemon.wait(number)["exit_code"] == 127
    assert "/bin/nothing" in machine.daemon.log(number)


@pytest.mark.parametrize("text", ["echo up; sleep 1000", "echo up; sleep 1000 & sleep 1001; wait"])
def test_cancel_ends_what_is_inside_at_once(machine, text):
    number = machine.sh(text, grace_s=600)  # nothing inside handles SIGTERM: the grace is not used up
    machine.log_with(number, "up\n")
    machine.daemon.post(f"/v1/jobs/{number}/cancel")
    assert machine.daemon.wait(number)["cause"] == "cancelled"
    assert machine.containers() == ""
    until(lambda: not machine.daemon.processes())  # its supervisor tells the end and is gone a moment later


def test_cancel_leaves_time_to_a_program_that_handles_sigterm(machine):
    number = machine.sh("trap 'echo saving; sleep 1; echo saved; exit 3' TERM; echo up; while :; do sleep 0.1; done",
                        grace_s=60)
    machine.log_with(number, "up\n")
    machine.daemon.post(f"/v1/jobs/{number}/cancel")
    assert machine.daemon.wait(number)["cause"] == "cancelled"
    assert machine.daemon.log(number).endswith("saving\nsaved\n")
    assert machine.containers() == ""


def test_what_ignores_sigterm_is_killed_after_its_grace(machine):
    number = machine.sh("trap '' TERM; echo up; while :; do sleep 1; done", grace_s=1)
    machine.log_with(number, "up\n")
    machine.daemon.post(f"/v1/jobs/{number}/cancel")
    assert machine.daemon.wait(number)["cause"] == "cancelled"
    assert machine.containers() == ""


def test_cancel_while_podman_is_on_its_way(machine):
    for pause in (0, 0.02, 0.05, 0.1, 0.15, 0.2):
        number = machine.sh("sleep 1000", grace_s=600)
        machine.daemon.until(number, "running")
        time.sleep(pause)
        machine.daemon.post(f"/v1/jobs/{number}/cancel")
        assert machine.daemon.wait(number)["cause"] == "cancelled"
        assert machine.containers() == ""


def test_the_time_limit_holds(machine):
    number = machine.sh("echo up; sleep 1000", time_limit_s=2)
    assert machine.daemon.wait(number)["cause"] == "timeout"
    assert machine.containers() == ""


def test_the_checkpoint_signal_reaches_the_program_and_not_podman(machine):
    number = machine.sh("trap 'echo saved >saved; exit 75' USR1; echo up $STOKER_RESTARTS; "
                        "[ -e saved ] && exit 0; while :; do sleep 0.1; done",
                        signal={"signal": "USR1", "seconds": 60}, retry={"exit_codes": [75], "error": 3})
    machine.log_with(number, "up 0\n")
    machine.daemon.post(f"/v1/jobs/{number}/requeue")
    assert machine.daemon.wait(number)["cause"] == "completed"
    assert machine.daemon.log(number).endswith("up 1\n")
    assert machine.containers() == ""


def test_suspend_and_resume(machine):
    number = machine.sh("i=0; while [ $i -lt 40 ] || [ ! -e go ]; do i=$((i+1)); echo $i; sleep 0.05; done", gpus=1)
    machine.log_with(number, "5\n")
    machine.daemon.post(f"/v1/jobs/{number}/suspend")
    machine.daemon.until(number, "suspended")
    one = machine.daemon.log(number)
    time.sleep(0.5)
    assert machine.daemon.log(number) == one
    (machine.daemon.folder / "go").touch()
    machine.daemon.post(f"/v1/jobs/{number}/resume")
    assert machine.daemon.wait(number)["cause"] == "completed"
    steps = machine.daemon.log(number).splitlines()
    assert len(steps) >= 40 and steps == [str(i + 1) for i in range(len(steps))]


def test_cancel_while_suspended(machine):
    number = machine.sh("echo up; sleep 1000", gpus=1)
    machine.log_with(number, "up\n")
    machine.daemon.post(f"/v1/jobs/{number}/suspend")
    machine.daemon.until(number, "suspended")
    machine.daemon.post(f"/v1/jobs/{number}/cancel")
    assert machine.daemon.wait(number)["cause"] == "cancelled"
    assert machine.containers() == ""


def test_a_killed_daemon_finds_it_again(machine):
    number = machine.sh("echo up; while [ ! -e go ]; do sleep 0.1; done; echo on; exit 9")
    machine.log_with(number, "up\n")
    before = machine.daemon.job(number)
    machine.daemon.kill()
    machine.daemon.start()
    after = machine.daemon.job(number)
    assert (after["state"], after["started"]) == ("running", before["started"])
    (machine.daemon.folder / "go").touch()
    job = machine.daemon.wait(number)
    assert (job["cause"], job["exit_code"]) == ("failed", 9)
    assert machine.daemon.log(number) == "up\non\n"
    assert machine.containers() == ""


def test_a_killed_shim_leaves_nothing_behind(machine):
    number = machine.sh("echo up; sleep 1000", grace_s=1)
    machine.log_with(number, "up\n")
    run = next(p for p in (machine.daemon.state / "run").glob(f"{number}.*") if p.suffix != ".sock")
    pid = json.loads(run.read_text().splitlines()[0])["pid"]
    os.kill(pid, signal.SIGKILL)
    machine.daemon.post(f"/v1/jobs/{number}/cancel")
    assert machine.daemon.wait(number)["state"] == "done"
    until(lambda: not machine.containers())  # conmon cleans up, and nobody waits for it


def test_its_memory_is_limited_by_the_jobs_cgroup(machine):
    if not any(pathlib.Path("/sys/fs/cgroup", c).exists() for c in ("memory", "cgroup.controllers")):
        pytest.skip("no memory cgroup here")
    job, log = machine.done("cat /proc/self/cgroup; tail /dev/zero", mem_mib=64, cpus=1)
    if f"stoker/{job['id']}." not in log:
        pytest.skip("no cgroup can be made here")
    assert job["cause"] == "out_of_memory", (job, log)
    assert machine.containers() == ""


def test_a_terminal_inside(machine):
    master, slave = pty.openpty()
    env = {**os.environ, "STOKER_SOCKET": str(machine.daemon.socket), "TERM": "xterm",
           "PATH": f"{machine.podman.parent}:{os.environ['PATH']}"}
    with subprocess.Popen([STOKER, "run", "-it", "--image", machine.root, "--", "/bin/sh", "-c",
                           "[ -t 0 ] && echo ask && read x && echo got $x; exit 4"], stdin=slave, stdout=slave,
                          stderr=slave, cwd=machine.daemon.folder, env=env, start_new_session=True) as process:
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(master, 4096):
                said += chunk
                if said.endswith(b"ask\r\n"):
                    os.write(master, b"words\r")
        os.close(master)
        assert process.wait(60) == 4, said
    assert b"got words" in said
    assert machine.containers() == ""


# What podman misses on small machines, in a mount namespace of the daemon's own: /dev/mqueue.
PREPARE = f"""umount {UNIFIED} 2>/dev/null
if [ ! -e /dev/mqueue ]; then
    mount -t tmpfs none "$1" && mkdir "$1/up" "$1/work" "$1/pts" "$1/shm"
    mount --bind /dev/pts "$1/pts" && mount --bind /dev/shm "$1/shm"
    mount -t overlay none -o "lowerdir=/dev,upperdir=$1/up,workdir=$1/work" /dev
    mount --move "$1/pts" /dev/pts && mount --move "$1/shm" /dev/shm
    mkdir /dev/mqueue && mount -t mqueue none /dev/mqueue
fi
shift
exec "$@"
"""


class Prepared(Daemon):
    def command(self):
        (self.folder / "over").mkdir(exist_ok=True)
        return ["unshare", "--mount", "sh", "-c", PREPARE, "prepare", str(self.folder / "over"), *super().command()]


def processes_of(uid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            text = path.read_text()
            if f"Uid:\t{uid}\t" in text and "State:\tZ" not in text:
                found.append(int(path.parent.name))
    return found


def test_a_user_that_is_not_root(parts):
    """Podman without root: root inside is the user outside, and nothing of podman is left when the job has ended."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, Prepared(name) as daemon:
        folder, home, user = pathlib.Path(name), pathlib.Path(name, "home"), pwd.getpwnam("games")  # of whom there are no processes
        uid, gid = user.pw_uid, user.pw_gid
        folder.chmod(0o755)
        shutil.copytree(parts[0], home / "root")
        (home / "run").mkdir(mode=0o700)
        subprocess.run(["chown", "-R", f"{uid}:{gid}", home], check=True)
        become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        env = {"STOKER_SOCKET": str(daemon.socket), "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"),
               "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}

        def as_user(*words):
            return subprocess.run([*become, *words], cwd=home, env=env, capture_output=True, text=True, check=False)

        tried = as_user("unshare", "--user", "true")
        if tried.returncode != 0:
            pytest.skip("no user namespaces here: " + tried.stderr.strip())
        done = as_user(STOKER, "run", "--gpus", "2", "--image", home / "root", "--", "/bin/sh", "-c",
                       "id -u; echo $CUDA_VISIBLE_DEVICES; echo x >made; exit 3")
        assert done.returncode == 3, done
        assert done.stdout.endswith("\n0\n0,1\n")
        assert (home / "made").stat().st_uid == uid
        assert as_user(STOKER, "submit", "--image", home / "root", "--grace", "600s", "--", "/bin/sh", "-c",
                       "echo up; sleep 1000").stdout == "Submitted job 2\n"
        Machine(daemon, *parts).log_with(2, "up\n")
        daemon.post("/v1/jobs/2/cancel")
        assert daemon.wait(2)["cause"] == "cancelled"
        assert processes_of(uid) == []
        assert as_user("podman", "ps", "--all", "--noheading").stdout == ""
        for pid in processes_of(uid):  # what that last command of ours left
            os.kill(pid, signal.SIGTERM)
