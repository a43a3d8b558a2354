// SPDX-License-Identifier: Apache-2.0
// map.ts - the cluster on a canvas: where each GPU's cell is, and how it is drawn.
//
// Cells are as large as lets the whole cluster fit into about one screen: cards with words for a
// single server, squares for a rack, a few pixels each for ten thousand. A node is a block of cells,
// a rack a frame around its nodes, a pool a heading. Layout is done when the nodes or the width change;
// drawing is one pass over the cells.
import type { Gpu } from "./api";
import { heat, HEALTH, jobColour, nameColour } from "./colour";
import { gib, jobName } from "./format";
import type { Machine } from "./grid";

export type Mode = "tenant" | "job" | "util" | "health";

export interface Size { w: number; h: number; gap: number; label: number } // label: height of a node's name, 0: none

const SIZES: Size[] = [
    { w: 148, h: 88, gap: 8, label: 20 }, { w: 104, h: 68, gap: 6, label: 18 }, { w: 64, h: 52, gap: 5, label: 17 },
    { w: 42, h: 42, gap: 4, label: 16 }, { w: 32, h: 32, gap: 3, label: 15 }, { w: 24, h: 24, gap: 3, label: 14 }, { w: 18, h: 18, gap: 2, label: 0 },
    { w: 14, h: 14, gap: 2, label: 0 }, { w: 11, h: 11, gap: 1, label: 0 }, { w: 9, h: 9, gap: 1, label: 0 }, { w: 7, h: 7, gap: 1, label: 0 },
    { w: 6, h: 6, gap: 1, label: 0 }, { w: 5, h: 5, gap: 1, label: 0 },
];
const HEAD = 22; // of a pool
const RACK_LABEL = 15;

export interface Block { node: Machine; x: number; y: number; cols: number; w: number; h: number }
export interface Frame { text: string; x: number; y: number; w: number; h: number }
export interface Heading { text: string; y: number }
export interface Layout { size: Size; blocks: Block[]; frames: Frame[]; headings: Heading[]; width: number; height: number }

interface Cursor { x: number; y: number; row: number; width: number }

/** So many columns that no row is short, where that does not waste much. */
function even(n: number, most: number): number {
    for (let c = most; c > most / 2; c--) if (n % c === 0) return c;
    return most;
}

function blockSize(n: Machine, s: Size, width: number): { cols: number; w: number; h: number } {
    const fit = Math.max(1, Math.floor((width + s.gap) / (s.w + s.gap))), most = Math.max(1, Math.min(8, n.gpus, fit)), cols = even(n.gpus, most), rows = Math.ceil(n.gpus / cols);
    return { cols, w: cols * (s.w + s.gap) - s.gap, h: s.label + Math.max(1, rows) * (s.h + s.gap) - s.gap };
}

/** Puts a box into the flow: left to right, then the next row. */
function flow(c: Cursor, w: number, h: number, space: number): { x: number; y: number } {
    if (c.x > 0 && c.x + w > c.width) {
        c.x = 0;
        c.y += c.row + space;
        c.row = 0;
    }
    const at = { x: c.x, y: c.y };
    c.x += w + space;
    c.row = Math.max(c.row, h);
    return at;
}

function layRack(rack: Machine[], s: Size, width: number, c: Cursor, out: Layout): void {
    const pad = Math.max(4, s.gap * 2), inner = Math.max(3, s.gap), boxes = rack.map((n) => blockSize(n, s, width - 2 * pad));
    const tall = boxes[0].h > 2 * s.h + s.label, per = tall ? Math.max(1, Math.min(4, Math.floor((width - 2 * pad + inner) / (boxes[0].w + inner)))) : 1;
    const colW = Math.max(...boxes.map((b) => b.w)), w = Math.min(per, rack.length) * (colW + inner) - inner + 2 * pad;
    const heights: number[] = [];
    boxes.forEach((b, i) => (heights[Math.floor(i / per)] = Math.max(heights[Math.floor(i / per)] ?? 0, b.h)));
    const h = RACK_LABEL + heights.reduce((a, b) => a + b + inner, -inner) + 2 * pad, at = flow(c, w, h, Math.max(8, s.gap * 2));
    out.frames.push({ text: `rack ${rack[0].rack}`, x: at.x, y: at.y, w, h });
    let y = at.y + RACK_LABEL + pad;
    boxes.forEach((b, i) => {
        if (i > 0 && i % per === 0) y += heights[i / per - 1] + inner;
        out.blocks.push({ node: rack[i], x: at.x + pad + (i % per) * (colW + inner), y, ...b });
    });
}

function layWith(pools: Map<string, Machine[]>, s: Size, width: number): Layout {
    const out: Layout = { size: s, blocks: [], frames: [], headings: [], width, height: 0 };
    let y = 0;
    for (const [pool, nodes] of pools) {
        if (pools.size > 1) {
            out.headings.push({ text: pool, y });
            y += HEAD;
        }
        const c: Cursor = { x: 0, y, row: 0, width }, racks = new Map<string, Machine[]>();
        for (const n of nodes) {
            const key = n.rack === null ? `\0${n.name}` : String(n.rack), list = racks.get(key);
            if (list) list.push(n);
            else racks.set(key, [n]);
        }
        for (const rack of racks.values()) {
            if (rack[0].rack !== null) layRack(rack, s, width, c, out);
            else {
                const b = blockSize(rack[0], s, width), at = flow(c, b.w, b.h, Math.max(8, s.gap * 3));
                out.blocks.push({ node: rack[0], ...at, ...b });
            }
        }
        y = c.y + c.row + 16;
    }
    out.height = Math.max(60, y - 16);
    return out;
}

export function layOut(nodes: Machine[], width: number, height: number): Layout {
    const pools = new Map<string, Machine[]>();
    for (const n of nodes) {
        const list = pools.get(n.pool);
        if (list) list.push(n);
        else pools.set(n.pool, [n]);
    }
    let best: Layout | null = null;
    for (let s of SIZES) {
        if (nodes.length === 1 && s.w >= 100) { // the cards of a single server take all of the width
            const { cols } = blockSize(nodes[0], s, width);
            s = { ...s, w: Math.min(260, Math.floor((width + s.gap) / cols) - s.gap) };
        }
        best = layWith(pools, s, width);
        if (best.height <= height) break;
    }
    return best as Layout;
}

/** The row of the GPU at a place; -1: none. */
export function hit(l: Layout, x: number, y: number): number {
    const s = l.size;
    for (const b of l.blocks) {
        if (x < b.x || y < b.y + s.label || x >= b.x + b.w + s.gap || y >= b.y + b.h + s.gap) continue;
        const col = Math.floor((x - b.x) / (s.w + s.gap)), row = Math.floor((y - b.y - s.label) / (s.h + s.gap)), i = row * b.cols + col;
        if (col < b.cols && i < b.node.gpus) return b.node.first + i;
    }
    return -1;
}

// ---- drawing ----

export interface Ink { dark: boolean; text: string; dim: string; line: string; free: string; panel: string; warn: string; bad: string; accent: string; font: string }

export function health(g: Gpu): keyof typeof HEALTH {
    if (g.foreign?.length) return "foreign";
    if (g.state === "off") return "off";
    if (g.state === "drained" || g.draining) return "drained";
    return (g.temp_c ?? 0) >= 85 ? "hot" : "ok";
}

function who(x: { tenant?: string | null; user: string | null }): string {
    return x.tenant || x.user || "?";
}

/** What a cell is filled with: parts of the whole, with a colour each. */
export function fills(g: Gpu, mode: Mode, dark: boolean): { part: number; colour: string }[] {
    if (mode === "health") return [{ part: 1, colour: HEALTH[health(g)].colour }];
    if (mode === "util") return g.util === undefined ? [] : [{ part: 1, colour: heat(g.util / 100, dark) }];
    if (g.shares?.length)
        return g.shares.map((s) => ({ part: s.gpus, colour: mode === "job" ? jobColour(s.job) : nameColour(who(s)) }));
    if (g.job === null) return [];
    return [{ part: 1, colour: mode === "job" ? jobColour(g.job) : nameColour(who(g)) }];
}

function box(c: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, r: number): void {
    c.beginPath();
    c.roundRect(x, y, w, h, r);
}

function hatch(c: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, colour: string): void {
    c.save();
    c.beginPath();
    c.rect(x, y, w, h);
    c.clip();
    c.strokeStyle = colour;
    c.lineWidth = w > 20 ? 1.5 : 1;
    if (w >= 100) c.globalAlpha *= 0.28; // words are written over it
    c.beginPath();
    for (let d = -h; d < w; d += w > 20 ? 7 : 4) {
        c.moveTo(x + d, y + h);
        c.lineTo(x + d + h, y);
    }
    c.stroke();
    c.restore();
}

/** Out of use, used by others, about to be taken out: seen without colour too. */
function marks(c: CanvasRenderingContext2D, g: Gpu, x: number, y: number, s: Size, ink: Ink): void {
    if (g.state === "off" || g.state === "drained") hatch(c, x, y, s.w, s.h, g.state === "off" ? ink.bad : ink.dim);
    if (g.draining) {
        c.strokeStyle = ink.text;
        c.setLineDash([3, 2]);
        c.lineWidth = 1.5;
        c.strokeRect(x + 1, y + 1, s.w - 2, s.h - 2);
        c.setLineDash([]);
    }
    if (g.foreign?.length) {
        const t = Math.min(16, Math.max(4, s.w * 0.45));
        c.fillStyle = ink.warn;
        c.beginPath();
        c.moveTo(x + s.w - t, y);
        c.lineTo(x + s.w, y);
        c.lineTo(x + s.w, y + t);
        c.fill();
    }
}

function cut(c: CanvasRenderingContext2D, text: string, width: number): string {
    if (c.measureText(text).width <= width) return text;
    while (text.length > 1 && c.measureText(text + "…").width > width) text = text.slice(0, -1);
    return text + "…";
}

function says(g: Gpu): [string, string] {
    if (g.state === "off") return ["out of use", g.off ?? ""];
    if (g.state === "drained") return ["drained", ""];
    if (g.shares?.length === 1) return [g.job_name || `job ${jobName(g.shares[0], g.shares[0].job)}`, `${g.shares[0].gpus} of it · ${g.shares[0].user}`];
    if (g.shares?.length) return [`${g.shares.length} jobs share it`, g.shares.map((s) => jobName(s, s.job)).join(", ")];
    if (g.job !== null) return [g.job_name || `job ${jobName(g, g.job)}`, `job ${jobName(g, g.job)} · ${g.user ?? ""}`];
    return ["free", ""];
}

function card(c: CanvasRenderingContext2D, g: Gpu, x: number, y: number, s: Size, ink: Ink): void {
    const pad = 9, wide = s.w - 2 * pad, [first, second] = says(g);
    c.textBaseline = "alphabetic";
    c.fillStyle = ink.dim;
    c.font = `11px ${ink.font}`;
    c.fillText(`GPU ${g.index}`, x + pad, y + 18);
    if (g.util !== undefined) {
        c.textAlign = "right";
        c.fillText(`${Math.round(g.util)} %`, x + s.w - pad, y + 18);
        c.textAlign = "left";
    }
    c.fillStyle = g.job === null ? ink.dim : ink.text;
    c.font = `600 13px ${ink.font}`;
    c.fillText(cut(c, first, wide), x + pad, y + 37);
    c.fillStyle = ink.dim;
    c.font = `11px ${ink.font}`;
    if (s.h > 80) {
        c.fillText(cut(c, second, wide), x + pad, y + 53);
        const third = g.foreign?.length ? "processes that are no jobs" : g.mem_used_mib !== undefined && g.mem_mib ? `${gib(g.mem_used_mib)} of ${gib(g.mem_mib)}` : g.tenant ?? "";
        c.fillText(cut(c, third, wide), x + pad, y + 69);
    } else c.fillText(cut(c, second, wide), x + pad, y + 52);
}

function drawCard(c: CanvasRenderingContext2D, g: Gpu, x: number, y: number, s: Size, mode: Mode, ink: Ink): void {
    const parts = fills(g, mode, ink.dark), strip = 5;
    box(c, x + 0.5, y + 0.5, s.w - 1, s.h - 1, 5);
    c.fillStyle = ink.panel;
    c.fill();
    c.save();
    c.clip();
    if (mode === "util" && parts.length) parts[0].part = (g.util ?? 0) / 100; // as long as it is busy
    if (parts.length === 1) {
        c.globalAlpha = mode === "util" ? 0.35 : ink.dark ? 0.2 : 0.13;
        c.fillStyle = parts[0].colour;
        c.fillRect(x, y, s.w, s.h);
        c.globalAlpha = 1;
    }
    marks(c, g, x, y, s, ink);
    let at = x;
    c.fillStyle = ink.line;
    c.fillRect(x, y + s.h - strip, s.w, strip);
    for (const p of parts) {
        const w = Math.min(s.w - (at - x), p.part * s.w);
        c.fillStyle = p.colour;
        c.fillRect(at, y + s.h - strip, Math.max(1, w - (parts.length > 1 ? 1 : 0)), strip);
        at += w;
    }
    c.restore();
    box(c, x + 0.5, y + 0.5, s.w - 1, s.h - 1, 5);
    c.strokeStyle = ink.line;
    c.lineWidth = 1;
    c.stroke();
    card(c, g, x, y, s, ink);
}

function drawCell(c: CanvasRenderingContext2D, g: Gpu, x: number, y: number, s: Size, mode: Mode, ink: Ink): void {
    const parts = fills(g, mode, ink.dark), round = s.w >= 18 ? Math.min(5, s.w / 8) : 0;
    if (round) {
        c.save();
        box(c, x, y, s.w, s.h, round);
        c.clip();
    }
    c.fillStyle = ink.free;
    c.fillRect(x, y, s.w, s.h);
    let at = y + s.h; // parts and MIG slices stand on each other, with a line between them
    for (const p of parts) {
        const h = Math.min(at - y, Math.max(1, p.part * s.h));
        c.fillStyle = p.colour;
        c.fillRect(x, at - h, s.w, parts.length > 1 && h > 2 ? h - 1 : h);
        at -= h;
    }
    if (g.state !== "busy" || g.draining || g.foreign) marks(c, g, x, y, s, ink);
    if (round) c.restore();
    if (s.w < 24 || g.job === null || g.shares || !parts.length) return;
    c.font = `${s.w >= 32 ? 11 : 9}px ${ink.font}`; // whose it is
    c.textBaseline = "middle";
    c.textAlign = "center";
    c.fillStyle = mode === "util" ? ink.text : "#fff";
    c.fillText(cut(c, jobName(g, g.job), s.w - 4), x + s.w / 2, y + s.h / 2 + 0.5);
    c.textAlign = "left";
}

export interface Paint { mode: Mode; ink: Ink; chosen: number; lit(g: Gpu): boolean }

function drawBlock(c: CanvasRenderingContext2D, b: Block, s: Size, gpus: Gpu[], p: Paint): void {
    const cards = s.w >= 100, { ink } = p;
    if (s.label) {
        c.font = `${s.w >= 42 ? 12 : 10}px ${ink.font}`;
        c.textBaseline = "alphabetic";
        c.fillStyle = b.node.state === "up" ? ink.dim : ink.bad;
        c.fillText(cut(c, b.node.state === "up" ? b.node.name : `${b.node.name} (${b.node.state})`, b.w), b.x, b.y + s.label - 6);
    }
    for (let i = 0; i < b.node.gpus; i++) {
        const g = gpus[b.node.first + i], x = b.x + (i % b.cols) * (s.w + s.gap), y = b.y + s.label + Math.floor(i / b.cols) * (s.h + s.gap);
        if (!g) continue;
        const faint = !p.lit(g);
        if (faint) c.globalAlpha = 0.18;
        if (cards) drawCard(c, g, x, y, s, p.mode, ink);
        else drawCell(c, g, x, y, s, p.mode, ink);
        if (faint) c.globalAlpha = 1;
        if (b.node.first + i === p.chosen) {
            c.strokeStyle = ink.accent;
            c.lineWidth = 2;
            if (s.w >= 14) c.strokeRect(x + 1, y + 1, s.w - 2, s.h - 2);
            else c.strokeRect(x - 1, y - 1, s.w + 2, s.h + 2);
        }
    }
}

/** Draws these nodes again, which lie where they lay. */
export function redraw(c: CanvasRenderingContext2D, l: Layout, gpus: Gpu[], p: Paint, nodes: Set<Machine>): void {
    c.textAlign = "left";
    for (const b of l.blocks) {
        if (!nodes.has(b.node)) continue;
        c.clearRect(b.x, b.y, b.w, b.h);
        drawBlock(c, b, l.size, gpus, p);
    }
}

export function draw(c: CanvasRenderingContext2D, l: Layout, gpus: Gpu[], p: Paint): void {
    const s = l.size, { ink } = p;
    c.clearRect(0, 0, l.width, l.height);
    c.textBaseline = "alphabetic";
    c.textAlign = "left";
    c.font = `600 12px ${ink.font}`;
    c.fillStyle = ink.text;
    for (const h of l.headings) c.fillText(h.text, 0, h.y + 14);
    c.font = `10px ${ink.font}`;
    c.lineWidth = 1;
    for (const f of l.frames) {
        c.strokeStyle = ink.line;
        box(c, f.x + 0.5, f.y + 0.5, f.w - 1, f.h - 1, 4);
        c.stroke();
        c.fillStyle = ink.dim;
        c.fillText(f.text, f.x + Math.max(4, s.gap * 2), f.y + 12);
    }
    for (const b of l.blocks) drawBlock(c, b, s, gpus, p);
}
