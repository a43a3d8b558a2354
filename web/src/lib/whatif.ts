// SPDX-License-Identifier: Apache-2.0
// whatif.ts - questions "what if": their shapes, what they change in words, and which are about the
// same past.
import { day, duration, plural, share } from "./format";

export interface Quota { limit?: number | null; guarantee?: number | null; weight?: number | null }
export interface PolicyChange { bundle?: string; order?: string; backfill?: string; place?: string; preempt?: string; params?: string[] }
export interface Changes { policy?: PolicyChange; add_nodes?: string; remove_nodes?: string; quotas?: Record<string, Quota> }
export interface Question { since?: number; until?: number; title?: string; changes?: Changes;
    import?: { name?: string; bytes?: number; digest?: string; format?: string; cluster?: string } }

export interface Fairness { jain: number | null; jain_worst: number | null; share_ratio: number | null; rho: number | null; rho_worst: number | null; tenants?: { tenant: string; rho: number | null }[] }
export interface TenantSide { tenant: string; jobs: number; gpu_hours: number | null; avg_wait_s: number | null; p50_wait_s: number | null; p90_wait_s: number | null; avg_jct_s: number | null }
export interface Side { bundle: string; policies: string; jobs: number; finished: number; avg_jct_s: number | null; p50_jct_s: number | null; p90_jct_s: number | null;
    avg_wait_s: number | null; p50_wait_s: number | null; p90_wait_s: number | null; utilization: number | null; gpu_hours: number | null; makespan_s: number | null;
    preemptions: number; max_waiting: number; gpus: number; fairness?: Fairness; tenants?: TenantSide[] }
export interface Load { gpus: (number | null)[]; waiting: (number | null)[] }
export interface Machine { count?: number; gpus: number; gpu_type?: string }
export interface Result { recorded: Side; before: Side; after: Side | null; since: number; until: number; machines?: { before: Machine[]; after: Machine[] | null };
    jobs: { compared: number; carried_over: number; running: number; never_ran: number; left_out: number; malformed: number };
    series?: { since: number; step_s: number; recorded?: Load; before?: Load; after?: Load } }
type Brief = { avg_wait_s?: number | null; avg_jct_s?: number | null; utilization?: number | null };
export interface Run { id: number; at: number; user: string; state: "waiting" | "running" | "done" | "failed"; progress: number; step: string; question: Question | null;
    error: string | null; summary?: { recorded?: Brief; before?: Brief; after?: Brief } | null; result?: Result | null }

export function over(r: Run): boolean {
    return r.state === "done" || r.state === "failed";
}

/** Runs with the same key are about the same past. */
export function pastKey(q: Question | null): string {
    if (!q) return "";
    return q.import ? `import ${q.import.digest} ${q.import.cluster ?? ""}` : `${q.since} ${q.until}`;
}

export function pastWords(q: Question | null): string {
    if (!q) return "";
    if (q.import) return `${q.import.name ?? "an imported file"}${q.import.cluster ? ` on ${q.import.cluster}` : ""}`;
    return q.since === undefined ? "" : `${day(q.since)} to ${q.until === undefined ? "now" : day(q.until)}`;
}

function policyWords(p: PolicyChange): string[] {
    const single = (["order", "backfill", "place", "preempt"] as const).filter((k) => p[k]).map((k) => `${k} ${p[k]}`);
    return [...(p.bundle ? [`policy ${p.bundle}`] : []), ...single, ...(p.params ?? [])];
}

function quotaWords(q: Record<string, Quota>): string[] {
    return Object.entries(q).map(([name, numbers]) => `${name}: ${Object.entries(numbers).map(([k, v]) => `${k} ${v === null ? "none" : v}`).join(", ")}`);
}

/** "8x4:H100" as people say it. */
function nodeWords(spec: string): string {
    return spec.split("+").map((s) => {
        const m = /^(\d+)x(\d+)(?::(.*))?$/.exec(s.trim());
        return m ? `${plural(Number(m[1]), "node")} of ${m[2]}${m[3] ? ` ${m[3]}` : ""}` : s;
    }).join(" and ");
}

export function changeWords(c: Changes | undefined): string[] {
    return [...(c?.policy ? policyWords(c.policy) : []), ...(c?.remove_nodes ? [`without ${nodeWords(c.remove_nodes)}`] : []), ...(c?.add_nodes ? [`${nodeWords(c.add_nodes)} more`] : []), ...(c?.quotas ? quotaWords(c.quotas) : [])];
}

export function runName(q: Question | null): string {
    return q?.title || changeWords(q?.changes).join("; ") || "nothing changed";
}

// ---- figures: what is compared, and which way is better ----

export interface Figure { name: string; label: string; phrase?: string; hint?: string; better: 1 | -1 | 0; show(x: number): string; of(s: Side): number | null | undefined; simulated?: boolean /* an import does not have it */ }

const count = (x: number) => x.toLocaleString("en-US"), two = (x: number) => x.toFixed(2);

export const FIGURES: Figure[] = [
    { name: "wait", phrase: "mean wait", label: "wait, mean", better: -1, show: duration, of: (s) => s.avg_wait_s },
    { name: "wait50", label: "wait, median", better: -1, show: duration, of: (s) => s.p50_wait_s },
    { name: "wait90", phrase: "P90 wait", label: "wait, P90", hint: "nine of ten jobs waited no longer", better: -1, show: duration, of: (s) => s.p90_wait_s },
    { name: "jct", phrase: "mean completion", label: "completion, mean", hint: "from submission to the end", better: -1, show: duration, of: (s) => s.avg_jct_s },
    { name: "jct90", label: "completion, P90", better: -1, show: duration, of: (s) => s.p90_jct_s },
    { name: "util", label: "utilization", hint: "allocated GPU-hours of the capacity in the period", better: 1, show: share, of: (s) => s.utilization },
    { name: "jain", phrase: "fairness", label: "fairness (Jain)", hint: "1: every tenant got what it was due; the mean over days", better: 1, show: two, of: (s) => s.fairness?.jain },
    { name: "jainworst", label: "fairness, worst day", better: 1, show: two, of: (s) => s.fairness?.jain_worst },
    { name: "rho", label: "worst slowed job", hint: "completion time over what it would have been if its tenant had its part of the cluster alone; 1 or less: not worse off", better: -1, show: two, of: (s) => s.fairness?.rho_worst },
    { name: "preempt", label: "preemptions", better: -1, show: count, of: (s) => s.preemptions, simulated: true },
    { name: "queue", label: "longest queue", better: -1, show: count, of: (s) => s.max_waiting },
    { name: "span", label: "all done after", better: -1, show: duration, of: (s) => s.makespan_s },
    { name: "gpus", label: "GPUs", better: 0, show: count, of: (s) => s.gpus },
    { name: "jobs", label: "jobs that ended", better: 1, show: count, of: (s) => s.finished },
];

/** What is compared with what; null where nothing was changed. */
export function pairOf(r: Result): [Side, Side] | null {
    return r.after ? [r.before, r.after] : null;
}

/** With other GPUs than before, more or less of them in use is neither good nor bad. */
export function betterOf(f: Figure, a: Side, b: Side): number {
    return f.name === "util" && a.gpus !== b.gpus ? 0 : f.better;
}

export interface Change { text: string; tone: "good" | "bad" | "same"; word: string }

/** How one number stands to another; null where there is nothing to compare. */
export function change(a: number | null | undefined, b: number | null | undefined, better: number): Change | null {
    if (a === null || a === undefined || b === null || b === undefined) return null;
    const part = a === 0 ? (b === 0 ? 0 : Infinity) : (b - a) / Math.abs(a);
    if (a === b || Math.abs(part) < 0.01) return { text: "same", tone: "same", word: "" };
    const arrow = b > a ? "▲" : "▼", good = better !== 0 && Math.sign(b - a) === better;
    const text = !isFinite(part) || part > 9 ? (a > 0 ? `${arrow} × ${b / a < 1000 ? Math.round(b / a) : "1000+"}` : arrow) : `${arrow} ${Math.abs(part) < 0.095 ? (Math.abs(part) * 100).toFixed(1) : Math.round(Math.abs(part) * 100)} %`;
    return { text, tone: better === 0 ? "same" : good ? "good" : "bad", word: better === 0 ? "" : good ? "better" : "worse" };
}

/** "Mean wait 4.1 h → 1.3 h, …": what came of it, in a sentence. */
export function sentence(x: Side, y: Side): string {
    const say = (name: string) => {
        const f = FIGURES.find((g) => g.name === name) as Figure, a = f.of(x), b = f.of(y);
        return a === null || a === undefined || b === null || b === undefined ? null : `${f.phrase ?? f.label} ${f.show(a)} → ${f.show(b)}`;
    };
    const list = ["wait", "wait90", "jct", "util", "jain"].map(say).filter((t): t is string => t !== null);
    return list.length ? `${list[0][0].toUpperCase()}${list.join(", ").slice(1)}.`.replace(/(\d) (s|min|h|d)\b/g, "$1\u00a0$2").replace(/(\d) %/g, "$1\u00a0%") : ""; // a number and its unit stay together
}

/** In one word, by waits and completion times. */
export function verdict(a: Side, b: Side): Change {
    if (b.finished < a.finished) return { text: "Not all jobs could run", tone: "bad", word: "" };
    const tones = [change(a.avg_jct_s, b.avg_jct_s, -1)?.tone, change(a.avg_wait_s, b.avg_wait_s, -1)?.tone];
    if (tones.includes("good") && !tones.includes("bad")) return { text: "Better", tone: "good", word: "" };
    if (tones.includes("bad") && !tones.includes("good")) return { text: "Worse", tone: "bad", word: "" };
    return tones.includes("good") ? { text: "Mixed", tone: "same", word: "" } : { text: "No difference", tone: "same", word: "" };
}
