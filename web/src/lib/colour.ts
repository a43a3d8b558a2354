// SPDX-License-Identifier: Apache-2.0
// colour.ts - which colour means what. Colours never say anything alone: labels, hatching and marks
// say the same.

const PALETTE = ["#3b82c4", "#e07b39", "#3f9c6b", "#c2588f", "#7a6bd1", "#c9a227", "#3aa6b0", "#d1575b", "#8a9a3c", "#9c6b4f", "#6f86a8", "#b06ad0"];

function hash(text: string): number {
    let h = 2166136261;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    return h >>> 0;
}

const places = new Map<string, number>();

/** Tenants in the order of the configuration: the first have the colours that are told apart best. */
export function setTenants(names: string[]): void {
    places.clear();
    names.forEach((n, i) => places.set(n, i));
}

/** A name has one colour, on every page and at every load, whatever other names there are. */
export function nameColour(name: string): string {
    const at = places.get(name) ?? PALETTE.length;
    return at < PALETTE.length ? PALETTE[at] : `hsl(${hash(name) % 360} 45% 55%)`;
}

/** Of several that have no name. */
export function nth(i: number): string {
    return i < PALETTE.length ? PALETTE[i] : `hsl(${Math.round((i * 137.508) % 360)} 45% 55%)`;
}

export function jobColour(job: number): string {
    return `hsl(${Math.round((job * 137.508) % 360)} 48% ${job % 2 ? 52 : 60}%)`;
}

/** How busy, 0 to 1: from what is barely there to ember. */
export function heat(x: number, dark: boolean): string {
    const stops = dark
        ? [[44, 46, 54], [110, 62, 36], [214, 98, 34], [255, 188, 92]]
        : [[226, 228, 232], [250, 214, 165], [240, 140, 60], [196, 56, 8]];
    const p = Math.min(1, Math.max(0, x)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(p)), f = p - i;
    const mix = stops[i].map((v, k) => Math.round(v + (stops[i + 1][k] - v) * f));
    return `rgb(${mix.join(" ")})`;
}

export const HEALTH: Record<string, { colour: string; text: string }> = {
    ok: { colour: "#3f9c6b", text: "well" },
    hot: { colour: "#d9822b", text: "hot (85 °C or more)" },
    foreign: { colour: "#b06ad0", text: "used by others" },
    drained: { colour: "#6f86a8", text: "drained" },
    off: { colour: "#d1575b", text: "out of use" },
};
