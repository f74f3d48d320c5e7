/* Not attacks: states of the caller in which a command is then started. */
#include "attack.h"
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>

static int start(char **command) {
    execvp(command[0], command);
    return -1;
}
/* The command inherits FILE as descriptor N, and LIMIT as its soft limit of open files (0: as it is). */
static int with_fd(char **a) {
    int number = atoi(a[0]), fd = open(a[1], O_RDWR);
    struct rlimit limit;
    if (fd < 0) fd = open(a[1], O_RDONLY);
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0) return -1;
    rlim_t soft = limit.rlim_cur;
    if (limit.rlim_cur <= (rlim_t)number) limit.rlim_cur = (rlim_t)number + 1;
    if (limit.rlim_max < limit.rlim_cur) limit.rlim_max = limit.rlim_cur;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || dup2(fd, number) < 0) return -1;
    if (fd != number) close(fd);
    limit.rlim_cur = atoi(a[2]) ? (rlim_t)atoi(a[2]) : soft;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -1 : start(a + 3);
}
static int descriptor(char **a) {
    char text[256];
    int fd = atoi(a[0]);
    if (fcntl(fd, F_GETFD) < 0) return -1;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n < 0 ? 0 : (int)(fwrite(text, 1, (size_t)n, stdout) * 0);
}
static int private_mounts(void) {
    return unshare(CLONE_NEWNS) < 0 ? -1 : mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}
static int in_private_mounts(char **a) { return private_mounts() < 0 ? -1 : start(a); }
static int with_bind(char **a) {
    return private_mounts() < 0 || mount(a[0], a[1], NULL, MS_BIND, NULL) < 0 ? -1 : start(a + 2);
}
static int with_tmpfs(char **a) {
    return private_mounts() < 0 || mount("tmpfs", a[0], "tmpfs", 0, "size=1m,mode=777") < 0 ? -1 : start(a + 1);
}
static int as(char **a) {
    gid_t gid = (gid_t)atoi(a[1]);
    uid_t uid = (uid_t)atoi(a[0]);
    return setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ? -1 : start(a + 2);
}

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    return fd < 0 ? -1 : write(fd, text, strlen(text)) < 0 ? -1 : close(fd);
}
static int own_user_namespace(int as_root) {
    char uid[64], gid[64];
    snprintf(uid, sizeof uid, "%d %d 1", as_root ? 0 : geteuid(), geteuid());
    snprintf(gid, sizeof gid, "%d %d 1", as_root ? 0 : getegid(), getegid());
    if (unshare(CLONE_NEWUSER) < 0) return -1;
    return put("/proc/self/setgroups", "deny") < 0 || put("/proc/self/gid_map", gid) < 0 ? -1 : put("/proc/self/uid_map", uid);
}
/* A host that gives no namespaces: the limit of this one is zero, and no capability is left to do without. The mount namespace is
 * the caller's. */
static int no_namespaces(char **a) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    if (own_user_namespace(0) < 0 || put("/proc/sys/user/max_user_namespaces", "0") < 0) return -1;
    for (int cap = 0; cap < 64; cap++) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    return syscall(SYS_capset, &head, none) < 0 ? -1 : start(a);
}
/* Root of a user namespace of one's own with private mounts: what an unprivileged twin of mount calls needs. */
static int in_user_namespace(char **a) {
    return own_user_namespace(1) < 0 || private_mounts() < 0 ? -1 : start(a);
}

/* A fresh session keyring with one key that everyone may read; `@KEY` in the command becomes its number. */
static int with_session_key(char **a) {
    char number[32];
    if (syscall(SYS_keyctl, 1 /* JOIN_SESSION_KEYRING */, NULL) < 0) return -1;
    long key = syscall(SYS_add_key, "user", a[0], a[1], strlen(a[1]), -3);
    if (key < 0 || syscall(SYS_keyctl, 5 /* SETPERM */, key, 0x3f3f3f3f) < 0) return -1;
    snprintf(number, sizeof number, "%ld", key);
    for (char **arg = a + 2; *arg; arg++)
        if (strcmp(*arg, "@KEY") == 0) *arg = number;
    return start(a + 2);
}

/* The command on a terminal of its own, in the foreground of a session whose leader waits; afterwards "left N" tells how many bytes
 * stand in the terminal's input, ready for whoever reads it next. */
static int on_terminal(char **a) {
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0, number, status;
    char path[32], text[512];
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCGPTN, &number) < 0) return -1;
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    pid_t leader = fork();
    if (leader == 0) {
        struct termios raw;
        setsid();
        int tty = open(path, O_RDWR), left = 0;
        if (tty < 0 || tcgetattr(tty, &raw) < 0) _exit(120);
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(tty, TCSANOW, &raw);
        close(master);
        pid_t child = fork();
        if (child == 0) {
            dup2(tty, 0), dup2(tty, 1), dup2(tty, 2);
            close(tty);
            start(a);
            _exit(127);
        }
        waitpid(child, &status, 0);
        ioctl(tty, FIONREAD, &left);
        dprintf(tty, "left %d\n", left);
        tcdrain(tty);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 121);
    }
    for (ssize_t n; (n = read(master, text, sizeof text)) > 0;) fwrite(text, 1, (size_t)n, stdout);
    waitpid(leader, &status, 0);
    fflush(stdout);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 122);
}
/* A host whose landlock_restrict_self(2) says that it did what it did not. */
static int fake_landlock(char **a) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 446, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) return -1;
    return start(a);
}
static int spell_signals(char **a) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    (void)a;
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Sig", 3) == 0) fputs(line, stdout);
    return 0;
}

const struct op wrapper_ops[] = {
    {"with-fd", 4, "N FILE LIMIT COMMAND...", with_fd},
    {"descriptor", 1, "N", descriptor},
    {"in-private-mounts", 1, "COMMAND...", in_private_mounts},
    {"with-bind", 3, "FROM TO COMMAND...", with_bind},
    {"with-tmpfs", 2, "DIR COMMAND...", with_tmpfs},
    {"as", 3, "UID GID COMMAND...", as},
    {"no-namespaces", 1, "COMMAND...", no_namespaces},
    {"in-user-namespace", 1, "COMMAND...", in_user_namespace},
    {"with-session-key", 3, "NAME TEXT COMMAND...", with_session_key},
    {"on-terminal", 1, "COMMAND...", on_terminal},
    {"fake-landlock", 1, "COMMAND...", fake_landlock},
    {"signals", 0, "", spell_signals},
    {0},
};
