# SPDX-License-Identifier: Apache-2.0
"""Tenants and queues that get other names, or go: what names them goes along, or keeps them."""
import json
import os
import pwd

import pytest
import storefile
from daemon import Daemon, stoker
from patience import until

ME = pwd.getpwuid(os.getuid()).pw_name
CONFIG = f"""
tenants:
  - {{name: vision, users: [{ME}]}}
  - {{name: speech, users: [{ME}]}}
queues:
  night: {{class: batch}}
"""
GONE = CONFIG.replace("  - {name: vision", "#")
RENAMED = CONFIG.replace("name: vision", "name: optics, was: vision").replace("night: {", "dark: {was: night, ")
DROPPED = RENAMED.replace(", was: vision", "").replace("was: night, ", "")


@pytest.fixture(name="d")
def daemon(tmp_path):
    with Daemon(tmp_path, gpus=4, config=CONFIG) as d:
        yield d


def take(d, text, how="reload"):
    """None: the daemon has it; else why not."""
    d.config.write_text(text)
    if how == "reload":
        n = len(d.errors)
        d.reload()
        said = until(lambda: next((e for e in d.errors[n:] if "read again" in e or "not changed" in e), None))
        return None if "read again" in said else said
    if d.alive():
        d.stop()
    try:
        d.start()
    except RuntimeError as e:
        return str(e)
    return None


def reserved(d, name):
    return next(r for r in d.get("/v1/reservations")["reservations"] if r["name"] == name)


@pytest.mark.parametrize("how", ["reload", "restart"])
def test_a_tenant_with_a_reservation_goes_with_it_or_stays(d, how):
    stoker(d, "reserve", "add", "res1", "--gpus", "2", "--for", "1h", "--tenant", "vision")
    stoker(d, "reserve", "add", "later", "--gpus", "1", "--for", "1h", "--cron", "0 0 29 2 *", "--tenant", "vision")
    said = take(d, GONE, how)
    assert said and "reservation res1 is for tenant vision" in said and "stoker reserve rm" in said
    assert take(d, CONFIG, how) is None
    assert reserved(d, "res1")["gpus_held"] == 2
    assert take(d, RENAMED, how) is None
    for text in (None, DROPPED):
        assert text is None or take(d, text, how) is None
        assert [(reserved(d, n)["tenant"], reserved(d, n)["state"]) for n in ("res1", "later")] == [("optics", "open"), ("optics", "pending")]
        assert reserved(d, "res1")["gpus_held"] == 2
        assert "optics" in stoker(d, "reserve", "list") and "vision" not in stoker(d, "reserve", "list")
    stoker(d, "reserve", "rm", "res1")
    stoker(d, "reserve", "rm", "later")
    assert take(d, CONFIG.replace("  - {name: vision", "#"), how) is None  # nothing names it any more


def test_a_reservation_whose_tenant_is_gone_already_can_be_removed(d):
    stoker(d, "reserve", "add", "res1", "--gpus", "2", "--for", "1h", "--tenant", "vision")
    stoker(d, "reserve", "add", "rest", "--gpus", "1", "--for", "1h", "--tenant", "speech")
    d.stop()
    with storefile.edit(d.state) as db:  # as an earlier daemon has left it: in the list, and of no window
        rows = json.loads(db.execute("SELECT value FROM meta WHERE name = 'reservations'").fetchone()[0])
        rows[0].update(window=77, tenant="gone")
        db.execute("UPDATE meta SET value = ? WHERE name = 'reservations'", (json.dumps(rows).encode(),))
    d.start()
    assert reserved(d, "res1")["state"] == "lost" and "remove it" in reserved(d, "res1")["note"]
    assert reserved(d, "rest")["state"] == "open"
    assert take(d, CONFIG.replace("night:", "dusk:")) is None  # it keeps no other change away
    stoker(d, "reserve", "rm", "res1")
    assert reserved(d, "res1")["state"] == "removed"
    assert d.submit(command=["/bin/true"], stdout="/dev/null") and not [e for e in d.errors if "nothing can be written" in e]


@pytest.mark.parametrize("how", ["reload", "restart"])
def test_a_job_ends_under_the_name_that_its_tenant_has_then(d, how):
    before = d.submit(command=["/bin/true"], stdout="/dev/null", tenant="vision", queue="night")
    d.wait(before)
    job = d.submit(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.1; done"], stdout="/dev/null", gpus=1, tenant="vision", queue="night")
    d.until(job, "running")
    assert take(d, RENAMED, how) is None
    assert (d.job(job)["tenant"], d.job(job)["queue"]) == ("optics", "dark")
    (d.folder / "go").touch()
    d.wait(job)
    done = d.history()
    assert [(done[n]["tenant"], done[n]["queue"]) for n in (before, job)] == [("vision", "night"), ("optics", "dark")]
    assert "optics" in stoker(d, "report", "--by", "team")


@pytest.mark.parametrize("how", ["reload", "restart"])
def test_was_may_go_once_it_was_read(d, how):
    hold = {"command": ["/bin/true"], "stdout": "/dev/null", "hold": True}
    named, meant = d.submit(**hold, tenant="vision", queue="night"), d.submit(**hold, account="vision", pool="night")
    array = d.submit(**hold, tenant="vision", array={"last": 3})
    schedule = d.submit(command=["/bin/true"], stdout="/dev/null", tenant="vision", queue="night", schedule={"cron": "0 0 29 2 *"})
    forever = {"when": "* * * * *", "until": "1d"}
    d.post("/v1/rules", {"name": "less", **forever, "then": [{"tenant": "vision", "limit": 3}, {"queue": "night", "all_jobs": 5}]})
    until(lambda: {t["name"]: t for t in d.get("/v1/tenants")["tenants"]}["vision"]["limit"] == 3)
    assert take(d, RENAMED, how) is None
    assert take(d, DROPPED, how) is None
    for n in (named, meant):
        stoker(d, "update", n, "--priority", "50")
        assert (d.job(n)["tenant"], d.job(n)["queue"], d.job(n)["priority"]) == ("optics", "dark", 50)
        assert (d.job(n)["spec"]["tenant"], d.job(n)["spec"]["queue"]) == ("optics", "dark")
    assert [d.job(array + i)["spec"]["tenant"] for i in range(4)] == ["optics"] * 4
    assert d.job(schedule)["spec"]["queue"] == "dark"  # what it submits is of this description
    rule = d.get("/v1/rules/less")
    assert rule["error"] == "" and [c.get("tenant") or c.get("queue") for c in rule["then"]] == ["optics", "dark"]
    stoker(d, "rule", "rm", "less")
    until(lambda: {t["name"]: t for t in d.get("/v1/tenants")["tenants"]}["optics"]["limit"] is None)  # what the rule set goes with it
