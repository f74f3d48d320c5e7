/* One hostile operation a run: `attack [-d] OPERATION ARGS...`.
 *
 * Prints "ok" and exits 0 when the kernel let it happen, prints the name of the errno and exits 1 when it did not, exits 2 when it
 * was called wrongly. Static and without a library of its own, so that it runs as any user, in any root, and as part of an
 * initramfs. What an operation did is judged by whoever started it, from outside, by looking at the victim. */
#ifndef ATTACK_H
#define ATTACK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct op {
    const char *name;
    int least;           /* arguments that must be there */
    const char *args;    /* for the usage text */
    int (*run)(char **); /* 0, or -1 with errno set */
};

extern const struct op write_ops[], metadata_ops[], read_ops[], ipc_ops[], process_ops[], network_ops[], privilege_ops[],
    wrapper_ops[];

/* With -d the directory of the fixture is opened first and everything in it is named relative to that descriptor. */
extern int relative, at;

/* NAME in DIR, or NAME alone below the descriptor `at`; `deep` is always the whole path. */
char *in(const char *dir, const char *name);
char *deep(const char *dir, const char *name);
int overwrite(int fd);
int run_named(int argc, char **argv);

/* Numbers that older headers lack. They are the same on every architecture with the generic table and on x86-64. */
#define NR_open_tree 428
#define NR_move_mount 429
#define NR_fsopen 430
#define NR_fsconfig 431
#define NR_fsmount 432
#define NR_fspick 433
#define NR_pidfd_open 434
#define NR_clone3 435
#define NR_openat2 437
#define NR_pidfd_getfd 438
#define NR_mount_setattr 442
#define NR_fchmodat2 452
#define NR_setxattrat 463
#define NR_removexattrat 466
#define NR_open_tree_attr 467
#define NR_file_getattr 468
#define NR_file_setattr 469

struct how {
    uint64_t flags, mode, resolve;
};

#endif
