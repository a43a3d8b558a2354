/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - every key there is. Parsing, help and docs/config.md come from this table. */
#include <inttypes.h>
#include <string.h>

#include "config/config.h"

#define AT(member) offsetof(struct stk_config, member)

/* clang-format off */
const struct stk_config_key stk_config_keys[] = {
    {"listen", STK_CONFIG_TEXT, AT(listen), NULL, 0, "127.0.0.1:8470",
     "address and port of the page and the API; port 0: any; off: do not listen"},
    {"socket", STK_CONFIG_TEXT, AT(socket), NULL, 0, "",
     "the Unix socket; /run/stoker/stoker.sock as root"},
    {"state", STK_CONFIG_TEXT, AT(state), NULL, 0, "",
     "folder of everything that is kept; /var/lib/stoker as root"},
    {"virtual_gpus", STK_CONFIG_NUMBER, AT(virtual_gpus), NULL, 64, "8 where there is no GPU",
     "pretend to have so many GPUs"},
    {"virtual_nodes", STK_CONFIG_NUMBER, AT(virtual_nodes), NULL, STK_CONFIG_MAX_NODES, "1",
     "pretend to be so many machines, eight in a rack, each with the virtual GPUs, or an equal "
     "part of the real ones; all processes run on this one"},
    {"engine", STK_CONFIG_WORD, AT(engine), "local|slurm", 0, "local",
     "who runs the jobs: this machine, or the Slurm cluster that it belongs to"},
    {"slurm.conf", STK_CONFIG_TEXT, AT(slurm.conf), NULL, 0, "Slurm's own", "slurm.conf"},
    {"slurm.gpu_type", STK_CONFIG_TEXT, AT(slurm.gpu_type), NULL, 0, "",
     "model of the GPUs of nodes on which each GPU has a type of its own (g0, g1, ...)"},
    {"slurm.partitions", STK_CONFIG_NAMES, AT(slurm.partitions), NULL, 0, "",
     "partitions whose nodes stoker schedules; each is a pool. Some may share nodes"},
    {"slurm.accounts", STK_CONFIG_PAIRS, AT(slurm.accounts), NULL, 0, "{}",
     "tenants of jobs by their Slurm accounts, where these have other names: {vis-2024: vision}"},
    {"slurm.qos", STK_CONFIG_PAIRS, AT(slurm.qos), NULL, 0, "{}",
     "queue, class or priority of users' own jobs by their QOS: {high: express, low: 'class:batch', urgent: 'priority:900'}"},
    {"resources", STK_CONFIG_AMOUNTS, AT(resources), NULL, UINT32_MAX, "{}",
     "named things of this machine that jobs take so much of: {licence: 2, nvme_gib: 7000}"},
    {"hosts", STK_CONFIG_NAMES, AT(hosts), NULL, 0, "",
     "names that browsers may use for this machine, beside its addresses"},
    {"insecure", STK_CONFIG_BOOL, AT(insecure), NULL, 1, "no",
     "listen beyond this machine without TLS"},
    {"tls.cert", STK_CONFIG_TEXT, AT(tls.cert), NULL, 0, "", "certificate, PEM"},
    {"tls.key", STK_CONFIG_TEXT, AT(tls.key), NULL, 0, "", "its key, PEM"},
    {"admins", STK_CONFIG_NAMES, AT(admins), NULL, 0, "",
     "users who may do everything, beside root and the daemon's own"},
    {"operators", STK_CONFIG_NAMES, AT(operators), NULL, 0, "",
     "users who may act on everybody's jobs and drain GPUs"},
    {"tenants", STK_CONFIG_TEAMS, 0, NULL, 0, "", "who shares the GPUs: [{name: vision, limit: 8, users: [ann]}] (spec/tenants.md)"},
    {"queues", STK_CONFIG_TEAMS, 0, NULL, 0, "the built in ones",
     "where jobs wait: {express: {job: {gpus: 2, time: 1h}, user: {jobs: 4}}, night: {class: batch}} (spec/queues.md)"},
    {"classes", STK_CONFIG_TEAMS, 0, NULL, 0, "{inference: 1000, training: 500, batch: 100}", "priorities by name"},
    {"default_queue", STK_CONFIG_TEAMS, 0, NULL, 0, "standard", "the queue of jobs that name none"},
    {"rules", STK_CONFIG_TEXT, AT(rules), NULL, 0, "",
     "file of rules, beside this file unless its path begins with /: what changes when, and until when"},
    {"policy.bundle", STK_CONFIG_POLICY, AT(policy.bundle), "bundle", 0, "default",
     "a named set of policies; \"policy: NAME\" for short"},
    {"policy.order", STK_CONFIG_POLICY, AT(policy.order), "order", 0, "", "in place of the bundle's"},
    {"policy.backfill", STK_CONFIG_POLICY, AT(policy.backfill), "backfill", 0, "", "likewise"},
    {"policy.place", STK_CONFIG_POLICY, AT(policy.place), "place", 0, "", "likewise"},
    {"policy.preempt", STK_CONFIG_POLICY, AT(policy.preempt), "preempt", 0, "", "likewise"},
    {"policy.params", STK_CONFIG_PARAMS, AT(policy.params), NULL, 0, "",
     "parameters by name (stoker sim --list)"},
    {"policy.predict", STK_CONFIG_BOOL, AT(policy.predict), NULL, 1, "yes",
     "jobs are expected to run as long as their user's past jobs of that size, but no longer than their time limit (spec/policy.md)"},
    {"limits.jobs", STK_CONFIG_NUMBER, AT(limits.jobs), NULL, 10000000, "2000000",
     "jobs that have not ended"},
    {"limits.jobs_per_user", STK_CONFIG_NUMBER, AT(limits.jobs_per_user), NULL, 10000000, "100000",
     "of one user; operators may have more"},
    {"limits.schedules_per_user", STK_CONFIG_NUMBER, AT(limits.schedules_per_user), NULL, 1000,
     "100", "schedules of one user; operators may have more"},
    {"limits.tokens_per_user", STK_CONFIG_NUMBER, AT(limits.tokens_per_user), NULL, 10000, "64",
     "tokens of one user that are valid; more are refused"},
    {"limits.sessions_per_user", STK_CONFIG_NUMBER, AT(limits.sessions_per_user), NULL, 10000, "16",
     "browsers in which one user is logged in; with one more, the one that was not used for longest is logged out"},
    {"defaults.cpus", STK_CONFIG_DECIMAL, AT(defaults.cpus), NULL, UINT64_C(1000000000000), "1",
     "CPUs per task of jobs that ask for neither GPUs nor CPUs; 0: such jobs reserve no CPUs and are not limited in number"},
    {"sessions.idle", STK_CONFIG_SECONDS, AT(sessions.idle_s), NULL, 31557600, "12h",
     "a browser is logged out when its page was not open for this long; 0: no idle limit"},
    {"sessions.age", STK_CONFIG_SECONDS, AT(sessions.age_s), NULL, 31557600, "7d",
     "a browser is logged out this long after it logged in, in any case; 0: no maximum age"},
    {"retention.age", STK_CONFIG_SECONDS, AT(retention.age_s), NULL, UINT64_C(3155760000), "90d",
     "jobs that ended longer ago are forgotten; 0: never. After the machine's clock was set forward, "
     "[a day later](architecture.md#time)"},
    {"retention.size", STK_CONFIG_BYTES, AT(retention.bytes), NULL, UINT64_C(1) << 50, "10G",
     "the oldest are forgotten when more is kept; 0: no bound"},
    {"bind_cpus", STK_CONFIG_BOOL, AT(bind_cpus), NULL, 1, "yes",
     "jobs with GPUs run on the CPUs near them, unless they ask for more CPUs than these are"},
    {"gpus.foreign", STK_CONFIG_WORD, AT(gpus.foreign), "block|pack|ignore", 0, "block",
     "a GPU that somebody uses without stoker: leave it alone; use it when no other is free and it "
     "has pack_mib left; or take no notice"},
    {"gpus.pack_mib", STK_CONFIG_NUMBER, AT(gpus.pack_mib), NULL, 10000000, "8192",
     "GPU memory in MiB that foreign processes must leave for jobs"},
    {"gpus.idle", STK_CONFIG_SECONDS, AT(gpus.idle_s), NULL, 31557600, "0",
     "when foreign processes have done nothing for so long their GPU is used as with pack; 0: never"},
    {"gpus.quiet", STK_CONFIG_SECONDS, AT(gpus.quiet_s), NULL, 31557600, "10m",
     "a GPU that had an error is used again when it has been well for so long; 0: never by itself"},
    {"gpus.interval_ms", STK_CONFIG_NUMBER, AT(gpus.interval_ms), NULL, 3600000, "5000",
     "time between two looks at the GPUs"},
    {"gpus.mem_action", STK_CONFIG_WORD, AT(gpus.mem_action), "stop|warn", 0, "stop",
     "what happens to a job with part of a GPU that takes more of its memory than it asked for"},
    {"gpus.mem_slack_mib", STK_CONFIG_NUMBER, AT(gpus.mem_slack_mib), NULL, 10000000, "1024",
     "GPU memory in MiB by which it may be over: CUDA itself takes some for each process"},
    {"gpus.share", STK_CONFIG_WORD, AT(gpus.share), "auto|none|mps", 0, "auto",
     "how jobs share a GPU that do not say; auto: mps where nvidia-cuda-mps-control is found, else none"},
    {"gpus.quantum", STK_CONFIG_SECONDS, AT(gpus.quantum_s), NULL, 31557600, "30s",
     "jobs that share a GPU in turns (share: time) run for so long before the next does"},
    {"gpus.switch_pct", STK_CONFIG_NUMBER, AT(gpus.switch_pct), NULL, 100, "10",
     "turns are longer where more than so much of the time, in percent, would go into switching; 100: they never are"},
    {"series.step", STK_CONFIG_SECONDS, AT(series.step_s), NULL, 60, "10s",
     "how often everything is measured, for plots: 1s, 2s, 5s, 10s, 30s; kept so for an hour"},
    {"series.size", STK_CONFIG_BYTES, AT(series.bytes), NULL, UINT64_C(1) << 40, "1G",
     "room for measurements of 15 minutes each, kept for 400 days or until there is more"},
    {"cost.gpu_hour", STK_CONFIG_DECIMAL, AT(cost.gpu_hour), NULL, UINT64_C(1000000000000), "0",
     "what an hour of a GPU costs, for reports: 2.5; 0: that is not said"},
    {"cost.kwh", STK_CONFIG_DECIMAL, AT(cost.kwh), NULL, UINT64_C(1000000000000), "0",
     "what a kWh of the GPUs costs beside that, where it is measured"},
    {"cost.currency", STK_CONFIG_TEXT, AT(cost.currency), NULL, 0, "", "its name: EUR"},
    {"alerts.idle", STK_CONFIG_SECONDS, AT(alerts.idle_s), NULL, 31557600, "30m",
     "alert when a job has GPUs and has done nothing for so long; 0: no such alert (as below)"},
    {"alerts.wait", STK_CONFIG_SECONDS, AT(alerts.wait_s), NULL, 31557600, "1d",
     "when a job has waited for longer"},
    {"alerts.gpu", STK_CONFIG_BOOL, AT(alerts.gpu), NULL, 1, "yes",
     "when a GPU is out of use for an error"},
    {"alerts.foreign", STK_CONFIG_SECONDS, AT(alerts.foreign_s), NULL, 31557600, "5m",
     "when a process that is none of our jobs' has been on a GPU for so long"},
    {"alerts.preemptions", STK_CONFIG_NUMBER, AT(alerts.preemptions), NULL, 1000000, "50",
     "when more jobs had to give way within ten minutes"},
    {"alerts.quota", STK_CONFIG_SECONDS, AT(alerts.quota_s), NULL, 31557600, "1h",
     "when a tenant is at its limit and has waited for more for so long"},
    {"alerts.store", STK_CONFIG_SECONDS, AT(alerts.store_s), NULL, 31557600, "30s",
     "when nothing can be written down for so long"},
    {"alerts.clock", STK_CONFIG_SECONDS, AT(alerts.clock_s), NULL, 31557600, "10s",
     "when the machine's clock was set back, and is behind stoker's time by more"},
    {"alerts.webhook", STK_CONFIG_TEXT, AT(alerts.webhook), NULL, 0, "",
     "address that alerts are sent to as JSON (POST, by curl)"},
    {"alerts.command", STK_CONFIG_TEXT, AT(alerts.command), NULL, 0, "",
     "command that gets them on its standard input, such as: mail -s \"$STOKER_SUBJECT\" ops@example.org"},
    {"idle.warn", STK_CONFIG_SECONDS, AT(idle.warn_s), NULL, 31557600, "0",
     "say so when a job has done nothing for so long; 0: never (as below)"},
    {"idle.suspend", STK_CONFIG_SECONDS, AT(idle.suspend_s), NULL, 31557600, "0",
     "suspend it while others wait for its GPUs"},
    {"idle.end", STK_CONFIG_SECONDS, AT(idle.end_s), NULL, 31557600, "0", "end it"},
    {"idle.shell_warn", STK_CONFIG_SECONDS, AT(idle.shell_warn_s), NULL, 31557600, "0",
     "the same for interactive jobs; 0: at half of the next"},
    {"idle.shell_suspend", STK_CONFIG_SECONDS, AT(idle.shell_suspend_s), NULL, 31557600, "30m",
     "likewise"},
    {"idle.shell_end", STK_CONFIG_SECONDS, AT(idle.shell_end_s), NULL, 31557600, "0", "likewise"},
    {0},
};
/* clang-format on */

_Static_assert(sizeof(stk_config_keys) / sizeof(*stk_config_keys) <= STK_CONFIG_MAX_KEYS,
               "struct stk_config has a line for each key");

const char *stk_config_type_name(enum stk_config_type t)
{
    switch (t) {
    case STK_CONFIG_TEXT:
        return "text";
    case STK_CONFIG_NUMBER:
        return "number";
    case STK_CONFIG_SECONDS:
        return "time";
    case STK_CONFIG_BYTES:
        return "size";
    case STK_CONFIG_DECIMAL:
        return "decimal number";
    case STK_CONFIG_BOOL:
        return "yes or no";
    case STK_CONFIG_WORD:
        return "word";
    case STK_CONFIG_NAMES:
        return "list of names";
    case STK_CONFIG_POLICY:
        return "policy";
    case STK_CONFIG_PAIRS:
    case STK_CONFIG_PARAMS:
        return "names and values";
    case STK_CONFIG_AMOUNTS:
        return "names and numbers";
    case STK_CONFIG_TEAMS:
        return "teams";
    }
    return "?";
}

void stk_config_print_keys(FILE *f)
{
    (void)fprintf(f, "| key | value | default | meaning |\n|---|---|---|---|\n");
    for (const struct stk_config_key *k = stk_config_keys; k->path; k++) {
        char words[80];
        size_t n = 0;

        (void)snprintf(words, sizeof(words), "%s",
                       k->type == STK_CONFIG_WORD ? k->words : stk_config_type_name(k->type));
        for (; words[n]; n++)
            if (words[n] == '|')
                words[n] = '/';
        (void)fprintf(f, "| `%s` | %s | %s | %s |\n", k->path, words, k->def, k->help);
    }
}
