// SPDX-License-Identifier: Apache-2.0
// whatif_run.tsx - what came of a question: in a sentence, side by side, over time, by tenant; and beside
// other answers about the same past.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../lib/api";
import { amount, duration, plural, share } from "../lib/format";
import { Line, Plot } from "../lib/plot";
import { betterOf, change, changeWords, Figure, FIGURES, Load, Machine, pairOf, pastKey, Result, Run, runName, sentence, Side, TenantSide, verdict } from "../lib/whatif";
import { Delta, Panel } from "../ui";

const BEFORE = "#6f86a8", AFTER = "#e07b39", RECORDED = "#9a9aa2";
const MOST_VARIANTS = 12;

/** What is simulated without the changes. */
function beforeName(imported: boolean): string {
    return imported ? "as here now" : "before";
}

function value(f: Figure, s: Side): string {
    const x = f.of(s);
    return x === null || x === undefined ? "–" : f.show(x);
}

/** Recorded, as it was, with the changes. */
function Sides(p: { result: Result; imported: boolean }) {
    const r = p.result, rows = FIGURES.filter((f) => value(f, r.before) !== "–"), pair = pairOf(r), delta = (f: Figure) => pair && <Delta of={change(f.of(pair[0]), f.of(pair[1]), betterOf(f, ...pair))} />;
    return (
        <Panel title={r.after ? "Before and after" : "Recorded and simulated"} note={`${plural(r.jobs.compared, "job")}`}>
            <div class="wide" tabIndex={0} role="region" aria-label="Side by side"><table class="sides">
                <caption class="hidden">What was recorded, what is simulated without the changes, and with them</caption>
                <thead><tr><th scope="col">figure</th><th scope="col" class={`n ${r.after ? "opt" : ""}`} title="what really happened">recorded</th><th scope="col" class="n" title={p.imported ? "in the simulator, with the present policy of this daemon" : "the same jobs in the simulator, with the policy and machines of that time"}>{beforeName(p.imported)}</th>
                    {r.after && <th scope="col" class="n" title="in the simulator, with the changes">after</th>}{pair && <th scope="col">change</th>}</tr></thead>
                <tbody>{rows.map((f) => (
                    <tr><th scope="row" title={f.hint}>{f.label}</th><td class={`n dim ${r.after ? "opt" : ""}`}>{f.simulated && p.imported ? "–" : value(f, r.recorded)}</td><td class="n">{r.after ? value(f, r.before) : <strong>{value(f, r.before)}</strong>}</td>
                        {r.after && <td class="n"><strong>{value(f, r.after)}</strong></td>}{pair && <td class="w">{delta(f)}</td>}</tr>
                ))}</tbody>
            </table></div>
            <p class="note foot">{p.imported ? <><em>Recorded</em> is what happened where the file comes from; <em>{beforeName(true)}</em> are the same jobs under the present policy of this daemon.</>
                : <>Compare <em>before</em> with <em>after</em>: both are simulated. How far <em>before</em> is from what was recorded is the simulator's own error.</>}</p>
        </Panel>
    );
}

function OverTime(p: { result: Result; imported: boolean }) {
    const s = p.result.series, made = useMemo(() => {
        if (!s?.before) return null;
        const whole = p.result.jobs.carried_over + p.result.jobs.running === 0, n = s.before.gpus.length, at = Array.from({ length: n }, (_, i) => s.since + (i + 0.5) * s.step_s);
        const lines = (of: keyof Load): Line[] => [
            ...(s.recorded && whole ? [{ label: "recorded", colour: RECORDED, values: s.recorded[of], dash: true }] : []),
            { label: beforeName(p.imported), colour: BEFORE, values: (s.before as Load)[of], fill: !s.after }, ...(s.after ? [{ label: "after", colour: AFTER, values: s.after[of] }] : [])];
        return { at, gpus: lines("gpus"), waiting: lines("waiting") };
    }, [s]);
    if (!made) return null;
    return (
        <Panel title="Over time">
            <div class="plots"><Plot label="Jobs that wait" at={made.at} lines={made.waiting} height={190} whole /><Plot label="GPUs in use" at={made.at} lines={made.gpus} height={190} whole /></div>
        </Panel>
    );
}

function Tenants(p: { result: Result }) {
    const r = p.result, before = r.before.tenants ?? [], after = new Map((r.after?.tenants ?? []).map((t) => [t.tenant, t]));
    if (before.length < 2) return null;
    const pair = (a: number | null, b: number | null | undefined, opt: boolean) => <td class={`n w ${opt ? "opt" : ""}`}>{a === null ? "–" : duration(a)}{b !== undefined && <> <span class="dim">→</span> <strong>{b === null ? "–" : duration(b)}</strong></>}</td>;
    const cells = (t: TenantSide, u: TenantSide | undefined) => (["avg_wait_s", "p50_wait_s", "p90_wait_s", "avg_jct_s"] as const).map((k) => pair(t[k], r.after ? u?.[k] ?? null : undefined, k !== "avg_wait_s"));
    return (
        <Panel title="By tenant" note={r.after ? "before → after" : undefined}>
            <div class="wide" tabIndex={0} role="region" aria-label="By tenant"><table class="variants">
                <thead><tr><th scope="col">tenant</th><th scope="col" class="n">jobs</th><th scope="col" class="n opt">GPU-hours</th><th scope="col" class="n">wait, mean</th><th scope="col" class="n opt">wait, median</th><th scope="col" class="n opt">wait, P90</th><th scope="col" class="n opt">completion, mean</th>{r.after && <th scope="col">mean wait</th>}</tr></thead>
                <tbody>{before.map((t) => (
                    <tr><th scope="row">{t.tenant}</th><td class="n">{amount(t.jobs)}</td><td class="n opt">{t.gpu_hours === null ? "–" : amount(Math.round(t.gpu_hours * 100) / 100)}</td>{cells(t, after.get(t.tenant))}{r.after && <td class="w"><Delta of={change(t.avg_wait_s, after.get(t.tenant)?.avg_wait_s, -1)} /></td>}</tr>
                ))}</tbody>
            </table></div>
        </Panel>
    );
}

// ---- several answers about one past ----

const kept = new Map<number, Run>(); // an answer does not change

function useAnswers(list: Run[], of: Run): Run[] {
    const same = list.filter((r) => r.id !== of.id && r.state === "done" && pastKey(r.question) === pastKey(of.question)).slice(0, MOST_VARIANTS), [, again] = useState(0), ids = same.map((r) => r.id).join();
    useEffect(() => {
        let on = true;
        void Promise.all(same.filter((r) => !kept.has(r.id)).map(async (r) => kept.set(r.id, await get<Run>(`/v1/whatif/${r.id}`)))).then(() => on && again((n) => n + 1), () => undefined);
        return () => { on = false; };
    }, [ids]);
    return [...same.map((r) => kept.get(r.id)).filter((r): r is Run => !!r?.result?.after), ...(of.result?.after ? [of] : [])].sort((a, b) => a.id - b.id);
}

const COLUMNS = ["wait", "wait50", "wait90", "jct", "util", "jain", "rho", "preempt"].map((n) => FIGURES.find((f) => f.name === n) as Figure);

function Variants(p: { run: Run; result: Result; list: Run[] }) {
    const all = useAnswers(p.list, p.run);
    if (all.length < 2) return null;
    const rows: { key: string; name: preact.ComponentChildren; side: Side; here?: boolean }[] = [{ key: "before", name: p.run.question?.import ? "as here now" : "as it was", side: p.result.before },
        ...all.map((r) => ({ key: String(r.id), name: r.id === p.run.id ? runName(r.question) : <a href={`#/whatif/${r.id}`}>{runName(r.question)}</a>, side: r.result?.after as Side, here: r.id === p.run.id }))];
    const best = (f: Figure) => {
        const list = rows.map((x) => f.of(x.side)).filter((x): x is number => x !== null && x !== undefined);
        return f.better && new Set(list.map((x) => f.show(x))).size > 1 ? (f.better > 0 ? Math.max(...list) : Math.min(...list)) : null;
    };
    const bests = new Map(COLUMNS.map((f) => [f.name, best(f)])), shown = COLUMNS.filter((f) => rows.some((x) => value(f, x.side) !== "–"));
    return (
        <Panel title="Variants of this past" note="the best of each column is marked">
            <div class="wide" tabIndex={0} role="region" aria-label="Variants"><table class="variants">
                <thead><tr><th scope="col">variant</th>{shown.map((f) => <th scope="col" class="n" title={f.hint}>{f.label}</th>)}</tr></thead>
                <tbody>{rows.map((x) => (
                    <tr key={x.key} class={x.here ? "here" : ""}><th scope="row">{x.name}{x.here && <small class="note"> this one</small>}</th>{shown.map((f) => {
                        const top = bests.get(f.name) !== null && f.of(x.side) === bests.get(f.name);
                        return <td class={`n w ${top ? "best" : ""}`}>{value(f, x.side)}{top && <span class="hidden"> (best)</span>}</td>;
                    })}</tr>
                ))}</tbody>
            </table></div>
        </Panel>
    );
}

function machines(list: Machine[] | null | undefined): string {
    return (list ?? []).map((m) => `${m.count ?? 1} × ${m.gpus}${m.gpu_type ? ` ${m.gpu_type}` : ""}`).join(", ");
}

function Facts(p: { run: Run; result: Result }) {
    const r = p.result, j = r.jobs, rows: [string, string][] = [["jobs compared", amount(j.compared)]];
    if (changeWords(p.run.question?.changes).length && p.run.question?.title) rows.push(["changed", changeWords(p.run.question.changes).join("; ")]);
    if (j.carried_over) rows.push(["there before the period", `${amount(j.carried_over)}, take room and do not count`]);
    if (j.running) rows.push(["not ended yet", `${amount(j.running)}, not counted`]);
    if (j.never_ran) rows.push(["never ran", amount(j.never_ran)]);
    if (j.left_out) rows.push(["left out", `${amount(j.left_out)} without GPUs, or that never started`]);
    if (j.malformed) rows.push(["not understood", plural(j.malformed, "line")]);
    rows.push([r.after ? "policy before" : "policy", r.before.policies]);
    if (r.after && r.after.policies !== r.before.policies) rows.push(["policy after", r.after.policies]);
    if (r.machines) rows.push([r.after ? "machines before" : "machines", machines(r.machines.before)]);
    if (r.machines?.after && machines(r.machines.after) !== machines(r.machines.before)) rows.push(["machines after", machines(r.machines.after)]);
    return <Panel title="What was compared"><dl class="facts left">{rows.map(([k, v]) => <div><dt>{k}</dt><dd>{v}</dd></div>)}</dl></Panel>;
}

export function Answer(p: { run: Run; result: Result; list: Run[] }) {
    const r = p.result, imported = !!p.run.question?.import, pair = pairOf(r), v = pair && verdict(...pair), lost = pair ? pair[0].finished - pair[1].finished : 0, wait = FIGURES[0];
    return (
        <div class="stack">
            <div class={`verdict ${v?.tone ?? ""}`} role="status">
                {pair && v ? <><strong>{v.text}.</strong> <span>{sentence(...pair)}</span></>
                    : <><strong>No change was asked for.</strong> <span>Mean wait: {value(wait, r.recorded)} recorded, {value(wait, r.before)} {imported ? "under the policy of this daemon" : "simulated"}. Utilization: {r.recorded.utilization === null ? "–" : share(r.recorded.utilization)} and {r.before.utilization === null ? "–" : share(r.before.utilization)}.</span></>}
                {lost > 0 && <p>{plural(lost, "job")} could never run on these machines, or within these limits, and {lost === 1 ? "is" : "are"} missing in the figures after.</p>}
            </div>
            <Sides result={r} imported={imported} />
            <Variants run={p.run} result={r} list={p.list} />
            <OverTime result={r} imported={imported} />
            <Tenants result={r} />
            <Facts run={p.run} result={r} />
        </div>
    );
}
