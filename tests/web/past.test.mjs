// SPDX-License-Identifier: Apache-2.0
// The pages Usage and Tenants with two weeks of history (tests/lib/past.py): what they make of it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { open, SHOTS, VIEWS } from "./browser.mjs";
import { Daemon, ROOT } from "./daemon.mjs";

const STOKER = process.env.STOKER ?? join(ROOT, "build/stoker"), SLEEP = ["/bin/sleep", "1000"];
const CONFIG = `policy: {preempt: reclaim}
cost: {gpu_hour: 2.5, currency: EUR}
tenants:
  - {name: vision, guarantee: 1, users: [root]}
  - {name: speech, guarantee: 3, users: [root]}
`;

describe("with a past", { timeout: 1200000 }, () => {
    let d, b;
    const clean = async () => {
        assert.deepEqual(await b.axe(), []);
        assert.deepEqual(b.said, []);
    };
    before(async () => {
        d = await Daemon.start({ gpus: 4, config: CONFIG });
        for (const words of [{}, { class: "inference" }]) await d.untilState(await d.submit({ name: "one", gpus: 0, tenant: "speech", command: ["/bin/true"], ...words }), "done");
        await d.stop();
        execFileSync("/usr/bin/python3", [join(ROOT, "tests/lib/past.py"), join(d.folder, "state"), "vision", "speech"]);
        await d.run();
        const id = await d.submit({ name: "borrows", gpus: 3, tenant: "vision", command: SLEEP });
        await d.untilState(id, "running");
        b = await open();
        await b.page.goto(d.login);
    });
    after(async () => {
        await b?.close();
        await d?.close();
    });

    it("Usage: when, what could be better with the evidence, by tenant, progress per GPU-hour", async () => {
        await b.page.goto(`${d.url}/#/usage`);
        await b.page.getByRole("button", { name: "Allocated" }).click();
        const [weekday, day] = new Date().getDay() === 3 ? [1, "Tuesday"] : [2, "Wednesday"]; // not today: its hours still change
        const cell = async (hour, of) => Math.round(100 * (await d.get("/v1/usage?days=28")).cells.find((c) => c.weekday === weekday && c.hour === hour)[of]);
        for (const hour of [3, 12]) await b.page.getByTitle(`${day} ${hour}:00: ${await cell(hour, "allocated")} %`, { exact: true }).waitFor();
        await b.page.getByRole("button", { name: "Active" }).click();
        await b.page.getByTitle(`${day} 12:00: ${await cell(12, "active")} %`, { exact: true }).waitFor();
        const advice = (text) => b.page.locator(".advices li", { hasText: text });
        for (const [text, evidence] of [["GPUs are idle at night", "of the GPUs were not allocated then"], ["could share a GPU with others (--gpus 0.25)", "9.0 GiB of GPU memory"],
            ["“chat-api”", "at work 15% of the time"], ["“forgotten”", "at work 0% of the time"], ["ask for 1", "at work 20% of the time"]]) {
            const row = advice(text.replace(/[“”]/g, '"'));
            await row.getByText(evidence).waitFor();
            await row.getByText(/GPU-hours, [\d,.]+ EUR/).waitFor();
        }
        await advice("could shrink from 4 GPUs to 1").getByRole("link", { name: "job 100004" }).waitFor();
        const row = b.page.getByRole("row", { name: /^vision/ });
        const vision = (await d.get("/v1/usage?days=28")).tenants.find((t) => t.name === "vision");
        const shown = (x) => `${x.toLocaleString("en-US", { minimumFractionDigits: x < 1000 ? 2 : 0, maximumFractionDigits: x < 1000 ? 2 : 0 })}`.replace(/\.\d+$/, "(\\.\\d+)?");
        for (const x of [vision.money, vision.idle_money]) await row.getByText(new RegExp(`^${shown(x)} EUR`)).waitFor();
        await b.page.locator("section", { hasText: "Progress per GPU-hour" }).getByText(/2[45]\d(\.\d+)? steps/).waitFor();
        await clean();
        await b.shot("usage-past-light", { fullPage: true });
    });

    it("Tenants: fair share, waits and waste over time, in GPU-hours and money, and who lends to whom", async () => {
        await b.page.goto(`${d.url}/#/tenants`);
        await b.page.getByText(/speech lends to/).waitFor();
        await b.page.locator("li", { hasText: "speech lends to" }).getByText("2 GPUs").waitFor();
        await b.page.getByRole("button", { name: "7d" }).click();
        // 7 days: 12 h x 4 GPUs a day; vision has three quarters of it and uses 80 %
        const waste = b.page.locator("section", { hasText: "GPU-hours allocated and not active" });
        const line = async (name) => (await waste.locator("li", { hasText: name }).innerText()).replace(/\s+/g, " ");
        await waste.getByText("EUR").first().waitFor();
        const read = async () => /speech ([\d.]+) of ([\d.]+) \(\d+ %\), ([\d,.]+) EUR/.exec(await line("speech"));
        const [, idle, of, money] = await d.until(async () => { const x = await read(); return Math.abs(x[2] - 7 * 12) <= 12 && x; }, "all of the seven days are counted"); // not those of before
        assert.ok(Math.abs(idle / of - 0.8) < 0.02, `${idle} of ${of}`);
        assert.ok(Math.abs(money.replace(",", "") - idle * 2.5) < 1, `${money} EUR for ${idle} GPU-hours`);
        assert.ok(/vision [\d.]+ of [\d.]+ \(2\d %\)/.test(await line("vision")), await line("vision"));
        for (const [button, label] of [["Fair share", "fair share, in GPUs"], ["Waits", "what those that started had waited, mean"], ["Used", "GPUs used"]]) {
            await b.page.getByRole("button", { name: button, exact: true }).click();
            const plot = b.page.locator(".plot", { hasText: label });
            await plot.locator("canvas").waitFor();
            for (const name of ["vision", "speech"]) await plot.getByText(name, { exact: true }).waitFor();
        }
        await b.page.getByRole("row", { name: /speech/ }).getByText("10 min").waitFor(); // what those waited that started
        await b.shot("tenants-past-light", { fullPage: true });
        await b.page.getByRole("row", { name: /speech/ }).getByRole("button", { name: "speech" }).click();
        for (const name of ["used", "at work", "guarantee", "limit", "fair share", "asked for"]) await b.page.locator(".plot").getByText(name, { exact: true }).waitFor();
        await b.page.getByRole("row", { name: /vision/ }).getByRole("img", { name: /uses 3 GPUs; guarantee 1;/ }).waitFor();
        await clean();
        await b.shot("tenant-past-light", { fullPage: true });
    });

    it("the report beside a baseline: a page that prints well", async () => {
        const stoker = (...words) => execFileSync(STOKER, words, { env: { ...process.env, STOKER_SOCKET: d.socket } }).toString(), page = join(d.folder, "week.html");
        stoker("baseline", "add", "before", "--since", "14d", "--until", "7d", "--note", "the old <driver>");
        stoker("baseline", "note", "a new driver & more");
        stoker("report", "--since", "14d", "--against", "before", "--html", page);
        const v = await open({ ...VIEWS.light, viewport: { width: 900, height: 1200 } });
        try {
            await v.page.goto(`file://${page}`);
            await v.page.getByRole("heading", { name: "Against before" }).waitFor();
            await v.page.getByRole("row", { name: /wait, mean/ }).waitFor();
            await v.page.getByRole("row", { name: /a new driver & more/ }).waitFor();
            await v.page.getByText("could shrink from 4 GPUs to 1").waitFor();
            assert.deepEqual(v.asked.filter((u) => !u.startsWith("file:")), [], "it loads nothing");
            await v.shot("report", { fullPage: true });
            const wide = await v.page.evaluate(() => document.documentElement.scrollWidth);
            assert.ok(wide <= 900, `no wider than the window: ${wide}`);
            const pdf = (await v.page.pdf({ path: join(SHOTS, "report.pdf"), preferCSSPageSize: true })).toString("latin1");
            assert.ok(pdf.startsWith("%PDF") && /\/Count [1-4]\b/.test(pdf), "a few pages");
            assert.deepEqual(v.said, []);
        } finally {
            await v.close();
        }
    });

    it("and on a phone, in the dark", async () => {
        const v = await open({ ...VIEWS.phone, colorScheme: "dark" });
        try {
            await v.page.goto(d.login);
            for (const [hash, text] of [["usage", "could shrink"], ["tenants", "Who lends to whom"]]) {
                await v.page.goto(`${d.url}/#/${hash}`);
                await v.page.getByText(text).first().waitFor();
                assert.ok(await v.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${hash}: no sideways scrolling`);
                assert.deepEqual(await v.axe(), []);
                await v.shot(`${hash}-past-phone`, { fullPage: true });
            }
            assert.deepEqual(v.said, []);
        } finally {
            await v.close();
        }
    });
});
