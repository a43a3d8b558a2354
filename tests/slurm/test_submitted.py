# SPDX-License-Identifier: Apache-2.0
"""What is sent by `stoker submit` and the API, and run by a real Slurm: it is what it would be without Slurm."""
import pytest
import slurm
from slurm_daemon import needed, slurm_daemon

pytestmark = needed
ARRAY = "$STOKER_ARRAY_ID $STOKER_ARRAY_INDEX $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT " \
        "$SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=4, extra="RequeueExitHold=86", settings={"PropagateResourceLimits": "NOFILE,CORE"}) as c:
        yield c


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, args=["--paranoid"]) as d:
        yield d


@pytest.mark.parametrize("what", [{"command": ["/bin/sh", "-c", f"echo {ARRAY}"]}, {"script": f"#!/bin/bash\necho {ARRAY}\n"}])
@pytest.mark.parametrize("array,indices,said", [({"first": 2, "last": 7, "step": 2}, (2, 4, 6), "3 2 6 2"),
                                                ({"indices": [9, 1]}, (1, 9), "2 1 9 1")])
def test_elements_of_an_array_know_who_they_are(daemon, tmp_path, what, array, indices, said):
    first = daemon.submit(array=array, gpus=1, workdir=str(tmp_path), **what)
    for n, index in enumerate(indices, first):
        job = daemon.wait(n)
        assert job["cause"] == "completed" and job["array_index"] == index
        assert job["stdout"] == f"{tmp_path}/stoker-{first}_{index}.out"
        assert daemon.log(n) == f"{first} {index} {first} {index} {said}\n"


def test_names_of_output_files_know_of_arrays(daemon, tmp_path):
    first = daemon.submit(command=["/bin/sh", "-c", "echo out; echo err >&2"], array={"first": 5, "last": 6}, name="x", stdout="%x-%A_%3a.out", stderr="%j.err",
                          workdir=str(tmp_path))
    for n, index in ((first, 5), (first + 1, 6)):
        assert daemon.wait(n)["cause"] == "completed"
        assert (tmp_path / f"x-{first}_00{index}.out").read_text() == daemon.log(n) == "out\n"
        assert (tmp_path / f"{n}.err").read_text() == daemon.log(n, "?stream=stderr") == "err\n"


def test_a_file_that_has_its_nodes_name_is_found(daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "echo out; echo err >&2; while [ ! -e go ]; do sleep 0.1; done"], stdout="out-%N", stderr="err-%N", nodelist=["n2"],
                      workdir=str(tmp_path))
    daemon.log_with(n, "out\n")
    (tmp_path / "go").touch()
    job = daemon.wait(n)
    assert [job["stdout"], job["stderr"]] == [f"{tmp_path}/out-n2", f"{tmp_path}/err-n2"]
    assert daemon.log(n) == "out\n" and daemon.log(n, "?stream=stderr") == "err\n"


def test_one_that_is_no_element_hears_nothing_of_arrays(daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "env | grep -c ARRAY"], workdir=str(tmp_path))
    daemon.wait(n)
    assert daemon.log(n) == "0\n"


@pytest.mark.parametrize("key,value", [("gpus", 0.5), ("share", "time"), ("mig", "1g.10gb"), ("gpu_mem_mib", 1000), ("image", "debian:12"), ("interactive", True),
                                       ("items", ["a"]), ("secrets", {"A": "/etc/hostname"}), ("pids", 10), ("log_max_mib", 1), ("grace_s", 0), ("idle", {"end_s": 60})])
def test_what_slurm_cannot_do_is_refused_with_its_name(daemon, key, value):
    a = daemon.client().post("/v1/jobs", {"jobs": [{"command": ["/bin/true"], key: value}]})
    assert a.status >= 400 and f"{key}: Slurm runs the jobs here" in a.message, a.message


def test_umask_and_limits_go_along(daemon, tmp_path):
    n = daemon.submit(command=["/bin/sh", "-c", "umask; ulimit -n; ulimit -c; env | grep -c SLURM_RLIMIT"], umask=0o27, rlimits={"nofile": [321, 400], "core": [0, -1]},
                      workdir=str(tmp_path))
    daemon.wait(n)
    assert daemon.log(n) == "0027\n321\n0\n0\n"
    n = daemon.submit(command=["/bin/sh", "-c", "umask; ulimit -c"], rlimits={"core": [-1, -1]}, workdir=str(tmp_path))
    daemon.wait(n)
    assert daemon.log(n) == "0022\nunlimited\n"


def test_an_exclusive_job_has_its_node_alone_in_slurm(daemon, cluster, tmp_path):
    n = daemon.submit(command=["/bin/sleep", "1000"], gpus=1, exclusive=True, workdir=str(tmp_path))
    job = daemon.until(n, "running")
    shown = cluster.run("scontrol", "show", "job", str(job["slurm"]["job"])).stdout
    assert "OverSubscribe=NO" in shown and job["gpus"] == 1
    other = daemon.submit(command=["/bin/sleep", "1000"], gpus=1, workdir=str(tmp_path))
    assert daemon.until(other, "running")["node"] != job["node"]
    assert daemon.job(n)["state"] == "running" and daemon.job(n)["slurm"]["restarts"] == 0
    assert sum(g["count"] for g in daemon.job(n)["slurm"]["pieces"][0]["gpus"]) == 4


def test_setup_and_venv_come_before_a_script(daemon, tmp_path):
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/activate").write_text("FROM_VENV=yes; export FROM_VENV\n")
    script = "#!/usr/bin/env python3\nimport os, sys\nprint(os.environ['FROM_VENV'], os.environ['FROM_SETUP'], sys.argv[1:])"
    n = daemon.submit(script=script, args=["it's", "$1"], setup="export FROM_SETUP=too", venv=str(tmp_path / "venv"), workdir=str(tmp_path))
    assert daemon.wait(n)["cause"] == "completed"
    assert daemon.log(n) == "yes too [\"it's\", '$1']\n"


def test_a_setup_that_fails_ends_the_job(daemon, tmp_path):
    n = daemon.submit(command=["/bin/echo", "no"], setup="false\necho more", workdir=str(tmp_path))
    assert daemon.wait(n)["cause"] == "failed" and daemon.log(n) == ""


def test_each_task_runs_the_script_and_has_its_file(daemon, tmp_path):
    script = "echo $RANK of $WORLD_SIZE $1 $(cat)\nSTOKER_END_0\n"
    (tmp_path / "in").write_text("input")
    n = daemon.submit(script=script, args=["'x'"], gpus=1, tasks=4, tasks_per_node=2, stdout="out-%2t", stderr="err", stdin="in", workdir=str(tmp_path))
    daemon.wait(n)
    assert [(tmp_path / f"out-0{k}").read_text() for k in range(4)] == [f"{k} of 4 'x' input\n" for k in range(4)]
    assert [daemon.log(n, f"?task={k}") for k in range(4)] == [f"{k} of 4 'x' input\n" for k in range(4)]
    assert (tmp_path / "err").read_text().count("STOKER_END_0") == 4


def test_a_first_start_empties_the_file_and_a_restart_goes_on(daemon, tmp_path):
    (tmp_path / "out").write_text("old\n")
    script = "echo start ${SLURM_RESTART_COUNT:-0}; while [ ! -e done ]; do sleep 0.1; done"
    n = daemon.submit(command=["/bin/sh", "-c", script], gpus=1, stdout="out", open_mode="truncate", workdir=str(tmp_path))
    daemon.log_with(n, "start 0\n")
    daemon.post(f"/v1/jobs/{n}/requeue")
    daemon.log_with(n, "start 1\n")
    (tmp_path / "done").touch()
    daemon.wait(n)
    assert daemon.log(n).startswith("start 0\n") and daemon.log(n).endswith("start 1\n")  # Slurm says something in between


def test_it_is_warned_before_its_time_limit(daemon, tmp_path):
    script = "trap 'echo warned; exit 3' USR1; echo start; while :; do sleep 0.1; done"
    n = daemon.submit(command=["/bin/sh", "-c", script], gpus=1, time_limit_s=120, signal={"signal": "USR1", "seconds": 120}, workdir=str(tmp_path))
    done = daemon.wait(n)
    assert done["cause"] == "failed" and done["exit_code"] == 3 and "warned\n" in daemon.log(n)
