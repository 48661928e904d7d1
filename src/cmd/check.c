/* check: the gate. */
#include "cmd/commands.h"
#include "cmd/simulate.h"

static char *render(enum format format, void *what, bool color, size_t *size)
{
	const struct check_report *report = what;
	struct text t;
	char *text;

	if (format == FORMAT_JSON) {
		text = json_text(check_json(report), false);
		*size = strlen(text);
		return text;
	}
	text_open(&t, color);
	check_text(&t, report);
	text = text_take(&t);
	*size = t.size;
	return text;
}

int cmd_check(struct options *o, struct error *e)
{
	struct simulation s;
	int status = -1;

	if (!o->plan.engine && !o->plan.python)
		return error_set(e, "check: no ENGINE; see 'ncclwhich check --help'");
	if (simulation_start(&s, o, true, e) == 0 && commands_output(o, render, &s.report, e) == 0)
		status = simulation_status(o, &s.report);
	simulation_end(&s);
	return status;
}
