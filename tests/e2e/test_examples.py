# SPDX-License-Identifier: Apache-2.0
"""The examples: those that need only Python are run, interrupted and resumed; the others must compile,
and every job file must be sound."""
import ast
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
import yaml
from small_daemon import SmallDaemon

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
JOB_FILES = sorted(p for p in EXAMPLES.glob("*/*.yaml") if p.parent.name != "day-and-night")  # that one is for the simulator
KEYS = {"name", "kind", "gpus", "tasks", "cpus", "time", "run", "envs", "retry", "signal", "suspend", "idle",
        "items", "workers", "array", "stdout"}


def plain_env(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("STOKER_", "SLURM_"))}
    env.update({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / "sdk" / "python")}, **more)
    return env


def copy(tmp_path, *folders):
    for folder in folders:
        shutil.copytree(EXAMPLES / folder, tmp_path / folder)
    return tmp_path / folders[0]


def python(folder, *args, **env):
    return subprocess.run([sys.executable, *args], cwd=folder, env=plain_env(**env), text=True,
                          capture_output=True, check=False)


def interrupted(daemon, command, folder):
    """Starts a job's program, signals it once it has made a step, and returns how it ended."""
    env = plain_env(STOKER_JOB_ID="5", STOKER_SOCKET=daemon.socket, PYTHONUNBUFFERED="1")
    with subprocess.Popen(command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE) as process:
        lines = [process.stdout.readline()]
        while not any(r.path == "/v1/jobs/5/control" for r in daemon.asked):
            assert process.poll() is None, "it ended before it asked"
        process.send_signal(signal.SIGUSR1)
        lines += process.stdout.read().splitlines()
        return process.wait(), lines


@pytest.fixture
def daemon(tmp_path):
    small = SmallDaemon(tmp_path / "s").start()
    small.on("GET", "/v1/jobs/5/control", {"checkpoint": False, "reason": None})
    small.on("POST", "/v1/jobs/5/report", {})
    small.on("POST", "/v1/jobs/5/requeue", {})
    yield small
    small.stop()


def test_the_plain_job_ends_with_the_same_numbers_after_an_interruption(tmp_path, daemon):
    folder = copy(tmp_path, "plain-python")
    whole = python(folder, "fit.py", "--steps", "3000", "--checkpoint", "whole.json")
    assert whole.returncode == 0, whole.stderr

    code, lines = interrupted(daemon, [sys.executable, "fit.py", "--steps", "3000", "--pause", "0.001"], folder)
    assert code == 75, lines
    assert lines[-1].startswith("saved step ")
    saved = json.loads((folder / "fit.json").read_text())["step"]
    assert 0 < saved < 3000
    sent = [r.body for r in daemon.asked if r.path.endswith("/report")]
    assert sent[0]["step"] == 1 and sent[0]["total"] == 3000 and "loss" in sent[0]["metrics"]
    assert sent[-1]["checkpoint"]["step"] == saved
    assert daemon.paths("POST")[-1] == "/v1/jobs/5/requeue"

    rest = python(folder, "fit.py", "--steps", "3000")
    assert rest.stdout.startswith("starting at step %d\n" % saved)
    assert rest.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1]
    assert (folder / "fit.json").read_text() == (folder / "whole.json").read_text()


def test_the_slurm_script_passes_the_signal_on_and_ends_as_its_program(tmp_path, daemon):
    folder = copy(tmp_path, "slurm", "plain-python")
    code, lines = interrupted(daemon, ["bash", "train.sbatch", "--steps", "3000", "--pause", "0.001"], folder)
    assert code == 75, lines
    assert 0 < json.loads((folder / "sbatch.json").read_text())["step"] < 3000
    done = subprocess.run(["bash", "train.sbatch", "--steps", "3000"], cwd=folder, env=plain_env(), text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("y = ")


def test_an_item_is_done_once(tmp_path):
    folder = copy(tmp_path, "batch-items")
    first = python(folder, "count.py", STOKER_ITEM="texts/one.txt")
    again = python(folder, "count.py", STOKER_ITEM="texts/one.txt")
    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert first.stdout.startswith("wrote") and again.stdout.startswith("already there")
    assert json.loads((folder / "counts" / "one.txt.json").read_text())[0] == ["the", 3]
    assert python(folder, "count.py", "texts/two.txt", "texts/three.txt").returncode == 0
    assert len(list((folder / "counts").iterdir())) == 3
    assert python(folder, "count.py", STOKER_ITEM="texts/none.txt").returncode != 0


def test_the_items_of_the_batch_are_there():
    spec = yaml.safe_load((EXAMPLES / "batch-items" / "job.yaml").read_text())
    for item in spec["items"]:
        assert (EXAMPLES / "batch-items" / item).is_file()


def test_the_grid_search_finds_its_best(tmp_path):
    folder = copy(tmp_path, "hpo-array")
    spec = yaml.safe_load((folder / "job.yaml").read_text())["array"]
    for index in range(spec["first"], spec["last"] + 1):
        done = python(folder, "trial.py", SLURM_ARRAY_TASK_ID=str(index))
        assert done.returncode == 0, done.stderr
    best = python(folder, "best.py").stdout.splitlines()
    assert len(best) == 9
    assert float(best[0].split()[0]) < 0.45 < float(best[-1].split()[0])
    assert python(folder, "trial.py", "9").returncode == 1      # beyond the grid


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda p: str(p.relative_to(EXAMPLES)))
def test_every_example_compiles_and_says_how_to_run_it(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    compile(tree, str(path), "exec")
    assert ast.get_docstring(tree)
    if (path.parent / "job.yaml").exists() and path.name != "best.py":
        assert "stoker submit " in ast.get_docstring(tree)


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.sh")) + sorted(EXAMPLES.rglob("*.sbatch")),
                         ids=lambda p: str(p.relative_to(EXAMPLES)))
def test_every_script_is_sound_shell_and_executable(path):
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", path], check=False).returncode == 0


@pytest.mark.parametrize("path", JOB_FILES, ids=lambda p: str(p.relative_to(EXAMPLES)))
def test_every_job_file_is_yaml_with_known_keys(path):
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(spec) <= KEYS, set(spec) - KEYS
    assert spec["name"] and spec["run"] and isinstance(spec["gpus"], int)
    for word in spec["run"].split():
        if word.endswith((".py", ".sh")):
            assert (path.parent / word).is_file(), word
    assert path.read_text().startswith("# stoker submit " + path.name)


def test_the_readme_lists_every_folder():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for folder in EXAMPLES.iterdir():
        if folder.is_dir():
            assert "[%s](%s)" % (folder.name, folder.name) in text
