// SPDX-License-Identifier: Apache-2.0
// picture.mjs - makes docs/page.png: a real daemon with real jobs, and its page; and docs/whatif.png: a past
// that was imported, and what another policy and one more node would have made of it.
//     make build && node tests/web/picture.mjs
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { open, VIEWS } from "./browser.mjs";
import { Daemon, ROOT } from "./daemon.mjs";

const SPIN = ["/bin/sh", "-c", "while :; do :; done"], SLEEP = ["/bin/sleep", "1000"];
const d = await Daemon.start({ gpus: "16x8", config: `policy: {preempt: reclaim}
tenants:
  - name: research
    guarantee: 96
    tenants:
      - {name: vision, guarantee: 40, users: [root]}
      - {name: speech, guarantee: 32, users: [root]}
      - {name: language, guarantee: 24, users: [root]}
  - {name: interns, limit: 16, users: [root]}
` });
const job = (name, tenant, gpus, tasks, hours, command = SLEEP) => ({ name, tenant, gpus, tasks, ...(tasks > 1 ? { tasks_per_node: 1, launch: "once" } : {}), command, time_limit_s: hours * 3600 });
try {
    await d.submitAll([job("llm-7b-pretrain", "language", 8, 4, 40), job("whisper-large", "speech", 8, 2, 9), job("segment-anything", "vision", 8, 2, 12), job("depth-v3", "vision", 4, 1, 5),
        job("diffusion-xl", "vision", 8, 1, 7), job("tts-multi", "speech", 4, 1, 3), job("vad", "speech", 1, 1, 1), job("asr-distil", "speech", 2, 1, 2), job("notebook-a", "interns", 0.5, 1, 2),
        job("notebook-b", "interns", 0.25, 1, 2), job("tokenizer", "language", 1, 1, 1, SPIN), job("reward-model", "language", 8, 1, 6), job("pose", "vision", 2, 1, 4), job("toy-gan", "interns", 1, 1, 1)]);
    await new Promise((r) => setTimeout(r, 20000));
    await d.submitAll([job("llm-30b", "language", 8, 10, 72), job("video-diffusion", "vision", 8, 8, 20), job("diarize", "speech", 8, 1, 2)]);
    await new Promise((r) => setTimeout(r, 25000));
    const b = await open({ ...VIEWS.light, viewport: { width: 1280, height: 940 }, deviceScaleFactor: 1.5 });
    await b.page.goto(d.login);
    await b.page.locator(".plot canvas").first().waitFor();
    for (const name of ["eval-mmlu", "ocr-sweep"]) await d.submit(job(name, "language", 1, 1, 1));
    await b.page.waitForTimeout(1500);
    await b.page.screenshot({ path: join(ROOT, "docs/page.png") });
    await b.page.setViewportSize({ width: 1280, height: 900 });
    const ask = (changes) => d.ask("POST", "/v1/whatif", { import: { text: readFileSync(join(ROOT, "tests/web/data/sacct.txt"), "utf8"), name: "sacct.txt", cluster: "2x8:a100" }, changes });
    const ids = [];
    for (const changes of [{ policy: { bundle: "easy" } }, { policy: { bundle: "fifo" } }, { policy: { bundle: "fair" }, add_nodes: "1x8:a100" }]) {
        ids.push((await ask(changes)).id);
        await d.until(async () => (await d.get(`/v1/whatif/${ids.at(-1)}`)).state === "done", "an answer");
    }
    await b.page.goto(`${d.url}/#/whatif/${ids.at(-1)}`);
    await b.page.getByRole("region", { name: "Variants" }).waitFor();
    await b.page.waitForTimeout(1500);
    await b.page.screenshot({ path: join(ROOT, "docs/whatif.png") });
    await b.close();
} finally {
    await d.close();
}
