/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - everything there is, in one table. */
#include "api/handlers.h"

#define PAGE "limit after"
#define VERB(verb, help)                                                                           \
    {                                                                                              \
        "POST", "/v1/jobs/{id}/" verb, stk_do_verb, STK_NEED_USER, "", "Verb", "Acted", NULL, 200, \
            help                                                                                   \
    }

/* clang-format off */
const struct stk_route stk_api_routes[] = {
    {"GET", "/v1/health", stk_do_health, STK_NEED_LOCAL, "", NULL, "Health", NULL, 200,
     "is the daemon well, and who am I to it"},
    {"POST", "/v1/jobs", stk_do_submit, STK_NEED_USER, "dry_run", "Submit", "Submitted", NULL, 201,
     "submit one job, or several: all or none"},
    {"GET", "/v1/jobs", stk_do_jobs, STK_NEED_USER, "state user name detail " PAGE, NULL, "Jobs", NULL, 200,
     "jobs that have not ended, by number"},
    {"POST", "/v1/jobs/act", stk_do_act, STK_NEED_USER, "", "Act", "Acted", NULL, 200,
     "do the same to many jobs"},
    {"GET", "/v1/jobs/{id}", stk_do_job, STK_NEED_USER, "env", NULL, "Job", NULL, 200,
     "one job, ended or not"},
    VERB("cancel", "end it, or take it out of the queue"),
    VERB("hold", "do not start it until it is released"),
    VERB("release", "let a held job go"),
    VERB("suspend", "put a running job to sleep and free its GPUs"),
    VERB("resume", "let a suspended job go on"),
    VERB("requeue", "stop it and put it back into the queue"),
    VERB("signal", "send its processes a signal"),
    VERB("update", "change time_limit_s, priority or name of a job that has not started"),
    {"GET", "/v1/jobs/{id}/why", stk_do_why, STK_NEED_USER, "", NULL, "Why", NULL, 200,
     "why it waits, and what would help"},
    {"GET", "/v1/jobs/{id}/log", stk_do_log, STK_NEED_USER, "stream task offset limit tail follow", NULL, NULL,
     "text/plain", 200, "its output; with follow=1 as it comes"},
    {"GET", "/v1/jobs/{id}/items", stk_do_items, STK_NEED_USER, "state " PAGE, NULL, "Items", NULL, 200,
     "the items of a batch and what came of them"},
    {"GET", "/v1/jobs/{id}/wait", stk_do_wait, STK_NEED_USER, "timeout_s while", NULL, "Job", NULL, 200,
     "the job once it has ended, or when the time is over"},
    {"POST", "/v1/jobs/{id}/report", stk_do_report, STK_NEED_USER, "", "Report", "Control", NULL, 200,
     "what the job says of its progress"},
    {"GET", "/v1/jobs/{id}/control", stk_do_control, STK_NEED_USER, "", NULL, "Control", NULL, 200,
     "what the job is told"},
    {"GET", "/v1/history", stk_do_history, STK_NEED_USER, "user name state since until limit before detail", NULL,
     "Jobs", NULL, 200, "jobs that have ended, the latest first"},
    {"GET", "/v1/nodes", stk_do_nodes, STK_NEED_USER, PAGE, NULL, "Nodes", NULL, 200, "the machines"},
    {"POST", "/v1/nodes/{name}/drain", stk_do_node_drain, STK_NEED_OPERATOR, "", NULL, "Acted", NULL, 200,
     "no new jobs on this machine"},
    {"POST", "/v1/nodes/{name}/resume", stk_do_node_resume, STK_NEED_OPERATOR, "", NULL, "Acted", NULL, 200,
     "use it again"},
    {"GET", "/v1/gpus", stk_do_gpus, STK_NEED_USER, PAGE, NULL, "Gpus", NULL, 200,
     "the GPUs, who has them and what they measure"},
    {"POST", "/v1/gpus/{index}/drain", stk_do_gpu_drain, STK_NEED_OPERATOR, "", NULL, "Acted", NULL, 200,
     "no new jobs on this GPU"},
    {"POST", "/v1/gpus/{index}/resume", stk_do_gpu_resume, STK_NEED_OPERATOR, "", NULL, "Acted", NULL, 200,
     "use it again"},
    {"GET", "/v1/cluster", stk_do_cluster, STK_NEED_LOCAL, "", NULL, "Cluster", NULL, 200,
     "everything at a glance"},
    {"POST", "/v1/adopt", stk_do_adopt, STK_NEED_USER, "", "Adopt", "Submitted", NULL, 201,
     "make a job of a process that runs already"},
    {"GET", "/v1/tokens", stk_do_tokens, STK_NEED_USER, "", NULL, "Tokens", NULL, 200,
     "your tokens; an admin sees all"},
    {"POST", "/v1/tokens", stk_do_token_new, STK_NEED_USER, "", "TokenNew", "TokenMade", NULL, 201,
     "make one; its secret is shown this once"},
    {"DELETE", "/v1/tokens/{id}", stk_do_token_delete, STK_NEED_USER, "", NULL, "Deleted", NULL, 200,
     "delete one"},
    {"GET", "/v1/events", stk_do_events, STK_NEED_USER, "after", NULL, NULL, "text/event-stream", 200,
     "what happens, as server-sent events; Last-Event-ID or after resumes"},
    {"GET", "/metrics", stk_do_metrics, STK_NEED_LOCAL, "", NULL, NULL, "text/plain", 200,
     "for Prometheus"},
    {"GET", "/openapi.json", stk_do_openapi, STK_NEED_NONE, "", NULL, "Document", NULL, 200,
     "this document"},
    {"GET", "/", stk_do_page, STK_NEED_NONE, "token", NULL, NULL, "text/html", 200,
     "the page; with a token it logs the browser in"},
    {"GET", "/page.js", stk_do_page_js, STK_NEED_NONE, "", NULL, NULL, "text/javascript", 200,
     "the page's script"},
    {0},
};
/* clang-format on */
