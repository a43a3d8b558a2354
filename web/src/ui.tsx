// SPDX-License-Identifier: Apache-2.0
// ui.tsx - small parts that every page uses.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { jobName } from "./lib/format";
import { Cell } from "./lib/store";

export function Panel(p: { title: string; note?: ComponentChildren; children: ComponentChildren; class?: string; actions?: ComponentChildren }) {
    return (
        <section class={`panel ${p.class ?? ""}`}>
            <header>
                <h2>{p.title}</h2>
                {p.note !== undefined && <span class="note">{p.note}</span>}
                {p.actions && <div class="actions">{p.actions}</div>}
            </header>
            {p.children}
        </section>
    );
}

export function Stat(p: { label: string; value: ComponentChildren; of?: ComponentChildren; hint?: string; tone?: string }) {
    return (
        <div class={`stat ${p.tone ?? ""}`} title={p.hint}>
            <dt>{p.label}</dt>
            <dd>
                {p.value}
                {p.of !== undefined && <small> {p.of}</small>}
            </dd>
        </div>
    );
}

/** whole: it is all there is on the page, and so its heading. */
export function Empty(p: { title: string; whole?: boolean; children?: ComponentChildren }) {
    return (
        <div class="empty">
            {p.whole ? <h1>{p.title}</h1> : <strong>{p.title}</strong>}
            {p.children && <p>{p.children}</p>}
        </div>
    );
}

/** A bar of parts, 0 to 1 each; `mark` is a line across it. Its label says the same in words. */
export function Bar(p: { parts: { at: number; colour?: string; class?: string }[]; label: string; mark?: number; thin?: boolean }) {
    const pct = (x: number) => `${Math.min(100, Math.max(0, x * 100)).toFixed(2)}%`;
    return (
        <span class={`bar ${p.thin ? "thin" : ""}`} role="img" aria-label={p.label} title={p.label}>
            {p.parts.map((x) => <span class={x.class} style={{ width: pct(x.at), background: x.colour }} />)}
            {p.mark !== undefined && <i style={{ left: pct(p.mark) }} />}
        </span>
    );
}

/** How a number has changed: by how much, and in a word whether that is good. */
export function Delta(p: { of: { text: string; tone: string; word: string } | null }) {
    return p.of ? <span class={`delta ${p.of.tone}`}>{p.of.text}{p.of.word && <small>{p.of.word}</small>}</span> : null;
}

export function JobLink(p: { job: { id: number; array_id?: number | null; array_index?: number | null }; children?: ComponentChildren }) {
    return <a href={`#/job/${p.job.id}`}>{p.children ?? jobName(p.job, p.job.id)}</a>;
}

export function Choice<T extends string>(p: { label: string; value: T; of: [T, string][]; onChange(v: T): void }) {
    return (
        <div class="choice" role="group" aria-label={p.label}>
            {p.of.map(([v, text]) => (
                <button type="button" aria-pressed={v === p.value} onClick={() => p.onChange(v)}>{text}</button>
            ))}
        </div>
    );
}

export function State(p: { state: string; cause?: string | null }) {
    const word = p.state === "done" ? p.cause ?? "done" : p.state;
    return <span class={`state s-${word}`}>{word.replace(/_/g, " ")}</span>;
}

// ---- messages: what was done, or why it was refused ----

interface Toast { id: number; text: string; bad: boolean }
const toasts = new Cell<Toast[]>([]);
let nextToast = 1;

export function say(text: string, bad = false): void {
    const t = { id: nextToast++, text, bad };
    toasts.set([...toasts.value, t]);
    window.setTimeout(() => toasts.set(toasts.value.filter((x) => x.id !== t.id)), bad ? 12000 : 5000);
}

export function Toasts() {
    const list = toasts.use();
    return (
        <div class="toasts" role="status" aria-live="polite">
            {list.map((t) => (
                <div key={t.id} class={t.bad ? "toast bad" : "toast"}>
                    <span>{t.text}</span>
                    <button type="button" class="plain" aria-label="Close this message" onClick={() => toasts.set(toasts.value.filter((x) => x.id !== t.id))}>×</button>
                </div>
            ))}
        </div>
    );
}

// ---- a question before something that cannot be taken back ----

interface Question { text: string; yes: string; go(): void }
const question = new Cell<Question | null>(null);

export function ask(text: string, yes: string, go: () => void): void {
    question.set({ text, yes, go });
}

export function Asking() {
    const q = question.use(), ref = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        if (q && !ref.current?.open) ref.current?.showModal();
    }, [q]);
    if (!q) return null;
    return (
        <dialog ref={ref} aria-labelledby="question" onClose={() => question.set(null)}>
            <p id="question">{q.text}</p>
            <div class="actions">
                <button type="button" onClick={() => ref.current?.close()}>No</button>
                <button type="button" class="primary" onClick={() => { ref.current?.close(); q.go(); }}>{q.yes}</button>
            </div>
        </dialog>
    );
}

/** Kept in this browser. */
export function useKept<T extends string>(name: string, first: T): [T, (v: T) => void] {
    const [v, set] = useState<T>(() => (localStorage.getItem(`stoker.${name}`) as T | null) ?? first);
    return [v, (x) => { localStorage.setItem(`stoker.${name}`, x); set(x); }];
}
