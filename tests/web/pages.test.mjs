// SPDX-License-Identifier: Apache-2.0
// The pages Queue, Job and Tenants: what they show, what they do, and what they refuse.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { open, VIEWS } from "./browser.mjs";
import { Daemon, ROOT } from "./daemon.mjs";

const SLEEP = ["/bin/sleep", "1000"], sh = (s) => ["/bin/sh", "-c", s];
const CONFIG = `policy: {preempt: reclaim}
tenants:
  - name: research
    guarantee: 6
    tenants:
      - {name: vision, guarantee: 3, users: [root]}
      - {name: speech, guarantee: 3, limit: 6, users: [root]}
  - {name: interns, users: [root]}
`;
const STOKER = process.env.STOKER ?? join(ROOT, "build/stoker");

describe("pages", { timeout: 1200000 }, () => {
    let d, b, loud, big;
    const clean = async () => {
        assert.deepEqual(await b.axe(), []);
        assert.deepEqual(b.said, []);
    };
    const go = (hash) => b.page.goto(`${d.url}/#/${hash}`);

    before(async () => {
        d = await Daemon.start({ gpus: 8, config: CONFIG });
        chmodSync(d.folder, 0o755);
        const failed = await d.submit({ name: "bad-lr", gpus: 1, tenant: "speech", command: sh("echo boom; exit 3") });
        await d.untilState(failed, "done");
        loud = await d.submit({ name: "train-llama", gpus: 4, tenant: "vision", time_limit_s: 7200,
            command: sh(`i=0; while ! [ -e ${d.folder}/quiet ]; do i=$((i+1)); echo "step $i loss 2.$((1000-i))"; sleep 0.2; done; echo last words; sleep 1000`) });
        await d.submit({ name: "whisper", gpus: 3, tenant: "speech", command: SLEEP, time_limit_s: 3600 });
        await d.submit({ name: "half", gpus: 0.5, tenant: "interns", command: SLEEP, time_limit_s: 1800 });
        big = await d.submit({ name: "everything", gpus: 8, tenant: "vision", command: SLEEP, time_limit_s: 3600 });
        for (let i = 0; i < 3; i++) await d.submit({ name: `small-${i}`, gpus: 2, tenant: "speech", command: SLEEP, time_limit_s: 3600 });
        await d.untilState(loud, "running");
        b = await open();
        await b.page.goto(d.login);
    });
    after(async () => {
        assert.deepEqual(b.asked.filter((u) => !u.startsWith(d.url) && !u.startsWith("data:")), [], "no page asks anybody else");
        await b?.close();
        await d?.close();
    });

    it("follows a link that is clicked before the first picture of the page", async () => {
        const v = await open();
        try {
            await v.page.goto(d.login);
            await v.page.addInitScript(() => {
                const slow = window.setTimeout;
                window.requestAnimationFrame = (f) => slow(() => f(performance.now()), 3000); // a browser that draws late
                window.setTimeout = (f, ms, ...more) => slow(f, ms === 100 ? 3000 : ms, ...more); // and what stands in for it
                document.addEventListener("DOMContentLoaded", () => { location.hash = "#/tenants"; });
            });
            await v.page.goto(d.url);
            await v.page.getByRole("row", { name: /^research/ }).waitFor();
        } finally {
            await v.close();
        }
    });

    it("Queue: who waits, why, where in line, and what would help", async () => {
        await go("queue");
        const row = b.page.getByRole("row", { name: /everything/ });
        await row.getByText("needs 8 GPUs").waitFor();
        await row.locator(".when").getByText(/\b\d+ (h|min)/).waitFor(); // when it is expected to start
        await row.getByRole("button", { name: "What would help?" }).click();
        await b.page.getByText("Who has what it needs").waitFor();
        await b.page.getByText("What would start it now").waitFor();
        await clean();
        await b.shot("queue-light", { fullPage: true });
    });

    it("Queue: what runs, how far it is and how well it uses what it has; all of it by keyboard", async () => {
        await d.ask("POST", `/v1/jobs/${loud}/report`, { step: 7, total: 10 });
        await b.page.getByRole("row", { name: /train-llama/ }).getByText("7 of 10").waitFor();
        await b.page.reload();
        await b.page.getByRole("row", { name: /everything/ }).waitFor();
        const met = [];
        for (let i = 0; i < 60 && !met.includes("What would help?"); i++) {
            await b.page.keyboard.press("Tab");
            met.push(await b.page.evaluate(() => {
                const e = document.activeElement, seen = getComputedStyle(e);
                return (seen.outlineStyle === "none" && seen.boxShadow === "none" ? "not seen: " : "") + (e.getAttribute("aria-label") || e.textContent).trim();
            }));
        }
        assert.equal(met[0], "To the content");
        for (const name of ["Cluster", "Queue", "Tenants", "Usage", "Lists", "Timeline", "Ended", "Choose all", "What would help?"]) assert.ok(met.includes(name), `${name}: ${met}`);
        assert.deepEqual(met.filter((x) => x.startsWith("not seen")), []);
        await b.page.keyboard.press("Enter");
        await b.page.getByText("What would start it now").waitFor();
        await b.page.keyboard.press("Enter");
    });

    it("Queue: filters, and acting on several at once", async () => {
        await b.page.getByLabel("Name, number, user or reason").fill("small");
        await b.page.getByRole("row", { name: /everything/ }).waitFor({ state: "detached" });
        await b.page.getByLabel("Choose all").first().check();
        await b.page.getByText("3 jobs chosen").waitFor();
        await b.says("3 jobs are held", b.page.getByRole("toolbar").getByRole("button", { name: "Hold" }));
        await b.page.locator(".s-held").nth(2).waitFor();
        await b.page.getByLabel("Choose all").first().check();
        await b.page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
        await b.page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
        await b.page.getByText("No job that waits matches").waitFor();
        await b.page.getByLabel("Name, number, user or reason").fill("");
        await clean();
    });

    it("Queue: the timeline and what has ended", async () => {
        await b.page.getByRole("button", { name: "Timeline" }).click();
        await b.page.locator("canvas[aria-label^=Timeline]").waitFor();
        await b.page.waitForFunction(() => !/ 0 stays/.test(document.querySelector("canvas").getAttribute("aria-label")));
        await clean();
        await b.shot("timeline-light");
        await b.page.getByRole("button", { name: "Ended" }).click();
        await b.page.getByRole("row", { name: /bad-lr/ }).getByText("failed").waitFor();
        await clean();
        await b.shot("ended-light");
        await b.page.getByRole("button", { name: "Lists" }).click();
    });

    it("Job: its life, its output as it comes, its use, and acting on it", async () => {
        await go(`job/${loud}`);
        await b.page.getByRole("heading", { name: "train-llama" }).waitFor();
        await b.page.locator(".life").getByText("runs").waitFor();
        await b.page.locator(".log").getByText(/step \d+ loss/).waitFor();
        writeFileSync(join(d.folder, "quiet"), "");
        await b.page.locator(".log").getByText("last words").waitFor();
        await b.page.getByText("GPU-hours").waitFor();
        await b.page.locator(".plot canvas").first().waitFor(); // the first measurements
        await clean();
        await b.shot("job-light", { fullPage: true });
        await b.page.getByRole("button", { name: "Cancel" }).click();
        await b.page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
        await b.page.locator(".life").getByText("was cancelled").waitFor();
        await b.page.getByText("cancelled", { exact: true }).first().waitFor();
    });

    it("Job: one that waits says why; numbers that are none are refused kindly", async () => {
        await go(`job/${big}`);
        await b.page.getByRole("heading", { name: "Why it waits" }).waitFor();
        await b.page.getByText("in line").waitFor();
        await clean();
        await go("job/nonsense");
        await b.page.getByText("is not the number of a job").waitFor();
        await clean();
    });

    it("Tenants: what each has, may have and should have", async () => {
        await go("tenants");
        const row = b.page.getByRole("row", { name: /speech/ });
        await row.getByRole("img", { name: /uses 3 GPUs; guarantee 3; .* limit 6/ }).waitFor();
        await row.getByRole("button", { name: "speech" }).click();
        await b.page.getByRole("heading", { name: "speech over time" }).waitFor();
        await b.page.getByText("Who lends to whom").waitFor();
        await b.page.locator(".plot canvas").first().waitFor();
        await clean();
        await b.shot("tenants-light", { fullPage: true });
    });

    it("Usage: when, by whom, and what could be better", async () => {
        await go("usage");
        await b.page.getByRole("heading", { name: "Hour by weekday" }).waitFor();
        await b.page.locator(".heat tbody td").nth(7 * 24 - 1).waitFor();
        assert.equal(await b.page.locator(".heat tbody td").count(), 7 * 24);
        await b.page.getByRole("heading", { name: "What could be better" }).waitFor();
        await b.page.getByRole("button", { name: "Allocated" }).click();
        await b.page.getByRole("button", { name: "7 days" }).click();
        await clean();
        await b.shot("usage-light", { fullPage: true });
    });

    it("dark and on a phone", async () => {
        for (const view of ["dark", "phone"]) {
            const v = await open(VIEWS[view]);
            try {
                await v.page.goto(d.login);
                for (const [hash, text] of [["queue", "needs 8 GPUs"], [`job/${big}`, "Why it waits"], ["tenants", "Use over time"], ["usage", "Hour by weekday"]]) {
                    await v.page.goto(`${d.url}/#/${hash}`);
                    await v.page.getByText(text).first().waitFor();
                    assert.ok(await v.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${hash}: no sideways scrolling`);
                    assert.deepEqual(await v.axe(), [], `${view} ${hash}`);
                    await v.shot(`${hash.split("/")[0]}-${view}`, { fullPage: true });
                }
                assert.deepEqual(v.said, []);
            } finally {
                await v.close(); // an open browser keeps the tests from ending
            }
        }
    });

    it("asks who is not logged in to log in before anything is done", async () => {
        const v = await open();
        try {
            await v.page.goto(`${d.url}/#/queue`);
            await v.page.getByLabel(`Choose job ${big}`).check();
            await v.page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
            await v.page.getByRole("dialog").getByLabel("Token").waitFor();
            assert.equal((await d.get(`/v1/jobs/${big}`)).state, "waiting");
            for (const hash of ["tenants", "usage", `job/${big}`]) {
                await v.page.goto(`${d.url}/#/${hash}`);
                await v.page.getByText(/^Log in to see/).waitFor();
            }
            assert.deepEqual(v.said, []);
        } finally {
            await v.close();
        }
    });

    it("refuses what is not yours, and says why", { skip: process.getuid?.() !== 0 && "needs root, to be somebody else" }, async () => {
        const made = JSON.parse(execFileSync(STOKER, ["token", "create", "--json"], { uid: 65534, gid: 65534, env: { ...process.env, HOME: "/", STOKER_SOCKET: d.socket } }).toString());
        const v = await open();
        try {
            await v.page.goto(`${d.url}/?token=${made.token}`);
            await v.page.getByText("nobody").waitFor();
            await v.page.goto(`${d.url}/#/job/${big}`);
            await v.page.getByRole("button", { name: "Cancel" }).click();
            await v.page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
            await v.page.locator(".toast.bad").waitFor();
            assert.match(await v.page.locator(".toast.bad").innerText(), new RegExp(`Job ${big}: .*(yours|root)`));
            await v.page.goto(`${d.url}/#/cluster`);
            await v.page.getByRole("img", { name: /^8 GPUs\./ }).click({ position: { x: 30, y: 40 } });
            await v.page.getByRole("heading", { name: "GPU 0" }).waitFor();
            assert.equal(await v.page.getByRole("button", { name: /Drain/ }).count(), 0, "only operators are offered to drain");
            assert.equal((await d.get(`/v1/jobs/${big}`)).state, "waiting");
            await v.shot("refused");
        } finally {
            await v.close();
        }
    });

    it("lets an operator drain a GPU", async () => {
        await go("cluster");
        await b.page.getByRole("img", { name: /^8 GPUs\./ }).click({ position: { x: 30, y: 40 } });
        await b.says("GPU 0 takes no new jobs", b.page.getByRole("button", { name: "Drain this GPU" }));
        await b.says("takes jobs again", b.page.getByRole("button", { name: "Use it again" }));
        await clean();
    });
});
