// SPDX-License-Identifier: Apache-2.0
// whatif_run.tsx - what came of a question: in a sentence, side by side, over time, by tenant; and beside
// other answers about the same past.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../lib/api";
import { amount, duration, plural, share } from "../lib/format";
import { Line, Plot } from "../lib/plot";
import { betterOf, change, changeWords, Figure, FIGURES, Load, Machine, pastKey, Result, Run, runName, sentence, Side, TenantSide, verdict } from "../lib/whatif";
import { Delta, Panel } from "../ui";

const BEFORE = "#6f86a8", AFTER = "#e07b39", RECORDED = "#9a9aa2";
const MOST_VARIANTS = 12;

function value(f: Figure, s: Side): string {
    const x = f.of(s);
    return x === null || x === undefined ? "–" : f.show(x);
}

/** Recorded, as it was, with the changes. */
function Sides(p: { result: Result }) {
    const r = p.result, rows = FIGURES.filter((f) => value(f, r.before) !== "–");
    return (
        <Panel title="Before and after" note={`${plural(r.jobs.compared, "job")}`}>
            <div class="wide" tabIndex={0} role="region" aria-label="Before and after"><table class="sides">
                <caption class="hidden">What was recorded, what is simulated as it was, and with the changes</caption>
                <thead><tr><th scope="col">figure</th><th scope="col" class="n opt" title="what really happened">recorded</th><th scope="col" class="n" title="the same jobs in the simulator, with the policy and machines of that time">before</th>
                    {r.after && <><th scope="col" class="n" title="in the simulator, with the changes">after</th><th scope="col">change</th></>}</tr></thead>
                <tbody>{rows.map((f) => (
                    <tr><th scope="row" title={f.hint}>{f.label}</th><td class="n dim opt">{f.simulated ? "–" : value(f, r.recorded)}</td><td class="n">{value(f, r.before)}</td>
                        {r.after && <><td class="n"><strong>{value(f, r.after)}</strong></td><td class="w"><Delta of={change(f.of(r.before), f.of(r.after), betterOf(f, r))} /></td></>}</tr>
                ))}</tbody>
            </table></div>
            <p class="note foot">Compare <em>before</em> with <em>after</em>: both are simulated. How far <em>before</em> is from what was recorded is the simulator's own error.</p>
        </Panel>
    );
}

function OverTime(p: { result: Result }) {
    const s = p.result.series, made = useMemo(() => {
        if (!s?.before) return null;
        const whole = p.result.jobs.carried_over + p.result.jobs.running === 0, n = s.before.gpus.length, at = Array.from({ length: n }, (_, i) => s.since + (i + 0.5) * s.step_s);
        const lines = (of: keyof Load): Line[] => [
            ...(s.recorded && whole ? [{ label: "recorded", colour: RECORDED, values: s.recorded[of], dash: true }] : []),
            { label: "before", colour: BEFORE, values: (s.before as Load)[of], fill: !s.after }, ...(s.after ? [{ label: "after", colour: AFTER, values: s.after[of] }] : [])];
        return { at, gpus: lines("gpus"), waiting: lines("waiting") };
    }, [s]);
    if (!made) return null;
    return (
        <Panel title="Over time">
            <div class="plots"><Plot label="Jobs that wait" at={made.at} lines={made.waiting} height={190} least={2} /><Plot label="GPUs in use" at={made.at} lines={made.gpus} height={190} /></div>
        </Panel>
    );
}

function Tenants(p: { result: Result }) {
    const r = p.result, before = r.before.tenants ?? [], after = new Map((r.after?.tenants ?? []).map((t) => [t.tenant, t]));
    if (before.length < 2) return null;
    const pair = (a: number | null, b: number | null | undefined) => <td class="n w">{a === null ? "–" : duration(a)}{b !== undefined && <> <span class="dim">→</span> <strong>{b === null ? "–" : duration(b)}</strong></>}</td>;
    const cells = (t: TenantSide, u: TenantSide | undefined) => (["avg_wait_s", "p50_wait_s", "p90_wait_s", "avg_jct_s"] as const).map((k) => pair(t[k], r.after ? u?.[k] ?? null : undefined));
    return (
        <Panel title="By tenant" note={r.after ? "before → after" : undefined}>
            <div class="wide" tabIndex={0} role="region" aria-label="By tenant"><table class="variants">
                <thead><tr><th scope="col">tenant</th><th scope="col" class="n">jobs</th><th scope="col" class="n">GPU-hours</th><th scope="col" class="n">wait, mean</th><th scope="col" class="n">wait, median</th><th scope="col" class="n">wait, P90</th><th scope="col" class="n">completion, mean</th>{r.after && <th scope="col">mean wait</th>}</tr></thead>
                <tbody>{before.map((t) => (
                    <tr><th scope="row">{t.tenant}</th><td class="n">{amount(t.jobs)}</td><td class="n">{t.gpu_hours === null ? "–" : amount(Math.round(t.gpu_hours * 100) / 100)}</td>{cells(t, after.get(t.tenant))}{r.after && <td class="w"><Delta of={change(t.avg_wait_s, after.get(t.tenant)?.avg_wait_s, -1)} /></td>}</tr>
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
    const rows: { key: string; name: preact.ComponentChildren; side: Side; here?: boolean }[] = [{ key: "before", name: "as it was", side: p.result.before },
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
    rows.push(["policy before", r.before.policies]);
    if (r.after && r.after.policies !== r.before.policies) rows.push(["policy after", r.after.policies]);
    if (r.machines) rows.push(["machines before", machines(r.machines.before)]);
    if (r.machines?.after && machines(r.machines.after) !== machines(r.machines.before)) rows.push(["machines after", machines(r.machines.after)]);
    return <Panel title="What was compared"><dl class="facts left">{rows.map(([k, v]) => <div><dt>{k}</dt><dd>{v}</dd></div>)}</dl></Panel>;
}

export function Answer(p: { run: Run; result: Result; list: Run[] }) {
    const r = p.result, v = verdict(r), lost = r.after ? r.before.finished - r.after.finished : 0, off = change(r.recorded.avg_wait_s, r.before.avg_wait_s, 0);
    return (
        <div class="stack">
            <div class={`verdict ${v?.tone ?? ""}`} role="status">
                {v ? <><strong>{v.text}.</strong> <span>{sentence(r)}</span></>
                    : <><strong>Nothing was changed.</strong> <span>Mean wait: {value(FIGURES[0], r.recorded)} recorded, {value(FIGURES[0], r.before)} simulated{off && off.text !== "same" ? "" : ": the same"}. Utilization {r.before.utilization === null ? "–" : share(r.before.utilization)}.</span></>}
                {lost > 0 && <p>{plural(lost, "job")} could never run on these machines, or within these limits, and {lost === 1 ? "is" : "are"} missing in the figures after.</p>}
            </div>
            <Sides result={r} />
            <Variants run={p.run} result={r} list={p.list} />
            <OverTime result={r} />
            <Tenants result={r} />
            <Facts run={p.run} result={r} />
        </div>
    );
}
