// SPDX-License-Identifier: Apache-2.0
// whatif_form.tsx - asking "what if": which past, and what is to be different in it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, Node, Refusal, send, Tenant } from "../lib/api";
import { again, changesOf, choose, Draft, draft, forgetChanges, Kind, Nodes, PRESETS, put, questionOf, wrong } from "../lib/draft";
import { amount, fromInput, plural, share, toInput } from "../lib/format";
import { readHistory } from "../lib/history";
import { column, hasData, Plot, Series, times } from "../lib/plot";
import { Source } from "../lib/store";
import { changeWords, Question } from "../lib/whatif";
import { askLogin, tenants } from "../lib/world";
import { Choice, Panel } from "../ui";

interface Param { name: string; type: string; default: string; min: number; max: number; words: string; help: string }
interface Policy { name: string; help: string; params: string[] }
interface Policies { present: string; bundles: { name: string; order: string; backfill: string; place: string; preempt: string; help: string }[]; order: Policy[]; backfill: Policy[]; place: Policy[]; preempt: Policy[]; any: string[]; params: Record<string, Param> }

const policies = new Source<Policies>(() => get("/v1/policies"), 0);
const nodes = new Source<Node[]>(async () => (await get<{ nodes: Node[] }>("/v1/nodes?limit=1000")).nodes, 0);

export function tryAgain(q: Question | null): void {
    again(q);
}

// ---- which past ----

function sum(list: (number | null)[]): number {
    return list.reduce<number>((n, x) => n + (x ?? 0), 0);
}

/** How loaded it was; a stretch of it can be chosen with the mouse. */
function Picture(p: { since: number; until: number }) {
    const { since, until } = p, source = useMemo(() => new Source<Series>(() => get(`/v1/series?of=cluster&since=${Math.floor(since)}&until=${Math.floor(until)}&step=${Math.max(60, Math.ceil((until - since) / 300))}`), 0), [since, until]), s = source.use();
    const made = useMemo(() => {
        if (!s?.series.length) return null;
        const given = column(s, 0, "allocated"), asked = column(s, 0, "gpus_waiting"), gpus = column(s, 0, "gpus");
        if (!hasData(given)) return null;
        const known = given.filter((x, i) => x !== null && gpus[i]).length;
        return { at: times(s, given.length), lines: [{ label: "given to jobs", colour: "#3b82c4", values: given, fill: true }, { label: "asked for, and waiting", colour: "#e07b39", values: asked }, { label: "there are", colour: "#9a9aa2", values: gpus, dash: true }],
            text: `${plural(Math.round(sum(column(s, 0, "started"))), "start")}, ${plural(Math.round(sum(column(s, 0, "ended"))), "end")} of jobs; ${known ? share(sum(given.map((x, i) => (gpus[i] ? (x ?? 0) / (gpus[i] as number) : 0))) / known) : "–"} of the GPUs given` };
    }, [s]);
    if (!made) return <p class="note picture">{source.error.value?.message ?? (s ? "Nothing was measured in this period. There may be jobs all the same." : "Loading")}</p>;
    return (
        <div class="picture">
            <Plot label="GPUs over the period" at={made.at} lines={made.lines} height={140} whole onSelect={(a, b) => put({ preset: "own", since: Math.floor(a), until: Math.ceil(b) })} />
            <p class="note">{made.text}. Draw over the picture with the mouse to choose a part of it.</p>
        </div>
    );
}

function Period(p: { d: Draft }) {
    const d = p.d, set = (k: "since" | "until", text: string) => {
        const t = fromInput(text);
        if (!Number.isNaN(t)) put({ preset: "own", [k]: t });
    };
    return (
        <>
            <div class="fields">
                <Choice label="The last" value={d.preset} of={[...PRESETS.map(([v, t]): [string, string] => [v, t]), ["own", "Other"]]} onChange={choose} />
                <label>from <input type="datetime-local" value={toInput(d.since)} onChange={(e) => set("since", e.currentTarget.value)} /></label>
                <label>to <input type="datetime-local" value={toInput(d.until)} onChange={(e) => set("until", e.currentTarget.value)} /></label>
            </div>
            {d.since < d.until ? <Picture since={d.since} until={d.until} /> : <p class="bad" role="alert">The period must begin before it ends.</p>}
        </>
    );
}

function FromFile(p: { d: Draft }) {
    const d = p.d, [error, setError] = useState(""), [over, setOver] = useState(false), input = useRef<HTMLInputElement>(null);
    const take = async (list: FileList | null | undefined) => {
        const f = list?.[0];
        if (!f) return;
        try {
            put({ file: await readHistory(f), quotas: {} });
            setError("");
        } catch (e) {
            setError((e as Error).message);
            put({ file: null });
        }
        if (input.current) input.current.value = "";
    };
    return (
        <>
            <div class={`drop ${over ? "over" : ""}`} onDragOver={(e) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={(e) => { e.preventDefault(); setOver(false); void take(e.dataTransfer?.files); }}>
                <input ref={input} id="history" class="hidden" type="file" accept=".txt,.csv,.swf,.jsonl,.log,.gz,text/*" onChange={(e) => void take(e.currentTarget.files)} aria-describedby="history-note" />
                {d.file ? <p><strong>{d.file.name}</strong> <span class="note">{plural(d.file.rows, "row")}, {amount(Math.max(1, Math.round(d.file.bytes / 1024)))} KiB{d.file.kind ? `, looks like ${d.file.kind}` : ""}</span></p> : <p><strong>Drop {d.wanted ? `${d.wanted} here again` : "a file here"}</strong></p>}
                <label class="button" for="history">{d.file ? "Choose another" : "Choose a file"}</label>
                <p class="note" id="history-note">Output of <code>sacct --parsable2</code>, SWF, or <code>jobs.jsonl</code> of <code>stoker export</code>; gzip is fine; at most 8 MiB. It is not kept.</p>
            </div>
            <p class="bad" role="alert">{error}</p>
            <div class="fields"><label class="grow">machines it ran on <input type="text" value={d.cluster} placeholder="16x8:a100+4x4:v100; empty: guessed from the most that ran at once" onInput={(e) => put({ cluster: e.currentTarget.value })} /></label></div>
            <details class="hint"><summary>How to get it from Slurm</summary><pre class="mono">sacct -aXP -S 2026-10-01 -o JobIDRaw,JobID,User,Account,Partition,Submit,Eligible,Start,ElapsedRaw,TimelimitRaw,State,NNodes,ReqTRES,AllocTRES &gt; sacct.txt</pre></details>
        </>
    );
}

// ---- what is different ----

const KINDS: [Exclude<Kind, "bundle">, string][] = [["order", "who comes first"], ["backfill", "who may pass"], ["place", "on which GPUs"], ["preempt", "who gives way"]];

function Params(p: { d: Draft; all: Policies }) {
    const { d, all } = p, base = all.bundles.find((b) => b.name === (d.policy.bundle ?? all.present)), chosen = KINDS.map(([k]) => all[k].find((x) => x.name === (d.policy[k] ?? base?.[k])));
    const names = [...new Set([...chosen.flatMap((x) => x?.params ?? []), ...all.any])].sort(), set = (i: number, part: object) => put({ params: d.params.map((x, k) => (k === i ? { ...x, ...part } : x)) });
    return (
        <>
            {d.params.map((x, i) => {
                const one = all.params[x.name];
                return (
                    <div class="fields param">
                        <label>parameter <select value={x.name} onChange={(e) => set(i, { name: e.currentTarget.value, value: all.params[e.currentTarget.value]?.default ?? "" })}>{[...new Set([x.name, ...names])].map((n) => <option value={n}>{n}</option>)}</select></label>
                        <label>value {one?.type === "word" ? <select value={x.value} onChange={(e) => set(i, { value: e.currentTarget.value })}>{one.words.split("|").map((w) => <option value={w}>{w}</option>)}</select>
                            : <input type="text" size={10} value={x.value} placeholder={one?.default} onInput={(e) => set(i, { value: e.currentTarget.value })} />}</label>
                        <button type="button" class="plain" aria-label={`Without ${x.name}`} onClick={() => put({ params: d.params.filter((_, k) => k !== i) })}>×</button>
                        {one && <small class="note">{one.help}{one.default ? ` (${one.default} when not said)` : ""}</small>}
                    </div>
                );
            })}
            <button type="button" class="add" disabled={d.params.length >= 16 || names.length === 0} onClick={() => put({ params: [...d.params, { name: names[0], value: all.params[names[0]]?.default ?? "" }] })}>Add a parameter</button>
        </>
    );
}

function PolicyPart(p: { d: Draft }) {
    const all = policies.use(), d = p.d, set = (k: Kind, v: string) => put({ policy: { ...d.policy, [k]: v || undefined } });
    if (!all) return <p class="note">{policies.error.value?.message ?? "Loading"}</p>;
    const bundle = all.bundles.find((b) => b.name === d.policy.bundle), single = KINDS.filter(([k]) => d.policy[k]).length + d.params.length;
    return (
        <>
            <label class="block">policy <select value={d.policy.bundle ?? ""} onChange={(e) => set("bundle", e.currentTarget.value)}><option value="">{d.from === "file" ? `as here now (${all.present})` : "as it was"}</option>{all.bundles.map((b) => <option value={b.name}>{b.name}</option>)}</select></label>
            <p class="note">{bundle?.help ?? (d.from === "file" ? "What happened is compared with the policy of this daemon." : "Order, backfill, placement and preemption as they were.")}</p>
            <details open={single > 0 || undefined}><summary>Single choices and parameters{single ? ` (${single})` : ""}</summary>
                <div class="grid2">{KINDS.map(([k, hint]) => <label class="block" title={all[k].find((x) => x.name === d.policy[k])?.help}><span>{k} <small>{hint}</small></span><select value={d.policy[k] ?? ""} onChange={(e) => set(k, e.currentTarget.value)}><option value="">{bundle ? bundle[k] : "as it was"}</option>{all[k].map((x) => <option value={x.name}>{x.name}</option>)}</select></label>)}</div>
                <Params d={d} all={all} />
            </details>
        </>
    );
}

function MachinePart(p: { d: Draft }) {
    const list = nodes.use(), d = p.d, kinds = useMemo(() => {
        const m = new Map<string, { key: string; gpus: number; type: string; count: number }>();
        for (const n of list ?? []) {
            const key = `${n.gpus}:${n.gpu_type}`, k = m.get(key) ?? { key, gpus: n.gpus, type: n.gpu_type, count: 0 };
            k.count++;
            m.set(key, k);
        }
        return [...m.values()].filter((k) => k.gpus > 0);
    }, [list]);
    const set = (i: number, part: Partial<Nodes>) => put({ more: d.more.map((x, k) => (k === i ? { ...x, ...part } : x)) });
    return (
        <>
            {d.from === "period" && kinds.length > 0 && (
                <table class="middle tight"><caption class="hidden">Machines</caption>
                    <thead><tr><th scope="col">nodes of</th><th scope="col" class="n">now</th><th scope="col">more, or fewer</th><th scope="col" class="n">then</th></tr></thead>
                    <tbody>{kinds.map((k) => {
                        const n = Math.trunc(Number(d.nodes[k.key]) || 0);
                        return <tr><td>{k.gpus} × {k.type}</td><td class="n">{k.count}</td><td><input type="number" min={-k.count} max={100000} step={1} value={d.nodes[k.key] ?? ""} placeholder="0" aria-label={`More, or fewer, nodes of ${k.gpus} ${k.type}`} onInput={(e) => put({ nodes: { ...d.nodes, [k.key]: e.currentTarget.value } })} /></td><td class="n">{n ? <strong>{k.count + n}</strong> : k.count}</td></tr>;
                    })}</tbody>
                </table>
            )}
            {d.more.map((m, i) => (
                <div class="fields param">
                    <label>nodes <input type="number" class="short" value={m.count} onInput={(e) => set(i, { count: e.currentTarget.value })} /></label>
                    <label>GPUs each <input type="number" class="short" min={1} max={64} value={m.gpus} onInput={(e) => set(i, { gpus: e.currentTarget.value })} /></label>
                    <label>type <input type="text" size={8} value={m.type} placeholder="any" onInput={(e) => set(i, { type: e.currentTarget.value })} /></label>
                    <button type="button" class="plain" aria-label="Without these nodes" onClick={() => put({ more: d.more.filter((_, k) => k !== i) })}>×</button>
                </div>
            ))}
            <button type="button" class="add" disabled={d.more.length >= 8} onClick={() => put({ more: [...d.more, { count: "1", gpus: "8", type: "" }] })}>Add {d.from === "period" ? "nodes of another kind" : "nodes"}</button>
            <p class="note foot">A number below 0 takes nodes away.</p>
        </>
    );
}

const NUMBERS = ["guarantee", "limit", "weight"] as const;

function QuotaPart(p: { d: Draft }) {
    const data = tenants.use(), d = p.d, own: (Partial<Tenant> & { name: string })[] = d.from === "period" ? data?.tenants ?? [] : (d.file?.tenants ?? []).map((name) => ({ name }));
    const list = [...own, ...Object.keys(d.quotas).filter((n) => !own.some((t) => t.name === n)).map((name): Partial<Tenant> & { name: string } => ({ name }))];
    const set = (name: string, k: string, v: string) => put({ quotas: { ...d.quotas, [name]: { ...d.quotas[name], [k]: v } } });
    if (!list.length) return <p class="note">{d.from === "file" ? "Choose a file first: its accounts are the tenants." : "Everybody is one tenant here."}</p>;
    return (
        <>
            <div class="scroll short" tabIndex={0} role="region" aria-label="Quotas"><table class="middle tight quotas"><caption class="hidden">Quotas of tenants</caption>
                <thead><tr><th scope="col">tenant</th>{NUMBERS.map((k) => <th scope="col">{k}</th>)}</tr></thead>
                <tbody>{list.map((t) => <tr key={t.name}><td class="name">{t.name}</td>{NUMBERS.map((k) => <td><input type="text" inputMode="decimal" value={d.quotas[t.name]?.[k] ?? ""} placeholder={d.from === "period" ? (t[k] === null || t[k] === undefined ? "none" : String(t[k])) : k === "weight" ? "1" : "none"} aria-label={`${k} of ${t.name}`} onInput={(e) => set(t.name, k, e.currentTarget.value)} /></td>)}</tr>)}</tbody>
            </table></div>
            <p class="note foot">In GPUs. Empty: as it was. “none”: no limit. Guarantees are kept by the policies that take back what was lent, such as teams.</p>
        </>
    );
}

// ---- asking ----

function Send(p: { d: Draft; onAsked(id: number): void }) {
    const d = p.d, [error, setError] = useState(""), [busy, setBusy] = useState(false), words = changeWords(changesOf(d));
    useEffect(() => setError(""), [d]);
    const go = async (e: Event) => {
        e.preventDefault();
        const no = wrong(d);
        if (no) return setError(no);
        setBusy(true);
        try {
            p.onAsked((await send<{ id: number }>("POST", "/v1/whatif", questionOf(d))).id);
        } catch (x) {
            setError((x as Error).message);
            if (x instanceof Refusal && x.status === 401) askLogin(true);
        }
        setBusy(false);
    };
    return (
        <form class="panel send" onSubmit={go}>
            <p class="will"><strong>{words.length ? "What if: " : "Nothing is changed yet: "}</strong>{words.length ? words.join("; ") : "the past is replayed as it was, which shows how far the simulator is off."}</p>
            <div class="actions">
                <input type="text" aria-label="Name of this run" maxLength={100} value={d.title} placeholder="name (optional)" onInput={(e) => put({ title: e.currentTarget.value })} />
                {words.length > 0 && <button type="button" onClick={forgetChanges}>Forget changes</button>}
                <button type="submit" class="primary" disabled={busy}>{busy ? "Sending" : "Run"}</button>
            </div>
            <p class="bad" role="alert">{error}</p>
        </form>
    );
}

export function AskForm(p: { onAsked(id: number): void }) {
    const d = draft.use();
    return (
        <>
            <div class="head"><h1>What if</h1><span class="note">The past is replayed in the simulator: as it was, and with what you change.</span></div>
            <div class="stack">
                <Panel title="Which past" actions={<Choice label="Which past" value={d.from} of={[["period", "Recorded here"], ["file", "From a file"]]} onChange={(from) => put({ from, quotas: {} })} />}>
                    {d.from === "period" ? <Period d={d} /> : <FromFile d={d} />}
                </Panel>
                <div class="three"><Panel title="Another policy"><PolicyPart d={d} /></Panel><Panel title="Other machines"><MachinePart d={d} /></Panel><Panel title="Other quotas"><QuotaPart d={d} /></Panel></div>
                <Send d={d} onAsked={p.onAsked} />
            </div>
        </>
    );
}
