// SPDX-License-Identifier: Apache-2.0
// main.tsx - the frame of every page: where one is, who one is, and whether what is shown is true now.
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import "./style.css";
import { Alerts } from "./alerts";
import { logIn, logOut } from "./lib/api";
import { given } from "./lib/session";
import { clockSeconds, span } from "./lib/format";
import { link } from "./lib/live";
import { useTick } from "./lib/store";
import { askLogin, begin, enter, leave, session, unreachable } from "./lib/world";
import { BaselinesPage } from "./pages/baselines";
import { ClusterPage } from "./pages/cluster";
import { JobPage } from "./pages/job";
import { QueuePage } from "./pages/queue";
import { TenantsPage } from "./pages/tenants";
import { UsagePage } from "./pages/usage";
import { WhatIfPage } from "./pages/whatif";
import { dark, setTheme, theme } from "./theme";
import { Asking, Empty, Toasts } from "./ui";

interface Page { path: string; title: string; page: (p: { arg: string }) => preact.JSX.Element; hidden?: boolean }

const PAGES: Page[] = [
    { path: "cluster", title: "Cluster", page: ClusterPage },
    { path: "queue", title: "Queue", page: QueuePage },
    { path: "tenants", title: "Tenants", page: TenantsPage },
    { path: "usage", title: "Usage", page: UsagePage },
    { path: "whatif", title: "What if", page: WhatIfPage },
    { path: "baselines", title: "Baselines", page: BaselinesPage },
    { path: "job", title: "Job", page: JobPage, hidden: true },
];

function where(): { path: string; arg: string } {
    const [, path = "", arg = ""] = location.hash.split("/");
    return { path: path || "cluster", arg: decodeURIComponent(arg) };
}

function useWhere(): { path: string; arg: string } {
    const [at, set] = useState(where());
    useLayoutEffect(() => { // not after the first picture: a link that is followed before it would be missed
        const f = () => {
            set(where());
            window.scrollTo(0, 0);
        };
        window.addEventListener("hashchange", f);
        return () => window.removeEventListener("hashchange", f);
    }, []);
    return at;
}

function LinkState() {
    const l = link.use();
    useTick(1000);
    if (l.state === "live") return <span class="link live" title="Shown as it happens"><i aria-hidden="true" />live</span>;
    if (l.state === "off") return <span class="link"><i aria-hidden="true" />logged out</span>;
    if (l.state === "connecting") return <span class="link"><i aria-hidden="true" />connecting</span>;
    const ago = Date.now() / 1000 - l.since / 1000;
    return <span class="link stale" title={l.text}><i aria-hidden="true" />reconnecting, stale since {clockSeconds(l.since / 1000)} ({span(ago)})</span>;
}

function ThemeSwitch() {
    theme.use();
    const next = dark() ? "light" : "dark";
    return <button type="button" class="plain icon" onClick={() => setTheme(next)} aria-label={`Change to ${next}`} title={`Change to ${next}`}>{dark() ? "☀" : "☾"}</button>;
}

function Login() {
    const [token, setToken] = useState(""), [error, setError] = useState(""), [busy, setBusy] = useState(false), ref = useRef<HTMLDialogElement>(null), s = session.use();
    useEffect(() => {
        if (s?.asked && !ref.current?.open) ref.current?.showModal();
        if (!s?.asked && ref.current?.open) ref.current.close();
    }, [s?.asked]);
    if (!s?.asked) return null;
    const go = async (e: Event) => {
        e.preventDefault();
        if (!token.trim()) return setError("Paste a link or a token first.");
        setBusy(true);
        try {
            await logIn(given(token));
            setToken("");
            await begin();
        } catch (x) {
            setError((x as Error).message);
        }
        setBusy(false);
    };
    return (
        <dialog ref={ref} aria-labelledby="login" class="login" onClose={() => askLogin(false)}>
            <form onSubmit={go}>
                <h2 id="login">Log in</h2>
                <LoginHelp />
                <label for="token">Link or token</label>
                <input id="token" type="password" autocomplete="off" spellcheck={false} value={token} onInput={(e) => { setToken(e.currentTarget.value); setError(""); }} aria-describedby="login-error" aria-invalid={(error || s.wrong || "") !== ""} />
                <p id="login-error" class="bad" role="alert">{error || s.wrong}</p>
                <div class="actions">
                    <button type="button" onClick={() => askLogin(false)}>Not now</button>
                    <button type="submit" class="primary" disabled={busy}>Log in</button>
                </div>
            </form>
        </dialog>
    );
}

function LoginHelp() {
    return <p>On the machine that runs stoker, <code>stoker login</code> prints a link. Open it in this browser, or paste it here. A token does as well.</p>;
}

/** In place of a page, where nothing is seen without a login. */
function Closed(p: { ended?: boolean }) {
    return (
        <div class="empty">
            <h1>{p.ended ? "You are logged out" : "Log in to see this cluster"}</h1>
            {p.ended && <p>Your session has ended or was revoked.</p>}
            <LoginHelp />
            <p><button type="button" class="primary" onClick={() => askLogin(true)}>Log in</button></p>
        </div>
    );
}

/** Above a page that shows what anybody on this machine may see. */
function Ended() {
    return (
        <div class="ended" role="status">
            <span>You are logged out: your session has ended or was revoked. This is what anybody on this machine may see.</span>
            <button type="button" onClick={() => askLogin(true)}>Log in again</button>
        </div>
    );
}

function Me() {
    const you = session.use()?.health.you;
    if (!you) return <button type="button" class="primary" onClick={() => askLogin(true)}>Log in</button>;
    return (
        <span class="me">
            <span title={`You are ${you.role} here`}>{you.user}<small>{you.role}</small></span>
            <button type="button" class="plain" onClick={() => void logOut().then(leave)}>Log out</button>
        </span>
    );
}

function Frame() {
    const at = useWhere(), s = session.use(), gone = unreachable.use();
    const here = PAGES.find((p) => p.path === at.path);
    useEffect(() => {
        document.title = here ? `${here.title}${at.arg ? ` ${at.arg}` : ""} · stoker` : "stoker";
    }, [here, at.arg]);
    return (
        <>
            <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
            <header class="top">
                <a class="logo" href="#/cluster" aria-label="stoker: cluster">
                    <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true"><rect width="16" height="16" rx="4" fill="#d9480f" /><path d="M4 4h3v3H4zM9 4h3v3H9zM4 9h3v3H4z" fill="#fff" /><path d="M9 9h3v3H9z" fill="#ffd8a8" /></svg>
                    stoker
                </a>
                <nav aria-label="Pages">
                    {PAGES.filter((p) => !p.hidden).map((p) => <a href={`#/${p.path}`} aria-current={p.path === at.path || (p.path === "queue" && at.path === "job") ? "page" : undefined}>{p.title}</a>)}
                </nav>
                <div class="right"><LinkState /><ThemeSwitch /><Me /></div>
            </header>
            {s?.health.you && <Alerts />}
            {s?.ended && !s.closed && <Ended />}
            <main id="main" tabIndex={-1}>
                {gone && !s ? <div role="alert"><Empty whole title="The daemon cannot be reached">{gone}. Trying again.</Empty></div>
                    : !s ? <p class="banner">Loading</p>
                    : s.closed ? <Closed ended={s.ended} />
                    : here ? <here.page arg={at.arg} /> : <Empty whole title={`There is no page “${at.path}”`} />}
            </main>
            <footer>{s?.health.version && <>stoker {s.health.version} · policy {s.health.policy}{s.health.virtual && " · virtual GPUs: processes are real, only the devices are pretended"}</>}</footer>
            <Login />
            <Asking />
            <Toasts />
        </>
    );
}

void enter(); // first of all: it takes a login out of the address
render(<Frame />, document.getElementById("app") as HTMLElement);
