# SPDX-License-Identifier: Apache-2.0
"""Who may use which queue, tier and priority (docs/spec/rights.md). The daemon is root's; VICTIM and PLAIN are two plain users,
OPERATOR is an operator. All requests come from processes of these users."""
import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

import pytest
from daemon import STOKER, STOKERD, Daemon
from patience import until
from test_security import ask_as

pytestmark = [pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd"),
              pytest.mark.skipif(os.getuid() != 0, reason="needs root to be several users")]
VICTIM, OPERATOR, PLAIN = 1, 2, 65534  # daemon, bin, nobody
SLEEP = ["/bin/sleep", "1000"]
STAFF = "operators: [bin]\n"


@contextlib.contextmanager
def serve(gpus=4, config=STAFF):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-rights-"))
    folder.chmod(0o755)
    try:
        with Daemon(folder, gpus=gpus, config=config) as d:
            yield d
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def daemon():
    with serve() as d:
        yield d


@pytest.fixture
def process():
    """Starts processes of that user by hand."""
    made = []

    def start(uid):
        made.append(subprocess.Popen(SLEEP, user=uid, group=uid, extra_groups=[], cwd="/", start_new_session=True))
        return made[-1].pid

    yield start
    for p in made:
        p.kill()
        p.wait()


def ask(uid, d, **job):
    """Submits; the status and the answer."""
    return ask_as(uid, d, "POST", "/v1/jobs", {"command": SLEEP, "workdir": "/", "stdout": "/dev/null", **job})


def submit(uid, d, **job):
    status, made = ask(uid, d, **job)
    assert status == 201, made
    return made["id"]


def update(uid, d, number, **change):
    return ask_as(uid, d, "POST", f"/v1/jobs/{number}/update", change)


def refused(answer, *words):
    status, body = answer
    assert status == 403 and body["error"]["code"] == "not_allowed", answer
    assert all(w in body["error"]["message"] for w in words), body
    return body["error"]["message"]


def untouched(d, number):
    """It runs and has never been stopped. A turn decides before it answers: what had to give way would show by now."""
    job = d.job(number)
    assert job["state"] == "running" and job["preemptions"] == 0, job


def running(uid, d, **job):
    number = submit(uid, d, **job)
    d.until(number, "running")
    return number


# ---- what holds when nothing is said ----

def test_a_plain_user_may_not_take_the_critical_tier(daemon):
    victim = running(VICTIM, daemon, gpus=4)
    text = refused(ask(PLAIN, daemon, gpus=4, tier="critical"), "nobody", "critical", "best-effort, standard", "operator")
    assert "queue standard" in text
    refused(ask(PLAIN, daemon, gpus=4, queue="reserved"), "critical", "queue reserved")
    refused(ask_as(PLAIN, daemon, "POST", "/v1/jobs?dry_run=1", {"command": SLEEP, "gpus": 4, "tier": "critical"}), "critical")
    untouched(daemon, victim)
    done = subprocess.run([STOKER, "submit", "--gpus", "4", "--tier", "critical", "--", "sleep", "1000"], user=PLAIN, group=PLAIN, extra_groups=[],
                          env={**os.environ, "STOKER_SOCKET": str(daemon.socket), "HOME": "/"}, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "may not use critical" in done.stderr, done
    assert len(daemon.jobs()) == 1


@pytest.mark.parametrize("queue", ["standard", "batch"])
def test_class_queue_and_priority_order_and_do_not_preempt(daemon, queue):
    victim = running(VICTIM, daemon, gpus=4, queue=queue)
    for how in [{"queue": "express"}, {"class": "inference"}, {"priority": 1000}, {"priority": 100, "nice": -900}, {}]:
        number = submit(PLAIN, daemon, gpus=4, **how)
        assert daemon.job(number)["state"] == "waiting", how
        untouched(daemon, victim)
    refused(ask(PLAIN, daemon, gpus=4, priority=1001), "priority", "1001", ", at most 1000 (")
    refused(ask(PLAIN, daemon, gpus=4, nice=-1000000), "priority")


def test_priorities_order_the_own_jobs_of_a_plain_user(daemon):
    victim = running(VICTIM, daemon, gpus=4)
    low, high = submit(PLAIN, daemon, gpus=4, priority=-5), submit(PLAIN, daemon, gpus=4, priority=700)
    daemon.post(f"/v1/jobs/{victim}/cancel")
    daemon.until(high, "running")
    assert daemon.job(low)["state"] == "waiting"


def test_best_effort_jobs_of_others_give_way(daemon):
    number = running(VICTIM, daemon, gpus=4, queue="preemptible", suspend="never")
    running(PLAIN, daemon, gpus=4)
    assert daemon.job(number)["preemptions"] == 1


def test_an_update_is_held_to_what_a_submission_is_held_to(daemon):
    victim = running(VICTIM, daemon, gpus=4)
    number = submit(PLAIN, daemon, gpus=4)
    refused(update(PLAIN, daemon, number, tier="critical"), "critical")
    refused(update(PLAIN, daemon, number, queue="reserved"), "critical")
    refused(update(PLAIN, daemon, number, priority=5000), "5000")
    for change in [{"priority": 1000}, {"class": "inference"}, {"queue": "express"}, {"tier": "standard", "gpus": 3}]:
        status, body = update(PLAIN, daemon, number, **change)
        assert status == 200, body
        untouched(daemon, victim)
    status, body = ask_as(PLAIN, daemon, "POST", "/v1/jobs/act", {"verb": "update", "ids": [number], "tier": "critical"})
    assert "may not use critical" in str(body), body
    untouched(daemon, victim)
    assert daemon.job(number)["tier"] == "standard"


def test_what_an_operator_gave_stays_and_does_not_grow(daemon):
    victim = running(VICTIM, daemon, gpus=3)
    running(VICTIM, daemon, gpus=1)
    number = submit(PLAIN, daemon, gpus=1, begin=3000000000)
    assert update(OPERATOR, daemon, number, tier="critical")[0] == 200
    assert update(PLAIN, daemon, number, name="mine", time_limit_s=600)[0] == 200
    for change in [{"gpus": 4}, {"priority": 900}, {"cpus": 1}, {"mem_mib": 64}, {"gpu_mem_mib": 64}, {"gpu_types": ["virtual"]}, {"tasks": 2},
                   {"exclusive": True}, {"prefer": "node"}, {"pool": "default"}]:
        refused(update(PLAIN, daemon, number, **change), "critical")
    assert update(PLAIN, daemon, number, begin=3000000001, estimate_s=60)[0] == 200
    assert update(PLAIN, daemon, number, gpus=4, tier="standard", begin=None)[0] == 200
    assert daemon.job(number)["state"] == "waiting"
    untouched(daemon, victim)


def test_a_requeued_job_takes_nothing_from_others(daemon):
    number = running(PLAIN, daemon, gpus=4, queue="express")
    low = submit(VICTIM, daemon, gpus=4, queue="batch")
    assert ask_as(PLAIN, daemon, "POST", f"/v1/jobs/{number}/hold", {})[0] == 409
    assert ask_as(PLAIN, daemon, "POST", f"/v1/jobs/{number}/suspend", {})[0] == 200
    daemon.until(low, "running")
    assert ask_as(PLAIN, daemon, "POST", f"/v1/jobs/{number}/resume", {})[0] == 200
    untouched(daemon, low)


def test_operators_and_admins_may_do_everything(daemon):
    victim = running(VICTIM, daemon, gpus=4, suspend="never")
    number = running(OPERATOR, daemon, gpus=4, queue="express")
    assert daemon.job(victim)["preemptions"] == 1
    running(OPERATOR, daemon, gpus=4, tier="critical", priority=5000)
    assert daemon.job(number)["preemptions"] == 1


def test_an_operators_batch_job_gives_way_to_operators_and_not_to_plain_users(daemon):
    batch = running(OPERATOR, daemon, gpus=4, queue="batch", suspend="never")
    for how in [{}, {"queue": "express"}, {"priority": 1000}]:
        assert daemon.job(submit(PLAIN, daemon, gpus=4, **how))["state"] == "waiting"
        untouched(daemon, batch)
    running(OPERATOR, daemon, gpus=4, queue="express")  # though plain jobs of this priority wait before it
    assert daemon.job(batch)["preemptions"] == 1


def test_a_token_with_the_role_user_has_the_rights_of_a_user(daemon):
    status, made = ask_as(OPERATOR, daemon, "POST", "/v1/tokens", {"name": "t", "role": "user"})
    assert status == 201, made
    token = made["token"]
    a = daemon.web(token).post("/v1/jobs", {"command": SLEEP, "gpus": 1, "tier": "critical"})
    assert a.status == 403 and "may not use critical" in a.message


def test_users_cannot_say_that_their_class_counts(daemon):
    status, body = ask(PLAIN, daemon, plain=False)
    assert status == 400 and "plain" in body["error"]["message"]


def test_the_owner_of_a_private_daemon_may_do_everything():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-own-"))
    d = Daemon(folder, gpus=2, user=PLAIN)
    for place in (folder, d.short):
        os.chown(place, PLAIN, PLAIN)

    def see(number):
        return ask_as(PLAIN, d, "GET", f"/v1/jobs/{number}")[1]

    try:
        with d:
            low = submit(PLAIN, d, gpus=2, queue="batch", suspend="never")
            until(lambda: see(low)["state"] == "running", say="job 1 running")
            high = submit(PLAIN, d, gpus=2, queue="express")
            until(lambda: see(high)["state"] == "running", say="job 2 running")
            assert see(low)["preemptions"] == 1
            assert ask(PLAIN, d, gpus=1, tier="critical", priority=100000)[0] == 201
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_what_was_decided_holds_over_a_restart(daemon):
    victim = running(VICTIM, daemon, gpus=4, queue="batch")
    number = submit(PLAIN, daemon, gpus=4, queue="express")
    daemon.kill()
    daemon.start()
    daemon.until(victim, "running")
    daemon.restart()
    daemon.until(victim, "running")
    submit(PLAIN, daemon, gpus=0)  # a turn
    assert daemon.job(number)["state"] == "waiting"
    untouched(daemon, victim)


def test_random_requests_of_a_plain_user_never_preempt_a_standard_job(daemon):
    """Whatever a plain user sends."""
    seed = int(os.environ.get("STOKER_SEED", random.SystemRandom().randrange(1 << 30)))
    r = random.Random(seed)
    victims = [running(who, daemon, gpus=1, queue=q) for who, q in ((VICTIM, "standard"), (VICTIM, "batch"), (OPERATOR, "batch"), (OPERATOR, "standard"))]
    own = []
    words = {"queue": ["standard", "express", "batch", "preemptible", "reserved"], "class": ["inference", "training", "batch"],
             "tier": ["best-effort", "standard", "critical"], "priority": [-1000, 0, 299, 799, 800, 1000, 1001, 10**9],
             "nice": [-2000, -500, 500], "gpus": [1, 2, 4], "min_run_s": [0, 1000], "deadline": [3000000000], "interactive": [True],
             "keep_up": [{"group": "g", "min": 3}], "array": [{"indices": [0, 1, 2]}]}
    for _ in range(int(os.environ.get("STOKER_RUNS", 40))):
        some = {k: r.choice(v) for k, v in words.items() if r.random() < 0.3}
        if "priority" in some:
            some.pop("class", None)
        if own and r.random() < 0.4:
            for k in ("array", "min_run_s", "interactive", "keep_up"):
                some.pop(k, None)
            status, body = update(PLAIN, daemon, r.choice(own), **some)
        else:
            status, body = ask(PLAIN, daemon, gpus=some.pop("gpus", 4), **some)
            if status == 201:
                own += range(body["id"], body["id"] + body["count"])
        assert status in (200, 201, 403, 409, 422), (seed, some, body)
        for v in victims:
            job = daemon.job(v)
            assert job["state"] == "running" and job["preemptions"] == 0, (seed, some, body, job)
    assert own, seed


# ---- settings ----

def test_a_queue_grants_its_tier_to_those_it_names_within_its_limits():
    config = STAFF + "queues: {urgent: {tier: critical, user: {gpus: 2}, allow: {users: [nobody]}}, reserved: {allow: {users: ['role:operator']}}}\n"
    with serve(config=config) as d:
        victim = running(VICTIM, d, gpus=2)
        other = running(VICTIM, d, gpus=2)
        refused(ask(VICTIM, d, gpus=1, queue="urgent"), "urgent", "not open to daemon", "standard, express")
        text = refused(ask(PLAIN, d, gpus=1, queue="reserved"), "reserved", "not open to nobody")
        assert "urgent" in text
        refused(ask(PLAIN, d, gpus=1, tier="critical"), "queue standard")
        assert ask(PLAIN, d, gpus=3, queue="urgent")[0] == 422  # more than it may ever have there
        running(PLAIN, d, gpus=2, queue="urgent")
        submit(PLAIN, d, gpus=2, queue="urgent")
        assert sorted(d.job(n)["state"] == "running" for n in (victim, other)) == [False, True]
        submit(OPERATOR, d, gpus=1, queue="reserved")


def test_a_queue_lets_its_class_preempt():
    with serve(config=STAFF + "queues: {express: {allow: {preempt: yes, users: [nobody]}}}\n") as d:
        victim = running(VICTIM, d, gpus=4, suspend="never")
        running(PLAIN, d, gpus=4, queue="express")
        assert d.job(victim)["preemptions"] == 1
        assert d.job(submit(PLAIN, d, gpus=4, priority=1000))["state"] == "waiting"


def test_a_tenant_restricts_and_grants_and_those_below_inherit():
    config = STAFF + """
tenants:
  - {name: students, users: [nobody], allow: {tiers: [best-effort], classes: [batch, 200]}}
  - name: org
    allow: {tiers: [standard, critical], preempt: yes}
    tenants: [{name: serving, users: [daemon]}]
policy: {params: {reclaim.critical: any}}
"""
    with serve(config=config) as d:
        refused(ask(PLAIN, d, gpus=1, queue="batch"), "standard", "only best-effort", "allow.tiers of tenant students")
        refused(ask(PLAIN, d, gpus=1, tier="best-effort"), "priority", "only 100 to 200", "allow.classes of tenant students")
        number = running(PLAIN, d, gpus=4, queue="preemptible", suspend="never")
        refused(ask(VICTIM, d, gpus=1, tier="best-effort"), "best-effort", "only standard, critical", "tenant org")
        running(VICTIM, d, gpus=4, tier="critical")
        assert d.job(number)["preemptions"] == 1


def test_a_reload_counts_for_new_requests():
    with serve() as d:
        waits = submit(PLAIN, d, gpus=1, tier="standard", begin=3000000000)
        d.config.write_text(STAFF + "queues: {standard: {allow: {tiers: [best-effort]}}}\n")
        d.reload()
        until(lambda: ask(PLAIN, d, gpus=1)[0] == 403, say="the new configuration")
        assert d.job(waits)["tier"] == "standard"
        assert update(PLAIN, d, waits, name="same")[0] == 200
        refused(update(PLAIN, d, waits, gpus=2), "only best-effort", "allow.tiers of queue standard")


@pytest.mark.parametrize("text, words", [
    ("queues: {express: {allow: {tiers: [best]}}}", "a tier is"), ("queues: {express: {allow: {tiers: []}}}", "tiers must be"),
    ("queues: {express: {allow: {users: ['role:boss']}}}", "a role is"), ("queues: {express: {allow: {preempt: maybe}}}", "preempt is yes or no"),
    ("queues: {express: {allow: {class: 3}}}", "unknown key"), ("tenants: [{name: a, allow: {classes: [900, 100]}}]", "above the highest"),
    ("tenants: [{name: a, allow: [x]}]", "allow must be a mapping"), ("queues: {express: {allow: {users: ann}}}", "users must be a list")])
def test_mistakes_in_the_settings_are_named(tmp_path, text, words):
    file = tmp_path / "c.yaml"
    file.write_text(text + "\n")
    done = subprocess.run([STOKERD, "--config", str(file), "--state", str(tmp_path / "s"), "--socket", str(tmp_path / "x"), "--listen", "off"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and words in done.stderr and ":1:" in done.stderr, done


def test_quota_shows_what_the_asker_may_use():
    config = STAFF + "queues: {urgent: {tier: critical, allow: {users: [daemon], preempt: yes}}}\n"

    def may(uid, d):
        return {q["name"]: q["may"] for q in ask_as(uid, d, "GET", "/v1/quota")[1]["queues"]}

    with serve(config=config) as d:
        assert may(PLAIN, d)["standard"] == {"open": True, "tiers": ["best-effort", "standard"], "priority_min": -10**9, "priority_max": 1000, "preempt": False}
        assert may(PLAIN, d)["urgent"]["open"] is False and may(PLAIN, d)["urgent"]["tiers"] == []
        assert may(VICTIM, d)["urgent"]["tiers"][-1] == "critical" and may(VICTIM, d)["urgent"]["preempt"]
        assert may(OPERATOR, d)["standard"]["priority_max"] == 10**9
        done = subprocess.run([STOKER, "quota"], user=PLAIN, group=PLAIN, extra_groups=[], env={**os.environ, "STOKER_SOCKET": str(d.socket), "HOME": "/"},
                              cwd="/", capture_output=True, text=True, check=False)
        assert "I MAY USE" in done.stdout and any(row.startswith("urgent") and row.endswith("nothing") for row in done.stdout.splitlines()), done


def test_quota_shows_what_the_classes_of_the_tenant_leave_of_a_queue():
    config = STAFF + ("queues: {serving: {class: 900, classes: [800, 1000]}}\n"
                      "tenants: [{name: students, users: [nobody], allow: {classes: [100, 500]}}, {name: staff, users: [daemon]}]\n")
    with serve(config=config) as d:
        status, body = ask_as(PLAIN, d, "GET", "/v1/quota")
        may = {q["name"]: q["may"] for q in body["queues"]}
        assert status == 200 and may["serving"]["open"] is False and may["serving"]["tiers"] == [], may
        assert may["express"]["open"] and (may["express"]["priority_min"], may["express"]["priority_max"]) == (100, 500)
        refused(ask(PLAIN, d, queue="serving"), "priority", "900", "queue serving", "100 to 500", "allow.classes of tenant students")
        refused(ask(PLAIN, d, queue="express"), "1000", "queue express", "allow.classes of tenant students")
        assert ask(PLAIN, d, queue="express", priority=400)[0] == 201
        done = subprocess.run([STOKER, "quota"], user=PLAIN, group=PLAIN, extra_groups=[], env={**os.environ, "STOKER_SOCKET": str(d.socket), "HOME": "/"},
                              cwd="/", capture_output=True, text=True, check=False)
        rows = {row.split()[0]: row for row in done.stdout.splitlines() if row}
        assert rows["serving"].endswith("nothing"), done
        assert rows["express"].endswith("best-effort, standard; needs --priority 100 to 500"), done
        assert rows["standard"].endswith("best-effort, standard"), done
        assert rows["reserved"].endswith("best-effort, standard; needs --tier"), done


# ---- what "why" offers ----

def offers(uid, d, number):
    status, body = ask_as(uid, d, "GET", f"/v1/jobs/{number}/why")
    assert status == 200, body
    return {c["kind"]: c["command"] for c in body["changes"]}


def test_why_offers_only_what_the_asker_may_do(daemon):
    running(VICTIM, daemon, gpus=4)
    number = submit(PLAIN, daemon, gpus=4)
    mine, operators = offers(PLAIN, daemon, number), offers(OPERATOR, daemon, number)
    assert {"priority", "tier", "queue"} & set(operators)
    assert not {"priority", "tier", "queue"} & set(mine)
    assert offers(VICTIM, daemon, number) == {}


def test_what_why_offers_is_accepted(daemon):
    running(VICTIM, daemon, gpus=3)
    number = submit(PLAIN, daemon, gpus=4)
    mine = offers(PLAIN, daemon, number)
    assert "gpus" in mine, mine
    done = subprocess.run([STOKER, *mine["gpus"].split()[1:]], user=PLAIN, group=PLAIN, extra_groups=[],
                          env={**os.environ, "STOKER_SOCKET": str(daemon.socket), "HOME": "/"}, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    daemon.until(number, "running")


# ---- schedules ----

def test_a_schedule_is_held_to_the_same(daemon):
    refused(ask(PLAIN, daemon, gpus=1, tier="critical", schedule={"cron": "* * * * *"}), "critical")


def test_a_schedule_gives_a_token_no_more_than_its_role(daemon):
    """The operator's token has the role user: jobs of its schedule are plain. Those of the operator's own schedule are not."""
    job = {"command": SLEEP, "workdir": "/", "stdout": "/dev/null", "gpus": 1, "queue": "express", "schedule": {"cron": "* * * * *"}}
    status, made = ask_as(OPERATOR, daemon, "POST", "/v1/tokens", {"name": "t", "role": "user"})
    assert status == 201, made
    a = daemon.web(made["token"]).post("/v1/jobs", job)
    assert a.status == 201, a
    schedules = [a.json["id"], submit(OPERATOR, daemon, **job)]

    def made_by(schedule):
        last = daemon.job(schedule)["schedule"].get("last_job")
        return last and daemon.job(last)["spec"]

    until(lambda: all(map(made_by, schedules)), say=lambda: daemon.errors, pause=0.2)
    assert [made_by(s).get("plain", False) for s in schedules] == [True, False]


# ---- adopt ----

def adopt(uid, d, pid, *gpus):
    return ask_as(uid, d, "POST", "/v1/adopt", {"pid": pid, "gpus": list(gpus)})


def over(answer, *words):
    status, body = answer
    assert status == 403 and body["error"]["code"] == "over_limit", answer
    assert all(w in body["error"]["message"] for w in words), body


def test_adopted_processes_are_held_to_the_limit_of_their_tenant(process):
    with serve(gpus=8, config=STAFF + "tenants: [{name: small, limit: 2, users: [nobody]}]\n") as d:
        assert adopt(PLAIN, d, process(PLAIN), 0, 1)[0] == 201
        for first in (2, 4, 6):
            over(adopt(PLAIN, d, process(PLAIN), first, first + 1), "tenant small", "2 of 2 GPUs", "needs 2 more", "stoker quota set")
        over(adopt(OPERATOR, d, process(PLAIN), 2), "tenant small")
        status, body = adopt(PLAIN, d, process(PLAIN), 2, 3, 4)
        assert status == 422 and "small" in body["error"]["message"]  # never within the limit
        assert [g["job"] for g in d.get("/v1/gpus")["gpus"]] == [1, 1] + [None] * 6
        d.post("/v1/tenants/small/quota", {"limit": 4})
        assert adopt(PLAIN, d, process(PLAIN), 2, 3)[0] == 201


def test_adopted_processes_are_held_to_the_limits_and_rights_of_their_queue(process):
    config = STAFF + "queues: {standard: {user: {gpus: 2, jobs: 2}, all: {gpus: 3}, job: {gpus: 2}}}\n"
    with serve(gpus=8, config=config) as d:
        submit(PLAIN, d, gpus=1)
        assert adopt(PLAIN, d, process(PLAIN), 6, 7)[0] == 403
        assert adopt(PLAIN, d, process(PLAIN), 7)[0] == 201
        over(adopt(PLAIN, d, process(PLAIN)), "its user in queue standard", "2 of 2 jobs")
        over(adopt(VICTIM, d, process(VICTIM), 4, 5), "everybody together", "2 of 3 GPUs")
        assert adopt(VICTIM, d, process(VICTIM), 3, 4, 5)[0] == 422
        d.config.write_text(STAFF + "queues: {standard: {allow: {users: [daemon]}}}\n")
        d.reload()
        until(lambda: "not open" in str(ask(PLAIN, d, gpus=0)), say="the new configuration")
        refused(adopt(PLAIN, d, process(PLAIN)), "not open to nobody")


def test_an_adopted_process_is_a_standard_job_and_gives_way_to_nobody_but_a_guarantee(daemon, process):
    assert adopt(PLAIN, daemon, process(PLAIN), 0, 1, 2, 3)[0] == 201
    job = daemon.until(1, "running")
    assert job["tier"] == "standard"
    waits = submit(OPERATOR, daemon, gpus=4, tier="critical")
    assert daemon.job(waits)["state"] == "waiting"
    untouched(daemon, 1)


def test_a_drained_gpu_is_not_adopted_by_a_plain_user(daemon, process):
    daemon.post("/v1/gpus/2/drain")
    status, body = adopt(PLAIN, daemon, process(PLAIN), 2)
    assert status == 409 and "drained" in body["error"]["message"]
