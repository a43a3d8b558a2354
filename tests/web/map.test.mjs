// SPDX-License-Identifier: Apache-2.0
// What the map of GPUs draws (web/src/lib/map.ts), call by call on a canvas that only remembers: parts
// and slices inside a cell, marks of what is out of use or used by others, frames of racks and headings of pools.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { ROOT } from "./daemon.mjs";

const INK = { dark: false, text: "TEXT", dim: "DIM", line: "LINE", free: "FREE", panel: "PANEL", warn: "WARN", bad: "BAD", accent: "ACCENT", font: "sans" };
const ALL = { mode: "tenant", ink: INK, chosen: -1, lit: () => true };

class Canvas {
    done = [];
    measureText(t) { return { width: t.length * 6 }; }
    fillRect(x, y, w, h) { this.done.push({ what: "rect", colour: this.fillStyle, x, y, w, h }); }
    strokeRect(x, y, w, h) { this.done.push({ what: "outline", colour: this.strokeStyle, x, y, w, h, dashed: !!this.dash?.length }); }
    fillText(text, x, y) { this.done.push({ what: "text", colour: this.fillStyle, text, x, y }); }
    fill() { this.done.push({ what: "shape", colour: this.fillStyle }); }
    stroke() { this.done.push({ what: "lines", colour: this.strokeStyle }); }
    setLineDash(d) { this.dash = d; }
}
for (const name of ["save", "restore", "beginPath", "rect", "roundRect", "clip", "moveTo", "lineTo", "clearRect"]) Canvas.prototype[name] = function () {};

const node = (name, gpus, more = {}) => ({ name, state: "up", pool: "main", rack: null, gpu_type: "H100", gpus, first: 0, ...more });
const gpu = (index, more = {}) => ({ index, node: "n1", name: "H100", state: "free", mem_mib: 81920, job: null, user: null, ...more });

describe("the map", () => {
    let map;
    before(async () => {
        const esbuild = createRequire(join(ROOT, "web/package.json"))("esbuild");
        const made = await esbuild.build({ entryPoints: [join(ROOT, "web/src/lib/map.ts")], bundle: true, format: "esm", write: false, logLevel: "error" });
        map = await import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);
    });

    /** A part that is filled: in the colour of a tenant or a job, not in one of the inks. */
    const filled = (x) => x.what === "rect" && !Object.values(INK).includes(x.colour);

    /** What is drawn of one GPU, in a cell and in a card. */
    function drawn(g, mode = "tenant") {
        const out = {};
        for (const [size, many] of [["card", 1], ["cell", 40]]) {
            const nodes = Array.from({ length: many }, (_, i) => node(`n${i}`, 8, { first: 8 * i })), l = map.layOut(nodes, 1000, 600), c = new Canvas();
            map.draw(c, { ...l, blocks: [{ ...l.blocks[0], node: node("n1", 1) }] }, [g], { ...ALL, mode });
            out[size] = { done: c.done, size: l.size };
        }
        return out;
    }

    it("parts of a GPU and MIG slices are as high, or as wide, as what they have of it", () => {
        const share = (job, gpus, tenant) => ({ job, user: "u", tenant, gpus, mem_mib: null, share: "mig" });
        const { card, cell } = drawn(gpu(0, { state: "busy", job: 1, user: "u", shares: [share(1, 3 / 7, "vision"), share(2, 1 / 7, "speech")] }));
        const parts = (d, side) => d.done.filter(filled).map((x) => x[side]);
        assert.equal(cell.size.w < 100, true);
        const high = parts(cell, "h"), wide = parts(card, "w");
        assert.equal(high.length, 2);
        assert.ok(Math.abs(high[0] - (3 / 7) * cell.size.h) <= 1.01 && Math.abs(high[1] - (1 / 7) * cell.size.h) <= 1.01, `${high} of ${cell.size.h}`);
        assert.equal(wide.length, 2);
        assert.ok(Math.abs(wide[0] - (3 / 7) * card.size.w) <= 1.01 && Math.abs(wide[1] - (1 / 7) * card.size.w) <= 1.01);
        const colours = new Set(cell.done.filter(filled).map((x) => x.colour));
        assert.equal(colours.size, 2, "each in the colour of its tenant");
    });

    it("what is out of use is hatched, what others use has a corner, what drains an outline", () => {
        for (const d of Object.values(drawn(gpu(0, { state: "off", off: "XID 79" })))) assert.ok(d.done.some((x) => x.what === "lines" && x.colour === "BAD"));
        for (const d of Object.values(drawn(gpu(0, { state: "drained" })))) assert.ok(d.done.some((x) => x.what === "lines" && x.colour === "DIM"));
        for (const d of Object.values(drawn(gpu(0, { foreign: [{ pid: 7 }] })))) assert.ok(d.done.some((x) => x.what === "shape" && x.colour === "WARN"));
        for (const d of Object.values(drawn(gpu(0, { state: "busy", job: 3, user: "u", draining: true })))) assert.ok(d.done.some((x) => x.what === "outline" && x.dashed));
        for (const d of Object.values(drawn(gpu(0)))) assert.ok(!d.done.some((x) => ["BAD", "WARN"].includes(x.colour)), "a free GPU has no mark");
    });

    it("colours say whose, which job, how busy, how well", () => {
        const busy = gpu(0, { state: "busy", job: 12, user: "u", tenant: "vision", util: 50, temp_c: 90 });
        const of = (g, mode) => map.fills(g, mode, false);
        assert.notEqual(of(busy, "job")[0].colour, of({ ...busy, job: 13 }, "job")[0].colour);
        assert.equal(of(busy, "tenant")[0].colour, of({ ...busy, job: 13 }, "tenant")[0].colour);
        assert.notEqual(of(busy, "util")[0].colour, of({ ...busy, util: 100 }, "util")[0].colour);
        assert.deepEqual([busy, { ...busy, temp_c: 40 }, { ...busy, foreign: [{ pid: 1 }] }, gpu(0, { state: "off" }), gpu(0, { state: "drained" })].map((g) => map.health(g)), ["hot", "ok", "foreign", "off", "drained"]);
        assert.deepEqual(of(gpu(0), "util"), [], "not measured: empty");
    });

    it("nodes lie in the frame of their rack, under the heading of their pool, and no two at one place", () => {
        const nodes = [];
        for (let i = 0, first = 0; i < 60; i++, first += 8) nodes.push(node(`n${i}`, 8, { first, pool: i < 30 ? "train" : "serve", rack: 1 + Math.floor(i / 10) }));
        for (const [w, h] of [[1200, 700], [360, 700]]) {
            const l = map.layOut(nodes, w, h), c = new Canvas(), gpus = nodes.flatMap((n) => Array.from({ length: 8 }, (_, k) => gpu(k, { node: n.name })));
            map.draw(c, l, gpus, ALL);
            const texts = c.done.filter((x) => x.what === "text").map((x) => x.text);
            for (const t of ["train", "serve", "rack 1", "rack 6"]) assert.ok(texts.includes(t), t);
            for (const b of l.blocks) {
                const f = l.frames.find((x) => x.text === `rack ${b.node.rack}`);
                assert.ok(b.x >= f.x && b.y >= f.y && b.x + b.w <= f.x + f.w && b.y + b.h <= f.y + f.h, `${b.node.name} is in its rack`);
            }
            const seen = new Set(c.done.filter((x) => x.what === "rect" && x.colour === "FREE").map((x) => `${x.x},${x.y}`));
            assert.equal(seen.size, 480);
        }
    });

    it("a click finds the GPU that is drawn there, in clusters of any size", () => {
        for (const [n, per] of [[1, 8], [3, 4], [20, 16], [1250, 8]]) {
            const nodes = Array.from({ length: n }, (_, i) => node(`n${i}`, per, { first: i * per, rack: n > 10 ? 1 + Math.floor(i / 8) : null })), l = map.layOut(nodes, 900, 620);
            assert.ok(l.blocks.every((b) => b.x >= 0 && b.x + b.w <= 900), "inside its width");
            for (const b of l.blocks)
                for (let i = 0; i < per; i += 3) {
                    const x = b.x + (i % b.cols) * (l.size.w + l.size.gap) + 1, y = b.y + l.size.label + Math.floor(i / b.cols) * (l.size.h + l.size.gap) + 1;
                    assert.equal(map.hit(l, x, y), b.node.first + i);
                }
            assert.equal(map.hit(l, -5, -5), -1);
        }
    });
});
