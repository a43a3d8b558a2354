// SPDX-License-Identifier: Apache-2.0
// api.ts - asking the daemon. Shapes are those of /openapi.json, as far as the pages use them; what an
// older daemon does not say is optional.

import { Given, keep, request } from "./session";

export type Time = number | null;

export interface Share { job: number; user: string; tenant?: string | null; gpus: number; mem_mib: number | null; share: string;
    array_id?: number | null; array_index?: number | null }

export interface Gpu { index: number; node: string; name: string; state: "busy" | "free" | "off" | "drained"; draining?: boolean; off?: string;
    mem_mib: number | null; job: number | null; user: string | null; tenant?: string | null; job_name?: string;
    array_id?: number | null; array_index?: number | null; shares?: Share[]; left?: number;
    util?: number; mem_util?: number; mem_used_mib?: number; power_w?: number; temp_c?: number;
    foreign?: { pid: number; user?: string; command?: string; mem_mib?: number }[]; last?: string }

export interface Node { name: string; state: "up" | "down" | "drained"; pool: string; rack: number | null; gpu_type: string; gpus: number; gpus_busy: number;
    gpus_free: number; gpus_drained: number; cpus: number | null; cpus_free: number | null; mem_mib: number | null; mem_free_mib: number | null }

export interface Reason { code: string; sentence: string; need: number; have: number; missing: number; off: number; other: number | null; until: Time }

export interface Efficiency { gpu_hours?: number | null; money?: number | null; kwh?: number | null; currency?: string | null; util?: number | null;
    mem_used_max_mib?: number | null; gpus_idle?: number | null; verdict?: string; advice?: string | null }

export interface Job { id: number; name: string; user: string; uid: number; queue: string; tenant: string | null; state: string; state_text: string; kind: string;
    gpus: number; tasks: number; submitted: number; started: Time; ended: Time; cause: string | null; exit_code: number | null; signal: number | null;
    run_s: number; waited_s: number; restarts: number; preemptions: number; array_id: number | null; array_index: number | null; comment: string; note: string | null;
    priority?: number; tier?: string; estimate_s?: number; gpu_indices?: number[]; node?: string | null; pieces?: { node: string; gpu_indices: number[] }[]; expected_end?: Time; reason?: Reason;
    start_p50?: Time; start_p90?: Time; end_p50?: Time; start_pieces?: { node: string; gpu_indices: number[] }[]; position?: number | null; deadline?: { at: number; answer: string; margin_s: number | null; earliest: Time };
    progress?: { step?: number; total?: number; metrics?: Record<string, number>; at?: number; checkpoint?: unknown };
    slurm?: { id: string; job?: number; state?: string }; // where Slurm runs it
    warning?: string; turn?: { text: string }; time_limit_s?: number | null; efficiency?: Efficiency;
    cpus?: number | null; cpus_default?: boolean;
    part?: { gpus: number; mem_mib: number | null; share: string; mig: string | null };
    command?: string[] | string; script?: string; args?: string[]; workdir?: string; stdout?: string; stderr?: string;
    items?: { total: number; todo: number; given: number; done: number; failed: number } }

export interface Why { id: number; state: string; code: string; sentence: string; change: string | null; expected: Time; start_p50?: Time; start_p90?: Time;
    holders: { id: number; array_id?: number | null; array_index?: number | null; user?: string; tenant?: string | null; gpus: number; expected_end: Time; borrowed?: number }[];
    reasons: { code: string; sentence: string }[]; changes: { kind: string; sentence: string; command: string; evicts: number }[] }

export interface Health { status: string; trouble: string | null; version: string; policy: string; now: number; up_s: number; seq: number; jobs: number; virtual: boolean;
    you?: { user: string; uid: number; role: "user" | "operator" | "admin" } }

export interface Cluster { version: string; policy: string; virtual: boolean; now: number; seq: number; nodes: number;
    jobs: { total: number; running: number; waiting: number; blocked: number; held: number; stopping: number };
    gpus: { total: number; busy: number; free: number; off: number; drained: number }; gpu_list: Gpu[]; running: Job[]; waiting: Job[] }

export interface Tenant { name: string; parent: string | null; leaf: boolean; users: string[]; mine: boolean; limit: number | null; guarantee: number | null; weight: number;
    used: number; borrowed: number; due: number; waiting: number; jobs_running: number; jobs_waiting: number }

export interface Lending { from: string; to: string; gpu_type: string | null; gpus: number }
export interface Tenants { tenants: Tenant[]; price?: { gpu_hour: number | null; currency: string }; lending?: Lending[]; lending_cut?: boolean }

export class Refusal extends Error {
    constructor(public status: number, public code: string, message: string) {
        super(message);
    }
}

async function read(r: Response): Promise<unknown> {
    if (r.ok) return r.json();
    let code = "http", message = `the daemon answered ${r.status}`;
    try {
        const e = (await r.json()).error;
        code = e.code;
        message = e.message;
    } catch { /* not ours: the status says it */ }
    throw new Refusal(r.status, code, message);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await read(await request(path, { signal }))) as T;
}

export async function send<T>(method: "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
    return (await read(await request(path, { method, body: body === undefined ? undefined : JSON.stringify(body) }))) as T;
}

/** Every row of a paged list, up to `most`. */
export async function pages<T>(path: string, name: string, most: number): Promise<{ rows: T[]; more: boolean }> {
    const rows: T[] = [];
    let after: number | null = 0;
    while (after !== null && rows.length < most) {
        const page: Record<string, unknown> = await get(`${path}${path.includes("?") ? "&" : "?"}limit=1000&after=${after}`);
        rows.push(...(page[name] as T[]));
        after = page.next as number | null;
    }
    return { rows, more: after !== null };
}

/** Logs this browser in: half of the session is in the answer, the other in a cookie that scripts cannot read. */
export async function logIn(how: Given): Promise<void> {
    keep((await send<{ session: string }>("POST", "/v1/login", how)).session);
}

export async function logOut(): Promise<void> {
    await send("POST", "/v1/logout").catch(() => undefined); // without a session it is over here in any case
    keep(null);
}
