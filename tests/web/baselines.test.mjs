// SPDX-License-Identifier: Apache-2.0
// The page Baselines: a period is marked, something is changed, another period is compared with it, and
// the mark is deleted; notes on a line of time; and what is refused.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { open, VIEWS } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const CONFIG = "policy: {bundle: fifo}\ntenants:\n  - {name: vision, limit: 2, users: [root]}\n  - {name: speech, users: [root]}\n";

/** So many minutes from now, as an input of a date has it. */
const minute = (n) => {
    const d = new Date(Date.now() + n * 60000), two = (x) => String(x).padStart(2, "0");
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`;
};

describe("baselines", { timeout: 1200000 }, () => {
    let d, b;
    const clean = async () => {
        assert.deepEqual(await b.axe(), []);
        assert.deepEqual(b.said, []);
    };
    const row = (name, page = b.page) => page.locator("table.sides").getByRole("row", { name: new RegExp(`^${name}`) });
    const load = async (n) => {
        const ids = await d.submitAll(Array.from({ length: n }, (_, i) => ({ name: `train-${i}`, gpus: 2, tenant: "vision", command: ["/bin/sleep", "1"], hold: i === 0 })));
        await d.ask("POST", `/v1/jobs/${ids[0]}/report`, { step: 300 }); // nobody says anything of one that has ended
        await d.ask("POST", `/v1/jobs/${ids[0]}/release`);
        for (const id of ids) await d.untilState(id, "done");
    };

    before(async () => {
        d = await Daemon.start({ gpus: 4, config: CONFIG });
        await load(8);
        b = await open();
        await b.login(d);
    });
    after(async () => {
        await b?.close();
        await d?.close();
    });

    it("marks a period, and says what is missing", async () => {
        await b.page.getByRole("link", { name: "Baselines" }).click();
        await b.page.getByRole("heading", { name: "No period is marked yet" }).waitFor();
        await clean();
        await b.shot("baselines-none-light");
        await b.page.getByLabel("name", { exact: true }).fill("two words");
        await b.page.getByRole("button", { name: "Mark" }).click();
        await b.page.getByText("A name is 1 to 64 letters").waitFor();
        await b.page.getByLabel("name", { exact: true }).fill("narrow");
        await b.page.getByRole("complementary").getByLabel("from", { exact: true }).fill(minute(-60));
        await b.page.getByLabel("note", { exact: true }).fill("two GPUs for vision, first come");
        await b.page.getByRole("button", { name: "Mark" }).click();
        await b.page.getByRole("heading", { name: "narrow" }).waitFor();
        await b.page.getByLabel("name", { exact: true }).fill("narrow");
        await b.page.getByRole("button", { name: "Mark" }).click();
        await b.page.getByText("there is a baseline of this name already").waitFor();
        b.said.splice(0); // the browser's own word for 409
    });

    it("compares what came after it, with what was changed on a line of time", async () => {
        await d.ask("POST", "/v1/tenants/vision/quota", { limit: 4 });
        writeFileSync(join(d.folder, "stoker.yaml"), CONFIG.replace("fifo", "easy"));
        d.process.kill("SIGHUP");
        await d.until(async () => (await d.get("/v1/notes")).notes.some((n) => n.text.includes("easy")), "the change is noted");
        await load(6);
        await b.page.reload();
        await b.page.getByRole("heading", { name: "narrow" }).waitFor();
        await row("wait, mean").getByText("better").waitFor();
        assert.match(await row("wait, mean").innerText(), /s\s+[\d.]+ s\s+▼ \d+ %\s*better/);
        assert.match(await row("utilization").innerText(), /%/);
        assert.match(await row("steps per GPU-hour").innerText(), /\d/);
        await b.page.locator(".verdict").getByText(/Jobs a day .* → .*mean wait .* → .*utilization .* → /).waitFor();
        await b.page.locator(".changes").getByText('policy.bundle: "fifo" -> "easy"').waitFor();
        await b.page.locator(".changes").getByText(/quotas.*vision/).waitFor();
        await b.page.getByRole("img", { name: /^narrow: .* Compared: .* \d changes\./ }).waitFor();
        await b.page.getByLabel("add a note").fill("new driver 580");
        await b.page.getByRole("button", { name: "Add" }).click();
        await b.page.locator(".changes").getByText("new driver 580").waitFor();
        await clean();
        await b.shot("baselines-light", { fullPage: true });
    });

    it("compares any other period", async () => {
        for (const [name, query] of [["24 h", /since=\d+$/], ["Other", /since=\d+&until=\d+$/]]) {
            const asked = b.page.waitForRequest((r) => r.url().includes("/compare?") && query.test(r.url()));
            await b.page.getByRole("button", { name, exact: true }).click();
            await asked;
        }
        await b.page.locator(".panel").getByLabel("from", { exact: true }).first().fill(minute(-7 * 24 * 60));
        await b.page.getByText(/14 jobs that ended; narrow: 8 jobs/).waitFor();
        await clean();
    });

    it("only lets operators mark, note and delete", async () => {
        const v = await open(), token = (await d.ask("POST", "/v1/tokens", { role: "user" })).token;
        try {
            await v.page.goto(`${d.url}/#/baselines`);
            await v.page.getByRole("heading", { name: "Log in to compare periods" }).waitFor();
            await v.page.goto(`${d.url}/?token=${token}`);
            await v.page.goto(`${d.url}/#/baselines`);
            await row("wait, mean", v.page).waitFor();
            for (const name of ["Mark", "Delete", "Add"]) assert.equal(await v.page.getByRole("button", { name, exact: true }).count(), 0, name);
            const status = await v.page.evaluate(async () => (await fetch("/v1/baselines", { method: "POST", headers: { "Stoker-Session": localStorage.getItem("stoker.session") }, body: JSON.stringify({ name: "x", since: 1 }) })).status);
            assert.equal(status, 403);
            assert.deepEqual(await v.axe(), []);
        } finally {
            await v.close();
        }
    });

    it("dark and on a phone", async () => {
        for (const view of ["dark", "phone"]) {
            const v = await open(VIEWS[view]);
            try {
                await v.page.goto(d.login);
                await v.page.goto(`${d.url}/#/baselines/narrow`);
                await v.page.locator(".changes").waitFor();
                assert.ok(await v.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "no sideways scrolling");
                assert.deepEqual(await v.axe(), [], view);
                await v.shot(`baselines-${view}`, { fullPage: true });
                assert.deepEqual(v.said, []);
            } finally {
                await v.close();
            }
        }
    });

    it("deletes a mark after asking", async () => {
        await b.page.getByRole("button", { name: "Delete", exact: true }).click();
        await b.says("Baseline narrow is deleted.", b.page.getByRole("dialog").getByRole("button", { name: "Delete" }));
        await b.page.getByRole("heading", { name: "No period is marked yet" }).waitFor();
        assert.deepEqual((await d.get("/v1/baselines")).baselines, []);
        await b.page.goto(`${d.url}/#/baselines/gone`);
        await b.page.getByText("There is no baseline “gone”").waitFor();
        await clean();
    });
});
