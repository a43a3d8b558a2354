# SPDX-License-Identifier: Apache-2.0
"""The Python SDK by itself: what it sends and understands (over a real Unix socket, against a tiny
server), and the mathematics of the checkpoint interval."""
import ast
import math
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
from small_daemon import SmallDaemon, hang_up

SDK = pathlib.Path(__file__).resolve().parents[2] / "sdk" / "python"
sys.path.insert(0, str(SDK))
import stoker  # noqa: E402


class Clock:
    """Time that passes only when told."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in list(os.environ):
        if re.match(r"STOKER_|SLURM_|RANK$|XDG_", name) and name not in ("STOKER_DATA", "STOKER_BUILD"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(stoker, "_current", None)


@pytest.fixture
def daemon(tmp_path):
    small = SmallDaemon(tmp_path / "s").start()
    yield small
    small.stop()


@pytest.fixture
def client(daemon):
    return stoker.Client(socket=daemon.socket, timeout=10, patience=10)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def run(client, clock):
    """A run of job 7 whose signals are put back afterwards."""
    saved = {n: signal.getsignal(n) for n in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)}
    yield stoker.Run(7, client, clock)
    for number, handler in saved.items():
        signal.signal(number, handler)


# ------------------------------------------------------------------------------- the interval

@pytest.mark.parametrize("mtbi_min, tau_min", [(24 * 60, 117), (6 * 60, 57), (15, 9.1)])
def test_the_interval_is_that_of_dalys_figures(mtbi_min, tau_min):
    """Daly 2006, figures 3 to 5: dump time 5 min; M = 24 h, 6 h, 15 min."""
    got = stoker.daly_interval(5 * 60, mtbi_min * 60) / 60
    assert got == pytest.approx(tau_min, abs=0.5 if tau_min > 10 else 0.05)


def test_the_interval_computed_by_hand():
    # C = 2, M = 100: sqrt(400) = 20, x = 0.01, 20 * (1 + 0.1/3 + 0.01/9) - 2
    assert stoker.daly_interval(2, 100) == pytest.approx(20 * (1 + 0.1 / 3 + 0.01 / 9) - 2, rel=1e-12)
    assert stoker.young_interval(2, 100) == 20


def test_for_a_small_cost_the_interval_is_youngs():
    assert stoker.daly_interval(1, 1e8) == pytest.approx(stoker.young_interval(1, 1e8), rel=1e-3)


def test_a_cost_beyond_twice_the_time_between_interruptions_gives_that_time():
    assert stoker.daly_interval(200, 100) == 100
    assert stoker.daly_interval(1e6, 100) == 100
    assert stoker.daly_interval(199.999, 100) == pytest.approx(100 * 2 * (1 + 1 / 3 + 1 / 9) - 200, rel=1e-3)


def best_by_search(cost, mtbi):
    """The least of the exact expected run time M e^(R/M) (e^((t+C)/M) - 1) T/t, by golden section."""
    def spent(t):
        return (math.exp((t + cost) / mtbi) - 1) / t
    low, high = 1e-6 * mtbi, 10 * mtbi
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if spent(a) < spent(b) else (a, high)
    return (low + high) / 2, spent


@pytest.mark.parametrize("ratio", [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3])
def test_no_other_interval_costs_noticeably_less(ratio):
    mtbi = 3600.0
    best, spent = best_by_search(ratio * mtbi, mtbi)
    advised = stoker.daly_interval(ratio * mtbi, mtbi)
    assert advised == pytest.approx(best, rel=0.02)
    assert spent(advised) <= spent(best) * 1.0001


@pytest.mark.parametrize("cost, mtbi", [(-1, 10), (1, 0), (1, -5), (math.nan, 1), (1, math.nan), (math.inf, 1)])
def test_impossible_costs_are_refused(cost, mtbi):
    with pytest.raises(ValueError, match="cost must be"):
        stoker.daly_interval(cost, mtbi)


# --------------------------------------------------------------------------------- the socket

def test_the_socket_is_looked_for_in_the_documented_order(monkeypatch, tmp_path):
    system = tmp_path / "system.sock"
    monkeypatch.setattr(stoker, "_SYSTEM_SOCKET", str(system))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/ada")
    assert stoker.default_socket() == "/home/ada/.local/state/stoker/stoker.sock"
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert stoker.default_socket() == "/s/stoker/stoker.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert stoker.default_socket() == "/run/user/1000/stoker.sock"
    system.touch()
    assert stoker.default_socket() == str(system)
    monkeypatch.setenv("STOKER_SOCKET", "/named")
    assert stoker.default_socket() == "/named"
    assert stoker.Client().socket == "/named"
    assert stoker.Client(socket="/given").socket == "/given"


def test_without_a_daemon_the_error_says_what_to_do(tmp_path):
    with pytest.raises(stoker.Unreachable) as caught:
        stoker.Client(socket=str(tmp_path / "none")).health()
    assert "stoker serve" in str(caught.value) and "STOKER_SOCKET" in str(caught.value)


def test_advice_is_what_is_right_on_the_machine(tmp_path):
    system = "/run/stoker/stoker.sock"
    assert "as root, with 'stoker serve'" in stoker._advice(None, system, str(tmp_path))
    unit = tmp_path / "lib/systemd/system/stoker.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    assert "systemctl start stoker" in stoker._advice(None, system, str(tmp_path))
    assert "stoker serve --socket /tmp/x.sock" in stoker._advice(None, "/tmp/x.sock", str(tmp_path))


@pytest.mark.parametrize("status, kind", [(400, stoker.Refused), (404, stoker.NotFound),
                                          (403, stoker.NotAllowed), (401, stoker.NotAllowed),
                                          (409, stoker.Refused), (500, stoker.StokerError)])
def test_errors_carry_the_daemons_sentence(daemon, client, status, kind):
    daemon.on("GET", "/v1/jobs/5", (status, {"error": {"code": "word", "message": "A sentence."}}))
    with pytest.raises(stoker.StokerError) as caught:
        client.job(5)
    assert type(caught.value) is kind
    assert (str(caught.value), caught.value.status, caught.value.code) == ("A sentence.", status, "word")


def test_an_answer_that_is_not_json_is_named_as_such(daemon, client):
    daemon.on("GET", "/v1/health", b"hello")
    with pytest.raises(stoker.StokerError, match="not JSON"):
        client.health()


def test_a_token_goes_along_with_a_url_only(monkeypatch):
    monkeypatch.setenv("STOKER_TOKEN", "secret")
    assert stoker.Client(url="http://127.0.0.1:1")._http.token == "secret"
    assert stoker.Client(socket="/x")._http.token is None
    with pytest.raises(ValueError, match="not both"):
        stoker.Client(socket="/x", url="http://127.0.0.1:1")
    with pytest.raises(ValueError, match="https://host:port"):
        stoker.Client(url="nonsense").health()


# --------------------------------------------------------------------------------- submitting

def test_submit_sends_the_description_and_a_key(daemon, client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    daemon.on("POST", "/v1/jobs", (201, {"id": 12, "name": "a", "state": "waiting"}))
    job = client.submit({"name": "a", "gpus": 1}, command=["python3", pathlib.Path("x.py"), 3], gpus=2,
                        time_limit="1d12h", after=[stoker.Job(client, {"id": 4}), 5], array=range(0, 6, 2),
                        envs={"A": 1})
    assert (job.id, job.name, job.state, job.done) == (12, "a", "waiting", False)
    (request,) = daemon.asked
    assert request.body.pop("rlimits")["nofile"] == list(resource.getrlimit(resource.RLIMIT_NOFILE))
    assert request.body == {
        "name": "a", "gpus": 2, "command": ["python3", "x.py", "3"], "time_limit_s": 129600,
        "depends": [{"type": "afterok", "job": 4}, {"type": "afterok", "job": 5}],
        "array": {"indices": [0, 2, 4]}, "envs": {"A": "1"}, "workdir": str(tmp_path)}
    assert len(request.headers["Idempotency-Key"]) >= 16
    assert request.query == {}


def test_a_lost_reply_is_asked_for_again_with_the_same_key(daemon, client):
    daemon.on("POST", "/v1/jobs", hang_up, (201, {"id": 3}))
    assert client.submit(command="true").id == 3
    first, second = daemon.asked
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.body == second.body and first.body["script"] == "true"


def test_submit_without_a_daemon_fails_without_trying_again(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited"))
    with pytest.raises(stoker.Unreachable):
        stoker.Client(socket=str(tmp_path / "none"), patience=600).submit(command="true")


def test_submit_many_is_one_request_in_order(daemon, client):
    daemon.on("POST", "/v1/jobs", (201, {"ids": [8, 9], "first": 8, "count": 2}))
    jobs = client.submit_many([{"command": ["a"], "name": "x"}, {"command": ["b"]}], key="again")
    assert [j.id for j in jobs] == [8, 9]
    (request,) = daemon.asked
    assert [j["command"] for j in request.body["jobs"]] == [["a"], ["b"]]
    assert request.headers["Idempotency-Key"] == "again"
    assert client.submit_many([]) == []


def test_a_dry_run_says_so(daemon, client):
    daemon.on("POST", "/v1/jobs", {"would": "start"})
    assert client.try_submit(command=["a"]) == {"would": "start"}
    assert daemon.asked[0].query == {"dry_run": "1"}


@pytest.mark.parametrize("fields, words", [
    ({}, "needs command"), ({"command": "a", "script": "b"}, "not both"),
    ({"command": "a", "time_limit": "soon"}, "time_limit must be"),
    ({"command": "a", "time_limit": "3x"}, "time_limit must be"),
    ({"command": "a", "gpu_mem": "much"}, "gpu_mem must be"),
    ({"command": "a", "gpu_mem": 20.5}, "gpu_mem must be"),
    ({"command": "a", "gpu_mem": True}, "gpu_mem must be"),
    ({"command": "a", "after": ["../7"]}, "a job is")])
def test_bad_descriptions_are_refused_before_anything_is_sent(daemon, client, fields, words):
    with pytest.raises(ValueError, match=words):
        client.submit(**fields)
    assert daemon.asked == []


@pytest.mark.parametrize("text, seconds", [(90, 90), ("90", 90), ("15m", 900), ("1h30m", 5400),
                                           ("01:30:00", 5400), ("2:30", 150), ("2 d", 172800)])
def test_times_are_read_as_people_write_them(text, seconds):
    assert stoker.describe(command="a", time_limit=text)["time_limit_s"] == seconds


@pytest.mark.parametrize("size, mib", [(20480, 20480), ("20G", 20480), ("512M", 512), ("1.5TiB", 1572864), ("7", 7)])
def test_gpu_memory_in_words(size, mib):
    assert stoker.describe(command="a", gpus=0.5, gpu_mem=size)["gpu_mem_mib"] == mib


# ------------------------------------------------------------------------- looking and changing

def test_the_queue_is_read_page_by_page(daemon, client):
    daemon.on("GET", "/v1/jobs", {"jobs": [{"id": 1}, {"id": 2}], "next": 2},
              {"jobs": [], "next": 4}, {"jobs": [{"id": 5}], "next": None})
    assert [j.id for j in client.queue(user="ada")] == [1, 2, 5]
    assert [r.query for r in daemon.asked] == [{"user": "ada", "limit": "1000"},
                                               {"user": "ada", "limit": "1000", "after": "2"},
                                               {"user": "ada", "limit": "1000", "after": "4"}]


def test_history_stops_at_its_limit(daemon, client):
    daemon.on("GET", "/v1/history", {"jobs": [{"id": 9}, {"id": 8}], "next": 8}, {"jobs": [{"id": 7}], "next": 7})
    assert [j.id for j in client.history(limit=3, since=5.5)] == [9, 8, 7]
    assert [r.query for r in daemon.asked] == [{"limit": "3", "since": "5"},
                                               {"limit": "1", "since": "5", "before": "8"}]


@pytest.mark.parametrize("verb", ["cancel", "hold", "release", "suspend", "resume", "requeue"])
def test_verbs_go_to_their_routes(daemon, client, verb):
    daemon.on("POST", "/v1/jobs/4/" + verb, {"ok": True})
    daemon.on("POST", "/v1/jobs/act", {"ok": True})
    getattr(client, verb)(4)
    getattr(stoker.Job(client, {"id": 4}), verb)()
    getattr(client, verb)([4, 5])
    assert daemon.paths() == ["/v1/jobs/4/" + verb] * 2 + ["/v1/jobs/act"]
    assert daemon.asked[2].body == {"verb": verb, "ids": [4, 5]}
    assert getattr(client, verb)([]) == {} and len(daemon.asked) == 3


def test_states_and_causes_are_told_apart():
    def job(**info):
        return stoker.Job(None, dict(info, id=1))
    assert not job(state="suspended").done
    assert job(state="done", cause="completed").ok
    assert job(state="completed").ok
    failed = job(state="done", cause="timeout", exit_code=143)
    assert failed.done and not failed.ok and (failed.cause, failed.exit_code) == ("timeout", 143)
    assert "timeout" in repr(failed)


# ---------------------------------------------------------------------------------- following

def test_wait_asks_until_the_job_has_ended(daemon, client):
    daemon.on("GET", "/v1/jobs/3/wait", {"id": 3, "state": "running"},
              {"id": 3, "state": "done", "cause": "completed", "exit_code": 0})
    (job,) = client.wait(3)
    assert job.ok and len(daemon.asked) == 2
    assert float(daemon.asked[0].query["timeout_s"]) == 30


def test_wait_outlives_a_restart_of_the_daemon(daemon, client):
    daemon.on("GET", "/v1/jobs/3/wait", hang_up, {"id": 3, "state": "done", "cause": "completed"})
    daemon.stop()
    threading.Timer(0.3, daemon.start).start()
    assert client.wait([3], timeout=60)[0].ok


def test_wait_gives_up_when_its_time_has_passed(daemon, client):
    daemon.on("GET", "/v1/jobs/3/wait", {"id": 3, "state": "running"})
    with pytest.raises(TimeoutError, match="job 3 has not ended"):
        client.wait(3, timeout=0.05)
    assert issubclass(stoker.WaitTimeout, stoker.StokerError)


def test_wait_gives_up_when_the_daemon_stays_away(tmp_path):
    with pytest.raises(stoker.Unreachable):
        stoker.Client(socket=str(tmp_path / "none"), patience=0.2).wait(3)


def test_wait_can_check(daemon, client):
    daemon.on("GET", "/v1/jobs/3/wait", {"id": 3, "state": "done", "cause": "out_of_memory",
                                         "state_text": "the GPU's memory was full"})
    with pytest.raises(stoker.JobFailed, match="job 3 out_of_memory: the GPU's memory was full") as caught:
        client.wait(3, check=True)
    assert caught.value.job.id == 3


def test_logs_go_on_behind_what_was_read_when_the_connection_breaks(daemon, client):
    def first(handler, _request):
        handler.start_stream()
        handler.chunk("caf\u00e9".encode()[:4])     # half of the last character

    def second(handler, _request):
        handler.start_stream()
        handler.chunk("caf\u00e9".encode()[4:] + b" \xff\n")
        handler.end_stream()

    daemon.on("GET", "/v1/jobs/3/log", first, second)
    assert "".join(client.logs(3, follow=True)) == "caf\u00e9 \ufffd\n"
    assert [(r.query["offset"], r.query["follow"]) for r in daemon.asked] == [("0", "1"), ("4", "1")]


def test_logs_that_are_not_followed_do_not_retry(daemon, client):
    def broken(handler, _request):
        handler.start_stream()
        handler.chunk(b"x")

    daemon.on("GET", "/v1/jobs/3/log", broken)
    with pytest.raises(stoker.Unreachable):
        list(client.logs(3))
    assert len(daemon.asked) == 1
    with pytest.raises(ValueError, match="stdout"):
        list(client.logs(3, stream="both"))


def test_events_resume_behind_the_last_one(daemon, client):
    def first(handler, _request):
        handler.start_stream("text/event-stream")
        handler.chunk(b": hello\n\nid: 41\nevent: start\ndata: {\"job\":\ndata: 1}\n\nid: 42\nda")
        handler.chunk(b"ta: {\"job\": 2}\r\n\r\nid: 43\ndata: {\"cut\": ")

    def second(handler, _request):
        handler.start_stream("text/event-stream")
        handler.chunk(b"event: stopping\ndata: {}\n\nid: 43\nevent: exit\ndata: {\"job\": 3}\n\n")

    daemon.on("GET", "/v1/events", first, second, hang_up)
    events = client.events(after=40)
    assert [next(events) for _ in range(3)] == [(41, "start", {"job": 1}), (42, "message", {"job": 2}),
                                                (43, "exit", {"job": 3})]
    assert [r.headers["Last-Event-ID"] for r in daemon.asked] == ["40", "42"]
    events.close()


def test_events_without_a_start_begin_now_and_remember_a_bare_id(daemon, client):
    def first(handler, _request):
        handler.start_stream("text/event-stream")
        handler.chunk(b"id: 99\n\n")

    def second(handler, _request):
        handler.start_stream("text/event-stream")
        handler.chunk(b"id: 100\ndata: {}\n\n")

    daemon.on("GET", "/v1/events", first, second)
    assert next(client.events()) == (100, "message", {})
    assert [r.headers.get("Last-Event-ID") for r in daemon.asked] == [None, "99"]


def test_events_end_with_an_error_when_the_daemon_stays_away(daemon):
    daemon.on("GET", "/v1/events", hang_up)
    with pytest.raises(stoker.Unreachable):
        next(stoker.Client(socket=daemon.socket, patience=0.3).events())


def test_a_refused_event_stream_is_not_retried(daemon, client):
    daemon.on("GET", "/v1/events", (403, {"error": {"code": "forbidden", "message": "No."}}))
    with pytest.raises(stoker.NotAllowed):
        next(client.events())
    assert len(daemon.asked) == 1


# ------------------------------------------------------------------------------- inside a job

def reports(daemon):
    return [r.body for r in daemon.asked if r.path == "/v1/jobs/7/report"]


def test_outside_a_job_nothing_is_sent_and_time_still_counts(clock, tmp_path, monkeypatch):
    monkeypatch.setenv("STOKER_SOCKET", str(tmp_path / "none"))
    before = signal.getsignal(signal.SIGTERM)
    run = stoker.Run(None, None, clock)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.progress(1, 10, loss=1.0)
        assert not run and not run.should_checkpoint() and not run.should_stop()
        clock.now += stoker.daly_interval(stoker.PRIOR_COST_S, stoker.PRIOR_MTBI_S)
        assert run.should_checkpoint()
        with run.checkpointing(1):
            clock.now += 10
        assert not run.should_checkpoint()
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(SystemExit) as caught:
        run.requeue()
    assert caught.value.code == stoker.EXIT_REQUEUE


def test_current_reads_the_environment_once(monkeypatch):
    monkeypatch.setenv("STOKER_JOB_ID", "31")
    monkeypatch.setenv("STOKER_RESTARTS", "2")
    run = stoker.current()
    assert run and run.id == 31 and run.restarts == 2 and stoker.current() is run


def test_progress_is_rate_limited_and_the_last_step_always_goes(daemon, run, clock):
    daemon.on("POST", "/v1/jobs/7/report", {})
    for step in range(1, 101):
        run.progress(step, 100, loss=1 / step, bad=math.nan, odd="text")
        clock.now += 0.1
    sent = reports(daemon)
    assert [b["step"] for b in sent] == [1, 51, 100]
    assert sent[2] == {"step": 100, "total": 100, "metrics": {"loss": 0.01}}


def test_progress_never_raises_and_warns_once(tmp_path, clock):
    run = stoker.Run(7, stoker.Client(socket=str(tmp_path / "none")), clock)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for step in range(50):
            run.progress(step, None, loss=object())
            run.progress("not a number")
            run.should_checkpoint()
            with run.checkpointing():
                pass
            clock.now += 400
    assert len(seen) == 1 and "Training goes on" in str(seen[0].message)


def test_failures_make_attempts_rarer(daemon, run, clock):
    daemon.on("POST", "/v1/jobs/7/report", (500, {"error": {"code": "x", "message": "broken"}}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(720):        # an hour of reports every five seconds
            run.progress(1)
            clock.now += 5.001
    assert 5 < len(reports(daemon)) < 30


def test_only_rank_zero_talks(daemon, client, clock, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    run = stoker.Run(7, client, clock)
    run.progress(1, 1)
    with run.checkpointing(1):
        clock.now += 4
    assert daemon.asked == [] and run.cost_s == 4


def test_a_checkpoint_is_measured_and_reported(daemon, run, clock):
    daemon.on("POST", "/v1/jobs/7/report", {"interrupt_rate_per_h": 2.0})
    with run.checkpointing(500):
        clock.now += 8
    assert reports(daemon) == [{"checkpoint": {"step": 500, "seconds": 8.0}}]
    assert run.mtbi_s == 1800 and run.interval == stoker.daly_interval(8, 1800)
    with run.checkpointing(600):
        clock.now += 18
    assert run.cost_s == pytest.approx(0.7 * 8 + 0.3 * 18)


def test_a_failed_checkpoint_is_not_counted(daemon, run, clock):
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": True, "reason": "its GPUs are needed"})
    assert run.should_checkpoint()
    with pytest.raises(OSError, match="full"):
        with run.checkpointing(5):
            raise OSError("disk full")
    assert reports(daemon) == [] and run.cost_s == stoker.PRIOR_COST_S and run.should_checkpoint()


@pytest.mark.parametrize("rate, mtbi", [(0, 30 * 86400), (0.5, 7200), (None, 8 * 3600), ("x", 8 * 3600),
                                        (True, 8 * 3600), (-1, 8 * 3600)])
def test_the_interruption_rate_is_taken_with_care(daemon, run, rate, mtbi):
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": False, "reason": None, "interrupt_rate_per_h": rate})
    assert not run.should_checkpoint() and run.mtbi_s == mtbi


def test_the_interval_has_bounds(run):
    run._learn({"interrupt_rate_per_h": 3600.0 * 100})
    assert run.interval == run.least_interval_s
    run._learn({"interrupt_rate_per_h": 0.0})
    run._cost = 1e6
    assert run.interval == run.most_interval_s


def test_should_checkpoint_asks_at_most_once_a_second(daemon, run, clock):
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": False, "reason": None})
    for _ in range(100):
        run.should_checkpoint()
        run.should_stop()
        clock.now += 0.03
    assert len(daemon.paths("GET")) == 3


def test_a_stop_asks_for_one_checkpoint_and_then_to_leave(daemon, run, clock):
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": False, "reason": None}, {"checkpoint": True, "reason": "its GPUs are needed"})
    daemon.on("POST", "/v1/jobs/7/report", {"checkpoint": True, "reason": "its GPUs are needed"})
    assert not run.should_checkpoint() and not run.should_stop()
    clock.now += 1
    assert run.should_checkpoint() and run.should_stop() and run.reason == "its GPUs are needed"
    with run.checkpointing(1):
        pass
    clock.now += 1
    assert not run.should_checkpoint() and run.should_stop()


def test_a_daemon_that_wants_a_checkpoint_only_does_not_stop_the_job(daemon, run):
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": True, "reason": None})
    assert run.should_checkpoint() and not run.should_stop()


def test_without_the_control_route_it_works_quietly_by_time_and_signal(daemon, run, clock):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            assert not run.should_checkpoint()
            clock.now += 2
    assert daemon.paths("GET") == ["/v1/jobs/7/control"]
    os.kill(os.getpid(), signal.SIGUSR1)
    assert run.should_checkpoint() and run.should_stop()


def test_signals_set_a_flag_and_reach_the_earlier_handler(daemon, run):
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": False, "reason": None})
    seen = []
    signal.signal(signal.SIGUSR2, lambda number, frame: seen.append(number))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    run.on_signal()
    os.kill(os.getpid(), signal.SIGUSR2)
    assert seen == [signal.SIGUSR2] and run.should_checkpoint() and run.should_stop()
    os.kill(os.getpid(), signal.SIGTERM)       # does not end this process
    assert run.should_stop()
    with pytest.raises(ValueError, match="USR1, USR2"):
        run.on_signal("NONSENSE")


def test_should_checkpoint_in_another_thread_leaves_signals_alone(daemon, run):
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": False, "reason": None})
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run.should_checkpoint)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before


def test_requeue_asks_and_leaves(daemon, run):
    daemon.on("POST", "/v1/jobs/7/requeue", {})
    with pytest.raises(SystemExit) as caught:
        run.requeue()
    assert caught.value.code == 75 and daemon.paths() == ["/v1/jobs/7/control", "/v1/jobs/7/requeue"]


def test_a_job_that_is_being_stopped_does_not_ask_to_be_queued(daemon, run):
    """A signal came first: it may have been a cancel, which a requeue must not undo."""
    daemon.on("GET", "/v1/jobs/7/control", {"checkpoint": False, "reason": None},
              {"checkpoint": True, "reason": "the job was cancelled"})
    assert not run.should_stop()
    run.on_signal()
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit):
        run.requeue()
    assert daemon.paths("POST") == [] and run.reason == "the job was cancelled"


def test_an_array_is_known_by_its_first_number(daemon, client):
    daemon.on("POST", "/v1/jobs", (201, {"ids": [20, 21], "first": 20, "count": 2}))
    assert client.submit(command=["a"], array=[0, 1]).id == 20


def test_items_come_from_the_job_or_from_the_caller(monkeypatch):
    assert list(stoker.items(["a", "b"])) == ["a", "b"]
    monkeypatch.setenv("STOKER_ITEM", "file 1.txt")
    assert list(stoker.items(["a", "b"])) == ["file 1.txt"]


# ---------------------------------------------------------------------------------- the module

def test_it_is_python_3_8_and_standard_library_only():
    tree = ast.parse((SDK / "stoker.py").read_text(encoding="utf-8"), feature_version=(3, 8))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    assert names <= set(sys.stdlib_module_names), names


def test_it_imports_quickly_and_without_output():
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import stoker; stoker.current()"],
                          cwd=SDK, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_everything_public_is_documented():
    for name in stoker.__all__:
        thing = getattr(stoker, name)
        assert name == "EXIT_REQUEUE" or thing.__doc__, name
