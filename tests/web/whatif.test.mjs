// SPDX-License-Identifier: Apache-2.0
// The page What if: a question from the form to the answer, variants, imported pasts, stopping one, and
// what is refused. stoker-whatif is the real one, behind a gate that holds it while a file is there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { open, VIEWS } from "./browser.mjs";
import { BUILD, Daemon, ROOT } from "./daemon.mjs";

const HERE = dirname(fileURLToPath(import.meta.url)), SACCT = join(HERE, "data/sacct.txt");
const CONFIG = `policy: {bundle: fifo}
tenants:
  - {name: vision, limit: 4, users: [root]}
  - {name: speech, weight: 2, users: [root]}
`;

/** The programs of the build, with a gate before stoker-whatif. */
function gated(bin) {
    for (const f of readdirSync(BUILD)) {
        const from = join(BUILD, f);
        if (!statSync(from).isFile() || !f.startsWith("stoker")) continue;
        if (f === "stokerd") copyFileSync(from, join(bin, f)); // it looks for the others beside itself
        else if (f !== "stoker-whatif") symlinkSync(from, join(bin, f));
    }
    writeFileSync(join(bin, "stoker-whatif"), `#!/bin/sh
if [ -e ${bin}/hold ]; then echo '{"progress": 0.4, "step": "the past as it was"}'; while [ -e ${bin}/hold ]; do sleep 0.05; done; fi
exec ${BUILD}/stoker-whatif "$@"
`, { mode: 0o755 });
}

describe("what if", { timeout: 1200000 }, () => {
    let d, b, bin;
    const clean = async () => {
        assert.deepEqual(await b.axe(), []);
        assert.deepEqual(b.said, []);
    };
    const go = (hash) => b.page.goto(`${d.url}/#/${hash}`);
    const answered = (page = b.page) => page.locator("table.sides").waitFor();
    const row = (name, page = b.page) => page.locator("table.sides").getByRole("row", { name: new RegExp(`^${name}`) });

    before(async () => {
        bin = mkdtempSync(join(tmpdir(), "stk-bin-"));
        gated(bin);
        d = await Daemon.start({ gpus: "2x4", config: CONFIG, bin });
        const jobs = [];
        for (let i = 0; i < 6; i++) jobs.push({ name: `train-${i}`, gpus: 3, tenant: "vision", command: ["/bin/sleep", "1.2"], time_limit_s: 600 });
        for (let i = 0; i < 6; i++) jobs.push({ name: `asr-${i}`, gpus: 1, tenant: "speech", command: ["/bin/sleep", "0.7"], time_limit_s: 600 });
        for (const id of await d.submitAll(jobs)) await d.untilState(id, "done");
        await d.until(async () => (await d.get(`/v1/series?of=cluster&since=${Math.floor(Date.now() / 1000 - 3600)}`)).series[0]?.allocated?.some((x) => x !== null), "something is measured");
        b = await open();
        await b.login(d);
    });
    after(async () => {
        await b?.close();
        await d?.close();
        if (bin) rmSync(bin, { recursive: true, force: true });
    });

    it("asks with another policy, more nodes and another quota, and shows both sides", async () => {
        await b.page.getByRole("link", { name: "What if" }).click();
        await b.page.getByRole("button", { name: "24 h" }).click();
        await b.page.locator(".picture canvas").waitFor();
        await b.page.getByText(/starts?, \d+ ends? of jobs/).waitFor();
        await clean();
        await b.shot("whatif-form-light", { fullPage: true });
        await b.page.getByRole("combobox", { name: "policy" }).selectOption("teams");
        await b.page.getByText("guarantees of tenants are kept").first().waitFor();
        await b.page.getByLabel(/More, or fewer, nodes of 4/).fill("1");
        await b.page.getByLabel("limit of vision").fill("none");
        await b.page.getByLabel("guarantee of speech").fill("3");
        await b.page.getByText("Single choices and parameters").click();
        await b.page.getByRole("button", { name: "Add a parameter" }).click();
        await b.page.getByRole("combobox", { name: "parameter" }).selectOption("preempt.min_run_s");
        await b.page.getByRole("textbox", { name: "value" }).fill("60");
        await b.page.getByText(/policy teams; preempt.min_run_s=60; 1 node of 4 .* more; vision: limit none; speech: guarantee 3/).waitFor();
        await clean();
        await b.shot("whatif-changes-light", { fullPage: true });
        await b.page.getByLabel("Name of this run").fill("no limit for vision");
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await answered();
        await b.page.getByRole("heading", { name: "no limit for vision" }).waitFor();
        const text = await b.page.locator(".verdict").innerText();
        assert.match(text, /^Better\. Mean wait [\d.]+\ss → [\d.]+\ss, P90 wait .* mean completion .* utilization \d/s);
        assert.match(await row("wait, mean").innerText(), /▼ \d+ %\s*better/);
        assert.match(await row("GPUs").innerText(), /8\s+8\s+12/);
        await row("fairness \\(Jain\\)").waitFor();
        await b.page.getByRole("region", { name: "By tenant" }).getByRole("row", { name: /^vision 6/ }).waitFor();
        await b.page.locator(".plot canvas").nth(1).waitFor();
        assert.equal(await b.page.locator(".plot canvas").count(), 2);
        await clean();
        await b.shot("whatif-answer-light", { fullPage: true });
        const q = (await d.get("/v1/whatif")).questions[0];
        assert.deepEqual(q.question.changes.quotas, { vision: { limit: null }, speech: { guarantee: 3 } });
        assert.match(q.question.changes.add_nodes, /^1x4:/);
    });

    it("compares variants of one past in a table, and a link to a run works", async () => {
        await b.page.getByRole("button", { name: "Try another change" }).click();
        await b.page.getByText(/policy teams; preempt.min_run_s=60; 1 node of 4 .* more; vision: limit none/).waitFor();
        await b.page.getByRole("button", { name: "Forget changes" }).click();
        await b.page.getByText("Nothing is changed yet").waitFor();
        await b.page.getByRole("combobox", { name: "policy" }).selectOption("easy");
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await answered();
        const table = b.page.getByRole("region", { name: "Variants" }).locator("table");
        await table.getByRole("row", { name: /^policy easy this one/ }).waitFor();
        await table.locator("tbody tr").nth(2).waitFor();
        assert.equal(await table.locator("tbody tr").count(), 3);
        await table.getByRole("row", { name: /^no limit for vision .*\(best\)/ }).waitFor();
        await clean();
        await b.shot("whatif-variants-light", { fullPage: true });
        await table.getByRole("link", { name: "no limit for vision" }).click();
        await b.page.getByRole("heading", { name: "no limit for vision" }).waitFor();
        await b.page.reload();
        await b.page.getByRole("heading", { name: "no limit for vision" }).waitFor();
        await answered();
        await go("whatif/99999");
        await b.page.getByText("there is no question 99999").waitFor();
        b.said.splice(0); // the browser's own word for 404
    });

    it("takes a file of sacct: chosen, or dropped; and says what is wrong with others", async () => {
        await go("whatif");
        await b.page.getByRole("button", { name: "From a file" }).click();
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await b.page.getByText("Choose a file first.").waitFor();
        await b.page.locator("#history").setInputFiles({ name: "picture.png", mimeType: "image/png", buffer: Buffer.from([0x89, 0x50, 0xff, 0xfe]) });
        await b.page.getByText("picture.png is not a text file").waitFor();
        await b.page.locator("#history").setInputFiles(SACCT);
        await b.page.getByText(/64 rows, \d+ KiB, looks like sacct/).waitFor();
        await clean();
        await b.shot("whatif-import-light", { fullPage: true });
        await b.page.getByLabel("machines it ran on").fill("2x8:a100");
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await answered();
        await b.page.locator(".verdict").getByText(/No change was asked for\. Mean wait: .* recorded, .* under the policy of this daemon/).waitFor(); // never better or worse
        assert.match(await row("wait, mean").innerText(), /^wait, mean\s+\d+ h\s+\d+ h$/);
        await clean();
        await b.page.getByRole("button", { name: "Try another change" }).click();
        await b.page.getByText(/64 rows/).waitFor();
        await b.page.getByLabel("limit of nlp").fill("6");
        await b.page.getByRole("button", { name: "Add nodes" }).click();
        await b.page.getByRole("combobox", { name: "policy" }).selectOption("sjf");
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await answered();
        await b.page.getByText("sacct.txt on 2x8:a100").first().waitFor();
        assert.match(await row("GPUs").innerText(), /16\s+16\s+24/);
        assert.match(await row("wait, mean").innerText(), /min|h/);
        await b.page.getByText("3 without GPUs, or that never started").waitFor();
        await b.page.getByRole("region", { name: "By tenant" }).getByRole("row", { name: /^nlp/ }).waitFor();
        await clean();
        await b.shot("whatif-imported-light", { fullPage: true });
        await b.page.reload();
        await answered();
        await b.page.getByRole("button", { name: "Try another change" }).click();
        await b.page.getByText("Drop sacct.txt here again").waitFor();
        assert.equal(await b.page.getByLabel("machines it ran on").inputValue(), "2x8:a100");
        await go("whatif");
        const text = readFileSync(SACCT, "utf8").replace(/JobIDRaw\|JobID/, "Number|Name");
        const data = await b.page.evaluateHandle((t) => {
            const x = new DataTransfer();
            x.items.add(new File([t], "dropped.txt", { type: "text/plain" }));
            return x;
        }, text);
        await b.page.locator(".drop").dispatchEvent("drop", { dataTransfer: data });
        await b.page.locator(".drop").getByText("dropped.txt").waitFor();
        await b.page.getByRole("button", { name: "Forget changes" }).click();
        await b.page.getByLabel("machines it ran on").fill("");
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await b.page.getByText("It could not be answered.").waitFor();
        assert.match(await b.page.locator(".refused").innerText(), /import/);
        await clean();
    });

    it("shows how far it is, is stopped, and is deleted", async () => {
        writeFileSync(join(bin, "hold"), "");
        await go("whatif");
        await b.page.getByRole("button", { name: "Recorded here" }).click();
        await b.page.getByRole("button", { name: "24 h" }).click();
        await b.page.getByRole("combobox", { name: "policy" }).selectOption("conservative");
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await b.page.getByText("40 %: the past as it was").waitFor();
        await clean();
        await b.shot("whatif-running-light");
        await b.says("It is stopped.", b.page.locator("main .split > div").getByRole("button", { name: "Cancel" }));
        await b.page.getByRole("heading", { name: "What if" }).waitFor();
        assert.ok(!(await d.get("/v1/whatif")).questions.some((q) => q.state === "running"));
        rmSync(join(bin, "hold"));
        const n = (await d.get("/v1/whatif")).questions.length;
        await b.page.getByRole("button", { name: "Delete policy easy" }).click();
        await b.says("The answer is forgotten.", b.page.getByRole("dialog").getByRole("button", { name: "Delete" }));
        assert.equal((await d.get("/v1/whatif")).questions.length, n - 1);
        await b.page.getByRole("link", { name: "policy easy" }).waitFor({ state: "detached" });
    });

    it("refuses kindly: a second question of a user, what is somebody else's, and who is not logged in", async () => {
        writeFileSync(join(bin, "hold"), "");
        const token = (await d.ask("POST", "/v1/tokens", { role: "user" })).token, v = await open();
        try {
            await v.page.goto(`${d.url}/#/whatif`);
            await v.page.getByRole("heading", { name: "Log in to try things on the past" }).waitFor();
            await v.page.goto(`${d.url}/?token=${token}`);
            await v.page.goto(`${d.url}/#/whatif`);
            await v.page.getByRole("button", { name: "Run", exact: true }).click();
            await v.page.getByText("Working it out").waitFor();
            await v.page.getByRole("link", { name: "Ask something else" }).click();
            await v.page.getByRole("button", { name: "Run", exact: true }).click();
            await v.page.getByText("only operators may have several").waitFor();
            assert.deepEqual(await v.axe(), []);
            await v.shot("whatif-refused");
            assert.ok(v.said.every((x) => x.includes("429")), v.said.join());
        } finally {
            rmSync(join(bin, "hold"));
            await v.close();
        }
    });

    it("dark and on a phone", async () => {
        const id = (await d.get("/v1/whatif")).questions.find((q) => q.question.title === "no limit for vision").id;
        for (const view of ["dark", "phone"]) {
            const v = await open(VIEWS[view]);
            try {
                await v.page.goto(d.login);
                for (const [hash, name] of [["whatif", "whatif-form"], [`whatif/${id}`, "whatif-answer"]]) {
                    await v.page.goto(`${d.url}/#/${hash}`);
                    await (hash === "whatif" ? v.page.locator(".picture canvas").waitFor() : answered(v.page));
                    assert.ok(await v.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${hash}: no sideways scrolling`);
                    assert.deepEqual(await v.axe(), [], `${view} ${hash}`);
                    await v.shot(`${name}-${view}`, { fullPage: true });
                }
                assert.deepEqual(v.said, []);
                assert.deepEqual(v.asked.filter((u) => !u.startsWith(d.url) && !u.startsWith("data:")), []);
            } finally {
                await v.close();
            }
        }
    });
});

describe("what if, over two weeks that were measured (tests/lib/past.py)", { timeout: 1200000 }, () => {
    let d, b;
    before(async () => {
        d = await Daemon.start({ gpus: 4, config: "tenants:\n  - {name: vision, users: [root]}\n  - {name: speech, users: [root]}\n" });
        for (const words of [{}, { class: "inference" }]) await d.untilState(await d.submit({ name: "one", gpus: 0, tenant: "speech", command: ["/bin/true"], ...words }), "done");
        await d.stop();
        execFileSync("/usr/bin/python3", [join(ROOT, "tests/lib/past.py"), join(d.folder, "state"), "vision", "speech"]);
        await d.run();
        b = await open();
        await b.login(d);
    });
    after(async () => {
        await b?.close();
        await d?.close();
    });

    it("draws the load, takes the part that is drawn over, and replays it", async () => {
        await b.page.goto(`${d.url}/#/whatif`);
        const plot = b.page.locator(".picture .u-over"), from = b.page.getByLabel("from", { exact: true });
        await plot.waitFor();
        await b.page.getByText(/starts?, \d+ ends? of jobs; \d+ % of the GPUs given/).waitFor();
        await b.shot("whatif-past-light", { fullPage: true });
        const was = Date.parse(await from.inputValue()), box = await plot.boundingBox();
        await b.page.mouse.move(box.x + box.width * 0.4, box.y + 40);
        await b.page.mouse.down();
        await b.page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 5 });
        await b.page.mouse.up();
        await b.page.waitForFunction((t) => Date.parse(document.querySelector("input[type=datetime-local]").value) > t, was + 86400000);
        await b.page.getByRole("button", { name: "Other", pressed: true }).waitFor();
        await b.page.getByLabel(/More, or fewer, nodes of 4/).fill("1");
        await b.page.getByRole("button", { name: "30 days" }).click();
        await b.page.getByRole("button", { name: "Run", exact: true }).click();
        await b.page.locator("table.sides").waitFor();
        assert.deepEqual(await b.axe(), []);
        assert.deepEqual(b.said, []);
        await b.shot("whatif-past-answer-light", { fullPage: true });
    });
});
