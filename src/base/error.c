#include "base/error.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int error_set(struct error *e, const char *format, ...)
{
	va_list ap;

	error_clear(e);
	va_start(ap, format);
	e->text = xvprintf(format, ap);
	va_end(ap);
	return -1;
}

int error_wrap(struct error *e, const char *format, ...)
{
	va_list ap;
	char *prefix, *whole;

	va_start(ap, format);
	prefix = xvprintf(format, ap);
	va_end(ap);
	whole = xprintf("%s: %s", prefix, e->text ? e->text : "failed");
	free(prefix);
	error_clear(e);
	e->text = whole;
	return -1;
}

void error_clear(struct error *e)
{
	free(e->text);
	e->text = NULL;
}
