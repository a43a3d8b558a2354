// SPDX-License-Identifier: Apache-2.0
// usage.tsx - when the GPUs are used, and what could be done better.
import { useMemo } from "preact/hooks";
import { get } from "../lib/api";
import { heat } from "../lib/colour";
import { amount, money, percent, span } from "../lib/format";
import { Source } from "../lib/store";
import { askLogin, you } from "../lib/world";
import { Choice, Empty, JobLink, Panel, Stat, useKept } from "../ui";
import { dark, theme } from "../theme";

interface Hour { weekday: number; hour: number; allocated: number | null; active: number | null }
interface Whole { gpus: number; gpu_hours: number; allocated: number | null; active: number | null; idle_gpu_hours: number; idle_money: number | null }
interface Usage { cluster: Whole; cells: Hour[]; tenants?: { name: string; gpu_hours: number; idle_gpu_hours?: number | null; money?: number | null; idle_money?: number | null; wait_p50_s?: number | null; wait_p90_s?: number | null; jobs?: number }[];
    recommendations?: { kind: string; text: string; evidence?: string | null; gpu_hours?: number | null; money?: number | null; jobs?: number[] }[];
    throughput?: { job: number; name?: string; user?: string; unit: string; per_gpu_hour: number }[]; currency?: string | null }

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

function HeatMap(p: { cells: Hour[]; of: "allocated" | "active" }) {
    theme.use();
    const at = new Map(p.cells.map((c) => [c.weekday * 24 + c.hour, c[p.of]]));
    return (
        <div class="wide" tabIndex={0} role="region" aria-label="Hour by weekday"><table class="heat">
            <caption class="hidden">{p.of === "allocated" ? "GPUs allocated" : "GPUs active"}, by weekday and hour</caption>
            <thead><tr><td />{Array.from({ length: 24 }, (_, h) => <th scope="col">{h % 3 === 0 ? h : <span class="hidden">{h}</span>}</th>)}</tr></thead>
            <tbody>{DAYS.map((day, d) => (
                <tr><th scope="row">{day}</th>{Array.from({ length: 24 }, (_, h) => {
                    const x = at.get(d * 24 + h), known = x !== null && x !== undefined;
                    return <td class={known ? "" : "unknown"} style={known ? { background: heat(x, dark()) } : undefined} title={`${day} ${h}:00: ${known ? percent(x) : "not known"}`}><span class="hidden">{known ? percent(x) : "not known"}</span></td>;
                })}</tr>
            ))}</tbody>
        </table></div>
    );
}

export function UsagePage() {
    if (!you()) return <Empty whole title="Log in to see how the GPUs are used"><button type="button" class="primary" onClick={() => askLogin(true)}>Log in</button></Empty>;
    return <Logged />;
}

function Logged() {
    const [days, setDays] = useKept<string>("usage.days", "28"), [of, setOf] = useKept<"allocated" | "active">("usage.of", "active");
    const source = useMemo(() => new Source<Usage>(() => get(`/v1/usage?days=${days}`), 60000), [days]), u = source.use();
    if (!u) return <p class="banner">{source.error.value?.message ?? "Loading"}</p>;
    const c = u.cluster, of100 = (x: number | null) => (x === null ? "…" : percent(x));
    return (
        <>
            <div class="head"><h1>Usage</h1><Choice label="How long" value={days} of={[["7", "7 days"], ["28", "28 days"], ["90", "90 days"]]} onChange={setDays} /></div>
            <dl class="stats">
                <Stat label="allocated" value={of100(c.allocated)} /><Stat label="active" value={of100(c.active)} />
                <Stat label="allocated and not active" value={amount(Math.round(c.idle_gpu_hours * 10) / 10)} of="GPU-hours" />
            </dl>
            <div class="stack">
                <Panel title="Hour by weekday" actions={<Choice label="What" value={of} of={[["active", "Active"], ["allocated", "Allocated"]]} onChange={setOf} />}>
                    <HeatMap cells={u.cells} of={of} />
                    <div class="legend"><span class="scale" aria-hidden="true">{[0, 0.2, 0.4, 0.6, 0.8, 1].map((x) => <i style={{ background: heat(x, dark()) }} />)}</span>0 to 100 % of all GPUs; hatched: not known</div>
                </Panel>
                <Panel title="What could be better">
                    {u.recommendations?.length ? (
                        <ul class="advices">{u.recommendations.map((r) => (
                            <li><p><strong>{r.text}</strong>{r.gpu_hours ? <span class="state s-waiting">{amount(Math.round(r.gpu_hours))} GPU-hours{r.money ? `, ${money(r.money, u.currency)}` : ""}</span> : null}</p>
                                {r.evidence && <p class="note">{r.evidence}</p>}
                                {!!r.jobs?.length && <p class="note inline">{r.jobs.slice(0, 8).map((id, i) => <>{i > 0 && ", "}<JobLink job={{ id }}>job {id}</JobLink></>)}</p>}</li>
                        ))}</ul>
                    ) : <Empty title="Nothing to say">Advice appears when there is evidence for it: GPUs that are idle at night, jobs that could share one, jobs that ask for more than they use.</Empty>}
                </Panel>
                {!!u.tenants?.length && (
                    <Panel title="By tenant">
                        <div class="wide" tabIndex={0} role="region" aria-label="By tenant"><table>
                            <thead><tr><th scope="col">tenant</th><th scope="col" class="n">jobs</th><th scope="col" class="n">GPU-hours</th><th scope="col" class="n">not active</th>{u.tenants.some((t) => t.money) && <><th scope="col" class="n">cost</th><th scope="col" class="n">of it not active</th></>}<th scope="col" class="n">wait, median</th><th scope="col" class="n">wait, P90</th></tr></thead>
                            <tbody>{u.tenants.map((t) => <tr><td>{t.name}</td><td class="n">{t.jobs !== undefined ? amount(t.jobs) : ""}</td><td class="n">{amount(Math.round(t.gpu_hours * 100) / 100)}</td><td class="n">{t.idle_gpu_hours !== null && t.idle_gpu_hours !== undefined ? amount(Math.round(t.idle_gpu_hours * 100) / 100) : ""}</td>
                                {u.tenants?.some((x) => x.money) && <><td class="n">{t.money ? money(t.money, u.currency) : ""}</td><td class="n">{t.idle_money ? money(t.idle_money, u.currency) : ""}</td></>}<td class="n">{t.wait_p50_s !== null && t.wait_p50_s !== undefined ? span(t.wait_p50_s) : ""}</td><td class="n">{t.wait_p90_s !== null && t.wait_p90_s !== undefined ? span(t.wait_p90_s) : ""}</td></tr>)}</tbody>
                        </table></div>
                    </Panel>
                )}
                {!!u.throughput?.length && <Panel title="Progress per GPU-hour" note="of jobs that report it"><ul class="rows">{u.throughput.map((t) => <li><div><span><JobLink job={{ id: t.job }}>{t.name || `job ${t.job}`}</JobLink>{t.user ? <small class="note"> job {t.job} of {t.user}</small> : ""}</span><strong>{amount(Math.round(t.per_gpu_hour * 100) / 100)} {t.unit}</strong></div></li>)}</ul></Panel>}
            </div>
        </>
    );
}
