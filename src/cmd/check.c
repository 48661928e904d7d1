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

/* Precedence: findings at or above the threshold, then unsure or none. */
static int status_of(const struct options *o, const struct check_report *report)
{
	size_t i, k;

	for (i = 0; i < report->n; i++)
		for (k = 0; k < report->run[i]->findings.n && o->fail_on != FAIL_ON_NEVER; k++)
			if ((int)report->run[i]->findings.at[k]->severity <= (int)o->fail_on)
				return 1;
	if (report->verdict == VERDICT_UNSURE || report->verdict == VERDICT_NONE)
		return o->strict ? 1 : o->allow_unsure ? 0 : 3;
	return 0;
}

int cmd_check(struct options *o, struct error *e)
{
	struct simulation s;
	int status = -1;

	if (!o->plan.engine)
		return error_set(e, "check: no ENGINE; see 'ncclwhich check --help'");
	if (simulation_start(&s, o, true, e) == 0 && commands_output(o, render, &s.report, e) == 0)
		status = status_of(o, &s.report);
	simulation_end(&s);
	return status;
}
