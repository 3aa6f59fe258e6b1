/*
 * diff_places.c -- the line of source of each crossing (contract: diff_gate.h).
 *
 * A function's place is the line where most of its value is: of its self, or its total. The server
 * is asked for the lines of each function, a file is read again; both only if something crossed.
 */
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli_call.h"
#include "diff_gate.h"
#include "flame_file.h"

#include <stdlib.h>

/* Directories that CI systems clone the repository to: paths in reports are relative to it. */
static const char *const g_roots[] = {"CI_PROJECT_DIR", "GITHUB_WORKSPACE"};

/* GitLab takes no "./" before a path; compilers write it. */
static struct hearth_str find_path_in_repository(struct hearth_str path)
{
    while (path.n > 2 && path.p[0] == '.' && path.p[1] == '/') {
        path = hearth_str_n(path.p + 2, path.n - 2);
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_roots); i++) {
        const char *value = getenv(g_roots[i]); // NOLINT(concurrency-mt-unsafe): nobody sets one
        struct hearth_str root = hearth_str_c(value == NULL ? "" : value);
        while (root.n > 0 && root.p[root.n - 1] == '/') {
            root.n--;
        }
        if (root.n > 0 && path.n > root.n + 1 && path.p[root.n] == '/' &&
            memcmp(path.p, root.p, root.n) == 0) {
            return hearth_str_n(path.p + root.n + 1, path.n - root.n - 1);
        }
    }

    return path;
}

/* A line that has a file replaces one with a smaller value. */
static void choose_place(struct cli *cli, struct hearth_str path, int64_t line, double value,
                         double *most, struct diff_place *place)
{
    if (path.n == 0 || (place->path != NULL && value <= *most)) {
        return;
    }

    struct hearth_str shown = find_path_in_repository(path);
    place->path = hearth_arena_strndup(&cli->arena, shown.p, shown.n);
    place->line = line > 0 ? line : 1;
    *most = value;
}

/* ---- stored data ---- */

/* Asks for the lines of a function on a side, which may not have it. */
static enum hearth_status ask_place(struct cli *cli, Hearth__V1__Selection *side,
                                    const char *function, bool is_total, struct diff_place *place)
{
    Hearth__V1__LinesRequest request;
    Hearth__V1__LinesResponse *answer = NULL;
    double most = 0;

    hearth__v1__lines_request__init(&request);
    request.selection = side;
    request.function = cli_field(cli, function);
    enum hearth_status status = cli_call(cli, "hearth.v1.QueryService/Lines", &request,
                                         &hearth__v1__lines_response__descriptor, &answer);
    if (status == HEARTH_NOT_FOUND) {
        cli->err = (struct hearth_err)HEARTH_ERR_INIT;
        return HEARTH_OK;
    }
    for (size_t i = 0; status == HEARTH_OK && i < answer->n_lines; i++) {
        const Hearth__V1__Line *line = answer->lines[i];
        choose_place(cli, hearth_str_c(line->file), line->line > 0 ? line->line : line->start_line,
                     (double)(is_total ? line->total : line->self), &most, place);
    }

    return status;
}

/* ---- files ---- */

/* The value of each location, as a leaf or anywhere, in the arena; NULL: memory was refused. */
static double *sum_locations(struct cli *cli, const struct flame_file *file, bool is_total)
{
    const struct hearth_profile *p = file->profile;
    double *ret = hearth_arena_calloc(&cli->arena, p->n_locations, sizeof ret[0]);

    for (uint32_t s = 0; ret != NULL && s < p->n_samples; s++) {
        uint32_t first = p->stack_first[s];
        uint32_t end =
            is_total || first == p->stack_first[s + 1] ? p->stack_first[s + 1] : first + 1;
        for (uint32_t i = first; i < end; i++) {
            if (p->stack_locs[i] != HEARTH_NO_INDEX) {
                ret[p->stack_locs[i]] += (double)p->values[(size_t)s * p->n_types + file->type_idx];
            }
        }
    }

    return ret;
}

/* Finds a function in a file. Lines of a location are innermost first: only that is a leaf. */
static void find_file_place(struct cli *cli, const struct hearth_profile *p, const double *values,
                            const char *function, bool is_total, struct diff_place *place)
{
    double most = 0;

    for (uint32_t l = 0; l < p->n_locations; l++) {
        uint32_t n = p->locations[l].n_lines;
        for (uint32_t i = 0; i < n; i++) {
            const struct hearth_line *line = &p->lines[p->locations[l].first_line + i];
            const struct hearth_function *of = &p->functions[line->function];
            if (hearth_str_eq_c(p->strings[of->name], function)) {
                choose_place(cli, p->strings[of->filename],
                             line->line > 0 ? line->line : of->start_line,
                             is_total || i == 0 ? values[l] : 0, &most, place);
            }
        }
    }
}

/* Reads the file of a side again for all crossings that have no place yet. */
static enum hearth_status find_file_places(struct cli *cli, struct diff_gates *gates,
                                           const char *path, const char *type)
{
    struct flame_file file;
    enum hearth_status status = flame_file_open(cli, path, type, &file);

    for (size_t i = 0; status == HEARTH_OK && i < gates->n; i++) {
        struct diff_gate *gate = &gates->v[i];
        const double *values =
            gate->n_crossed == 0 ? NULL : sum_locations(cli, &file, gate->is_total);
        for (size_t k = 0; values != NULL && k < diff_gate_n_listed(gate); k++) {
            if (gate->places[k].path == NULL) {
                find_file_place(cli, file.profile, values, gate->functions[k], gate->is_total,
                                &gate->places[k]);
            }
        }
    }
    flame_file_release(&file);

    return status;
}

/* ---- both ---- */

/* A function that is gone has its place in the base only. */
enum hearth_status diff_find_places(struct cli *cli, struct diff_gates *gates,
                                    struct diff_sides *sides)
{
    size_t n_crossed = 0;

    for (size_t i = 0; i < gates->n; i++) {
        n_crossed += gates->v[i].n_crossed;
    }
    for (size_t side = 2; n_crossed > 0 && side-- > 0;) {
        if (sides->are_files) {
            HEARTH_TRY(find_file_places(cli, gates, cli->args[side], sides->type));
            continue;
        }
        for (size_t i = 0; i < gates->n; i++) {
            struct diff_gate *gate = &gates->v[i];
            for (size_t k = 0; k < diff_gate_n_listed(gate); k++) {
                if (gate->places[k].path == NULL) {
                    HEARTH_TRY(ask_place(cli, &sides->selections[side], gate->functions[k],
                                         gate->is_total, &gate->places[k]));
                }
            }
        }
    }

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}
