// SPDX-License-Identifier: Apache-2.0
// job.tsx - one job: its life, what it uses, what it says, what it costs and what would be better.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { act, Verb } from "../lib/act";
import { get, Job, Why } from "../lib/api";
import { nth } from "../lib/colour";
import { amount, clock, clockSeconds, full, gib, jobName, money, percent, place, plural, span } from "../lib/format";
import type { Event } from "../lib/live";
import { column, hasData, known, Line, Plot, Series, times } from "../lib/plot";
import { verb } from "../lib/sentences";
import { Source, useTick } from "../lib/store";
import { tail } from "../lib/tail";
import { askLogin, listeners, now, you } from "../lib/world";
import { Choice, Empty, Panel, State } from "../ui";
import { expected, placed, Progress } from "./queue";

const LOG_CHARS = 400000; // kept of the output
const LOG_LINES = 2000; // shown at first

interface Life { events: Event[]; more: boolean }

interface Used { whole: Series; each: Series | null } // each: of its GPUs, where there are several

function useJob(id: string): { job: Source<Job>; life: Source<Life>; why: Source<Why>; series: Source<Used> } {
    const s = useMemo(() => {
        const job = new Source<Job>(() => get(`/v1/jobs/${id}`), 5000);
        return { job, life: new Source<Life>(() => get(`/v1/jobs/${id}/events`), 0), why: new Source<Why>(() => get(`/v1/jobs/${id}/why`), 0),
            series: new Source<Used>(async () => {
                const j = job.data.value ?? (await get<Job>(`/v1/jobs/${id}`)), until = j.ended ?? now(), since = Math.min(until - 60, Math.max(j.started ?? until - 3600, until - 86400));
                const ask = (of: string) => get<Series>(`/v1/series?of=${of}&id=${j.id}&since=${Math.floor(since)}&until=${Math.ceil(until)}`);
                const [whole, each] = await Promise.all([ask("job"), j.gpus > 1 ? ask("job_gpu") : null]);
                return { whole, each };
            }, 10000) };
    }, [id]);
    useEffect(() => {
        const f = (e: Event) => {
            if (e.job !== null && (e.job === s.job.data.value?.id || String(e.job) === id)) {
                s.job.touch();
                s.life.touch();
                s.why.touch();
            }
        };
        listeners.add(f);
        return () => void listeners.delete(f);
    }, [s]);
    return s;
}

const VERBS: { verb: Verb; text: string; when: string[] }[] = [
    { verb: "hold", text: "Hold", when: ["waiting", "blocked"] }, { verb: "release", text: "Release", when: ["held"] }, { verb: "suspend", text: "Suspend", when: ["running"] },
    { verb: "resume", text: "Resume", when: ["suspended"] }, { verb: "requeue", text: "Requeue", when: ["running", "suspended"] }, { verb: "cancel", text: "Cancel", when: ["held", "blocked", "waiting", "starting", "running", "suspended"] },
];

function LifeLine(p: { life: Life | null; job: Job }) {
    const list = p.life?.events ?? [];
    return (
        <Panel title="Life" note={p.life?.more ? "the first 1000 events" : undefined}>
            {!p.life ? <p class="note">Loading</p> : (
                <ol class="life">
                    {list.length === 0 && <li><span class="note">The journal no longer has the events of this job.</span></li>}
                    {list.map((e, i) => (
                        <li key={e.seq} class={`e-${e.type} ${e.type === "exited" && e.cause !== "completed" ? "ill" : ""}`}>
                            <time title={full(e.at)}>{clockSeconds(e.at)}</time>
                            <span>{verb(e)}{e.type === "exited" && p.job.note && p.job.state === "done" && i === list.length - 1 ? <small class="note"> {p.job.note}</small> : ""}</span>
                            <small class="note">{i > 0 ? `after ${span(e.at - list[i - 1].at)}` : full(e.at).slice(0, 10)}</small>
                        </li>
                    ))}
                    {p.job.state !== "done" && <li class="now"><time>now</time><span>{p.job.state_text}</span></li>}
                </ol>
            )}
        </Panel>
    );
}

const COLOURS = ["#3b82c4", "#e07b39", "#3f9c6b", "#7a6bd1"];

interface Figure { label: string; unit: string; max?: number; least?: number; lines: Line[]; at: number[] }

/** MiB as a unit that suits them. */
function memory(lines: Line[]): { unit: string; lines: Line[] } {
    const large = lines.some((l) => l.values.some((x) => (x ?? 0) >= 1024));
    return { unit: large ? " GiB" : " MiB", lines: large ? lines.map((l) => ({ ...l, values: l.values.map((x) => (x === null ? null : x / 1024)) })) : lines };
}

/** The names of its GPUs, in order: of where it was placed last, as far as the journal knows. */
function names(life: Life | null, n: number, index: (i: number) => number | null): string[] {
    const last = [...(life?.events ?? [])].reverse().find((e) => e.type === "place"), pieces = (last?.pieces ?? []) as { node: string; gpu_indices: number[] }[];
    const all = pieces.flatMap((p) => p.gpu_indices.map((g) => (pieces.length > 1 ? `${p.node} GPU ${g}` : `GPU ${g}`)));
    return Array.from({ length: n }, (_, i) => all[i] ?? `GPU ${index(i) ?? i}`);
}

function figures(u: Used, life: Life | null): Figure[] {
    const s = u.whole, at = times(s, (s.series[0]?.gpus as unknown[] | undefined)?.length ?? 0), of = (name: string, k = 1) => column(s, 0, name).map((x) => (x === null ? null : x * k));
    const e = u.each?.series.length && u.each.series.length > 1 ? u.each : null, called = e ? names(life, e.series.length, (i) => column(e, i, "index").reduce((a, b) => b ?? a, null)) : [];
    const each = (name: string, one: string, colour: string, k = 1): Line[] => (e
        ? e.series.map((_, i) => ({ label: called[i], colour: nth(i), values: column(e, i, name).map((x) => (x === null ? null : x * k)) }))
        : [{ label: one, colour, values: of(name, k), fill: true }]), gpus = e ? ", each of its GPUs" : "", sure = e ? times(e, column(e, 0, "active").length) : at;
    const busy = each("util", "busy", COLOURS[1], 100);
    return [
        { label: "GPUs it has, and GPUs at work", unit: "", at, lines: [{ label: "has", colour: COLOURS[0], values: of("gpus"), step: true, dash: true }, { label: "at work", colour: COLOURS[1], values: of("active"), fill: true }] },
        { label: `Busy${gpus}`, unit: " %", max: 100, at: sure, lines: busy.some((l) => hasData(l.values)) || !e ? busy : each("active", "at work", COLOURS[1], 100) },
        { label: `GPU memory${gpus}`, at: sure, ...memory(each("mem_mib", "memory", COLOURS[0])) },
        { label: `Power${gpus}`, unit: " W", at: sure, lines: each("power_w", "power", COLOURS[3]) },
        { label: "CPU cores used", unit: "", least: 1, at, lines: [{ label: "CPU", colour: COLOURS[2], values: of("cpus"), fill: true }] },
        { label: "Memory", at, ...memory([{ label: "memory", colour: COLOURS[2], values: of("rss_mib"), fill: true }]) },
    ].map((x) => known(x)).filter((x) => x.lines.some((l) => hasData(l.values)));
}

function Plots(p: { used: Used | null; life: Life | null; job: Job }) {
    const made = useMemo(() => (p.used?.whole.series.length ? figures(p.used, p.life) : []), [p.used, p.life]);
    return (
        <Panel title="What it uses">
            {made.length === 0 ? <p class="note">{p.job.started ? "Nothing has been measured yet." : "It has not started."}</p>
                : <div class="plots">{made.map((m) => <Plot key={m.label} {...m} />)}</div>}
        </Panel>
    );
}

function Log(p: { job: Job }) {
    const [stream, setStream] = useState<"stdout" | "stderr">("stdout"), [text, setText] = useState(""), [end, setEnd] = useState(""), [lost, setLost] = useState(false), box = useRef<HTMLPreElement>(null), stick = useRef(true);
    const started = p.job.started !== null;
    useEffect(() => {
        if (!started) return undefined;
        const stop = new AbortController();
        let all = "", frame = 0;
        setText("");
        setEnd("");
        setLost(false);
        const show = () => {
            frame = 0;
            setText(all);
        };
        void tail(`/v1/jobs/${p.job.id}/log?stream=${stream}`, LOG_LINES, stop.signal, {
            text: (more) => {
                all = (all + more).slice(-LOG_CHARS);
                if (!frame) frame = requestAnimationFrame(show);
            },
            state: (s) => setLost(s === "reconnecting"),
            end: (why) => setEnd(why ?? "the end"),
        });
        return () => {
            stop.abort();
            cancelAnimationFrame(frame);
        };
    }, [p.job.id, stream, started, p.job.restarts]);
    useEffect(() => {
        if (stick.current && box.current) box.current.scrollTop = box.current.scrollHeight;
    }, [text]);
    const two = p.job.stderr && p.job.stderr !== p.job.stdout;
    return (
        <Panel title="Output" note={end || (lost ? "reconnecting" : started ? "follows" : undefined)} actions={two ? <Choice label="Stream" value={stream} of={[["stdout", "stdout"], ["stderr", "stderr"]]} onChange={(x: "stdout" | "stderr") => setStream(x)} /> : undefined}>
            {!started ? <p class="note">It has not started.</p>
                : <pre class="log" ref={box} tabIndex={0} role="log" aria-label="Output of the job" onScroll={(e) => { const b = e.currentTarget; stick.current = b.scrollHeight - b.scrollTop - b.clientHeight < 24; }}>{text || (end ? "(nothing was written)" : "")}</pre>}
        </Panel>
    );
}

function Cost(p: { job: Job }) {
    const j = p.job, e = j.efficiency, hours = e?.gpu_hours ?? (j.run_s * j.gpus) / 3600;
    return (
        <Panel title="Cost and use">
            <dl class="facts">
                <div><dt>GPU-hours</dt><dd>{hours > 0 && hours < 0.01 ? hours.toFixed(4) : amount(Math.round(hours * 100) / 100)}</dd></div>
                {e?.money !== null && e?.money !== undefined && <div><dt>money</dt><dd>{money(e.money, e.currency)}</dd></div>}
                {e?.kwh !== null && e?.kwh !== undefined && <div><dt>energy</dt><dd>{amount(Math.round(e.kwh * 100) / 100)} kWh</dd></div>}
                {e?.util !== null && e?.util !== undefined && <div><dt>GPUs busy</dt><dd>{percent(e.util)}</dd></div>}
                {!!e?.gpus_idle && <div><dt>idle</dt><dd>{e.gpus_idle} of {plural(j.gpus, "GPU")}</dd></div>}
                {!!e?.mem_used_max_mib && <div><dt>GPU memory, at most</dt><dd>{gib(e.mem_used_max_mib)}</dd></div>}
            </dl>
            {e?.verdict && e.verdict !== "unknown" && <p class={`advice ${e.verdict === "good" ? "good" : "warn"}`}><strong>{e.verdict === "good" ? "Uses what it has." : e.verdict === "idle" ? "Does nothing with its GPUs." : "Uses little of what it has."}</strong> {e.advice ?? ""}</p>}
            {j.warning && <p class="advice warn">{j.warning}</p>}
        </Panel>
    );
}

function Facts(p: { job: Job }) {
    const j = p.job, rows: [string, string][] = [["number", jobName(j, j.id)], ["user", j.user]];
    if (j.slurm) rows.push(["in Slurm", `${j.slurm.id}${j.slurm.state ? `, ${j.slurm.state}` : ""}`]);
    if (j.tenant) rows.push(["tenant", j.tenant]);
    rows.push(["queue", j.queue], ["kind", j.kind], ["GPUs", `${amount(j.gpus)}${j.tasks > 1 ? ` in ${j.tasks} tasks` : ""}${j.part?.mig ? ` (${j.part.mig})` : ""}`]);
    if (j.cpus) rows.push(["CPUs", `${j.cpus}${j.tasks > 1 ? ` in each of ${j.tasks} tasks` : ""}${j.cpus_default ? " (default)" : ""}`]);
    if (j.node) rows.push(["on", place(j)]);
    if (j.priority !== undefined) rows.push(["priority", `${j.priority}${j.tier ? `, ${j.tier}` : ""}`]);
    rows.push(["submitted", full(j.submitted)]);
    if (j.started) rows.push(["started", full(j.started)], ["waited", span(j.waited_s)]);
    if (j.expected_end) rows.push(["ends about", clock(j.expected_end)]);
    if (j.time_limit_s) rows.push(["time limit", span(j.time_limit_s)]);
    if (j.ended) rows.push(["ended", full(j.ended)]);
    rows.push(["ran", span(j.run_s)]);
    if (j.restarts) rows.push(["starts again", String(j.restarts)]);
    if (j.preemptions) rows.push(["gave way", plural(j.preemptions, "time")]);
    if (j.workdir) rows.push(["folder", j.workdir]);
    return <Panel title="Facts"><dl class="facts">{rows.map(([k, v]) => <div><dt>{k}</dt><dd>{v}</dd></div>)}</dl></Panel>;
}

function Waits(p: { source: Source<Why>; job: Job }) {
    const why = p.source.use();
    return (
        <Panel title="Why it waits" note={p.job.position ? `place ${p.job.position} in line` : undefined}>
            {!why ? <p class="note">{p.source.error.value?.message ?? "Trying what would help, on a copy of the scheduler"}</p> : (
                <div class="why">
                    <div>
                        <ul class="dots">{(why.reasons.length ? why.reasons : [why]).map((r) => <li>{r.sentence}</li>)}</ul>
                        {p.job.start_p50 && <p>Expected to start in <strong>{expected(p.job)}</strong>{expected(p.job).includes(" to ") ? ": half of such jobs by the first, nine of ten by the second" : ""}{p.job.start_pieces ? <>, probably on {placed(p.job)}</> : ""}.</p>}
                    </div>
                    <div>
                        <h3>What would start it now</h3>
                        {why.changes.length === 0 ? <p class="note">Nothing that was tried.</p> : <ol class="dots">{why.changes.slice(0, 5).map((c) => <li>{c.sentence}{c.evicts ? ` (${plural(c.evicts, "job")} would give way)` : ""}<code>{c.command}</code></li>)}</ol>}
                    </div>
                </div>
            )}
        </Panel>
    );
}

function One(p: { id: string }) {
    const s = useJob(p.id), job = s.job.use(), life = s.life.use(), series = s.series.use();
    useTick(1000);
    useEffect(() => {
        if (job) s.series.touch();
    }, [job?.state]);
    if (!job) return <p class="banner" role="status">{s.job.error.value?.message ?? "Loading"}</p>;
    const command = Array.isArray(job.command) ? job.command.join(" ") : job.command ?? (job.script ? "a script" : "");
    return (
        <>
            <div class="head">
                <h1>{job.name || `job ${jobName(job, job.id)}`}</h1>
                <State state={job.state} cause={job.cause} />
                <span class="note">{job.state_text}</span>
                <div class="actions">{VERBS.filter((v) => v.when.includes(job.state)).map((v) => <button type="button" onClick={() => act(v.verb, [job.id])}>{v.text}</button>)}</div>
            </div>
            {command && <p class="command"><code>{command}</code></p>}
            {job.state === "running" && <div class="bigprogress"><Progress job={job} /></div>}
            <div class="split">
                <div class="stack">
                    {["waiting", "blocked", "held"].includes(job.state) && <Waits source={s.why} job={job} />}
                    <Plots used={series} life={life} job={job} />
                    <Log job={job} />
                </div>
                <aside aria-label="About this job"><Cost job={job} /><LifeLine life={life} job={job} /><Facts job={job} /></aside>
            </div>
        </>
    );
}

export function JobPage(p: { arg: string }) {
    if (!you()) return <Empty whole title="Log in to see a job"><button type="button" class="primary" onClick={() => askLogin(true)}>Log in</button></Empty>;
    if (!/^(slurm:)?\d+(_\d+)?$/.test(p.arg)) return <Empty whole title={`“${p.arg}” is not the number of a job`}>A job has a number, such as 12, or 12_4: element 4 of array 12.</Empty>;
    return <One key={p.arg} id={p.arg} />;
}
