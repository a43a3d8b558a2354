// SPDX-License-Identifier: Apache-2.0
// grid.ts - every GPU of the cluster, kept up to date by what events say.
//
// GPUs are rows of /v1/gpus in the order of their nodes, so a node is a range of rows. An event names
// the nodes it touches (a job that ends: the nodes it was on); only those rows are asked for again. So
// a change costs a small answer, however large the cluster is.
import { Cluster, Gpu, get, Node, pages } from "./api";
import { type Event, link } from "./live";
import { Cell, Pace } from "./store";

const PAGE = 1000; // rows that the daemon gives at once
const NEAR = 64; // ranges closer than this are asked for as one
const MANY = 10; // more ranges than this: whole pages
const GAP_MS = 100, DUTY = 3;
const AGAIN_MS = 1000; // after an answer that did not come
const MEASURE_MS = 2000;

export interface Machine extends Node { first: number } // its first row

export class Grid {
    gpus: Gpu[] = [];
    nodes: Machine[] = [];
    readonly version = new Cell(0);
    /** Nodes that have changed since somebody cleared this: what a picture has to draw again. */
    readonly changed = new Set<Machine>();
    /** Of those not logged in: only the first rows are known. */
    total = 0;
    private byName = new Map<string, Machine>();
    private onJob = new Map<number, Set<Machine>>();
    private dirty = new Set<Machine>();
    private other = new Set<Machine>(); // of these not only the GPUs are others
    private meanwhile = new Set<number>(); // jobs of which something was heard while an answer was on its way
    private due = 0;
    private busy = false;
    private pace = new Pace(GAP_MS, DUTY);
    private timer: number | undefined;
    private measured: number | undefined;
    private rolling = 0;

    constructor() {
        link.follow(() => link.value.state === "live" && this.dirty.size && this.soon());
    }

    private index(): void {
        this.onJob.clear();
        for (const m of this.nodes)
            for (let i = m.first; i < m.first + m.gpus; i++) this.note(m, this.gpus[i]);
    }

    private note(m: Machine, g: Gpu | undefined): void {
        const jobs = g?.shares ? g.shares.map((s) => s.job) : g?.job ? [g.job] : [];
        for (const j of jobs) {
            const at = this.onJob.get(j);
            if (at) at.add(m);
            else this.onJob.set(j, new Set([m]));
        }
    }

    private place(nodes: Node[], gpus: Gpu[]): void {
        let first = 0;
        this.nodes = nodes.map((n) => {
            const m = { ...n, first };
            first += n.gpus;
            return m;
        });
        this.byName = new Map(this.nodes.map((m) => [m.name, m]));
        this.gpus = gpus;
        this.total = Math.max(first, gpus.length);
        this.dirty.clear();
        this.index();
        this.version.set(this.version.value + 1);
    }

    async load(): Promise<void> {
        const nodes = await pages<Node>("/v1/nodes", "nodes", 100000);
        const total = nodes.rows.reduce((n, m) => n + m.gpus, 0), asked: Promise<{ gpus: Gpu[] }>[] = [];
        for (let at = 0; at < total; at += PAGE) asked.push(get(`/v1/gpus?limit=${PAGE}&after=${at}`));
        this.place(nodes.rows, (await Promise.all(asked)).flatMap((p) => p.gpus));
    }

    /** What a browser that is not logged in may see. */
    fromCluster(c: Cluster): void {
        const nodes: Node[] = [];
        for (const g of c.gpu_list) {
            let n = nodes[nodes.length - 1];
            if (n?.name !== g.node) {
                n = { name: g.node, state: "up", pool: "", rack: null, gpu_type: g.name, gpus: 0, gpus_busy: 0, gpus_free: 0, gpus_drained: 0,
                    cpus: null, cpus_free: null, mem_mib: null, mem_free_mib: null };
                nodes.push(n);
            }
            n.gpus++;
        }
        this.place(nodes, c.gpu_list);
        this.total = c.gpus.total;
    }

    take(e: Event): void {
        const names = [e.node, ...((e.pieces as { node: string }[] | undefined) ?? []).map((p) => p.node)];
        for (const name of names) {
            const m = typeof name === "string" ? this.byName.get(name) : undefined;
            if (m) this.dirty.add(m);
            if (m && (e.type.startsWith("node_") || e.type === "gpus_off")) this.other.add(m);
        }
        if (e.job) for (const m of this.onJob.get(e.job) ?? []) this.dirty.add(m);
        if (e.job && this.busy) this.meanwhile.add(e.job);
        if (this.dirty.size) this.soon();
    }

    /** Measurements have no events: they are looked at again and again, a page at a time. */
    measure(on: boolean): void {
        window.clearInterval(this.measured);
        if (!on) return;
        this.measured = window.setInterval(() => {
            if (document.hidden || !this.nodes.length) return;
            const from = this.rolling < this.total ? this.rolling : 0;
            this.rolling = from + PAGE;
            for (const m of this.nodes) if (m.first < from + PAGE && m.first + m.gpus > from) this.dirty.add(m);
            this.soon();
        }, MEASURE_MS);
    }

    private soon(): void {
        if (this.busy || this.timer !== undefined) return;
        this.timer = window.setTimeout(() => {
            this.timer = undefined;
            void this.refresh();
        }, Math.max(0, this.due - performance.now()));
    }

    private ranges(): [number, number][] {
        const rows = [...this.dirty].map((m): [number, number] => [m.first, m.first + m.gpus]).sort((a, b) => a[0] - b[0]);
        const out: [number, number][] = [];
        for (const r of rows) {
            const last = out[out.length - 1];
            if (last && r[0] - last[1] <= NEAR && r[1] - last[0] <= PAGE) last[1] = Math.max(last[1], r[1]);
            else out.push([r[0], r[1]]);
        }
        if (out.length <= MANY) return out;
        const touched = new Set(rows.flatMap((r) => [Math.floor(r[0] / PAGE), Math.floor((r[1] - 1) / PAGE)]));
        return [...touched].sort((a, b) => a - b).map((p) => [p * PAGE, Math.min(this.total, (p + 1) * PAGE)]);
    }

    /** Whether nodes are up, drained, down. */
    private async again(list: Machine[]): Promise<void> {
        const take = (m: Machine | undefined, n: Node | undefined) => m && n && m.name === n.name && Object.assign(m, n);
        if (list.length > MANY) (await pages<Node>("/v1/nodes", "nodes", 100000)).rows.forEach((n) => take(this.byName.get(n.name), n));
        else await Promise.all(list.map(async (m) => take(m, (await get<{ nodes: Node[] }>(`/v1/nodes?limit=1&after=${this.nodes.indexOf(m)}`)).nodes[0])));
    }

    private async refresh(): Promise<void> {
        const began = performance.now(), ranges = this.ranges(), asked = [...this.dirty], other = [...this.other];
        let failed = false;
        this.busy = true;
        this.dirty.clear();
        this.other.clear();
        try {
            await this.again(other);
            const got = await Promise.all(ranges.map(([a, b]) => get<{ gpus: Gpu[] }>(`/v1/gpus?limit=${b - a}&after=${a}`)));
            got.forEach((page, i) => page.gpus.forEach((g, k) => (this.gpus[ranges[i][0] + k] = g)));
            for (const m of this.nodes) if (ranges.some(([a, b]) => m.first < b && m.first + m.gpus > a)) this.changed.add(m);
            this.index();
            for (const j of this.meanwhile) for (const m of this.onJob.get(j) ?? []) this.dirty.add(m);
            this.version.set(this.version.value + 1);
        } catch { // events that were heard of do not come again: asked once more, when the stream says that the daemon is there
            failed = true;
            for (const m of asked) this.dirty.add(m);
            for (const m of other) this.other.add(m);
        }
        this.meanwhile.clear();
        this.busy = false;
        this.due = failed ? performance.now() + AGAIN_MS : this.pace.next(performance.now() - began);
        if (this.dirty.size && (!failed || link.value.state === "live")) this.soon();
    }
}
