// SPDX-License-Identifier: Apache-2.0
// Ten thousand GPUs: the page stays smooth while jobs come and go.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { open } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const TENANTS = ["vision", "speech", "language", "robotics"], FPS = 30, WINDOW_MS = 1500, WINDOWS = 5;
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const gang = (i, nodes) => ({ name: `train-${i}`, gpus: 8, tasks: nodes, tasks_per_node: 1, launch: "once", tenant: TENANTS[(i * 7) % 4], command: ["/bin/sleep", "1000"], time_limit_s: 7200 });

/** Frames a second that the page draws, and how often what it shows has changed meanwhile. */
const measure = (page) => page.evaluate((ms) => new Promise((resolve) => {
    const use = document.querySelector(".stat dd"), began = performance.now();
    let frames = 0, changes = 0, last = use.textContent, longest = 0, before = began;
    const turn = (t) => {
        frames++;
        longest = Math.max(longest, t - before);
        before = t;
        if (use.textContent !== last) {
            last = use.textContent;
            changes++;
        }
        if (t - began < ms) requestAnimationFrame(turn);
        else resolve({ fps: (frames * 1000) / (t - began), changes, longest });
    };
    requestAnimationFrame(turn);
}), WINDOW_MS);

describe("a large cluster", { timeout: 300000 }, () => {
    let d, b;
    before(async () => {
        d = await Daemon.start({ gpus: "1250x8", config: `tenants:\n${TENANTS.map((t) => `  - {name: ${t}, users: [root]}\n`).join("")}` });
        await d.submitAll(Array.from({ length: 60 }, (_, i) => gang(i, 1 + (i % 20))));
        b = await open();
    });
    after(async () => {
        await b?.close();
        await d?.close();
    });

    it("draws 10,000 GPUs at more than 30 frames a second while they change", async () => {
        await b.page.goto(d.login);
        await b.page.locator(".stat dd").first().getByText("of 10,000").waitFor();
        await d.until(async () => (await d.get("/v1/cluster")).gpus.busy > 4000, "half of the cluster is busy");
        const devtools = await b.context.newCDPSession(b.page);
        await devtools.send("Performance.enable");
        let before = {};
        /** How much of the time since it was last asked the page's thread was at work. */
        const busy = async () => {
            const now = Object.fromEntries((await devtools.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value])), was = before;
            before = now;
            return { share: (now.TaskDuration - (was.TaskDuration ?? 0)) / (now.Timestamp - (was.Timestamp ?? 0)) };
        };
        await busy();
        let go = true, n = 100;
        const churn = (async () => {
            while (go) {
                const ids = await d.submitAll([gang(n++, 3), gang(n++, 9)]);
                await new Promise((r) => setTimeout(r, 150));
                await d.ask("POST", "/v1/jobs/act", { verb: "cancel", ids });
                await new Promise((r) => setTimeout(r, 150));
            }
        })();
        for (const name of ["Tenant", "Job"]) {
            await b.page.getByRole("button", { name, exact: true }).click();
            const rounds = [];
            for (let i = 0; i < WINDOWS; i++) rounds.push({ ...(await measure(b.page)), ...(await busy()) });
            const fps = median(rounds.map((m) => m.fps)), changes = median(rounds.map((m) => m.changes));
            console.log(`${name}: ${fps.toFixed(1)} frames a second in the median of ${WINDOWS} windows (${rounds.map((m) => m.fps.toFixed(0)).join(", ")}), longest frame ${Math.max(...rounds.map((m) => m.longest)).toFixed(0)} ms, ` +
                `${changes} changes in ${WINDOW_MS / 1000} s; the page is at work ${(100 * median(rounds.map((m) => m.share))).toFixed(0)} % of the time`);
            assert.ok(fps > FPS, `${name}: ${JSON.stringify(rounds)}`);
            assert.ok(changes > 1, "it is updated meanwhile");
        }
        go = false;
        await churn;
        await b.shot("large-light", { fullPage: true });
        await b.page.getByRole("button", { name: "Job", exact: true }).click();
        await b.page.getByRole("button", { name: "Change to dark" }).click();
        await b.shot("large-dark", { fullPage: true });
        assert.deepEqual(b.said, []);
    });
});
