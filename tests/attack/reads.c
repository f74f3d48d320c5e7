/* Every way to learn what a file holds, or that it is there. What was read goes to standard output before the verdict. */
#include "attack.h"
#include <dirent.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

static int show(int fd) {
    char text[4096];
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0) return -1;
    return fwrite(text, 1, (size_t)n, stdout) == (size_t)n ? 0 : -1;
}
static int read_(char **a) { return show(open(a[0], O_RDONLY)); }
/* Says nothing of what it read: for files that are not of the test's own making. */
static int read_quiet(char **a) {
    char byte;
    int fd = open(a[0], O_RDONLY);
    return fd < 0 || read(fd, &byte, 1) < 0 ? -1 : 0;
}
static int read_rdwr(char **a) { return show(open(a[0], O_RDWR)); }
static int read_openat2(char **a) {
    struct how how = {.flags = O_RDONLY};
    return show((int)syscall(NR_openat2, AT_FDCWD, a[0], &how, sizeof how));
}
static int read_opath(char **a) {
    char path[64];
    int fd = open(a[0], O_PATH);
    if (fd < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return show(open(path, O_RDONLY));
}
static int read_mmap(char **a) {
    int fd = open(a[0], O_RDONLY);
    if (fd < 0) return -1;
    char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return -1;
    return puts(map) < 0 ? -1 : 0;
}
static int read_sendfile(char **a) {
    int p[2], fd = open(a[0], O_RDONLY);
    if (fd < 0 || pipe(p) < 0) return -1;
    return sendfile(p[1], fd, NULL, 4096) < 0 ? -1 : show(p[0]);
}
static int read_splice(char **a) {
    int p[2], fd = open(a[0], O_RDONLY);
    if (fd < 0 || pipe(p) < 0) return -1;
    return splice(fd, NULL, p[1], NULL, 4096, 0) < 0 ? -1 : show(p[0]);
}
static int read_copy(char **a) {
    int from = open(a[0], O_RDONLY), to = open(a[1], O_RDWR | O_CREAT, 0600);
    if (from < 0 || to < 0) return -1;
    return copy_file_range(from, NULL, to, NULL, 4096, 0) < 0 || lseek(to, 0, SEEK_SET) < 0 ? -1 : show(to);
}
static int read_link_in(char **a) { return linkat(AT_FDCWD, a[0], AT_FDCWD, a[1], 0) < 0 ? -1 : show(open(a[1], O_RDONLY)); }
static int read_rename_in(char **a) { return rename(a[0], a[1]) < 0 ? -1 : show(open(a[1], O_RDONLY)); }
static int execute(char **a) {
    char *argv[] = {a[0], "whoami", NULL};
    execv(a[0], argv);
    return -1;
}
static int list(char **a) {
    DIR *dir = opendir(a[0]);
    if (!dir) return -1;
    for (struct dirent *e; (e = readdir(dir));) puts(e->d_name);
    return 0;
}

static int stat_(char **a) {
    struct stat st;
    return stat(a[0], &st);
}
static int lstat_(char **a) {
    struct stat st;
    return lstat(a[0], &st);
}
static int statx_(char **a) {
    struct statx st;
    return statx(AT_FDCWD, a[0], 0, STATX_BASIC_STATS, &st);
}
static int access_(char **a) { return access(a[0], F_OK); }
static int opath(char **a) { return open(a[0], O_PATH) < 0 ? -1 : 0; }
static int statfs_(char **a) {
    struct statfs st;
    return statfs(a[0], &st);
}
static int chdir_(char **a) { return chdir(a[0]); }
static int readlink_(char **a) {
    char text[4096];
    ssize_t n = readlink(a[0], text, sizeof text - 1);
    if (n < 0) return -1;
    text[n] = 0;
    return puts(text) < 0 ? -1 : 0;
}
static int getxattr_(char **a) {
    char text[256];
    ssize_t n = getxattr(a[0], "user.kept", text, sizeof text - 1);
    if (n < 0) return -1;
    text[n] = 0;
    return puts(text) < 0 ? -1 : 0;
}
static int watch(char **a) {
    int fd = inotify_init();
    return fd < 0 || inotify_add_watch(fd, a[0], IN_ALL_EVENTS) < 0 ? -1 : 0;
}
static int name_handle(char **a) {
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = {.head = {.handle_bytes = 128}};
    int mount;
    return name_to_handle_at(AT_FDCWD, a[0], &handle.head, &mount, 0);
}
static int open_write(char **a) { return open(a[0], O_WRONLY | O_CLOEXEC | O_NONBLOCK) < 0 ? -1 : 0; }

const struct op read_ops[] = {
    {"read", 1, "FILE", read_},
    {"read-quiet", 1, "FILE", read_quiet},
    {"read-rdwr", 1, "FILE", read_rdwr},
    {"read-openat2", 1, "FILE", read_openat2},
    {"read-opath", 1, "FILE", read_opath},
    {"read-mmap", 1, "FILE", read_mmap},
    {"read-sendfile", 1, "FILE", read_sendfile},
    {"read-splice", 1, "FILE", read_splice},
    {"read-copy", 2, "FILE COPY", read_copy},
    {"read-link-in", 2, "FILE ALIAS", read_link_in},
    {"read-rename-in", 2, "FILE TAKEN", read_rename_in},
    {"execute", 1, "FILE", execute},
    {"list", 1, "DIR", list},
    {"stat", 1, "PATH", stat_},
    {"lstat", 1, "PATH", lstat_},
    {"statx", 1, "PATH", statx_},
    {"access", 1, "PATH", access_},
    {"opath", 1, "PATH", opath},
    {"statfs", 1, "PATH", statfs_},
    {"chdir", 1, "DIR", chdir_},
    {"readlink", 1, "LINK", readlink_},
    {"getxattr", 1, "FILE", getxattr_},
    {"inotify", 1, "PATH", watch},
    {"name-handle", 1, "PATH", name_handle},
    {"open-write", 1, "PATH", open_write},
    {0},
};
