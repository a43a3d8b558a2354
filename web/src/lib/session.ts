// SPDX-License-Identifier: Apache-2.0
// session.ts - this browser's half of its session. Browsers send a cookie to every port of a host, so that
// alone is worth nothing; this half lies in the storage of the page, which belongs to one port, and is sent as
// a header.
const KEY = "stoker.session";

let half: string | null = null;

function stored(): string | null {
    try {
        return localStorage.getItem(KEY);
    } catch { // storage is off: until the page is left
        return half;
    }
}

export function keep(session: string | null): void {
    half = session;
    try {
        if (session) localStorage.setItem(KEY, session);
        else localStorage.removeItem(KEY);
    } catch { /* in memory, then */ }
}

export function has(): boolean {
    return stored() !== null;
}

/** Calls back when another tab has logged in or out. */
export function onChange(f: () => void): void {
    window.addEventListener("storage", (e) => (e.key === KEY || e.key === null) && f());
}

/** fetch, with the session of the logged in user. */
export function request(path: string, init: RequestInit = {}): Promise<Response> {
    const session = stored();
    return fetch(path, session ? { ...init, headers: { ...init.headers, "Stoker-Session": session } } : init);
}

export type Given = { token: string } | { code: string };

/** What was pasted: a token, or a link that logs in. */
export function given(text: string): Given {
    const code = /#\/login\/([^/?#\s]+)/.exec(text)?.[1], token = /[?&]token=([^&#\s]+)/.exec(text)?.[1];
    return code ? { code: decodeURIComponent(code) } : { token: token ? decodeURIComponent(token) : text.trim() };
}

/** A login in the address of the page, which is taken out of there. */
export function fromAddress(): Given | null {
    const code = /^#\/login\/./.test(location.hash), token = new URLSearchParams(location.search).get("token");
    if (!code && token === null) return null;
    const found = code || token ? given(location.href) : null;
    history.replaceState(null, "", location.pathname + (code ? "" : location.hash));
    return found;
}
