# SPDX-License-Identifier: Apache-2.0
"""Tenants and queues on a real daemon: who may have what, who waits and why, what survives what."""
import json
import os
import pathlib
import pwd
import re
import subprocess

import pytest
from daemon import STOKER, Daemon, stoker
from patience import PATIENCE_S, until

BUILD = STOKER.parent

ME = pwd.getpwuid(os.getuid()).pw_name
ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = f"""
tenants:
  - name: research
    limit: 3
    tenants:
      - {{name: vision, limit: 2, users: [{ME}]}}
      - {{name: speech, users: [{ME}]}}
  - {{name: others, users: [nobody-else]}}
queues:
  express: {{job: {{gpus: 1, time: 1h}}, user: {{jobs: 1}}, classes: [training, inference]}}
  night: {{class: batch, tier: best-effort, all: {{gpus: 1}}}}
"""
SLEEP = ["/bin/sleep", "600"]


@pytest.fixture
def teams(tmp_path):
    with Daemon(tmp_path, gpus=4, config=CONFIG) as d:
        yield d


def refused(d, **job):
    a = d.client().post("/v1/jobs", {"command": ["/bin/true"], "workdir": "/", "stdout": "/dev/null", **job})
    assert a.status == 422, a
    return a.json["error"]["message"]


def submit(d, **job):
    return d.submit(command=SLEEP, stdout="/dev/null", **job)


def tenant(d, name):
    return {t["name"]: t for t in d.get("/v1/tenants")["tenants"]}[name]


def test_a_job_belongs_to_the_tenant_it_names_or_to_the_users_first(teams):
    a = submit(teams, gpus=1)
    b = submit(teams, gpus=1, tenant="speech")
    c = submit(teams, gpus=1, account="speech")
    assert [teams.job(j)["tenant"] for j in (a, b, c)] == ["vision", "speech", "speech"]
    assert [j["id"] for j in teams.jobs("?tenant=speech")] == [b, c]
    assert teams.job(submit(teams, account="some label"))["tenant"] == "vision"
    assert f'there is no tenant "x"; {ME} is a member of vision, speech' in refused(teams, tenant="x")
    assert f"{ME} is not a member of others, but of vision, speech" in refused(teams, tenant="others")
    assert f"{ME} is not a member of default" in refused(teams, tenant="default")
    assert "research has others below it" in refused(teams, tenant="research")
    assert f"{ME} is not a member of others" in refused(teams, account="others")


def test_guarantees_are_kept_without_a_word_on_policies(tmp_path):
    config = f"""
tenants:
  - {{name: vision, guarantee: 2, users: [{ME}]}}
  - {{name: guests, users: [{ME}]}}
"""
    with Daemon(tmp_path, gpus=2, config=config) as d:
        borrower = submit(d, gpus=2, tenant="guests")
        d.until(borrower, "running")
        owner = submit(d, gpus=2, tenant="vision")
        d.until(owner, "running")
        assert d.job(borrower)["state"] in ("stopping", "suspended", "waiting") and d.job(borrower)["preemptions"] == 1
        assert tenant(d, "vision")["used"] == 2


def test_who_is_over_a_limit_waits_with_the_reason_and_goes_on_when_there_is_room(teams):
    a = submit(teams, gpus=2)
    b = submit(teams, gpus=1)
    c = submit(teams, gpus=1, tenant="speech")
    teams.until(c, "running")
    reason = teams.job(b)["reason"]
    assert reason["code"] == "limit" and "over the limit of" in reason["sentence"]
    assert reason["limit"] == {"of": "tenant", "tenant": "research", "queue": None, "unit": "gpus", "used": 3.0, "limit": 3.0}
    assert tenant(teams, "vision")["used"] == 2 and tenant(teams, "vision")["waiting"] == 1
    assert tenant(teams, "research")["jobs_running"] == 2
    teams.post(f"/v1/jobs/{a}/cancel")
    teams.until(b, "running")
    assert "needs 3 GPUs; the limit of tenant vision is less" in refused(teams, gpus=3)


def test_limits_on_cpus_and_memory(teams):
    a = submit(teams, gpus=1, cpus=1)
    assert tenant(teams, "vision")["cpus"] is None and tenant(teams, "vision")["cpus_used"] is None
    stoker(teams, "quota", "set", "research", "cpus=1.5", "mem_gib=0.5")
    b = submit(teams, gpus=1, cpus=1)
    c = submit(teams, gpus=1, tenant="speech")
    teams.until(a, "running"), teams.until(c, "running")
    assert teams.job(b)["reason"]["limit"] == {"of": "tenant", "tenant": "research", "queue": None, "unit": "cpus", "used": 1.0, "limit": 1.5}
    assert "is over the limit of research: uses 1 of 1.5 CPUs" in stoker(teams, "why", b)
    row = tenant(teams, "research")
    assert (row["cpus"], row["cpus_used"], row["mem_gib"], row["mem_gib_used"]) == (1.5, 1, 0.5, 0)
    teams.kill()
    teams.start()
    assert tenant(teams, "research")["cpus_used"] == 1
    stoker(teams, "quota", "set", "research", "cpus=config", "mem_gib=none")
    teams.until(b, "running")


def test_queues_have_limits_a_default_time_and_ranges(teams):
    a = submit(teams, queue="express", gpus=1)
    b = submit(teams, queue="express", gpus=1)
    teams.until(a, "running")
    assert teams.job(a)["priority"] == 1000 and teams.job(a)["time_limit_s"] == 3600 and teams.job(a)["queue"] == "express"
    assert teams.job(b)["reason"]["limit"] == {"of": "user", "tenant": None, "queue": "express", "unit": "jobs", "used": 1.0, "limit": 1.0}
    assert f"is over a limit of queue express: its user has 1 of 1 jobs running there" in stoker(teams, "why", b)
    night = submit(teams, queue="night")
    assert (teams.job(night)["priority"], teams.job(night)["tier"]) == (100, "best-effort")
    assert teams.job(submit(teams, pool="night"))["queue"] == "night"
    assert teams.job(submit(teams, qos="night"))["queue"] == "night"
    assert teams.job(submit(teams, **{"class": "batch"}))["priority"] == 100
    assert teams.job(submit(teams, nice=30))["priority"] == 470
    assert "needs 2 GPUs; a job in queue express may have at most 1" in refused(teams, queue="express", gpus=2)
    assert "may run for at most 3600 s, got 7200" in refused(teams, queue="express", time_limit_s=7200)
    assert "priority in queue express must be 500 to 1000, got 100" in refused(teams, queue="express", priority=100)
    assert 'did you mean "express"?' in refused(teams, queue="expres")
    assert "there are: inference, training, batch" in refused(teams, **{"class": "x"})
    assert "cannot be given together with priority" in refused(teams, **{"class": "batch", "priority": 1})
    assert [j["id"] for j in teams.jobs("?queue=express")] == [a, b]


def test_history_knows_tenant_and_queue(teams):
    a = teams.submit(command=["/bin/true"], stdout="/dev/null", queue="night", tenant="speech")
    b = teams.submit(command=["/bin/true"], stdout="/dev/null")
    teams.wait(a), teams.wait(b)
    assert list(teams.history("&tenant=speech")) == [a]
    assert list(teams.history("&queue=standard")) == [b]
    assert (teams.job(a)["queue"], teams.job(a)["tenant"]) == ("night", "speech")
    assert [j["id"] for j in json.loads(stoker(teams, "history", "--json", "--tenant", "vision"))["jobs"]] == [b]


def test_tenants_and_quota_are_shown(teams):
    submit(teams, gpus=2)
    assert re.search(r"^ID +NAME +USER +STATE +GPUS +TIME +PRIO +TENANT +QUEUE +GPUS/REASON\n +1 .* vision +standard ", stoker(teams, "queue"), re.M)
    text = stoker(teams, "tenants")
    assert re.search(r"^research +2 +0 +3 ", text, re.M) and re.search(r"^  vision \* +2 +0 +2 ", text, re.M), text
    assert {t["name"] for t in json.loads(stoker(teams, "tenants", "--json"))["tenants"]} == {"default", "research", "vision", "speech", "others"}
    submit(teams, queue="express")
    text = stoker(teams, "quota")
    assert f"{ME} runs for vision, speech" in text
    assert re.search(r"^express +1000 +standard +1 +1:00:00 +- +1/1 ", text, re.M), text
    quota = json.loads(stoker(teams, "quota", "--json"))
    night = {q["name"]: q for q in quota["queues"]}["night"]
    assert night["all"] == {"gpus": 1.0, "jobs": None, "gpus_used": 0.0, "jobs_used": 0}
    assert quota["queues"][0]["name"] == "standard" and quota["queues"][0]["default"]


def test_an_operator_sets_quotas_which_hold_over_a_crash_until_they_are_put_back(teams):
    submit(teams, gpus=2)
    b = submit(teams, gpus=1)
    stoker(teams, "quota", "set", "vision", "limit=3", "weight=2")
    teams.until(b, "running")
    teams.kill()
    teams.start()
    assert (tenant(teams, "vision")["limit"], tenant(teams, "vision")["weight"]) == (3, 2)
    stoker(teams, "quota", "set", "vision", "limit=config")
    assert (tenant(teams, "vision")["limit"], tenant(teams, "vision")["weight"]) == (2, 2)
    assert teams.job(b)["state"] == "running"  # nothing is taken away
    assert "is more than its limit" in stoker(teams, "quota", "set", "vision", "limit=1", "guarantee=2", code=1)
    assert tenant(teams, "vision")["limit"] == 2  # all of it, or nothing
    assert 'there is no tenant "x"' in stoker(teams, "quota", "set", "x", "limit=1", code=1)
    assert "takes limit=N" in stoker(teams, "quota", "set", "vision", "size=1", code=2)
    assert "in thousandths" in teams.client().post("/v1/tenants/vision/quota", {"limit": 0.0001}).json["error"]["message"]


def test_so_many_jobs_of_a_tenant_stay_up(teams):
    low = [submit(teams, gpus=1, tenant="speech", queue="preemptible") for _ in range(2)]
    for job in low:
        teams.until(job, "running")
    stoker(teams, "quota", "set", "research", "keep_up=2")
    assert (tenant(teams, "research")["keep_up"], tenant(teams, "research")["jobs_up"]) == (2, 2)
    assert re.search(r"^research .* 2! *$", stoker(teams, "tenants"), re.M)
    waits = submit(teams, gpus=2, tenant="vision")
    assert teams.job(waits)["state"] == "waiting"
    teams.kill()
    teams.start()
    assert tenant(teams, "research")["keep_up"] == 2 and teams.job(waits)["state"] == "waiting"
    stoker(teams, "quota", "set", "research", "keep_up=1", "limit=none")
    teams.until(waits, "running")
    assert [teams.job(j)["state"] for j in low] == ["running", "running"]  # one more GPU was free
    stoker(teams, "quota", "set", "vision", "limit=3")
    last = submit(teams, gpus=1, tenant="vision")
    teams.until(last, "running")
    assert sorted(teams.job(j)["state"] == "running" for j in low) == [False, True]
    assert "a number of jobs" in teams.client().post("/v1/tenants/research/quota", {"keep_up": 1.5}).json["error"]["message"]
    stoker(teams, "quota", "set", "research", "keep_up=config")
    assert tenant(teams, "research")["keep_up"] == 0


def test_users_see_all_and_change_nothing(teams):
    user = teams.web(teams.post("/v1/tokens", {"name": "t", "role": "user"})["token"])
    assert user.get("/v1/tenants").status == 200 and user.get("/v1/quota").status == 200
    assert user.post("/v1/tenants/vision/quota", {"limit": 9}).status == 403
    assert tenant(teams, "vision")["limit"] == 2


def test_other_tables_after_a_crash_and_by_a_reload(teams):
    a = submit(teams, gpus=1, queue="night", hold=True)
    b = submit(teams, gpus=1, tenant="speech")
    teams.until(b, "running")
    teams.kill()
    teams.config.write_text(CONFIG.replace("  night:", "  dawn: {class: 5}\n  night:", 1).replace("name: others", "name: guests")
                            .replace("limit: 3", "limit: 1"))
    teams.start()  # what has no jobs comes and goes
    assert (teams.job(a)["queue"], teams.job(a)["tenant"]) == ("night", "vision")
    assert (teams.job(b)["queue"], teams.job(b)["tenant"]) == ("standard", "speech")
    assert {"guests", "default"} <= {t["name"] for t in teams.get("/v1/tenants")["tenants"]}
    teams.config.write_text(CONFIG)
    teams.reload()
    until(lambda: "others" in {t["name"] for t in teams.get("/v1/tenants")["tenants"]})
    assert tenant(teams, "research")["limit"] == 3
    teams.config.write_text(CONFIG.replace("limit: 2", "limit: two"))
    teams.reload()
    teams.errors_with("stoker.yaml:6: a limit is a number of GPUs")
    assert tenant(teams, "vision")["limit"] == 2  # a bad file changes nothing


# What is said, the file that would strand jobs, one that takes them along, and where they are then.
RENAMED = [
    ("tenant speech has 2 jobs that have not ended", CONFIG.replace("name: speech", "name: audio"),
     CONFIG.replace("name: speech", "name: audio, was: speech"), ("tenant", "audio")),
    ("tenant speech has 2 jobs that have not ended", CONFIG.replace("      - {name: speech", "#"),
     CONFIG.replace("      - {name: speech", "#")
     .replace("name: others, users: [nobody-else]", f"name: others, users: [{ME}], was: speech"), ("tenant", "others")),
    ("tenant speech has 2 jobs that have not ended", CONFIG.split("queues:")[1].join(["queues:", ""]), None, None),
    ("tenant speech has 2 jobs that have not ended, and tenants below it now",
     CONFIG.replace(f"name: speech, users: [{ME}]", "name: speech, tenants: [{name: low}]"), None, None),
    ("queue night has 1 job that has not ended", CONFIG.replace("  night:", "  dusk:"),
     CONFIG.replace("  night: {", "  dusk: {was: night, "), ("queue", "dusk")),
]


@pytest.mark.parametrize("why,without,carried,now", RENAMED, ids=["renamed", "removed", "no tenants", "above others", "queue"])
@pytest.mark.parametrize("how", ["reload", "restart", "kill"])
def test_a_tenant_or_queue_with_jobs_goes_with_them_or_stays(teams, how, why, without, carried, now):
    running = submit(teams, gpus=1, tenant="speech")
    held = submit(teams, gpus=1, tenant="speech", queue="night", hold=True)
    ended = teams.submit(command=["/bin/true"], tenant="speech", queue="night", stdout="/dev/null")
    teams.until(running, "running"), teams.wait(ended)
    teams.post("/v1/tenants/speech/quota", {"limit": 3})

    def take(text):
        """True: the daemon has it."""
        teams.config.write_text(text)
        if how == "reload":
            n = len(teams.errors)
            teams.reload()
            return "read again" in until(lambda: next((e for e in teams.errors[n:] if "read again" in e or "not changed" in e), None))
        if teams.alive():
            teams.kill() if how == "kill" else teams.stop()
        try:
            teams.start()
        except Exception as e:  # its words
            teams.errors.append(str(e))
            return False
        return True

    def seen():
        return [(teams.job(j)["tenant"], teams.job(j)["queue"]) for j in (running, held)]

    before = seen()
    assert before == [("speech", "standard"), ("speech", "night")]
    assert not take(without)
    said = next(e for e in teams.errors if why in e)
    assert "put it back" in said or "Cancel them first" in said
    if how == "reload":
        assert seen() == before  # nothing of it was done
    assert take(CONFIG)  # putting the name back helps
    assert seen() == before and tenant(teams, "speech")["limit"] == 3
    if not carried:
        return
    assert take(carried)
    kind, name = now
    assert [teams.job(j)[kind] for j in (running, held)] == ([name] * 2 if kind == "tenant" else ["standard", name])
    assert [teams.job(j)["state"] for j in (running, held)] == ["running", "held"]
    if kind == "tenant":
        assert tenant(teams, name)["limit"] == 3 and tenant(teams, name)["used"] == 1  # what was set comes along
        assert teams.job(submit(teams, tenant="speech", hold=True))["tenant"] == name  # scripts that name the old one go on
    done = {j["id"]: j for j in teams.get("/v1/history")["jobs"]}[ended]
    assert (done["tenant"], done["queue"]) == ("speech", "night")  # that was so, and stays so
    plain = carried.replace(", was: speech", "").replace("was: night, ", "")
    assert take(plain)  # it is needed once
    if how == "reload":
        teams.kill()
        teams.start()
    assert [teams.job(j)[kind] for j in (running, held)] == ([name] * 2 if kind == "tenant" else ["standard", name])


def test_a_machine_without_tenants_says_so(tmp_path):
    with Daemon(tmp_path, gpus=1) as d:
        assert d.get("/v1/tenants") == {"tenants": [], "lending": [], "lending_cut": False, "price": {"currency": "", "gpu_hour": None, "kwh": None},
                                         "slurm": None}
        assert "there are no tenants here" in stoker(d, "tenants")
        assert [q["name"] for q in d.get("/v1/quota")["queues"]] == ["standard", "express", "batch", "preemptible", "reserved"]
        assert "there are no tenants here" in refused(d, tenant="vision")
        assert d.job(d.submit(command=["/bin/true"], stdout="/dev/null"))["tenant"] is None


def test_bad_configurations_are_refused_with_file_line_and_key(tmp_path):
    for text, says in ((CONFIG.replace("limit: 3", "limt: 3"), ':4: unknown key "limt"; a tenant has name, limit'),
                       (CONFIG.replace("class: batch", "class: slow"), ':11: there is no class "slow"'),
                       ("tenants: [{name: a, limits: {h100: 2}}]", ':1: the cluster has no GPUs of type "h100"; it has: virtual'),
                       ("queues: {express: {pool: far}}", ':1: there is no pool "far"')):
        path = tmp_path / "bad.yaml"
        path.write_text(text)
        p = subprocess.run([BUILD / "stokerd", "--config", path, "--state", tmp_path / "s", "--socket", tmp_path / "x.sock",
                            "--listen", "off", "--virtual-gpus", "2"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert p.returncode != 0 and f"bad.yaml{says}" in p.stderr, p


def test_the_guide_of_teams_is_true(tmp_path):
    text = (ROOT / "docs/guide/teams.md").read_text(encoding="utf-8")
    config = re.search(r"```yaml\n(.*?)```", text, re.S).group(1).replace("users: [ann, bob]", f"users: [ann, bob, {ME}]").replace(
        'users: [ann, "@vision"]', f'users: [ann, "@vision", {ME}]')
    (tmp_path / "train.sh").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "train.sh").chmod(0o755)
    (tmp_path / "eval.sh").symlink_to("train.sh")
    with Daemon(tmp_path / "d", gpus=8, config=config) as d:
        for line in re.findall(r"^    (stoker .*)$", text, re.M):
            if line.startswith("stoker submit:"):
                continue
            p = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False,
                               env={**os.environ, "STOKER_SOCKET": str(d.socket), "PATH": f"{BUILD}:{os.environ['PATH']}"})
            assert p.returncode == 0, p
        assert [(j["tenant"], j["queue"]) for j in d.jobs()] == [("speech", "standard"), ("vision", "express")]
        assert "needs 2 GPUs; a job in queue express may have at most 1" in refused(d, queue="express", gpus=2)


def test_numbers_that_were_set_are_marked_beside_those_of_the_configuration(tmp_path):
    with Daemon(tmp_path, gpus=4, config=CONFIG) as d:
        assert d.get("/v1/quota")["set"] == [] and tenant(d, "vision")["set"] == []
        stoker(d, "quota", "set", "vision", "limit=3")
        said = [{"tenant": "vision", "what": "limit", "gpu_type": None, "value": 3.0, "config": 2.0, "by": "quota"}]
        assert d.get("/v1/quota")["set"] == said and tenant(d, "vision")["set"] == said
        assert "vision: limit 3, set by hand; the configuration has 2" in stoker(d, "quota")
        assert re.search(r"^  vision \* +0 +0 +3! ", stoker(d, "tenants"), re.M)
        d.kill()
        (tmp_path / "stoker.yaml").write_text((tmp_path / "stoker.yaml").read_text().replace("limit: 2", "limit: 1"))
        d.start()
        assert tenant(d, "vision")["limit"] == 3
        assert d.errors_with("tenant vision: limit is 3, as it was set; the configuration has 1 (stoker quota set vision limit=config)")
        stoker(d, "quota", "set", "vision", "limit=config")
        assert tenant(d, "vision")["limit"] == 1 and d.get("/v1/quota")["set"] == []


def test_tenants_are_accounts_to_sacctmgr(teams):
    def sacctmgr(*words, code=0):
        p = subprocess.run([BUILD / "stoker-slurm", "sacctmgr", *words], capture_output=True, text=True,
                           env={**os.environ, "STOKER_SOCKET": str(teams.socket)}, check=False)
        assert p.returncode == code, p
        return p.stdout if code == 0 else p.stderr

    stoker(teams, "quota", "set", "research", "cpus=8", "mem_gib=2")
    rows = [r.split("|") for r in sacctmgr("-nP", "show", "assoc", "format=Account,User,ParentName,Share,GrpTRES%40").splitlines()]
    assert ["research", "", "root", "1", "cpu=8,gres/gpu=3,mem=2G"] in rows and ["vision", "", "research", "1", "gres/gpu=2"] in rows
    assert ["vision", ME, "", "1", ""] in rows and ["default", "", "root", "1", ""] in rows
    assert sacctmgr("-nP", "show", "assoc", f"user={ME}", "format=Account").split() == ["vision", "speech"]
    assert sacctmgr("-p", "list", "account", "account=speech").splitlines() == ["Account|Descr|Org|", "speech|speech|research|"]
    assert "express|1000||||01:00:00" in sacctmgr("-P", "show", "qos").splitlines()
    text = sacctmgr("show", "assoc")
    assert re.search(r"^ +Cluster +Account +User +ParentName +Share +GrpTRES", text) and len(text.splitlines()) == 10
    assert 'there is only "show assoc"' in sacctmgr("add", "account", "x", code=2)
    assert 'there is no "wckey" here' in sacctmgr("show", "wckey", code=2)


def test_a_script_names_tenant_queue_and_reservation(teams, tmp_path):
    script = tmp_path / "job.sbatch"
    script.write_text("#!/bin/sh\n#SBATCH -A speech -q night --reservation=none-such\ntrue\n")
    assert 'there is no "none-such" (stoker reserve list)' in stoker(teams, "submit", script, code=2)
    script.write_text("#!/bin/sh\n#SBATCH -A speech -q night -o /dev/null\nsleep 600\n")
    job = json.loads(stoker(teams, "submit", "--json", script))["id"]
    assert (teams.job(job)["tenant"], teams.job(job)["queue"]) == ("speech", "night")
    text = stoker(teams, "show", job)
    assert re.search(r"^ *tenant +speech$", text, re.M) and re.search(r"^ *queue +night$", text, re.M), text
