/* SPDX-License-Identifier: Apache-2.0 */
/* describe_options.c - the options that describe a job. */
#include "cli/describe.h"

const struct stk_option stk_describe_resources[] = {
    {"gpus", 'g', "N", "GPUs per task (default 0); 0.5 is half of one", NULL},
    {"gpu-mem", 0, "SIZE", "memory on each GPU: 20G; without --gpus part of one GPU", NULL},
    {"share", 0, "HOW", "how those who share a GPU are kept apart: none, mps, mig\nor time",
     "none mps mig time"},
    {"share-max", 0, "N", "at most so many jobs on that GPU", NULL},
    {"mig", 0, "PROFILE", "a MIG instance, such as 1g.10gb", NULL},
    {"gpu-type", 0, "TYPE[:SPEED]",
     "only GPUs of this type; may be repeated, or be a list:\nh100:1,a100:0.5 (how fast it is on "
     "each)",
     NULL},
    {"tasks", 'n', "N", "tasks that start together (a gang)", NULL},
    {"tasks-per-node", 0, "N", "tasks on each node", NULL},
    {"topology", 0, "LEVEL", "all its GPUs in one link, node, rack, zone or region",
     "link node rack zone region"},
    {"prefer", 0, "LEVEL", "the same if it can be; else wider, up to --topology",
     "link node rack zone region"},
    {"group", 0, "N:LEVEL", "N tasks each in one such, for example 8:link", NULL},
    {"exclusive", 0, NULL, "nobody else on its nodes", NULL},
    {"cpus", 'c', "N", "CPUs per task", NULL},
    {"mem", 'm', "SIZE", "memory per task: 32G, 512M", NULL},
    {"resource", 0, "NAME=N", "so much of a named resource per task; may be repeated", NULL},
    {"pids", 0, "N", "at most so many processes and threads", NULL},
    {"time", 0, "TIME", "time limit: 1h30m, 90m, 1:30:00; a bare number is\nminutes", NULL},
    {"estimate", 0, "TIME", "how long it will run, if that is less", NULL},
    {"pool", 0, "NAME", "pool of nodes", NULL},
    {0},
};

const struct stk_option stk_describe_when[] = {
    {"name", 'J', "NAME", "what to call it", NULL},
    {"priority", 'p', "N", "higher first", NULL},
    {"tier", 0, "TIER", "best-effort, standard or critical", "best-effort standard critical"},
    {"queue", 'q', "QUEUE", "express, standard, batch or preemptible",
     "express standard batch preemptible"},
    {"hold", 'H', NULL, "wait for \"stoker release\"", NULL},
    {"begin", 'b', "TIME", "not before: now+1h, 16:00, tomorrow, 2026-01-31T08:00", NULL},
    {"deadline", 0, "TIME", "when it should be done", NULL},
    {"after", 'd', "JOBS",
     "start after jobs: 12 (ended well), afterany:12:13,\nafternotok:14, singleton", "@jobs"},
    {"depends", 0, "JOBS", "the same as --after", "@jobs"},
    {"array", 'a', "INDICES", "one job per index: 0-9, 0-9%2 (two at a time), 1,3,7", NULL},
    {"retry", 0, "RULES", "run again after: error=2,oom=1,timeout=1,node=3,\nexit=75; N or always",
     NULL},
    {"no-requeue", 0, NULL, "never run it twice", NULL},
    {"comment", 0, "TEXT", "kept with the job", NULL},
    {"key", 0, "KEY", "submit once: the same key again gives the same job", NULL},
    {0},
};

const struct stk_option stk_describe_how[] = {
    {"workdir", 'D', "DIR", "where it runs (default: here)", "@dirs"},
    {"env", 'E', "NAME[=VALUE]", "set a variable; with --no-env, pass NAME along", NULL},
    {"no-env", 0, NULL, "do not pass this environment along", NULL},
    {"setup", 0, "LINES", "shell lines to run first", NULL},
    {"venv", 0, "DIR", "Python environment to activate", "@dirs"},
    {"image", 0, "REF", "container image to run in, or a folder with a root file system", NULL},
    {"image-runtime", 0, "NAME", "auto, podman, docker or apptainer",
     "auto podman docker apptainer"},
    {"secret", 0, "NAME=FILE", "a variable with the contents of a file", "@files"},
    {"launch", 0, "HOW", "a process per task, or one in all", "tasks once"},
    {"items", 0, "FILE", "a batch: one line is one item of work", "@files"},
    {"workers", 0, "N", "items worked on at once", NULL},
    {"signal", 0, "SIG@SECONDS", "sent before the time limit: USR1@60", NULL},
    {"grace", 0, "SECONDS", "from SIGTERM to SIGKILL (default 30)", NULL},
    {"no-suspend", 0, NULL, "never suspend it; stop it and start it anew", NULL},
    {"idle", 0, "RULES", "when its GPUs idle: warn=10m,suspend=20m,end=1h", NULL},
    {0},
};

const struct stk_option stk_describe_output[] = {
    {"stdout", 'o', "PATTERN",
     "output file: %j job, %A array, %a index, %x name, %t task,\n%u user", "@files"},
    {"stderr", 'e', "PATTERN", "errors, if not to the same file", "@files"},
    {"stdin", 0, "FILE", "input (default: none)", "@files"},
    {"log-max", 0, "SIZE", "keep at most so much output (default 1G)", NULL},
    {0},
};
