/* What ncclwhich and its replay library say to each other.
 *
 * Orders go in on one descriptor, records come out on another, both lines of
 * fields between tabs; in a field \\, \t and \n stand for backslash, tab and
 * newline.  Numbers are decimal unless said otherwise.  The library acts only
 * when REPLAY_VARIABLE is set, and removes nothing from the process: its names
 * are hidden, it needs no library, and it leaves by exit_group.
 *
 * Orders, in this order:
 *	mode	1 or 2		1: at its own constructor, then exit; 2: at the
 *				program's entry point, then NCCL
 *	program	PATH		the executable, to find out which file it is
 *	symbol	NAME		a tracked symbol
 *	open	FLAGS	CALLER	NAME	dlopen; the caller's realname, "" = the
 *				program; flags as <dlfcn.h> has them, | REPLAY_NEWLM
 *	ask	CALLER	NAME	what does this name mean by now?
 *	path	needed	REQUESTER	a way to the library …
 *	path	opened	EVENT		… its number is its place among these
 *	case	ID	MAKE	USE	numbers of paths
 *	ranks	N
 *	count	N		elements that are reduced
 *
 * Records:
 *	hello	REPLAY_PROTOCOL
 *	ready			mode 2: the entry point is in our hands
 *	trouble	TEXT		cannot go on
 *	object	start|end	NUMBER	NS	PATH	DEV	INO	SELF	BUILD-ID
 *	mapped	start|end	the list of objects is complete
 *	begin	EVENT
 *	opened	EVENT	ok|null|no-caller|no-return|no-dlopen	OBJECT	ERROR	PATH	DEV	INO	NS
 *	asked	N	OBJECT		-1 = nothing
 *	binding	OBJECT	SYMBOL	plt|data	load|call	TO	-1 = nothing
 *	done			stage 1 is complete
 *	device	N	LIBRARY		or	no-device	WHY
 *	rank	R	DEV	INO	PATH	BUILD-ID	VERSION	MISSING-SYMBOL or -
 *	decide	go|stop	WHY
 *	step	RANK	NAME		is about to happen
 *	result	RANK	NAME	CODE
 *	comm	RANK	null|set
 *	sum	RANK	NAME	right|untouched|wrong
 *	finish			the case is over */
#ifndef NCCLWHICH_CONFIRM_REPLAY_H
#define NCCLWHICH_CONFIRM_REPLAY_H

#define REPLAY_LIBRARY  "libncclwhich-replay.so"
#define REPLAY_VARIABLE "NCCLWHICH_REPLAY" /* "ORDERS,RECORDS": two descriptors */
#define REPLAY_PROTOCOL "1"

enum { REPLAY_NEWLM = 1 << 24 };

#endif
