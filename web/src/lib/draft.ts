// SPDX-License-Identifier: Apache-2.0
// draft.ts - a question that is being put together. It outlives the page, so that one can look at an answer
// and come back; a file that was chosen is in it, since the daemon does not keep what was imported.
import type { History } from "./history";
import { Cell } from "./store";
import type { Changes, PolicyChange, Question, Quota } from "./whatif";
import { now } from "./world";

export type Kind = "bundle" | "order" | "backfill" | "place" | "preempt";
export interface Nodes { count: string; gpus: string; type: string } // as they were typed
export interface Draft { from: "period" | "file"; preset: string; since: number; until: number; file: History | null; wanted: string; cluster: string; title: string;
    policy: Partial<Record<Kind, string>>; params: { name: string; value: string }[];
    // wanted: the name of a file that was chosen once
    nodes: Record<string, string>; // by kind of machine, "8:H100": how many more, or fewer
    more: Nodes[]; quotas: Record<string, Record<string, string>> } // by tenant: limit, guarantee, weight; "": as it was

export const PRESETS: [string, string, number][] = [["1", "24 h", 86400], ["7", "7 days", 7 * 86400], ["30", "30 days", 30 * 86400], ["90", "90 days", 90 * 86400]];

function fresh(): Draft {
    return { from: "period", preset: "7", since: now() - 7 * 86400, until: now(), file: null, wanted: "", cluster: "", title: "", policy: {}, params: [], nodes: {}, more: [], quotas: {} };
}

export const draft = new Cell<Draft>(fresh());

export function put(part: Partial<Draft>): void {
    draft.set({ ...draft.value, ...part });
}

/** A period that ends now ends when it is looked at. */
export function choose(preset: string): void {
    const s = PRESETS.find((p) => p[0] === preset)?.[2] ?? 0;
    put(s ? { preset, since: Math.floor(now() - s), until: Math.floor(now()) } : { preset });
}

function policyOf(d: Draft): PolicyChange | undefined {
    const p: PolicyChange = {};
    for (const [k, v] of Object.entries(d.policy)) if (v) p[k as Kind] = v;
    const params = d.params.filter((x) => x.name && x.value.trim()).map((x) => `${x.name}=${x.value.trim()}`);
    if (params.length) p.params = params;
    return Object.keys(p).length ? p : undefined;
}

/** "+2x8:H100" of what was typed; NaN is left for the daemon to refuse. */
function nodesOf(d: Draft, sign: 1 | -1): string | undefined {
    const list: string[] = [], add = (n: number, gpus: string, type: string) => {
        if (Math.sign(n) === sign) list.push(`${Math.abs(n)}x${gpus.trim()}${type.trim() ? `:${type.trim()}` : ""}`);
    };
    if (d.from === "period") {
        for (const [key, n] of Object.entries(d.nodes)) {
            const at = key.indexOf(":");
            add(Math.trunc(Number(n) || 0), key.slice(0, at), key.slice(at + 1));
        }
    }
    for (const m of d.more) add(Math.trunc(Number(m.count) || 0), m.gpus, m.type);
    return list.length ? list.join("+") : undefined;
}

function quotasOf(d: Draft): Record<string, Quota> | undefined {
    const out: Record<string, Quota> = {};
    for (const [name, numbers] of Object.entries(d.quotas)) {
        for (const [k, text] of Object.entries(numbers)) {
            const t = text.trim().toLowerCase();
            if (t) out[name] = { ...out[name], [k]: t === "none" ? null : Number(t) };
        }
    }
    return Object.keys(out).length ? out : undefined;
}

export function changesOf(d: Draft): Changes {
    const c: Changes = {}, policy = policyOf(d), more = nodesOf(d, 1), less = nodesOf(d, -1), quotas = quotasOf(d);
    if (policy) c.policy = policy;
    if (more) c.add_nodes = more;
    if (less) c.remove_nodes = less;
    if (quotas) c.quotas = quotas;
    return c;
}

/** What is wrong with it, as far as that can be seen here. */
export function wrong(d: Draft): string | null {
    if (d.from === "file" && !d.file) return "Choose a file first.";
    if (d.from === "period" && !(d.since < d.until)) return "The period must begin before it ends.";
    if (d.from === "period" && d.until - d.since > 366 * 86400) return "A period is at most 366 days long.";
    for (const [name, numbers] of Object.entries(d.quotas))
        for (const [k, text] of Object.entries(numbers))
            if (text.trim() && text.trim().toLowerCase() !== "none" && !(Number(text) >= 0)) return `The ${k} of ${name} must be a number from 0 on, or none.`;
    for (const m of d.more) if (Number(m.count) && !/^\d+$/.test(m.gpus.trim())) return "Say how many GPUs each of the other nodes has.";
    return null;
}

export function questionOf(d: Draft): unknown {
    const body = { changes: changesOf(d), ...(d.title.trim() ? { title: d.title.trim() } : {}) };
    return d.from === "period" ? { ...body, since: d.since, until: d.until } : { ...body, import: { text: d.file?.text, name: d.file?.name, ...(d.cluster.trim() ? { cluster: d.cluster.trim() } : {}) } };
}

function moreOf(spec: string | undefined, sign: number): Nodes[] {
    return (spec ?? "").split("+").filter(Boolean).map((s) => {
        const [, n = "0", gpus = "", type = ""] = /^(\d+)x(\d+)(?::(.*))?$/.exec(s.trim()) ?? [];
        return { count: String(sign * Number(n)), gpus, type };
    });
}

/** The same past and the same changes, to be altered. */
export function again(q: Question | null): void {
    const c = q?.changes ?? {}, { params, ...policy } = c.policy ?? {}, quotas: Draft["quotas"] = {};
    for (const [name, numbers] of Object.entries(c.quotas ?? {})) {
        quotas[name] = {};
        for (const [k, v] of Object.entries(numbers)) quotas[name][k] = v === null ? "none" : String(v);
    }
    const nodes: Record<string, string> = {}, all = [...moreOf(c.add_nodes, 1), ...moreOf(c.remove_nodes, -1)];
    if (!q?.import) for (const m of all) if (m.type) nodes[`${m.gpus}:${m.type}`] = m.count;
    put({ from: q?.import ? "file" : "period", preset: "own", ...(q?.since === undefined ? {} : { since: q.since, until: q.until ?? now() }), wanted: q?.import?.name ?? "", cluster: q?.import?.cluster ?? "", title: "", policy,
        params: (params ?? []).map((x) => ({ name: x.slice(0, x.indexOf("=")), value: x.slice(x.indexOf("=") + 1) })), nodes, more: all.filter((m) => q?.import || !m.type), quotas });
}

export function forgetChanges(): void {
    put({ title: "", policy: {}, params: [], nodes: {}, more: [], quotas: {} });
}
