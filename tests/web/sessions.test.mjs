// SPDX-License-Identifier: Apache-2.0
// Logging in and out, and what a page on another port of the same host can do with a browser that is logged in:
// it collects what it gets and tries all that a page can try, and its server replays it. Nothing is accepted.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import http from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { open } from "./browser.mjs";
import { BUILD, Daemon } from "./daemon.mjs";

const loggedIn = (page) => page.getByRole("button", { name: "Log out" }).waitFor();
const sessions = async (d) => (await d.get("/v1/tokens")).tokens.filter((t) => t.kind === "session");

/** Another user's server on the same host, such as a TensorBoard: a page, and what came with each request for it. */
async function foreign(html) {
    const got = [], server = http.createServer((q, r) => {
        got.push({ url: q.url, headers: q.headers });
        r.setHeader("Content-Type", "text/html");
        r.setHeader("Access-Control-Allow-Origin", "*");
        r.end(html);
    });
    await new Promise((f) => server.listen(0, "127.0.0.1", f));
    return { got, url: `http://127.0.0.1:${server.address().port}`, close: () => new Promise((f) => server.close(f)) };
}

/** In the foreign page: everything that a page can send to the daemon. What it could read, or what is worth a look. */
async function attack(daemon) {
    const read = [];
    const note = (what, text) => read.push(`${what}: ${String(text).slice(0, 200)}`);
    const job = JSON.stringify({ command: ["/bin/sh", "-c", "id > /tmp/stoker-owned"], name: "owned", workdir: "/" });
    const tries = [];
    for (const path of ["/v1/jobs", "/v1/tokens", "/v1/health", "/v1/events"])
        for (const mode of ["cors", "no-cors"])
            for (const headers of [{}, { "Stoker-Session": "guess" }, { Authorization: "Bearer x" }])
                tries.push([path, { mode, credentials: "include", headers }]);
    for (const path of ["/v1/jobs", "/v1/tokens", "/v1/login/code", "/v1/logout", "/v1/login"])
        for (const mode of ["cors", "no-cors"])
            for (const type of ["text/plain", "application/json"])
                tries.push([path, { method: "POST", mode, credentials: "include", headers: { "Content-Type": type }, body: path === "/v1/jobs" ? job : "{}" }]);
    for (const [path, init] of tries) {
        try {
            const r = await fetch(daemon + path, init);
            if (r.type !== "opaque") note(`fetch ${path}`, `${r.status} ${path === "/v1/events" ? "" : await r.text()}`);
        } catch { /* refused */ }
    }
    await new Promise((done) => { // a form
        const f = document.createElement("form"), target = document.createElement("iframe"), input = document.createElement("input");
        target.name = "target";
        target.onload = target.onerror = done;
        f.action = `${daemon}/v1/jobs`;
        f.method = "POST";
        f.enctype = "text/plain";
        f.target = "target";
        input.name = '{"x": "';
        input.value = `", ${job.slice(1)}`;
        f.append(input);
        document.body.append(target, f);
        setTimeout(done, 5000);
        f.submit();
    });
    for (const path of ["/", "/v1/jobs"]) await new Promise((done) => { // a frame
        const f = document.createElement("iframe");
        f.onload = f.onerror = () => {
            try {
                if (f.contentWindow.localStorage.length || f.contentDocument.body.innerText) note(`frame ${path}`, f.contentDocument.body.innerText);
            } catch { /* not of this origin */ }
            done();
        };
        f.src = daemon + path;
        setTimeout(done, 5000);
        document.body.append(f);
    });
    for (const [tag, path] of [["script", "/v1/tokens"], ["script", "/app.js"], ["img", "/v1/jobs"]]) await new Promise((done) => {
        const e = document.createElement(tag);
        e.onload = () => {
            note(tag, "loaded");
            done();
        };
        e.onerror = done;
        e.src = daemon + path;
        document.body.append(e);
    });
    await new Promise((done) => { // streams
        const s = new EventSource(`${daemon}/v1/events`, { withCredentials: true });
        s.onopen = () => note("EventSource", "open");
        s.onerror = () => {
            s.close();
            done();
        };
    });
    await new Promise((done) => {
        const s = new WebSocket(`${daemon.replace("http", "ws")}/v1/events`);
        s.onopen = () => note("WebSocket", "open");
        s.onclose = done;
    });
    const w = window.open(daemon); // a window that it opened itself
    for (;;) { // blank, and of this origin, until the daemon's page comes
        try {
            void w.location.href;
        } catch {
            break;
        }
        await new Promise((done) => setTimeout(done, 50));
    }
    try {
        note("window", w.localStorage.length);
    } catch { /* not of this origin */ }
    w?.postMessage("session?", "*");
    navigator.sendBeacon(`${daemon}/v1/jobs`, job);
    return { read, cookie: document.cookie, storage: Object.entries(localStorage).concat(Object.entries(sessionStorage)) };
}

describe("sessions", { timeout: 1200000 }, () => {
    let d;
    before(async () => (d = await Daemon.start({ gpus: 2 })));
    after(() => d?.close());

    it("a page on another port of the host gets nothing that the daemon accepts", async () => {
        const b = await open(), evil = await foreign("<!doctype html><title>TensorBoard</title>");
        try {
            await b.page.goto(await d.link());
            await loggedIn(b.page);
            const half = await b.page.evaluate(() => localStorage.getItem("stoker.session")), page = await b.context.newPage();
            await page.goto(evil.url);
            const { read, cookie, storage } = await page.evaluate(attack, d.url);
            assert.deepEqual(read, [], "it could read something");
            assert.deepEqual([cookie, storage], ["", []]);
            const sent = evil.got.map((g) => g.headers.cookie ?? "").join("; ");
            assert.match(sent, new RegExp(`stoker-${d.port}=stc_`), "the browser sends the cookie to every port of the host: that is what this is about");
            assert.ok(!JSON.stringify(evil.got).includes(half), "the page's half went nowhere");

            // Replayed by its server, in every way there is.
            const cookies = [...new Set(sent.split("; ").filter(Boolean))], words = cookies.map((c) => c.split("=")[1]);
            const heads = cookies.map((c) => ["-H", `Cookie: ${c}`]).concat(words.map((x) => ["-H", `Authorization: Bearer ${x}`]),
                words.flatMap((x) => cookies.map((c) => ["-H", `Cookie: ${c}`, "-H", `Stoker-Session: ${x}`])), words.map((x) => ["-H", `Authorization: Bearer ${x}`, "-H", `Stoker-Session: ${x}`]));
            const curl = (...args) => execFileSync("curl", ["-s", "-o", "/dev/null", "-m", "60", "-w", "%{http_code}", ...args], { encoding: "utf8" });
            for (const head of heads)
                for (const args of [["/v1/jobs"], ["/v1/tokens"], ["/v1/events"], ["/v1/tokens", "-d", "{}"], ["/v1/login/code", "-X", "POST"], ["/v1/jobs", "-d", '{"command": ["/bin/true"], "workdir": "/"}']])
                    for (const origin of [[], ["-H", `Origin: ${d.url}`, "-H", "Sec-Fetch-Site: same-origin"]])
                        assert.equal(curl(...head, ...origin, d.url + args[0], ...args.slice(1)), "401", `${head} ${args}`);
            for (const x of words)
                for (const how of ["token", "code"])
                    assert.equal(curl("-H", `Origin: ${d.url}`, "-d", JSON.stringify({ [how]: x }), `${d.url}/v1/login`), "401");
            for (const x of words) assert.equal(curl(`${d.url}/?token=${x}`), "200", "the page, to anybody");

            assert.deepEqual((await d.get("/v1/jobs")).jobs, []);
            assert.deepEqual((await d.get("/v1/history")).jobs, []);
            assert.equal((await sessions(d)).length, 1, "nobody was logged out, or in");
            await b.page.reload();
            await loggedIn(b.page);
        } finally {
            await b.close();
            await evil.close();
        }
    });

    it("takes the secret out of the address, wherever it was, and a link works once", async () => {
        const b = await open(), link = await d.link(), { token } = await d.ask("POST", "/v1/tokens", { name: "address" });
        try {
            for (const address of [link, `${d.url}/?token=${token}`]) {
                await b.page.goto(address);
                await loggedIn(b.page);
                await b.page.getByText("GPUs in use").waitFor();
                await b.page.waitForURL(`${d.url}/`);
                const half = await b.page.evaluate(() => localStorage.getItem("stoker.session"));
                assert.match(half, /^stp_/);
                assert.equal(await b.page.evaluate(() => document.cookie), "");
                await b.page.getByRole("button", { name: "Log out" }).click();
                await b.page.getByRole("button", { name: "Log in" }).waitFor();
            }
            await b.page.goto(link);
            await b.page.getByText("was used already").waitFor();
            assert.equal(b.page.url(), `${d.url}/`);
            await b.page.getByLabel("Link or token").fill(await d.link()); // pasted
            await b.page.getByRole("dialog").getByRole("button", { name: "Log in" }).click();
            await loggedIn(b.page);
            assert.deepEqual(await b.axe(), []);
        } finally {
            await b.close();
        }
    });

    it("says that it is logged out when the session is revoked, and a link always works", async () => {
        const b = await open();
        try {
            await b.page.goto(await d.link());
            await loggedIn(b.page);
            await b.page.getByText("live", { exact: true }).waitFor();
            const other = await b.context.newPage(); // a second tab is logged in, too
            await other.goto(d.url);
            await loggedIn(other);
            for (const s of await sessions(d)) await d.ask("DELETE", `/v1/tokens/${s.id}`);
            for (const page of [b.page, other]) {
                await page.getByText("your session has ended or was revoked").waitFor();
                await page.getByText("live", { exact: true }).waitFor(); // what anybody may see, as it happens
            }
            await b.shot("session-ended");
            await b.page.getByRole("button", { name: "Log in again" }).click();
            await b.page.getByText("stoker login", { exact: true }).waitFor();
            assert.deepEqual(await b.axe(), []);
            await b.page.getByRole("button", { name: "Not now" }).click();
            await b.page.getByText("your session has ended or was revoked").waitFor();
            const id = await d.submit({ name: "seen-by-strangers", gpus: 1, command: ["/bin/sleep", "1000"] });
            await b.page.getByText("seen-by-strangers").first().waitFor(); // not stale
            await d.ask("POST", `/v1/jobs/${id}/cancel`);
            await b.page.reload();
            await b.page.getByRole("button", { name: "Log in" }).waitFor(); // the cookie that is no longer valid does no harm
            const { token } = await d.ask("POST", "/v1/tokens", { name: "again" });
            await b.page.goto(`${d.url}/?token=${token}`);
            await loggedIn(b.page);
            await loggedIn(other); // it hears of it
        } finally {
            await b.close();
        }
    });

    it("says that the daemon is away when that happens between the login and the first picture", async () => {
        const b = await open();
        try {
            const gone = (route) => route.abort();
            await b.page.route("**/v1/gpus*", gone); // what the first picture is made of
            await b.page.goto(await d.link());
            await loggedIn(b.page);
            await b.page.getByText("stale since").waitFor();
            await b.page.unroute("**/v1/gpus*", gone);
            await b.page.getByText("live", { exact: true }).waitFor();
        } finally {
            await b.close();
        }
    });

    it("shows what anybody may see when the session is revoked between the login and the first picture", async () => {
        const b = await open();
        try {
            await b.page.route("**/v1/gpus*", async (route) => {
                for (const s of await sessions(d)) await d.ask("DELETE", `/v1/tokens/${s.id}`);
                await route.continue();
            });
            await b.page.goto(await d.link());
            await b.page.getByText("This is what anybody on this machine may see").waitFor();
            await b.page.getByText("live", { exact: true }).waitFor();
            await b.page.getByText("GPUs in use").waitFor();
        } finally {
            await b.close();
        }
    });

    it("stays logged in over a restart", async () => {
        const b = await open();
        try {
            await b.page.goto(await d.link());
            await loggedIn(b.page);
            await b.page.getByText("live", { exact: true }).waitFor();
            await d.stop();
            await b.page.getByText("stale since").waitFor();
            await d.run();
            await b.page.getByText("live", { exact: true }).waitFor();
            await b.page.reload();
            await loggedIn(b.page);
        } finally {
            await b.close();
        }
    });
});

describe("a daemon that shows nothing to strangers", { timeout: 1200000 }, () => {
    it("has a view to log in, also after Not now, and when the session ends", async () => {
        const d = await Daemon.start({ gpus: 2, config: "insecure: yes\n", host: "0.0.0.0" }), b = await open();
        try {
            const url = `http://127.0.0.1:${d.port}`, view = (title) => b.page.getByRole("heading", { name: title }).waitFor();
            await b.page.goto(url);
            await view("Log in to see this cluster");
            await b.page.getByText("stoker login", { exact: true }).waitFor();
            await b.page.getByText("logged out", { exact: true }).waitFor();
            assert.deepEqual(await b.axe(), []);
            await b.page.getByRole("main").getByRole("button", { name: "Log in" }).click();
            await b.page.getByRole("button", { name: "Not now" }).click();
            await view("Log in to see this cluster");
            await b.page.goto(`${url}/#/login/${(await d.link()).split("/").at(-1)}`); // in the tab that is open
            await loggedIn(b.page);
            await b.page.getByText("live", { exact: true }).waitFor();
            for (const s of await sessions(d)) await d.ask("DELETE", `/v1/tokens/${s.id}`);
            await view("You are logged out");
            await b.shot("logged-out");
            await b.page.reload();
            await view("Log in to see this cluster");
        } finally {
            await b.close();
            await d.close();
        }
    });
});

it("the command that the page names is there", () => {
    assert.match(execFileSync(join(BUILD, "stoker"), ["login", "--help"], { encoding: "utf8" }), /link that logs a browser in/);
});
