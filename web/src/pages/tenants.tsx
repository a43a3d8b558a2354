// SPDX-License-Identifier: Apache-2.0
// tenants.tsx - who shares the GPUs: what each is sure of, may have, has and should have; over time; and
// who lends to whom.
import { useMemo, useState } from "preact/hooks";
import { get, Lending, Tenant, Tenants } from "../lib/api";
import { nameColour } from "../lib/colour";
import { amount, money, percent, plural, span } from "../lib/format";
import { column, hasData, known, Plot, Series, times } from "../lib/plot";
import { Source } from "../lib/store";
import { askLogin, now, tenants, you } from "../lib/world";
import { Choice, Empty, Panel, Stat, useKept } from "../ui";

const SPANS: Record<string, number> = { "1h": 3600, "24h": 86400, "7d": 604800, "30d": 2592000 };

/** Children under their parents, with how deep they are. */
function tree(list: Tenant[]): { t: Tenant; depth: number }[] {
    const out: { t: Tenant; depth: number }[] = [], add = (parent: string | null, depth: number) => {
        for (const t of list.filter((x) => x.parent === parent)) {
            out.push({ t, depth });
            add(t.name, depth + 1);
        }
    };
    add(null, 0);
    return out.length ? out : list.map((t) => ({ t, depth: 0 }));
}

/** One scale for all: used is full, the guarantee a bracket, the fair share a line, the limit the end. */
function Gauge(p: { t: Tenant; most: number }) {
    const { t, most } = p, pct = (x: number) => `${Math.min(100, (x / most) * 100)}%`, sure = t.guarantee ?? 0;
    const say = `uses ${amount(t.used)} GPUs; guarantee ${t.guarantee === null ? "none" : amount(t.guarantee)}; fair share ${amount(t.due)}; limit ${t.limit === null ? "none" : amount(t.limit)}`;
    return (
        <span class="gauge" role="img" aria-label={say} title={say}>
            <span class="limit" style={{ width: t.limit === null ? "100%" : pct(t.limit) }} />
            {sure > 0 && <span class="sure" style={{ width: pct(sure) }} />}
            <span class="used" style={{ width: pct(Math.min(t.used, sure || t.used)), background: nameColour(t.name) }} />
            {sure > 0 && t.used > sure && <span class="over" style={{ left: pct(sure), width: pct(t.used - sure), color: nameColour(t.name) }} />}
            {t.due > 0 && <i style={{ left: pct(t.due) }} />}
        </span>
    );
}

function Table(p: { list: Tenant[]; chosen: string | null; onChoose(name: string | null): void; waits: Map<string, number> }) {
    const rows = tree(p.list), most = Math.max(1, ...p.list.map((t) => Math.max(t.used, t.guarantee ?? 0, t.limit ?? 0, t.due)));
    return (
        <div class="wide"><table class="middle">
            <caption class="hidden">Tenants</caption>
            <thead><tr><th scope="col">tenant</th><th scope="col" class="gaugecol">use</th><th scope="col" class="n">used</th><th scope="col" class="n">guarantee</th><th scope="col" class="n">limit</th><th scope="col" class="n" title="what it should have now, by weight, of what others leave">fair share</th>
                <th scope="col" class="n">run</th><th scope="col" class="n">wait</th><th scope="col" class="n">GPUs asked for</th><th scope="col" class="n" title="of those that started lately">mean wait</th></tr></thead>
            <tbody>
                {rows.map(({ t, depth }) => (
                    <tr key={t.name} class={t.mine ? "mine" : ""}>
                        <td class="w" style={{ paddingLeft: `${depth * 18}px` }}><button type="button" class="plain tenant" aria-pressed={p.chosen === t.name} onClick={() => p.onChoose(p.chosen === t.name ? null : t.name)}><i style={{ background: nameColour(t.name) }} />{t.name}</button>{t.mine && <small class="note"> yours</small>}</td>
                        <td class="gaugecol"><Gauge t={t} most={most} /></td>
                        <td class="n"><strong>{amount(t.used)}</strong></td><td class="n">{t.guarantee ? amount(t.guarantee) : ""}</td><td class="n">{t.limit === null ? "" : amount(t.limit)}</td><td class="n">{amount(Math.round(t.due * 10) / 10)}</td>
                        <td class="n">{amount(t.jobs_running)}</td><td class="n">{amount(t.jobs_waiting)}</td><td class="n">{t.waiting ? amount(t.waiting) : ""}</td><td class="n w">{p.waits.has(t.name) ? span(p.waits.get(t.name) as number) : ""}</td>
                    </tr>
                ))}
            </tbody>
        </table></div>
    );
}

function Lent(p: { lending: Lending[] | undefined; list: Tenant[] }) {
    const over = p.list.filter((t) => t.leaf && t.borrowed > 0);
    return (
        <Panel title="Who lends to whom">
            {p.lending?.length ? (
                <ul class="rows">{p.lending.map((l) => <li><div><span><i class="dot" style={{ background: nameColour(l.from) }} />{l.from} lends to <i class="dot" style={{ background: nameColour(l.to) }} />{l.to}{l.gpu_type ? ` (${l.gpu_type})` : ""}</span><strong>{plural(l.gpus, "GPU")}</strong></div></li>)}</ul>
            ) : over.length ? (
                <ul class="rows">{over.map((t) => <li><div><span><i class="dot" style={{ background: nameColour(t.name) }} />{t.name} has more than it is sure of</span><strong>{plural(t.borrowed, "GPU")}</strong></div></li>)}</ul>
            ) : <p class="note">Nobody uses more than it is sure of.</p>}
        </Panel>
    );
}

type What = "used" | "active" | "due" | "waiting" | "wait_s";
const WHAT: Record<What, { name: string; label: string; unit: string; scale: number }> = {
    used: { name: "Used", label: "GPUs used", unit: "", scale: 1 }, active: { name: "At work", label: "GPUs at work", unit: "", scale: 1 }, due: { name: "Fair share", label: "fair share, in GPUs", unit: "", scale: 1 },
    waiting: { name: "Asked for", label: "GPUs asked for and not given", unit: "", scale: 1 }, wait_s: { name: "Waits", label: "what those that started had waited, mean", unit: " min", scale: 1 / 60 },
};

function OverTime(p: { source: Source<Series>; list: Tenant[]; chosen: string | null; range: string; onRange(r: string): void }) {
    const [what, setWhat] = useKept<What>("tenants.what", "used"), s = p.source.use(), made = useMemo(() => {
        if (!s?.series.length) return null;
        const of = (i: number) => String(s.series[i].name), n = column(s, 0, "used").length, at = times(s, n), leaf = new Set(p.list.filter((t) => t.leaf).map((t) => t.name));
        if (p.chosen) {
            const i = s.series.findIndex((x) => x.name === p.chosen);
            if (i < 0) return null;
            const mine = nameColour(p.chosen), other = (c: string, or: string) => (c === mine ? or : c); // no two lines alike
            const line = (name: string, label: string, colour: string, more = {}) => ({ label, colour, values: column(s, i, name), ...more });
            return known({ at, label: `${p.chosen}: GPUs`, lines: [line("used", "used", nameColour(p.chosen), { fill: true }), line("active", "at work", other("#e07b39", "#3b82c4")), line("guarantee", "guarantee", "#6f86a8", { dash: true }), line("limit", "limit", "#d1575b", { dash: true }), line("due", "fair share", other("#3f9c6b", "#7a6bd1"), { dash: true }), line("waiting", "asked for", other("#c9a227", "#3aa6b0"))].filter((l) => hasData(l.values)) });
        }
        const w = WHAT[what], values = (i: number) => column(s, i, what).map((x) => (x === null ? null : x * w.scale));
        return known({ at, label: w.label, unit: w.unit, lines: s.series.map((_, i) => i).filter((i) => leaf.has(of(i)) && hasData(values(i))).slice(0, 10).map((i) => ({ label: of(i), colour: nameColour(of(i)), values: values(i) })) });
    }, [s, p.chosen, p.list, what]);
    return (
        <Panel title={p.chosen ? `${p.chosen} over time` : "Use over time"} note={p.chosen ? "guarantee, limit and fair share beside it" : "choose a tenant above for more"} actions={<>
            {!p.chosen && <Choice label="What" value={what} of={Object.entries(WHAT).map(([k, w]) => [k as What, w.name])} onChange={setWhat} />}
            <Choice label="How long" value={p.range} of={Object.keys(SPANS).map((k) => [k, k])} onChange={p.onRange} /></>}>
            {made?.lines.length ? <Plot {...made} height={220} /> : <p class="note">{p.source.error.value?.message ?? "Nothing has been measured yet."}</p>}
        </Panel>
    );
}

/** What those waited, in the mean, that started lately. */
function meanWaits(s: Series | null): Map<string, number> {
    const out = new Map<string, number>();
    s?.series.forEach((x, i) => {
        const started = column(s, i, "started"), waits = column(s, i, "wait_s");
        let n = 0, sum = 0;
        waits.forEach((w, k) => {
            if (w === null) return;
            const c = started[k] || 1;
            n += c;
            sum += w * c;
        });
        if (n) out.set(String(x.name), sum / n);
    });
    return out;
}

interface Spent { groups: { name: string; gpu_hours: number; idle_gpu_hours: number | null; idle_money: number | null }[] }

function Waste(p: { range: string; list: Tenant[]; price: Tenants["price"] }) {
    const source = useMemo(() => new Source<Spent>(() => get(`/v1/report?by=tenant&since=${Math.floor(now() - (SPANS[p.range] ?? 3600))}`), 60000), [p.range]), spent = source.use();
    const leaf = new Set(p.list.filter((t) => t.leaf).map((t) => t.name)), rows = (spent?.groups ?? []).filter((g) => leaf.has(g.name) && g.idle_gpu_hours !== null && g.gpu_hours > 0).sort((a, b) => (b.idle_gpu_hours ?? 0) - (a.idle_gpu_hours ?? 0));
    return (
        <Panel title="Waste" note="GPU-hours allocated and not active">
            {rows.length === 0 ? <p class="note">{source.error.value?.message ?? "Nothing has been measured yet."}</p>
                : <ul class="rows">{rows.slice(0, 8).map((r) => <li><div><span><i class="dot" style={{ background: nameColour(r.name) }} />{r.name}</span><span><strong>{amount(Math.round((r.idle_gpu_hours ?? 0) * 100) / 100)}</strong> of {amount(Math.round(r.gpu_hours * 100) / 100)} ({percent((r.idle_gpu_hours ?? 0) / r.gpu_hours)}){r.idle_money !== null ? <>, <strong>{money(r.idle_money, p.price?.currency)}</strong></> : ""}</span></div></li>)}</ul>}
            {rows.length > 0 && !p.price?.gpu_hour && <p class="note">In money when the configuration says what a GPU-hour costs: <code>cost:</code>.</p>}
        </Panel>
    );
}

export function TenantsPage() {
    if (!you()) return <Empty whole title="Log in to see the tenants"><button type="button" class="primary" onClick={() => askLogin(true)}>Log in</button></Empty>;
    return <Logged />;
}

function Logged() {
    const data = tenants.use(), list = data?.tenants ?? [], [chosen, setChosen] = useState<string | null>(null), [range, setRange] = useKept<string>("tenants.range", "1h");
    const source = useMemo(() => new Source<Series>(() => get(`/v1/series?of=tenant&since=${Math.floor(now() - (SPANS[range] ?? 3600))}&until=${Math.floor(now())}`), 15000), [range]);
    source.data.use();
    const leaves = list.filter((t) => t.leaf), sum = (f: (t: Tenant) => number) => leaves.reduce((n, t) => n + f(t), 0);
    if (!data) return <p class="banner">{tenants.error.value?.message ?? "Loading"}</p>;
    return (
        <>
            <div class="head"><h1>Tenants</h1></div>
            <dl class="stats">
                <Stat label="tenants" value={amount(leaves.length)} /><Stat label="GPUs in use" value={amount(sum((t) => t.used))} /><Stat label="guaranteed" value={amount(sum((t) => t.guarantee ?? 0))} />
                <Stat label="beyond guarantees" value={amount(sum((t) => t.borrowed))} /><Stat label="asked for and not given" value={amount(sum((t) => t.waiting))} />
            </dl>
            <div class="stack">
                <Panel title="Now" note={list.length ? "bar: used, hatched where beyond the guarantee; frame: guarantee; line: fair share" : undefined}>{list.length ? <Table list={list} chosen={chosen} onChoose={setChosen} waits={meanWaits(source.data.value)} /> : <Empty title="Everybody is one tenant here">The configuration can name tenants with guarantees and limits: <code>tenants:</code>.</Empty>}</Panel>
                <OverTime source={source} list={list} chosen={chosen} range={range} onRange={setRange} />
                <div class="two"><Lent lending={data.lending} list={list} /><Waste range={range} list={list} price={data.price} /></div>
            </div>
        </>
    );
}
