// SPDX-License-Identifier: Apache-2.0
// slurm_page.mjs - the dashboard of a daemon that has Slurm run its jobs; tests/slurm/test_everyday.py starts it.
//
//     node slurm_page.mjs LOGIN NUMBER SLURM SLURM SLURM     two jobs run, the third waits; NUMBER is ours of the first
import assert from "node:assert/strict";
import { open } from "./browser.mjs";

const [login, number, first, second, third] = process.argv.slice(2), b = await open();
try {
    await b.page.goto(login);
    await b.page.getByText("live", { exact: true }).waitFor();
    await b.page.locator(".stat dd").filter({ hasText: "8 of 8" }).first().waitFor(); // its GPUs are those of Slurm's nodes
    const at = (where) => b.page.goto(login.split("?")[0] + where);
    await at("#/queue");
    for (const id of [first, second, third]) await b.page.getByText(`Slurm ${id}`, { exact: true }).waitFor();
    await b.page.getByRole("searchbox").or(b.page.getByRole("textbox")).first().fill(third);
    await b.page.getByText(`Slurm ${first}`, { exact: true }).waitFor({ state: "detached" });
    await b.page.getByText(`Slurm ${third}`, { exact: true }).waitFor();
    await at(`#/job/${number}`);
    await b.page.getByText(`${first}, running`, { exact: true }).waitFor();
    await at(`#/job/slurm:${third}`); // by Slurm's number
    await b.page.getByRole("heading", { name: "three" }).waitFor();
    for (const page of ["tenants", "usage"]) {
        await at(`#/${page}`);
        await b.page.getByRole("heading").first().waitFor();
    }
    assert.deepEqual(b.said, []);
    console.log("the page is right");
} finally {
    await b.close();
}
