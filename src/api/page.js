"use strict";
/* Shows /v1/cluster, again every two seconds. Text is only ever set as text. */
const at = (id) => document.getElementById(id);

function el(tag, text, cls) {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (cls) e.className = cls;
    return e;
}

function span(s) {
    if (s < 120) return Math.floor(s) + " s";
    if (s < 7200) return Math.floor(s / 60) + " min";
    if (s < 172800) return Math.floor(s / 3600) + " h";
    return Math.floor(s / 86400) + " days";
}

/* Elements of an array are called by it, as everywhere. */
function jobName(o, number) {
    return o.array_id ? o.array_id + "_" + o.array_index : number;
}

function gpu(g) {
    const box = el("div", "", "gpu " + g.state);
    box.append(el("strong", "GPU " + g.index), " ", g.state);
    box.append(el("small", g.name));
    if (g.shares) box.append(...g.shares.map((p) => el("small", "job " + jobName(p, p.job) + " of " + p.user + ": " + p.gpus)));
    else if (g.job) box.append(el("small", "job " + jobName(g, g.job) + " of " + g.user));
    if (g.util !== undefined) box.append(el("small", g.util + " % busy"));
    if (g.mem_used_mib !== undefined && g.mem_mib)
        box.append(el("small", Math.round(g.mem_used_mib / 1024) + " of " + Math.round(g.mem_mib / 1024) + " GiB"));
    if (g.off) box.append(el("small", g.off));
    return box;
}

function table(id, jobs, columns) {
    const t = at(id);
    t.replaceChildren();
    if (!jobs.length) {
        t.append(el("caption", "none", "empty"));
        return;
    }
    const head = el("tr");
    for (const [name, , cls] of columns) head.append(el("th", name, cls));
    t.append(head);
    for (const j of jobs) {
        const row = el("tr");
        for (const [, value, cls] of columns) row.append(el("td", value(j), cls));
        t.append(row);
    }
}

function show(c) {
    at("line").textContent = c.version + ", policy " + c.policy + (c.virtual ? ", virtual GPUs" : "") + ": " +
        c.gpus.busy + " of " + c.gpus.total + " GPUs busy, " + c.jobs.running + " jobs run, " + c.jobs.waiting + " wait";
    at("gpus").replaceChildren(...c.gpu_list.map(gpu));
    const common = [["job", (j) => jobName(j, j.id), "n"], ["name", (j) => j.name], ["user", (j) => j.user], ["GPUs", (j) => j.gpus, "n"]];
    table("running", c.running, [...common, ["on", (j) => (j.gpu_indices || []).join(", ")],
        ["for", (j) => j.started ? span(c.now - j.started) : ""], ["state", (j) => j.turn ? j.turn.text : j.state]]);
    table("waiting", c.waiting, [...common, ["since", (j) => span(c.now - j.submitted)], ["state", (j) => j.state],
        ["why", (j) => j.state_text], ["starts in about", (j) => j.start_p50 ? span(j.start_p50 - c.now) : ""]]);
}

async function turn() {
    try {
        const r = await fetch("/v1/cluster");
        if (!r.ok) throw new Error("the daemon says " + r.status);
        show(await r.json());
    } catch (e) {
        at("line").textContent = "not reachable: " + e.message;
    }
    setTimeout(turn, 2000);
}

turn();
