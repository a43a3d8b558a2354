// SPDX-License-Identifier: Apache-2.0
// past.ts - who was where when, out of the events of the journal. The stream is read once from some way
// back; what happens later is added as it comes.
import type { Event } from "./live";
import { request } from "./session";
import { Cell } from "./store";
import { heard, listeners, now } from "./world";

export interface Stay { job: number; node: string; gpus: number[]; from: number; to: number | null; how?: string } // to: null: still there

const BACK = 20000; // events

export class Past {
    readonly version = new Cell(0);
    stays: Stay[] = [];
    private open = new Map<number, Stay[]>();
    private stop = new AbortController();
    private news: Event[] | null = []; // what happened while the stream was read; null: it has been

    begin(): void {
        const seq = heard();
        listeners.add(this.take);
        void this.read(Math.max(0, seq - BACK), seq);
    }

    end(): void {
        this.stop.abort();
        listeners.delete(this.take);
    }

    private take = (e: Event): void => {
        if (this.news) this.news.push(e);
        else if (this.add(e)) this.version.set(this.version.value + 1);
    };

    private add(e: Event): boolean {
        if (!e.job) return false;
        if (e.type === "place") {
            const pieces = (e.pieces as { node: string; gpu_indices: number[] }[] | undefined) ?? [{ node: e.node as string, gpu_indices: (e.gpu_indices as number[]) ?? [] }];
            this.close(e.job, e.at, "placed again");
            const list = pieces.map((p) => ({ job: e.job as number, node: p.node, gpus: p.gpu_indices, from: e.at, to: null }));
            this.stays.push(...list);
            this.open.set(e.job, list);
            return true;
        }
        if (e.type === "exited" || e.type === "suspended") return this.close(e.job, e.at, e.type === "exited" ? (e.cause as string) : "suspended");
        return false;
    }

    private close(job: number, at: number, how: string): boolean {
        const list = this.open.get(job);
        for (const s of list ?? []) {
            s.to = at;
            s.how = how;
        }
        return this.open.delete(job);
    }

    /** Reads the stream up to an event that is known to be there, or for a little while. */
    private async read(after: number, seq: number): Promise<void> {
        const timer = window.setTimeout(() => this.stop.abort(), 20000), decoder = new TextDecoder();
        let text = "", last = after;
        try {
            const r = await request(`/v1/events?after=${after}`, { signal: this.stop.signal }), reader = r.body?.getReader();
            while (reader && last < seq) {
                const { done, value } = await reader.read();
                if (done) break;
                text += decoder.decode(value, { stream: true });
                const blocks = text.split("\n\n");
                text = blocks.pop() as string;
                for (const b of blocks) {
                    const data = /^data: (.*)$/m.exec(b)?.[1];
                    if (!data) continue;
                    const e = JSON.parse(data) as Event & { next?: number };
                    if (e.seq) last = e.seq;
                    else if (e.next) last = e.next - 1;
                    if (e.type) this.add(e);
                }
                if (last >= seq - 1) break; // the newest may be a tick, which is not sent
            }
            await reader?.cancel();
        } catch { /* what is known is shown */ }
        window.clearTimeout(timer);
        for (const e of this.news ?? []) if (!e.seq || e.seq > last) this.add(e);
        this.news = null;
        this.stays = this.stays.filter((s) => (s.to ?? now()) > now() - 7 * 86400);
        this.version.set(this.version.value + 1);
    }
}
