# SPDX-License-Identifier: Apache-2.0
"""The Python SDK against the real daemon, and real jobs that use it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk" / "python"
sys.path.insert(0, str(SDK))
import stoker  # noqa: E402

Daemon = pytest.importorskip("daemon", reason="there is no daemon in this tree").Daemon

LIMIT = 120     # seconds after which a wait has failed; nothing here takes long


@pytest.fixture
def daemon(tmp_path):
    one = Daemon(tmp_path / "state")
    one.start()
    yield one
    one.stop()


@pytest.fixture
def client(daemon):
    return stoker.Client(socket=str(daemon.socket))


@pytest.fixture
def submit(client, daemon, tmp_path):
    """Submits a job that can import the SDK and finds this daemon."""
    work = tmp_path / "work"
    work.mkdir()

    def send(**fields):
        envs = {"PYTHONPATH": str(SDK), "STOKER_SOCKET": str(daemon.socket), "PYTHONUNBUFFERED": "1",
                "PYTHONDONTWRITEBYTECODE": "1", **fields.pop("envs", {})}
        return client.submit(workdir=fields.pop("workdir", work), envs=envs, **fields)
    return send


def text_of(job):
    return "".join(job.logs())


def test_a_job_runs_and_its_output_comes_back(submit):
    job = submit(command=["/bin/echo", "hello from", "stoker"], name="hello")
    assert job.wait(timeout=LIMIT, check=True).ok
    assert job.exit_code == 0 and job.name == "hello"
    assert text_of(job) == "hello from stoker\n"


def test_a_string_is_a_script_for_the_shell(submit):
    job = submit(command="echo one | tr o 0; exit 3")
    job.wait(timeout=LIMIT)
    assert (job.cause, job.exit_code, text_of(job)) == ("failed", 3, "0ne\n")
    with pytest.raises(stoker.JobFailed, match="job %d failed" % job.id):
        job.wait(check=True)


def test_logs_are_followed_to_the_end(submit):
    job = submit(command="for i in 1 2 3; do echo $i; sleep 0.1; done")
    assert "".join(job.logs(follow=True)) == "1\n2\n3\n"
    assert job.wait(timeout=LIMIT).ok


def test_the_same_key_gives_the_same_job(client):
    first = client.submit(command=["/bin/true"], key="only once")
    second = client.submit(command=["/bin/true"], key="only once")
    assert first.id == second.id


def test_many_jobs_in_one_request_and_one_after_them(client, submit):
    jobs = client.submit_many([{"command": ["/bin/true"]} for _ in range(20)])
    last = submit(command=["/bin/echo", "last"], after=jobs)
    assert last.wait(timeout=LIMIT, check=True).ok
    assert all(job.refresh().ok for job in jobs)
    past = {job.id for job in client.history(limit=None)}
    assert {job.id for job in jobs} | {last.id} <= past


def test_held_jobs_wait_in_the_queue_until_released(client, submit):
    job = submit(command=["/bin/true"], hold=True)
    assert [j.id for j in client.queue(state="held")] == [job.id]
    with pytest.raises(stoker.WaitTimeout):
        job.wait(timeout=0)
    job.release()
    assert job.wait(timeout=LIMIT).ok


def test_cancel_ends_a_job(submit):
    job = submit(command=["/bin/sleep", "1000"])
    job.cancel()
    assert job.wait(timeout=LIMIT).cause == "cancelled"


def test_refusals_are_the_daemons_sentences(client):
    with pytest.raises(stoker.NotFound):
        client.job(4000000)
    with pytest.raises(stoker.Refused, match="gpus"):
        client.submit(command=["/bin/true"], gpus=-1)
    with pytest.raises(stoker.Refused, match="colour"):
        client.submit(command=["/bin/true"], colour="red")


def test_events_tell_the_story_of_a_job_once(client, submit):
    events = client.events(after=0)
    job = submit(command=["/bin/true"])
    seen = []
    for event in events:
        if event.data.get("job") == job.id:
            seen.append(event)
            if event.type == "exited":
                break
    events.close()
    assert seen[0].type == "submit"
    numbers = [event.seq for event in seen]
    assert numbers == sorted(set(numbers))
    again = client.events(after=numbers[0])
    assert next(event for event in again if event.data.get("job") == job.id) == seen[1]
    again.close()


def test_waiting_and_following_outlive_a_restart_of_the_daemon(daemon, submit):
    job = submit(command="echo begun; sleep 3; echo ended")
    pieces = job.logs(follow=True)
    assert next(pieces).startswith("begun")
    daemon.stop()
    daemon.start()
    assert "".join(pieces).endswith("ended\n")
    assert job.wait(timeout=LIMIT).ok


def test_a_job_reports_its_progress(client, submit):
    job = submit(command=["/usr/bin/python3", "-c", """
import stoker, time
run = stoker.current()
assert run, "not inside a job"
run.progress(3, 10, loss=0.5)
with run.checkpointing(3):
    pass
print("reported")
time.sleep(1000)
"""])
    assert next(job.logs(follow=True)) == "reported\n"
    progress = job.refresh().info["progress"]
    assert (progress["step"], progress["total"], progress["metrics"]) == (3, 10, {"loss": 0.5})
    job.cancel()
    job.wait(timeout=LIMIT)


def test_a_job_that_is_stopped_saves_and_goes_on_where_it_was(client, submit, tmp_path):
    folder = tmp_path / "fit"
    shutil.copytree(ROOT / "examples" / "plain-python", folder)
    job = submit(command=["/usr/bin/python3", "fit.py", "--steps", "8000", "--pause", "0.001"], workdir=folder,
                 retry={"error": "always", "exit_codes": [stoker.EXIT_REQUEUE]},
                 signal={"signal": "USR1", "seconds": 30})
    assert next(job.logs(follow=True)).startswith("starting at step 0")
    job.requeue()
    assert job.wait(timeout=LIMIT).ok
    text = text_of(job)
    starts = [int(n) for n in re.findall(r"starting at step (\d+)", text)]
    assert len(starts) == 2 and starts[0] == 0 < starts[1] < 8000, text
    assert job.refresh().info["restarts"] + job.info["preemptions"] >= 1


def test_a_job_can_ask_to_be_queued_again(submit):
    job = submit(command=["/usr/bin/python3", "-c", """
import stoker
run = stoker.current()
print("start", run.restarts)
if run.restarts == 0:
    run.requeue()
"""], retry={"error": "always", "exit_codes": [stoker.EXIT_REQUEUE]})
    assert job.wait(timeout=LIMIT, check=True).ok
    assert text_of(job) == "start 0\nstart 1\n"


def test_the_exit_code_alone_is_enough(submit):
    """What a job does whose daemon cannot be reached: no request, only the status."""
    job = submit(command='[ "$STOKER_RESTARTS" != 0 ] || exit 75; echo second', retry={
        "error": "always", "exit_codes": [stoker.EXIT_REQUEUE]})
    assert job.wait(timeout=LIMIT, check=True).ok
    assert text_of(job) == "second\n"


def test_every_item_of_a_batch_is_done(submit, tmp_path):
    folder = tmp_path / "batch"
    shutil.copytree(ROOT / "examples" / "batch-items", folder)
    job = submit(command=["/usr/bin/python3", "count.py"], workdir=folder, kind="batch", workers=2,
                 items=["texts/one.txt", "texts/two.txt", "texts/three.txt"])
    assert job.wait(timeout=LIMIT, check=True).ok
    assert len(list((folder / "counts").glob("*.json"))) == 3


JOB_FILES = [p for p in sorted((ROOT / "examples").glob("*/*.yaml")) + sorted((ROOT / "examples").glob("*/*.sbatch"))
             if p.parent.name != "day-and-night"]  # clusters and rules


@pytest.mark.parametrize("path", JOB_FILES, ids=lambda p: "%s/%s" % (p.parent.name, p.name))
def test_the_examples_job_files_are_accepted(daemon, path):
    program = os.environ.get("STOKER", ROOT / "build" / "stoker")
    done = subprocess.run([program, "submit", "--dry-run", "--socket", str(daemon.socket), path], cwd=path.parent,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
