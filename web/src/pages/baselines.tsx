// SPDX-License-Identifier: Apache-2.0
// baselines.tsx - has it become better? Periods that were marked, another beside one of them, and what was
// changed when.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, Refusal, send } from "../lib/api";
import { amount, clock, day, duration, fromInput, full, plural, share, span, toInput } from "../lib/format";
import { Source } from "../lib/store";
import { change } from "../lib/whatif";
import { askLogin, may, now, you } from "../lib/world";
import { ask, Choice, Delta, Empty, Panel, say } from "../ui";

interface Figures { since: number; until: number; jobs: number; completed: number; failed: number; cancelled: number; never_ran?: number; preemptions: number; preemptions_per_day?: number | null; gpus: number; jobs_per_day: number | null; gpu_hours: number; utilization: number | null;
    avg_wait_s: number | null; p50_wait_s: number | null; p90_wait_s: number | null; p99_wait_s: number | null; avg_jct_s: number | null; p50_jct_s: number | null; p90_jct_s: number | null; jobs_with_steps?: number; steps_per_gpu_hour: number | null }
interface Baseline { name: string; since: number; until: number; note: string; user: string; created: number; figures: Figures }
interface Note { at: number; kind: string; user: string | null; text: string }
interface Compared { baseline: Baseline; period: Figures; notes: Note[] }

const baselines = new Source<Baseline[]>(async () => (await get<{ baselines: Baseline[] }>("/v1/baselines")).baselines, 15000);

function refused(e: unknown): string {
    if (e instanceof Refusal && e.status === 401) askLogin(true);
    return (e as Error).message;
}

// ---- figures ----

interface Row { label: string; hint?: string; better: 1 | -1 | 0; of(f: Figures): number | null; show(x: number): string }

const number = (x: number) => amount(x >= 100 ? Math.round(x) : Math.round(x * 100) / 100);

const ROWS: { group: string; rows: Row[] }[] = [
    { group: "throughput", rows: [
        { label: "jobs a day", hint: "that ended and had started", better: 1, of: (f) => f.jobs_per_day, show: number },
        { label: "GPU-hours a day", hint: "allocated, while the cluster was known", better: 1, of: (f) => (f.utilization === null ? null : f.utilization * f.gpus * 24), show: number },
        { label: "steps per GPU-hour", hint: "of jobs that report their steps", better: 1, of: (f) => f.steps_per_gpu_hour, show: number },
        { label: "jobs per GPU-hour", better: 1, of: (f) => (f.gpu_hours > 0 ? f.jobs / f.gpu_hours : null), show: number },
        { label: "failed", hint: "of the jobs that ended", better: -1, of: (f) => (f.jobs ? f.failed / f.jobs : null), show: share }] },
    { group: "waits", rows: [
        { label: "wait, mean", better: -1, of: (f) => f.avg_wait_s, show: duration },
        { label: "wait, median", better: -1, of: (f) => f.p50_wait_s, show: duration },
        { label: "wait, P90", hint: "nine of ten jobs waited no longer", better: -1, of: (f) => f.p90_wait_s, show: duration },
        { label: "completion, mean", hint: "from submission to the end", better: -1, of: (f) => f.avg_jct_s, show: duration },
        { label: "completion, P90", better: -1, of: (f) => f.p90_jct_s, show: duration },
        { label: "preemptions", hint: "in the period", better: 0, of: (f) => f.preemptions, show: amount },
        { label: "preemptions a day", better: -1, of: (f) => f.preemptions_per_day ?? null, show: number }] },
    { group: "GPUs", rows: [
        { label: "utilization", hint: "allocated GPU-hours of the capacity", better: 1, of: (f) => f.utilization, show: share },
        { label: "GPUs", better: 0, of: (f) => f.gpus, show: amount }] },
];

function cell(r: Row, f: Figures) {
    const x = r.of(f);
    return x === null ? "–" : r.show(x);
}

function Table(p: { c: Compared }) {
    const a = p.c.baseline.figures, b = p.c.period;
    return (
        <div class="wide" tabIndex={0} role="region" aria-label="Before and now"><table class="sides">
            <caption class="hidden">{p.c.baseline.name} and the period that is compared with it</caption>
            <thead><tr><th scope="col">figure</th><th scope="col" class="n">{p.c.baseline.name}</th><th scope="col" class="n">now</th><th scope="col">change</th></tr></thead>
            {ROWS.map((g) => (
                <tbody>
                    <tr class="group"><th scope="rowgroup" colSpan={4}>{g.group}</th></tr>
                    {g.rows.filter((r) => r.of(a) !== null || r.of(b) !== null).map((r) => (
                        <tr><th scope="row" title={r.hint}>{r.label}</th><td class="n">{cell(r, a)}</td><td class="n"><strong>{cell(r, b)}</strong></td><td class="w"><Delta of={change(r.of(a), r.of(b), r.better)} /></td></tr>
                    ))}
                </tbody>
            ))}
        </table></div>
    );
}

function words(c: Compared): string {
    const a = c.baseline.figures, b = c.period;
    if (!b.jobs) return "No job has ended in the period that is compared. There is nothing to say yet.";
    if (!a.jobs) return "No job had ended in the baseline.";
    const pair = (label: string, x: number | null, y: number | null, show: (v: number) => string) => (x === null || y === null ? [] : [`${label} ${show(x)} → ${show(y)}`]);
    const said = [...pair("jobs a day", a.jobs_per_day, b.jobs_per_day, number), ...pair("mean wait", a.avg_wait_s, b.avg_wait_s, duration),
        ...pair("utilization", a.utilization, b.utilization, share), ...pair("steps per GPU-hour", a.steps_per_gpu_hour, b.steps_per_gpu_hour, number)].join(", ");
    return said ? `${said[0].toUpperCase()}${said.slice(1)}.` : "These periods cannot be compared: no figure is known of both.";
}

// ---- what was changed, on a line of time ----

const KIND: Record<string, string> = { config: "configuration", quota: "quota", rule: "rule", note: "note" };

function TimeLine(p: { c: Compared; notes: Note[] }) {
    const { baseline: a, period: b } = p.c, from = Math.min(a.since, b.since), to = Math.max(a.until, b.until), at = (t: number) => Math.min(100, Math.max(0, ((t - from) / Math.max(1, to - from)) * 100));
    const band = (x: { since: number; until: number }, cls: string, name: string) => <span class={`band ${cls}`} style={{ left: `${at(x.since)}%`, width: `max(3px, ${at(x.until) - at(x.since)}%)` }}><span>{name}</span></span>;
    const marks: { left: number; first: number; last: number }[] = [];
    p.notes.forEach((n, i) => { // those that would lie over each other are one
        const left = at(n.at), last = marks[marks.length - 1];
        if (last && left - last.left < 6) last.last = i + 1;
        else marks.push({ left, first: i + 1, last: i + 1 });
    });
    return (
        <div class="timeline">
            <div class="bands" role="img" aria-label={`${a.name}: ${full(a.since)} to ${full(a.until)}. Compared: ${full(b.since)} to ${full(b.until)}. ${plural(p.notes.length, "change")}.`}>{band(a, "before", a.name)}{band(b, "after", "now")}</div>
            <div class="marks" aria-hidden="true">{marks.map((m) => <i style={{ left: `clamp(9px, ${m.left}%, 100% - 9px)` }}>{m.first === m.last ? m.first : `${m.first}–${m.last}`}</i>)}</div>
            <div class="ends"><span>{day(from)}</span><span>{day(to)}</span></div>
        </div>
    );
}

function AddNote(p: { onDone(): void }) {
    const [text, setText] = useState(""), [at, setAt] = useState(""), [error, setError] = useState(""), [busy, setBusy] = useState(false);
    const go = async (e: Event) => {
        e.preventDefault();
        if (!text.trim()) return setError("Write what was changed.");
        setBusy(true);
        try {
            await send("POST", "/v1/notes", { text: text.trim(), ...(at ? { at: fromInput(at) } : {}) });
            setText("");
            setAt("");
            setError("");
            p.onDone();
        } catch (x) {
            setError(refused(x));
        }
        setBusy(false);
    };
    return (
        <form class="note-form" onSubmit={go}>
            <div class="fields">
                <label class="grow">add a note <input type="text" maxLength={500} value={text} placeholder="what the daemon cannot know: a new driver, another cooling" onInput={(e) => { setText(e.currentTarget.value); setError(""); }} /></label>
                <label>when <input type="datetime-local" value={at} max={toInput(now())} onChange={(e) => setAt(e.currentTarget.value)} /></label>
                <button type="submit" disabled={busy}>Add</button>
            </div>
            <p class="bad" role="alert">{error}</p>
        </form>
    );
}

function Changes(p: { c: Compared; onNote(): void }) {
    const notes = useMemo(() => [...p.c.notes].reverse(), [p.c.notes]);
    return (
        <Panel title="What was changed" note={notes.length ? "from the baseline's beginning on" : undefined}>
            <TimeLine c={p.c} notes={notes} />
            {notes.length === 0 ? <p class="note">Nothing was changed meanwhile: policy, configuration, quotas and rules are as they were.</p> : (
                <ol class="changes">{notes.map((n, i) => <li key={`${n.at}${n.text}`}><b aria-hidden="true">{i + 1}</b><div><p>{n.text === "the first that is known" ? "How it was when the first note was written" : n.text}</p><small class="note">{KIND[n.kind] ?? n.kind}{n.user ? `, by ${n.user}` : ""}, <time title={full(n.at)}>{clock(n.at)}</time></small></div></li>)}</ol>
            )}
            {may("operator") && <AddNote onDone={p.onNote} />}
        </Panel>
    );
}

// ---- one baseline ----

const PERIODS: [string, string, number][] = [["since", "Since its end", 0], ["1", "24 h", 86400], ["7", "7 days", 7 * 86400], ["30", "30 days", 30 * 86400], ["own", "Other", 0]];

async function remove(b: Baseline): Promise<void> {
    try {
        await send("DELETE", `/v1/baselines/${encodeURIComponent(b.name)}`);
        say(`Baseline ${b.name} is deleted.`);
        location.hash = "#/baselines";
    } catch (e) {
        say(refused(e), true);
    }
    baselines.touch();
}

function One(p: { b: Baseline }) {
    const b = p.b, [which, setWhich] = useState("since"), [own, setOwn] = useState({ since: b.until, until: now() });
    const query = which === "own" ? `?since=${Math.floor(own.since)}&until=${Math.ceil(own.until)}` : which === "since" ? "" : `?since=${Math.floor(now() - (PERIODS.find((x) => x[0] === which)?.[2] ?? 0))}`;
    const source = useMemo(() => new Source<Compared>(() => get(`/v1/baselines/${encodeURIComponent(b.name)}/compare${query}`), 0), [b.name, query.split("&")[0], which === "own" ? own.until : 0]), c = source.use(), error = source.error.value;
    const set = (k: "since" | "until", text: string) => !Number.isNaN(fromInput(text)) && setOwn({ ...own, [k]: fromInput(text) });
    return (
        <>
            <div class="head">
                <h1>{b.name}</h1>
                <span class="note">{day(b.since)} to {day(b.until)} ({span(b.until - b.since)}) · marked by {b.user}, {clock(b.created)}</span>
                {may("operator") && <div class="actions"><button type="button" onClick={() => ask(`Delete the baseline ${b.name}? Its figures are gone then.`, "Delete", () => void remove(b))}>Delete</button></div>}
            </div>
            <div class="stack">
                <Panel title="Compared with" actions={<Choice label="Which period" value={which} of={PERIODS.map(([v, t]): [string, string] => [v, t])} onChange={setWhich} />}>
                    {which === "own" && <div class="fields"><label>from <input type="datetime-local" value={toInput(own.since)} onChange={(e) => set("since", e.currentTarget.value)} /></label><label>to <input type="datetime-local" value={toInput(own.until)} onChange={(e) => set("until", e.currentTarget.value)} /></label></div>}
                    {b.note && <p class="quoted">{b.note}</p>}
                    {error ? <p class="bad" role="alert">{error.message}</p> : !c ? <p class="note" role="status">Counting</p> : (
                        <>
                            <p class="verdict plain" role="status">{words(c)}</p>
                            <Table c={c} />
                            <p class="note foot">now: {day(c.period.since)} to {day(c.period.until)}, {plural(c.period.jobs, "job")} that ended; {b.name}: {plural(b.figures.jobs, "job")}.{b.figures.steps_per_gpu_hour === null && c.period.steps_per_gpu_hour === null ? " No job reported its steps, so steps per GPU-hour are not known." : ""}</p>
                        </>
                    )}
                </Panel>
                {c && !error && <Changes c={c} onNote={() => source.touch()} />}
            </div>
        </>
    );
}

// ---- marking one ----

function Mark(p: { onDone(name: string): void }) {
    const [name, setName] = useState(""), [note, setNote] = useState(""), [since, setSince] = useState(toInput(now() - 7 * 86400)), [until, setUntil] = useState(""), [error, setError] = useState(""), [busy, setBusy] = useState(false);
    useEffect(() => setError(""), [name, since, until]);
    const go = async (e: Event) => {
        e.preventDefault();
        const from = fromInput(since), to = until ? fromInput(until) : null;
        if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name)) return setError("A name is 1 to 64 letters, digits, _ - or .");
        if (Number.isNaN(from) || (to !== null && to <= from)) return setError("The period must begin before it ends.");
        setBusy(true);
        try {
            await send("POST", "/v1/baselines", { name, since: from, ...(to === null ? {} : { until: to }), ...(note.trim() ? { note: note.trim() } : {}) });
            say(`Baseline ${name} is marked.`);
            setName("");
            setNote("");
            p.onDone(name);
        } catch (x) {
            setError(refused(x));
        }
        setBusy(false);
    };
    return (
        <Panel title="Mark a period">
            <form class="mark" onSubmit={go}>
                <label class="block">name <input type="text" maxLength={64} value={name} placeholder="before-fair-share" onInput={(e) => setName(e.currentTarget.value)} /></label>
                <label class="block">from <input type="datetime-local" value={since} onChange={(e) => setSince(e.currentTarget.value)} /></label>
                <label class="block"><span>to <small>now when empty</small></span><input type="datetime-local" value={until} onChange={(e) => setUntil(e.currentTarget.value)} /></label>
                <label class="block">note <input type="text" maxLength={500} value={note} placeholder="how it was then" onInput={(e) => setNote(e.currentTarget.value)} /></label>
                <p class="bad" role="alert">{error}</p>
                <button type="submit" class="primary" disabled={busy}>{busy ? "Counting" : "Mark"}</button>
            </form>
        </Panel>
    );
}

function List(p: { list: Baseline[]; here: string }) {
    return (
        <Panel title="Baselines" note={p.list.length ? undefined : "none yet"}>
            {p.list.length === 0 ? <p class="note">A baseline keeps the figures of a period, also when its jobs are forgotten.</p> : (
                <ul class="runs">{[...p.list].sort((x, y) => y.since - x.since).map((b) => (
                    <li key={b.name} class={b.name === p.here ? "here" : ""}>
                        <a href={`#/baselines/${encodeURIComponent(b.name)}`} aria-current={b.name === p.here ? "true" : undefined}>{b.name}</a>
                        <small>{day(b.since)} to {day(b.until)}</small><small class="note">{plural(b.figures.jobs, "job")}{b.figures.avg_wait_s !== null ? `, mean wait ${duration(b.figures.avg_wait_s)}` : ""}{b.figures.utilization !== null ? `, ${share(b.figures.utilization)} in use` : ""}</small>
                    </li>
                ))}</ul>
            )}
        </Panel>
    );
}

export function BaselinesPage(p: { arg: string }) {
    if (!you()) return <Empty whole title="Log in to compare periods"><button type="button" class="primary" onClick={() => askLogin(true)}>Log in</button></Empty>;
    return <Logged arg={p.arg} />;
}

function Logged(p: { arg: string }) {
    const list = baselines.use(), newest = list?.length ? [...list].sort((a, b) => b.created - a.created)[0] : undefined, b = p.arg ? list?.find((x) => x.name === p.arg) : newest;
    if (!list) return <p class="banner" role="status">{baselines.error.value?.message ?? "Loading"}</p>;
    return (
        <div class="split">
            <div>
                {b ? <One key={b.name} b={b} />
                    : p.arg ? <Empty whole title={`There is no baseline “${p.arg}”`}><a href="#/baselines">All baselines</a></Empty>
                    : <Empty whole title="No period is marked yet">Mark how it is, change policy or configuration, and look here a week later whether it has become better. {may("operator") ? "" : "Operators mark periods."}</Empty>}
            </div>
            <aside aria-label="All baselines"><List list={list} here={b?.name ?? ""} />{may("operator") && <Mark onDone={(name) => { baselines.touch(); location.hash = `#/baselines/${name}`; }} />}</aside>
        </div>
    );
}
