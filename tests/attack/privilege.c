/* Ways to more rights, or to more of the kernel than a program needs. */
#include "attack.h"
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static int whoami(char **a) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    (void)a;
    printf("euid %d egid %d\n", geteuid(), getegid());
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Cap", 3) == 0 || strncmp(line, "NoNewPrivs", 10) == 0 || strncmp(line, "Seccomp:", 8) == 0)
            fputs(line, stdout);
    return status ? 0 : -1;
}
static int become_other(char **a) { return (void)a, setresuid(12345, 12345, 12345); }
static int drop_groups(char **a) { return (void)a, (int)syscall(SYS_setgroups, 0, NULL); }
static int set_file_capability(char **a) {
    static const uint32_t all_the_time[5] = {0x02000001, 1u << 13, 0, 0, 0}; /* cap_net_raw, effective */
    return setxattr(a[0], "security.capability", all_the_time, sizeof all_the_time, 0);
}
static int mknod_null(char **a) { return (int)syscall(SYS_mknodat, AT_FDCWD, a[0], S_IFCHR | 0600, 1 << 8 | 3); }

static int settle(long child) {
    if (child == 0) _exit(0);
    if (child < 0) return -1;
    return waitpid((pid_t)child, NULL, __WALL) < 0 ? -1 : 0;
}
static int unshare_(char **a) { return (int)syscall(SYS_unshare, strtoul(a[0], NULL, 0)); }
static int clone_(char **a) { return settle(syscall(SYS_clone, strtoul(a[0], NULL, 0) | SIGCHLD, 0, 0, 0, 0)); }
static int clone3_(char **a) {
    struct clone_args args = {.flags = strtoul(a[0], NULL, 0), .exit_signal = SIGCHLD};
    return settle(syscall(NR_clone3, &args, sizeof args));
}
static int setns_(char **a) { return setns(open(a[0], O_RDONLY | O_CLOEXEC), 0); }
static int setns_pidfd(char **a) {
    return (int)syscall(SYS_setns, syscall(NR_pidfd_open, atoi(a[0]), 0), strtoul(a[1], NULL, 0));
}

static int mount_tmpfs(char **a) { return mount("tmpfs", a[0], "tmpfs", 0, NULL); }
static int mount_bind(char **a) { return mount(a[0], a[1], NULL, MS_BIND | MS_REC, NULL); }
static int mount_remount(char **a) { return mount(NULL, a[0], NULL, MS_REMOUNT | MS_BIND, NULL); }
static int mount_move(char **a) { return mount(a[0], a[1], NULL, MS_MOVE, NULL); }
static int mount_private(char **a) { return mount(NULL, a[0], NULL, MS_PRIVATE, NULL); }
static int umount_lazy(char **a) { return umount2(a[0], MNT_DETACH); }
static int pivot(char **a) { return (int)syscall(SYS_pivot_root, a[0], a[0]); }
static int chroot_(char **a) { return chroot(a[0]); }
static int fsopen_(char **a) { return (void)a, syscall(NR_fsopen, "tmpfs", 0) < 0 ? -1 : 0; }
static int fspick_(char **a) { return syscall(NR_fspick, AT_FDCWD, a[0], 0) < 0 ? -1 : 0; }
static int open_tree_(char **a) { return syscall(NR_open_tree, AT_FDCWD, a[0], 1u /* CLONE */) < 0 ? -1 : 0; }
static int open_tree_attr(char **a) { return syscall(NR_open_tree_attr, AT_FDCWD, a[0], 1u, NULL, 0) < 0 ? -1 : 0; }
static int move_mount_(char **a) { return (int)syscall(NR_move_mount, AT_FDCWD, a[0], AT_FDCWD, a[1], 0); }
static int mount_setattr_(char **a) {
    struct {
        uint64_t set, clear, propagation, userns;
    } attr = {.clear = 1 /* RDONLY */};
    return (int)syscall(NR_mount_setattr, AT_FDCWD, a[0], 0, &attr, sizeof attr);
}

#ifdef __x86_64__
/* mkdir by the table of another architecture, which a filter by number reads wrongly. The path must lie below 4 GiB, as static data
 * of a program that is not position-independent does. */
static char low[256];
static int mkdir_int80(char **a) {
    long result;
    snprintf(low, sizeof low, "%s/new", a[0]);
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(39), "b"(low), "c"(0755), "d"(0) : "memory", "r8", "r9", "r10", "r11");
    return result < 0 ? (errno = (int)-result, -1) : 0;
}
static int unshare_int80(char **a) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(310), "b"(strtoul(a[0], NULL, 0)) : "memory", "r8", "r9", "r10", "r11");
    return result < 0 ? (errno = (int)-result, -1) : 0;
}
static int unshare_x32(char **a) { return (int)syscall(0x40000000 | SYS_unshare, strtoul(a[0], NULL, 0)); }
static int getpid_x32(char **a) { return (void)a, (int)syscall(0x40000000 | SYS_getpid) < 0 ? -1 : 0; }
#endif
static int beyond(char **a) { return (void)a, (int)syscall(4000); }

/* Calls that a program has no need of, each with arguments that an unfiltered kernel refuses for another reason than EPERM to one
 * who has every right. None of them could do anything. */
struct call {
    const char *name;
    long number, args[5];
};
static const struct call calls[] = {
    {"io_uring_setup", 425, {0, 0}},
    {"io_uring_enter", 426, {-1, 1, 0, 0, 0}},
    {"io_uring_register", 427, {-1, 0, 0, 0}},
    {"bpf", SYS_bpf, {9999, 0, 0}},
    {"perf_event_open", SYS_perf_event_open, {0, 0, -1, -1, 0}},
    {"userfaultfd", SYS_userfaultfd, {0x40000000}},
    {"keyctl", SYS_keyctl, {9999, 0, 0, 0, 0}},
    {"add_key", SYS_add_key, {0, 0, 0, 0, 0}},
    {"request_key", SYS_request_key, {0, 0, 0, 0}},
    {"kexec_load", SYS_kexec_load, {0, 0, 0, 0x7fffffff}},
    {"init_module", SYS_init_module, {0, 0, 0}},
    {"finit_module", SYS_finit_module, {-1, 0, 0}},
    {"delete_module", SYS_delete_module, {0, 0}},
    {"reboot", SYS_reboot, {0, 0, 0, 0}},
    {"swapon", SYS_swapon, {0, 0}},
    {"swapoff", SYS_swapoff, {0}},
    {"fanotify_init", SYS_fanotify_init, {0x7fffffff, 0}},
    {"fanotify_mark", SYS_fanotify_mark, {-1, 0, 0, 0, 0}},
    {"open_by_handle_at", SYS_open_by_handle_at, {-1, 0, 0}},
    {"quotactl", SYS_quotactl, {0x7fffffff, 0, 0, 0}},
    {"syslog", SYS_syslog, {9999, 0, 0}},
    {"settimeofday", SYS_settimeofday, {1, 1}},
    {"clock_settime", SYS_clock_settime, {0, 1}},
    {"sethostname", SYS_sethostname, {0, 100000}},
    {"setdomainname", SYS_setdomainname, {0, 100000}},
    {"process_madvise", 440, {-1, 0, 0, 0, 0}},
    {"process_mrelease", 448, {-1, 0}},
    {"migrate_pages", SYS_migrate_pages, {0x7fffffff, 64, 0, 0}},
    {"move_pages", SYS_move_pages, {0x7fffffff, 0, 0, 0, 0}},
    {"kcmp", SYS_kcmp, {0x7fffffff, 0x7fffffff, 0, 0, 0}},
    {"personality-read-implies-exec", SYS_personality, {0x0400000}},
#ifdef __x86_64__
    {"iopl", SYS_iopl, {9}},
    {"ioperm", SYS_ioperm, {-1, -1, 1}},
    {"modify_ldt", SYS_modify_ldt, {1, 0, 0}},
#endif
    {0},
};
static int call(char **a) {
    for (const struct call *c = calls; c->name; c++)
        if (strcmp(c->name, a[0]) == 0)
            return syscall(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4]) < 0 ? -1 : 0;
    exit(2);
}
static int call_names(char **a) {
    (void)a;
    for (const struct call *c = calls; c->name; c++) puts(c->name);
    return 0;
}

const struct op privilege_ops[] = {
    {"whoami", 0, "", whoami},
    {"become-other", 0, "", become_other},
    {"drop-groups", 0, "", drop_groups},
    {"set-file-capability", 1, "FILE", set_file_capability},
    {"mknod-null", 1, "PATH", mknod_null},
    {"unshare", 1, "FLAGS", unshare_},
    {"clone", 1, "FLAGS", clone_},
    {"clone3", 1, "FLAGS", clone3_},
    {"setns", 1, "FILE", setns_},
    {"setns-pidfd", 2, "PID FLAGS", setns_pidfd},
    {"mount-tmpfs", 1, "DIR", mount_tmpfs},
    {"mount-bind", 2, "FROM TO", mount_bind},
    {"mount-remount", 1, "DIR", mount_remount},
    {"mount-move", 2, "FROM TO", mount_move},
    {"mount-private", 1, "DIR", mount_private},
    {"umount", 1, "DIR", umount_lazy},
    {"pivot-root", 1, "DIR", pivot},
    {"chroot", 1, "DIR", chroot_},
    {"fsopen", 0, "", fsopen_},
    {"fspick", 1, "DIR", fspick_},
    {"open-tree", 1, "DIR", open_tree_},
    {"open-tree-attr", 1, "DIR", open_tree_attr},
    {"move-mount", 2, "FROM TO", move_mount_},
    {"mount-setattr", 1, "DIR", mount_setattr_},
#ifdef __x86_64__
    {"mkdir-int80", 1, "D", mkdir_int80},
    {"unshare-int80", 1, "FLAGS", unshare_int80},
    {"unshare-x32", 1, "FLAGS", unshare_x32},
    {"getpid-x32", 0, "", getpid_x32},
#endif
    {"beyond-the-table", 0, "", beyond},
    {"call", 1, "NAME", call},
    {"call-names", 0, "", call_names},
    {0},
};
