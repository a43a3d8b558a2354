// SPDX-License-Identifier: Apache-2.0
// The page Cluster, the way in, and what every page has: live, stale, light and dark, keyboard.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { open, VIEWS } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const SLEEP = ["/bin/sleep", "1000"];
const TEAMS = "tenants:\n  - {name: vision, users: [root]}\n  - {name: speech, users: [root]}\n";
const stat = (page, label) => page.locator(".stat", { has: page.locator(`dt:text-is("${label}")`) }).locator("dd");

describe("cluster", { timeout: 1200000 }, () => {
    let d, b;
    before(async () => {
        d = await Daemon.start({ gpus: 8, config: TEAMS });
        await d.submit({ name: "train-llama", gpus: 2, tenant: "vision", command: SLEEP });
        const half = await d.submit({ name: "notebook", gpus: 0.5, tenant: "speech", command: SLEEP });
        await d.submit({ name: "large", gpus: 8, tenant: "vision", command: SLEEP });
        await d.untilState(half, "running");
        b = await open();
    });
    after(async () => {
        await b?.close();
        await d?.close();
    });

    it("shows GPUs and jobs to anyone on this machine, and asks for a login", async () => {
        await b.page.goto(d.url);
        await stat(b.page, "GPUs in use").getByText("3").waitFor();
        await b.page.getByText("needs 8 GPUs").waitFor();
        await b.page.getByRole("button", { name: "Log in" }).click();
        await b.page.getByLabel("Token").fill("stk_wrong");
        await b.page.getByRole("dialog").getByRole("button", { name: "Log in" }).click();
        await b.page.getByText("not, or no longer, valid").waitFor();
        assert.deepEqual(await b.axe(), []);
        await b.shot("login");
        const said = b.said.splice(0).filter((x) => !x.includes("401")); // the browser's own word for the refusal
        assert.deepEqual(said, []);
    });

    it("lets in who has a token", async () => {
        const made = await d.ask("POST", "/v1/tokens", { name: "web" });
        await b.page.getByLabel("Token").fill(made.token);
        await b.page.getByRole("dialog").getByRole("button", { name: "Log in" }).click();
        await b.page.getByRole("button", { name: "Log out" }).waitFor();
        await b.page.getByText("live", { exact: true }).waitFor();
        assert.equal(await b.page.evaluate(() => document.cookie), "", "scripts cannot read the token");
    });

    it("has every GPU as a table too, and all of it by keyboard", async () => {
        await b.page.getByRole("button", { name: "Table" }).click();
        await b.page.locator(".gpus tbody tr").nth(7).waitFor();
        assert.equal(await b.page.locator(".gpus tbody tr").count(), 8);
        await b.page.getByRole("button", { name: "Map" }).click();
        await b.page.locator(".gpus canvas").focus();
        await b.page.keyboard.press("ArrowRight");
        await b.page.getByText("GPU 0 of").first().waitFor({ state: "attached" });
        await b.page.keyboard.press("Escape");
        for (const mode of ["Job", "Utilization", "Health", "Tenant"]) await b.page.getByRole("button", { name: mode, exact: true }).click();
    });

    it("is accessible, light and dark, and asks nobody else", async () => {
        assert.deepEqual(await b.axe(), []);
        await b.shot("cluster-light");
        await b.page.getByRole("button", { name: "Change to dark" }).click();
        assert.deepEqual(await b.axe(), []);
        await b.shot("cluster-dark");
        await b.page.getByRole("button", { name: "Change to light" }).click();
        assert.deepEqual(b.asked.filter((u) => !u.startsWith(d.url) && !u.startsWith("data:")), []);
        assert.deepEqual(b.said, []);
    });

    it("says since when it is stale, and comes back by itself without a gap", async () => {
        const seen = await d.submit({ name: "seen", gpus: 0, command: ["/bin/true"] });
        await b.page.getByText(`job ${seen} has completed`).waitFor();
        const after = () => b.asked.filter((u) => u.includes("/v1/events")).map((u) => Number(new URL(u).searchParams.get("after"))), { seq } = await d.get("/v1/health"), [began] = after();
        await d.stop();
        await b.page.getByText("stale since").waitFor();
        await b.shot("stale");
        await d.run();
        const id = await d.submit({ name: "after", gpus: 1, command: SLEEP });
        await b.page.getByText("live", { exact: true }).waitFor();
        await b.page.getByText(`job ${id} runs`).waitFor();
        await stat(b.page, "GPUs in use").getByText("4").waitFor();
        assert.ok(after().at(-1) > began && after().at(-1) <= seq, `it goes on behind what it had: ${after()} of ${seq}`);
        b.said.splice(0); // refused connections
    });

    it("asks again for what it got no answer to, though nothing more happens", async () => {
        await b.page.route("**/v1/gpus?*", (r) => r.abort());
        const id = await d.submit({ name: "unheard", gpus: 1, command: SLEEP });
        await b.page.getByText(`job ${id} runs`).waitFor();
        await d.until(() => b.said.length > 0, "what starts is asked for, in vain");
        await b.page.unroute("**/v1/gpus?*");
        await stat(b.page, "GPUs in use").getByText("5").waitFor();
        await d.ask("POST", `/v1/jobs/${id}/cancel`);
        await stat(b.page, "GPUs in use").getByText("4").waitFor();
        b.said.splice(0);
    });

    it("has one who looks, also when somebody logs in before the first glance", async () => {
        const v = await open(), { token } = await d.ask("POST", "/v1/tokens", { name: "early" }), glances = () => v.asked.filter((u) => u.endsWith("/v1/cluster")).length;
        try {
            let answer;
            const held = new Promise((f) => (answer = f));
            await v.page.route("**/v1/cluster", (r) => held.then(() => r.continue()));
            await v.page.goto(d.url);
            await v.page.getByRole("button", { name: "Log in" }).click();
            await v.page.getByLabel("Token").fill(token);
            await v.page.getByRole("dialog").getByRole("button", { name: "Log in" }).click();
            await v.page.getByRole("button", { name: "Log out" }).waitFor();
            const answered = v.page.waitForResponse("**/v1/cluster");
            answer();
            await answered;
            const before = glances();
            await v.page.waitForTimeout(5000); // two glances
            assert.equal(glances(), before);
        } finally {
            await v.close();
        }
    });

    it("fits a phone", async () => {
        const p = await open(VIEWS.phone);
        try {
            await p.page.goto(d.login);
            await stat(p.page, "GPUs in use").getByText("4").waitFor();
            assert.ok(await p.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "no sideways scrolling");
            assert.deepEqual(await p.axe(), []);
            await p.shot("cluster-phone", { fullPage: true });
            assert.deepEqual(p.said, []);
        } finally {
            await p.close();
        }
    });
});

describe("several nodes", { timeout: 1200000 }, () => {
    it("one GPU, and a whole node, are drained and used again", async () => {
        const d = await Daemon.start({ gpus: "2x4" }), b = await open();
        try {
            await b.page.goto(d.login);
            await b.page.getByRole("img", { name: /^8 GPUs\./ }).focus();
            for (let i = 0; i < 6; i++) await b.page.keyboard.press("ArrowRight"); // the first press chooses the first
            const name = (await d.get("/v1/nodes")).nodes[1].name, chosen = b.page.locator(".chosen"), gpus = async () => (await d.get("/v1/gpus")).gpus.map((g) => g.state);
            await chosen.getByText(name).waitFor();
            await b.says(`GPU 1 of ${name} takes no new jobs`, chosen.getByRole("button", { name: "Drain this GPU" }));
            assert.deepEqual(await gpus(), ["free", "free", "free", "free", "free", "drained", "free", "free"]);
            await stat(b.page, "out of use").getByText("1").waitFor();
            await b.shot("drained");
            await b.says(`GPU 1 of ${name} takes jobs again`, chosen.getByRole("button", { name: "Use it again" }));
            assert.deepEqual(await gpus(), Array(8).fill("free"));
            await b.says(`${name} takes no new jobs`, chosen.getByRole("button", { name: "Drain the node" }));
            await b.says(`${name} takes jobs again`, chosen.getByRole("button", { name: "Use the node again" })); // the page has heard of it
            await chosen.getByRole("button", { name: "Drain the node" }).waitFor();
            assert.deepEqual(await gpus(), Array(8).fill("free"));
            assert.deepEqual(await b.axe(), []);
            assert.deepEqual(b.said, []);
        } finally {
            await b.close();
            await d.close();
        }
    });
});
