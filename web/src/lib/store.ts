// SPDX-License-Identifier: Apache-2.0
// store.ts - values that pages follow. A Cell holds one; a Source is a Cell that is loaded from the
// daemon and loaded again when something has happened.
//
// A Source works only while a page shows it. It leaves the daemon alone most of the time: the pause
// after a load is several times as long as the load took, so that a large cluster with many viewers
// costs a bounded part of the daemon's time.
import { useEffect, useLayoutEffect, useReducer } from "preact/hooks";
import { Refusal } from "./api";

export class Cell<T> {
    private readers = new Set<() => void>();
    constructor(public value: T) {}
    set(value: T): void {
        this.value = value;
        this.changed();
    }
    changed(): void {
        for (const f of [...this.readers]) f();
    }
    follow(f: () => void): () => void {
        this.readers.add(f);
        return () => this.readers.delete(f);
    }
    use(): T {
        const [, again] = useReducer((n: number, _: void) => n + 1, 0);
        useLayoutEffect(() => this.follow(again as () => void), [this]); // before anything else runs: no change is missed
        return this.value;
    }
}

const GAP_MS = 120; // between two loads, at least
const DUTY = 6; // a pause is so many times as long as the load was

/** What loads take: the shorter of the last two, so that a hiccup of the machine is not taken for a cost of the daemon. */
export class Pace {
    private before = Infinity;
    constructor(private gapMs: number, private duty: number) {}
    /** After a load that took so long: when the next may begin. */
    next(took: number): number {
        const cost = Math.min(took, this.before);
        this.before = took;
        return performance.now() + Math.max(this.gapMs, this.duty * cost);
    }
}

export class Source<T> {
    readonly data = new Cell<T | null>(null);
    readonly error = new Cell<Refusal | Error | null>(null);
    private static shown = new Set<Source<unknown>>();
    private users = 0;
    private timer: number | undefined;
    private every: number | undefined;
    private due = 0; // when the next load may begin
    private busy = false;
    private wanted = false;
    private pace = new Pace(GAP_MS, DUTY);

    /** everyMs: loaded again that often even when nothing has happened; 0: not. */
    constructor(private load: () => Promise<T>, private everyMs: number) {}

    /** The daemon was away: whatever is shown is loaded again. */
    static touchAll(): void {
        for (const s of [...Source.shown]) s.touch();
    }

    /** Something has happened. */
    touch(): void {
        this.wanted = true;
        if (this.users === 0 || this.busy || this.timer !== undefined) return;
        this.timer = window.setTimeout(() => {
            this.timer = undefined;
            void this.now();
        }, Math.max(0, this.due - performance.now()));
    }

    private async now(): Promise<void> {
        const began = performance.now();
        this.busy = true;
        this.wanted = false;
        try {
            this.data.set(await this.load());
            if (this.error.value) this.error.set(null);
        } catch (e) {
            this.error.set(e as Error);
        }
        this.busy = false;
        this.due = this.pace.next(performance.now() - began);
        if (this.wanted) this.touch();
    }

    use(): T | null {
        useEffect(() => {
            this.users++;
            Source.shown.add(this as Source<unknown>);
            this.touch();
            if (this.users === 1 && this.everyMs)
                this.every = window.setInterval(() => document.hidden || this.touch(), this.everyMs);
            return () => {
                if (--this.users === 0) {
                    Source.shown.delete(this as Source<unknown>);
                    window.clearInterval(this.every);
                    window.clearTimeout(this.timer);
                    this.timer = undefined;
                }
            };
        }, [this]);
        this.error.use();
        return this.data.use();
    }
}

/** Renders again every so often: for "since 3 min". */
export function useTick(ms: number): void {
    const [, again] = useReducer((n: number, _: void) => n + 1, 0);
    useEffect(() => {
        const t = window.setInterval(() => document.hidden || (again as () => void)(), ms);
        return () => window.clearInterval(t);
    }, [ms]);
}
