// SPDX-License-Identifier: Apache-2.0
// timeline.tsx - what ran where, what runs until when, and what is expected to start: one row for each
// GPU, or for each node of a cluster that is larger, and time from left to right.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Job } from "../lib/api";
import { nameColour } from "../lib/colour";
import { clock, plural, span } from "../lib/format";
import { Past } from "../lib/past";
import { useTick } from "../lib/store";
import { grid, now, you } from "../lib/world";
import { Choice, Empty, Panel, useKept } from "../ui";
import { theme } from "../theme";

const LABEL = 92, ROW = 22, AXIS = 22, MAX_LOST = 24;
const SPANS: Record<string, number> = { "1h": 3600, "6h": 21600, "24h": 86400, "7d": 604800 };

interface Bar { row: number; from: number; to: number; until?: number; most?: number; whole: boolean; job: number; text: string; owner: string; kind: "past" | "now" | "forecast"; bad?: boolean; level?: number; heap?: Heap }
interface Heap { levels: number } // bars that lie above each other, and how many at once
interface Row { label: string; head?: boolean }
interface Rows { rows: Row[]; at(node: string, gpu: number): number; each: boolean; gpus: Map<string, number> }

const FAILED = new Set(["failed", "killed", "out_of_memory", "timeout", "node_lost", "gpu_error", "lost"]);

/** Rows by node, and by GPU where these are few. */
function rowsOf(): Rows {
    const each = grid.gpus.length <= 64, index = new Map<string, number>(), rows: Row[] = [];
    for (const n of grid.nodes) {
        if (!each) {
            index.set(n.name, rows.length);
            rows.push({ label: n.name });
            continue;
        }
        for (let g = 0; g < n.gpus; g++) {
            index.set(`${n.name}/${g}`, rows.length);
            rows.push({ label: grid.nodes.length > 1 ? `${n.name} ${g}` : `GPU ${g}` });
        }
    }
    return { rows, each, gpus: new Map(grid.nodes.map((n) => [n.name, n.gpus])), at: (node, gpu) => index.get(each ? `${node}/${gpu}` : node) ?? -1 };
}

interface Piece { node: string; gpu_indices: number[] }

/** The rows that a piece of a job lies in. */
function lanes(p: Piece, r: Rows): number[] {
    const list = r.each && p.gpu_indices.length ? p.gpu_indices : [0]; // which GPUs is not known everywhere
    return list.map((g) => r.at(p.node, g)).filter((row) => row >= 0);
}

/** Whether no other job is in the rows of a piece meanwhile: a whole GPU, or all GPUs of a node. */
function isWhole(p: Piece, r: Rows, j?: Job): boolean {
    return r.each ? j !== undefined && !j.part && p.gpu_indices.length > 0 : p.gpu_indices.length > 0 && p.gpu_indices.length === r.gpus.get(p.node);
}

/** When it is stopped at the latest. */
function limitOf(j?: Job): number | undefined {
    return j?.started && j.estimate_s ? j.started + j.estimate_s : undefined;
}

function running(past: Past, list: Job[], known: Map<number, Job>, r: Rows): Bar[] {
    const bars: Bar[] = [];
    for (const s of past.stays) {
        const j = known.get(s.job), live = s.to === null;
        if (live && !j?.node) continue;
        for (const row of lanes({ node: s.node, gpu_indices: s.gpus }, r))
            bars.push({ row, from: s.from, to: s.to ?? now(), until: live ? j?.expected_end ?? undefined : undefined, most: live ? limitOf(j) : undefined, whole: isWhole({ node: s.node, gpu_indices: s.gpus }, r, j), job: s.job, text: j?.name || `job ${s.job}`,
                owner: j?.tenant || j?.user || "", kind: live ? "now" : "past", bad: FAILED.has(s.how ?? "") });
    }
    const seen = new Set(past.stays.filter((s) => s.to === null).map((s) => s.job));
    for (const j of list) // placed before the events that are kept
        for (const p of seen.has(j.id) ? [] : j.pieces ?? [{ node: j.node ?? "", gpu_indices: j.gpu_indices ?? [] }])
            for (const row of lanes(p, r)) bars.push({ row, from: j.started ?? now(), to: now(), until: j.expected_end ?? undefined, most: limitOf(j), whole: isWhole(p, r, j), job: j.id, text: j.name, owner: j.tenant || j.user, kind: "now" });
    return bars;
}

/** Where each is expected to start; those of which only the time is known have rows of their own. */
function forecast(waiting: Job[], r: Rows): Bar[] {
    const bars: Bar[] = [], lost: Bar[] = [];
    for (const j of waiting.filter((x) => x.start_p50).sort((a, b) => (a.start_p50 as number) - (b.start_p50 as number))) {
        const from = Math.max(now(), j.start_p50 as number), to = j.end_p50 && j.end_p50 > from ? j.end_p50 : from + (j.estimate_s || 3600);
        const bar = { row: -1, from, to, whole: false, job: j.id, text: `${j.name || `job ${j.id}`} · ${plural(j.gpus, "GPU")}`, owner: j.tenant || j.user, kind: "forecast" as const };
        const there = (j.start_pieces ?? []).flatMap((p) => lanes(p, r).map((row) => ({ ...bar, row, whole: isWhole(p, r, j) })));
        if (there.length) bars.push(...there);
        else if (lost.length < MAX_LOST) lost.push(bar);
    }
    if (lost.length) r.rows.push({ label: "somewhere", head: true });
    for (const b of lost) bars.push({ ...b, row: r.rows.push({ label: `job ${b.job}` }) - 1 });
    return bars;
}

function build(past: Past, now: Job[], waiting: Job[], ended: Job[]): { rows: Row[]; bars: Bar[] } {
    const r = rowsOf(), known = new Map([...ended, ...waiting, ...now].map((j) => [j.id, j])), bars = [...running(past, now, known, r), ...forecast(waiting, r)];
    giveWay(bars);
    share(bars);
    return { rows: r.rows, bars };
}

/** Who has GPUs for itself is drawn to the time at which another is expected there, and no further: its end is uncertain, and its limit is a whisker. */
function giveWay(bars: Bar[]): void {
    const rows = new Map<number, Bar[]>();
    for (const b of bars) if (b.kind !== "past" && b.row >= 0) rows.set(b.row, [...(rows.get(b.row) ?? []), b]);
    for (const list of rows.values())
        for (const b of list.filter((x) => x.whole)) {
            const next = Math.min(...list.filter((x) => x.kind === "forecast" && x.job !== b.job && x.from >= b.from).map((x) => x.from));
            if (b.kind === "forecast") b.to = Math.min(b.to, Math.max(b.from + 1, next));
            else if (b.until && b.until > next) b.until = Math.max(b.to, next);
        }
}

/** Jobs that have part of the same GPU, or of the same node, at the same time lie above each other: as many as there are at once. */
function share(bars: Bar[]): void {
    const rows = new Map<number, { heap: Heap; there: Bar[]; until: number }>(), end = (b: Bar) => b.until ?? b.to;
    for (const b of [...bars].sort((x, y) => x.from - y.from)) {
        let h = rows.get(b.row);
        if (!h || h.until <= b.from) rows.set(b.row, (h = { heap: { levels: 1 }, there: [], until: 0 }));
        h.there = h.there.filter((x) => end(x) > b.from);
        const taken = new Set(h.there.map((x) => x.level));
        for (b.level = 0; taken.has(b.level); ) b.level++;
        h.there.push(b);
        h.until = Math.max(h.until, end(b));
        h.heap.levels = Math.max(h.heap.levels, b.level + 1);
        b.heap = h.heap;
    }
}

const STEPS = [300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** The time of day; at midnight the day. */
function tick(t: number): string {
    const d = new Date(t * 1000);
    return d.getHours() || d.getMinutes() ? d.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }) : d.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** top: so much of the rows is above what is seen. */
function draw(c: CanvasRenderingContext2D, w: number, h: number, top: number, rows: Row[], bars: Bar[], t0: number, t1: number): void {
    const css = getComputedStyle(document.documentElement), v = (n: string) => css.getPropertyValue(n).trim(), font = getComputedStyle(document.body).fontFamily;
    const x = (t: number) => LABEL + ((t - t0) / (t1 - t0)) * (w - LABEL), step = STEPS.find((s) => (s / (t1 - t0)) * (w - LABEL) > 70) ?? 86400;
    const offset = new Date(t0 * 1000).getTimezoneOffset() * 60;
    c.clearRect(0, 0, w, h);
    c.font = `11px ${font}`;
    c.textBaseline = "middle";
    for (let t = Math.ceil((t0 - offset) / step) * step + offset; t < t1; t += step) {
        c.fillStyle = v("--line");
        c.fillRect(Math.round(x(t)), AXIS, 1, h - AXIS);
        c.fillStyle = v("--dim");
        if (x(t) + 34 < w) c.fillText(tick(t), x(t) - 14 < LABEL ? LABEL : x(t) - 14, AXIS / 2);
    }
    c.save();
    c.beginPath();
    c.rect(0, AXIS, w, h - AXIS);
    c.clip();
    rows.forEach((r, i) => {
        const y = AXIS + i * ROW - top;
        if (y < AXIS - ROW || y > h) return;
        c.fillStyle = v("--line");
        c.fillRect(0, y, w, 1);
        c.fillStyle = r.head ? v("--text") : v("--dim");
        c.font = `${r.head ? "600 " : ""}11px ${font}`;
        c.save();
        c.beginPath();
        c.rect(0, y, LABEL - 8, ROW);
        c.clip();
        c.fillText(r.label, 0, y + ROW / 2 + 1);
        c.restore();
    });
    c.restore();
    c.save();
    c.beginPath();
    c.rect(LABEL, AXIS, w - LABEL, h - AXIS);
    c.clip();
    c.font = `11px ${font}`;
    for (const b of bars) {
        const n = b.heap?.levels ?? 1, tall = Math.max(2, (ROW - 5) / n - (n > 1 ? 1 : 0)), y = AXIS + b.row * ROW - top + 3 + ((b.level ?? 0) * (ROW - 5)) / n, a = x(b.from), e = Math.max(a + 2, x(b.to)), colour = b.bad ? v("--bad") : nameColour(b.owner);
        if (e < LABEL || a > w || y < AXIS - ROW || y > h) continue;
        if (b.until && b.until > b.to) {
            c.globalAlpha = 0.28;
            c.fillStyle = colour;
            c.fillRect(e, y, x(b.until) - e, tall);
        }
        if (b.most && b.most > (b.until ?? b.to)) {
            c.globalAlpha = 0.6;
            c.fillStyle = colour;
            c.fillRect(x(b.until ?? b.to), y + tall / 2, x(b.most) - x(b.until ?? b.to), 1);
            c.fillRect(x(b.most) - 1, y + tall / 4, 1, tall / 2);
        }
        c.globalAlpha = b.kind === "past" ? 0.55 : b.kind === "forecast" ? 0.22 : 0.95;
        c.fillStyle = colour;
        c.fillRect(a, y, Math.max(1, e - a - 1), tall);
        c.globalAlpha = 1;
        if (b.kind === "forecast") {
            c.strokeStyle = colour;
            c.setLineDash([4, 3]);
            c.strokeRect(a + 0.5, y + 0.5, e - a - 2, tall - 1);
            c.setLineDash([]);
        }
        const from = Math.max(a, LABEL), room = (b.until ? x(b.until) : e) - from - 10;
        if (room > 30 && tall >= 7) {
            c.font = `${tall >= 12 ? 11 : 8}px ${font}`;
            c.save();
            c.beginPath();
            c.rect(from, y, room + 6, tall);
            c.clip();
            c.fillStyle = b.kind === "now" && e - from > room / 2 ? "#fff" : v("--text");
            c.fillText(b.text, from + 6, y + tall / 2 + 1);
            c.restore();
        }
    }
    c.restore();
    c.fillStyle = v("--accent");
    c.fillRect(Math.round(x(now())), AXIS - 6, 2, h - AXIS + 6);
}

export function Timeline(p: { running: Job[]; waiting: Job[]; ended: Job[] }) {
    const past = useRef<Past | null>(null), canvas = useRef<HTMLCanvasElement>(null), [range, setRange] = useKept<string>("range", "6h"), [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
    const [version, setVersion] = useState(0), [width, setWidth] = useState(0), [top, setTop] = useState(0), wrap = useRef<HTMLDivElement>(null);
    grid.version.use();
    theme.use();
    useTick(2000);
    useEffect(() => {
        if (!you()) return undefined;
        const it = (past.current = new Past()), stop = it.version.follow(() => setVersion((n) => n + 1));
        it.begin();
        return () => {
            stop();
            it.end();
        };
    }, []);
    useEffect(() => {
        const watch = new ResizeObserver(() => setWidth(wrap.current?.clientWidth ?? 0));
        if (wrap.current) watch.observe(wrap.current);
        return () => watch.disconnect();
    }, [you() !== undefined]);
    const long = SPANS[range] ?? 3600, { rows, bars } = useMemo(() => (past.current ? build(past.current, p.running, p.waiting, p.ended) : { rows: [], bars: [] }), [version, p.running, p.waiting, p.ended, grid.nodes]);
    const first = bars.reduce((t, b) => Math.min(t, b.from), now()), t0 = Math.max(now() - long * 0.65, first - long * 0.02), t1 = t0 + long; // no empty past
    const whole = AXIS + rows.length * ROW + 1, height = Math.min(whole, Math.max(360, Math.round(window.innerHeight * 0.7)));
    useEffect(() => {
        const c = canvas.current, r = Math.min(3, window.devicePixelRatio || 1);
        if (!c || !width) return;
        c.width = Math.round(width * r);
        c.height = Math.round(height * r);
        c.style.width = `${width}px`;
        c.style.height = `${height}px`;
        const ctx = c.getContext("2d") as CanvasRenderingContext2D;
        ctx.setTransform(r, 0, 0, r, 0, 0);
        draw(ctx, width, height, top, rows, bars, t0, t1);
    });
    const find = (e: MouseEvent): Bar | undefined => {
        const b = (canvas.current as Element).getBoundingClientRect(), t = t0 + ((e.clientX - b.left - LABEL) / (width - LABEL)) * (t1 - t0), down = (e.clientY - b.top - AXIS + top) / ROW, row = Math.floor(down);
        return e.clientY - b.top < AXIS ? undefined : bars.find((x) => x.row === row && Math.floor((down - row) * (x.heap?.levels ?? 1)) === (x.level ?? 0) && t >= x.from && t <= (x.until ?? x.to));
    };
    const words = (b: Bar) => `${b.text} (job ${b.job}) on ${rows[b.row].label}: ${b.kind === "forecast" ? "expected " : ""}${clock(b.from)} to ${clock(b.until ?? b.to)}, ${span((b.until ?? b.to) - b.from)}${b.most && b.most > (b.until ?? b.to) ? `; limit ${clock(b.most)}` : ""}`;
    if (!you()) return <Panel title="Timeline"><Empty title="Log in to see jobs in time" /></Panel>;
    const count = (kind: Bar["kind"]) => new Set(bars.filter((b) => b.kind === kind).map((b) => b.job)).size;
    return (
        <Panel title="Timeline" note="the past faint, the present full, what is expected in outline; a thin line goes to the time limit" actions={<Choice label="How long" value={range} of={Object.keys(SPANS).map((k) => [k, k])} onChange={setRange} />}>
            <div class="lanes" ref={wrap} tabIndex={0} role="region" aria-label="Jobs in time, node by node" style={{ maxHeight: `${height}px` }} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
                <canvas ref={canvas} role="img" aria-label={`Timeline of ${plural(rows.length, "row")}: ${plural(bars.length, "stay")} of jobs; ${count("past")} have ended, ${count("now")} run, ${count("forecast")} are expected. The lists say the same.`}
                    onMouseMove={(e) => { const b = find(e), r = (wrap.current as Element).getBoundingClientRect(); setTip(b ? { x: Math.min(e.clientX - r.left, r.width - 240), y: e.clientY - r.top + top + 16, text: words(b) } : null); }}
                    onMouseLeave={() => setTip(null)} onClick={(e) => { const b = find(e); if (b) location.hash = `#/job/${b.job}`; }} />
                <div style={{ height: `${whole - height}px` }} />
                {tip && <div class="tip" style={{ left: `${tip.x}px`, top: `${tip.y}px` }} aria-hidden="true">{tip.text}</div>}
            </div>
            {bars.length === 0 && <Empty title="Nothing in this time">Jobs appear here as soon as they are placed.</Empty>}
        </Panel>
    );
}
