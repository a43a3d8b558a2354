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
        return Daemon.start({ config: "gpus: {interval_ms: 200}\nalerts: {foreign: 1s}\n", env: { STOKER_GPU_LIB_DIR: FAKES, STOKER_FAKE_DIR: dir, ...env } });
    })(), b = await open();
    const procs = (lines) => {
        writeFileSync(join(dir, "new"), lines.map((l) => l.join(" ") + "\n").join(""));
        renameSync(join(dir, "new"), join(dir, "procs"));
    };
    try {
        await b.page.goto(d.login);
        await f({ d, b, procs, dir });
        assert.deepEqual(b.said, []);
    } finally {
        await b.close();
        await d.close();
        rmSync(dir, { recursive: true, force: true });
    }
}

describe("what is measured", { timeout: 300000, skip: !existsSync(join(FAKES, "libnvidia-ml.so.1")) && "built without tests" }, () => {
    it("is shown: busy, memory, power, and who is there without a job", () => world(8, {}, async ({ d, b, procs }) => {
        const id = await d.submit({ name: "train", gpus: 3, command: SLEEP }), job = await d.untilState(id, "running"), pid = (await d.get(`/v1/jobs/${id}`)).pids[0];
        const stranger = spawn("/bin/sleep", ["1000"]);
        try {
            procs([...job.gpu_indices.map((g) => [g, pid, 61000, 90]), [7, stranger.pid, 9000, 50]]);
            await b.page.locator(".stat", { hasText: "used by others" }).getByText("1").waitFor();
            await b.page.locator(".stat", { hasText: "power" }).getByText(/W$/).waitFor();
            await b.page.locator(".stat", { hasText: "really busy" }).getByText("%").waitFor();
            await b.page.getByRole("region", { name: "Alerts" }).getByText("warning").first().waitFor({ timeout: 60000 });
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

    it("slices of a divided GPU are in its cell", () => world(0, { STOKER_FAKE_MIG: "all" }, async ({ d, b }) => {
        for (const mig of ["3g.40gb", "1g.10gb"]) await d.submit({ name: `slice-${mig}`, mig, command: SLEEP });
        await b.page.locator(".stat", { hasText: "jobs run" }).getByText("2").waitFor();
        await b.page.getByRole("button", { name: "Table" }).click();
        await b.page.getByRole("row", { name: /slice|root/ }).first().waitFor();
        await b.page.getByRole("button", { name: "Map" }).click();
        await b.shot("slices");
    }));
});
