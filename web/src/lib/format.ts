// SPDX-License-Identifier: Apache-2.0
// format.ts - numbers and times for people.

export function span(s: number): string {
    s = Math.max(0, s);
    if (s < 1) return "0 s";
    if (s < 120) return `${Math.floor(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Seconds since 1970 as a clock time; with the day when it is not today. */
export function clock(t: number, now = Date.now() / 1000): string {
    const d = new Date(t * 1000), same = new Date(now * 1000).toDateString() === d.toDateString();
    const hm = d.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    return same ? hm : `${d.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${hm}`;
}

export function clockSeconds(t: number): string {
    return new Date(t * 1000).toLocaleTimeString("en-GB");
}

export function full(t: number): string {
    return new Date(t * 1000).toLocaleString("en-GB");
}

/** 0.25, 3, 12.5: no more digits than mean something. */
export function amount(n: number): string {
    return Number.isInteger(n) ? n.toLocaleString("en-US") : n.toLocaleString("en-US", { maximumFractionDigits: n < 10 ? 2 : 1 });
}

export function money(n: number, currency?: string | null): string {
    return `${n.toLocaleString("en-US", { minimumFractionDigits: n < 1000 ? 2 : 0, maximumFractionDigits: n < 1000 ? 2 : 0 })}${currency ? ` ${currency}` : ""}`;
}

export function percent(x: number): string {
    return `${Math.round(x * 100)} %`;
}

export function gib(mib: number): string {
    return mib >= 10240 ? `${Math.round(mib / 1024)} GiB` : mib >= 1024 ? `${(mib / 1024).toFixed(1)} GiB` : `${Math.round(mib)} MiB`;
}

export function watts(w: number): string {
    return w >= 10000 ? `${(w / 1000).toFixed(1)} kW` : `${Math.round(w).toLocaleString("en-US")} W`;
}

export function plural(n: number, one: string, many = one + "s"): string {
    return `${amount(n)} ${n === 1 ? one : many}`;
}

/** Elements of an array are called by it, as everywhere. */
export function jobName(o: { array_id?: number | null; array_index?: number | null }, number: number): string {
    return o.array_id ? `${o.array_id}_${o.array_index}` : String(number);
}

/** 0-3, 6 */
export function ranges(list: number[]): string {
    const s = [...list].sort((a, b) => a - b), out: string[] = [];
    for (let i = 0; i < s.length; ) {
        let k = i;
        while (k + 1 < s.length && s[k + 1] === s[k] + 1) k++;
        out.push(k - i > 1 ? `${s[i]}-${s[k]}` : s.slice(i, k + 1).join(", "));
        i = k + 1;
    }
    return out.join(", ");
}

/** Where a job runs: its node and GPUs, or how many nodes. */
export function place(j: { node?: string | null; gpu_indices?: number[]; pieces?: { node: string }[] }): string {
    const list = j.gpu_indices ?? [], nodes = j.pieces ? new Set(j.pieces.map((p) => p.node)).size : 1;
    if (nodes > 1) return `${j.node} and ${plural(nodes - 1, "other node")}`;
    if (new Set(list).size < list.length) return `${j.node} and others`;
    return `${j.node ?? ""}${list.length ? ` ${ranges(list)}` : ""}`;
}

/** A length of time in one number, to be put beside another: 45 s, 12.5 min, 4.1 h, 3.2 d. */
export function duration(s: number): string {
    const n = (x: number, unit: string) => `${x < 10 && x > 0 ? x.toFixed(1) : Math.round(x)} ${unit}`;
    if (s < 100) return n(s, "s");
    if (s < 5400) return n(s / 60, "min");
    return s < 172800 ? n(s / 3600, "h") : n(s / 86400, "d");
}

/** A part of all, with a digit where it matters: 4.2 %, 61 %. */
export function share(x: number): string {
    return x > 0 && x < 0.1 ? `${(x * 100).toFixed(1)} %` : percent(x);
}

/** A day, with the time when it is not midnight and the year when it is not this one. */
export function day(t: number): string {
    const d = new Date(t * 1000), date = d.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(d.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" }) });
    return d.getHours() || d.getMinutes() ? `${date} ${d.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}` : date;
}

/** Seconds since 1970 as an input of a date and time has them, and back; NaN when it is none. */
export function toInput(t: number): string {
    const d = new Date(t * 1000), two = (x: number) => String(x).padStart(2, "0");
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`;
}

export function fromInput(text: string): number {
    return new Date(text).getTime() / 1000;
}
