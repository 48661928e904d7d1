/* What the audit library of `confirm --run` writes.
 *
 * Every process of the command appends records to one file, lines as in
 * confirm/replay.h:
 *	object	PID	NS	PATH	DEV	INO	EXE	mapped; PATH "" and EXE 1 = the program
 *	search	PID	NAME	REQUESTER		a name with the prefix in it is asked for
 *	binding	PID	FROM	TO	SYMBOL	call|dlsym */
#ifndef NCCLWHICH_CONFIRM_AUDIT_H
#define NCCLWHICH_CONFIRM_AUDIT_H

#define AUDIT_LIBRARY  "libncclwhich-audit.so"
#define AUDIT_VARIABLE "NCCLWHICH_AUDIT"        /* the file */
#define AUDIT_PREFIX   "NCCLWHICH_AUDIT_PREFIX" /* of tracked symbols, and in tracked names */

#endif
