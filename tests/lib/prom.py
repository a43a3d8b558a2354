# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus' text format, and asks promtool about it."""
import re
import shutil
import subprocess

PROMTOOL = shutil.which("promtool")
LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9.e+-]+|\+Inf|NaN)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def parse(text):
    """{(name, frozenset of labels): value}; raises on what is not a line."""
    out = {}
    for line in text.splitlines():
        if line.startswith("# HELP ") or line.startswith("# TYPE "):
            continue
        m = LINE.fullmatch(line)
        assert m, line
        labels = LABEL.findall(m[2] or "")
        assert ",".join(f'{k}="{v}"' for k, v in labels) == (m[2] or ""), line
        key = (m[1], frozenset(labels))
        assert key not in out, f"twice: {line}"
        out[key] = float(m[3])
    return out


def value(values, name, **labels):
    found = [v for (n, of), v in values.items() if n == name and set(labels.items()) <= of]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def names(values):
    return {n for n, _ in values}


def check(text, known=()):
    """promtool has nothing to say about it, but for advice with these words."""
    if not PROMTOOL:
        return
    p = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    said = [line for line in (p.stdout + p.stderr).splitlines() if not any(k in line for k in known)]
    assert not said and p.returncode in ((0, 3) if known else (0,)), p.stdout + p.stderr
