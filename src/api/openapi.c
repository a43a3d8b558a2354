/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.c - the OpenAPI 3.1 document, made from the route table and the schemas beside it. */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/route.h"
#include "spec/spec.h"

extern const char stk_schema_json[];
extern const size_t stk_schema_json_len;

#define WORD_STATES "held|blocked|waiting|starting|running|suspended|stopping"
#define WORD_CAUSES                                                                                \
    "completed|failed|killed|out_of_memory|timeout|node_lost|gpu_error|not_started|evicted|"       \
    "cancelled|dependency_failed|lost"
#define HELP_STATE "only jobs in this state, or that ended like this"
#define HELP_AFTER "go on after this one: \"next\" of the page before, or an event's id"
#define HELP_LIMIT "rows at most (100; 1000 at the most), or bytes of a log"

/* What the queries take: whole numbers from 0 to max, one of these words, or any text. A name means
 * the same wherever it is used; rows with a path come first and are of that route alone. A test
 * asks every route for every bound and every word. */
static const struct query {
    const char *path, *name;
    int64_t max; /* -1: it is no number */
    const char *words, *help;
    bool needed;
} queries[] = {
    {"/v1/events", "after", INT64_MAX, NULL, HELP_AFTER, false},
    {"/v1/jobs/{id}/log", "limit", INT64_MAX, NULL, HELP_LIMIT, false},
    {"/v1/jobs", "state", -1, WORD_STATES, HELP_STATE, false},
    {"/v1/history", "state", -1, WORD_CAUSES "|done", HELP_STATE, false},
    {"/v1/jobs/{id}/items", "state", -1, "todo|given|done|failed", "only items in this state",
     false},
    {NULL, "after", UINT32_MAX - 1, NULL, HELP_AFTER, false},
    {NULL, "by", -1, "tenant|team|user|queue", "team is another word for tenant", false},
    {NULL, "before", UINT32_MAX - 1, NULL, "go on before this job: \"next\" of the page before",
     false},
    {NULL, "counts", -1, "line|inside",
     "the client counts bytes; those it has end with a line, or inside one", false},
    {NULL, "days", 400, NULL, "of the last days, this many (28; 400 at the most)", false},
    {NULL, "detail", 1, NULL, "1: with the description, where you may see it", false},
    {NULL, "dry_run", 1, NULL, "1: only check", false},
    {NULL, "empty", -1, NULL, "how to empty this node; without it: how to make room for jobs",
     false},
    {NULL, "env", 1, NULL, "1: with its environment, where you may see it", false},
    {NULL, "follow", 1, NULL, "1: go on as it grows, until the job has ended", false},
    {NULL, "gpu", UINT32_MAX, NULL, "of this GPU of the node", false},
    {NULL, "id", UINT32_MAX - 1, NULL, "of this job", false},
    {NULL, "limit", STK_API_MAX_PAGE, NULL, HELP_LIMIT, false},
    {NULL, "name", -1, NULL, "only jobs of this name; of this tenant", false},
    {NULL, "node", -1, NULL, "of this node", false},
    {NULL, "of", -1, "gpu|job|job_gpu|tenant|cluster", "what was measured", true},
    {NULL, "offset", INT64_MAX, NULL, "begin at this byte", false},
    {NULL, "queue", -1, NULL, "only jobs of this queue", false},
    {NULL, "since", STK_API_MAX_TIME, NULL,
     "at this time or later: ended, measured, changed; seconds since 1970", false},
    {NULL, "step", 31622400, NULL, "seconds from point to point; 0: as is reasonable", false},
    {NULL, "stream", -1, "stdout|stderr", "which output", false},
    {NULL, "tail", 100000, NULL, "begin with this many last lines", false},
    {NULL, "task", STK_MAX_TASKS, NULL, "of which task, from 0", false},
    {NULL, "tenant", -1, NULL, "only jobs of this tenant", false},
    {NULL, "timeout_s", 86400, NULL,
     "answer after this many seconds in any case (3600; 86400 at the most)", false},
    {NULL, "token", -1, NULL, "the secret of a token", false},
    {NULL, "until", STK_API_MAX_TIME, NULL,
     "before this time: ended, measured, changed; seconds since 1970", false},
    {NULL, "user", -1, NULL, "only jobs of this user; me: your own", false},
    {NULL, "while", -1, WORD_STATES "|done",
     "answer also when the job is in another state than this", false},
};

static json_t *query_schema(const struct query *q)
{
    if (q->words)
        return stk_spec_words_schema(q->words);
    if (q->max < 0)
        return json_pack("{s:s,s:s}", "type", "string", "pattern", "^[^\\x00]*$");
    return json_pack("{s:s,s:i,s:I}", "type", "integer", "minimum", 0, "maximum",
                     (json_int_t)q->max);
}

static void add_query(json_t *params, const char *path, const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
        const struct query *q = &queries[i];

        if (strlen(q->name) != len || memcmp(q->name, name, len) != 0 ||
            (q->path && strcmp(q->path, path) != 0))
            continue;
        (void)json_array_append_new(
            params, json_pack("{s:s,s:s,s:b,s:s,s:o}", "name", q->name, "in", "query", "required",
                              q->needed, "description", q->help, "schema", query_schema(q)));
        return;
    }
}

static json_t *path_schema(bool is_name)
{
    return is_name ? json_pack("{s:s,s:i,s:i,s:s}", "type", "string", "minLength", 1, "maxLength",
                               127, "pattern", "^[^/\\x00]+$")
                   : json_pack("{s:s,s:i,s:I}", "type", "integer", "minimum", 0, "maximum",
                               (json_int_t)UINT32_MAX - 1);
}

static json_t *parameters(const struct stk_route *r)
{
    json_t *params = json_array();

    for (const char *p = strchr(r->path, '{'); p; p = strchr(p + 1, '{'))
        (void)json_array_append_new(params,
                                    json_pack("{s:s%,s:s,s:b,s:o}", "name", p + 1,
                                              strcspn(p + 1, "}"), "in", "path", "required", 1,
                                              "schema", path_schema(strncmp(p, "{name}", 6) == 0)));
    for (const char *q = r->query; *q;) {
        size_t n = strcspn(q, " ");

        add_query(params, r->path, q, n);
        q += n + (q[n] == ' ');
    }
    return params;
}

static json_t *content(const char *schema, const char *type)
{
    char ref[80];

    (void)snprintf(ref, sizeof(ref), "#/components/schemas/%s", schema ? schema : "");
    if (!schema)
        return json_pack("{s:{s:{s:s}}}", type, "schema", "type", "string");
    return json_pack("{s:{s:{s:s}}}", "application/json", "schema", "$ref", ref);
}

/* Its handler asks whether there is a body. */
static bool may_be_empty(const struct stk_route *r)
{
    return strcmp(r->takes, "Verb") == 0 || strcmp(r->takes, "TokenNew") == 0;
}

static bool always(const struct stk_route *r)
{
    (void)r;
    return true;
}

static bool needs_login(const struct stk_route *r)
{
    return r->need != STK_NEED_NONE || strcmp(r->path, "/v1/login") == 0;
}

static bool changes_something(const struct stk_route *r)
{
    return strcmp(r->method, "GET") != 0;
}

/* Names something that may not be there, in the path, the query or the body. */
static bool names_things(const struct stk_route *r)
{
    return strchr(r->path, '{') || r->takes || *r->query;
}

/* How requests are refused, and by which routes. docs/spec/api.md has the codes. */
static const struct refusal {
    int status;
    const char *name, *help;
    bool (*is_of)(const struct stk_route *r);
} refusals[] = {
    {400, "BadRequest",
     "the request breaks this document: bad_request, bad_job, bad_quota, bad_reservation", always},
    {401, "Unauthorized", "no token, or one that is not known: unauthorized", needs_login},
    {403, "Forbidden", "not yours, or not your role: forbidden, not_allowed, over_limit", always},
    {404, "NotFound", "there is no such thing: not_found", names_things},
    {409, "Conflict",
     "not possible in the state that things are in: conflict, not_possible, overlaps, deadline, "
     "key_reused",
     names_things},
    {413, "TooLarge", "over a limit of size: too_large, too_many", names_things},
    {422, "Unprocessable",
     "as this document says, but the values do not go together, or name what is not there: "
     "unprocessable",
     names_things},
    {429, "TooMany", "this user has too much waiting: too_many, queue_full, unread", always},
    {501, "NotImplemented", "not possible on this machine: not_implemented", changes_something},
    {503, "Unavailable", "try again: busy, stopping, no_memory, unknown_user", always},
    {507, "CannotWrite", "nothing can be written down; nothing was changed: cannot_write",
     changes_something},
};

static json_t *responses(const struct stk_route *r)
{
    char status[8], ref[80];
    json_t *all = json_object();

    (void)snprintf(status, sizeof(status), "%d", r->status);
    (void)json_object_set_new(
        all, status,
        json_pack("{s:s,s:o}", "description", "done", "content", content(r->gives, r->type)));
    if (stk_route_takes(r, "dry_run"))
        (void)json_object_set_new(
            all, "200",
            json_pack("{s:s,s:o}", "description",
                      "with dry_run: when it would start; nothing was changed", "content",
                      content("Tried", NULL)));
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        if (!refusals[i].is_of(r))
            continue;
        (void)snprintf(status, sizeof(status), "%d", refusals[i].status);
        (void)snprintf(ref, sizeof(ref), "#/components/responses/%s", refusals[i].name);
        (void)json_object_set_new(all, status, json_pack("{s:s}", "$ref", ref));
    }
    return all;
}

static json_t *refusal_components(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        (void)json_object_set_new(all, refusals[i].name,
                                  json_pack("{s:s,s:o}", "description", refusals[i].help, "content",
                                            content("Error", NULL)));
    return all;
}

static json_t *operation(const struct stk_route *r)
{
    static const char *const needs[] = {
        [STK_NEED_NONE] = "none",   [STK_NEED_LOCAL] = "none on this machine, else user",
        [STK_NEED_USER] = "user",   [STK_NEED_OPERATOR] = "operator",
        [STK_NEED_ADMIN] = "admin",
    };
    json_t *o = json_pack("{s:s,s:s,s:o,s:o}", "summary", r->summary, "x-needs", needs[r->need],
                          "parameters", parameters(r), "responses", responses(r));

    if (r->takes)
        (void)json_object_set_new(o, "requestBody",
                                  json_pack("{s:b,s:o}", "required", !may_be_empty(r), "content",
                                            content(r->takes, NULL)));
    if (r->need == STK_NEED_NONE)
        (void)json_object_set_new(o, "security", json_array());
    if (r->need == STK_NEED_LOCAL)
        (void)json_object_set_new(o, "security", json_pack("[{s:[]},{}]", "bearer"));
    return o;
}

static void add_route(json_t *paths, const struct stk_route *r)
{
    json_t *path = json_object_get(paths, r->path);
    char method[16] = "";

    for (size_t i = 0; i < sizeof(method) - 1 && r->method[i]; i++)
        method[i] = (char)(r->method[i] | 0x20);
    if (!path) {
        path = json_object();
        (void)json_object_set_new(paths, r->path, path);
    }
    (void)json_object_set_new(path, method, operation(r));
}

/* What update takes: members of the job description, or null. */
static void add_changes(json_t *schemas)
{
    json_t *job = json_object_get(json_object_get(schemas, "JobSpec"), "properties"), *v;
    json_t *one = json_object_get(json_object_get(schemas, "Change"), "properties");
    json_t *many = json_object_get(json_object_get(schemas, "ActUpdate"), "properties");
    const char *key;
    char ref[120];

    json_object_foreach(job, key, v)
    {
        if (!stk_live_may_change(key))
            continue;
        (void)snprintf(ref, sizeof(ref), "#/components/schemas/JobSpec/properties/%s", key);
        v = json_pack("{s:[{s:s},{s:s}]}", "anyOf", "$ref", ref, "type", "null");
        (void)json_object_set(one, key, v);
        (void)json_object_set_new(many, key, v);
    }
}

json_t *stk_api_document(const struct stk_route *routes, const char *version)
{
    json_t *paths = json_object(), *schemas;

    schemas = json_loadb(stk_schema_json, stk_schema_json_len, JSON_REJECT_DUPLICATES, NULL);
    for (const struct stk_route *r = routes; r->method; r++)
        add_route(paths, r);
    (void)json_object_set_new(schemas, "JobSpec", stk_spec_schema());
    add_changes(schemas);
    return json_pack("{s:s,s:{s:s,s:s},s:o,s:{s:o,s:o,s:{s:{s:s,s:s}}},s:[{s:[]}]}", "openapi",
                     "3.1.0", "info", "title", "stoker", "version", version, "paths", paths,
                     "components", "schemas", schemas, "responses", refusal_components(),
                     "securitySchemes", "bearer", "type", "http", "scheme", "bearer", "security",
                     "bearer");
}

void stk_do_openapi(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;

    stk_request_json(r, 200, stk_api_document(stk_api_routes, a->cfg.version));
}
