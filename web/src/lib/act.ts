// SPDX-License-Identifier: Apache-2.0
// act.ts - doing something to jobs, and saying what came of it. Whoever may not do it is told why.
import { Refusal, send } from "./api";
import { plural } from "./format";
import { askLogin, jobs, you } from "./world";
import { ask, say } from "../ui";

export type Verb = "cancel" | "hold" | "release" | "suspend" | "resume" | "requeue";

const DONE: Record<Verb, string> = { cancel: "cancelled", hold: "held", release: "released", suspend: "being suspended", resume: "resumed", requeue: "put back into the queue" };

interface Acted { results: { id: number; ok: boolean; error?: string }[] }

async function go(verb: Verb, ids: number[]): Promise<void> {
    const what = ids.length === 1 ? `Job ${ids[0]}` : plural(ids.length, "job");
    try {
        const a = ids.length === 1 ? await send<Acted>("POST", `/v1/jobs/${ids[0]}/${verb}`) : await send<Acted>("POST", "/v1/jobs/act", { verb, ids });
        const bad = a.results.filter((r) => !r.ok).map((r) => `job ${r.id}: ${r.error ?? "refused"}`);
        if (bad.length < ids.length) say(`${bad.length ? plural(ids.length - bad.length, "job") : what} ${ids.length - bad.length === 1 ? "is" : "are"} ${DONE[verb]}.`);
        if (bad.length) say(bad.slice(0, 3).join("; ") + (bad.length > 3 ? ` and ${bad.length - 3} more` : ""), true);
    } catch (e) {
        say(`${what}: ${(e as Error).message}`, true);
        if (e instanceof Refusal && e.status === 401) askLogin(true);
    }
    jobs.touch();
}

export function act(verb: Verb, ids: number[]): void {
    if (!you()) {
        askLogin(true);
        return;
    }
    if (verb === "cancel" || verb === "requeue")
        ask(`${verb === "cancel" ? "End" : "Stop and queue again"} ${ids.length === 1 ? `job ${ids[0]}` : plural(ids.length, "job")}?`, verb === "cancel" ? "Cancel it" : "Requeue", () => void go(verb, ids));
    else void go(verb, ids);
}
