# SPDX-License-Identifier: Apache-2.0
"""Time zones and cron, against Python's zoneinfo over every zone of this system.

What a cron expression means where the clock jumps is written down twice: in src/when, and here, from
its definition (docs/spec/rules.md)."""
import os
import pathlib
import random
import subprocess
import zoneinfo
from datetime import datetime, timedelta, timezone

BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
UTC = timezone.utc
ZONES = sorted(z for z in zoneinfo.available_timezones() if z not in ("localtime", "Factory"))
SOME = ["Europe/Berlin", "America/New_York", "Asia/Tokyo", "America/Santiago", "Australia/Lord_Howe", "Africa/Cairo",
        "Pacific/Apia", "Asia/Kathmandu", "Europe/Dublin", "America/Havana", "Africa/Casablanca", "America/Sao_Paulo",
        "Antarctica/Troll", "Asia/Gaza", "America/St_Johns", "UTC"]


def ask(lines):
    done = subprocess.run([str(BUILD / "dump_zone")], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True)
    return done.stdout.splitlines()


def test_every_zone_has_the_offsets_that_python_sees():
    moments = [int(datetime(year, month, 1, 12, tzinfo=UTC).timestamp()) for year in range(1970, 2100, 3) for month in range(1, 13, 2)]
    lines, want = [], []
    for name in ZONES:
        zone = zoneinfo.ZoneInfo(name)
        for at in moments:
            lines.append(f"{name} {at}")
            want.append(int(datetime.fromtimestamp(at, zone).utcoffset().total_seconds()))
    got = [int(x) for x in ask(lines)]
    wrong = [(l, g, w) for l, g, w in zip(lines, got, want) if g != w]
    assert len(ZONES) > 300 and not wrong, wrong[:5]


def changes(zone, year):
    """The moments of a year at which the offset changes, to the second."""
    def offset(t):
        return datetime.fromtimestamp(t, zone).utcoffset()
    step, t, end = 86400 * 7, int(datetime(year, 1, 1, tzinfo=UTC).timestamp()), int(datetime(year + 1, 1, 1, tzinfo=UTC).timestamp())
    while t < end:
        if offset(t) != offset(t + step):
            low, high = t, t + step
            while high - low > 1:
                mid = (low + high) // 2
                low, high = (low, mid) if offset(mid) != offset(t) else (mid, high)
            yield high
        t += step


def test_offsets_around_every_change():
    lines, want = [], []
    for name in ZONES[::3] + SOME:
        zone = zoneinfo.ZoneInfo(name)
        for year in (1975, 1999, 2011, 2024, 2026, 2037, 2038, 2060, 2099):
            for at in changes(zone, year):
                for t in (at - 1, at, at + 1):
                    lines.append(f"{name} {t}")
                    want.append(int(datetime.fromtimestamp(t, zone).utcoffset().total_seconds()))
    got = [int(x) for x in ask(lines)]
    wrong = [(l, g, w) for l, g, w in zip(lines, got, want) if g != w]
    assert len(lines) > 1000 and not wrong, wrong[:5]


def moment(zone, naive):
    """When the wall first shows it; in a gap, the first moment after it."""
    for fold in (0, 1):
        t = naive.replace(tzinfo=zone, fold=fold).timestamp()
        if datetime.fromtimestamp(t, zone).replace(tzinfo=None) == naive:
            return int(t)
    t = int(naive.replace(tzinfo=zone, fold=1).timestamp())  # with the offset after the gap: before it
    while datetime.fromtimestamp(t, zone).replace(tzinfo=None) < naive:
        t += 60
    return t


def due(zone, hour, minute, start, days):
    """All times of 'minute hour * * *' in those days; hour None: every hour."""
    first = datetime.fromtimestamp(start, zone).replace(tzinfo=None, hour=0, minute=0, second=0)
    if hour is not None:
        return sorted({moment(zone, first + timedelta(days=d, hours=hour, minutes=minute)) for d in range(-4, days + 2)})
    return [t for t in range(start // 60 * 60 - 2 * 86400, start + (days + 1) * 86400, 60) if datetime.fromtimestamp(t, zone).minute == minute]


def test_cron_where_the_clock_jumps():
    rng = random.Random(5)
    lines, want = [], []
    for name in SOME:
        zone = zoneinfo.ZoneInfo(name)
        for year in (2011, 2026, 2027, 2050):
            for at in list(changes(zone, year)) or [int(datetime(year, 6, 1, tzinfo=UTC).timestamp())]:
                for hour in (None, 0, 1, 2, 3, 23):
                    minute = rng.choice((0, 15, 30, 59))
                    times = due(zone, hour, minute, at, 3)
                    for t in (at - 7200, at - 1, at, at + 3600):
                        lines.append(f"{name} {t} {minute} {'*' if hour is None else hour} * * *")
                        want.append(f"{min(x for x in times if x > t)} {max(x for x in times if x <= t)}")
    got = ask(lines)
    wrong = [(l, g, w) for l, g, w in zip(lines, got, want) if g != w]
    assert len(lines) > 1000 and not wrong, wrong[:5]


def test_a_zone_that_does_not_exist_is_named():
    done = subprocess.run([str(BUILD / "dump_zone")], input="Europe/Atlantis 0\n", text=True, capture_output=True, check=False)
    assert done.returncode == 1 and 'there is no time zone "Europe/Atlantis"' in done.stderr and "tzdata" in done.stderr
