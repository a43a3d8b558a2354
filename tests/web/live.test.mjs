// SPDX-License-Identifier: Apache-2.0
// Live: from the request that changes something to the page that shows it, in a browser's own frames.
//
// The bar is one second. A single try may meet a machine that is busy with something else, so the
// median of several is asserted; beside it stands what the machine takes for the same without the page's
// doing: the request itself, and two frames. That takes a hundredth of the bar. A machine that takes a
// twentieth of it or more is busy with something else all the time: there the bar is twenty times that.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { open } from "./browser.mjs";
import { Daemon, PATIENCE_MS } from "./daemon.mjs";

const TRIES = 9, BAR_MS = 1000, BAR_TIMES = 20, SLEEP = ["/bin/sleep", "1000"];
const TEAMS = "tenants:\n  - {name: vision, users: [root]}\n  - {name: speech, users: [root]}\n";
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** In the page: resolves with the time of the first frame in which all of it is shown. what: texts that parts of the page must have, picture: whether the map must have changed. */
const shows = (page, what, picture) => page.evaluate(([parts, changes, patience]) => {
    const small = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const print = () => {
        const map = document.querySelector(".gpus canvas");
        if (!map) return "";
        small.clearRect(0, 0, 96, 48);
        small.drawImage(map, 0, 0, 96, 48);
        return small.getImageData(0, 0, 96, 48).data.join();
    };
    const first = changes ? print() : "";
    window.seen = new Promise((resolve, reject) => {
        const end = Date.now() + patience, look = () => {
            const missing = parts.filter(([where, text, gone]) => [...document.querySelectorAll(where)].some((e) => e.textContent.includes(text)) === !!gone);
            if (!missing.length && (!changes || print() !== first)) resolve(Date.now());
            else if (Date.now() > end) reject(new Error(`never shown: ${missing.join("; ") || "another picture"}`));
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
}, [what, picture, PATIENCE_MS]);
const seen = (page) => page.evaluate(() => window.seen);
const twoFrames = (page) => page.evaluate(() => new Promise((resolve) => { const t = Date.now(); requestAnimationFrame(() => requestAnimationFrame(() => resolve(Date.now() - t))); }));

describe("live", { timeout: 1200000 }, () => {
    let d, b, last; // the number of the job that was submitted last
    before(async () => {
        d = await Daemon.start({ gpus: 8, config: TEAMS });
        last = await d.submit({ name: "before", gpus: 2, tenant: "vision", command: SLEEP });
        await d.untilState(last, "running");
        b = await open();
        await b.page.goto(d.login);
        await b.page.getByText("live", { exact: true }).waitFor();
    });
    after(async () => {
        await b?.close();
        await d?.close();
    });

    /** The time from the request to the page, again and again. */
    async function tries(name, change, page = b.page) {
        const took = [], plain = [];
        for (let i = 0; i < TRIES; i++) {
            await new Promise((r) => setTimeout(r, 100 + 37 * i)); // at any time of the page's own pauses
            const frames = await twoFrames(page), m = await change();
            plain.push(frames + m.answered - m.began);
            took.push((await seen(page)) - m.began);
        }
        console.log(`${name}: shown after ${median(took)} ms in the median, ${Math.max(...took)} ms at most (${took.join(", ")}); the request and two frames alone ${median(plain)} ms`);
        assert.ok(median(took) < Math.max(BAR_MS, BAR_TIMES * median(plain)), `${name}: ${took.join(", ")} ms, alone ${plain.join(", ")} ms`);
    }
    const asked = async (f) => {
        const began = Date.now(), answer = await f();
        return { began, answered: Date.now(), answer };
    };

    it("a job that is submitted runs on the map, in the numbers and in the news within a second, and is gone within one", async () => {
        let end;
        await tries("Cluster, submitted", async () => {
            if (end) await end();
            const id = ++last;
            await shows(b.page, [[".stat dd", "3 of 8"], [".feed", `job ${id} runs`]], true);
            const m = await asked(() => d.submit({ name: `fresh-${id}`, gpus: 1, tenant: "speech", command: SLEEP }));
            assert.equal(m.answer, id);
            end = async () => {
                await shows(b.page, [[".stat dd", "2 of 8"]], true);
                await d.ask("POST", `/v1/jobs/${id}/cancel`);
                await seen(b.page);
            };
            return m;
        });
        await end();
        await tries("Cluster, cancelled", async () => {
            const id = ++last;
            await shows(b.page, [[".stat dd", "3 of 8"]], true);
            await d.submit({ name: "short", gpus: 1, tenant: "speech", command: SLEEP });
            await d.untilState(id, "running");
            await seen(b.page);
            await shows(b.page, [[".stat dd", "2 of 8"]], true);
            return asked(() => d.ask("POST", `/v1/jobs/${id}/cancel`));
        });
    });

    it("the queue: what comes, what is held and what goes", async () => {
        await b.page.goto(`${d.url}/#/queue`);
        await b.page.getByRole("row", { name: /before/ }).waitFor();
        await tries("Queue, submitted", async () => {
            const name = `wide-${++last}`;
            await shows(b.page, [["td.name", name], ["td.reason", "needs 8 GPUs"]], false);
            return asked(() => d.submit({ name, gpus: 8, tenant: "speech", command: SLEEP, time_limit_s: 600 }));
        });
        await tries("Queue, cancelled", async () => {
            const id = last--;
            await shows(b.page, [["td.name", `wide-${id}`, true]], false);
            return asked(() => d.ask("POST", `/v1/jobs/${id}/cancel`));
        });
    });

    it("a job's page: its end", async () => {
        last += TRIES;
        await tries("Job, ended by itself", async () => {
            const id = ++last, gate = `${d.folder}/go-${id}`;
            execFileSync("mkfifo", [gate]);
            await d.submit({ name: `job-${id}`, gpus: 1, tenant: "speech", command: ["/bin/sh", "-c", `read x <${gate}; exit 0`] });
            await d.untilState(id, "running");
            await b.page.goto(`${d.url}/#/job/${id}`);
            await b.page.locator(".life").getByText("runs").waitFor();
            await shows(b.page, [[".life", "has completed"], [".state", "completed"]], false);
            const m = await asked(() => writeFile(gate, "go\n"));
            return { ...m, began: Math.max(m.began, 1000 * (await d.untilState(id, "done")).ended) }; // how long it takes to end is not the page's doing
        });
        assert.deepEqual(b.said, []);
    });

    it("a queue of thousands, of which all takes long to load", async () => {
        const many = await Daemon.start({ gpus: 8 }), v = await open();
        try {
            await many.submit({ name: "runs", gpus: 8, command: SLEEP });
            const ids = await many.submitAll(Array.from({ length: 2000 }, (_, i) => ({ name: `wait-${i}.`, gpus: 8, command: SLEEP, time_limit_s: 3600 })));
            await v.page.goto(many.login);
            await v.page.goto(`${many.url}/#/queue`);
            await v.page.getByText("2,000 jobs").waitFor();
            let i = 0;
            await tries("Long queue, cancelled", async () => {
                await shows(v.page, [["td.name", `wait-${i}.`, true]], false);
                return asked(() => many.ask("POST", `/v1/jobs/${ids[i++]}/cancel`));
            }, v.page);
            await v.page.getByLabel("Name, number, user or reason").fill("fresh");
            await tries("Long queue, submitted", async () => {
                const name = `fresh-${i++}.`;
                await shows(v.page, [["td.name", name]], false);
                return asked(() => many.submit({ name, gpus: 8, command: SLEEP, time_limit_s: 3600 }));
            }, v.page);
            assert.deepEqual(v.said, []);
        } finally {
            await v.close();
            await many.close();
        }
    });
});
