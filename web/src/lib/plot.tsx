// SPDX-License-Identifier: Apache-2.0
// plot.tsx - lines over time (uPlot), in the colours of the page. The same numbers are in words beside
// it: a plot is never the only place where something is said.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../theme";

export interface Line { label: string; colour: string; values: (number | null)[]; fill?: boolean; dash?: boolean; step?: boolean }

export interface Series { since: number; until: number; step_s: number; series: Record<string, unknown>[] }

/** The times of the points: each is the mean of the step that begins there. */
export function times(s: Series, n: number): number[] {
    return Array.from({ length: n }, (_, i) => s.since + (i + 0.5) * s.step_s);
}

export function column(s: Series, i: number, name: string): (number | null)[] {
    return (s.series[i]?.[name] as (number | null)[] | undefined) ?? [];
}

export function hasData(v: (number | null)[]): boolean {
    return v.some((x) => x !== null && x !== undefined);
}

/** From where something is known on: a plot does not begin with nothing. */
export function known<T extends { at: number[]; lines: Line[] }>(p: T): T {
    const first = Math.min(...p.lines.map((l) => l.values.findIndex((x) => x !== null)).map((i) => (i < 0 ? p.at.length : i))), from = Math.max(0, Math.min(first, p.at.length - 6));
    return { ...p, at: p.at.slice(from), lines: p.lines.map((l) => ({ ...l, values: l.values.slice(from) })) };
}

/** As much of a time as tells the ticks apart. */
function stamp(t: number, range: number): string {
    const d = new Date(t * 1000);
    if (range > 36 * 3600 && d.getHours() === 0) return d.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    return d.toLocaleTimeString("en-GB", range < 600 ? {} : { hour: "2-digit", minute: "2-digit" });
}

/** Labels that say the same as the one before them are left out. */
function unlike(list: string[]): string[] {
    return list.map((x, i) => (x === list[i - 1] ? "" : x));
}

const INCRS = [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((e) => [1, 2, 5].map((x) => Number((x * 10 ** e).toPrecision(1)))); // no quarters: half a GPU says something, 7.5 on an axis does not

/** As many digits as tell the ticks apart. */
function digits(step: number): number {
    let n = 0;
    while (n < 4 && Math.abs(step * 10 ** n - Math.round(step * 10 ** n)) > 1e-6) n++;
    return n;
}

/** A line of one or two points would not be seen. */
function few(u: uPlot, i: number): boolean {
    return (u.data[i] as (number | null)[]).filter((x) => x !== null && x !== undefined).length < 3;
}

function options(width: number, height: number, lines: Line[], unit: string, max: number | undefined, least: number, whole: boolean, onSelect?: (from: number, to: number) => void): uPlot.Options {
    const css = getComputedStyle(document.documentElement), v = (n: string) => css.getPropertyValue(n).trim(), font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: v("--dim"), font, grid: { stroke: v("--line"), width: 1 }, ticks: { show: false } };
    return {
        width, height, cursor: { y: false, points: { size: 6 }, ...(onSelect && { drag: { x: true, y: false, setScale: false } }) },
        hooks: onSelect && { setSelect: [(u) => u.select.width > 4 && onSelect(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"))] },
        legend: { show: lines.length > 1 && lines.length <= 16, live: false, markers: { fill: (_u, i) => lines[i - 1]?.colour ?? "transparent", width: 0 } }, padding: [8, 28, 0, 0],
        scales: { y: { range: (_u, _a, b) => [0, max ?? Math.max(least, (b || 1) * 1.1)] } },
        axes: [{ ...axis, size: 24, space: (_u, _i, from, to) => (to - from < 600 ? 72 : 56), values: (_u, list) => unlike(list.map((t) => stamp(t, list[list.length - 1] - list[0]))) },
            { ...axis, incrs: whole ? INCRS.filter((x) => x >= 1) : INCRS, size: (_u, list) => 14 + 6.2 * Math.max(2, ...(list ?? []).map((x) => x.length)), values: (_u, list, _i, _s, step) => list.map((x) => `${x >= 10000 ? `${x / 1000}k` : x.toFixed(digits(step))}${unit}`) }],
        series: [{ value: (_u, t) => (t === null ? "" : new Date(t * 1000).toLocaleTimeString("en-GB")) },
            ...lines.map((l): uPlot.Series => ({ label: l.label, stroke: l.colour, width: 1.5, dash: l.dash ? [4, 4] : undefined, fill: l.fill ? `${l.colour}22` : undefined, points: { show: few, size: 5, fill: l.colour }, spanGaps: false,
                paths: l.step ? uPlot.paths.stepped?.({ align: 1 }) : undefined, value: (_u, x) => (x === null ? "" : `${Math.round(x * 100) / 100}${unit}`) }))],
    };
}

/** whole: things that are counted. onSelect: a stretch of time was drawn over with the mouse. */
export function Plot(p: { label: string; at: number[]; lines: Line[]; unit?: string; max?: number; least?: number; height?: number; whole?: boolean; onSelect?(from: number, to: number): void }) {
    const ref = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null), selected = useRef(p.onSelect);
    selected.current = p.onSelect;
    theme.use();
    const shape = `${p.lines.map((l) => l.label + l.colour).join()}${theme.value}${document.documentElement.dataset.theme}${p.unit}`;
    useEffect(() => {
        const el = ref.current as HTMLDivElement;
        const make = () => {
            plot.current?.destroy();
            plot.current = el.clientWidth ? new uPlot(options(el.clientWidth, p.height ?? 150, p.lines, p.unit ?? "", p.max, p.least ?? 1e-9, p.whole ?? false, p.onSelect && ((a, b) => selected.current?.(a, b))), [p.at, ...p.lines.map((l) => l.values)] as uPlot.AlignedData, el) : null;
        };
        make();
        const watch = new ResizeObserver(() => (plot.current && el.clientWidth ? plot.current.setSize({ width: el.clientWidth, height: p.height ?? 150 }) : make()));
        watch.observe(el);
        return () => {
            watch.disconnect();
            plot.current?.destroy();
            plot.current = null;
        };
    }, [shape]);
    useEffect(() => plot.current?.setData([p.at, ...p.lines.map((l) => l.values)] as uPlot.AlignedData), [p.at, p.lines]);
    return <figure class="plot"><figcaption>{p.label}</figcaption><div ref={ref} role="img" aria-label={p.label} /></figure>;
}
