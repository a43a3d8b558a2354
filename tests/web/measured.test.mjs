// SPDX-License-Identifier: Apache-2.0
// GPUs that measure something (stand-ins for the driver's libraries, tests/lib/fake*.c): how busy they
// are, processes that are not jobs, a GPU that is put aside, and slices of a divided one.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { open } from "./browser.mjs";
import { Daemon, ROOT } from "./daemon.mjs";

const FAKES = join(process.env.STOKER ? dirname(process.env.STOKER) : join(ROOT, "build"), "tests/lib");
const SLEEP = ["/bin/sleep", "1000"];

async function world(gpus, env, f) {
    const dir = mkdtempSync(join(tmpdir(), "stk-fake-")), d = await (() => {
        mkdirSync(dir, { recursive: true });
        if (gpus) writeFileSync(join(dir, "topology"), `gpus ${gpus}\n`);
        return Daemon.start({ config: "gpus: {interval_ms: 200}\nseries: {step: 1s}\nalerts: {foreign: 1s}\ncost: {gpu_hour: 2.5, kwh: 0.3, currency: EUR}\n", env: { STOKER_GPU_LIB_DIR: FAKES, STOKER_FAKE_DIR: dir, ...env } });
    })(), b = await open();
    const write = (name, lines) => {
        writeFileSync(join(dir, "new"), lines.map((l) => l.join(" ") + "\n").join(""));
        renameSync(join(dir, "new"), join(dir, name));
    }, procs = (lines) => write("procs", lines);
    try {
        await b.page.goto(d.login);
        await f({ d, b, procs, write });
        assert.deepEqual(b.said, []);
    } finally {
        await b.close();
        await d.close();
        rmSync(dir, { recursive: true, force: true });
    }
}

describe("what is measured", { timeout: 1200000, skip: !existsSync(join(FAKES, "libnvidia-ml.so.1")) && "built without tests" }, () => {
    it("is shown: busy, memory, power, and who is there without a job", () => world(8, {}, async ({ d, b, procs }) => {
        const id = await d.submit({ name: "train", gpus: 3, command: SLEEP }), job = await d.untilState(id, "running"), pid = (await d.get(`/v1/jobs/${id}`)).pids[0];
        const stranger = spawn("/bin/sleep", ["1000"]);
        try {
            procs([...job.gpu_indices.map((g) => [g, pid, 61000, 90]), [7, stranger.pid, 9000, 50]]);
            await b.page.locator(".stat", { hasText: "used by others" }).getByText("1").waitFor();
            await b.page.locator(".stat", { hasText: "power" }).getByText(/W$/).waitFor();
            await b.page.locator(".stat", { hasText: "really busy" }).getByText("%").waitFor();
            const panel = (title) => b.page.locator("section", { has: b.page.getByRole("heading", { name: title }) });
            await panel("Free by model").getByText("4 of 8").waitFor(); // three are a job's, one is used by others
            await panel("Given out and used").getByText("38 %").waitFor(); // 3 of 8
            await panel("Given out and used").getByText("really busy").waitFor();
            await panel("Free in one piece").getByText("free on one node at most").waitFor();
            await panel("Power").getByText(/W/).waitFor();
            await b.page.getByRole("region", { name: "Alerts" }).getByText("warning").first().waitFor();
            await b.shot("alerts");
            await b.page.getByRole("button", { name: "Table" }).click();
            await b.page.getByRole("row", { name: /foreign processes/ }).waitFor();
            await b.page.getByRole("button", { name: "Map" }).click();
            await d.ask("POST", "/v1/gpus/6/drain");
            for (const mode of ["Utilization", "Health"]) {
                await b.page.getByRole("button", { name: mode }).click();
                await b.shot(`measured-${mode.toLowerCase()}`);
            }
            await b.page.getByText("used by others 1").waitFor();
            await b.page.locator(".gpus canvas").focus();
            for (let i = 0; i < 8; i++) await b.page.keyboard.press("ArrowRight");
            await b.page.getByText(`process ${stranger.pid}`).first().waitFor();
            assert.deepEqual(await b.axe(), []);
        } finally {
            stranger.kill();
        }
    }));

    it("of a job with four GPUs that uses one: each GPU, and what to ask for", () => world(8, {}, async ({ d, b, procs, write }) => {
        const id = await d.submit({ name: "wide", gpus: 4, command: SLEEP }), job = await d.untilState(id, "running"), pid = (await d.get(`/v1/jobs/${id}`)).pids[0];
        procs(job.gpu_indices.map((g, i) => [g, pid, i === 0 ? 61000 : 900, i === 0 ? 90 : 0]));
        write("busy", job.gpu_indices.map((g, i) => [g, i === 0 ? 90 : 0]));
        await d.until(async () => (await d.get(`/v1/jobs/${id}`)).efficiency?.verdict === "poor", "enough was measured for a verdict");
        const each = await d.until(async () => {
            const s = (await d.get(`/v1/series?of=job_gpu&id=${id}`)).series, last = s.map((x) => x.util.filter((u) => u !== null).at(-1));
            return s.length === 4 && last[0] > 0.8 && s;
        }, "one GPU is busy");
        assert.deepEqual(each.map((x) => x.member), [0, 1, 2, 3]);
        assert.deepEqual(each.map((x) => x.index.filter((u) => u !== null).at(-1)), job.gpu_indices);
        for (const x of each.slice(1)) assert.ok(x.util.filter((u) => u !== null).at(-1) < 0.02, "the others do nothing");
        const known = (list) => list.filter((u) => u !== null).at(-1);
        assert.ok(known(each[0].mem_mib) > 60000 && known(each[1].mem_mib) < 10000 && known(each[0].power_w) > known(each[1].power_w));
        await b.page.goto(`${d.url}/#/job/${id}`);
        for (const what of ["Busy", "GPU memory", "Power"]) {
            const plot = b.page.locator(".plot", { hasText: `${what}, each of its GPUs` });
            await plot.locator("canvas").waitFor();
            for (const g of job.gpu_indices) await plot.getByText(`GPU ${g}`, { exact: true }).waitFor();
        }
        await b.page.getByText("3 of 4 GPUs idle: ask for 1").waitFor();
        await b.page.locator(".facts div", { hasText: "energy" }).getByText("kWh").waitFor();
        await b.page.locator(".facts div", { hasText: "money" }).getByText("EUR").waitFor();
        assert.deepEqual(await b.axe(), []);
        await b.shot("job-gpus", { fullPage: true });
        await b.page.goto(`${d.url}/#/queue`);
        await b.page.getByRole("row", { name: /wide/ }).getByText(/poor, 2\d % busy/).waitFor();
        await b.page.goto(`${d.url}/#/job/${id}`);
        await d.ask("POST", `/v1/jobs/${id}/cancel`);
        await d.untilState(id, "done");
        await b.page.locator(".plot", { hasText: "Busy, each of its GPUs" }).locator("canvas").waitFor(); // kept when it has ended
        assert.equal((await d.get(`/v1/series?of=job_gpu&id=${id}`)).series.length, 4);
    }));

    it("slices of a divided GPU are in its cell", () => world(0, { STOKER_FAKE_MIG: "all" }, async ({ d, b }) => {
        for (const mig of ["3g.40gb", "1g.10gb"]) await d.submit({ name: `slice-${mig}`, mig, command: SLEEP });
        await b.page.locator(".stat", { hasText: "jobs run" }).getByText("2").waitFor();
        await b.page.getByRole("button", { name: "Table" }).click();
        await b.page.getByRole("row", { name: /slice|root/ }).first().waitFor();
        await b.page.getByRole("button", { name: "Map" }).click();
        await b.shot("slices");
    }));
});
