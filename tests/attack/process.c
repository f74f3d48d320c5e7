/* What one process can do to another: signals by every road, tracing, memory, descriptors, limits, priority; and typing into a
 * terminal that somebody else will read. */
#include "attack.h"
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <linux/sockios.h>

#define PID(a) ((pid_t)atoi((a)[0]))

/* The victim: leads its own session and group, holds FILE open as descriptor 7, tells where in its memory SECRET lies. */
static char secret_in_memory[64] = "memory of the victim";
static int hold(char **a) {
    int fd = open(a[0], O_RDONLY);
    if (fd < 0 || dup2(fd, 7) < 0) return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    printf("%d %p\n", getpid(), (void *)secret_in_memory);
    for (;;) pause();
}

static int kill_(char **a) { return kill(PID(a), SIGKILL); }
static int kill_probe(char **a) { return kill(PID(a), 0); }
static int kill_group(char **a) { return kill(-PID(a), SIGKILL); }
static int tkill_(char **a) { return (int)syscall(SYS_tkill, PID(a), SIGKILL); }
static int tgkill_(char **a) { return (int)syscall(SYS_tgkill, PID(a), PID(a), SIGKILL); }
static int queue_signal(char **a) { return sigqueue(PID(a), SIGUSR1, (union sigval){.sival_int = 1}); }
static int tg_queue_signal(char **a) {
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    info.si_pid = getpid(), info.si_uid = getuid();
    return (int)syscall(SYS_rt_tgsigqueueinfo, PID(a), PID(a), SIGUSR1, &info);
}
static int pidfd_signal(char **a) {
    int fd = (int)syscall(NR_pidfd_open, PID(a), 0);
    return fd < 0 ? -1 : (int)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}
/* SIGIO, or any other signal by F_SETSIG, goes to whom the owner of a descriptor was set to. */
static int io_signal(int how, pid_t pid) {
    int pair[2];
    struct f_owner_ex owner = {how == 1 ? F_OWNER_PID : how == 2 ? F_OWNER_PGRP : F_OWNER_TID, pid};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) return -1;
    int set = how == 0 ? fcntl(pair[0], F_SETOWN, pid) : how == 4 ? ioctl(pair[0], FIOSETOWN, &pid)
            : how == 5 ? ioctl(pair[0], SIOCSPGRP, &pid) : fcntl(pair[0], F_SETOWN_EX, &owner);
    if (set < 0 || fcntl(pair[0], F_SETSIG, SIGUSR1) < 0 || fcntl(pair[0], F_SETFL, O_ASYNC) < 0) return -1;
    return write(pair[1], "x", 1) == 1 ? 0 : -1;
}
static int setown(char **a) { return io_signal(0, PID(a)); }
static int setown_group(char **a) { return io_signal(0, -PID(a)); }
static int setown_ex(char **a) { return io_signal(1, PID(a)); }
static int setown_ex_group(char **a) { return io_signal(2, PID(a)); }
static int setown_ex_thread(char **a) { return io_signal(3, PID(a)); }
static int fiosetown(char **a) { return io_signal(4, PID(a)); }
static int siocspgrp(char **a) { return io_signal(5, PID(a)); }

/* Leaves a mark that can be seen from outside: the word that `hold` keeps is written over. */
static int poke(pid_t pid, void *where) {
    long word;
    memcpy(&word, "pwned!!", 8);
    return (int)ptrace(PTRACE_POKEDATA, pid, where, (void *)word);
}
static void *address(const char *text) { return (void *)(uintptr_t)strtoull(text, NULL, 0); }
static int ptrace_attach(char **a) {
    if (ptrace(PTRACE_ATTACH, PID(a), 0, 0) < 0) return -1;
    waitpid(PID(a), NULL, __WALL);
    int done = poke(PID(a), address(a[1]));
    ptrace(PTRACE_DETACH, PID(a), 0, 0);
    return done;
}
static int ptrace_seize(char **a) {
    if (ptrace(PTRACE_SEIZE, PID(a), 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, PID(a), 0, 0) < 0) return -1;
    waitpid(PID(a), NULL, __WALL);
    int done = poke(PID(a), address(a[1]));
    ptrace(PTRACE_DETACH, PID(a), 0, 0);
    return done;
}
static int vm_read(char **a) {
    char text[64] = "";
    struct iovec here = {text, 32}, there = {address(a[1]), 32};
    return process_vm_readv(PID(a), &here, 1, &there, 1, 0) < 0 ? -1 : (puts(text), 0);
}
static int vm_write(char **a) {
    struct iovec here = {"pwned", 5}, there = {address(a[1]), 5};
    return process_vm_writev(PID(a), &here, 1, &there, 1, 0) < 0 ? -1 : 0;
}
static int mem_read(char **a) {
    char text[64] = "";
    char *path = deep("/proc", a[0]);
    int fd = open(deep(path, "mem"), O_RDONLY);
    return fd < 0 || pread(fd, text, 32, (off_t)strtoull(a[1], NULL, 0)) < 0 ? -1 : (puts(text), 0);
}
static int mem_write(char **a) {
    char *path = deep("/proc", a[0]);
    int fd = open(deep(path, "mem"), O_RDWR);
    return fd < 0 || pwrite(fd, "pwned", 5, (off_t)strtoull(a[1], NULL, 0)) < 0 ? -1 : 0;
}
static int take_descriptor(char **a) {
    char text[128] = "";
    int pid = (int)syscall(NR_pidfd_open, PID(a), 0);
    int fd = pid < 0 ? -1 : (int)syscall(NR_pidfd_getfd, pid, 7, 0);
    return fd < 0 || pread(fd, text, sizeof text - 1, 0) < 0 ? -1 : (puts(text), 0);
}
static int compare(char **a) { return syscall(SYS_kcmp, getpid(), PID(a), 0, 0, 0) < 0 ? -1 : 0; }
static int limit(char **a) {
    struct rlimit set = {7, 64};
    return prlimit(PID(a), RLIMIT_CORE, &set, NULL);
}
static int priority(char **a) { return setpriority(PRIO_PROCESS, (id_t)PID(a), 9); }
static int priority_group(char **a) { return setpriority(PRIO_PGRP, (id_t)PID(a), 9); }
static int priority_high(char **a) { return (int)syscall(SYS_setpriority, 0xab00000000UL | PRIO_PROCESS, PID(a), 9); }
static int io_priority(char **a) { return (int)syscall(SYS_ioprio_set, 1, PID(a), (3 << 13) | 0); }
/* `hop CHAINS SECONDS FILE STAY`: chains of processes of which each forks and ends at once, every other one in a new session at every
 * turn. Whoever is left after so long says so in FILE. The first process stays for STAY seconds. */
static int hop(char **a) {
    struct timespec begin, now;
    for (int s = 1; s < 32; s++) signal(s, SIG_IGN);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int chain = 0; chain < atoi(a[0]); chain++) {
        if (fork() != 0) continue;
        setsid();
        do {
            if (fork() != 0) _exit(0);
            if (chain % 2) setsid();
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while (now.tv_sec - begin.tv_sec < atoi(a[1]));
        int fd = open(a[2], O_CREAT | O_WRONLY | O_APPEND, 0644);
        _exit(write(fd, "x", 1) == 1 ? 0 : 1);
    }
    printf("hopping\n");
    fflush(stdout);
    sleep((unsigned)atoi(a[3]));
    return 0;
}

static int own_priority(char **a) { return (void)a, setpriority(PRIO_PROCESS, 0, 5); }
static int own_limit(char **a) {
    struct rlimit set;
    (void)a;
    return prlimit(0, RLIMIT_CORE, NULL, &set) < 0 ? -1 : prlimit(0, RLIMIT_CORE, &set, NULL);
}

/* `on-child OP`: the same against a child of one's own, which is allowed. */
static int on_child(char **a) {
    char pid[16], where[32];
    int ready[2], status;
    if (pipe(ready) < 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        dup2(open("/dev/null", O_RDONLY), 7);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    if (read(ready[0], pid, 1) != 1) return -1;
    snprintf(pid, sizeof pid, "%d", child);
    snprintf(where, sizeof where, "%p", (void *)secret_in_memory);
    int done = run_named(3, (char *[]){a[0], pid, where, NULL});
    int error = errno;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    errno = error;
    return done;
}

/* On a terminal of one's own, made the controlling one: only there the kernel lets an ordinary user type. */
static int own_terminal(void) {
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0, number;
    char path[32];
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCGPTN, &number) < 0) return -1;
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    if (getpid() != getsid(0) && setsid() < 0) {
        pid_t child = fork();
        if (child > 0) {
            int status;
            waitpid(child, &status, 0);
            exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
        }
        setsid();
    }
    int slave = open(path, O_RDWR);
    return slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 ? slave : slave;
}
static int terminal(void) {
    int fd = open("/dev/tty", O_RDWR);
    return fd >= 0 ? fd : own_terminal();
}
static int tty_call(unsigned long request, const void *argument) {
    int fd = terminal();
    return fd < 0 ? -1 : (int)syscall(SYS_ioctl, (long)fd, request, argument);
}
static int sti(char **a) { return (void)a, tty_call(TIOCSTI, "x"); }
/* The kernel reads 32 bits of the command. */
static int sti_high(char **a) { return (void)a, tty_call(TIOCSTI | 0xab00000000UL, "x"); }
static int sti_stdin(char **a) { return (void)a, (int)syscall(SYS_ioctl, 0, TIOCSTI, "x"); }
static int sti_stdin_high(char **a) { return (void)a, (int)syscall(SYS_ioctl, 0, TIOCSTI | 1UL << 32, "x"); }
static int paste(char **a) {
    char select[] = {3, 0};
    return (void)a, tty_call(TIOCLINUX, select);
}
static int discipline(char **a) {
    int number = 0;
    return (void)a, tty_call(TIOCSETD, &number);
}
static int window_size(char **a) {
    struct winsize size = {0};
    return (void)a, tty_call(TIOCGWINSZ, &size);
}

const struct op process_ops[] = {
    {"hold", 1, "FILE", hold},
    {"kill", 1, "PID", kill_},
    {"kill-probe", 1, "PID", kill_probe},
    {"kill-group", 1, "PGID", kill_group},
    {"tkill", 1, "PID", tkill_},
    {"tgkill", 1, "PID", tgkill_},
    {"sigqueue", 1, "PID", queue_signal},
    {"tgsigqueue", 1, "PID", tg_queue_signal},
    {"pidfd-signal", 1, "PID", pidfd_signal},
    {"setown", 1, "PID", setown},
    {"setown-group", 1, "PGID", setown_group},
    {"setown-ex", 1, "PID", setown_ex},
    {"setown-ex-group", 1, "PGID", setown_ex_group},
    {"setown-ex-thread", 1, "PID", setown_ex_thread},
    {"fiosetown", 1, "PID", fiosetown},
    {"siocspgrp", 1, "PID", siocspgrp},
    {"ptrace-attach", 2, "PID ADDRESS", ptrace_attach},
    {"ptrace-seize", 2, "PID ADDRESS", ptrace_seize},
    {"vm-read", 2, "PID ADDRESS", vm_read},
    {"vm-write", 2, "PID ADDRESS", vm_write},
    {"mem-read", 2, "PID ADDRESS", mem_read},
    {"mem-write", 2, "PID ADDRESS", mem_write},
    {"take-descriptor", 1, "PID", take_descriptor},
    {"kcmp", 1, "PID", compare},
    {"prlimit", 1, "PID", limit},
    {"setpriority", 1, "PID", priority},
    {"setpriority-group", 1, "PGID", priority_group},
    {"setpriority-high", 1, "PID", priority_high},
    {"ioprio-set", 1, "PID", io_priority},
    {"own-priority", 0, "", own_priority},
    {"own-limit", 0, "", own_limit},
    {"hop", 4, "CHAINS SECONDS FILE STAY", hop},
    {"on-child", 1, "OPERATION", on_child},
    {"tiocsti", 0, "", sti},
    {"tiocsti-high", 0, "", sti_high},
    {"tiocsti-stdin", 0, "", sti_stdin},
    {"tiocsti-stdin-high", 0, "", sti_stdin_high},
    {"tioclinux", 0, "", paste},
    {"tiocsetd", 0, "", discipline},
    {"window-size", 0, "", window_size},
    {0},
};
