/* cmd_sizing.c -- hearth admin sizing: the calculator. Asks no server. */
#include "hearth/base/clock.h"
#include "hearth/codec/json_writer.h"

#include "cli_messages.h"
#include "text.h"

#include <math.h>

static enum hearth_status read_inputs(struct cli *cli, double inputs[SIZING_N_INPUTS])
{
    for (size_t i = 0; i < SIZING_N_INPUTS; i++) {
        const char *text = cli->sizing[i] != NULL ? cli->sizing[i] : sizing_fields[i].text_default;
        HEARTH_TRY(sizing_parse((enum sizing_input_id)i, text, &inputs[i], &cli->err));
    }
    if (inputs[SIZING_SERVICES] <= 0) {
        inputs[SIZING_SERVICES] = ceil(inputs[SIZING_PROCESSES] / 10);
    }
    return HEARTH_OK;
}

static void format_retention(double seconds, char out[48])
{
    cli_duration((int64_t)seconds * 1000, out);
}

static void bytes_line(const char *name, const char *note, double bytes, struct hearth_buf *out)
{
    char size[48];
    cli_value(bytes, HEARTH_STR("bytes"), size);
    hearth_buf_printf(out, "  %-26s %10s%s%s\n", name, size, note[0] == '\0' ? "" : "  ", note);
}

static void print_sizing(const double *in, const struct sizing *s, struct hearth_buf *out)
{
    char n[64], services[64], rate[48], wire[48], every[48];
    cli_number((int64_t)in[SIZING_PROCESSES], "process", "processes", n);
    cli_number((int64_t)in[SIZING_SERVICES], "service", "services", services);
    cli_duration((int64_t)(in[SIZING_INTERVAL] * 1000), every);

    hearth_buf_printf(out, "%s of %s, a profile of %.0f stacks every %s\n", n, services,
                      in[SIZING_SAMPLES], every);
    cli_value(s->samples_per_s, HEARTH_STR(""), rate);
    cli_value(s->wire_bytes_per_s, HEARTH_STR("bytes"), wire);
    hearth_buf_printf(out, "%.3g profiles/s, %s samples/s, %s/s over the network\n\nprocessors\n",
                      s->profiles_per_s, rate, wire);
    for (size_t i = 0; i < SIZING_N_CORES; i++) {
        hearth_buf_printf(out, "  %-26s %10.2f\n", sizing_core_names[i], s->cores[i]);
    }
    hearth_buf_printf(out, "  %-26s %10.2f  busy on the mean\n", "all", s->cores_busy);
    hearth_buf_printf(out, "  %-26s %10.0f  half busy; of hearthd and PostgreSQL together\n",
                      "take", s->cores_wanted);
    hearth_buf_cstr(out, "\ndisk of PostgreSQL\n");
    for (size_t i = 0; i < SIZING_N_DISKS; i++) {
        if (s->disk[i].bytes > 0) {
            char note[64] = "for ", *to = note + strlen(note);
            format_retention(s->disk[i].kept_s, to);
            bytes_line(sizing_disk_names[i], note, s->disk[i].bytes, out);
        }
    }
    bytes_line("all", "", s->disk_bytes, out);
    bytes_line("take", "with the log, and 30% for vacuum and growth", s->disk_wanted_bytes, out);
    hearth_buf_cstr(out, "\nmemory\n");
    bytes_line("a hearthd", "under load", s->server_bytes, out);
    bytes_line("cache of PostgreSQL", "the last hour of profiles, a day of roll-ups",
               s->cache_bytes, out);
}

static void write_number(struct hearth_json *json, const char *key, double value)
{
    hearth_json_key_c(json, key);
    hearth_json_double(json, value);
}

static void json_sizing(const double *in, const struct sizing *s, struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "inputs");
    hearth_json_object(&json);
    for (size_t i = 0; i < SIZING_N_INPUTS; i++) {
        write_number(&json, sizing_fields[i].flag + 2, in[i]);
    }
    hearth_json_object_end(&json);
    write_number(&json, "profilesPerSecond", s->profiles_per_s);
    write_number(&json, "samplesPerSecond", s->samples_per_s);
    write_number(&json, "networkBytesPerSecond", s->wire_bytes_per_s);
    hearth_json_key_c(&json, "processors");
    hearth_json_object(&json);
    for (size_t i = 0; i < SIZING_N_CORES; i++) {
        write_number(&json, sizing_core_names[i], s->cores[i]);
    }
    write_number(&json, "all", s->cores_busy);
    write_number(&json, "take", s->cores_wanted);
    hearth_json_object_end(&json);
    hearth_json_key_c(&json, "diskBytes");
    hearth_json_object(&json);
    for (size_t i = 0; i < SIZING_N_DISKS; i++) {
        write_number(&json, sizing_disk_names[i], s->disk[i].bytes);
    }
    write_number(&json, "all", s->disk_bytes);
    write_number(&json, "take", s->disk_wanted_bytes);
    hearth_json_object_end(&json);
    write_number(&json, "hearthdBytes", s->server_bytes);
    write_number(&json, "cacheBytes", s->cache_bytes);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
}

enum cli_exit cli_admin_sizing(struct cli *cli)
{
    double inputs[SIZING_N_INPUTS];
    enum hearth_status status = read_inputs(cli, inputs);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct sizing sizing;
    sizing_compute(inputs, &sizing);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (cli->output == CLI_JSON) {
        json_sizing(inputs, &sizing, &out);
    } else {
        print_sizing(inputs, &sizing, &out);
    }

    return cli_print(&out);
}
