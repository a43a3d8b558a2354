// SPDX-License-Identifier: Apache-2.0
// world.ts - what all pages share: who looks, the GPUs, the jobs, the tenants, what happened last.
import { Cluster, get, Health, Job, pages, Refusal, Tenants } from "./api";
import { Grid } from "./grid";
import { Event, link, Stream } from "./live";
import { JobList, Patches, sorted } from "./patch";
import { Cell, Source } from "./store";

const MAX_JOBS = 5000; // rows of the queue that a page holds
const LONG = 300; // rows: with more, jobs that change are asked for one by one
const MAX_FEED = 40;
const POLL_MS = 2000;

export interface Session { health: Health; asked: boolean } // asked: the login form is open

export const session = new Cell<Session | null>(null);
export const unreachable = new Cell<string | null>(null);
export const grid = new Grid();
export const feed = new Cell<Event[]>([]); // the newest first
export const skew = { s: 0 }; // the daemon's clock minus ours

export function now(): number {
    return Date.now() / 1000 + skew.s;
}

export function you(): Health["you"] {
    return session.value?.health.you;
}

export function may(role: "operator" | "admin"): boolean {
    const r = you()?.role;
    return r === "admin" || (role === "operator" && r === "operator");
}

async function loadJobs(): Promise<JobList> {
    if (!you()) {
        const c = await loadCluster();
        return { running: c.running, waiting: c.waiting, more: c.jobs.total > c.running.length + c.waiting.length };
    }
    const began = performance.now(), { rows, more } = await pages<Job>("/v1/jobs", "jobs", MAX_JOBS);
    return patches.over(sorted(rows, more), began);
}

async function loadCluster(): Promise<Cluster> {
    const c = await get<Cluster>("/v1/cluster");
    skew.s = c.now - Date.now() / 1000;
    return c;
}

export const jobs = new Source<JobList>(loadJobs, 5000);
const patches = new Patches(() => jobs.data.value, (l) => jobs.data.set(l));

function isLong(l: JobList | null): boolean {
    return l !== null && l.running.length + l.waiting.length > LONG;
}
export const tenants = new Source<Tenants>(() => get("/v1/tenants"), 10000);

/** Others that want to hear of every event: the page of a job, a timeline. */
export const listeners = new Set<(e: Event) => void>();

function happened(e: Event): void {
    grid.take(e);
    if (e.type !== "set" && e.type !== "advise" && e.type !== "alert") feed.set([e, ...feed.value].slice(0, MAX_FEED));
    jobs.touch();
    if (e.job && isLong(jobs.data.value)) patches.add(e.job);
    tenants.touch();
    for (const f of [...listeners]) f(e);
}

function everything(): void {
    void grid.load().catch(() => undefined);
    jobs.touch();
    tenants.touch();
}

const stream = new Stream({ event: happened, gap: everything, refused: () => void begin() });

let poll: number | undefined, later: number | undefined;

/** Without a login: the glance, again and again. */
async function glance(): Promise<void> {
    try {
        grid.fromCluster(await loadCluster());
        if (link.value.state !== "live") link.set({ state: "live", since: Date.now() });
        jobs.touch();
    } catch (e) {
        if (link.value.state !== "stale") link.set({ state: "stale", since: Date.now(), text: (e as Error).message });
    }
}

/** The last event that was heard of. */
export function heard(): number {
    return Math.max(stream.last, session.value?.health.seq ?? 0);
}

let begun = 0;

/** Anew: at first, when somebody logs in or out, when a token is no longer good. One that was under way ends without a word. */
export async function begin(): Promise<void> {
    const mine = ++begun, over = () => mine !== begun;
    stream.stop();
    window.clearInterval(poll);
    window.clearTimeout(later);
    grid.measure(false);
    try {
        const health = await get<Health>("/v1/health");
        if (over()) return;
        skew.s = health.now - Date.now() / 1000;
        unreachable.set(null);
        session.set({ health, asked: false });
        if (!health.you) {
            await glance();
            if (over()) return;
            poll = window.setInterval(() => document.hidden || void glance(), POLL_MS);
            return;
        }
        await grid.load();
        if (over()) return;
        grid.measure(!health.virtual);
        stream.start(health.seq);
        jobs.touch();
        tenants.touch();
    } catch (e) {
        if (over()) return;
        if (e instanceof Refusal && e.status === 401) { // not on this machine: nothing is seen without a login
            session.set({ health: { status: "ok", trouble: null, version: "", policy: "", now: now(), up_s: 0, seq: 0, jobs: 0, virtual: false }, asked: true });
            return;
        }
        unreachable.set((e as Error).message);
        later = window.setTimeout(() => void begin(), 2000);
    }
}

export function askLogin(open: boolean): void {
    if (session.value) session.set({ ...session.value, asked: open });
}
