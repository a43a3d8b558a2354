// SPDX-License-Identifier: Apache-2.0
// alerts.tsx - what is wrong now, above every page.
import { useState } from "preact/hooks";
import { get } from "./lib/api";
import { full, span } from "./lib/format";
import { Source } from "./lib/store";
import { listeners, now } from "./lib/world";
import { JobLink } from "./ui";

interface Alert { id: string | number; kind: string; severity: string; state?: string; since: number; text: string; job: number | null; node: string | null; gpu: number | null; tenant: string | null }

export const alerts = new Source<Alert[]>(async () => (await get<{ alerts: Alert[] }>("/v1/alerts")).alerts.filter((a) => a.state !== "resolved"), 15000);

listeners.add((e) => {
    if (e.type === "alert") alerts.touch();
});

const FEW = 2;

export function Alerts() {
    const list = alerts.use() ?? [], [all, setAll] = useState(false);
    if (!list.length) return null;
    const bad = [...list].sort((a, b) => Number(b.severity === "critical") - Number(a.severity === "critical") || a.since - b.since);
    return (
        <section class="alerts" aria-label="Alerts">
            <ul>
                {(all ? bad : bad.slice(0, FEW)).map((a) => (
                    <li key={a.id} class={a.severity === "critical" ? "critical" : ""}>
                        <strong>{a.severity}</strong><span class="inline">{a.text} {a.job !== null && <JobLink job={{ id: a.job }}>job {a.job}</JobLink>}</span><time title={full(a.since)}>{span(now() - a.since)}</time>
                    </li>
                ))}
            </ul>
            {bad.length > FEW && <button type="button" class="plain" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "Fewer" : `${bad.length - FEW} more`}</button>}
        </section>
    );
}
