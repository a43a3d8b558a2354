// SPDX-License-Identifier: Apache-2.0
// What must not depend on chance: who is shown first of those that wait, whose colour is whose, and where a bar of the timeline ends.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { open } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const SLEEP = ["/bin/sleep", "1000"], TEAMS = "tenants:\n  - {name: vision, users: [root]}\n  - {name: speech, users: [root]}\n";

async function world(options, f) {
    const d = await Daemon.start(options), b = await open();
    try {
        await f(d, b);
        assert.deepEqual(b.said, []);
    } finally {
        await b.close();
        await d.close();
    }
}

const panel = (page, title) => page.locator("section, .panel", { has: page.getByRole("heading", { name: title, exact: true }) }).last();

async function shown(page) {
    const rows = panel(page, "Waiting").locator("tbody tr");
    await rows.nth(5).waitFor();
    return (await rows.locator("td:first-child").allInnerTexts()).map(Number);
}

describe("order", { timeout: 1200000 }, () => {
    it("of jobs that wait is their place in line, with and without a login", () => world({ gpus: 1 }, async (d, b) => {
        const runs = await d.submit({ gpus: 1, command: SLEEP, priority: 900 }); // nobody takes its GPU
        await d.untilState(runs, "running");
        const ids = await d.submitAll([...Array(9)].map((_, i) => ({ gpus: 1, command: SLEEP, priority: 10 * (i + 1) })));
        const places = await Promise.all(ids.map((id) => d.get(`/v1/jobs/${id}`)));
        const want = places.sort((x, y) => x.position - y.position).slice(0, 6).map((j) => j.id);
        assert.notDeepEqual(want, ids.slice(0, 6), "places are not numbers");
        await b.page.goto(d.url);
        assert.deepEqual(await shown(b.page), want);
        await b.login(d);
        await b.page.goto(`${d.url}/#/`);
        assert.deepEqual(await shown(b.page), want);
    }));

    it("of colours is that of the configuration, at every load", () => world({ gpus: 4, config: TEAMS }, async (d, b) => {
        const dots = async () => Object.fromEntries(await b.page.locator(".legend button, .legend li").evaluateAll((list) => list.map((e) => [/vision|speech/.exec(e.innerText)?.[0], getComputedStyle(e.querySelector("i")).backgroundColor]).filter(([k]) => k)));
        const both = async () => d.until(async () => { const x = await dots(); return x.vision && x.speech && x; }, "both tenants are in the legend");
        const first = await d.submit({ gpus: 2, tenant: "vision", command: SLEEP });
        await d.untilState(first, "running");
        const second = await d.submit({ gpus: 1, tenant: "speech", command: SLEEP });
        await d.untilState(second, "running");
        await b.login(d);
        const before = await both();
        assert.notEqual(before.vision, before.speech);
        for (const id of [first, second]) await d.ask("POST", `/v1/jobs/${id}/cancel`);
        for (const id of [first, second]) await d.untilState(id, "done");
        for (const tenant of ["speech", "vision"]) await d.untilState(await d.submit({ gpus: tenant === "speech" ? 3 : 1, tenant, command: SLEEP }), "running"); // the other one comes first
        await b.page.reload();
        assert.deepEqual(await both(), before);
    }));

    it("of a timeline: nobody is drawn where another is expected on the same GPU", () => world({ gpus: 2, config: TEAMS }, async (d, b) => {
        const canvas = "canvas[aria-label^=Timeline]", LABEL = 92, AXIS = 22, ROW = 22;
        // Smaller jobs took a part of what they asked for: forecasts expect that of the larger ones, too, the scheduler does not.
        for (let i = 0; i < 4; i++) await d.untilState(await d.submit({ gpus: 1, tenant: "vision", command: ["/bin/sleep", "0.5"], time_limit_s: 10 }), "done");
        const long = await d.submit({ name: "long", gpus: 2, tenant: "vision", command: SLEEP, time_limit_s: 36000 });
        await d.untilState(long, "running");
        const next = await d.submit({ name: "next", gpus: 2, tenant: "speech", command: SLEEP, time_limit_s: 7200 });
        const j = await d.until(async () => { const x = await d.get(`/v1/jobs/${next}`); return x.start_pieces && x; }, "where it will start is known");
        assert.ok(j.start_p50 < (await d.get(`/v1/jobs/${long}`)).expected_end - 3600);
        await b.page.goto(d.login);
        await b.page.goto(`${d.url}/#/queue`);
        await b.page.getByRole("button", { name: "Timeline" }).click();
        await b.page.getByRole("button", { name: "6h" }).click();
        await b.page.locator(`${canvas}[aria-label*="1 run, 1 are expected"]`).waitFor();
        const tip = async (x, y) => {
            const box = await b.page.locator(canvas).boundingBox();
            await b.page.mouse.move(box.x + x, box.y + AXIS + y);
            await b.page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))); // it is drawn
            return (await b.page.locator(".lanes .tip").allInnerTexts())[0] ?? "";
        };
        const box = await b.page.locator(canvas).boundingBox(), seen = new Set(), mixed = [];
        for (let x = LABEL + 4; x < box.width - 4; x += 6) {
            const up = /^(\w+)/.exec(await tip(x, ROW * 0.25))?.[1], low = /^(\w+)/.exec(await tip(x, ROW * 0.75))?.[1];
            seen.add(up).add(low);
            if (up !== low) mixed.push([x, up, low]);
        }
        await b.shot("timeline-order", { fullPage: true });
        assert.ok(seen.has("long") && seen.has("next"), [...seen].join());
        assert.deepEqual(mixed, []);
    }));
});
