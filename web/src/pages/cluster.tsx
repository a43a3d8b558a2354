// SPDX-License-Identifier: Apache-2.0
// cluster.tsx - every GPU at a glance: who has it, how busy it is, how well it is.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Gpu, Job } from "../lib/api";
import { get, send } from "../lib/api";
import { heat, HEALTH, jobColour, nameColour } from "../lib/colour";
import { amount, clockSeconds, gib, jobName, percent, place, plural, span, watts } from "../lib/format";
import { draw, health, hit, Ink, Layout, layOut, Mode, redraw } from "../lib/map";
import { column, hasData, known, Plot, Series, times } from "../lib/plot";
import { sentence, verb } from "../lib/sentences";
import { Source, useTick } from "../lib/store";
import { feed, grid, jobs, may, now, session } from "../lib/world";
import { Bar, Choice, Empty, JobLink, Panel, say, Stat, useKept } from "../ui";
import { dark, theme } from "../theme";

const MODES: [Mode, string][] = [["tenant", "Tenant"], ["job", "Job"], ["util", "Utilization"], ["health", "Health"]];

function readInk(): Ink {
    const css = getComputedStyle(document.documentElement), v = (n: string) => css.getPropertyValue(n).trim();
    return { dark: dark(), text: v("--text"), dim: v("--dim"), line: v("--line"), free: v("--free"), panel: v("--panel"),
        warn: v("--warn"), bad: v("--bad"), accent: v("--accent"), font: getComputedStyle(document.body).fontFamily };
}

function tenantOf(g: { tenant?: string | null; user: string | null }): string {
    return g.tenant || g.user || "?";
}

/** What the colours mean, and how many GPUs have each. The first are the most frequent. */
function legend(gpus: Gpu[], mode: Mode): { key: string; text: string; colour: string; n: number }[] {
    const found = new Map<string, { key: string; text: string; colour: string; n: number }>();
    const add = (key: string, text: string, colour: string, n: number) => {
        const x = found.get(key);
        if (x) x.n += n;
        else found.set(key, { key, text, colour, n });
    };
    for (const g of gpus) {
        if (mode === "health") add(health(g), HEALTH[health(g)].text, HEALTH[health(g)].colour, 1);
        else
            for (const x of g.shares ?? (g.job === null ? [] : [{ ...g, job: g.job, gpus: 1 }]))
                if (mode === "job") add(String(x.job), jobName(x, x.job), jobColour(x.job), x.gpus);
                else add(tenantOf(x), tenantOf(x), nameColour(tenantOf(x)), x.gpus);
    }
    return [...found.values()].sort((a, b) => b.n - a.n);
}

function keyOf(g: Gpu, mode: Mode): string[] {
    if (mode === "health") return [health(g)];
    const of = g.shares ?? (g.job === null ? [] : [{ ...g, job: g.job }]);
    return of.map((x) => (mode === "job" ? String(x.job) : tenantOf(x)));
}

function Legend(p: { gpus: Gpu[]; mode: Mode; only: string | null; onOnly(k: string | null): void }) {
    const rows = useMemo(() => (p.mode === "util" ? [] : legend(p.gpus, p.mode)), [grid.version.value, p.mode]);
    if (p.mode === "util")
        return (
            <div class="legend">
                <span class="scale" aria-hidden="true">{[0, 0.2, 0.4, 0.6, 0.8, 1].map((x) => <i style={{ background: heat(x, dark()) }} />)}</span>
                <span>0 to 100 % of the time a kernel runs; empty: not measured</span>
            </div>
        );
    return (
        <div class="legend" role="group" aria-label="Colours; choose one to see it alone">
            {rows.slice(0, 14).map((r) => (
                <button type="button" aria-pressed={p.only === r.key} onClick={() => p.onOnly(p.only === r.key ? null : r.key)}>
                    <i style={{ background: r.colour }} />{p.mode === "job" ? `job ${r.text}` : r.text} <small>{amount(Math.round(r.n * 100) / 100)}</small>
                </button>
            ))}
            {rows.length > 14 && <span class="note">and {plural(rows.length - 14, "other")}</span>}
            {rows.length === 0 && <span class="note">All GPUs are free.</span>}
        </div>
    );
}

function words(g: Gpu): string {
    const of = g.shares?.length ? `shared by ${g.shares.map((s) => `job ${jobName(s, s.job)} of ${s.user}`).join(", ")}`
        : g.job !== null ? `job ${jobName(g, g.job)} of ${g.user}` : g.state;
    return `GPU ${g.index} of ${g.node}: ${of}${g.util !== undefined ? `, ${Math.round(g.util)} % busy` : ""}${g.off ? `, ${g.off}` : ""}${g.foreign?.length ? ", used by processes that are not jobs" : ""}`;
}

function GpuMap(p: { mode: Mode; only: string | null; chosen: number; onChoose(row: number): void }) {
    const canvas = useRef<HTMLCanvasElement>(null), wrap = useRef<HTMLDivElement>(null), layout = useRef<Layout | null>(null);
    const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null), state = useRef(p), frame = useRef(0), whole = useRef(true);
    state.current = p;

    const paint = () => {
        frame.current = 0;
        const c = canvas.current, l = layout.current;
        if (!c || !l) return;
        const r = Math.min(3, window.devicePixelRatio || 1), w = Math.round(l.width * r), h = Math.round(l.height * r);
        if (c.width !== w || c.height !== h) {
            c.width = w;
            c.height = h;
            whole.current = true;
            c.style.width = `${l.width}px`;
            c.style.height = `${l.height}px`;
        }
        const ctx = c.getContext("2d") as CanvasRenderingContext2D, { mode, only, chosen } = state.current;
        const how = { mode, ink: readInk(), chosen, lit: (g: Gpu) => only === null || mode === "util" || keyOf(g, mode).includes(only) };
        ctx.setTransform(r, 0, 0, r, 0, 0);
        if (whole.current) draw(ctx, l, grid.gpus, how);
        else redraw(ctx, l, grid.gpus, how, grid.changed);
        whole.current = false;
        grid.changed.clear();
    };
    const soon = () => {
        if (!frame.current) frame.current = requestAnimationFrame(paint);
    };
    const all = () => {
        whole.current = true;
        soon();
    };
    const relay = () => {
        const w = wrap.current;
        if (!w || !w.clientWidth) return;
        layout.current = layOut(grid.nodes, w.clientWidth, Math.max(360, window.innerHeight * 0.62));
        all();
    };
    useEffect(() => {
        let nodes = grid.nodes;
        const watch = new ResizeObserver(relay);
        watch.observe(wrap.current as Element);
        const stop = [grid.version.follow(() => {
            if (nodes !== grid.nodes) {
                nodes = grid.nodes;
                relay();
            } else soon();
        }), theme.follow(all)];
        relay();
        return () => {
            watch.disconnect();
            stop.forEach((f) => f());
            cancelAnimationFrame(frame.current);
        };
    }, []);
    useEffect(all, [p.mode, p.only, p.chosen]);

    const at = (e: MouseEvent): number => {
        const b = (canvas.current as Element).getBoundingClientRect();
        return layout.current ? hit(layout.current, e.clientX - b.left, e.clientY - b.top) : -1;
    };
    const move = (e: MouseEvent) => {
        const row = at(e), b = (wrap.current as Element).getBoundingClientRect();
        setTip(row < 0 ? null : { x: Math.min(e.clientX - b.left, b.width - 240), y: e.clientY - b.top + 18, text: words(grid.gpus[row]) });
    };
    const key = (e: KeyboardEvent) => {
        const n = grid.gpus.length, cols = layout.current?.blocks[0]?.cols ?? 8, step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: cols, ArrowUp: -cols }[e.key];
        if (step !== undefined && n) {
            e.preventDefault();
            p.onChoose(p.chosen < 0 ? 0 : Math.min(n - 1, Math.max(0, p.chosen + step)));
        } else if (e.key === "Enter" && grid.gpus[p.chosen]?.job) location.hash = `#/job/${grid.gpus[p.chosen].job}`;
        else if (e.key === "Escape") p.onChoose(-1);
    };
    return (
        <div class="map" ref={wrap}>
            <canvas ref={canvas} tabIndex={0} role="img" onMouseMove={move} onMouseLeave={() => setTip(null)} onKeyDown={key}
                onClick={(e) => p.onChoose(at(e))}
                aria-label={`${plural(grid.gpus.length, "GPU")}. Arrow keys choose one, Enter opens its job. The same as a table: the button Table.`} />
            {tip && <div class="tip" style={{ left: `${tip.x}px`, top: `${tip.y}px` }} aria-hidden="true">{tip.text}</div>}
            <div class="hidden" aria-live="polite">{p.chosen >= 0 && grid.gpus[p.chosen] ? words(grid.gpus[p.chosen]) : ""}</div>
        </div>
    );
}

const TABLE_ROWS = 500;

function GpuTable(p: { mode: Mode; only: string | null }) {
    const rows = grid.gpus.filter((g) => p.only === null || p.mode === "util" || keyOf(g, p.mode).includes(p.only));
    return (
        <div class="scroll" tabIndex={0} role="region" aria-label="GPUs">
            <table>
                <caption class="hidden">GPUs, who has them and what they measure</caption>
                <thead><tr><th scope="col">node</th><th scope="col" class="n">GPU</th><th scope="col">state</th><th scope="col">job</th><th scope="col">user</th><th scope="col">tenant</th>
                    <th scope="col" class="n">busy</th><th scope="col" class="n">memory</th><th scope="col" class="n">power</th></tr></thead>
                <tbody>
                    {rows.slice(0, TABLE_ROWS).map((g) => (
                        <tr key={`${g.node}/${g.index}`}>
                            <td>{g.node}</td><td class="n">{g.index}</td>
                            <td>{g.off ?? g.state}{g.draining ? ", drains" : ""}{g.foreign?.length ? ", foreign processes" : ""}</td>
                            <td>{g.shares?.length ? g.shares.map((s, i) => <>{i > 0 && ", "}<JobLink job={{ ...s, id: s.job }} /> ({amount(s.gpus)})</>)
                                : g.job !== null && <JobLink job={{ ...g, id: g.job }} />}</td>
                            <td>{g.user ?? ""}</td><td>{g.tenant ?? ""}</td>
                            <td class="n">{g.util !== undefined ? `${Math.round(g.util)} %` : ""}</td>
                            <td class="n">{g.mem_used_mib !== undefined ? gib(g.mem_used_mib) : ""}</td>
                            <td class="n">{g.power_w !== undefined ? watts(g.power_w) : ""}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
            {rows.length > TABLE_ROWS && <p class="note">The first {TABLE_ROWS} of {amount(rows.length)}. All are at /v1/gpus.</p>}
        </div>
    );
}

async function drain(g: Gpu, whole: boolean, on: boolean): Promise<void> {
    const what = whole ? g.node : grid.nodes.length > 1 ? `GPU ${g.index} of ${g.node}` : `GPU ${g.index}`;
    try {
        await send("POST", `/v1/${whole ? `nodes/${encodeURIComponent(g.node)}` : `gpus/${encodeURIComponent(`${g.node}:${g.index}`)}`}/${on ? "drain" : "resume"}`);
        say(on ? `${what} takes no new jobs.` : `${what} takes jobs again.`);
    } catch (e) {
        say(`${what}: ${(e as Error).message}`, true);
    }
}

function Chosen(p: { gpu: Gpu; onClose(): void }) {
    const g = p.gpu, node = grid.nodes.find((n) => n.name === g.node), out = g.state === "drained" || g.draining === true;
    const facts: [string, string][] = [["model", g.name], ["node", g.node]];
    if (node?.rack) facts.push(["rack", String(node.rack)]);
    if (g.util !== undefined) facts.push(["busy", `${Math.round(g.util)} %`]);
    if (g.mem_used_mib !== undefined) facts.push(["memory", `${gib(g.mem_used_mib)}${g.mem_mib ? ` of ${gib(g.mem_mib)}` : ""}`]);
    if (g.power_w !== undefined) facts.push(["power", watts(g.power_w)]);
    if (g.temp_c !== undefined) facts.push(["temperature", `${Math.round(g.temp_c)} °C`]);
    return (
        <Panel title={`GPU ${g.index}`} note={out ? "drained" : g.state} class="chosen" actions={<button type="button" class="plain" aria-label="Close" onClick={p.onClose}>×</button>}>
            {g.off && <p class="bad">{g.off}</p>}
            {g.shares?.map((s) => <p><JobLink job={{ ...s, id: s.job }}>job {jobName(s, s.job)}</JobLink> of {s.user}: {amount(s.gpus)} of it ({s.share})</p>)}
            {!g.shares && g.job !== null && <p><JobLink job={{ ...g, id: g.job }}>{g.job_name || `job ${jobName(g, g.job)}`}</JobLink> of {g.user}{g.tenant ? ` (${g.tenant})` : ""}</p>}
            {!g.off && g.foreign?.map((f) => <p class="warn">process {f.pid}{f.user ? ` of ${f.user}` : ""}{f.command ? ` (${f.command})` : ""} is not a job</p>)}
            <dl class="facts">{facts.map(([k, v]) => <div><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
            {may("operator") && (
                <div class="actions">
                    <button type="button" onClick={() => drain(g, false, !out)}>{out ? "Use it again" : "Drain this GPU"}</button>
                    <button type="button" onClick={() => drain(g, true, node?.state !== "drained")}>{node?.state === "drained" ? "Use the node again" : "Drain the node"}</button>
                </div>
            )}
        </Panel>
    );
}

interface Sums { total: number; busy: number; free: number; out: number; share: number; util: number | null; power: number | null; models: Map<string, { total: number; free: number }>;
    byFree: number[]; largest: number; scattered: number; foreign: number }

/** One pass over the GPUs for all numbers of the page. */
function sums(): Sums {
    const s: Sums = { total: 0, busy: 0, free: 0, out: 0, share: 0, util: null, power: null, models: new Map(), byFree: [], largest: 0, scattered: 0, foreign: 0 };
    let measured = 0, util = 0;
    for (const n of grid.nodes) {
        let free = 0, usable = 0;
        for (let i = n.first; i < n.first + n.gpus; i++) {
            const g = grid.gpus[i];
            if (!g) continue;
            const m = s.models.get(g.name) ?? { total: 0, free: 0 };
            s.models.set(g.name, m);
            s.total++;
            m.total++;
            if (g.state === "free") { s.free++; m.free++; free++; }
            else if (g.state === "busy") s.busy++;
            else s.out++;
            if (g.state !== "off" && g.state !== "drained") usable++;
            s.share += g.shares ? Math.min(1, g.shares.reduce((a, b) => a + b.gpus, 0)) : g.job !== null ? 1 : 0;
            s.foreign += g.foreign?.length ? 1 : 0;
            if (g.util !== undefined) { measured++; util += g.util; }
            if (g.power_w !== undefined) s.power = (s.power ?? 0) + g.power_w;
        }
        s.byFree[free] = (s.byFree[free] ?? 0) + 1;
        s.largest = Math.max(s.largest, free);
        if (free < usable) s.scattered += free;
    }
    s.util = measured ? util / measured / 100 : null;
    return s;
}

function Fragments(p: { s: Sums }) {
    const { s } = p, most = Math.max(1, ...Array.from(s.byFree, (x) => x ?? 0)), many = grid.nodes.length > 1;
    return (
        <Panel title="Free in one piece">
            <p class="figure"><strong>{s.largest}</strong> {s.largest === 1 ? "GPU" : "GPUs"} free on one node at most{many && s.free > 0 && <>; {percent(s.scattered / s.free)} of the free ones are on nodes in part use</>}</p>
            {many && (
                <ul class="columns" aria-label="Nodes by free GPUs">
                    {Array.from({ length: s.byFree.length }, (_, i) => (
                        <li title={`${plural(s.byFree[i] ?? 0, "node")} with ${i} free`}>
                            <span class="hidden">{plural(s.byFree[i] ?? 0, "node")} with {i} free</span>
                            <i style={{ height: `${((s.byFree[i] ?? 0) / most) * 44 + ((s.byFree[i] ?? 0) > 0 ? 2 : 0)}px` }} aria-hidden="true" /><small aria-hidden="true">{i}</small>
                        </li>
                    ))}
                </ul>
            )}
        </Panel>
    );
}

const hour = new Source<Series | null>(async () => (session.value?.health.you ? get<Series>(`/v1/series?of=cluster&since=${Math.floor(now() - 3600)}&until=${Math.floor(now())}`) : null), 10000);

/** What was given out and what was at work, over the last hour. */
function Hour() {
    const s = hour.use(), made = useMemo(() => {
        if (!s?.series.length) return null;
        const given = column(s, 0, "allocated"), active = column(s, 0, "active");
        return hasData(given) ? known({ at: times(s, given.length), lines: [{ label: "given", colour: "#3b82c4", values: given, step: true, fill: true }, { label: "at work", colour: "#e07b39", values: active, fill: true }] }) : null;
    }, [s]);
    return made && <Plot label="GPUs over the last hour" height={110} {...made} />;
}

function Side(p: { s: Sums }) {
    const { s } = p;
    return (
        <>
            <Panel title="Free by model">
                <ul class="rows">
                    {[...s.models].map(([name, m]) => (
                        <li>
                            <div><span>{name === "virtual" ? "virtual GPU" : name}</span><span><strong>{amount(m.free)}</strong> of {amount(m.total)}</span></div>
                            <Bar thin label={`${m.free} of ${m.total} free`} parts={[{ at: m.free / Math.max(1, m.total), class: "ok" }]} />
                        </li>
                    ))}
                </ul>
            </Panel>
            <Panel title="Given out and used">
                <ul class="rows">
                    <li><div><span>given to jobs</span><strong>{percent(s.share / Math.max(1, s.total))}</strong></div><Bar thin label="GPUs that jobs have" parts={[{ at: s.share / Math.max(1, s.total), class: "accent" }]} /></li>
                    {s.util !== null && <li><div><span>really busy</span><strong>{percent(s.util)}</strong></div>
                        <Bar thin label="share of time a kernel runs, over all GPUs" parts={[{ at: s.util, class: "ember" }]} /></li>}
                </ul>
                <Hour />
            </Panel>
            <Fragments s={s} />
            {s.power !== null && <Panel title="Power"><p class="figure"><strong>{watts(s.power)}</strong> now</p></Panel>}
        </>
    );
}

function Lately() {
    const list = feed.use();
    useTick(1000);
    return (
        <Panel title="Lately">
            {list.length === 0 ? <p class="note">{session.value?.health.you ? "Nothing has happened since this page was opened." : "Log in to see what happens."}</p> : (
                <ol class="feed">
                    {list.slice(0, 12).map((e) => (
                        <li key={e.seq ?? `${e.type}${e.at}`}>
                            <time title={clockSeconds(e.at)}>{now() - e.at < 60 ? `${Math.max(0, Math.floor(now() - e.at))} s` : clockSeconds(e.at).slice(0, 5)}</time>
                            <span>{e.job ? <><JobLink job={{ id: e.job }}>job {e.job}</JobLink> {verb(e)}</> : sentence(e)}</span>
                        </li>
                    ))}
                </ol>
            )}
        </Panel>
    );
}

const BRIEF = 6;

/** The first jobs of the queue; all are on the page Queue. */
function Brief(p: { title: string; list?: Job[] }) {
    useTick(5000);
    if (!p.list) return null;
    const waits = p.title === "Waiting";
    return (
        <Panel title={p.title} note={p.list.length > BRIEF ? `the first ${BRIEF} of ${amount(p.list.length)}` : undefined} actions={p.list.length ? <a href="#/queue">Queue</a> : undefined}>
            {p.list.length === 0 ? <p class="note">{waits ? "No job waits." : "No job runs."}</p> : (
                <table class="brief">
                    <thead><tr><th scope="col" class="n">job</th><th scope="col">name</th><th scope="col">user</th><th scope="col" class="n">GPUs</th>
                        {waits ? <><th scope="col">why it waits</th><th scope="col" class="n">starts in about</th></> : <><th scope="col">on</th><th scope="col" class="n">for</th></>}</tr></thead>
                    <tbody>
                        {p.list.slice(0, BRIEF).map((j) => (
                            <tr key={j.id}>
                                <td class="n"><JobLink job={j} /></td><td>{j.name}</td><td>{j.user}</td><td class="n">{amount(j.gpus)}</td>
                                {waits ? <><td>{j.state_text}</td><td class="n w">{j.start_p50 ? span(j.start_p50 - now()) : ""}</td></>
                                    : <><td>{place(j)}{j.turn ? `, ${j.turn.text}` : ""}</td><td class="n w">{j.started ? span(now() - j.started) : j.state}</td></>}
                            </tr>
                        ))}
                    </tbody>
                </table>
            )}
        </Panel>
    );
}

export function ClusterPage() {
    grid.version.use();
    const list = jobs.use(), [mode, setMode] = useKept<Mode>("mode", "tenant"), [view, setView] = useKept<"map" | "table">("view", "map");
    const [only, setOnly] = useState<string | null>(null), [chosen, setChosen] = useState(-1), s = useMemo(sums, [grid.version.value]);
    const oldest = list?.waiting.reduce((t, j) => Math.min(t, j.submitted), Infinity);
    const hidden = grid.total - grid.gpus.length;
    return (
        <>
            <h1 class="hidden">Cluster</h1>
            <dl class="stats">
                <Stat label="GPUs in use" value={amount(s.busy)} of={`of ${amount(grid.total)}`} />
                <Stat label="free" value={amount(s.free)} tone={s.free ? "good" : ""} />
                <Stat label="jobs run" value={list ? amount(list.running.length) : "…"} />
                <Stat label="jobs wait" value={list ? amount(list.waiting.length) : "…"} of={list?.waiting.length ? `longest ${span(now() - (oldest ?? now()))}` : undefined} />
                {s.out > 0 && <Stat label="out of use" value={amount(s.out)} tone="bad" />}
                {s.foreign > 0 && <Stat label="used by others" value={amount(s.foreign)} tone="warn" />}
                {s.util !== null && <Stat label="really busy" value={percent(s.util)} />}
                {s.power !== null && <Stat label="power" value={watts(s.power)} />}
            </dl>
            <div class="split">
                <div class="stack">
                    <Panel title="GPUs" note={`${plural(grid.nodes.length, "node")}${hidden > 0 ? `, the first ${amount(grid.gpus.length)} GPUs` : ""}`} class="gpus"
                        actions={<>
                            <Choice label="Colour by" value={mode} of={MODES} onChange={(m) => { setMode(m); setOnly(null); }} />
                            <Choice label="View" value={view} of={[["map", "Map"], ["table", "Table"]]} onChange={setView} />
                        </>}>
                        {grid.gpus.length === 0 ? <Empty title="There are no GPUs here">Jobs that need none run all the same.</Empty>
                            : view === "map" ? <GpuMap mode={mode} only={only} chosen={chosen} onChoose={setChosen} /> : <GpuTable mode={mode} only={only} />}
                        <Legend gpus={grid.gpus} mode={mode} only={only} onOnly={setOnly} />
                    </Panel>
                    <Brief title="Waiting" list={list?.waiting} />
                    <Brief title="Running" list={list?.running} />
                </div>
                <aside aria-label="Numbers">
                    {chosen >= 0 && grid.gpus[chosen] && <Chosen gpu={grid.gpus[chosen]} onClose={() => setChosen(-1)} />}
                    <Side s={s} />
                    <Lately />
                </aside>
            </div>
        </>
    );
}
