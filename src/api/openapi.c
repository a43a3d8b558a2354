/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.c - the OpenAPI 3.1 document, made from the route table and the schemas beside it. */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "spec/spec.h"

extern const char stk_schema_json[];
extern const size_t stk_schema_json_len;

/* Names in queries mean the same wherever they are used. */
static const struct {
    const char *name, *type, *help;
} queries[] = {
    {"after", "integer", "go on after this one: \"next\" of the page before, or an event's id"},
    {"by", "string", "tenant (team), user or queue"},
    {"before", "integer", "go on before this job: \"next\" of the page before"},
    {"days", "integer", "of the last so many days (28; 400 at the most)"},
    {"detail", "integer", "1: with the description, where you may see it"},
    {"dry_run", "integer", "1: only check"},
    {"env", "integer", "1: with its environment, where you may see it"},
    {"follow", "integer", "1: go on as it grows, until the job has ended"},
    {"gpu", "integer", "of this GPU of the node"},
    {"id", "integer", "of this job"},
    {"limit", "integer", "rows at most (100; 1000 at the most), or bytes of a log"},
    {"name", "string", "only jobs of this name; of this tenant"},
    {"node", "string", "of this node"},
    {"of", "string", "gpu, job, tenant or cluster"},
    {"offset", "integer", "begin at this byte"},
    {"queue", "string", "only jobs of this queue"},
    {"since", "integer", "at this time or later: ended, measured, changed; seconds since 1970"},
    {"state", "string", "only jobs in this state, or that ended like this"},
    {"step", "integer", "seconds from point to point; 0: as is reasonable"},
    {"stream", "string", "stdout or stderr"},
    {"tail", "integer", "begin with the last lines, so many"},
    {"task", "integer", "of which task, from 0"},
    {"tenant", "string", "only jobs of this tenant"},
    {"timeout_s", "integer", "answer after so many seconds in any case (3600; 86400 at the most)"},
    {"token", "string", "the secret of a token"},
    {"since", "integer", "at this time or later: ended, measured, changed; seconds since 1970"},
    {"user", "string", "only jobs of this user; me: your own"},
    {"while", "string", "answer also when the job is in another state than this"},
};

static void add_query(json_t *params, const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++)
        if (strlen(queries[i].name) == len && memcmp(queries[i].name, name, len) == 0)
            (void)json_array_append_new(params,
                                        json_pack("{s:s,s:s,s:s,s:{s:s}}", "name", queries[i].name,
                                                  "in", "query", "description", queries[i].help,
                                                  "schema", "type", queries[i].type));
}

static json_t *parameters(const struct stk_route *r)
{
    json_t *params = json_array();

    for (const char *p = strchr(r->path, '{'); p; p = strchr(p + 1, '{'))
        (void)json_array_append_new(
            params, json_pack("{s:s%,s:s,s:b,s:{s:s}}", "name", p + 1, strcspn(p + 1, "}"), "in",
                              "path", "required", 1, "schema", "type",
                              strncmp(p, "{name}", 6) == 0 ? "string" : "integer"));
    for (const char *q = r->query; *q;) {
        size_t n = strcspn(q, " ");

        add_query(params, q, n);
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

static json_t *operation(const struct stk_route *r)
{
    static const char *const needs[] = {
        [STK_NEED_NONE] = "none",   [STK_NEED_LOCAL] = "none on this machine, else user",
        [STK_NEED_USER] = "user",   [STK_NEED_OPERATOR] = "operator",
        [STK_NEED_ADMIN] = "admin",
    };
    char status[8];
    json_t *o;

    (void)snprintf(status, sizeof(status), "%d", r->status);
    o = json_pack("{s:s,s:s,s:o,s:{s:{s:s,s:o},s:{s:s,s:o}}}", "summary", r->summary, "x-needs",
                  needs[r->need], "parameters", parameters(r), "responses", status, "description",
                  "done", "content", content(r->gives, r->type), "default", "description",
                  "refused", "content", content("Error", NULL));
    if (r->takes)
        (void)json_object_set_new(o, "requestBody",
                                  json_pack("{s:o}", "content", content(r->takes, NULL)));
    if (r->need == STK_NEED_NONE)
        (void)json_object_set_new(o, "security", json_array());
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

json_t *stk_api_document(const struct stk_route *routes, const char *version)
{
    json_t *paths = json_object(), *schemas;

    schemas = json_loadb(stk_schema_json, stk_schema_json_len, JSON_REJECT_DUPLICATES, NULL);
    for (const struct stk_route *r = routes; r->method; r++)
        add_route(paths, r);
    (void)json_object_set_new(schemas, "JobSpec", stk_spec_schema());
    return json_pack("{s:s,s:{s:s,s:s},s:o,s:{s:o,s:{s:{s:s,s:s}}},s:[{s:[]}]}", "openapi", "3.1.0",
                     "info", "title", "stoker", "version", version, "paths", paths, "components",
                     "schemas", schemas, "securitySchemes", "bearer", "type", "http", "scheme",
                     "bearer", "security", "bearer");
}

void stk_do_openapi(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;

    stk_request_json(r, 200, stk_api_document(stk_api_routes, a->cfg.version));
}
