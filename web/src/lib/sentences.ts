// SPDX-License-Identifier: Apache-2.0
// sentences.ts - events in words.
import type { Event } from "./live";
import { amount, plural, ranges } from "./format";

const CAUSE: Record<string, string> = { completed: "has completed", failed: "has failed", killed: "was killed", out_of_memory: "ran out of memory",
    timeout: "reached its time limit", node_lost: "lost its node", gpu_error: "ended with a GPU error", not_started: "could not be started",
    cancelled: "was cancelled", dependency_failed: "cannot run: what it depends on failed", lost: "was lost" };

function evicted(e: Event): string {
    if (e.sentence) return `is ${e.sentence as string}`;
    if (e.moved) return "moves to other GPUs";
    if (e.by_hand) return e.suspend ? "is being suspended" : "is being stopped";
    return e.suspend ? "is preempted and suspended" : "is preempted and goes back to the queue";
}

function where(e: Event): string {
    const pieces = e.pieces as { node: string; gpu_indices: number[] }[] | undefined;
    if (pieces && pieces.length > 1) return `${pieces.length} nodes`;
    const list = (e.gpu_indices as number[] | undefined) ?? [];
    return list.length ? `${e.node}, GPU ${ranges(list)}` : String(e.node ?? "");
}

/** What happened, without naming the job. */
export function verb(e: Event): string {
    switch (e.type) {
    case "submit": return `was submitted${e.gpus !== undefined ? `: ${plural(e.gpus as number, "GPU")}` : ""}`;
    case "place": return `gets ${where(e)}`;
    case "started": return "runs";
    case "exited": return (CAUSE[e.cause as string] ?? "has ended") + (e.cause === "failed" ? ` with code ${e.code}` : "");
    case "evict": return evicted(e);
    case "suspended": return "sleeps";
    case "hold": return "is held";
    case "release": return "is released";
    case "cancel": return "is cancelled";
    case "update": return "was changed";
    case "checkpoint": return "has saved a checkpoint";
    case "warning": case "turn": return String(e.text ?? "");
    default: return e.type;
    }
}

/** What happened, of events without a job. */
export function sentence(e: Event): string {
    switch (e.type) {
    case "node_down": return `${e.node} is down`;
    case "node_up": return `${e.node} is up`;
    case "node_off": return `${e.node} was switched off`;
    case "gpus_off": {
        const list = (e.gpu_indices as number[] | undefined) ?? [];
        return list.length ? `${e.node}: GPU ${ranges(list)} takes no new jobs` : `${e.node}: all GPUs take jobs`;
    }
    case "reserve": return `${amount(e.gpus as number)} GPUs are set aside`;
    case "unreserve": return `a reservation is over (${e.why})`;
    default: return e.type;
    }
}
