// SPDX-License-Identifier: Apache-2.0
// whatif.tsx - would it have been better? Which past, what is to be different in it, what came of it; and
// the questions that were asked before.
import { useEffect, useMemo } from "preact/hooks";
import { get, Refusal, send } from "../lib/api";
import { clock, duration } from "../lib/format";
import { Source } from "../lib/store";
import { over, pastKey, pastWords, Run, runName } from "../lib/whatif";
import { askLogin, may, you } from "../lib/world";
import { ask, Bar, Empty, Panel, say } from "../ui";
import { AskForm, tryAgain } from "./whatif_form";
import { Answer } from "./whatif_run";

const runs = new Source<Run[]>(async () => (await get<{ questions: Run[] }>("/v1/whatif")).questions, 15000);

async function remove(r: Run, here: boolean): Promise<void> {
    try {
        await send("DELETE", `/v1/whatif/${r.id}`);
        say(over(r) ? "The answer is forgotten." : "It is stopped.");
        if (here) location.hash = "#/whatif";
    } catch (e) {
        say((e as Error).message, true);
        if (e instanceof Refusal && e.status === 401) askLogin(true);
    }
    runs.touch();
}

function forget(r: Run, here: boolean): void {
    if (over(r)) ask(`Delete “${runName(r.question)}” and what came of it?`, "Delete", () => void remove(r, here));
    else void remove(r, here);
}

function mine(r: Run): boolean {
    return r.user === you()?.user || may("operator");
}

function Brief(p: { run: Run }) {
    const r = p.run, s = r.summary, a = s?.before?.avg_wait_s, b = s?.after?.avg_wait_s;
    if (r.state === "failed") return <span class="bad">could not be answered</span>;
    if (!over(r)) return <Bar thin parts={[{ at: r.progress }]} label={r.state === "waiting" ? "waits for its turn" : `${Math.round(r.progress * 100)} % done`} />;
    if (a === null || a === undefined) return null;
    return <span>mean wait {duration(a)}{b === null || b === undefined ? "" : ` → ${duration(b)}`}</span>;
}

/** Same past, same group: these can be compared with each other. */
function Earlier(p: { list: Run[]; here: number | null }) {
    const groups = useMemo(() => {
        const m = new Map<string, Run[]>();
        for (const r of p.list) m.set(pastKey(r.question), [...(m.get(pastKey(r.question)) ?? []), r]);
        return [...m.values()];
    }, [p.list]);
    return (
        <Panel title="Earlier runs" note={p.list.length ? undefined : "none yet"}>
            {p.list.length === 0 ? <p class="note">What you try is kept here, the newest 100. Runs over the same past are compared in one table.</p> : groups.map((g) => (
                <section class="runs">
                    <h3>{pastWords(g[0].question)}</h3>
                    <ul>{g.map((r) => (
                        <li key={r.id} class={r.id === p.here ? "here" : ""}>
                            <a href={`#/whatif/${r.id}`} aria-current={r.id === p.here ? "true" : undefined}>{runName(r.question)}</a>
                            <small><Brief run={r} /></small><small class="note">{r.user}, {clock(r.at)}</small>
                            {mine(r) && <button type="button" class="plain" aria-label={`${over(r) ? "Delete" : "Cancel"} ${runName(r.question)}`} title={over(r) ? "Delete" : "Cancel"} onClick={() => forget(r, r.id === p.here)}>×</button>}
                        </li>
                    ))}</ul>
                </section>
            ))}
        </Panel>
    );
}

function Working(p: { run: Run }) {
    const r = p.run;
    return (
        <Panel title={r.state === "waiting" ? "In line" : "Working it out"} note="in the background, at idle priority: jobs are not slowed down" actions={mine(r) && <button type="button" onClick={() => forget(r, true)}>Cancel</button>}>
            <div class="working" role="status">
                <Bar parts={[{ at: r.progress }]} label={`${Math.round(r.progress * 100)} % done`} />
                <p class="note">{r.state === "waiting" ? "Another question is worked on first." : `${Math.round(r.progress * 100)} %: ${r.step || "begins"}`}</p>
            </div>
        </Panel>
    );
}

function One(p: { id: number; list: Run[] }) {
    const source = useMemo(() => {
        let last: Run | null = null;
        return new Source<Run>(async () => {
            if (last && over(last)) return last;
            last = await get<Run>(`/v1/whatif/${p.id}`);
            if (over(last)) runs.touch();
            return last;
        }, 500);
    }, [p.id]), r = source.use(), error = source.error.value;
    if (!r) return error ? <Empty whole title={`Run ${p.id} is not there`}>{error.message}. <a href="#/whatif">Ask anew</a></Empty> : <p class="banner" role="status">Loading</p>;
    return (
        <>
            <div class="head">
                <h1>{runName(r.question)}</h1>
                <span class="note">{pastWords(r.question)} · asked by {r.user}, {clock(r.at)}</span>
                <div class="actions">
                    <button type="button" class="primary" onClick={() => { tryAgain(r.question); location.hash = "#/whatif"; }}>Try another change</button>
                    {over(r) && mine(r) && <button type="button" onClick={() => forget(r, true)}>Delete</button>}
                </div>
            </div>
            {r.state === "failed" ? <div class="refused" role="alert"><strong>It could not be answered.</strong> {r.error}</div>
                : r.result ? <Answer run={r} result={r.result} list={p.list} /> : <Working run={r} />}
        </>
    );
}

export function WhatIfPage(p: { arg: string }) {
    if (!you()) return <Empty whole title="Log in to try things on the past"><button type="button" class="primary" onClick={() => askLogin(true)}>Log in</button></Empty>;
    return <Logged arg={p.arg} />;
}

function Logged(p: { arg: string }) {
    const list = runs.use() ?? [], busy = list.some((r) => !over(r)), id = /^\d+$/.test(p.arg) ? Number(p.arg) : null;
    useEffect(() => {
        const t = busy ? window.setInterval(() => runs.touch(), 2000) : 0;
        return () => window.clearInterval(t);
    }, [busy]);
    if (p.arg && id === null) return <Empty whole title={`“${p.arg}” is not the number of a run`}><a href="#/whatif">All runs</a></Empty>;
    return (
        <div class="split">
            <div>{id === null ? <AskForm onAsked={(n) => { runs.touch(); location.hash = `#/whatif/${n}`; }} /> : <One key={id} id={id} list={list} />}</div>
            <aside aria-label="Earlier runs">{id !== null && <a class="button new" href="#/whatif">Ask something else</a>}<Earlier list={list} here={id} /></aside>
        </div>
    );
}
