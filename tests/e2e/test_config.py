# SPDX-License-Identifier: Apache-2.0
"""`stoker config check` says what `stoker serve` would say, and `config show` prints a file that says the same."""
import json
import os
import random
import re
import subprocess
import tempfile

import pytest
import yaml
from daemon import STOKER, STOKERD, Daemon
from data import stoker_run
from patience import PATIENCE_S

ROUNDS = int(os.environ.get("STOKER_RUNS", "60"))

# Each is refused; the second is the line that is named.
WRONG = [
    ("polcy: easy\n", 1),
    ("listen: 127.0.0.1:0\nvirtual_gpus: many\n", 2),
    ("listen: somewhere\n", 1),
    ("state: /tmp\nlisten: 0.0.0.0:0\n", 2),
    ("socket: not/absolute\n", 1),
    ("socket: /tmp/" + "x" * 120 + "\n", 1),
    ("virtual_gpus: 2\nsocket: /nonexistdir/sub/z.sock\n", 2),
    ("virtual_gpus: 2\nsocket: /etc/hostname/z.sock\n", 2),
    ("virtual_gpus: 2\nsocket: /etc/hostname\n", 2),
    ("tls: {cert: /c.pem}\n", 1),
    ("virtual_gpus: 2\ntls:\n  cert: /no/such/cert.pem\n  key: /no/such/key.pem\n", 3),
    ("series: {step: 7s}\n", 1),
    ("series:\n  size: 1G\n  step: 0\n", 3),
    ("engine: slurm\n", 1),
    ("virtual_gpus: 2\nrules: /no/such/rules.yaml\n", 2),
    ("policy: fare\n", 1),
    ("policy:\n  bundle: las\n  params:\n    drain.after_s: 60\n", 4),
    ("virtual_gpus: 4\npolicy:\n  place: energy\n  params: {energy.cap_w: 500}\n", 4),
    ("policy:\n  order: fifo\n  preempt: afresh\n", 3),
    ("policy:\n  order: advised\n", 2),
    ("tenants:\n  - name: a\n    limit: 4\n    guarantee: 6\n", 2),
    ("virtual_gpus: 8\ntenants:\n  - name: top\n    guarantee: 2\n    tenants:\n      - {name: low, guarantee: 4}\n", 3),
    ("virtual_gpus: 2\ntenants:\n  - {name: a, guarantee: 3}\n", 2),
    ("virtual_gpus: 8\ntenants:\n  - {name: a, guarantee: 3, guarantees: {virtual: 4}}\n", 3),
    ("virtual_gpus: 2\ntenants:\n  - {name: a, limits: {B200: 3}}\n", 3),
    ("virtual_gpus: 2\npolicy: {preempt: none}\ntenants:\n  - {name: a, guarantee: 1}\n", 2),
    ("tenants:\n  - {name: a}\n  - {name: a}\n", 3),
    ("tenants: {a: 1}\n", 1),
    ("queues:\n  night: {class: 5000, classes: [1, 10]}\n", 2),
    ("queues:\n  night: {pool: east}\n", 2),
    ("queues:\n  standard: off\n  express: off\n  batch: off\n  preemptible: off\n  reserved: off\n", 2),
    ("default_queue: nowhere\n", 1),
    ("tenants:\n  - {name: a, was: b}\n  - {name: b}\n", 2),
    ("tenants:\n  - {name: a, was: c}\n  - {name: b, was: c}\n", 3),
    ("queues:\n  night: {was: batch}\n", 2),
    ("slurm: {accounts: {'a=b': c}}\n", 1),
    ('state: "a\\0b"\n', 1),
    ("listen: [\n", None),
    ("virtual_gpus: 4\npolicy: {bundle: tenants, backfill: conservative}\ntenants: [{name: a, limit: 2}]\n", 2),
    ("virtual_gpus: 4\nqueues:\n  express: {user: {gpus: 2}}\npolicy: {bundle: easy, backfill: conservative}\n", 4),
]


def serve(config, folder):
    """What the daemon says that does not start."""
    done = subprocess.run([STOKERD, "--state", folder / "state", "--config", config], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert not (folder / "state" / "stoker.db").exists(), "the store was opened first"
    return done


@pytest.mark.parametrize("text,line", WRONG)
def test_check_refuses_what_serve_refuses_in_the_same_words(tmp_path, text, line):
    config = tmp_path / "s.yaml"
    config.write_text(text)
    check, start = stoker_run("config", "check", config), serve(config, tmp_path)
    assert check.returncode == start.returncode == 2, (check, start)
    assert check.stderr == start.stderr and check.stderr.count("\n") == 1, (check, start)
    named = re.match(rf"stokerd: {re.escape(str(config))}:(\d+): ", check.stderr) or \
        re.match(r"stokerd: s\.yaml:(\d+): ", check.stderr)
    assert named and line in (None, int(named.group(1))), check.stderr


@pytest.mark.parametrize("state", ["/etc/hostname", "/etc/hostname/below", "/proc/nope/x", "relative"])
def test_a_state_folder_that_cannot_be_is_refused_by_both(tmp_path, state):
    config = tmp_path / "s.yaml"
    config.write_text(f"virtual_gpus: 2\nstate: {state}\nsocket: {tmp_path}/s.sock\n")
    check = stoker_run("config", "check", config)
    start = subprocess.run([STOKERD, "--config", config, "--listen", "off"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert check.returncode == start.returncode == 2 and check.stderr == start.stderr, (check, start)
    assert re.search(r"s\.yaml:2: state: ", check.stderr), check
    start = subprocess.run([STOKERD, "--config", config, "--listen", "off", "--state", state], capture_output=True, text=True,
                           timeout=PATIENCE_S, check=False)
    assert start.returncode == 2 and start.stderr.startswith("stokerd: state: "), start  # it is not the file's then


def test_a_folder_that_may_not_be_written_to_is_refused():
    user = {"user": "nobody"} if os.geteuid() == 0 else {}  # root may write anywhere
    with tempfile.TemporaryDirectory(prefix="stk-") as folder:
        os.chmod(folder, 0o555)
        for key in ("state", "socket"):
            out = subprocess.run([STOKERD, "--check", "--config", "/dev/null", f"--{key}", f"{folder}/below/{key}"], capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False, **user)
            assert out.returncode == 2 and f"stokerd: {key}: " in out.stderr and f"cannot write to {folder}" in out.stderr, out


def test_a_rules_file_is_sought_beside_the_configuration(tmp_path):
    below, elsewhere = tmp_path / "below", tmp_path / "elsewhere"
    below.mkdir(), elsewhere.mkdir()
    (below / "s.yaml").write_text("virtual_gpus: 2\nrules: r.yml\n")
    (elsewhere / "r.yml").write_text("rules: []\n")  # of the folder that the command is called in
    check = [STOKERD, "--check", "--config"]
    for config, cwd in [(below / "s.yaml", elsewhere), ("../below/s.yaml", elsewhere), ("s.yaml", below)]:
        (below / "r.yml").unlink(missing_ok=True)
        out = subprocess.run([*check, config], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert out.returncode == 2 and "r.yml: No such file" in out.stderr, out
        (below / "r.yml").write_text("rules: []\n")
        out = subprocess.run([*check, config], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert out.returncode == 0, out


def test_a_rules_file_that_is_wrong_is_refused_by_both(tmp_path):
    config, rules = tmp_path / "s.yaml", tmp_path / "r.yaml"
    config.write_text(f"rules: {rules}\n")
    rules.write_text("rules: 7\n")
    check, start = stoker_run("config", "check", config), serve(config, tmp_path)
    assert check.returncode == start.returncode == 2 and check.stderr == start.stderr, (check, start)
    assert "r.yaml" in check.stderr


def test_users_and_groups_that_do_not_exist_are_warned_of(tmp_path):
    config = tmp_path / "s.yaml"
    config.write_text('virtual_gpus: 2\nadmins: [root, nobody-knows]\ntenants:\n'
                      '  - name: a\n    users: [root,\n      zorro, "@root", "@zorros"]\n'
                      'queues:\n  urgent: {allow: {users: [root, "role:operator", diego, "@foxes"]}}\n')
    out = stoker_run("config", "check", config)
    assert out.returncode == 0 and out.stdout.endswith("is right\n"), out
    said = sorted(re.findall(r'^warning: .*s\.yaml:(\d+): \w+: this system has no (user|group) "(.*)"$', out.stderr, re.M))
    assert said == [("2", "user", "nobody-knows"), ("6", "group", "zorros"), ("6", "user", "zorro"),
                    ("8", "group", "foxes"), ("8", "user", "diego")], out.stderr
    assert len(out.stderr.splitlines()) == 5


def test_a_parameter_that_does_nothing_is_warned_of(tmp_path):
    text = "virtual_gpus: 4\npolicy:\n  params:\n    las.round_s: 60\n    energy.cap_w: 500\n"
    config = tmp_path / "s.yaml"
    config.write_text(text)
    out = stoker_run("config", "check", config)
    assert out.returncode == 0 and "s.yaml:4: policy.params: las.round_s does nothing" in out.stderr, out
    said = "s.yaml:5: policy.params: energy.cap_w does nothing: no policy that is in use takes it (it needs place: energy)"
    assert said in out.stderr and len(out.stderr.splitlines()) == 2
    with Daemon(tmp_path / "d", config=text) as d:
        assert d.errors_with("oker.yaml:5: policy.params: energy.cap_w does nothing")
    config.write_text("virtual_gpus: 4\npolicy: {bundle: las, params: {las.round_s: 60}}\n")
    assert stoker_run("config", "check", config).stderr == ""


def test_what_is_about_slurm_is_checked_without_slurm(tmp_path):
    config = tmp_path / "s.yaml"
    good = "engine: slurm\nslurm: {partitions: [east, west]}\nqueues:\n  n: {pool: west}\n" \
           "tenants:\n  - {name: a, limit: 64, guarantee: 40, limits: {h100: 16}}\n"
    config.write_text(good)
    out = stoker_run("config", "check", config)
    assert out.returncode == 0 and "Slurm" in out.stdout, out
    for wrong, line in [(good.replace("pool: west", "pool: north"), 4), (good.replace("limit: 64", "limit: 6"), 6)]:
        config.write_text(wrong)
        out = stoker_run("config", "check", config)
        assert out.returncode == 2 and f"s.yaml:{line}: " in out.stderr, out


# ---- what is shown ----

def keys():
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.*?) \| (.*?) \|", stoker_run("config", "keys").stdout, re.M)
    return [(path, kind) for path, kind, _ in rows]


class Maker:
    """Random values of keys, and what must be found in what is shown."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def word(self):
        pick = self.r.choice
        return pick(["null", "yes", "a b", "-", "- x", "x:", "{a}", "#c", "o'b", 'q"q', "back\\slash", "tab\there", "line\nline", "~",
                     "1e3", "007", "0x1f", "é", "日本", "\u2028", "\x85", " lead", "trail ", "%p", "@g", "*", "&a", "!t", "|", ">", "a,b", "[",
                     "=", "".join(pick("abcXYZ019_.-") for _ in range(pick([1, 5, 40])))])

    def name(self):  # of queues, classes and resources
        return self.r.choice("abcXYZ_") + "".join(self.r.choice("abcXYZ019_.-") for _ in range(self.r.randrange(12)))

    def milli(self, most=1000):
        whole = self.r.randrange(most)
        return self.r.choice([str(whole), f"{whole}.{self.r.randrange(1000):03}"])

    def seconds(self):
        return self.r.choice(["0", "1", "59", "60s", "90m", "36h", "3d", "1w", str(self.r.randrange(100000))])

    def value(self, path, kind):
        r = self.r
        if path == "virtual_nodes":
            return str(r.randrange(1, 9))
        if path == "series.step":
            return r.choice(["1s", "2", "5s", "30s", "60", "1m"])
        if path == "gpus.switch_pct":
            return str(r.randrange(101))
        if path == "limits.jobs":
            return "4294967295"[:r.randrange(1, 8)]
        if path == "engine":
            return "local"
        if path == "listen":
            return r.choice(["127.0.0.1:0", "[::1]:0", "off"])
        if path == "retention.size":
            return r.choice(["4294967295", "0", "1536M", "7G", "2T", "12345K"])
        made = {"text": self.word, "number": lambda: str(r.randrange(60)), "time": self.seconds,
                "size": lambda: r.choice(["0", "4096", "4294967295", "20G", "3K", "1T"]),
                "decimal number": lambda: r.choice(["0", "2.5", "0.31", "17", "0.000001", "123.456789", "1.100000"]),
                "yes or no": lambda: r.choice(["yes", "no", "true", "off"]),
                "list of names": lambda: [self.word() for _ in range(r.randrange(4))],
                "names and values": lambda: {f"n{i}{self.word()}".replace("=", ""): self.word() for i in range(r.randrange(4))},
                "names and numbers": lambda: {self.name(): str(r.randrange(2**32)) for i in range(r.randrange(4))}}
        return made[kind]() if kind in made else r.choice(kind.split("/"))

    def allow(self, queue):
        r = self.r
        a = {"tiers": r.sample(["best-effort", "standard", "critical"], r.randrange(1, 4)), "preempt": r.choice(["yes", "no"])}
        a.update({"users": [r.choice([f"u{self.word()}", "role:user", "@staff"]) for _ in range(3)]} if queue else {"classes": ["batch", "1200"]})
        return {k: v for k, v in a.items() if r.random() < .6}

    def tenant(self, depth, names):
        r = self.r
        t = {"name": names.pop()}
        if r.random() < .5:
            t["limit"] = self.milli()
        if r.random() < .3:
            t["limits"] = {"virtual": self.milli()}
        if r.random() < .3:
            t["weight"] = self.milli(90)
        if r.random() < .3:
            t["cpus"] = self.milli()
        if r.random() < .3:
            t["mem_gib"] = self.milli(9000)
        if r.random() < .2:
            t["was"] = names.pop()
        if r.random() < .3:
            t["allow"] = self.allow(False)
        if r.random() < .2:
            t["keep_up"] = str(r.randrange(9))
        if depth < 3 and r.random() < .4:
            t["tenants"] = [self.tenant(depth + 1, names) for _ in range(r.randrange(1, 3))]
        elif r.random() < .5:
            t["users"] = [self.word() for _ in range(r.randrange(1, 4))]
        return t

    def queue(self, classes):
        r = self.r
        q = {}
        if r.random() < .5:
            q["classes"] = [classes[0], classes[-1]]
            if r.random() < .5:
                q["class"] = r.choice(classes)
        if r.random() < .5:
            q["tier"] = r.choice(["best-effort", "standard", "critical"])
        if r.random() < .3:
            q["pool"] = "default"
        if r.random() < .3:
            q["allow"] = self.allow(True)
        if r.random() < .5:
            q["job"] = {"gpus": self.milli(), "time": r.choice(["90", "30m", "12h", "7d", "2w"])}
        for of in ("user", "tenant", "all"):
            if r.random() < .3:
                q[of] = {k: v for k, v in (("gpus", self.milli()), ("jobs", str(r.randrange(99)))) if r.random() < .7}
        return q

    def config(self):
        r, c = self.r, {}
        for path, kind in keys():
            if kind == "teams" or kind == "policy" or path in ("policy.params", "tls.cert", "tls.key", "socket", "rules") or r.random() < .5:
                continue
            group, _, rest = path.rpartition(".")
            (c.setdefault(group, {}) if group else c)[rest] = self.value(path, kind)
        if r.random() < .6:
            c.setdefault("policy", {}).update(r.choice([
                {"bundle": "easy"}, {"order": "fifo", "backfill": "skip", "preempt": "none"},
                {"params": {"backfill.depth": "7", "preempt.unreported_s": "60"}}, {"bundle": "default", "place": "pack"}]))
        names = [f"t{i}{self.word()}" for i in range(40)]
        if r.random() < .7:
            c["tenants"] = [self.tenant(1, names) for _ in range(r.randrange(1, 4))]
            if r.random() < .3:
                c["tenants"].insert(r.randrange(len(c["tenants"]) + 1), {"name": "default", "limit": self.milli()})
        classes = sorted({"inference": 1000, "training": 500, "batch": 100}.items(), key=lambda e: e[1])
        if r.random() < .5:
            c["classes"] = {f"c{i}{self.name()}": str(r.randrange(-1000, 1000)) for i in range(r.randrange(1, 4))}
        if r.random() < .7:
            order = [k for k, _ in classes]
            c["queues"] = {**{f"q{i}{self.name()}": self.queue(order) for i in range(r.randrange(4))},
                           **{q: "off" for q in ("express", "batch") if r.random() < .3}}
            left = [q for q, v in c["queues"].items() if v != "off"] or ["standard"]
            if r.random() < .5:
                c["default_queue"] = r.choice(left)
        return c


def number(text):
    """A value of the file in its smallest unit."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdwKMGT]?)", text)
    scale = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    return float(m.group(1)) * scale[m.group(2)]


def same(kind, path, said, shown):
    if kind in ("number", "time", "size", "decimal number"):
        return number(said) == number(shown)
    if kind == "yes or no":
        return (said in ("yes", "true", "on")) == (shown == "yes")
    if kind == "names and numbers":
        return {k: int(v) for k, v in said.items()} == {k: int(v) for k, v in shown.items()}
    return said == shown


def flat(tenants):
    for t in tenants:
        yield t["name"], {k: [float(v[w]) for w in v] if isinstance(v, dict) else v if isinstance(v, list) or k == "was" else float(v)
                          for k, v in t.items() if k not in ("name", "tenants", "mem_gib", "allow")}
        yield from flat(t.get("tenants", []))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_show_read_show_is_the_same(tmp_path, seed):
    made = Maker(seed).config()
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(json.dumps(made), encoding="utf-8")  # JSON is YAML, and every text is in quotes
    out = stoker_run("config", "show", first)
    assert out.returncode == 0, (made, out.stderr)
    second.write_text(out.stdout, encoding="utf-8")
    again = stoker_run("config", "show", second)
    assert again.returncode == 0 and again.stdout == out.stdout, (made, again)
    shown = yaml.load(out.stdout, yaml.BaseLoader)
    for path, kind in keys():
        said, is_ = made, shown
        for part in path.split(".") if "." in path else [path]:
            said = said.get(part) if isinstance(said, dict) else None
            is_ = is_.get(part) if isinstance(is_, dict) else None
        if said is None or kind == "teams":
            continue
        assert same(kind, path, said, is_), (path, said, is_)
    rows = dict(flat(made.get("tenants", [])))
    got = dict(flat(shown.get("tenants") or []))
    got.pop("default", None) if "default" not in rows else None
    for name, row in rows.items():
        for key, value in row.items():
            if key == "weight" and value == 1 or key == "keep_up" and value == 0:
                continue
            assert got[name][key] == value, (name, key, value, got[name])
    assert [n for n in rows if n != "default"] == [n for n in got if n != "default"]
    for name, q in made.get("queues", {}).items():
        assert (shown["queues"][name] == "off") == (q == "off")
        if q != "off" and q.get("allow"):
            is_ = shown["queues"][name]["allow"]
            assert is_.get("users") == q["allow"].get("users") and is_.get("preempt") == q["allow"].get("preempt")
            assert set(is_.get("tiers", [])) == set(q["allow"].get("tiers", []))
        if q != "off" and "job" in q:
            assert number(shown["queues"][name]["job"]["time"]) == number(q["job"]["time"])
    if "default_queue" in made:
        assert shown["default_queue"] == made["default_queue"]


def test_check_accepts_what_show_prints(tmp_path):
    config, shown = tmp_path / "first.yaml", tmp_path / "second.yaml"
    config.write_text("virtual_gpus: 8\ncost: {gpu_hour: 2.5, kwh: 0.31, currency: EUR}\npolicy: tenants\nclasses: {urgent: 2000}\n"
                      "tenants:\n  - {name: a, guarantee: 2, limit: 6, users: [root]}\n  - {name: b, weight: 0.5, mem_gib: 0.7}\n"
                      "queues:\n  night: {class: batch, tier: best-effort, pool: default}\n  express: off\ndefault_queue: night\n")
    for text in (config.read_text(), "{}\n"):
        config.write_text(text)
        assert stoker_run("config", "check", config).returncode == 0
        out = stoker_run("config", "show", config).stdout
        shown.write_text(out)
        check = stoker_run("config", "check", shown)
        assert check.returncode == 0, check
        assert stoker_run("config", "show", shown).stdout == out
    config.write_text("cost: {gpu_hour: 2.5, kwh: 0.31}\n")
    out = stoker_run("config", "show", config).stdout
    assert "  gpu_hour: 2.5\n" in out and "  kwh: 0.31\n" in out
    # what was not said is not shown as if it had been: a port that nobody asked for may be taken by somebody else
    assert "\n# listen: 127.0.0.1:8470" in "\n" + out and "  # conf: Slurm's own" in out


def test_nothing_is_written_by_a_check(tmp_path):
    config = tmp_path / "s.yaml"
    config.write_text(f"virtual_gpus: 2\nstate: {tmp_path}/state\nsocket: {tmp_path}/run/s.sock\n")
    done = subprocess.run([STOKER, "config", "check", config], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout == f"{config} is right\n" and sorted(p.name for p in tmp_path.iterdir()) == ["s.yaml"]
