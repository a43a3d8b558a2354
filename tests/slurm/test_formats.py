# SPDX-License-Identifier: Apache-2.0
"""Every form that `stoker submit` takes (options, a job file in YAML, a script with #SBATCH lines, standard input), by the command, to a
real Slurm: each runs as it would without."""
import json
import os

import pytest
import slurm
from data import stoker_run
from slurm_daemon import clear, needed, slurm_daemon

pytestmark = needed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.Cluster(tmp_path_factory.mktemp("slurm"), nodes=2, gpus=4) as c:
        yield c


@pytest.fixture(scope="module")
def daemon(cluster, tmp_path_factory):
    with slurm_daemon(tmp_path_factory.mktemp("stoker"), cluster, args=["--paranoid"]) as d:
        yield d


@pytest.fixture(name="cli")
def cli_of(daemon, cluster, tmp_path):
    """Runs commands in a folder of their own, and puts files there first."""
    def call(*args, files=None, **more):
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        return stoker_run(*args, env={**os.environ, "STOKER_SOCKET": str(daemon.socket), "LC_ALL": "C.UTF-8", "MINE": "it's mine"}, cwd=tmp_path, **more)

    call.daemon, call.folder = daemon, tmp_path
    yield call
    clear(daemon, cluster)


def submit(cli, *args, **more):
    out = cli("submit", "--json", *args, **more)
    assert out.returncode == 0, out
    reply = json.loads(out.stdout)
    return reply.get("id") or reply["first"]


def said(cli, number):
    """What a job that has ended well has said, as the command shows it."""
    out = cli("wait", str(number))
    assert out.returncode == 0, (out, cli("logs", str(number)))
    return cli("logs", str(number)).stdout


def test_options_and_a_command(cli):
    n = submit(cli, "--gpus", "2", "--time", "10m", "--name", "hello", "--cpus", "3", "--", "sh", "-c",
               "echo $STOKER_JOB_NAME $MINE; pwd; echo $CUDA_VISIBLE_DEVICES | tr , '\\n' | wc -l; umask; echo $SLURM_CPUS_PER_TASK")
    assert said(cli, n) == f"hello it's mine\n{cli.folder}\n2\n0022\n3\n"
    assert f"stoker-{n}.out" in cli("show", str(n)).stdout


def test_an_array_by_options(cli):
    first = submit(cli, "--array", "1-5:2%2", "--gpus", "1", "--", "sh", "-c", "echo element $STOKER_ARRAY_INDEX of $STOKER_ARRAY_ID")
    assert [said(cli, first + k) for k in range(3)] == [f"element {i} of {first}\n" for i in (1, 3, 5)]
    assert cli("logs", f"{first}_5").stdout == f"element 5 of {first}\n"


def test_a_program_of_the_current_folder_with_arguments(cli):
    (cli.folder / "p.py").write_text("#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1:])\n")
    (cli.folder / "p.py").chmod(0o755)
    assert said(cli, submit(cli, "p.py", "one", "it's two")) == "['one', \"it's two\"]\n"


def test_a_job_file(cli):
    text = """
name: yaml
resources: {accelerators: 'h100:1', cpus: 2}
envs: {GREETING: hello}
setup: |
  export PLACE=world
run: |
  set -eu
  echo $GREETING $PLACE $STOKER_JOB_NAME
  test -n "$BASH_VERSION"
"""
    assert said(cli, submit(cli, "job.yaml", files={"job.yaml": text})) == "hello world yaml\n"


def test_a_job_file_of_several_nodes_and_an_array(cli):
    text = """
num_nodes: 2
resources: {accelerators: 'h100:2'}
array: 3-4
run: |
  echo $STOKER_ARRAY_INDEX rank $RANK of $WORLD_SIZE
"""
    first = submit(cli, "job.yaml", files={"job.yaml": text})
    for n, index in ((first, 3), (first + 1, 4)):
        assert sorted(said(cli, n).splitlines()) == [f"{index} rank {k} of 2" for k in range(2)]


def test_a_batch_script(cli):
    text = """#!/bin/bash
#SBATCH --job-name=batch
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --time=10
#SBATCH --array=7-8
#SBATCH --output=%x-%A_%a.log
echo $SLURM_JOB_NAME $SLURM_ARRAY_TASK_ID $SLURM_NTASKS $1
srun sh -c 'echo task $SLURM_PROCID'
"""
    first = submit(cli, "job.sbatch", "arg", files={"job.sbatch": text})
    for n, index in ((first, 7), (first + 1, 8)):
        lines = said(cli, n).splitlines()
        assert lines[0] == f"batch {index} 2 arg" and sorted(lines[1:]) == ["task 0", "task 1"]
        assert (cli.folder / f"batch-{first}_{index}.log").read_text().splitlines() == lines


def test_options_win_over_the_script(cli):
    text = "#!/bin/sh\n#SBATCH -J inside --gpus=4\necho $SLURM_JOB_NAME $CUDA_VISIBLE_DEVICES | wc -w\n"
    n = submit(cli, "--name", "outside", "--gpus", "1", "job.sbatch", files={"job.sbatch": text})
    assert said(cli, n) == "2\n" and (cli.folder / f"slurm-{n}.out").exists()
    job = cli.daemon.job(n)
    assert job["name"] == "outside" and job["gpus"] == 1


def test_standard_input_and_stoker_run(cli):
    assert said(cli, submit(cli, "-", input="#!/bin/sh\necho from stdin\n")) == "from stdin\n"
    out = cli("run", "--quiet", "--gpus", "1", "--", "sh", "-c", "echo ran; exit 3")
    assert (out.returncode, out.stdout) == (3, "ran\n"), out


def test_what_cannot_be_is_said_by_the_command(cli):
    for args, word in ((["--gpus", "0.5", "--", "true"], "gpus"), (["--grace", "60", "--", "true"], "grace_s")):
        out = cli("submit", *args)
        assert out.returncode != 0 and f"{word}: Slurm runs the jobs here" in out.stderr, out
