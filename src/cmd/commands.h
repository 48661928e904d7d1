/* The subcommands.  Each returns the exit status of the contract
 * (doc/exit-status.md), or -1 after an error: status 2. */
#ifndef NCCLWHICH_CMD_COMMANDS_H
#define NCCLWHICH_CMD_COMMANDS_H

#include "cmd/options.h"

int cmd_check(struct options *o, struct error *e);
int cmd_tree(struct options *o, struct error *e);
int cmd_explain(struct options *o, struct error *e);
int cmd_opens(struct options *o, struct error *e);
int cmd_confirm(struct options *o, struct error *e);
int cmd_rules(struct options *o, struct error *e);

/* Renders and writes every output that was asked for. */
typedef char *render_function(enum format format, void *what, bool color, size_t *size);
int commands_output(const struct options *o, render_function *render, void *what, struct error *e);

#endif
