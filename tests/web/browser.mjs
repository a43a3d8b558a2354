// SPDX-License-Identifier: Apache-2.0
// browser.mjs - Chromium as people have it, without a window; what a page says on its console, and
// pictures of it for build/web-shots.
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PATIENCE_MS, remove, ROOT } from "./daemon.mjs";

const require = createRequire(join(ROOT, "web/package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const SHOTS = join(ROOT, "build/web-shots");
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-color-profile=srgb"];

export const VIEWS = {
    light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
    dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
    phone: { viewport: { width: 390, height: 844 }, colorScheme: "light", isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};

/** A browser with an empty profile. view: one of VIEWS. */
export async function open(view = VIEWS.light) {
    const profile = mkdtempSync(join(tmpdir(), "stk-chromium-"));
    const context = await chromium.launchPersistentContext(profile, { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, headless: true, timeout: PATIENCE_MS, ...view });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = context.pages()[0] ?? (await context.newPage());
    const said = [], asked = [];
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && said.push(`${m.type()}: ${m.text()}`));
    page.on("pageerror", (e) => said.push(`exception: ${e.message}`));
    page.on("request", (r) => asked.push(r.url()));
    mkdirSync(SHOTS, { recursive: true });
    return {
        page, said, asked, context,
        shot: (name, options = {}) => page.screenshot({ path: join(SHOTS, `${name}.png`), ...options }),
        async axe() {
            await page.evaluate(() => Promise.allSettled(document.getAnimations().filter((a) => a.effect.getComputedTiming().endTime !== Infinity).map((a) => a.finished))); // colours on their way are no colours yet
            await page.evaluate(axe); // not as a script of the page: its policy allows none
            const r = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
            return r.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ") + " " + (n.failureSummary ?? "")).join(" | ")}`);
        },
        /** Clicks. The page says so for some seconds, so that is waited for from before the click. */
        async says(text, button) {
            await Promise.all([page.getByText(text).first().waitFor(), button.click()]);
        },
        async login(d) {
            await page.goto(d.login);
            await page.getByRole("button", { name: "Log out" }).waitFor();
        },
        async close() {
            await context.close();
            await remove(profile);
        },
    };
}
