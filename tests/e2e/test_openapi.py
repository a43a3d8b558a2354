# SPDX-License-Identifier: Apache-2.0
"""The document that describes the API says what the server really takes: bounds, words, methods."""
import re
import urllib.parse

import jsonschema
import pytest
from daemon import STOKERD, Daemon

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd")
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
STREAMS = {"/v1/events", "/v1/jobs/{id}/wait"}  # they answer later: only what they refuse is asked of them


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("openapi"), gpus=2) as d:
        yield d


@pytest.fixture(scope="module")
def document(daemon):
    return daemon.get("/openapi.json")


def routes(document):
    for path, verbs in document["paths"].items():
        for verb, route in verbs.items():
            yield path, verb.upper(), route


def queries(document):
    """Every parameter of a query, with those beside it that must be there."""
    for path, verb, route in routes(document):
        given = [p for p in route["parameters"] if p["in"] == "query"]
        for p in given:
            yield path, verb, p, {q["name"]: q["schema"]["enum"][0] for q in given if q["required"] and q is not p}


def ask(daemon, job, path, verb, query):
    path = path.replace("{id}", str(job)).replace("{name}", "nobody").replace("{index}", "0")
    return daemon.client().ask(verb, path + "?" + urllib.parse.urlencode(query))


def test_every_name_of_a_query_is_described(daemon, document):
    for path, verb, route in routes(document):
        if verb != "GET" or path in STREAMS:
            continue
        a = ask(daemon, 1, path, verb, {"nonsense": 1})
        assert a.status == 400, (path, a)
        told = a.message.partition("there are: ")[2].split()
        assert sorted(told) == sorted(p["name"] for p in route["parameters"] if p["in"] == "query"), path


def test_queries_take_what_the_document_says_and_no_more(daemon, document):
    job, numbers, words = daemon.submit(command=["/bin/true"]), 0, 0
    daemon.wait(job)
    daemon.post("/v1/baselines", {"name": "nobody", "since": daemon.get("/v1/health")["now"] - 100})
    for path, verb, p, beside in queries(document):
        name, schema = p["name"], p["schema"]
        wrong = re.compile(rf"\b{name} must be (a|one|stdout|line|tenant|gpu|held|completed|todo)\b")

        def refused(value):
            a = ask(daemon, job, path, verb, beside | {name: value})
            return a.status == 400 and bool(wrong.search(a.message))

        if verb != "GET" and name != "dry_run":
            continue
        if schema["type"] == "integer":
            numbers += 1
            beside = dict(beside)
            if path == "/v1/series":
                beside["of"] = {"gpu": "gpu", "id": "job"}.get(name, "cluster")
            assert refused(schema["maximum"] + 1) and refused(-1), (path, name)
            if path not in STREAMS and name not in ("since", "until") and verb == "GET":
                assert not refused(schema["maximum"]) and not refused(schema["minimum"]), (path, name)
        elif "enum" in schema:
            words += 1
            assert refused("nonsense") and refused(""), (path, name)
            for word in schema["enum"] if path not in STREAMS else ["running"]:
                assert not refused(word), (path, name, word)
    assert numbers > 30 and words > 5


def test_405_names_the_methods_of_the_route(daemon, document):
    for path, verbs in document["paths"].items():
        there = {v.upper() for v in verbs}
        for method in sorted(METHODS - there):
            concrete = path.replace("{id}", "1").replace("{name}", "nobody").replace("{index}", "0")
            a = daemon.client().ask(method, concrete)
            if a.status != 405:  # "test" may be the name of a rule, too
                assert path == "/v1/rules/test" and a.status == 404, (method, path, a)
                continue
            assert set(a.headers["Allow"].split(", ")) == there, (method, path, a.headers["Allow"])


def bounds(schema, where=()):
    """Each bound of a number, text or list of the description of a job: the keys to it, and its schema."""
    for name, s in schema.get("properties", {}).items():
        yield (*where, name), s
        yield from bounds(s, (*where, name))


def job_with(keys, value):
    job = {}
    for k in reversed(keys):
        value = {k: value}
    job.update(value)
    job.setdefault("command", ["/bin/true"])
    return job


def test_the_bounds_of_a_job_are_those_of_the_check(daemon, document):
    """What the schema refuses by a bound, a word or a pattern, the server refuses, naming the same key."""
    whole = document["components"]["schemas"]["JobSpec"]
    check = jsonschema.Draft202012Validator(whole)
    tried = 0
    for keys, s in bounds(whole):
        values = []
        if s.get("type") in ("integer", "number"):
            values = [s["minimum"] - 1, s["maximum"] + 1]
        elif "enum" in s:
            values = ["nonsense"]
        elif s.get("type") == "string":
            values = ["x" * (s["maxLength"] + 1)] if s["maxLength"] <= 65536 else []
            values += ["a\0b"] + ([""] if s.get("minLength") else [])
            assert "pattern" in s or s["not"] == {"pattern": "\\x00"}, keys
        elif s.get("type") == "array" and s["maxItems"] <= 4096:
            values = [[1 if s["items"]["type"] == "integer" else "x"] * (s["maxItems"] + 1)]
        for v in values:
            tried += 1
            assert not check.is_valid(job_with(keys, v)), (keys, v)
            a = daemon.client().post("/v1/jobs?dry_run=1", job_with(keys, v))
            assert a.status == 400, (keys, str(v)[:40], a)
    assert tried > 150


@pytest.mark.parametrize("job", [
    {"command": [""]}, {"command": []}, {}, {"interactive": False}, {"workdir": "here"}, {"name": "a/b"}, {"comment": "a\nb"}, {"name": "a\u202eb"},
    {"stdout": "%q"}, {"stdout": "%"}, {"envs": {"A=B": "1"}}, {"envs": {"": "1"}}, {"secrets": {"1A": "/x"}}, {"secrets": {"A": "x"}},
    {"resources": {"a b": 1}}, {"nodelist": [""]}, {"gpus": 1, "gpu_types": {"": 1}}, {"signal": {"signal": "NOSUCH"}}, {"signal": {"signal": "65"}}, {"image": "-x"}])
def test_texts_that_the_server_refuses_are_refused_by_the_schema(daemon, document, job):
    if not {"command", "interactive"} & set(job) and job:
        job = job | {"command": ["/bin/true"]}
    assert daemon.client().post("/v1/jobs?dry_run=1", job).status == 400
    assert not jsonschema.Draft202012Validator(document["components"]["schemas"]["JobSpec"]).is_valid(job)


@pytest.mark.parametrize("job", [
    {"interactive": True}, {"script": "echo"}, {"command": ["/bin/true", ""]}, {"stdout": "%4a-%j.out"}, {"signal": {"signal": "SIGUSR1"}}, {"signal": {"signal": "64"}},
    {"envs": {"BASH_FUNC_x%%": "a\nb"}}, {"comment": "grüße – 你好"}, {"image": "/srv/image"}, {"image": "docker.io/a/b:1"}])
def test_texts_that_the_server_takes_are_taken_by_the_schema(daemon, document, job):
    if not {"command", "interactive", "script"} & set(job):
        job = job | {"command": ["/bin/true"]}
    a = daemon.client().post("/v1/jobs?dry_run=1", job | {"workdir": str(daemon.folder)})
    assert a.status in (200, 201), a
    jsonschema.Draft202012Validator(document["components"]["schemas"]["JobSpec"]).validate(job)


def test_routes_that_are_open_on_this_machine_say_so(document):
    for path in ("/v1/health", "/v1/cluster", "/metrics"):
        assert document["paths"][path]["get"]["security"] == [{"bearer": []}, {}]


def test_a_zone_that_is_too_long_is_refused_as_such(daemon):
    a = daemon.client().post("/v1/rules/test", {"rule": {"name": "r", "zone": "x" * 300, "when": "0 8 * * *", "until": "1h", "then": [{"policy": "srtf"}]}})
    assert a.status == 400 and "zone must be the name of a time zone" in a.message


REFUSED = [
    ("/v1/jobs/{id}/signal", {}), ("/v1/jobs/{id}/signal", {"signal": 65}), ("/v1/jobs/{id}/signal", {"signal": 4294967297}), ("/v1/jobs/{id}/signal", {"signal": "NOSUCH"}),
    ("/v1/jobs/act", {"verb": "cancel", "ids": [4294967295]}), ("/v1/jobs/act", {"verb": "signal", "ids": [1], "signal": 0}), ("/v1/adopt", {"pid": 2147483648}),
    ("/v1/jobs/{id}/report", {"checkpoint": {"steps": 1}}), ("/v1/tokens", {"expires_s": 315576001}), ("/v1/rules/test", {}),
    ("/v1/rules", {"name": "a b", "when": "0 8 * * *", "until": "1h", "then": [{"policy": "srtf"}]}), ("/v1/baselines", {"name": "a b", "since": 1}),
    ("/v1/reservations", {"name": "r", "for_s": 60}), ("/v1/reservations", {"name": "r", "for_s": 60, "gpus": 1000001}), ("/v1/reservations", {"name": "r", "for_s": 31622401, "gpus": 1}),
    ("/v1/reservations", {"name": "r", "for_s": 60, "gpus": 1, "grace_s": 31622401}), ("/v1/reservations", {"name": "r", "for_s": 60, "gpus": 1, "nodes": ["a"]}),
    ("/v1/reservations", {"name": "r", "for_s": 60, "nodes": ["a"], "pool": "p"}), ("/v1/whatif", {}), ("/v1/whatif", {"since": 1, "changes": {"policy": {"params": [{}]}}})]


@pytest.mark.parametrize("path, body", REFUSED)
def test_bodies_that_the_server_refuses_are_refused_by_the_schema(daemon, document, path, body):
    job = daemon.submit(command=["/bin/true"], hold=True)
    a = daemon.client().post(path.replace("{id}", str(job)), body)
    assert a.status == 400, a
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert not jsonschema.Draft202012Validator(schema | {"components": document["components"]}).is_valid(body)


def test_bodies_are_needed_where_the_document_says_so(daemon, document):
    job = daemon.submit(command=["/bin/true"], hold=True)
    for path, verb, route in routes(document):
        if "requestBody" in route and path != "/v1/login":  # only of browsers
            a = daemon.client().ask(verb, path.replace("{id}", str(job)).replace("{name}", "nobody"))
            assert route["requestBody"]["required"] == (a.status == 400), (path, a)
