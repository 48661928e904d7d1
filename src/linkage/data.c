#include "linkage/data.h"

#include <stdio.h>

int data_version_code(const char *text)
{
	int major, minor, patch, n = 0;

	if (!text || sscanf(text, "%4d.%4d.%4d%n", &major, &minor, &patch, &n) != 3 || text[n])
		return 0;
	return major * 10000 + minor * 100 + patch;
}

int data_version_compare(const char *a, const char *b)
{
	int x[3] = {0}, y[3] = {0}, i;

	sscanf(a, "%9d.%9d.%9d", &x[0], &x[1], &x[2]);
	sscanf(b, "%9d.%9d.%9d", &y[0], &y[1], &y[2]);
	for (i = 0; i < 3; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}
