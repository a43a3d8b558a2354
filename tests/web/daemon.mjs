// SPDX-License-Identifier: Apache-2.0
// daemon.mjs - a real daemon for the tests of the dashboard, with a state folder of its own.
//
//     const d = await Daemon.start({ gpus: 4, config: "..." }); // gpus: "20x8" for 20 machines; bin: other programs; host: to listen on
//     const id = await d.submit({ command: ["/bin/sleep", "60"], gpus: 1 });
//     await d.close();      // its jobs too
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const BUILD = process.env.STOKER ? dirname(process.env.STOKER) : join(ROOT, "build");

/** How long what must come may take: longer than anything takes, on a machine that others use too. Only what never comes takes longer. */
export const PATIENCE_MS = 240000;

const FIRST_PORT = 18000, PORTS = 14000;

/** Takes a folder away. What still writes there (processes on their way out) is waited for. */
export async function remove(folder) {
    for (const end = Date.now() + PATIENCE_MS; ;) {
        try {
            return rmSync(folder, { recursive: true, force: true });
        } catch (e) {
            if (Date.now() > end) throw e;
        }
        await new Promise((r) => setTimeout(r, 100));
    }
}

export class Daemon {
    static async start(options = {}) {
        const d = new Daemon();
        d.folder = mkdtempSync(join(tmpdir(), "stk-web-"));
        d.socket = join(d.folder, "s.sock");
        d.options = options;
        writeFileSync(join(d.folder, "stoker.yaml"), options.config ?? "");
        for (let left = 20; ; left--) {
            d.port = FIRST_PORT + Math.floor(Math.random() * PORTS);
            try {
                return await d.run();
            } catch (e) {
                if (left === 0 || !/Address already in use/.test(e.message)) throw e;
            }
        }
    }

    /** Starts it; after the first time on the same port, so that a browser finds it again: so it is none that the kernel gives to anybody who connects meanwhile. */
    run() {
        const args = ["--state", join(this.folder, "state"), "--socket", this.socket, "--listen", `${this.options.host ?? "127.0.0.1"}:${this.port}`, "--config", join(this.folder, "stoker.yaml"), "--default-cpus", String(this.options.defaultCpus ?? 0)];
        if (this.options.gpus !== undefined) args.push("--virtual-gpus", String(this.options.gpus));
        this.process = spawn(join(this.options.bin ?? BUILD, "stokerd"), args, { cwd: this.folder, env: { ...process.env, ...this.options.env }, stdio: ["ignore", "pipe", "pipe"] });
        this.errors = "";
        this.process.stderr.on("data", (x) => (this.errors += x));
        return new Promise((resolve, reject) => {
            let text = "";
            this.process.stdout.on("data", (x) => {
                text += x;
                if (!/^ready$/m.test(text)) return;
                this.url = /^\s+page\s+(http\S+)\/$/m.exec(text)[1];
                this.port = Number(new URL(this.url).port);
                // A link that logs in as often as a test wants; those that people get work once (link()).
                if (this.login) return resolve(this);
                this.ask("POST", "/v1/tokens", { name: "tests" }).then(({ token }) => {
                    this.login = `${this.url}/?token=${token}`;
                    resolve(this);
                }, reject);
            });
            this.process.on("close", (code) => reject(new Error(`stokerd: exit ${code}: ${text}${this.errors}`)));
        });
    }

    stop(signal = "SIGTERM") {
        return new Promise((resolve) => {
            this.process.removeAllListeners("exit");
            if (this.process.exitCode !== null) return resolve();
            this.process.on("exit", resolve);
            this.process.kill(signal);
        });
    }

    ask(method, path, body) {
        return new Promise((resolve, reject) => {
            const r = http.request({ socketPath: this.socket, method, path, headers: { Host: "localhost" } }, (a) => {
                let text = "";
                a.setEncoding("utf8");
                a.on("data", (x) => (text += x));
                a.on("end", () => {
                    if (a.statusCode >= 400) reject(new Error(`${method} ${path}: ${a.statusCode} ${text}`));
                    else resolve(text.startsWith("{") ? JSON.parse(text) : text);
                });
            });
            r.on("error", reject);
            r.end(body === undefined ? undefined : JSON.stringify(body));
        });
    }

    get(path) {
        return this.ask("GET", path);
    }

    /** What "stoker login" prints. */
    async link() {
        return (await this.ask("POST", "/v1/login/code")).url;
    }

    async submit(job) {
        return (await this.ask("POST", "/v1/jobs", { workdir: this.folder, ...job })).id;
    }

    async submitAll(jobs) {
        return (await this.ask("POST", "/v1/jobs", { jobs: jobs.map((j) => ({ workdir: this.folder, ...j })) })).ids;
    }

    async until(what, say = "what was waited for", ms = PATIENCE_MS) {
        const end = Date.now() + ms;
        for (;;) {
            const x = await what();
            if (x) return x;
            if (Date.now() > end) throw new Error(`never: ${say}`);
            await new Promise((r) => setTimeout(r, 50));
        }
    }

    untilState(id, ...states) {
        return this.until(async () => {
            const j = await this.get(`/v1/jobs/${id}`);
            return states.includes(j.state) ? j : null;
        }, `job ${id} is ${states}`);
    }

    async close() {
        try {
            for (;;) {
                const ids = (await this.get("/v1/jobs?limit=1000")).jobs.map((j) => j.id);
                if (!ids.length) break;
                await this.ask("POST", "/v1/jobs/act", { verb: "cancel", ids }).catch(() => undefined);
                await new Promise((r) => setTimeout(r, 100));
            }
        } catch { /* it is gone already */ }
        await this.stop();
        await remove(this.folder);
    }
}
