/* cmd_task_tree.c -- stack traces of tasks as trees of functions, for the files of flame_output.h. */
#include "cli_messages.h"
#include "cmd_task.h"
#include "flame_output.h"

/* A part of an answer, in the order of parents. */
struct task_element {
    const char *name;
    const char *mark;     /* behind the name */
    int64_t parent, self; /* parent: index of an element before this one, or -1 */
};

/* Adds elements to a tree, those without a parent below its root. */
static enum hearth_status add_elements(struct cli *cli, struct hearth_stacktree *tree,
                                       const struct task_element *elements, size_t n)
{
    uint32_t *nodes = hearth_arena_array(&cli->arena, n, sizeof *nodes);
    struct hearth_buf name;

    if (nodes == NULL || hearth_stacktree_root(tree) == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    hearth_buf_init(&name, 0);
    for (size_t i = 0; i < n; i++) {
        bool is_below = elements[i].parent >= 0 && (size_t)elements[i].parent < i;
        hearth_buf_reset(&name);
        hearth_buf_printf(&name, "%s%s", elements[i].name, elements[i].mark);
        uint32_t id = hearth_buf_failed(&name)
                          ? HEARTH_IDMAP_NONE
                          : hearth_stacktree_name(tree, hearth_buf_view(&name));
        nodes[i] = id == HEARTH_IDMAP_NONE
                       ? HEARTH_NO_NODE
                       : hearth_stacktree_child(tree, is_below ? nodes[elements[i].parent] : 0, id);
        if (nodes[i] == HEARTH_NO_NODE) {
            hearth_buf_release(&name);
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        int64_t *self = &tree->nodes[nodes[i]].self;
        if (__builtin_add_overflow(*self, elements[i].self, self)) {
            hearth_buf_release(&name);
            return HEARTH_FAIL(&cli->err, HEARTH_OUT_OF_RANGE, "the values exceed 64 bits in sum");
        }
    }
    hearth_buf_release(&name);

    return HEARTH_OK;
}

/* Seals and writes a tree, or says why it was not made. Releases the tree. */
static enum cli_exit write_task_tree(struct cli *cli, enum hearth_status status,
                                     struct hearth_stacktree *tree, const char *unit)
{
    const struct flame_export_facts facts = {
        .title = cli->args[0],
        .type = unit,
        .unit = hearth_str_c(unit),
    };

    if (status == HEARTH_OK) {
        status = hearth_stacktree_seal(tree, &cli->err);
    }
    enum cli_exit code =
        status == HEARTH_OK ? flame_output_tree(cli, tree, &facts) : cli_fail(cli, status);
    hearth_stacktree_release(tree);

    return code;
}

/* Elements have only totals: self is what their children do not have. */
static enum hearth_status add_stack_tree(struct cli *cli, const Hearth__V1__StackTree *in,
                                         struct hearth_stacktree *tree)
{
    struct task_element *elements =
        hearth_arena_calloc(&cli->arena, in->n_elements + 1, sizeof *elements);

    if (elements == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < in->n_elements; i++) {
        const Hearth__V1__StackElement *element = in->elements[i];
        bool is_kernel = element->stack_type == HEARTH__V1__STACK_TYPE__STACK_TYPE_KERNEL;
        int64_t parent = (int64_t)element->parent_id - 1;
        elements[i] =
            (struct task_element){element->symbol, is_kernel ? "_[k]" : "", parent, element->total};
        if (parent >= 0 && (size_t)parent < i) {
            elements[parent].self -= element->total;
        }
    }

    return add_elements(cli, tree, elements, in->n_elements);
}

enum cli_exit cli_task_write_stacks(struct cli *cli,
                                    const Hearth__V1__AnalyzeStacksResponse *answer)
{
    struct hearth_stacktree tree;
    enum hearth_status status = HEARTH_OK;

    hearth_stacktree_init(&tree, &cli->arena);
    for (size_t i = 0; i < answer->n_trees && status == HEARTH_OK; i++) {
        status = add_stack_tree(cli, answer->trees[i], &tree);
    }
    return write_task_tree(cli, status, &tree, answer->unit);
}

enum cli_exit cli_task_write_analysis(struct cli *cli,
                                      const Hearth__V1__AnalyzeUploadsResponse *answer)
{
    size_t n = answer->n_elements;
    struct task_element *elements = hearth_arena_calloc(&cli->arena, n, sizeof *elements);
    struct hearth_stacktree tree;

    hearth_stacktree_init(&tree, &cli->arena);
    if (elements == NULL) {
        return write_task_tree(cli, HEARTH_FAIL_ARENA(&cli->err, &cli->arena), &tree, answer->unit);
    }

    /* The first element is the root, which has a self of stack traces without any frame. */
    for (size_t i = 1; i < n; i++) {
        const Hearth__V1__UploadElement *element = answer->elements[i];
        elements[i - 1] = (struct task_element){element->code_signature, "",
                                                (int64_t)element->parent_id - 1, element->self};
    }
    enum hearth_status status = add_elements(cli, &tree, elements, n > 0 ? n - 1 : 0);
    if (status == HEARTH_OK && n > 0) {
        tree.nodes[0].self = answer->elements[0]->self;
    }

    return write_task_tree(cli, status, &tree, answer->unit);
}
