/* Every call that changes mode, owner, times, attributes or flags: by path, by directory descriptor, by a descriptor that may only
 * read, by one that may not even do that. D as in writes.c; D/file carries the attribute user.kept. */
#include "attack.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

static char *file(char **a) { return in(a[0], "file"); }
static int reader(char **a) { return openat(at, file(a), O_RDONLY); }
static int handle(char **a) { return openat(at, file(a), O_PATH); }
static char *proc(int fd) {
    char *path = NULL;
    return fd < 0 || asprintf(&path, "/proc/self/fd/%d", fd) < 0 ? NULL : path;
}

static int chmod_dir(char **a) { return fchmodat(at, in(a[0], "empty"), 0700, 0); }
static int fchmodat_(char **a) { return (int)syscall(SYS_fchmodat, at, file(a), 0600); }
static int fchmod_(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : fchmod(fd, 0600);
}
static int fchmod_dir(char **a) {
    int fd = openat(at, in(a[0], "empty"), O_RDONLY | O_DIRECTORY);
    return fd < 0 ? -1 : fchmod(fd, 0700);
}
static int chmod_proc_fd(char **a) {
    char *path = proc(handle(a));
    return path ? chmod(path, 0600) : -1;
}
static int fchmodat2_(char **a) { return (int)syscall(NR_fchmodat2, at, file(a), 0600, 0); }
static int fchmodat2_nofollow(char **a) {
    return (int)syscall(NR_fchmodat2, at, file(a), 0600, AT_SYMLINK_NOFOLLOW);
}
static int fchmodat2_empty(char **a) {
    int fd = handle(a);
    return fd < 0 ? -1 : (int)syscall(NR_fchmodat2, fd, "", 0600, AT_EMPTY_PATH);
}

/* To the owner it has: the one change that no capability is needed for, and it still writes the inode. */
static int fchownat_(char **a) { return fchownat(at, file(a), geteuid(), getegid(), 0); }
static int fchownat_link(char **a) {
    return fchownat(at, in(a[0], "link"), geteuid(), getegid(), AT_SYMLINK_NOFOLLOW);
}
static int fchown_(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : fchown(fd, geteuid(), getegid());
}
static int fchownat_empty(char **a) {
    int fd = handle(a);
    return fd < 0 ? -1 : fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH);
}

static const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
static int utimensat_(char **a) { return utimensat(at, file(a), long_ago, 0); }
static int utimensat_now(char **a) { return utimensat(at, file(a), NULL, 0); }
static int utimensat_link(char **a) { return utimensat(at, in(a[0], "link"), long_ago, AT_SYMLINK_NOFOLLOW); }
static int utimensat_empty(char **a) {
    int fd = handle(a);
    return fd < 0 ? -1 : (int)syscall(SYS_utimensat, fd, "", long_ago, AT_EMPTY_PATH);
}
static int futimens_(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : futimens(fd, long_ago);
}

static int setxattr_(char **a) { return setxattr(deep(a[0], "file"), "user.new", "pwned", 5, 0); }
static int lsetxattr_(char **a) { return lsetxattr(deep(a[0], "file"), "user.new", "pwned", 5, 0); }
static int fsetxattr_(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : fsetxattr(fd, "user.new", "pwned", 5, 0);
}
static int setxattr_proc_fd(char **a) {
    char *path = proc(handle(a));
    return path ? setxattr(path, "user.new", "pwned", 5, 0) : -1;
}
struct xattr_args {
    uint64_t value;
    uint32_t size, flags;
};
static int setxattrat_(char **a) {
    struct xattr_args args = {(uint64_t)(uintptr_t)"pwned", 5, 0};
    return (int)syscall(NR_setxattrat, at, file(a), 0, "user.new", &args, sizeof args);
}
static int setxattrat_empty(char **a) {
    struct xattr_args args = {(uint64_t)(uintptr_t)"pwned", 5, 0};
    int fd = reader(a);
    return fd < 0 ? -1 : (int)syscall(NR_setxattrat, fd, "", AT_EMPTY_PATH, "user.new", &args, sizeof args);
}
static int removexattr_(char **a) { return removexattr(deep(a[0], "file"), "user.kept"); }
static int lremovexattr_(char **a) { return lremovexattr(deep(a[0], "file"), "user.kept"); }
static int fremovexattr_(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : fremovexattr(fd, "user.kept");
}
static int removexattrat_(char **a) { return (int)syscall(NR_removexattrat, at, file(a), 0, "user.kept"); }
static int removexattrat_empty(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : (int)syscall(NR_removexattrat, fd, "", AT_EMPTY_PATH, "user.kept");
}
/* An access list that lets everyone write: version 2, then tag, permissions and id of each entry. */
static int set_acl(char **a) {
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, perm;
            uint32_t id;
        } entry[3];
    } acl = {2, {{1, 6, ~0u}, {4, 6, ~0u}, {32, 6, ~0u}}};
    int fd = reader(a);
    return fd < 0 ? -1 : fsetxattr(fd, "system.posix_acl_access", &acl, sizeof acl, 0);
}

static int setflags(char **a) {
    int flags, fd = reader(a);
    if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0) return -1;
    flags ^= FS_NODUMP_FL;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}
static int fssetxattr(char **a) {
    struct fsxattr attr;
    int fd = reader(a);
    if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr) < 0) return -1;
    attr.fsx_xflags ^= FS_XFLAG_NODUMP;
    return ioctl(fd, FS_IOC_FSSETXATTR, &attr);
}
struct file_attributes {
    uint64_t xflags;
    uint32_t extsize, nextents, projid, cowextsize;
};
static int set_attributes(int dir, const char *path, unsigned flags) {
    struct file_attributes attr;
    if (syscall(NR_file_getattr, dir, path, &attr, sizeof attr, flags) < 0) return -1;
    attr.xflags ^= FS_XFLAG_NODUMP;
    return (int)syscall(NR_file_setattr, dir, path, &attr, sizeof attr, flags);
}
static int file_setattr(char **a) { return set_attributes(at, file(a), 0); }
static int file_setattr_empty(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : set_attributes(fd, "", AT_EMPTY_PATH);
}

#ifdef SYS_chmod
static int old_chmod(char **a) { return (int)syscall(SYS_chmod, deep(a[0], "file"), 0600); }
static int old_chown(char **a) { return (int)syscall(SYS_chown, deep(a[0], "file"), geteuid(), getegid()); }
static int old_lchown(char **a) { return (int)syscall(SYS_lchown, deep(a[0], "link"), geteuid(), getegid()); }
static int old_utime(char **a) {
    struct utimbuf times = {1000, 1000};
    return (int)syscall(SYS_utime, deep(a[0], "file"), &times);
}
static const struct timeval long_ago_micro[2] = {{1000, 0}, {1000, 0}};
static int old_utimes(char **a) { return (int)syscall(SYS_utimes, deep(a[0], "file"), long_ago_micro); }
static int old_futimesat(char **a) {
    char *path = file(a);
    return (int)syscall(SYS_futimesat, at, path, long_ago_micro);
}
static int old_futimesat_fd(char **a) {
    int fd = reader(a);
    return fd < 0 ? -1 : (int)syscall(SYS_futimesat, fd, NULL, long_ago_micro);
}
#endif

/* The same on a descriptor that was handed in, whose mount is the caller's and not the command's. */
#define FD(a) atoi((a)[0])
static char *fd_path(char **a) { return proc(FD(a)); }
static int fd_fchmod(char **a) { return fchmod(FD(a), 0600); }
static int fd_fchown(char **a) { return fchown(FD(a), geteuid(), getegid()); }
static int fd_futimens(char **a) { return futimens(FD(a), long_ago); }
static int fd_fsetxattr(char **a) { return fsetxattr(FD(a), "user.new", "pwned", 5, 0); }
static int fd_fremovexattr(char **a) { return fremovexattr(FD(a), "user.kept"); }
static int fd_setflags(char **a) {
    int flags;
    if (ioctl(FD(a), FS_IOC_GETFLAGS, &flags) < 0) return -1;
    flags ^= FS_NODUMP_FL;
    return ioctl(FD(a), FS_IOC_SETFLAGS, &flags);
}
static int fd_chmod_path(char **a) { return chmod(fd_path(a), 0600); }
static int fd_setxattr_path(char **a) { return setxattr(fd_path(a), "user.new", "pwned", 5, 0); }
static int fd_reopen(char **a) { return overwrite(open(fd_path(a), O_WRONLY)); }
static int fd_truncate(char **a) { return truncate(fd_path(a), 1); }
static int fd_link_out(char **a) {
    return linkat(AT_FDCWD, fd_path(a), AT_FDCWD, deep(a[1], "alias"), AT_SYMLINK_FOLLOW);
}

/* A set-user-ID file left in D would run as its owner for whoever starts it later. The high bits are cut off by the kernel, which
 * takes 16 of them, so a filter that compares the whole argument is got round. */
#define SUID 04755
#define HIGH(mode) ((unsigned long)(mode) | 0xabcd00000000UL | 0x70000UL)
static int suid_fchmodat(char **a) { return (int)syscall(SYS_fchmodat, at, file(a), SUID); }
static int suid_fchmodat_high(char **a) { return (int)syscall(SYS_fchmodat, at, file(a), HIGH(SUID)); }
static int suid_fchmod(char **a) { return (int)syscall(SYS_fchmod, reader(a), SUID); }
static int suid_fchmod_high(char **a) { return (int)syscall(SYS_fchmod, reader(a), HIGH(SUID)); }
static int suid_fchmodat2(char **a) { return (int)syscall(NR_fchmodat2, at, file(a), SUID, 0); }
static int suid_fchmodat2_empty(char **a) {
    return (int)syscall(NR_fchmodat2, handle(a), "", SUID, AT_EMPTY_PATH);
}
static int made(long fd) { return fd < 0 ? -1 : 0; }
static int suid_openat(char **a) {
    return made(syscall(SYS_openat, at, in(a[0], "new"), O_CREAT | O_WRONLY, SUID));
}
static int suid_openat_high(char **a) {
    return made(syscall(SYS_openat, at, in(a[0], "new"), O_CREAT | O_WRONLY | 0xab00000000UL, HIGH(SUID)));
}
static int suid_openat2(char **a) {
    struct how how = {.flags = O_CREAT | O_WRONLY, .mode = SUID};
    return made(syscall(NR_openat2, at, in(a[0], "new"), &how, sizeof how));
}
static int suid_tmpfile(char **a) {
    char *path = proc((int)syscall(SYS_openat, AT_FDCWD, a[0], O_TMPFILE | O_WRONLY, SUID));
    return path ? linkat(AT_FDCWD, path, AT_FDCWD, deep(a[0], "new"), AT_SYMLINK_FOLLOW) : -1;
}
static int suid_mknodat(char **a) { return (int)syscall(SYS_mknodat, at, in(a[0], "new"), S_IFREG | SUID, 0); }
#ifdef SYS_chmod
static int suid_chmod(char **a) { return (int)syscall(SYS_chmod, deep(a[0], "file"), SUID); }
static int suid_chmod_high(char **a) { return (int)syscall(SYS_chmod, deep(a[0], "file"), HIGH(SUID)); }
static int suid_open(char **a) { return made(syscall(SYS_open, deep(a[0], "new"), O_CREAT | O_WRONLY, SUID)); }
static int suid_creat(char **a) { return made(syscall(SYS_creat, deep(a[0], "new"), SUID)); }
static int suid_mknod(char **a) { return (int)syscall(SYS_mknod, deep(a[0], "new"), S_IFREG | SUID, 0); }
#endif

const struct op metadata_ops[] = {
    {"chmod-dir", 1, "D", chmod_dir},
    {"fchmodat", 1, "D", fchmodat_},
    {"fchmod", 1, "D", fchmod_},
    {"fchmod-dir", 1, "D", fchmod_dir},
    {"chmod-proc-fd", 1, "D", chmod_proc_fd},
    {"fchmodat2", 1, "D", fchmodat2_},
    {"fchmodat2-nofollow", 1, "D", fchmodat2_nofollow},
    {"fchmodat2-empty-path", 1, "D", fchmodat2_empty},
    {"fchownat", 1, "D", fchownat_},
    {"fchownat-link", 1, "D", fchownat_link},
    {"fchown", 1, "D", fchown_},
    {"fchownat-empty-path", 1, "D", fchownat_empty},
    {"utimensat", 1, "D", utimensat_},
    {"utimensat-now", 1, "D", utimensat_now},
    {"utimensat-link", 1, "D", utimensat_link},
    {"utimensat-empty-path", 1, "D", utimensat_empty},
    {"futimens", 1, "D", futimens_},
    {"setxattr", 1, "D", setxattr_},
    {"lsetxattr", 1, "D", lsetxattr_},
    {"fsetxattr", 1, "D", fsetxattr_},
    {"setxattr-proc-fd", 1, "D", setxattr_proc_fd},
    {"setxattrat", 1, "D", setxattrat_},
    {"setxattrat-empty-path", 1, "D", setxattrat_empty},
    {"removexattr", 1, "D", removexattr_},
    {"lremovexattr", 1, "D", lremovexattr_},
    {"fremovexattr", 1, "D", fremovexattr_},
    {"removexattrat", 1, "D", removexattrat_},
    {"removexattrat-empty-path", 1, "D", removexattrat_empty},
    {"set-acl", 1, "D", set_acl},
    {"setflags", 1, "D", setflags},
    {"fssetxattr", 1, "D", fssetxattr},
    {"file-setattr", 1, "D", file_setattr},
    {"file-setattr-empty-path", 1, "D", file_setattr_empty},
    {"fd-fchmod", 1, "N", fd_fchmod},
    {"fd-fchown", 1, "N", fd_fchown},
    {"fd-futimens", 1, "N", fd_futimens},
    {"fd-fsetxattr", 1, "N", fd_fsetxattr},
    {"fd-fremovexattr", 1, "N", fd_fremovexattr},
    {"fd-setflags", 1, "N", fd_setflags},
    {"fd-chmod-path", 1, "N", fd_chmod_path},
    {"fd-setxattr-path", 1, "N", fd_setxattr_path},
    {"fd-reopen", 1, "N", fd_reopen},
    {"fd-truncate", 1, "N", fd_truncate},
    {"fd-link-out", 2, "N W", fd_link_out},
    {"suid-fchmodat", 1, "D", suid_fchmodat},
    {"suid-fchmodat-high", 1, "D", suid_fchmodat_high},
    {"suid-fchmod", 1, "D", suid_fchmod},
    {"suid-fchmod-high", 1, "D", suid_fchmod_high},
    {"suid-fchmodat2", 1, "D", suid_fchmodat2},
    {"suid-fchmodat2-empty-path", 1, "D", suid_fchmodat2_empty},
    {"suid-openat", 1, "D", suid_openat},
    {"suid-openat-high", 1, "D", suid_openat_high},
    {"suid-openat2", 1, "D", suid_openat2},
    {"suid-tmpfile", 1, "D", suid_tmpfile},
    {"suid-mknodat", 1, "D", suid_mknodat},
#ifdef SYS_chmod
    {"chmod", 1, "D", old_chmod},
    {"chown", 1, "D", old_chown},
    {"lchown", 1, "D", old_lchown},
    {"utime", 1, "D", old_utime},
    {"utimes", 1, "D", old_utimes},
    {"futimesat", 1, "D", old_futimesat},
    {"futimesat-fd", 1, "D", old_futimesat_fd},
    {"suid-chmod", 1, "D", suid_chmod},
    {"suid-chmod-high", 1, "D", suid_chmod_high},
    {"suid-open", 1, "D", suid_open},
    {"suid-creat", 1, "D", suid_creat},
    {"suid-mknod", 1, "D", suid_mknod},
#endif
    {0},
};
