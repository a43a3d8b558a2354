// SPDX-License-Identifier: Apache-2.0
// The colours of web/src/style.css: whatever text stands on, also a row that the mouse is over, it can be read (WCAG 2, 4.5:1).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ROOT } from "./daemon.mjs";

const css = readFileSync(join(ROOT, "web/src/style.css"), "utf8");
const THEMES = { light: /^:root \{(.*?)^\}/ms, dark: /^:root\[data-theme="dark"\] \{(.*?)^\}/ms };
const ON = ["bg", "panel", "hover"], TEXT = ["text", "dim", "accent", "good", "warn", "bad"];
const PAIRS = [...TEXT.flatMap((t) => ON.map((on) => [t, on])), ...["good", "warn", "bad", "accent"].flatMap((t) => [[t, `${t}-soft`], ["text", `${t}-soft`], ["dim", `${t}-soft`]]), ["on-accent", "accent"]];

function luminance(hex) {
    const full = hex.length === 4 ? hex.replace(/[^#]/g, "$&$&") : hex, [r, g, b] = [1, 3, 5].map((i) => parseInt(full.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
}

describe("colours", () => {
    for (const [name, block] of Object.entries(THEMES))
        it(`${name}: text can be read on all that it stands on`, () => {
            const at = Object.fromEntries([...block.exec(css)[1].matchAll(/--([\w-]+): (#[0-9a-fA-F]+);/g)].map((m) => [m[1], m[2]]));
            const weak = PAIRS.map(([t, on]) => [t, on, contrast(at[t], at[on])]).filter(([, , c]) => c < 4.5).map(([t, on, c]) => `${t} on ${on}: ${c.toFixed(2)}`);
            assert.deepEqual(weak, []);
        });
});
