/* jfr_samples.c -- from the events of chunks to samples of profiles; the table: jfr_events.def. */
#include "jfr/jfr_samples.h"

#include "hearth/base/budget.h"
#include "hearth/base/clock.h"
#include "hearth/format/ingest_types.h"
#include "hearth/model/trace_ids.h"

#include <assert.h>
#include <math.h>

#define DEFAULT_INTERVAL_NS (HEARTH_NS_PER_SEC / 50)
/* Defaults of async-profiler, which samples more threads for wall time. */
#define ASYNC_INTERVAL_NS      (HEARTH_NS_PER_SEC / 100)
#define ASYNC_WALL_INTERVAL_NS (HEARTH_NS_PER_SEC / 20)
#define MAX_LABELS             64 /* of one sample; further labels of its context are ignored */

/* ---- the table of events ---- */

enum condition {
    ANY,
    AWAKE,
    RUNNABLE_WALL,
    WALL_MODE
};
enum source {
    PLAIN,
    TICKS,
    CPU_INTERVAL,
    WALL_INTERVAL
};

#define NO_COLUMN     (-1)
#define JFR_SLOT_NONE JFR_N_SLOTS

static const struct family {
    const char *name, *period_type, *period_unit;
    enum jfr_family_id superseded_by; /* itself: no other */
} g_families[] = {
#define FAMILY(id, name_, type_, unit_, by_)     \
    [JFR_FAMILY_##id] = {.name = (name_),        \
                         .period_type = (type_), \
                         .period_unit = (unit_), \
                         .superseded_by = JFR_FAMILY_##by_},
#define COLUMN(family, index, type, unit)
#define EVENT(name, family, condition, count, value, source, slot, weight)
#include "jfr/jfr_events.def"
#undef FAMILY
#undef COLUMN
};

/* The columns of each family; those after the last have no type. */
static const struct {
    const char *type, *unit;
} g_columns[JFR_N_FAMILIES][JFR_MAX_COLUMNS] = {
#define FAMILY(id, name, period_type, period_unit, superseded_by)
#define COLUMN(family, index, type_, unit_) [JFR_FAMILY_##family][index] = {(type_), (unit_)},
#include "jfr/jfr_events.def"
#undef COLUMN
#undef EVENT
};

static const struct event_rule {
    const char *event;
    enum jfr_family_id family;
    enum condition condition;
    int count_column, value_column;
    enum source source;
    enum jfr_slot slot, weight;
} g_rules[] = {
#define COLUMN(family, index, type, unit)
#define EVENT(name_, family_, condition_, count_, value_, source_, slot_, weight_) \
    {.event = (name_),                                                             \
     .family = JFR_FAMILY_##family_,                                               \
     .condition = condition_,                                                      \
     .count_column = count_,                                                       \
     .value_column = value_,                                                       \
     .source = source_,                                                            \
     .slot = JFR_SLOT_##slot_,                                                     \
     .weight = JFR_SLOT_##weight_},
#include "jfr/jfr_events.def"
#undef FAMILY
#undef COLUMN
#undef EVENT
};

/* ---- the samples of a chunk ---- */

/* What makes samples of a family equal; constants by index, since keys may be repeated. */
struct sample_key {
    uint64_t family, stack, thread;
    uint64_t context_id, span_id, span_name, local_root_span_id, trace_id_hi, trace_id_lo;
};

struct chunk_sample {
    struct sample_key key;
    int64_t values[JFR_MAX_COLUMNS];
};

struct endpoint {
    uint64_t local_root_span_id;
    uint64_t text; /* key of a constant if has_endpoint_keys, otherwise an offset */
};

struct chunk_sampler {
    struct jfr_sampler *sampler;
    struct jfr_pools *pools;
    const struct jfr_clock *clock;
    struct hearth_arena *scratch;
    const struct jfr_type *endpoint, *setting, *datadog_setting; /* NULL: not in the chunk */
    uint8_t *rule_of_type; /* by index of the type: its first rule + 1; 0: ignored */
    uint8_t next_rule[HEARTH_ARRAY_LEN(g_rules)]; /* of the same event, + 1; 0: none */
    bool *is_sleeping, *is_runnable;              /* by index of the state */
    struct hearth_idmap by_key;
    size_t charged_bytes; /* of by_key */
    struct chunk_sample *samples;
    size_t n_samples, cap_samples;
    struct endpoint *endpoints;
    size_t n_endpoints, cap_endpoints;
    struct hearth_idmap endpoint_of; /* by local root span */
    bool has_endpoint_keys;          /* the JDK writes texts into its events, ddprof keys */
};

enum hearth_status hearth_jfr_visit_events(struct hearth_str chunk, jfr_visit_fn *visit,
                                           void *context, struct hearth_err *err)
{
    uint64_t at = HEARTH_JFR_HEADER_BYTES;

    while (at < chunk.n) {
        struct jfr_cursor c = hearth_jfr_at(chunk, at);
        const uint8_t *begin = c.at;
        uint64_t size = jfr_int(&c), type = jfr_int(&c);

        /* The size counts the whole event; what an event does not explain is passed over. */
        if (c.failed || size > chunk.n - at || begin + size < c.at) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the event at byte %llu declares %llu bytes; %llu are left",
                               (unsigned long long)at, (unsigned long long)size,
                               (unsigned long long)(chunk.n - at));
        }

        c.end = begin + size;
        HEARTH_TRY(visit(context, type, c, err));
        at += size;
    }

    return HEARTH_OK;
}

static enum hearth_status map_event_types(struct chunk_sampler *s, struct hearth_err *err)
{
    const struct jfr_types *types = s->pools->types;

    s->rule_of_type = hearth_arena_calloc(s->scratch, types->n_types, 1);
    if (s->rule_of_type == NULL) {
        return HEARTH_FAIL_ARENA(err, s->scratch);
    }

    /* From the last rule to the first: each is put before those of the same event. */
    for (size_t i = HEARTH_ARRAY_LEN(g_rules); i > 0; i--) {
        const struct jfr_type *type = hearth_jfr_type_of_name(types, g_rules[i - 1].event);
        if (type != NULL) {
            uint8_t *first = &s->rule_of_type[type - types->types];
            s->next_rule[i - 1] = *first;
            *first = (uint8_t)i;
        }
    }

    s->setting = hearth_jfr_type_of_name(types, "jdk.ActiveSetting");
    s->datadog_setting = hearth_jfr_type_of_name(types, "datadog.ProfilerSetting");
    if (s->datadog_setting == NULL) {
        s->datadog_setting = hearth_jfr_type_of_name(types, "datadog.DatadogProfilerConfig");
    }
    s->endpoint = hearth_jfr_type_of_name(types, "datadog.Endpoint");
    s->has_endpoint_keys =
        s->endpoint != NULL && hearth_jfr_field_is_constant(types, s->endpoint, "endpoint");

    return HEARTH_OK;
}

static bool has_word(struct hearth_str text, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++) {
        if (memcmp(text.p + i, word, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Producers number the states differently, so they are compared by name. */
static enum hearth_status read_states(struct chunk_sampler *s, struct hearth_err *err)
{
    size_t n = s->pools->pools[JFR_POOL_STATE].n;

    s->is_sleeping = hearth_arena_calloc(s->scratch, n, sizeof *s->is_sleeping);
    s->is_runnable = hearth_arena_calloc(s->scratch, n, sizeof *s->is_runnable);
    if (s->is_sleeping == NULL || s->is_runnable == NULL) {
        return HEARTH_FAIL_ARENA(err, s->scratch);
    }

    for (uint32_t i = 0; i < n; i++) {
        struct jfr_values values;
        if (!hearth_jfr_pool_read(s->pools, JFR_POOL_STATE, i, &values) ||
            !jfr_has(&values, JFR_SLOT_NAME)) {
            continue;
        }
        struct hearth_str name = hearth_jfr_text_at(s->pools, values.v[JFR_SLOT_NAME]);
        s->is_sleeping[i] = has_word(name, "SLEEPING");
        s->is_runnable[i] = has_word(name, "RUNNABLE");
    }

    return HEARTH_OK;
}

static struct hearth_hash128 key_of_span(uint64_t id)
{
    return (struct hearth_hash128){hearth_hash_mix(id, hearth_hash_process_seed()), id};
}

static enum hearth_status note_endpoint(struct chunk_sampler *s, const struct jfr_values *values,
                                        struct hearth_err *err)
{
    struct endpoint endpoint = {jfr_u64(values, JFR_SLOT_LOCAL_ROOT_SPAN_ID),
                                jfr_u64(values, JFR_SLOT_ENDPOINT)};
    bool fresh;

    if (!hearth_arena_grow(s->scratch, &s->endpoints, &s->cap_endpoints, s->n_endpoints + 1,
                           sizeof *s->endpoints) ||
        hearth_idmap_intern(&s->endpoint_of, key_of_span(endpoint.local_root_span_id),
                            (uint32_t)s->n_endpoints, &fresh) == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the endpoints of a recording");
    }
    if (fresh) {
        s->endpoints[s->n_endpoints++] = endpoint;
    }

    return HEARTH_OK;
}

/* Settings and endpoints, which samples before them need, too. */
static enum hearth_status visit_facts(void *context, uint64_t type_id, struct jfr_cursor c,
                                      struct hearth_err *err)
{
    struct chunk_sampler *s = context;
    const struct jfr_type *type =
        type_id <= 1 ? NULL : hearth_jfr_type_of_id(s->pools->types, type_id);
    struct jfr_values values;

    if (type == NULL || (type != s->setting && type != s->datadog_setting && type != s->endpoint)) {
        return HEARTH_OK;
    }

    hearth_jfr_read_value(s->pools->types, type, &c, &values);
    if (type == s->endpoint) {
        return note_endpoint(s, &values, err);
    }

    hearth_jfr_apply_settings(s->sampler, s->pools, &values);

    return HEARTH_OK;
}

/* ---- values ---- */

/* The nanoseconds between two samples; own_ns: what the recording says, 0 if nothing. */
static double find_interval(const struct chunk_sampler *s, int64_t own_ns, int64_t default_ns)
{
    int64_t rate = s->sampler->options->sample_rate;

    if (own_ns <= 0) {
        own_ns = rate > 0 ? HEARTH_NS_PER_SEC / rate : default_ns;
    }

    return (double)own_ns;
}

/* The interval of the event that the recording is about, which may be wall time. */
static double find_event_interval(const struct chunk_sampler *s)
{
    const struct jfr_settings *settings = &s->sampler->settings;
    int64_t default_ns = settings->is_wall ? ASYNC_WALL_INTERVAL_NS : ASYNC_INTERVAL_NS;

    return find_interval(s, settings->cpu_interval_ns,
                         settings->is_default ? default_ns : DEFAULT_INTERVAL_NS);
}

/* The interval of wall time: its own, otherwise that of the event. */
static double find_wall_interval(const struct chunk_sampler *s)
{
    const struct jfr_settings *settings = &s->sampler->settings;

    return settings->wall_interval_ns > 0 || settings->is_wall_default
               ? find_interval(s, settings->wall_interval_ns, ASYNC_WALL_INTERVAL_NS)
               : find_event_interval(s);
}

/* Exact: a double holds the nanoseconds of 100 days. */
static double convert_ticks(const struct chunk_sampler *s, uint64_t ticks)
{
    __extension__ typedef __int128 i128;
    i128 ns = (i128)(int64_t)ticks * HEARTH_NS_PER_SEC / (i128)s->clock->ticks_per_second;
    return (double)ns;
}

static double find_value(const struct chunk_sampler *s, const struct event_rule *rule,
                         const struct jfr_values *values)
{
    switch (rule->source) {
    case CPU_INTERVAL:
        return find_event_interval(s);
    case WALL_INTERVAL:
        return find_wall_interval(s);
    case TICKS:
        return convert_ticks(s, jfr_u64(values, rule->slot));
    default:
        return rule->slot == JFR_SLOT_NONE ? 0 : hearth_jfr_number(values, rule->slot);
    }
}

static bool meets_condition(const struct chunk_sampler *s, const struct event_rule *rule,
                            const struct jfr_values *values)
{
    bool is_wall = s->sampler->settings.is_wall;
    uint32_t state = JFR_NO_CONSTANT;

    if (rule->condition == AWAKE || (rule->condition == RUNNABLE_WALL && is_wall)) {
        state = hearth_jfr_pool_find(s->pools, JFR_POOL_STATE, jfr_u64(values, JFR_SLOT_STATE));
    }

    switch (rule->condition) {
    case AWAKE:
        return state == JFR_NO_CONSTANT || !s->is_sleeping[state];
    case RUNNABLE_WALL:
        return is_wall && state != JFR_NO_CONSTANT && s->is_runnable[state];
    case WALL_MODE:
        return is_wall;
    default:
        return true;
    }
}

/* Adds a rounded value; false if it does not fit. */
static bool add_value(int64_t *to, double value)
{
    return value > -9.2e18 && value < 9.2e18 &&
           !__builtin_add_overflow(*to, (int64_t)llround(value), to);
}

/* ---- collecting ---- */

/* The sample with a key; NULL: no memory. */
static struct chunk_sample *intern_sample(struct chunk_sampler *s, const struct sample_key *key)
{
    struct hearth_hash128 hash = hearth_hash128(key, sizeof *key, hearth_hash_process_seed());
    size_t limit = s->scratch->limit_bytes;
    bool fresh;

    if (s->n_samples >= UINT32_MAX - 1 || (limit != 0 && hearth_idmap_bytes(&s->by_key) > limit) ||
        !hearth_arena_grow(s->scratch, &s->samples, &s->cap_samples, s->n_samples + 1,
                           sizeof *s->samples)) {
        return NULL;
    }

    uint32_t i = hearth_idmap_intern(&s->by_key, hash, (uint32_t)s->n_samples, &fresh);
    if (i == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&s->by_key, s->scratch, &s->charged_bytes)) {
        return NULL;
    }
    if (fresh) {
        s->samples[s->n_samples++] = (struct chunk_sample){.key = *key};
    }

    return &s->samples[i];
}

static enum hearth_status apply_rule(struct chunk_sampler *s, const struct event_rule *rule,
                                     const struct jfr_values *values, struct sample_key *key,
                                     struct hearth_err *err)
{
    double weight = rule->weight == JFR_SLOT_NONE ? 1 : hearth_jfr_number(values, rule->weight);
    double value = find_value(s, rule, values) * weight;

    key->family = rule->family;
    struct chunk_sample *sample = intern_sample(s, key);
    if (sample == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the samples of a recording");
    }

    if ((rule->count_column != NO_COLUMN &&
         !add_value(&sample->values[rule->count_column], weight)) ||
        (rule->value_column != NO_COLUMN &&
         !add_value(&sample->values[rule->value_column], value))) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the values of %s exceed 63 bits",
                           rule->event);
    }

    return HEARTH_OK;
}

static enum hearth_status visit_sample(void *context, uint64_t type_id, struct jfr_cursor c,
                                       struct hearth_err *err)
{
    struct chunk_sampler *s = context;
    const struct jfr_types *types = s->pools->types;
    const struct jfr_type *type = type_id <= 1 ? NULL : hearth_jfr_type_of_id(types, type_id);
    struct jfr_values values;

    if (type == NULL || s->rule_of_type[type - types->types] == 0) {
        return HEARTH_OK;
    }

    hearth_jfr_read_value(types, type, &c, &values);
    if (c.failed) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "an event of type \"%.*s\" is damaged",
                           (int)(type->name.n > 64 ? 64 : type->name.n), type->name.p);
    }

    /* Samples name their thread, other events the thread in which they happened. */
    uint64_t thread = jfr_has(&values, JFR_SLOT_SAMPLED_THREAD)
                          ? values.v[JFR_SLOT_SAMPLED_THREAD]
                          : jfr_u64(&values, JFR_SLOT_EVENT_THREAD);
    struct sample_key key = {
        .stack = hearth_jfr_pool_find(s->pools, JFR_POOL_STACK_TRACE,
                                      jfr_u64(&values, JFR_SLOT_STACK_TRACE)),
        .thread = hearth_jfr_pool_find(s->pools, JFR_POOL_THREAD, thread),
        .context_id = jfr_u64(&values, JFR_SLOT_CONTEXT_ID),
        .span_id = jfr_u64(&values, JFR_SLOT_SPAN_ID),
        .span_name = jfr_u64(&values, JFR_SLOT_SPAN_NAME),
        .local_root_span_id = jfr_u64(&values, JFR_SLOT_LOCAL_ROOT_SPAN_ID),
        .trace_id_hi = jfr_u64(&values, JFR_SLOT_TRACE_ID_HI),
        .trace_id_lo = jfr_u64(&values, JFR_SLOT_TRACE_ID_LO),
    };

    for (size_t i = s->rule_of_type[type - types->types]; i > 0; i = s->next_rule[i - 1]) {
        if (meets_condition(s, &g_rules[i - 1], &values)) {
            HEARTH_TRY(apply_rule(s, &g_rules[i - 1], &values, &key, err));
        }
    }

    return HEARTH_OK;
}

/* ---- labels ---- */

struct label_list {
    struct hearth_profile_builder *builder;
    struct hearth_sample_label labels[MAX_LABELS];
    uint32_t n;
    bool is_refused; /* no memory */
};

static void add_label(struct label_list *list, struct hearth_str key, struct hearth_str text,
                      uint64_t number)
{
    if (list->n == MAX_LABELS || (text.n == 0 && number == 0)) {
        return;
    }

    struct hearth_sample_label label = {
        .key = hearth_profile_builder_string(list->builder, key),
        .str = hearth_profile_builder_string(list->builder, text),
        .num = text.n == 0 ? (int64_t)number : 0,
    };
    if (label.key == HEARTH_NO_INDEX || label.str == HEARTH_NO_INDEX) {
        list->is_refused = true;
        return;
    }

    list->labels[list->n++] = label;
}

/* A text of a thread: a text in its constant, or the key of a symbol. */
static struct hearth_str thread_text(const struct jfr_pools *pools, const struct jfr_values *thread,
                                     enum jfr_slot slot)
{
    return jfr_has(thread, slot) ? hearth_jfr_text_at(pools, thread->v[slot]) : HEARTH_STR("");
}

static void add_thread_labels(const struct jfr_pools *pools, uint32_t i, struct label_list *list)
{
    struct jfr_values thread;

    if (i == JFR_NO_CONSTANT || !hearth_jfr_pool_read(pools, JFR_POOL_THREAD, i, &thread)) {
        return;
    }

    struct hearth_str name = thread_text(pools, &thread, JFR_SLOT_JAVA_NAME);
    name = name.n > 0 ? name : thread_text(pools, &thread, JFR_SLOT_OS_NAME);
    add_label(list, HEARTH_STR("thread name"), name, 0);
    add_label(list, HEARTH_STR("thread id"), HEARTH_STR(""),
              jfr_u64(&thread, JFR_SLOT_JAVA_THREAD_ID));
    add_label(list, HEARTH_STR("thread native id"), HEARTH_STR(""),
              jfr_u64(&thread, JFR_SLOT_OS_THREAD_ID));
}

static void add_span_labels(const struct chunk_sampler *s, const struct sample_key *key,
                            struct label_list *list)
{
    const struct jfr_contexts *contexts = &s->sampler->contexts;
    char trace[HEARTH_TRACE_ID_TEXT + 1];

    add_label(list, HEARTH_STR("span_id"), HEARTH_STR(""), key->span_id);
    add_label(list, HEARTH_STR("span_name"), hearth_jfr_context_string(contexts, key->span_name),
              0);
    add_label(list, HEARTH_STR("local root span id"), HEARTH_STR(""), key->local_root_span_id);
    if (key->trace_id_hi != 0 || key->trace_id_lo != 0) {
        hearth_trace_id_format((struct hearth_trace_id){key->trace_id_hi, key->trace_id_lo}, trace);
        add_label(list, HEARTH_STR("trace_id"), hearth_str_c(trace), 0);
    }

    uint32_t i = key->local_root_span_id == 0
                     ? HEARTH_IDMAP_NONE
                     : hearth_idmap_find(&s->endpoint_of, key_of_span(key->local_root_span_id));
    if (i != HEARTH_IDMAP_NONE) {
        uint64_t text = s->endpoints[i].text;
        add_label(list, HEARTH_STR("trace endpoint"),
                  s->has_endpoint_keys ? hearth_jfr_string(s->pools, text)
                                       : hearth_jfr_text_at(s->pools, text),
                  0);
    }
}

static void add_context_labels(const struct jfr_contexts *contexts, uint64_t context,
                               struct label_list *list)
{
    size_t n;
    const struct jfr_context_label *labels = hearth_jfr_context_labels(contexts, context, &n);

    for (size_t i = 0; i < n; i++) {
        add_label(list, hearth_jfr_context_string(contexts, labels[i].key),
                  hearth_jfr_context_string(contexts, labels[i].value), 0);
    }
}

/* ---- profiles ---- */

/* The builder of a family, with its sample types; NULL: no memory. */
static struct hearth_profile_builder *find_builder(struct jfr_sampler *sampler,
                                                   enum jfr_family_id family)
{
    struct hearth_profile_builder **builder = &sampler->builders[family];

    if (*builder != NULL) {
        return *builder;
    }

    *builder = hearth_profile_builder_new(sampler->arena);
    if (*builder == NULL) {
        return NULL;
    }
    hearth_profile_builder_limit(*builder, sampler->options->limits.max_frames);

    for (size_t i = 0; i < JFR_MAX_COLUMNS && g_columns[family][i].type != NULL; i++) {
        if (hearth_profile_builder_type(*builder, hearth_str_c(g_columns[family][i].type),
                                        hearth_str_c(g_columns[family][i].unit)) ==
            HEARTH_NO_INDEX) {
            return NULL;
        }
    }

    return *builder;
}

static enum hearth_status add_sample(struct chunk_sampler *s, struct jfr_frames *frames,
                                     const struct chunk_sample *sample, struct hearth_err *err)
{
    struct jfr_sampler *sampler = s->sampler;
    struct label_list list;
    const uint32_t *locations;
    uint32_t n;

    list.n = 0;
    list.is_refused = false;
    list.builder = find_builder(sampler, (enum jfr_family_id)sample->key.family);
    if (list.builder == NULL) {
        return HEARTH_FAIL_ARENA(err, sampler->arena);
    }

    HEARTH_TRY(
        hearth_jfr_stack(frames, (uint32_t)sample->key.stack, list.builder, &locations, &n, err));
    add_thread_labels(s->pools, (uint32_t)sample->key.thread, &list);
    add_span_labels(s, &sample->key, &list);
    add_context_labels(&sampler->contexts, sample->key.context_id, &list);
    if (list.is_refused || s->scratch->refused) {
        return HEARTH_FAIL_ARENA(err, s->scratch->refused ? s->scratch : sampler->arena);
    }

    return hearth_profile_builder_labelled_sample(list.builder, locations, n, list.labels, list.n,
                                                  sample->values, err);
}

static enum hearth_status sample_events(struct chunk_sampler *s, struct hearth_err *err)
{
    struct hearth_str chunk = s->pools->types->chunk;
    struct jfr_frames frames;

    HEARTH_TRY(map_event_types(s, err));
    HEARTH_TRY(read_states(s, err));
    HEARTH_TRY(hearth_jfr_visit_events(chunk, visit_facts, s, err));
    HEARTH_TRY(hearth_jfr_visit_events(chunk, visit_sample, s, err));

    HEARTH_TRY(hearth_jfr_frames_init(&frames, s->pools, err));
    for (size_t i = 0; i < s->n_samples; i++) {
        HEARTH_TRY(add_sample(s, &frames, &s->samples[i], err));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_jfr_sample_chunk(struct jfr_sampler *sampler, struct jfr_pools *pools,
                                           const struct jfr_clock *clock,
                                           struct hearth_arena *scratch, struct hearth_err *err)
{
    assert(sampler != NULL && pools != NULL && clock->ticks_per_second > 0);

    struct chunk_sampler s = {
        .sampler = sampler, .pools = pools, .clock = clock, .scratch = scratch};
    hearth_idmap_init(&s.by_key);
    hearth_idmap_init(&s.endpoint_of);

    enum hearth_status status = sample_events(&s, err);

    hearth_idmap_release(&s.by_key);
    hearth_idmap_release(&s.endpoint_of);
    hearth_budget_give(scratch->budget, s.charged_bytes);

    return status;
}

enum hearth_status hearth_jfr_sampler_init(struct jfr_sampler *sampler,
                                           const struct hearth_jfr_options *options,
                                           struct hearth_arena *arena, struct hearth_err *err)
{
    *sampler = (struct jfr_sampler){.options = options, .arena = arena};
    return hearth_jfr_contexts_read(options->labels, arena, &sampler->contexts, err);
}

void hearth_jfr_sampler_release(struct jfr_sampler *sampler)
{
    for (size_t i = 0; i < JFR_N_FAMILIES; i++) {
        hearth_profile_builder_free(sampler->builders[i]);
    }
}

/* Removes the sample types that are 0 in all samples: the recording has no such events. */
static void drop_unused_columns(struct hearth_profile *p)
{
    uint32_t kept[JFR_MAX_COLUMNS], n_kept = 0;

    for (uint32_t t = 0; t < p->n_types; t++) {
        uint32_t s = 0;
        while (s < p->n_samples && p->values[(size_t)s * p->n_types + t] == 0) {
            s++;
        }
        if (s < p->n_samples) {
            kept[n_kept++] = t;
        }
    }

    /* Values move towards the beginning, so none is overwritten before it is read. */
    for (uint32_t s = 0; s < p->n_samples; s++) {
        for (uint32_t k = 0; k < n_kept; k++) {
            p->values[(size_t)s * n_kept + k] = p->values[(size_t)s * p->n_types + kept[k]];
        }
    }
    for (uint32_t k = 0; k < n_kept; k++) {
        p->types[k] = p->types[kept[k]];
    }
    p->n_types = n_kept;
}

static enum hearth_status finish_family(struct jfr_sampler *sampler, enum jfr_family_id family,
                                        struct hearth_jfr_recording *ret, struct hearth_err *err)
{
    struct hearth_profile_builder *builder = sampler->builders[family];
    struct hearth_profile profile;

    uint32_t type =
        hearth_profile_builder_string(builder, hearth_str_c(g_families[family].period_type));
    uint32_t unit =
        hearth_profile_builder_string(builder, hearth_str_c(g_families[family].period_unit));
    if (type == HEARTH_NO_INDEX || unit == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, sampler->arena);
    }

    HEARTH_TRY(hearth_profile_builder_finish(builder, &profile, err));
    drop_unused_columns(&profile);
    if (profile.n_types == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(
        hearth_ingest_cut(&sampler->options->limits, sampler->arena, &profile, &ret->notes, err));
    profile.period_type = (struct hearth_value_type){type, unit};
    ret->profiles[ret->n_profiles++] =
        (struct hearth_jfr_profile){g_families[family].name, profile};

    return HEARTH_OK;
}

enum hearth_status hearth_jfr_finish(struct jfr_sampler *sampler, struct hearth_jfr_recording *ret,
                                     struct hearth_err *err)
{
    *ret = (struct hearth_jfr_recording){.event = sampler->settings.event};

    for (int i = 0; i < JFR_N_FAMILIES; i++) {
        int by = (int)g_families[i].superseded_by;
        bool is_superseded = by != i && sampler->builders[by] != NULL;
        if (sampler->builders[i] != NULL && !is_superseded) {
            HEARTH_TRY(finish_family(sampler, (enum jfr_family_id)i, ret, err));
        }
    }

    return HEARTH_OK;
}
