// SPDX-License-Identifier: Apache-2.0
// history.ts - a file with somebody's past: read in the browser, looked at a little, and sent whole. The
// daemon reads it in earnest, and says what is wrong with it.

export interface History { name: string; text: string; bytes: number; rows: number; kind: string; tenants: string[] }

const MOST = 8 << 20; // bytes that the daemon takes
const MOST_PACKED = 64 << 20;
const MOST_TENANTS = 200;

/** Unpacks gzip as far as it may be long. */
async function unpacked(file: File): Promise<ArrayBuffer> {
    const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
    if (head[0] !== 0x1f || head[1] !== 0x8b) return file.arrayBuffer();
    const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader(), parts: Uint8Array[] = [];
    for (let n = 0; n <= MOST; ) {
        const { done, value } = await reader.read();
        if (done) break;
        parts.push(value);
        n += value.length;
    }
    await reader.cancel();
    return new Blob(parts as BlobPart[]).arrayBuffer();
}

function unlike(s: Set<string>, x: string | undefined): void {
    if (x && s.size < MOST_TENANTS) s.add(x);
}

/** Which format it looks like, and whose jobs are in it. */
function look(lines: string[]): { kind: string; tenants: string[]; rows: number } {
    const first = lines.find((l) => l.trim()) ?? "", found = new Set<string>();
    if (first.includes("|") && /(^|\|)jobid(raw)?(\||$)/i.test(first)) {
        const columns = first.toLowerCase().split("|"), at = columns.includes("account") ? columns.indexOf("account") : columns.indexOf("user"), rows = lines.slice(lines.indexOf(first) + 1).filter((l) => l.includes("|"));
        if (at >= 0) for (const l of rows) unlike(found, l.split("|")[at]);
        return { kind: "sacct", tenants: [...found].sort(), rows: rows.length };
    }
    if (first.startsWith("{")) {
        const rows = lines.filter((l) => l.startsWith("{"));
        for (const l of rows) unlike(found, /"tenant"\s*:\s*"([^"\\]+)"/.exec(l)?.[1]);
        return { kind: "stoker's export", tenants: [...found].sort(), rows: rows.length };
    }
    if (first.startsWith(";") || first.trim().split(/\s+/).length === 18) {
        const rows = lines.filter((l) => l.trim() && !l.startsWith(";"));
        for (const l of rows) unlike(found, `user-${l.trim().split(/\s+/)[11]}`);
        return { kind: "SWF", tenants: [...found].sort(), rows: rows.length };
    }
    return { kind: "", tenants: [], rows: lines.filter((l) => l.trim()).length };
}

export async function readHistory(file: File): Promise<History> {
    if (file.size > MOST_PACKED) throw new Error(`${file.name} is larger than 64 MiB. stoker sim reads it on the command line.`);
    let data: ArrayBuffer;
    try {
        data = await unpacked(file);
    } catch (e) {
        throw new Error(`${file.name} cannot be read: ${(e as Error).message}`);
    }
    if (data.byteLength > MOST) throw new Error(`${file.name} has more than 8 MiB of text. Take a shorter period of it, or try it with: stoker sim ${file.name} --recorded --compare default,easy,fifo`);
    let text: string;
    try {
        text = new TextDecoder("utf-8", { fatal: true }).decode(data);
    } catch {
        throw new Error(`${file.name} is not a text file.`);
    }
    if (!text.trim()) throw new Error(`${file.name} is empty.`);
    return { name: file.name, text, bytes: data.byteLength, ...look(text.split("\n")) };
}
