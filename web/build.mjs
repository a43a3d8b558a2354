// SPDX-License-Identifier: Apache-2.0
// build.mjs OUT - bundles the dashboard into OUT: app.js, app.css and index.html, minified. The same
// sources give the same bytes. Lines are cut at a length that scripts/embed likes.
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? ".");
let esbuild;
try {
    esbuild = await import("esbuild");
} catch (e) {
    console.error(`web: esbuild cannot be loaded (${e.code ?? e.message}): run scripts/bootstrap, which fills web/node_modules`);
    process.exit(1);
}
mkdirSync(out, { recursive: true });
try {
    await esbuild.build({
        entryPoints: { app: join(here, "src/main.tsx") },
        outdir: out,
        bundle: true,
        minify: true,
        lineLimit: 400,
        format: "iife",
        target: ["es2021"],
        charset: "utf8",
        legalComments: "none",
        jsx: "automatic",
        jsxImportSource: "preact",
        logLevel: "warning",
    });
} catch {
    process.exit(1); // esbuild has said why
}
copyFileSync(join(here, "src/index.html"), join(out, "index.html"));
