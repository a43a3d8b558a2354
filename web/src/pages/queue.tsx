// SPDX-License-Identifier: Apache-2.0
// queue.tsx - what waits and why, what runs and how far it is, what has ended; and all of it in time.
import { useEffect, useMemo, useState } from "preact/hooks";
import { act, Verb } from "../lib/act";
import { Efficiency, get, Job, Why } from "../lib/api";
import { amount, clock, full, jobName, percent, place, plural, span } from "../lib/format";
import { Source, useTick } from "../lib/store";
import { jobs, now, you } from "../lib/world";
import { Bar, Choice, Empty, JobLink, Panel, State, useKept } from "../ui";
import { Timeline } from "./timeline";

const STEP = 100; // rows shown at once

export const ended = new Source<Job[]>(async () => (you() ? (await get<{ jobs: Job[] }>("/v1/history?limit=200")).jobs : []), 15000);

/** How well jobs use what they have is said in details only: of the first that run, and seldom. */
const efficiency = new Source<Map<number, Efficiency>>(async () => {
    if (!you()) return new Map();
    const list = (await get<{ jobs: Job[] }>("/v1/jobs?state=running&detail=1&limit=200")).jobs;
    return new Map(list.filter((j) => j.efficiency).map((j) => [j.id, j.efficiency as Efficiency]));
}, 15000);

interface Filter { text: string; user: string; tenant: string; queue: string }

function matches(j: Job, f: Filter): boolean {
    const t = f.text.trim().toLowerCase();
    return (!f.user || j.user === f.user) && (!f.tenant || j.tenant === f.tenant) && (!f.queue || j.queue === f.queue) &&
        (!t || j.name.toLowerCase().includes(t) || String(j.id) === t || String(j.array_id ?? "") === t || j.slurm?.id === t || j.slurm?.id.split("_")[0] === t || j.user.toLowerCase().includes(t) || (j.state_text ?? "").toLowerCase().includes(t));
}

/** "in 5 min to 2 h": half of such jobs start by the first, nine of ten by the second. */
export function expected(j: { start_p50?: number | null; start_p90?: number | null }): string {
    if (!j.start_p50) return "";
    const a = span(j.start_p50 - now()), b = j.start_p90 ? span(j.start_p90 - now()) : "";
    return b && b !== a ? `${a} to ${b}` : a;
}

/** Where it is expected to start. */
export function placed(j: Job): string {
    return place({ node: j.start_pieces?.[0].node, gpu_indices: j.start_pieces?.[0].gpu_indices, pieces: j.start_pieces });
}

export function Progress(p: { job: Job }) {
    const j = p.job, pr = j.progress;
    if (pr?.total && pr.step !== undefined)
        return <><Bar thin label={`step ${pr.step} of ${pr.total}`} parts={[{ at: pr.step / pr.total }]} /><small class="note">{amount(pr.step)} of {amount(pr.total)}</small></>;
    if (j.items) return <><Bar thin label={`${j.items.done} of ${j.items.total} items`} parts={[{ at: j.items.done / j.items.total }]} /><small class="note">{amount(j.items.done)} of {plural(j.items.total, "item")}</small></>;
    if (j.expected_end && j.started) {
        const at = (now() - j.started) / Math.max(1, j.expected_end - j.started);
        return <><Bar thin label={`${percent(Math.min(1, at))} of its expected time`} parts={[{ at, class: "soft" }]} /><small class="note">ends about {clock(j.expected_end)}</small></>;
    }
    return <small class="note">end not known</small>;
}

function Efficient(p: { job: Job; e: Efficiency | undefined }) {
    const { e } = p;
    if (p.job.warning) return <span class="warn" title={p.job.warning}>{p.job.warning}</span>;
    if (!e?.verdict || e.verdict === "unknown") return <span class="note">not known</span>;
    return <span class={e.verdict === "good" ? "good" : "warn"} title={e.advice ?? undefined}>{e.verdict}{e.util !== null && e.util !== undefined ? `, ${percent(e.util)} busy` : ""}</span>;
}

function Help(p: { id: number }) {
    const [why, setWhy] = useState<Why | string | null>(null);
    useEffect(() => {
        const stop = new AbortController();
        get<Why>(`/v1/jobs/${p.id}/why`, stop.signal).then(setWhy, (e: Error) => stop.signal.aborted || setWhy(e.message));
        return () => stop.abort();
    }, [p.id]);
    if (why === null) return <p class="note">Trying what would help, on a copy of the scheduler</p>;
    if (typeof why === "string") return <p class="bad">{why}</p>;
    return (
        <div class="why">
            <div>
                <h3>Why it waits</h3>
                <ul class="dots">{(why.reasons.length ? why.reasons : [why]).map((r) => <li>{r.sentence}</li>)}</ul>
                {why.holders.length > 0 && <>
                    <h3>Who has what it needs</h3>
                    <ul class="dots">{why.holders.slice(0, 5).map((h) => <li class="inline"><JobLink job={h}>job {jobName(h, h.id)}</JobLink>{h.user ? ` of ${h.user}` : ""}{h.tenant ? ` (${h.tenant})` : ""}: {plural(h.gpus, "GPU")}{h.expected_end ? `, until about ${clock(h.expected_end)}` : ""}</li>)}</ul>
                </>}
            </div>
            <div>
                <h3>What would start it now</h3>
                {why.changes.length === 0 ? <p class="note">Nothing that was tried. It starts when there is room.</p>
                    : <ol class="dots">{why.changes.slice(0, 5).map((c) => <li>{c.sentence}{c.evicts ? ` (${plural(c.evicts, "job")} would give way)` : ""}<code>{c.command}</code></li>)}</ol>}
            </div>
        </div>
    );
}

interface Rows { list: Job[]; chosen: Set<number>; onChoose(ids: number[], on: boolean): void }

function Pick(p: Rows & { job: Job }) {
    return <td class="pick"><input type="checkbox" aria-label={`Choose job ${p.job.id}`} checked={p.chosen.has(p.job.id)} onChange={(e) => p.onChoose([p.job.id], e.currentTarget.checked)} /></td>;
}

function PickAll(p: Rows) {
    const all = p.list.length > 0 && p.list.every((j) => p.chosen.has(j.id));
    return <th scope="col" class="pick"><input type="checkbox" aria-label="Choose all" checked={all} onChange={(e) => p.onChoose(p.list.map((j) => j.id), e.currentTarget.checked)} /></th>;
}

/** Its number, and Slurm's where that runs it. */
function Numbers(p: { job: Job }) {
    return <td class="n"><JobLink job={p.job} />{p.job.slurm && <small class="note at">Slurm {p.job.slurm.id}</small>}</td>;
}

function More(p: { shown: number; of: number; onMore(): void }) {
    return p.of > p.shown ? <p class="more"><button type="button" onClick={p.onMore}>Show {Math.min(STEP, p.of - p.shown)} more of {amount(p.of - p.shown)}</button></p> : null;
}

function Waiting(p: Rows) {
    const [open, setOpen] = useState<number | null>(null), [shown, setShown] = useState(STEP);
    return (
        <>
            <div class="wide"><table class="cards">
                <caption class="hidden">Jobs that wait</caption>
                <thead><tr><PickAll {...p} /><th scope="col" class="n" title="place in the line of its pool; a smaller job may pass">place</th><th scope="col" class="n">job</th><th scope="col">name</th><th scope="col">user</th><th scope="col" class="opt">tenant</th>
                    <th scope="col" class="n">GPUs</th><th scope="col" class="n">waits for</th><th scope="col">why</th><th scope="col" class="n" title="half of such jobs start by the first, nine of ten by the second">starts in</th><th scope="col"><span class="hidden">what would help</span></th></tr></thead>
                <tbody>
                    {p.list.slice(0, shown).map((j) => (
                        <>
                            <tr key={j.id}>
                                <Pick {...p} job={j} />
                                <td class="n">{j.position ?? (j.state !== "waiting" ? <State state={j.state} /> : "")}</td>
                                <Numbers job={j} /><td class="name"><JobLink job={j}>{j.name || jobName(j, j.id)}</JobLink></td><td>{j.user}</td><td class="opt">{j.tenant ?? ""}</td><td class="n gpus">{amount(j.gpus)}</td>
                                <td class="n w" title={full(j.submitted)}>{span(now() - j.submitted)}</td><td class="reason">{j.state_text}{j.deadline && j.deadline.answer !== "feasible" && <span class="warn"> · deadline {clock(j.deadline.at)}: {j.deadline.answer.replace("_", " ")}</span>}</td>
                                <td class="n w when">{expected(j)}{j.start_pieces && <small class="note at">on {placed(j)}</small>}</td>
                                <td class="n w help"><button type="button" class="plain" aria-expanded={open === j.id} onClick={() => setOpen(open === j.id ? null : j.id)} disabled={!you()} title={you() ? undefined : "Log in to ask"}>What would help?</button></td>
                            </tr>
                            {open === j.id && <tr class="detail"><td colSpan={11}><Help id={j.id} /></td></tr>}
                        </>
                    ))}
                </tbody>
            </table></div>
            <More shown={shown} of={p.list.length} onMore={() => setShown(shown + STEP)} />
        </>
    );
}

function Running(p: Rows) {
    const [shown, setShown] = useState(STEP), known = efficiency.use();
    return (
        <>
            <div class="wide"><table class="cards">
                <caption class="hidden">Jobs that run</caption>
                <thead><tr><PickAll {...p} /><th scope="col" class="n">job</th><th scope="col">name</th><th scope="col">user</th><th scope="col" class="opt">tenant</th><th scope="col" class="n">GPUs</th><th scope="col">on</th>
                    <th scope="col" class="n">runs for</th><th scope="col" class="progress">progress</th><th scope="col">efficiency</th></tr></thead>
                <tbody>
                    {p.list.slice(0, shown).map((j) => (
                        <tr key={j.id}>
                            <Pick {...p} job={j} /><Numbers job={j} /><td class="name"><JobLink job={j}>{j.name || jobName(j, j.id)}</JobLink></td><td>{j.user}</td><td class="opt">{j.tenant ?? ""}</td><td class="n gpus">{amount(j.gpus)}</td>
                            <td class="reason">{place(j)}{j.state !== "running" && <> <State state={j.state} /></>}</td><td class="n w when">{j.started ? span(now() - j.started) : ""}</td>
                            <td class="progress"><Progress job={j} /></td><td><Efficient job={j} e={known?.get(j.id) ?? j.efficiency} /></td>
                        </tr>
                    ))}
                </tbody>
            </table></div>
            <More shown={shown} of={p.list.length} onMore={() => setShown(shown + STEP)} />
        </>
    );
}

function Ended(p: { list: Job[] }) {
    return (
        <div class="wide"><table class="cards">
            <caption class="hidden">Jobs that have ended, the latest first</caption>
            <thead><tr><th scope="col" class="n">job</th><th scope="col">name</th><th scope="col">user</th><th scope="col" class="opt">tenant</th><th scope="col" class="n">GPUs</th><th scope="col">ended</th><th scope="col" class="n">waited</th><th scope="col" class="n">ran</th><th scope="col">how</th><th scope="col">note</th></tr></thead>
            <tbody>
                {p.list.map((j) => (
                    <tr key={j.id}>
                        <Numbers job={j} /><td class="name"><JobLink job={j}>{j.name || jobName(j, j.id)}</JobLink></td><td>{j.user}</td><td class="opt">{j.tenant ?? ""}</td><td class="n gpus">{amount(j.gpus)}</td><td class="w">{j.ended ? clock(j.ended) : ""}</td>
                        <td class="n w">{j.started ? span(j.waited_s) : ""}</td><td class="n w">{span(j.run_s)}</td><td class="when"><State state={j.state} cause={j.cause} /></td><td class="reason">{j.cause === "completed" ? j.note ?? "" : j.note ?? j.state_text}</td>
                    </tr>
                ))}
            </tbody>
        </table></div>
    );
}

function Select(p: { label: string; value: string; of: string[]; onChange(v: string): void }) {
    if (p.of.length < 2 && !p.value) return null;
    return (
        <select aria-label={p.label} value={p.value} onChange={(e) => p.onChange(e.currentTarget.value)}>
            <option value="">all {p.label}s</option>
            {p.of.map((x) => <option value={x}>{x}</option>)}
        </select>
    );
}

function Filters(p: { all: Job[]; f: Filter; onChange(f: Filter): void }) {
    const names = (of: (j: Job) => string | null) => [...new Set(p.all.map(of).filter((x): x is string => !!x))].sort();
    return (
        <div class="filters" role="search" aria-label="Filter">
            <input type="search" aria-label="Name, number, user or reason" placeholder="name, number, user, reason" value={p.f.text} onInput={(e) => p.onChange({ ...p.f, text: e.currentTarget.value })} />
            <Select label="user" value={p.f.user} of={names((j) => j.user)} onChange={(user) => p.onChange({ ...p.f, user })} />
            <Select label="tenant" value={p.f.tenant} of={names((j) => j.tenant)} onChange={(tenant) => p.onChange({ ...p.f, tenant })} />
            <Select label="queue" value={p.f.queue} of={names((j) => j.queue)} onChange={(queue) => p.onChange({ ...p.f, queue })} />
            {you() && <button type="button" aria-pressed={p.f.user === you()?.user} class="toggle" onClick={() => p.onChange({ ...p.f, user: p.f.user === you()?.user ? "" : you()?.user ?? "" })}>Mine</button>}
        </div>
    );
}

function Bulk(p: { chosen: Set<number>; onClear(): void }) {
    const go = (v: Verb) => { act(v, [...p.chosen]); p.onClear(); };
    return (
        <div class="bulk" role="toolbar" aria-label="What to do with the chosen jobs">
            <strong>{plural(p.chosen.size, "job")} chosen</strong>
            <button type="button" onClick={() => go("cancel")}>Cancel</button>
            <button type="button" onClick={() => go("hold")}>Hold</button>
            <button type="button" onClick={() => go("release")}>Release</button>
            <button type="button" onClick={() => go("suspend")}>Suspend</button>
            <button type="button" onClick={() => go("resume")}>Resume</button>
            <button type="button" class="plain" onClick={p.onClear}>None</button>
        </div>
    );
}

export function QueuePage() {
    const list = jobs.use(), past = ended.use(), [view, setView] = useKept<"lists" | "timeline" | "ended">("queue", "lists");
    const [f, setF] = useState<Filter>({ text: "", user: "", tenant: "", queue: "" }), [chosen, setChosen] = useState<Set<number>>(new Set());
    useTick(1000);
    const all = useMemo(() => [...(list?.running ?? []), ...(list?.waiting ?? [])], [list]);
    const waiting = useMemo(() => (list?.waiting ?? []).filter((j) => matches(j, f)).sort((a, b) => (a.position ?? 1e9) - (b.position ?? 1e9) || a.id - b.id), [list, f]);
    const running = useMemo(() => (list?.running ?? []).filter((j) => matches(j, f)), [list, f]);
    const choose = (ids: number[], on: boolean) => {
        const s = new Set(chosen);
        for (const id of ids) if (on) s.add(id); else s.delete(id);
        setChosen(s);
    };
    const alive = new Set(all.map((j) => j.id)), still = new Set([...chosen].filter((id) => alive.has(id)));
    const rows = { chosen: still, onChoose: choose };
    const filtered = f.text || f.user || f.tenant || f.queue;
    return (
        <>
            <div class="head">
                <h1>Queue</h1>
                <Choice label="View" value={view} of={[["lists", "Lists"], ["timeline", "Timeline"], ["ended", "Ended"]]} onChange={setView} />
                <Filters all={view === "ended" ? past ?? [] : all} f={f} onChange={setF} />
            </div>
            {still.size > 0 && view === "lists" && <Bulk chosen={still} onClear={() => setChosen(new Set())} />}
            {!list ? <p class="banner">{jobs.error.value?.message ?? "Loading"}</p> : view === "lists" ? (
                <div class="stack">
                    <Panel title="Waiting" note={`${plural(waiting.length, "job")}${list.more ? ", of the first that the daemon lists" : ""}`}>
                        {waiting.length ? <Waiting list={waiting} {...rows} /> : <Empty title={filtered ? "No job that waits matches" : "Nothing waits"}>{filtered ? "Change the filter to see others." : "A job that is submitted now starts as soon as its GPUs are free."}</Empty>}
                    </Panel>
                    <Panel title="Running" note={plural(running.length, "job")}>
                        {running.length ? <Running list={running} {...rows} /> : <Empty title={filtered ? "No job that runs matches" : "Nothing runs"}>{!filtered && <>Try <code>stoker run --gpus 1 -- sleep 60</code>.</>}</Empty>}
                    </Panel>
                </div>
            ) : view === "timeline" ? <Timeline running={running} waiting={waiting} ended={(past ?? []).filter((j) => matches(j, f))} /> : (
                <Panel title="Ended" note="the latest first">
                    {!you() ? <Empty title="Log in to see jobs that have ended" /> : past?.length ? <Ended list={past.filter((j) => matches(j, f))} /> : <Empty title="No job has ended yet" />}
                </Panel>
            )}
        </>
    );
}
