// SPDX-License-Identifier: Apache-2.0
// tail.ts - a job's output as it grows. A connection that breaks, for instance because the daemon is
// restarted, is made again, and the output goes on at the byte where it was: Stoker-Offset and the bytes
// of the answer together are where the next byte is. Where bytes were left out (log_max_mib) the daemon
// breaks the answer off, and the head of the next one says where it goes on.
import { request } from "./session";

const FIRST_MS = 250, LAST_MS = 4000;

export interface TailEvents {
    text(more: string): void; // more of the output
    state(s: "live" | "reconnecting"): void;
    end(why: string | null): void; // the output is complete (null), or was refused
}

/** The last `lines` lines, then what comes, until the output is complete, refused, or `signal` says stop. */
export async function tail(path: string, lines: number, signal: AbortSignal, on: TailEvents): Promise<void> {
    const decoder = new TextDecoder();
    let offset: number | null = null, inside = false, tries = 0;
    while (!signal.aborted) {
        let came = false;
        try {
            const r = await request(`${path}&follow=1&counts=${inside ? "inside" : "line"}&${offset === null ? `tail=${lines}` : `offset=${offset}`}`, { signal });
            if (r.status >= 400 && r.status < 500) return on.end((await r.json().catch(() => null))?.error?.message ?? `the daemon answered ${r.status}`);
            if (!r.ok || !r.body) throw new Error(`the daemon answered ${r.status}`);
            offset = Number(r.headers.get("Stoker-Offset") ?? 0);
            tries = 0;
            on.state("live");
            for (const reader = r.body.getReader(); ;) {
                const { done, value } = await reader.read();
                if (done) return on.end(null);
                offset += value.length;
                inside = value[value.length - 1] !== 10;
                came = true;
                on.text(decoder.decode(value, { stream: true }));
            }
        } catch {
            if (signal.aborted) return;
            if (came) continue;
            on.state("reconnecting");
            await new Promise((again) => window.setTimeout(again, Math.min(LAST_MS, FIRST_MS * 2 ** tries++)));
        }
    }
}
