// SPDX-License-Identifier: Apache-2.0
// patch.ts - a long queue, kept up to date by what events say. All of it takes long to load, so it is
// loaded seldom; the jobs that an event names are asked for at once, and put into what is there. An
// answer that began before such a job was asked for does not put back what it was before.
import { get, Job, Refusal } from "./api";
import { Pace } from "./store";

export interface JobList { running: Job[]; waiting: Job[]; more: boolean }

const MOST = 24; // jobs asked for at once; where more change, the whole list says it
const GAP_MS = 150, DUTY = 3;
const RUNS = new Set(["starting", "running", "suspended", "stopping"]);

/** By place in line; those that have none (held, waiting for another job) come after them, oldest first. */
export function inLine(waiting: Job[]): Job[] {
    const place = (j: Job) => j.position ?? Infinity;
    return [...waiting].sort((a, b) => (place(a) === place(b) ? a.id - b.id : place(a) - place(b)));
}

export function sorted(rows: Job[], more: boolean): JobList {
    return { running: rows.filter((j) => RUNS.has(j.state)), waiting: inLine(rows.filter((j) => !RUNS.has(j.state))), more };
}

function put(list: JobList, news: Map<number, Job | null>): JobList {
    const seen = new Set<number>(), take = (j: Job): Job[] => {
        const n = news.get(j.id);
        seen.add(j.id);
        return n === undefined ? [j] : n === null ? [] : [{ ...j, ...n, reason: n.reason ?? j.reason }];
    };
    const old = [...list.running, ...list.waiting].flatMap(take), fresh = [...news].filter(([id, j]) => j && !seen.has(id)).map(([, j]) => j as Job);
    return sorted([...old, ...fresh], list.more);
}

export class Patches {
    private wanted = new Set<number>();
    private known = new Map<number, { at: number; job: Job | null }>(); // what was asked for since the last whole list
    private busy = false;
    private pace = new Pace(GAP_MS, DUTY);
    private due = 0;
    private timer: number | undefined;

    constructor(private now: () => JobList | null, private show: (l: JobList) => void) {}

    add(job: number): void {
        this.wanted.add(job);
        this.soon();
    }

    /** A whole list whose loading began at that time. */
    over(list: JobList, began: number): JobList {
        const news = new Map<number, Job | null>();
        for (const [id, k] of this.known)
            if (k.at >= began) news.set(id, k.job);
            else this.known.delete(id);
        return news.size ? put(list, news) : list;
    }

    private soon(): void {
        if (this.busy || this.timer !== undefined || !this.wanted.size) return;
        this.timer = window.setTimeout(() => {
            this.timer = undefined;
            void this.go();
        }, Math.max(0, this.due - performance.now()));
    }

    private async go(): Promise<void> {
        const began = performance.now(), ids = [...this.wanted], news = new Map<number, Job | null>();
        this.wanted.clear();
        this.busy = true;
        try {
            if (ids.length <= MOST)
                await Promise.all(ids.map(async (id) => {
                    const j = await get<Job>(`/v1/jobs/${id}`).catch((e: Error) => {
                        if (e instanceof Refusal && e.status === 404) return null;
                        throw e;
                    });
                    news.set(id, j?.state === "done" ? null : j);
                }));
            for (const [id, job] of news) this.known.set(id, { at: began, job });
            const list = this.now();
            if (list && news.size) this.show(put(list, news));
        } catch { /* the whole list comes again */ }
        this.busy = false;
        this.due = this.pace.next(performance.now() - began);
        this.soon();
    }
}
