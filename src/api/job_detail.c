/* SPDX-License-Identifier: Apache-2.0 */
/* job_detail.c - the members of a job that are private, and those that are read from its
 * description and from whoever runs it. */
#include <string.h>

#include "api/job_row.h"
#include "api/logpath.h"
#include "api/spent.h"

/* Secrets show only their names. */
static void hide_secrets(json_t *spec)
{
    json_t *secrets = json_object_get(spec, "secrets"), *names = json_array(), *unused;
    const char *name;

    json_object_foreach(secrets, name, unused)
    {
        (void)json_array_append_new(names, json_string(name));
    }
    if (secrets)
        (void)json_object_set(spec, "secrets", names);
    json_decref(names);
}

/* A member of the description, or null. */
static void write_member(struct stk_writer *w, const char *key, json_t *borrowed)
{
    if (borrowed)
        stk_write_json(w, key, json_incref(borrowed));
    else
        stk_write_null(w, key);
}

/* What everybody may know of the description. */
static void write_open_members(struct stk_writer *w, json_t *spec)
{
    json_t *share = json_object_get(spec, "cpu_share");

    write_member(w, "time_limit_s", json_object_get(spec, "time_limit_s"));
    write_member(w, "cpus", share ? share : json_object_get(spec, "cpus"));
    stk_write_bool(w, "cpus_default", share != NULL);
    if (json_object_get(spec, "resources"))
        write_member(w, "resources", json_object_get(spec, "resources"));
}

static void write_own_members(const struct stk_job_row *r, struct stk_writer *w, json_t *spec)
{
    static const char *const top[] = {"command", "script", "args", "workdir", "envs"};

    hide_secrets(spec);
    if (!r->v->env)
        (void)json_object_del(spec, "envs");
    for (size_t i = 0; i < sizeof(top) / sizeof(*top); i++)
        if (json_object_get(spec, top[i]))
            write_member(w, top[i], json_object_get(spec, top[i]));
    write_member(w, "spec", spec);
}

/* Where its output is: by the description, where that was read, else as it was when it started. */
static void write_log(const struct stk_job_row *r, struct stk_writer *w, const json_t *spec,
                      bool is_err)
{
    const struct stk_record *rec = r->rec;
    const char *const known = is_err ? rec->stderr_path : rec->stdout_path;
    char path[4096];

    if (spec && stk_logpath(r->v->api, &(struct stk_logpath){rec, spec, is_err, 0}, path,
                            sizeof(path)) == 0)
        stk_write_text(w, is_err ? "stderr" : "stdout", path);
    else if (rec->stdout_path && *rec->stdout_path)
        stk_write_text(w, is_err ? "stderr" : "stdout", known);
}

/* What whoever runs it knows of it: its number there, its processes, what it cost. */
static void write_engine(const struct stk_job_row *r, struct stk_writer *w, bool may)
{
    const struct stk_api_config *c = &r->v->api->cfg;
    json_t *extra = r->v->detail ? json_object() : NULL;
    char id[32] = "";

    if (c->theirs)
        c->theirs(c->ctx, r->rec, r->v->detail, id, sizeof(id));
    if (!r->v->detail) {
        if (id[0])
            stk_write_json(w, "slurm", json_pack("{s:s}", "id", id));
        return;
    }
    stk_spent_set(r->v, extra, r->rec);
    if (id[0])
        (void)json_object_set_new(extra, "slurm", json_pack("{s:s}", "id", id));
    if (r->e && c->detail && may)
        c->detail(c->ctx, r->rec->number, extra);
    stk_write_members(w, extra);
}

void stk_job_row_private(const struct stk_job_row *r, struct stk_writer *w)
{
    const bool may = r->v->who && stk_live_may(r->v->who, r->rec->uid);
    json_t *spec = r->v->detail ? stk_live_spec(r->v->api->cfg.live, r->rec->spec) : NULL;

    if (r->v->detail)
        write_open_members(w, spec);
    if (may) {
        write_log(r, w, spec, false);
        write_log(r, w, spec, true);
    }
    if (may && spec)
        write_own_members(r, w, spec);
    json_decref(spec);
    write_engine(r, w, may);
}
