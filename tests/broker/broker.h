#ifndef BROKER_H
#define BROKER_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* strerrorname_np(3) is younger than some C libraries. */
static inline const char *spell(int error)
{
	static char number[32];
	static const struct { int number; const char *name; } names[] = {
		{EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {EACCES, "EACCES"}, {EINVAL, "EINVAL"}, {ENOTDIR, "ENOTDIR"}, {ELOOP, "ELOOP"},
		{EFAULT, "EFAULT"}, {EBADF, "EBADF"}, {ENOSYS, "ENOSYS"}, {EINTR, "EINTR"}, {EAGAIN, "EAGAIN"}, {ECONNREFUSED, "ECONNREFUSED"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == error)
			return names[i].name;
	snprintf(number, sizeof number, "errno %d", error);
	return number;
}
static inline void print_result(const char *label, const char *what, long result)
{
	printf("%s: %s %s\n", label, what, result < 0 ? spell(errno) : "ok");
}

int same(char **), outside(char **);
int threads(char **), storm(char **), alarms(char **), killed(char **), vforked(char **), undumpable(char **), race(char **),
	executes(char **), tables(char **), repeat(char **);
int reach(char **), serve_self(char **), full(char **), pass_rights(char **), datagrams(char **), datagram_self(char **), table_socket(char **), inet(char **), race_listen(char **),
	interrupted(char **), kinds(char **);
#endif
