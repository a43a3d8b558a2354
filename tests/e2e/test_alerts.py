# SPDX-License-Identifier: Apache-2.0
"""Alerts: built in, shown, told, sent once; the same for Prometheus; and the dashboard for Grafana."""
import contextlib
import errno
import getpass
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import jsonschema
import prom
import pytest
from daemon import STOKER, STOKERD, Daemon, stoker
from patience import until

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKES = STOKER.resolve().parent / "tests" / "lib"
SLEEP = ["/bin/sleep", "600"]
SPIN = ["/bin/sh", "-c", "while :; do :; done"]
ME = getpass.getuser()


class Hook:
    """What a webhook was sent."""

    def __init__(self):
        self.got, self.status = [], 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.status == 200:
                    outer.got.append(json.loads(body))
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?secret=x"

    def said(self):
        return [(a["kind"], a["of"], a["state"]) for m in self.got for a in m["alerts"]]


@pytest.fixture
def hook():
    h = Hook()
    yield h
    h.server.shutdown()


@pytest.fixture
def make(tmp_path):
    made = []

    def start(alerts, more="", state=None, **kwargs):
        made.append(Daemon(tmp_path, config=f"series: {{step: 1s}}\nalerts: {{{alerts}}}\n{more}", **kwargs))
        made[-1].state = state or made[-1].state
        return made[-1].start()

    yield start
    for d in made:
        d.close()


def alerts(daemon):
    a = daemon.get("/v1/alerts")
    document = daemon.get("/openapi.json")
    jsonschema.validate(a, {**document["components"]["schemas"]["Alerts"], "components": document["components"]})
    return a["alerts"]


def state(daemon, kind):
    return [a["state"] for a in alerts(daemon) if a["kind"] == kind]


def idle_seconds(d):
    """In units that grow with it: "119 s", "2 min", "2 h 5 min", "3 days"."""
    span = re.search(r"has done nothing for (.*)$", alerts(d)[0]["text"])[1]
    parts = re.findall(r"(\d+) (s|min|h|days)\b", span)
    assert " ".join(f"{n} {unit}" for n, unit in parts) == span, span
    return sum(int(n) * {"s": 1, "min": 60, "h": 3600, "days": 86400}[unit] for n, unit in parts)


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_an_idle_job_is_said_once_over_restarts_and_when_it_is_over(make, hook, tmp_path):
    d = make(f'idle: 2s, webhook: "{hook.url}", command: "cat >>{tmp_path}/mail; echo $STOKER_SUBJECT >>{tmp_path}/subjects"', gpus=2)
    n = d.submit(command=SLEEP, gpus=2, name="lazy")
    busy = d.submit(command=SPIN, gpus=0)
    d.until(n, "running")
    until(lambda: hook.said())
    a = alerts(d)
    assert [(x["kind"], x["job"], x["state"]) for x in a] == [("idle_allocation", n, "firing")]
    assert "2 GPUs" in a[0]["text"] and ME in a[0]["text"] and str(busy) not in a[0]["of"]
    out = stoker(d, "alerts")
    assert "idle_allocation" in out and f"job {n}" in out, out
    values = prom.parse(d.web().get("/metrics").body.decode())
    assert prom.value(values, "stoker_alerts", alert="idle_allocation") == 1 and prom.value(values, "stoker_idle_gpus") == 2
    assert prom.value(values, "stoker_alert_threshold", alert="idle_allocation") == 2
    until(lambda: idle_seconds(d) > 4)
    assert d.stop() == 0
    d.start()
    seen = [idle_seconds(d)]  # as it was when it was said
    until(lambda: seen.append(idle_seconds(d)) or seen[-1] > 4)
    assert set(seen[:-1]) == {seen[0]}, seen  # not counted from the restart
    time.sleep(6)
    d.kill()
    d.start()
    time.sleep(6)
    assert state(d, "idle_allocation") == ["firing"]
    assert hook.said() == [("idle_allocation", f"job {n}", "firing")]
    d.client().post(f"/v1/jobs/{n}/cancel", {})
    until(lambda: len(hook.said()) == 2)
    assert hook.said()[1] == ("idle_allocation", f"job {n}", "resolved") and "text" in hook.got[1]
    assert state(d, "idle_allocation") == ["resolved"]
    until(lambda: (tmp_path / "mail").read_text().count("\n") == 2)
    assert re.search(r"firing: idle_allocation: job \d+", (tmp_path / "mail").read_text())
    until(lambda: "idle_allocation resolved" in (tmp_path / "subjects").read_text())  # written after the other
    assert "nothing to worry about" in stoker(d, "alerts")
    assert "resolved" in stoker(d, "alerts", "--all")
    time.sleep(3)
    assert len(hook.said()) == 2


def test_waits_and_exhausted_quotas(make):
    d = make("wait: 2s, quota: 2s, idle: 0", f"tenants: [{{name: vision, limit: 1, users: [{ME}]}}]\n", gpus=2)
    first = d.submit(command=SPIN, gpus=1, tenant="vision")
    second = d.submit(command=SPIN, gpus=1, tenant="vision")
    d.until(first, "running")
    until(lambda: state(d, "waiting_over_target") == ["firing"] and state(d, "quota_exhausted") == ["firing"])
    by = {a["kind"]: a for a in alerts(d)}
    assert by["quota_exhausted"]["tenant"] == "vision" and by["waiting_over_target"]["job"] == second
    d.client().post(f"/v1/jobs/{second}/cancel", {})
    until(lambda: state(d, "waiting_over_target") == ["resolved"] and state(d, "quota_exhausted") == ["resolved"])
    assert not state(d, "idle_allocation")
    tenants = [line for line in d.config.read_text().splitlines() if line.startswith("tenants:")]  # one has a job
    d.config.write_text("\n".join(["series: {step: 1s}", "alerts: {wait: 0, quota: 0, idle: 0}", *tenants, ""]))
    d.reload()
    until(lambda: not [r for r in d.get("/v1/alerts")["rules"] if r["on"] and r["name"] in ("waiting_over_target", "quota_exhausted", "idle_allocation")])


def test_an_event_is_told_to_those_who_listen(make):
    d = make("idle: 2s", gpus=1)
    d.submit(command=SLEEP, gpus=1)
    seen = []

    def listen():
        p = subprocess.Popen(["curl", "-sN", "--max-time", "200", "--unix-socket", str(d.socket), "http://localhost/v1/events"], stdout=subprocess.PIPE, text=True)
        for line in p.stdout:
            if line.strip() == "event: alert":
                seen.append(json.loads(next(p.stdout)[len("data: "):]))
                break
        p.kill()
        p.wait()

    t = threading.Thread(target=listen)
    t.start()
    t.join()
    assert seen and seen[0]["kind"] == "idle_allocation" and seen[0]["state"] == "firing"


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_a_message_that_cannot_be_sent_is_logged_and_the_daemon_goes_on(make, hook):
    hook.status = 500
    d = make(f'idle: 2s, webhook: "{hook.url}"', gpus=1)
    d.submit(command=SLEEP, gpus=1)
    until(lambda: [line for line in d.errors if "an alert could not be sent" in line])
    assert d.get("/v1/health")["status"] == "ok" and not hook.got
    assert not [line for line in d.errors if "secret" in line]


def test_jobs_that_give_way_again_and_again(make):
    d = make("preemptions: 1, idle: 0", f"policy: {{preempt: reclaim, params: {{preempt.min_run_s: 0}}}}\ntenants: [{{name: a, guarantee: 1, users: [{ME}]}}, {{name: b, users: [{ME}]}}]\n", gpus=1)
    low = d.submit(command=SPIN, gpus=1, tenant="b")
    for _ in range(2):
        d.until(low, "running")
        high = d.submit(command=["/bin/sleep", "1"], gpus=1, tenant="a")
        d.wait(high)
    until(lambda: state(d, "preemption_spike") == ["firing"])


@pytest.mark.skipif(not STOKERD.exists() or not (FAKES / "libnvidia-ml.so.1").exists(), reason="not built with tests")
def test_broken_gpus_and_foreign_processes(make, tmp_path):
    fake = tmp_path / "fake"
    fake.mkdir()
    d = make("foreign: 1s", "gpus: {interval_ms: 200}\n", gpus=None, env={"STOKER_GPU_LIB_DIR": str(FAKES), "STOKER_FAKE_DIR": str(fake)})
    p = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True, cwd="/")
    try:
        (fake / "new").write_text(f"0 {p.pid} 1000 50\n")
        (fake / "new").rename(fake / "procs")
        until(lambda: state(d, "foreign_process") == ["firing"])
        (fake / "x").write_text("1 79\n")
        (fake / "x").rename(fake / "xid")
        until(lambda: state(d, "gpu_unhealthy") == ["firing"])
        by = {a["kind"]: a for a in alerts(d)}
        assert by["foreign_process"]["gpu"] == 0 and by["gpu_unhealthy"]["gpu"] == 1 and by["gpu_unhealthy"]["severity"] == "critical"
        values = prom.parse(d.web().get("/metrics").body.decode())
        assert prom.value(values, "stoker_gpu_healthy", gpu="1") == 0 and prom.value(values, "stoker_gpu_foreign_processes", gpu="0") == 1
        dashboard_names_what_there_is(prom.names(values))
    finally:
        p.kill()
        p.wait()


def fill(disk):
    """Not a byte is left, until the file is gone."""
    with open(disk / "filler", "wb", buffering=0) as f:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while f.write(bytes(size)) == size:
                    pass
    with pytest.raises(OSError) as e, open(disk / "probe", "wb", buffering=0) as f:
        f.write(b"x")
    assert e.value.errno == errno.ENOSPC


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("curl"), reason="needs root to mount, and curl")
def test_a_full_disk_is_said_once_and_when_there_is_room_again(make, hook, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "none", disk], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    try:
        d = make(f'store: 2s, idle: 0, webhook: "{hook.url}"', state=disk / "state", gpus=1)
        first = d.submit(command=SPIN, gpus=1, stdout="/dev/null", workdir="/")
        d.until(first, "running")
        fill(disk)
        refused = until(lambda: (a := d.client().post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/"})).status == 507 and a)
        assert "full" in refused.json["error"]["message"]
        until(lambda: state(d, "store_trouble") == ["firing"])
        until(lambda: hook.said() == [("store_trouble", "", "firing")])  # though nothing can be written down
        a = alerts(d)[0]
        assert a["severity"] == "critical" and "full" in a["text"]
        values = prom.parse(d.web().get("/metrics").body.decode())
        assert prom.value(values, "stoker_trouble") == 1 and prom.value(values, "stoker_alerts", alert="store_trouble") == 1
        assert prom.value(values, "stoker_commit_failures_total") > 0
        for _ in range(5):  # it is seen again and again, and said once
            d.client().post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/"})
            time.sleep(1)
        assert hook.said() == [("store_trouble", "", "firing")] and d.job(first)["state"] == "running"
        (disk / "filler").unlink()
        until(lambda: state(d, "store_trouble") == ["resolved"])
        until(lambda: len(hook.said()) == 2)
        assert hook.said()[1] == ("store_trouble", "", "resolved")
        d.wait(d.submit(command=["/bin/true"], gpus=0, stdout="/dev/null", workdir="/"))
        assert d.stop() == 0
        d.start()
        time.sleep(4)
        assert len(hook.said()) == 2 and state(d, "store_trouble") == ["resolved"]
        d.close()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


# ---- for those who have Prometheus and Grafana ----

def dashboard_names_what_there_is(names):
    names = set(names) | {"stoker_tenant_used_gpus", "stoker_tenant_due_gpus", "stoker_tenant_waiting_gpus"}  # there are no tenants there
    board = json.loads((ROOT / "contrib/grafana/stoker.json").read_text())
    used = {m for p in board["panels"] for t in p["targets"] for m in re.findall(r"\bstoker_\w+", t["expr"])}
    assert len(used) > 20 and used <= names, used - names
    ids = [p["id"] for p in board["panels"]]
    assert len(set(ids)) == len(ids) and board["uid"] == "stoker-overview"


def test_rules_for_prometheus_hold_what_they_say(tmp_path, make):
    assert prom.PROMTOOL, "promtool is not installed: scripts/bootstrap test"
    shutil.copy(ROOT / "contrib/prometheus/stoker.rules.yml", tmp_path)
    shutil.copy(ROOT / "tests/e2e/stoker.rules.test.yml", tmp_path)
    for words in (["check", "rules", "stoker.rules.yml"], ["test", "rules", "stoker.rules.test.yml"]):
        p = subprocess.run([prom.PROMTOOL, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert p.returncode == 0, p.stdout + p.stderr
    d = make("", f"tenants: [{{name: a, limit: 1, users: [{ME}]}}]\n", gpus=2)
    text = (tmp_path / "stoker.rules.yml").read_text()
    names = prom.names(prom.parse(d.web().get("/metrics").body.decode()))
    used = set(re.findall(r"\bstoker_\w+", text))
    assert used <= names, used - names
    kinds = set(re.findall(r"kind: (\w+)", text))
    assert kinds == {r["name"] for r in d.get("/v1/alerts")["rules"]}
    exported = set(re.findall(r'alert="(\w+)"', text))
    assert exported <= kinds
