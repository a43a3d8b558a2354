// SPDX-License-Identifier: Apache-2.0
// world.ts - what all pages share: who looks, the GPUs, the jobs, the tenants, what happened last.
import { Cluster, get, Health, Job, logIn, pages, Refusal, Tenants } from "./api";
import { setTenants } from "./colour";
import { Grid } from "./grid";
import { Event, goStale, link, Stream } from "./live";
import { inLine, JobList, Patches, sorted } from "./patch";
import { fromAddress, has, keep, onChange } from "./session";
import { Cell, Source } from "./store";

const MAX_JOBS = 5000; // rows of the queue that a page holds
const LONG = 300; // rows: with more, jobs that change are asked for one by one
const MAX_FEED = 40;
const POLL_MS = 2000, SOON_MS = 250;

/** asked: the login form is open, with what was wrong; ended: who was logged in is not any more; closed: nothing is seen without a login. */
export interface Session { health: Health; asked: boolean; wrong?: string; ended?: boolean; closed?: boolean }

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
        return { running: c.running, waiting: inLine(c.waiting), more: c.jobs.total > c.running.length + c.waiting.length };
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
async function loadTenants(): Promise<Tenants> {
    const t = await get<Tenants>("/v1/tenants");
    setTenants(t.tenants.map((x) => x.name));
    return t;
}
export const tenants = new Source<Tenants>(loadTenants, 10000);

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
        if (e instanceof Refusal && e.status === 401) return close();
        goStale((e as Error).message);
    }
}

const NOTHING: Health = { status: "ok", trouble: null, version: "", policy: "", now: 0, up_s: 0, seq: 0, jobs: 0, virtual: false };

/** Who is not logged in sees nothing here: beyond the daemon's own machine. */
function close(): void {
    const ended = wasIn();
    window.clearInterval(poll);
    link.set({ state: "off", since: Date.now() });
    session.set({ health: NOTHING, asked: false, ended, closed: true });
    keep(null);
}

/** A session of this browser, of this tab or another, has ended. */
function wasIn(): boolean {
    return has() || you() !== undefined || session.value?.ended === true;
}

/** The last event that was heard of. */
export function heard(): number {
    return Math.max(stream.last, session.value?.health.seq ?? 0);
}

let begun = 0;

/** Anew: at first, when somebody logs in or out, when a token is no longer good. One that was under way ends without a word. */
export async function begin(): Promise<void> {
    const mine = ++begun, over = () => mine !== begun;
    let known = false;
    stream.stop();
    window.clearInterval(poll);
    window.clearTimeout(later);
    grid.measure(false);
    try {
        const health = await get<Health>("/v1/health");
        if (over()) return;
        skew.s = health.now - Date.now() / 1000;
        unreachable.set(null);
        known = health.you !== undefined;
        const ended = !known && wasIn();
        session.set({ health, asked: false, ended });
        if (!health.you) {
            keep(null);
            await glance();
            if (over() || session.value?.closed) return;
            poll = window.setInterval(() => document.hidden || void glance(), POLL_MS);
            return;
        }
        await loadTenants().catch(() => undefined); // their colours, before anything is drawn
        await grid.load();
        if (over()) return;
        grid.measure(!health.virtual);
        stream.start(health.seq);
        jobs.touch();
        tenants.touch();
    } catch (e) {
        if (over()) return;
        const refused = e instanceof Refusal && e.status === 401;
        unreachable.set(refused ? null : (e as Error).message);
        if (refused && !known) return close();
        if (!refused && session.value) goStale((e as Error).message); // the page is drawn already: its head says that nothing comes
        later = window.setTimeout(() => void begin(), refused ? SOON_MS : POLL_MS); // refused: the session ended just now; what is left to see?
    }
}

export function askLogin(open: boolean, wrong?: string): void {
    if (session.value) session.set({ ...session.value, asked: open, wrong });
}

/** The first thing: logs in with what the address has, if anything. */
export async function enter(): Promise<void> {
    const how = fromAddress();
    let wrong: string | undefined;
    try {
        if (how) await logIn(how);
    } catch (e) {
        wrong = (e as Error).message;
    }
    await begin();
    if (wrong && !you()) askLogin(true, wrong);
}

/** The user logged out: no notice is needed. */
export async function leave(): Promise<void> {
    if (session.value) session.set({ ...session.value, health: { ...session.value.health, you: undefined }, ended: false });
    await begin();
}

onChange(() => void begin());
window.addEventListener("hashchange", () => location.hash.startsWith("#/login/") && void enter()); // a link that was opened in this tab
