// SPDX-License-Identifier: Apache-2.0
// A restart of the daemon, cleanly or with kill -9: pages say that they reconnect, come back by themselves, and go on where they were.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { open } from "./browser.mjs";
import { Daemon, PATIENCE_MS } from "./daemon.mjs";

const WRITER = "i=0; while [ ! -e go ]; do echo \"line $i äöü\"; i=$((i+1)); sleep 0.01; done; echo last";

describe("restart", { timeout: 600000 }, () => {
    let d, b;
    before(async () => {
        d = await Daemon.start({ gpus: 4 });
        b = await open();
        await b.page.goto(`${d.url}/?token=${(await d.ask("POST", "/v1/tokens", { name: "restart" })).token}`); // it holds over restarts
        await b.page.getByText("live", { exact: true }).waitFor();
    });
    after(async () => {
        await b?.close();
        await d?.close();
    });
    const bounce = async (signal) => {
        await d.stop(signal);
        await b.page.getByText("reconnecting, stale since").waitFor({ timeout: PATIENCE_MS });
        await d.run();
        await b.page.getByText("live", { exact: true }).waitFor({ timeout: PATIENCE_MS });
    };

    it("a job's output goes on at the byte where it was", async () => {
        const id = await d.submit({ name: "writer", script: WRITER, gpus: 1 });
        await d.untilState(id, "running");
        await b.page.goto(`${d.url}/#/job/${id}`);
        const log = b.page.getByRole("log"), size = () => readFileSync(file).length;
        await d.until(async () => (await log.textContent())?.includes("line 5 "));
        const file = (await d.ask("GET", `/v1/jobs/${id}`)).stdout;
        for (const signal of ["SIGTERM", "SIGKILL", "SIGTERM"]) {
            const before = size(), shown = (await log.textContent()).length;
            await bounce(signal);
            await d.until(() => size() > before);
            await d.until(async () => (await log.textContent()).length > shown);
            assert.equal(await b.page.getByText("network error").count(), 0);
        }
        writeFileSync(`${d.folder}/go`, "");
        await b.page.getByText("the end", { exact: true }).waitFor({ timeout: PATIENCE_MS });
        await d.until(async () => (await log.textContent()).endsWith("last\n"));
        const all = readFileSync(file, "utf8"), seen = await log.textContent();
        assert.ok(all.endsWith(seen) && (seen === all || seen.length > 100000), "lines are missing, or are there twice");
    });

    it("a job's output goes on at its byte when the log was cut to its cap", async () => {
        const lines = (from, to) => `awk 'BEGIN { for (i = ${from}; i < ${to}; i++) printf "byte %14d\\n", 20 * i }'`; // line i is at byte 20 i
        const wait = (x) => `until [ -e ${x} ]; do sleep 0.05; done`;
        const id = await d.submit({ name: "capped", script: [lines(0, 20000), wait("cap1"), lines(20000, 400000), wait("cap2"), lines(400000, 400010)].join("\n"), gpus: 1, log_max_mib: 1 });
        await d.untilState(id, "running");
        await b.page.goto(`${d.url}/#/job/${id}`);
        const log = b.page.getByRole("log"), shows = (byte) => d.until(async () => (await log.textContent()).endsWith(`byte ${String(byte).padStart(14)}\n`));
        const file = (await d.ask("GET", `/v1/jobs/${id}`)).stdout, asked = [];
        b.page.on("request", (r) => asked.push(...(r.url().match(`/jobs/${id}/log\\?.*offset=(\\d+)`)?.slice(1) ?? [])));
        await shows(399980);
        await d.stop();
        writeFileSync(`${d.folder}/cap1`, "");
        await d.until(() => readFileSync(file).length < 2 << 20 && readFileSync(file, "utf8").endsWith("byte        7999980\n"));
        await d.run();
        await shows(7999980);
        assert.deepEqual([...new Set(asked)], ["400000"]);
        await bounce("SIGKILL");
        writeFileSync(`${d.folder}/cap2`, "");
        await shows(8000180);
        assert.deepEqual([...new Set(asked)], ["400000", "8000000"]);
    });

    it("every page goes on: what happens after a restart is shown", async () => {
        for (const [page, signal] of [["queue", "SIGTERM"], ["cluster", "SIGKILL"]]) {
            await b.page.goto(`${d.url}/#/${page}`);
            await b.page.getByText("live", { exact: true }).waitFor();
            await bounce(signal);
            const name = `after-${page}`, id = await d.submit({ name, command: ["/bin/sleep", "1000"], gpus: 1 });
            await b.page.getByText(page === "queue" ? name : `job ${id} runs`).first().waitFor({ timeout: PATIENCE_MS });
        }
    });

    it("what a page could not load while the daemon was away is loaded when it is back", async () => {
        await d.stop();
        await b.page.getByText("reconnecting, stale since").waitFor({ timeout: PATIENCE_MS });
        await b.page.evaluate(() => { location.hash = "#/whatif"; }); // asks for policies and machines, once
        await b.page.getByRole("heading").first().waitFor();
        await d.run();
        await b.page.getByText("live", { exact: true }).waitFor({ timeout: PATIENCE_MS });
        await d.until(async () => (await b.page.locator("select option").count()) > 3);
    });
});
