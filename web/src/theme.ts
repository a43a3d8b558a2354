// SPDX-License-Identifier: Apache-2.0
// theme.ts - light or dark: as the system says, unless somebody has chosen here.
import { Cell } from "./lib/store";

export type Theme = "auto" | "light" | "dark";
const system = window.matchMedia("(prefers-color-scheme: dark)");

export const theme = new Cell<Theme>((localStorage.getItem("stoker.theme") as Theme | null) ?? "auto");

export function dark(): boolean {
    return theme.value === "dark" || (theme.value === "auto" && system.matches);
}

function apply(): void {
    document.documentElement.dataset.theme = dark() ? "dark" : "light";
}

export function setTheme(t: Theme): void {
    localStorage.setItem("stoker.theme", t);
    theme.value = t;
    apply();
    theme.changed();
}

system.addEventListener("change", () => {
    apply();
    theme.changed();
});
apply();
