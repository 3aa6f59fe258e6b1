/* help.c -- the texts of --help. */
#include "cli.h"

#include <stdio.h>

static const char g_options_help[] =
    "Options\n"
    "  --url URL          server [$HEARTH_URL, http://127.0.0.1:4040]\n"
    "  --token-file FILE  token, in a file of yours alone [$HEARTH_TOKEN, $HEARTH_TOKEN_FILE];\n"
    "                     --token TOKEN: to try things out, because ps shows it to everybody\n"
    "  --tenant NAME      tenant [$HEARTH_TENANT]\n"
    "  --ca-file FILE     https: authorities of the server [$HEARTH_CA_FILE, the system's];\n"
    "  --cert-file FILE, --key-file FILE  this client's certificate\n"
    "                     [$HEARTH_CERT_FILE, $HEARTH_KEY_FILE];\n"
    "  --insecure-skip-verify  any server will do\n"
    "  --since 1h         length of a range that ends now [1h]\n"
    "  --from T --to T    range: RFC 3339, unix time, now-30m\n"
    "  --type ID          profile type [the only one, or CPU time]\n"
    "  --by LABEL         series, timeline, spans count: labels to group by (repeat, or separate "
    "with\n"
    "                     commas); spans top: span, trace, root, endpoint, name\n"
    "  --step 15s         timeline, spans count: time between points [range / 60]\n"
    "  --limit N          rows or series to print\n"
    "  --function NAME    top, sandwich, lines, spans: stack traces that contain one of "
    "these\n"
    "                     (repeat); timeline: one line for each\n"
    "  --without NAME     the same: stack traces that do not contain it\n"
    "  --call-site NAME   stack traces that begin with these (repeat, root first); also for flame, "
    "diff\n"
    "  --thread NAME, --class, --package, --module, --file, --directory, --line, --frame-kind\n"
    "                     the same commands: only these rows of top; --not-thread NAME, ...: none "
    "of\n"
    "                     these (repeat). /RE/ is a regular expression, '' what is unknown\n"
    "  --profile-id UUID, --span-id ID, --trace-id ID    only these (repeat)\n"
    "  --aggregation A    how gauges are aggregated: sum, mean [mean]\n"
    "  --go-stacks S      flame, diff, sandwich: stored; repaired: stacks that Go's runtime cut "
    "are\n"
    "                     joined to others, generic names shortened [stored]\n"
    "  --by-kind KIND     top: function, line, file, directory, class, package, module, thread,\n"
    "                     frame-kind\n"
    "  --search RE        top: only rows whose name matches\n"
    "  --sort KEY         top: self, total, name [self]; profiles list: time, duration, total\n"
    "  --offset N         top, spans: number of rows to skip\n"
    "  --base-from T --base-to T    diff: the range to compare with [as long, right before]\n"
    "  --id ID            rules set: the rule to replace; upload: a repeat with the same id\n"
    "                     within an hour is not stored again [made from the file's content];\n"
    "                     uploads create: the upload to continue\n"
    "  --wait             uploads create, uploads show: until the file is parsed\n"
    "  --max-nodes N      flame, profile: largest number of nodes\n"
    "  --min-percent P    flame: leave out nodes smaller than this [0.5]\n"
    "  --label K=V        upload, uploads create: labels (repeat); service_name and __name__ are\n"
    "                     guessed when absent\n"
    "  --name NAME        upload: __name__ [guessed from the sample types]\n"
    "  --time now|keep    upload, uploads create: their time [keep; upload: now for old files]\n"
    "  --pid PID          record: a process; --pprof-url URL: a profile that a program offers;\n"
    "                     -- PROGRAM ...: a program, until it ends\n"
    "  --for 10s          record: how long [a program: until it ends; otherwise 10s]\n"
    "  --with TOOL        record: perf, py-spy or asprof [py-spy for Python, asprof for Java, "
    "perf]\n"
    "  --timeout 60s      how long to wait for an answer\n"
    "  --explain          flame, query timeline, profile, top: show the plan of the query, do not "
    "run it;\n"
    "                     --explain=json for scripts\n"
    "  --materialize SEL  sql: selection to copy, in whole steps of --step [10m]\n"
    "  --database-url URL sql: run psql on this database [print the script]\n"
    "  -o, --output FMT   table, json, pprof=FILE, collapsed [table]\n"
    "\n";
static const char g_more_help[] =
    "Options of task, network, policy, spans, profiles and trace: hearth task --help, and so on\n"
    "Options of admin (--all, --dry-run, --yes, --reason, --role, --owner, --description,\n"
    "  --profiling, --approve, --withdraw, ..): hearth admin --help\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 no data, 4 not allowed, 5 server or network\n"
    "\n"
    "Examples\n"
    "  hearth upload cpu.pb.gz --label service_name=api --label region=eu\n"
    "  hearth record --for 30s --label service_name=api --pid 4711\n"
    "  hearth query top '{service_name=\"api\"}' --since 30m --limit 20\n"
    "  hearth query profile '{service_name=\"api\"}' -o pprof=api.pb.gz\n"
    "  hearth flame '{service_name=\"api\"}' --since 7d --explain\n"
    "  hearth diff '{service_name=\"api\"}' --since 1h --base-from now-1d\n"
    "  hearth trace 4bf92f3577b34da6a3ce929d0e0e4736\n"
    "  hearth admin doctor\n";

void cli_print_help(const struct cli_command *commands, size_t n)
{
    (void)printf("hearth -- client of the Hearth continuous-profiling server\n\n"
                 "usage: hearth COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands\n");
    for (size_t i = 0; i < n; i++) {
        const struct cli_command *c = &commands[i];
        char left[64];
        (void)snprintf(left, sizeof left, "%s%s%s %s", c->name, c->sub == NULL ? "" : " ",
                       c->sub == NULL ? "" : c->sub, c->arguments);
        (void)printf("  %-32s %s\n", left, c->help);
    }
    (void)printf("\n%s%s", g_options_help, g_more_help);
}

/* ---- commands for agents ---- */

/* Whether one of the commands that begin the help of an option, separated by commas, is `command`. */
static bool is_option_of(const char *help, const char *command)
{
    size_t n = strlen(command);

    for (const char *at = help; at != NULL; at = strpbrk(at, ",:")) {
        at += strspn(at, ", ");
        if (strncmp(at, command, n) == 0) {
            return true;
        }
        if (at[0] == ':') {
            break;
        }
    }
    return strncmp(help, "only this ", 10) == 0;
}

void cli_print_agent_options(const char *command)
{
    static const struct {
        const char *flag, *value, *help;
    } options[] = {
#define X(kind, name, flag, value, help) {flag, value, help},
#include "agent_options.def"
#undef X
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(options); i++) {
        const char *help = options[i].help;
        char left[64];
        if (is_option_of(help, command)) {
            (void)snprintf(left, sizeof left, "%s %s", options[i].flag,
                           options[i].value == NULL ? "" : options[i].value);
            (void)printf("  %-24s %s\n", left, help);
        }
    }
}

/* ---- hearth admin ---- */

static const struct {
    const char *sub, *text;
} g_admin[] = {
    {"status",
     "hearth admin status [-o json]\n"
     "  Shows the server that builds roll-ups and its lag, late profiles, pending deletions,\n"
     "  the oldest profile, and the size of each table.\n"
     "    hearth admin status\n"
     "    hearth admin status -o json | jq -r .lagMs\n"},
    {"doctor",
     "hearth admin doctor [-o json]\n"
     "  Checks rights, settings, disk and background work of the database. Each check results in\n"
     "  ok, advice (works, but could be better) or wrong. Exit code 1 if one is wrong.\n"
     "    hearth admin doctor\n"
     "    hearth admin doctor || page-somebody\n"},
    {"rebuild", "hearth admin rebuild SERVICE|--all --since 2d|--from T\n"
                "  Deletes the roll-ups from the day of that time on and builds them again from "
                "the profiles.\n"
                "  Meanwhile queries read the profiles: the answers are the same, but slower.\n"
                "    hearth admin rebuild api --since 2d\n"
                "    hearth admin rebuild --all --from 2026-11-18\n"},
    {"erase",
     "hearth admin erase SELECTOR --since 1h|--from T [--to T]|--all [--dry-run] [--yes]\n"
     "  Deletes the profiles of the matching series in the range (--all: at any time). They are\n"
     "  hidden from all queries at once and removed from disk within minutes. This cannot be\n"
     "  undone. The command counts the series first and, on a terminal, asks for that number. A\n"
     "  range that ends now ends with the current hour: profiles of the next minutes are deleted,\n"
     "  too.\n"
     "    --dry-run      count the series, delete nothing\n"
     "    --yes          do not ask, for scripts\n"
     "    --reason TEXT  reason for the log, which also has your name and address\n"
     "    hearth admin erase '{service_name=\"api\", token=~\".+\"}' --all --dry-run\n"
     "    hearth admin erase '{service_name=\"old\"}' --all --yes --reason 'ticket 4711'\n"},
    {"erasures",
     "hearth admin erasures [-o json]\n"
     "  Lists the latest 1,000 deletions: selector, author, and whether the bytes are removed.\n"
     "    hearth admin erasures\n"
     "    hearth admin erasures -o json | jq '.erasures[] | select(.doneAtMs == null)'\n"},
    {"errors",
     "hearth admin errors [--since 1d] [--limit N] [-o json]\n"
     "  Lists uploads that were refused, the latest first. Errors that differ only in numbers\n"
     "  share a line; its message is that of the latest upload.\n"
     "    hearth admin errors --since 1h\n"
     "    hearth admin errors -o json | jq '.errors[] | select(.client == \"java\")'\n"},
    {"applications",
     "hearth admin applications [list|show NAME|set NAME|delete NAME|rule ...]\n"
     "  Shows services and their owners, and decides whose profiles are accepted.\n"
     "    set NAME --owner TEXT --description TEXT     in your own words\n"
     "    set NAME --profiling on|off|rules            off: its profiles are refused\n"
     "    set NAME --approve | --withdraw              with hearthd --require-approval\n"
     "    rule add NAME SELECTOR --profiling on|off    for all series that match; the last rule\n"
     "                                                 that matches counts, in order of names\n"
     "    rule list | rule delete NAME\n"
     "    hearth admin applications set api --owner 'team shop' --approve\n"
     "    hearth admin applications rule add dev '{env=\"dev\"}' --profiling off\n"},
    {"usage",
     "hearth admin usage [--tenant NAME] [-o json]\n"
     "  Shows what a tenant uses beside its limits, how often each limit refused something, and\n"
     "  what the tenant has sent and asked for. Services, series and tasks are those of the\n"
     "  database; all else is that of the server that answers.\n"
     "    hearth admin usage --tenant shop\n"
     "    hearth admin usage -o json | jq '.limits[] | select(.refused != null)'\n"},
    {"targets",
     "hearth admin targets [-o json]\n"
     "  Lists the targets that servers fetch profiles from (hearthd --scrape-config), the latest\n"
     "  scrape of each, and why it failed.\n"
     "    hearth admin targets\n"
     "    hearth admin targets -o json | jq '.targets[] | select(.failure != null)'\n"},
    {"retention",
     "hearth admin retention [show] | set NAME DURATION | reset NAME\n"
     "  Shows or sets how long the tenant's data are kept. NAME is raw (profiles), 10m, 1h\n"
     "  or 1d (roll-ups). DURATION is 7d, 36h, .., or forever. reset: use the server's option.\n"
     "    hearth admin retention\n"
     "    hearth admin retention set raw 14d\n"
     "    hearth admin retention reset raw\n"},
    {"limits",
     "hearth admin limits [TENANT] [NAME=VALUE...]\n"
     "  Shows the limits of a tenant and which of them differ from the server's, or sets them. "
     "NAME\n"
     "  and VALUE are those of hearthd's options; default: use the server's limit again.\n"
     "  gauge-aggregation is sum or mean.\n"
     "    hearth admin limits shop\n"
     "    hearth admin limits shop max-query-range=30d ingest-rate-bytes=8m\n"
     "    hearth admin limits shop max-query-range=default gauge-aggregation=mean\n"},
};

static void print_sizing_help(void)
{
    (void)printf(
        "hearth admin sizing [OPTIONS] [-o json]\n"
        "  Estimates the processors, disk and memory that a fleet needs. Makes no request.\n");
    for (size_t i = 0; i < SIZING_N_INPUTS; i++) {
        const struct sizing_field *f = &sizing_fields[i];
        (void)printf("    %-15s %s [%s]\n", f->flag, f->text, f->text_default);
    }
    (void)printf("    hearth admin sizing --processes 5000 --interval 10s\n"
                 "    hearth admin sizing --processes 200 --retain-raw 30d -o json\n");
}

void cli_print_admin_help(const char *sub)
{
    bool one = sub != NULL && strcmp(sub, "sizing") == 0;

    if (sub != NULL && cli_print_access_help(sub)) {
        return;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_admin); i++) {
        one = one || (sub != NULL && strcmp(sub, g_admin[i].sub) == 0);
    }
    if (!one) {
        (void)printf("hearth admin -- watch and control the background work of a server\n\n");
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_admin); i++) {
        if (!one || strcmp(sub, g_admin[i].sub) == 0) {
            (void)printf("%s%s", g_admin[i].text, one ? "" : "\n");
        }
    }
    if (!one || strcmp(sub, "sizing") == 0) {
        print_sizing_help();
    }
    if (!one) {
        (void)cli_print_access_help(NULL);
    }
    (void)printf("\nOptions --url, --tenant, times, and exit codes: hearth --help\n");
}
