/* SPDX-License-Identifier: Apache-2.0 */
/* report_html.c - the report as one page: no script, nothing from elsewhere, colours that survive a
 * printer. Every text from outside is escaped where it is written. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "cli/ask.h"
#include "cli/baseline.h"
#include "cli/report.h"
#include "cli/view.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    "<title>GPU report</title><style>\n"
    "@page{size:A4;margin:16mm}\n"
    "*{box-sizing:border-box}\n"
    "body{font:14px/1.45 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,"
    "sans-serif;color:#1c2330;background:#fff;max-width:960px;margin:0 auto;padding:28px 24px}\n"
    "h1{font-size:25px;margin:0 0 2px;letter-spacing:-.01em}h2{font-size:16px;margin:30px 0 8px;"
    "break-after:avoid}\n"
    ".sub{color:#5b6675;margin:0 0 20px}\n"
    ".tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:12px}\n"
    ".tile{border:1px solid #dfe3ea;border-radius:8px;padding:12px 14px;break-inside:avoid}\n"
    ".tile b{display:block;font-size:24px;font-weight:650;letter-spacing:-.02em;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    ".tile span{color:#5b6675;font-size:12.5px}\n"
    ".bar{height:18px;border-radius:5px;background:#e9ecf1;overflow:hidden;display:flex;"
    "margin:14px 0 6px;-webkit-print-color-adjust:exact;print-color-adjust:exact}\n"
    ".bar i{display:block;height:100%}.used{background:#2f6fde}.idle{background:#f0a92e}\n"
    ".key{font-size:12.5px;color:#5b6675}.key i{display:inline-block;width:10px;height:10px;"
    "border-radius:3px;margin:0 5px 0 14px;-webkit-print-color-adjust:exact;"
    "print-color-adjust:exact}.key i:first-child{margin-left:0}.none{background:#e9ecf1}\n"
    "table{border-collapse:collapse;width:100%;font-size:13px}\n"
    "th{text-align:left;color:#5b6675;font-weight:600;border-bottom:1.5px solid #c9d0da;"
    "padding:5px 8px}\n"
    "td{border-bottom:1px solid #edf0f4;padding:5px 8px;vertical-align:top}\n"
    "tr{break-inside:avoid}.n{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}\n"
    ".better{color:#1a7f4b;font-weight:600}.worse{color:#b25000;font-weight:600}\n"
    ".rec{border-left:3px solid #2f6fde;padding:2px 0 2px 12px;margin:0 0 12px;"
    "break-inside:avoid}.rec p{margin:0;font-weight:600}.rec .why{color:#5b6675;font-weight:400;"
    "font-size:.93em}.keep{break-inside:avoid}\n"
    "footer{margin-top:34px;color:#5b6675;font-size:12px;border-top:1px solid #dfe3ea;"
    "padding-top:8px}\n"
    "@media(max-width:640px){.tiles{grid-template-columns:repeat(2,1fr)}.wide{display:none}}\n"
    "@media print{body{padding:0;max-width:none;font-size:11.5px}table{font-size:11px}"
    "td,th{padding:3px 6px}h2{margin-top:20px}.tile{padding:8px 10px}.tile b{font-size:18px}"
    ".tile span{font-size:11px}}\n"
    "</style></head><body>\n";

static void put(FILE *f, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '&':
            (void)fputs("&amp;", f);
            break;
        case '<':
            (void)fputs("&lt;", f);
            break;
        case '>':
            (void)fputs("&gt;", f);
            break;
        case '"':
            (void)fputs("&quot;", f);
            break;
        default:
            (void)fputc((unsigned char)*s < ' ' || *s == 0x7f ? ' ' : *s, f);
        }
}

static void tile(FILE *f, const char *value, const char *what)
{
    (void)fputs("<div class=\"tile\"><b>", f);
    put(f, *value ? value : "–");
    (void)fputs("</b><span>", f);
    put(f, what);
    (void)fputs("</span></div>\n", f);
}

static void cell(FILE *f, bool number, const char *text)
{
    (void)fputs(number ? "<td class=\"n\">" : "<td>", f);
    put(f, *text ? text : "–");
    (void)fputs("</td>", f);
}

/* With its year: pages are kept. */
static const char *day(double at, char *buf, size_t size)
{
    time_t t = (time_t)at;
    struct tm tm;

    if (!localtime_r(&t, &tm) || strftime(buf, size, "%Y-%m-%d %H:%M", &tm) == 0)
        buf[0] = '\0';
    return buf;
}

static void put_top(FILE *f, const json_t *r)
{
    const json_t *c = json_object_get(r, "cluster"), *all = json_object_get(r, "all");
    double had = fmax(stk_num(c, "allocated", 0), 0), used = fmax(stk_num(c, "active", 0), 0);
    char a[64], b[64], text[128];

    (void)fputs("<h1>GPU report</h1><p class=\"sub\">", f);
    put(f, stk_str(r, "host"));
    (void)fprintf(f, ", %s", day(stk_num(r, "since", 0), a, sizeof(a)));
    (void)fprintf(f, " to %s</p>\n<div class=\"tiles\">\n",
                  day(stk_num(r, "until", 0), b, sizeof(b)));
    tile(f, stk_report_share(c, "allocated", a, sizeof(a)), "of GPU time allocated");
    tile(f, stk_report_share(c, "active", a, sizeof(a)), "of GPU time active");
    (void)snprintf(text, sizeof(text), "%s GPU-h",
                   stk_report_number(c, "idle_gpu_hours", a, sizeof(a)));
    tile(f, text, "allocated and not active");
    tile(f, stk_num(all, "money", -1) >= 0 ? stk_report_money(r, all, "money", a, sizeof(a)) : "",
         "cost of all jobs");
    tile(f, stk_report_number(all, "gpu_hours", a, sizeof(a)), "GPU-hours allocated");
    (void)snprintf(text, sizeof(text), "%lld", (long long)stk_int(all, "jobs", 0));
    tile(f, text, "jobs");
    tile(f, stk_text_duration(stk_num(all, "wait_p50_s", -1), a, sizeof(a)), "wait, median");
    tile(f, stk_text_duration(stk_num(all, "wait_p90_s", -1), a, sizeof(a)), "wait, p90");
    used = fmin(used, had);
    (void)fprintf(f,
                  "</div>\n<div class=\"bar\"><i class=\"used\" style=\"width:%.2f%%\"></i>"
                  "<i class=\"idle\" style=\"width:%.2f%%\"></i></div>\n",
                  used * 100, (had - used) * 100);
    (void)fputs("<div class=\"key\"><i class=\"used\"></i>active<i class=\"idle\"></i>allocated, "
                "not active<i class=\"none\"></i>not allocated</div>\n",
                f);
}

static void put_groups(FILE *f, const json_t *r)
{
    const json_t *g;
    char b[64];
    size_t i;

    (void)fprintf(f,
                  "<h2>By %s</h2><table><tr><th>name</th><th class=\"n\">jobs</th>"
                  "<th class=\"n\">GPU-hours</th><th class=\"n\">active</th>"
                  "<th class=\"n\">idle GPU-h</th><th class=\"n\">cost</th>"
                  "<th class=\"n\">idle cost</th><th class=\"n\">wait p50</th>"
                  "<th class=\"n\">wait p90</th></tr>\n",
                  stk_str(r, "by"));
    json_array_foreach(json_object_get(r, "groups"), i, g)
    {
        (void)fputs("<tr>", f);
        cell(f, false, stk_str(g, "name"));
        (void)snprintf(b, sizeof(b), "%lld", (long long)stk_int(g, "jobs", 0));
        cell(f, true, b);
        cell(f, true, stk_report_number(g, "gpu_hours", b, sizeof(b)));
        cell(f, true, stk_report_share(g, "util", b, sizeof(b)));
        cell(f, true, stk_report_number(g, "idle_gpu_hours", b, sizeof(b)));
        cell(f, true, stk_report_money(r, g, "money", b, sizeof(b)));
        cell(f, true, stk_report_money(r, g, "idle_money", b, sizeof(b)));
        cell(f, true, stk_text_duration(stk_num(g, "wait_p50_s", -1), b, sizeof(b)));
        cell(f, true, stk_text_duration(stk_num(g, "wait_p90_s", -1), b, sizeof(b)));
        (void)fputs("</tr>\n", f);
    }
    (void)fputs("</table>\n", f);
}

static void put_jobs(FILE *f, const json_t *r, const json_t *list, bool waits)
{
    const json_t *j;
    char b[64];
    size_t i;

    if (json_array_size(list) == 0)
        return;
    (void)fprintf(f,
                  "<div class=\"keep\"><h2>%s</h2><table><tr><th>job</th><th>name</th><th>user</th>"
                  "<th class=\"n\">GPUs</th><th class=\"n\">%s</th><th class=\"n\">%s</th>"
                  "%s</tr>\n",
                  waits ? "Longest waits" : "Most GPU time allocated and not active",
                  waits ? "waited" : "idle GPU-h", waits ? "GPU-hours" : "cost",
                  waits ? "" : "<th>advice</th>");
    json_array_foreach(list, i, j)
    {
        (void)fputs("<tr>", f);
        (void)snprintf(b, sizeof(b), "%lld", (long long)stk_int(j, "id", 0));
        cell(f, false, b);
        cell(f, false, stk_str(j, "name"));
        cell(f, false, stk_str(j, "user"));
        (void)snprintf(b, sizeof(b), "%g", stk_num(j, "gpus", 0));
        cell(f, true, b);
        cell(f, true,
             waits ? stk_text_duration(stk_num(j, "wait_s", 0), b, sizeof(b))
                   : stk_report_number(j, "idle_gpu_hours", b, sizeof(b)));
        cell(f, true,
             waits ? stk_report_number(j, "gpu_hours", b, sizeof(b))
                   : stk_report_money(r, j, "money", b, sizeof(b)));
        if (!waits)
            cell(f, false, stk_str(j, "advice"));
        (void)fputs("</tr>\n", f);
    }
    (void)fputs("</table></div>\n", f);
}

static void put_advice(FILE *f, const json_t *r)
{
    const json_t *list = json_object_get(r, "recommendations"), *x;
    char b[64], money[64];
    size_t i;

    (void)fputs("<h2>What could be better</h2>\n", f);
    if (json_array_size(list) == 0)
        (void)fputs("<p>Nothing stands out.</p>\n", f);
    json_array_foreach(list, i, x)
    {
        (void)fputs("<div class=\"rec\"><p>", f);
        put(f, stk_str(x, "text"));
        (void)fputs("</p><p class=\"why\">", f);
        put(f, stk_str(x, "evidence"));
        (void)fprintf(f, "; up to %s GPU-hours", stk_report_number(x, "gpu_hours", b, sizeof(b)));
        stk_report_money(r, x, "money", money, sizeof(money));
        if (*money) {
            (void)fputs(", ", f);
            put(f, money);
        }
        (void)fputs("</p></div>\n", f);
    }
}

static void put_compared(void *ctx, const struct stk_compared *row)
{
    static const char *const tones[] = {"n worse", "n", "n better"};
    FILE *f = ctx;

    (void)fputs("<tr>", f);
    cell(f, false, row->name);
    cell(f, true, row->was);
    cell(f, true, row->is);
    (void)fprintf(f, "<td class=\"%s\">", tones[row->tone + 1]);
    put(f, row->change);
    (void)fputs("</td></tr>\n", f);
}

static void put_changes(FILE *f, const json_t *notes)
{
    char at[64];

    (void)fprintf(f, "<h2>%s</h2>\n",
                  json_array_size(notes) ? "What was changed" : "Nothing was changed meanwhile");
    if (json_array_size(notes) == 0)
        return;
    (void)fputs("<table><tr><th>when</th><th>what</th><th></th><th>by</th></tr>\n", f);
    for (size_t i = json_array_size(notes); i > 0; i--) {
        const json_t *n = json_array_get(notes, i - 1);

        (void)fputs("<tr>", f);
        cell(f, false, day(stk_num(n, "at", 0), at, sizeof(at)));
        cell(f, false, stk_str(n, "kind"));
        cell(f, false, stk_str(n, "text"));
        cell(f, false, stk_str(n, "user"));
        (void)fputs("</tr>\n", f);
    }
    (void)fputs("</table>\n", f);
}

/* The period beside a baseline. */
static void put_against(FILE *f, const json_t *compared)
{
    const json_t *b = json_object_get(compared, "baseline"),
                 *p = json_object_get(compared, "period");
    char from[64], to[64];

    if (!compared)
        return;
    (void)fputs("<div class=\"keep\"><h2>Against ", f);
    put(f, stk_str(b, "name"));
    (void)fprintf(f, "</h2><p class=\"sub\">before: %s",
                  day(stk_num(b, "since", 0), from, sizeof(from)));
    (void)fprintf(f, " to %s", day(stk_num(b, "until", 0), to, sizeof(to)));
    if (*stk_str(b, "note")) {
        (void)fputs(" (", f);
        put(f, stk_str(b, "note"));
        (void)fputs(")", f);
    }
    (void)fprintf(f, "; now: %s", day(stk_num(p, "since", 0), from, sizeof(from)));
    (void)fprintf(f, " to %s</p>\n", day(stk_num(p, "until", 0), to, sizeof(to)));
    (void)fputs("<table><tr><th></th><th class=\"n\">before</th><th class=\"n\">now</th>"
                "<th class=\"n\">change</th></tr>\n",
                f);
    stk_compare_each(stk_baseline_figures, json_object_get(b, "figures"), p, put_compared, f);
    (void)fputs("</table></div>\n", f);
    put_changes(f, json_object_get(compared, "notes"));
}

static void put_foot(FILE *f, const json_t *r)
{
    const json_t *c = json_object_get(r, "cluster"), *price = json_object_get(r, "price");
    char b[64];

    (void)fputs("<footer>", f);
    (void)fprintf(f, "Measured for %s hours", stk_report_number(c, "hours", b, sizeof(b)));
    if (stk_num(c, "kwh", -1) >= 0)
        (void)fprintf(f, ", %s kWh", stk_report_number(c, "kwh", b, sizeof(b)));
    if (stk_num(price, "gpu_hour", -1) >= 0) {
        (void)fputs("; a GPU-hour costs ", f);
        put(f, stk_report_money(r, price, "gpu_hour", b, sizeof(b)));
    }
    if (stk_yes(r, "truncated"))
        (void)fputs("; there were more jobs than are looked at: these are the latest", f);
    (void)fputs(". Policy ", f);
    put(f, stk_str(r, "policy"));
    (void)fputs(". Made by stoker.</footer>\n</body></html>\n", f);
}

void stk_report_page(FILE *f, const json_t *r)
{
    (void)fputs(head, f);
    put_top(f, r);
    put_against(f, json_object_get(r, "against"));
    put_groups(f, r);
    put_advice(f, r);
    put_jobs(f, r, json_object_get(r, "waste"), false);
    put_jobs(f, r, json_object_get(r, "waits"), true);
    put_foot(f, r);
}
