/* Every call that makes, links, renames, cuts, maps, splices or removes. D is the fixture, W a directory that is the attacker's own:
 *   D/file D/second D/link -> file D/empty/ D/full/inner        W/own */
#include "attack.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>

static int opened(char **a, const char *name, int flags) { return openat(at, in(a[0], name), flags, 0644); }

static int open_wronly(char **a) { return overwrite(opened(a, "file", O_WRONLY)); }
static int open_rdwr(char **a) { return overwrite(opened(a, "file", O_RDWR)); }
static int open_append(char **a) { return overwrite(opened(a, "file", O_WRONLY | O_APPEND)); }
static int open_through_link(char **a) { return overwrite(opened(a, "link", O_WRONLY)); }
static int open_trunc(char **a) { return opened(a, "file", O_WRONLY | O_TRUNC) < 0 ? -1 : 0; }
static int open_rdonly_trunc(char **a) { return opened(a, "file", O_RDONLY | O_TRUNC) < 0 ? -1 : 0; }
static int open_creat(char **a) { return overwrite(opened(a, "new", O_WRONLY | O_CREAT | O_EXCL)); }
static int open_creat_rdonly(char **a) { return opened(a, "new", O_RDONLY | O_CREAT) < 0 ? -1 : 0; }
static int pwrite_(char **a) {
    int fd = opened(a, "file", O_WRONLY);
    return fd < 0 ? -1 : pwrite(fd, "pwned\n", 6, 2) == 6 ? 0 : -1;
}
static int openat2_(char **a) {
    struct how how = {.flags = O_WRONLY};
    return overwrite((int)syscall(NR_openat2, at, in(a[0], "file"), &how, sizeof how));
}
static int openat2_creat(char **a) {
    struct how how = {.flags = O_WRONLY | O_CREAT | O_EXCL, .mode = 0644};
    return overwrite((int)syscall(NR_openat2, at, in(a[0], "new"), &how, sizeof how));
}
static int reopen(char **a, int flags, const char *fmt) {
    char path[64];
    int fd = opened(a, "file", flags);
    if (fd < 0) return -1;
    snprintf(path, sizeof path, fmt, fd);
    return overwrite(open(path, O_WRONLY));
}
static int reopen_rdonly(char **a) { return reopen(a, O_RDONLY, "/proc/self/fd/%d"); }
static int reopen_opath(char **a) { return reopen(a, O_PATH, "/proc/self/fd/%d"); }
static int reopen_dev_fd(char **a) { return reopen(a, O_RDONLY, "/dev/fd/%d"); }
static int reopen_thread(char **a) { return reopen(a, O_RDONLY, "/proc/thread-self/fd/%d"); }

static int mkdirat_(char **a) { return mkdirat(at, in(a[0], "new"), 0755); }
static int mknodat_fifo(char **a) { return mknodat(at, in(a[0], "new"), S_IFIFO | 0644, 0); }
static int mknodat_reg(char **a) { return mknodat(at, in(a[0], "new"), S_IFREG | 0644, 0); }
static int mknodat_sock(char **a) { return mknodat(at, in(a[0], "new"), S_IFSOCK | 0644, 0); }
static int symlinkat_(char **a) { return symlinkat("file", at, in(a[0], "new")); }
static int linkat_(char **a) { return linkat(at, in(a[0], "file"), at, in(a[0], "new"), 0); }
static int link_in(char **a) { return linkat(AT_FDCWD, deep(a[1], "own"), at, in(a[0], "new"), 0); }

/* An outside file gets a name inside, where it could be written. */
static int through_alias(char **a, int made) {
    return made < 0 ? -1 : overwrite(open(deep(a[1], "alias"), O_WRONLY));
}
static int link_out(char **a) {
    return through_alias(a, linkat(at, in(a[0], "file"), AT_FDCWD, deep(a[1], "alias"), 0));
}
static int link_out_proc_fd(char **a) {
    char path[64];
    int fd = opened(a, "file", O_RDONLY);
    if (fd < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return through_alias(a, linkat(AT_FDCWD, path, AT_FDCWD, deep(a[1], "alias"), AT_SYMLINK_FOLLOW));
}
static int link_out_empty_path(char **a) {
    int fd = opened(a, "file", O_RDONLY);
    return fd < 0 ? -1 : through_alias(a, linkat(fd, "", AT_FDCWD, deep(a[1], "alias"), AT_EMPTY_PATH));
}
static int tmpfile_link(char **a) {
    char path[64];
    int fd = relative ? (in(a[0], "."), openat(at, ".", O_TMPFILE | O_WRONLY, 0644)) : open(a[0], O_TMPFILE | O_WRONLY, 0644);
    if (overwrite(fd) < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, at, in(a[0], "new"), AT_SYMLINK_FOLLOW);
}
static int own_tmpfile_link(char **a) {
    char path[64];
    int fd = open(a[1], O_TMPFILE | O_WRONLY, 0644);
    if (overwrite(fd) < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, at, in(a[0], "new"), AT_SYMLINK_FOLLOW);
}

static int renameat_(char **a) { return renameat(at, in(a[0], "file"), at, in(a[0], "new")); }
static int rename_noreplace(char **a) {
    return renameat2(at, in(a[0], "file"), at, in(a[0], "new"), RENAME_NOREPLACE);
}
static int rename_exchange(char **a) {
    return renameat2(at, in(a[0], "file"), at, in(a[0], "second"), RENAME_EXCHANGE);
}
static int rename_dir(char **a) { return renameat(at, in(a[0], "full"), at, in(a[0], "new")); }
static int rename_in(char **a) { return renameat(AT_FDCWD, deep(a[1], "own"), at, in(a[0], "new")); }
static int rename_over(char **a) { return renameat(AT_FDCWD, deep(a[1], "own"), at, in(a[0], "file")); }
static int rename_out(char **a) { return renameat(at, in(a[0], "file"), AT_FDCWD, deep(a[1], "taken")); }
static int rename_exchange_out(char **a) {
    return renameat2(at, in(a[0], "file"), AT_FDCWD, deep(a[1], "own"), RENAME_EXCHANGE);
}

static int truncate_(char **a) { return truncate(deep(a[0], "file"), 1); }
static int ftruncate_(char **a) {
    int fd = opened(a, "file", O_WRONLY);
    return fd < 0 ? -1 : ftruncate(fd, 1);
}
static int fallocate_(char **a) {
    int fd = opened(a, "file", O_WRONLY);
    return fd < 0 ? -1 : fallocate(fd, 0, 0, 9000);
}
static int punch_hole(char **a) {
    int fd = opened(a, "file", O_WRONLY);
    return fd < 0 ? -1 : fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4);
}
static int copy_range(char **a) {
    int from = open(deep(a[1], "own"), O_RDONLY), to = from < 0 ? -1 : opened(a, "file", O_WRONLY);
    return to < 0 ? -1 : copy_file_range(from, NULL, to, NULL, 3, 0) == 3 ? 0 : -1;
}
static int sendfile_(char **a) {
    int from = open(deep(a[1], "own"), O_RDONLY), to = from < 0 ? -1 : opened(a, "file", O_WRONLY);
    return to < 0 ? -1 : sendfile(to, from, NULL, 3) == 3 ? 0 : -1;
}
static int splice_(char **a) {
    int p[2], to = opened(a, "file", O_WRONLY);
    if (to < 0 || pipe(p) < 0 || write(p[1], "pwned\n", 6) != 6) return -1;
    return splice(p[0], NULL, to, NULL, 6, 0) == 6 ? 0 : -1;
}
static int ficlone(char **a) {
    int from = open(deep(a[1], "own"), O_RDONLY), to = from < 0 ? -1 : opened(a, "file", O_WRONLY);
    return to < 0 ? -1 : ioctl(to, FICLONE, from);
}
static int mmap_shared(char **a) {
    int fd = opened(a, "file", O_RDWR);
    if (fd < 0) return -1;
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return -1;
    memcpy(map, "pwned", 5);
    return msync(map, 4096, MS_SYNC);
}
static int unlinkat_(char **a) { return unlinkat(at, in(a[0], "file"), 0); }
static int unlinkat_dir(char **a) { return unlinkat(at, in(a[0], "empty"), AT_REMOVEDIR); }
static int bind_socket(char **a) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char *name = in(a[0], "new");
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (relative)
        snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/%s", at, name);
    else
        snprintf(addr.sun_path, sizeof addr.sun_path, "%s", name);
    return s < 0 ? -1 : bind(s, (struct sockaddr *)&addr, sizeof addr);
}

/* The calls without a directory descriptor, where the architecture has them. */
#ifdef SYS_open
static int old_open(char **a) { return overwrite((int)syscall(SYS_open, deep(a[0], "file"), O_WRONLY)); }
static int old_creat(char **a) { return overwrite((int)syscall(SYS_creat, deep(a[0], "file"), 0644)); }
static int old_creat_new(char **a) { return overwrite((int)syscall(SYS_creat, deep(a[0], "new"), 0644)); }
static int old_mkdir(char **a) { return (int)syscall(SYS_mkdir, deep(a[0], "new"), 0755); }
static int old_mknod(char **a) { return (int)syscall(SYS_mknod, deep(a[0], "new"), S_IFIFO | 0644, 0); }
static int old_symlink(char **a) { return (int)syscall(SYS_symlink, "file", deep(a[0], "new")); }
static int old_link(char **a) { return (int)syscall(SYS_link, deep(a[0], "file"), deep(a[0], "new")); }
static int old_rename(char **a) { return (int)syscall(SYS_rename, deep(a[0], "file"), deep(a[0], "new")); }
static int old_unlink(char **a) { return (int)syscall(SYS_unlink, deep(a[0], "file")); }
static int old_rmdir(char **a) { return (int)syscall(SYS_rmdir, deep(a[0], "empty")); }
#endif

/* A file handle names an inode, not a path: one made outside opens through any mount of the same file system. */
static int handle_make(char **a) {
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = {.head = {.handle_bytes = 128}};
    int mount;
    if (name_to_handle_at(AT_FDCWD, a[0], &handle.head, &mount, 0) < 0) return -1;
    printf("%d:", handle.head.handle_type);
    for (unsigned i = 0; i < handle.head.handle_bytes; i++) printf("%02x", handle.bytes[i]);
    puts("");
    return 0;
}
static int handle_open(char **a) {
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = {.head = {0}};
    char *hex = strchr(a[1], ':');
    int mount = open(a[0], O_RDONLY | O_DIRECTORY);
    if (mount < 0 || !hex) return -1;
    handle.head.handle_type = atoi(a[1]);
    for (hex++; *hex; hex += 2) {
        unsigned byte;
        if (sscanf(hex, "%2x", &byte) != 1) return -1;
        handle.bytes[handle.head.handle_bytes++] = (unsigned char)byte;
    }
    return overwrite(open_by_handle_at(mount, &handle.head, O_WRONLY));
}
static int append_to(char **a) { return overwrite(open(a[0], O_WRONLY | O_APPEND)); }
/* Opened at both ends, a FIFO never makes its opener wait. */
static int write_rdwr(char **a) { return overwrite(open(a[0], O_RDWR)); }
static int make_file(char **a) { return overwrite(open(a[0], O_WRONLY | O_CREAT, 0644)); }

const struct op write_ops[] = {
    {"open-wronly", 1, "D", open_wronly},
    {"open-rdwr", 1, "D", open_rdwr},
    {"open-append", 1, "D", open_append},
    {"open-through-link", 1, "D", open_through_link},
    {"open-trunc", 1, "D", open_trunc},
    {"open-rdonly-trunc", 1, "D", open_rdonly_trunc},
    {"open-creat", 1, "D", open_creat},
    {"open-creat-rdonly", 1, "D", open_creat_rdonly},
    {"pwrite", 1, "D", pwrite_},
    {"openat2", 1, "D", openat2_},
    {"openat2-creat", 1, "D", openat2_creat},
    {"reopen-rdonly", 1, "D", reopen_rdonly},
    {"reopen-opath", 1, "D", reopen_opath},
    {"reopen-dev-fd", 1, "D", reopen_dev_fd},
    {"reopen-thread-self", 1, "D", reopen_thread},
    {"mkdirat", 1, "D", mkdirat_},
    {"mknodat-fifo", 1, "D", mknodat_fifo},
    {"mknodat-reg", 1, "D", mknodat_reg},
    {"mknodat-sock", 1, "D", mknodat_sock},
    {"symlinkat", 1, "D", symlinkat_},
    {"linkat", 1, "D", linkat_},
    {"link-in", 2, "D W", link_in},
    {"link-out", 2, "D W", link_out},
    {"link-out-proc-fd", 2, "D W", link_out_proc_fd},
    {"link-out-empty-path", 2, "D W", link_out_empty_path},
    {"tmpfile-link", 1, "D", tmpfile_link},
    {"own-tmpfile-link", 2, "D W", own_tmpfile_link},
    {"renameat", 1, "D", renameat_},
    {"rename-noreplace", 1, "D", rename_noreplace},
    {"rename-exchange", 1, "D", rename_exchange},
    {"rename-dir", 1, "D", rename_dir},
    {"rename-in", 2, "D W", rename_in},
    {"rename-over", 2, "D W", rename_over},
    {"rename-out", 2, "D W", rename_out},
    {"rename-exchange-out", 2, "D W", rename_exchange_out},
    {"truncate", 1, "D", truncate_},
    {"ftruncate", 1, "D", ftruncate_},
    {"fallocate", 1, "D", fallocate_},
    {"punch-hole", 1, "D", punch_hole},
    {"copy-file-range", 2, "D W", copy_range},
    {"sendfile", 2, "D W", sendfile_},
    {"splice", 1, "D", splice_},
    {"ficlone", 2, "D W", ficlone},
    {"mmap-shared", 1, "D", mmap_shared},
    {"unlinkat", 1, "D", unlinkat_},
    {"unlinkat-dir", 1, "D", unlinkat_dir},
    {"bind-socket", 1, "D", bind_socket},
#ifdef SYS_open
    {"open", 1, "D", old_open},
    {"creat", 1, "D", old_creat},
    {"creat-new", 1, "D", old_creat_new},
    {"mkdir", 1, "D", old_mkdir},
    {"mknod", 1, "D", old_mknod},
    {"symlink", 1, "D", old_symlink},
    {"link", 1, "D", old_link},
    {"rename", 1, "D", old_rename},
    {"unlink", 1, "D", old_unlink},
    {"rmdir", 1, "D", old_rmdir},
#endif
    {"handle-make", 1, "FILE", handle_make},
    {"handle-open", 2, "DIR HANDLE", handle_open},
    {"append-to", 1, "FILE", append_to},
    {"write-rdwr", 1, "FILE", write_rdwr},
    {"make-file", 1, "FILE", make_file},
    {0},
};
