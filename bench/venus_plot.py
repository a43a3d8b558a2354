# SPDX-License-Identifier: Apache-2.0
"""The picture of docs/venus.md, as SVG: average completion times beside published ones, each tenant's, and waits."""
import math

PUBLISHED = [("FIFO, walls", 65720.54), ("Tiresias, walls", 14700.04), ("Lucid, walls", 12886.13),
             ("SRTF, knows run times, walls", 12609.90)]
FLOOR = 11769.3
W, LEFT, BAR = 860, 210, 16
INK, GREY, OURS, SHARED = "#222", "#b8bec6", "#7aa6d6", "#1f5fa8"


class Page:
    def __init__(self):
        self.parts, self.y = [], 24

    def text(self, x, y, s, size=12, anchor="start", fill=INK, weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
                          f'font-weight="{weight}">{s}</text>')

    def rect(self, x, y, w, h, fill):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0.5):.1f}" height="{h:.1f}" fill="{fill}"/>')

    def line(self, points, stroke, width=1.5):
        self.parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" '
                          f'stroke="{stroke}" stroke-width="{width}"/>')

    def title(self, s):
        self.text(16, self.y, s, 14, weight="bold")
        self.y += 20

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {self.y}" '
                f'font-family="sans-serif"><rect width="{W}" height="{self.y}" fill="#fff"/>'
                + "\n".join(self.parts) + "</svg>\n")


def averages(p, result):
    bars = [(n, v, GREY) for n, v in PUBLISHED]
    bars += [("stoker, walls", result["walls_avg_jct_s"], OURS),
             ("stoker, tenants", result["tenants_avg_jct_s"], SHARED), ("no waiting at all", FLOOR, "#dfe3e8")]
    scale = (W - LEFT - 90) / 16000
    p.title("Average job completion time, seconds")
    for name, v, fill in bars:
        p.text(LEFT - 8, p.y + 12, name, anchor="end")
        p.rect(LEFT, p.y, min(v, 16000) * scale, BAR, fill)
        p.text(LEFT + min(v, 16000) * scale + 6, p.y + 12, f"{v:,.0f}" + (" (bar cut)" if v > 16000 else ""))
        p.y += BAR + 5
    p.y += 18


def by_tenant(p, rows):
    p.title("Waiting by tenant, seconds on average (completion time less run time), logarithmic")
    p.text(16, p.y + 4, "grey: FIFO with walls   light: stoker with walls   dark: stoker, tenants", 11)
    p.y += 14
    scale = (W - LEFT - 90) / 5.5
    for r in sorted(rows, key=lambda r: -r["fifo_walls_s"] + r["floor_s"]):
        p.text(LEFT - 8, p.y + 13, f'{r["tenant"]}, {r["nodes"]} nodes', anchor="end")
        for k, (key, fill) in enumerate((("fifo_walls_s", GREY), ("walls_s", OURS), ("tenants_s", SHARED))):
            wait = max(r[key] - r["floor_s"], 1)
            p.rect(LEFT, p.y + 6 * k, math.log10(wait) * scale, 5, fill)
            if k != 1:
                p.text(LEFT + math.log10(wait) * scale + 5, p.y + 6 * k + 6, f"{wait:,.0f}", 8)
        p.y += 24
    p.y += 18


def waits(p, trace, shared):
    """How many jobs waited longer than so much."""
    p.title("Jobs that waited longer than so many seconds, of 23,859, both axes logarithmic")
    height, top = 170, p.y
    width = W - LEFT - 90

    def curve(values, stroke):
        values = sorted(max(v, 0) for v in values)
        points = []
        for i in range(0, 121):
            x = 10 ** (i / 20)
            n = sum(v > x for v in values)
            if n == 0:
                break
            points.append((LEFT + i / 120 * width, top + height - math.log10(n) / math.log10(30000) * height))
        p.line(points, stroke, 2)

    curve([trace.fifo_end[j] - trace.shortest[j] for j in trace.jobs], GREY)
    curve([shared.wait(j) for j in trace.jobs], SHARED)
    for e in range(7):
        x = LEFT + e / 6 * width
        p.line([(x, top), (x, top + height)], "#e5e8ec", 0.6)
        p.text(x, top + height + 14, f"{10 ** e:,}", 10, "middle")
    for e in range(5):
        p.text(LEFT - 8, top + height - e / math.log10(30000) * height + 4, f"{10 ** e:,}", 10, "end")
    p.text(LEFT + width - 6, top + 14, "grey: FIFO with walls, dark: stoker, tenants", 11, "end")
    p.y = top + height + 28


def plot(path, result, trace, shared):
    p = Page()
    averages(p, result)
    by_tenant(p, result["tenants"])
    waits(p, trace, shared)
    with open(path, "w", encoding="ascii") as f:
        f.write(p.svg())
