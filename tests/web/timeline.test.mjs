// SPDX-License-Identifier: Apache-2.0
// The timeline: what ran, what runs and what is expected, on the nodes where that was, is and will be.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { open } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const SLEEP = ["/bin/sleep", "1000"], TEAMS = "tenants:\n  - {name: vision, users: [root]}\n  - {name: speech, users: [root]}\n";
const canvas = "canvas[aria-label^=Timeline]", LABEL = 92, AXIS = 22, ROW = 22;

/** What a row says where it says something of what is expected, or null. */
async function expectedOn(page, row, scrolled = 0) {
    const box = await page.locator(canvas).boundingBox();
    for (let x = box.width - 12; x > LABEL; x -= 12) {
        await page.mouse.move(box.x + x, box.y + AXIS + row * ROW + ROW / 2 - scrolled);
        const text = await page.locator(".lanes .tip").allInnerTexts();
        if (text[0]?.includes("expected")) return text[0];
    }
    return null;
}

async function world(gpus, f) {
    const d = await Daemon.start({ gpus, config: TEAMS }), b = await open();
    try {
        await f(d, b);
        assert.deepEqual(b.said, []);
    } finally {
        await b.close();
        await d.close();
    }
}

async function show(d, b, says) {
    await b.page.goto(d.login);
    await b.page.goto(`${d.url}/#/queue`);
    await b.page.getByRole("button", { name: "Timeline" }).click();
    await b.page.getByRole("button", { name: "6h" }).click();
    await b.page.locator(`${canvas}[aria-label*="${says}"]`).waitFor();
}

describe("timeline", { timeout: 1200000 }, () => {
    it("has past, present and forecast on the GPUs of each node", () => world("3x4", async (d, b) => {
        const first = await d.submit({ name: "smoke", gpus: 4, tenant: "vision", command: ["/bin/true"], time_limit_s: 600 });
        await d.untilState(first, "done");
        const runs = await d.submitAll([1, 2, 3].map((h) => ({ name: `run-${h}h`, gpus: 4, tenant: h === 2 ? "speech" : "vision", command: SLEEP, time_limit_s: h * 3600 })));
        for (const id of runs) await d.untilState(id, "running");
        const [next, small] = await d.submitAll([{ name: "next", gpus: 4, tenant: "vision", command: SLEEP, time_limit_s: 7200 }, { name: "small", gpus: 2, tenant: "speech", command: SLEEP, time_limit_s: 36000 }]);
        const j = await d.until(async () => { const x = await d.get(`/v1/jobs/${next}`); return x.start_pieces && x; }, "where it will start is known"), on = j.start_pieces[0];
        assert.equal(j.start_pieces.length, 1);
        assert.deepEqual(on.gpu_indices, [0, 1, 2, 3]);
        const ends = await Promise.all(runs.map((id) => d.get(`/v1/jobs/${id}`)));
        assert.equal(on.node, ends.find((x) => Math.abs(x.expected_end - j.start_p50) < 30)?.node, "where one ends at that time");
        assert.ok(j.end_p50 > j.start_p50 && j.start_p90 >= j.start_p50);
        assert.ok((await d.get(`/v1/jobs/${small}`)).start_pieces[0].gpu_indices.length === 2);
        await show(d, b, "1 have ended, 3 run, 2 are expected");
        const nodes = (await d.get("/v1/nodes")).nodes.map((n) => n.name), at = nodes.indexOf(on.node) * 4;
        for (let g = 0; g < 4; g++) await d.until(async () => new RegExp(`^next .*\\(job ${next}\\) on ${on.node} ${g}: expected`).test(await expectedOn(b.page, at + g)), `it is expected on ${on.node} ${g}`);
        assert.deepEqual(await b.axe(), []);
        await b.page.mouse.move(0, 0);
        await b.shot("timeline-nodes", { fullPage: true });
        await b.page.getByRole("button", { name: "Lists" }).click();
        await b.page.getByRole("row", { name: /next/ }).getByText(`on ${on.node} 0-3`).waitFor();
        await b.page.goto(`${d.url}/#/job/${next}`);
        await b.page.getByText(`probably on ${on.node} 0-3`).waitFor();
    }));

    it("has what happened while another page was open", () => world(2, async (d, b) => {
        await b.login(d);
        const id = await d.submit({ name: "meanwhile", gpus: 1, tenant: "vision", command: ["/bin/true"] });
        await b.page.getByText(`job ${id} has completed`).waitFor();
        await b.page.goto(`${d.url}/#/queue`);
        await b.page.getByRole("button", { name: "Timeline" }).click();
        await b.page.locator(`${canvas}[aria-label*="1 have ended"]`).waitFor();
    }));

    it("has a row for every node of a cluster, to be scrolled", () => world("40x8", async (d, b) => {
        const gang = (name, tasks, hours) => ({ name, gpus: 8, tasks, tasks_per_node: 1, launch: "once", tenant: "speech", command: SLEEP, time_limit_s: hours * 3600 });
        const [long, ...rest] = await d.submitAll([gang("pretrain", 20, 5), gang("tune", 19, 2), gang("eval", 1, 1)]), next = await d.submit(gang("afterwards", 2, 1));
        for (const id of [long, ...rest]) await d.untilState(id, "running");
        const j = await d.until(async () => { const x = await d.get(`/v1/jobs/${next}`); return x.start_pieces && x; }, "where it will start is known");
        assert.equal(j.start_pieces.length, 2);
        await show(d, b, "Timeline of 40 rows");
        const nodes = (await d.get("/v1/nodes")).nodes.map((n) => n.name), row = nodes.indexOf(j.start_pieces[1].node), lanes = b.page.locator(".lanes");
        await b.page.locator(`${canvas}[aria-label*="3 run, 1 are expected"]`).waitFor();
        await lanes.evaluate((e, y) => (e.scrollTop = y), row * ROW - 100);
        await d.until(async () => new RegExp(`^afterwards .* on ${nodes[row]}: expected`).test(await expectedOn(b.page, row, await lanes.evaluate((e) => e.scrollTop))), `it is expected on ${nodes[row]}`);
        await b.page.mouse.move(0, 0);
        await b.shot("timeline-cluster", { fullPage: true });
        assert.deepEqual(await b.axe(), []);
    }));
});
