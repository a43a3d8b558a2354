// SPDX-License-Identifier: Apache-2.0
// live.ts - the stream of events. Read with fetch rather than EventSource: this way beats of the
// stream are seen, so that a dead connection is noticed, and a refusal has a status.
//
// After a break it comes back by itself, later and later up to a limit, and goes on behind the last
// event it had: nothing is missed. What is shown meanwhile is stale, and since when is known.
import { request } from "./session";
import { Cell, Source } from "./store";

export interface Event { seq?: number; at: number; type: string; job: number | null; [more: string]: unknown }
export interface Link { state: "connecting" | "live" | "stale" | "off"; since: number; text?: string }

const BEAT_MS = 40000; // the daemon sends something every 15 s
const FIRST_MS = 250, LAST_MS = 5000;

export const link = new Cell<Link>({ state: "connecting", since: Date.now() });

/** Nothing comes from the daemon any more; the first such word is kept, with its time. */
export function goStale(text: string): void {
    if (link.value.state !== "stale") link.set({ state: "stale", since: Date.now(), text });
}

export class Stream {
    private seq = 0;
    private tries = 0;
    private abort: AbortController | null = null;
    private timer: number | undefined;
    private watch: number | undefined;

    /** onRefused: the token is no longer good. onGap: events were lost; read everything again. */
    constructor(private on: { event(e: Event): void; gap(): void; refused(): void }) {
        window.addEventListener("online", () => this.timer !== undefined && this.soon(0)); // a try is due: now
    }

    start(after: number): void {
        this.stop();
        this.seq = after;
        this.tries = 0;
        void this.run();
    }

    stop(): void {
        window.clearTimeout(this.timer);
        window.clearTimeout(this.watch);
        this.timer = undefined;
        this.abort?.abort();
        this.abort = null;
    }

    get last(): number {
        return this.seq;
    }

    private soon(ms: number): void {
        window.clearTimeout(this.timer);
        this.timer = window.setTimeout(() => void this.run(), ms);
    }

    private broken(text: string): void {
        goStale(text);
        const ms = Math.min(LAST_MS, FIRST_MS * 2 ** this.tries++);
        this.soon(ms * (0.75 + Math.random() / 2));
    }

    private beat(abort: AbortController): void {
        window.clearTimeout(this.watch);
        this.watch = window.setTimeout(() => abort.abort(), BEAT_MS);
    }

    private async run(): Promise<void> {
        const abort = new AbortController();
        this.abort?.abort();
        this.abort = abort;
        this.timer = undefined;
        this.beat(abort);
        try {
            const r = await request(`/v1/events?after=${this.seq}`, { signal: abort.signal });
            if (r.status === 401 || r.status === 403) {
                this.stop();
                this.on.refused();
                return;
            }
            if (!r.ok || !r.body) throw new Error(`the daemon answered ${r.status}`);
            this.live();
            await this.read(r.body.getReader(), abort);
            throw new Error("the daemon has closed the stream");
        } catch (e) {
            if (this.abort === abort) this.broken((e as Error).message);
        }
    }

    /** The daemon answers. What pages show and could not load meanwhile is loaded again. */
    private live(): void {
        const back = link.value.state === "stale";
        this.tries = 0;
        if (link.value.state !== "live") link.set({ state: "live", since: Date.now() });
        if (back) Source.touchAll();
    }

    private async read(reader: ReadableStreamDefaultReader<Uint8Array>, abort: AbortController): Promise<void> {
        const decoder = new TextDecoder();
        let text = "";
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            this.beat(abort);
            text += decoder.decode(value, { stream: true });
            const end = text.lastIndexOf("\n\n");
            if (end < 0) continue;
            for (const block of text.slice(0, end).split("\n\n")) this.take(block);
            text = text.slice(end + 2);
        }
    }

    private take(block: string): void {
        let type = "", data = "";
        for (const line of block.split("\n")) {
            if (line.startsWith("event: ")) type = line.slice(7);
            else if (line.startsWith("data: ")) data = line.slice(6);
        }
        if (!data) return; // a beat
        const e = JSON.parse(data) as Event & { next?: number };
        if (type === "gap") {
            this.seq = Math.max(0, (e.next ?? 1) - 1);
            this.on.gap();
        } else if (type !== "stopping") {
            if (e.seq) this.seq = e.seq;
            this.on.event({ ...e, type });
        }
    }
}
