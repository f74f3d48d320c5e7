/* The victims inside a guest, and the eyes on them: everything that an attack is judged by is asked here, outside the boundary.
 *
 *   witness listen         opens every listener below, says "ready PID", counts whatever arrives, but on the granted port
 *   witness count          how much has arrived so far; what was sent before this call is in
 *   witness fixture ID OWN DIR
 *                          the trees that attacks on files act on, made anew and given to a user; a snapshot of the second
 *   witness snapshot DIR   names, modes, owners, times to the nanosecond, contents and attributes of a tree
 *   witness peek PID ADDR  the text at an address of another process
 *   witness landlock       version and errata of Landlock, or the errno */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char CONTROL[] = "witness control";
static struct pollfd ears[32];
static int is_stream[32], count;

static void fail(const char *what) {
    fprintf(stderr, "witness: %s: %s\n", what, strerror(errno));
    exit(1);
}
static int must(int result, const char *what) {
    if (result < 0) fail(what);
    return result;
}
static socklen_t unix_address(struct sockaddr_un *addr, int abstract, const char *name) {
    memset(addr, 0, sizeof *addr);
    addr->sun_family = AF_UNIX;
    strcpy(addr->sun_path + abstract, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
}
static void ear(int s, int stream) { ears[count] = (struct pollfd){s, POLLIN, 0}, is_stream[count++] = stream; }

/* The port says which: 7001 TCP, 7002 TCP that is granted, 7003 MPTCP, 7004 UDP. */
static void inet(int type, int protocol, int port) {
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, s = socket(AF_INET, type | SOCK_CLOEXEC, protocol);
    if (s < 0 && protocol) return; /* a kernel without it has no such road either */
    must(s, "socket");
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    must(bind(s, (struct sockaddr *)&addr, sizeof addr), "bind");
    if (type == SOCK_STREAM) {
        setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN, &(int){5}, sizeof(int));
        must(listen(s, 16), "listen");
    }
    ear(s, type == SOCK_STREAM);
}
static void local(int type, int abstract, const char *name) {
    struct sockaddr_un addr;
    socklen_t len = unix_address(&addr, abstract, name);
    int s = must(socket(AF_UNIX, type | SOCK_CLOEXEC, 0), "socket");
    must(bind(s, (struct sockaddr *)&addr, abstract ? len : sizeof addr), name);
    if (!abstract) must(chmod(name, 0666), name);
    if (type == SOCK_STREAM) must(listen(s, 16), "listen");
    ear(s, type == SOCK_STREAM);
}
/* One thing that arrived, or 0. A visitor that says nothing counts too. */
static int hear(int at) {
    char text[64];
    struct pollfd *p = &ears[at];
    if (!is_stream[at]) return recv(p->fd, text, sizeof text, MSG_DONTWAIT) >= 0;
    int visitor = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
    if (visitor < 0) return 0;
    close(visitor);
    return 1;
}
static _Noreturn void serve(void) {
    unsigned long arrived = 0;
    local(SOCK_STREAM, 1, CONTROL);
    inet(SOCK_STREAM, 0, 7001);
    inet(SOCK_STREAM, 0, 7002);
    int granted = count - 1;
    inet(SOCK_STREAM, 262, 7003);
    inet(SOCK_DGRAM, 0, 7004);
    local(SOCK_STREAM, 1, "victim-stream");
    local(SOCK_DGRAM, 1, "victim-dgram");
    local(SOCK_STREAM, 0, "/o/stream.sock");
    local(SOCK_DGRAM, 0, "/o/dgram.sock");
    local(SOCK_STREAM, 0, "/w/stream.sock");
    must(chdir("/o"), "/o");
    local(SOCK_STREAM, 0, "relative.sock");
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (;;) {
        must(poll(ears, (nfds_t)count, -1), "poll");
        int asked = ears[0].revents & POLLIN;
        for (int more = 1; more;) {
            more = 0;
            must(poll(ears + 1, (nfds_t)count - 1, 0), "poll");
            for (int i = 1; i < count; i++)
                if (ears[i].revents & POLLIN && hear(i)) arrived += i != granted, more = 1;
        }
        if (asked) {
            int who = must(accept4(ears[0].fd, NULL, NULL, SOCK_CLOEXEC), "accept");
            dprintf(who, "%lu\n", arrived);
            close(who);
        }
    }
}
static int ask(void) {
    char text[32];
    struct sockaddr_un addr;
    socklen_t len = unix_address(&addr, 1, CONTROL);
    int s = must(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
    must(connect(s, (struct sockaddr *)&addr, len), "connect");
    ssize_t n = read(s, text, sizeof text);
    return n > 0 && fwrite(text, 1, (size_t)n, stdout) ? 0 : 1;
}

static void give(const char *dir, const char *name, const char *text, mode_t mode, uid_t id) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!text) {
        must(mkdir(path, mode), path);
    } else if (S_ISLNK(mode)) {
        must(symlink(text, path), path);
    } else {
        int fd = must(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode), path);
        must((int)write(fd, text, strlen(text)), path);
        close(fd);
    }
    must(lchown(path, id, id), path);
}
static int erase(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}
static int look(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    char text[4096], names[1024];
    (void)kind, (void)ftw;
    printf("%s %o %u:%u %lld %lu %lld.%09ld %lld.%09ld", path, st->st_mode, st->st_uid, st->st_gid, (long long)st->st_size,
           (unsigned long)st->st_nlink, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec,
           st->st_ctim.tv_nsec);
    ssize_t n = llistxattr(path, names, sizeof names);
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1) printf(" %s", names + i);
    if (S_ISREG(st->st_mode)) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof text);
        for (ssize_t i = 0; i < n; i++) printf("%s%02x", i ? "" : " ", (unsigned char)text[i]);
        if (fd >= 0) close(fd);
    }
    puts("");
    return 0;
}
/* The same names as in tests/common. */
static void fixture(uid_t id, const char *dir) {
    umask(0);
    nftw(dir, erase, 16, FTW_PHYS | FTW_DEPTH);
    give(dir, "", NULL, 0755, id);
    give(dir, "empty", NULL, 0755, id);
    give(dir, "full", NULL, 0755, id);
    give(dir, "full/inner", "inner text\n", 0644, id);
    give(dir, "file", "the original text\n", 0644, id);
    give(dir, "second", "the second text\n", 0644, id);
    give(dir, "link", "file", S_IFLNK, id);
    give(dir, "own", "my own\n", 0644, id);
}
static int fixtures(char **a) {
    fixture((uid_t)atoi(a[0]), a[1]);
    fixture((uid_t)atoi(a[0]), a[2]);
    return nftw(a[2], look, 16, FTW_PHYS);
}
static int peek(const char *pid, const char *address) {
    char path[64], text[21] = "";
    snprintf(path, sizeof path, "/proc/%s/mem", pid);
    int fd = must(open(path, O_RDONLY), path);
    if (pread(fd, text, 20, (off_t)strtoull(address, NULL, 0)) < 0) fail(path);
    return puts(text) < 0;
}
static int landlock(void) {
    long abi = syscall(444, NULL, 0, 1), errata = syscall(444, NULL, 0, 2);
    if (abi < 0) return printf("none (%s)\n", strerrorname_np(errno)) < 0;
    return printf("%ld (errata %ld)\n", abi, errata < 0 ? 0 : errata) < 0;
}

int main(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "listen") == 0) serve();
    if (strcmp(verb, "count") == 0) return ask();
    if (strcmp(verb, "snapshot") == 0 && argc == 3) return nftw(argv[2], look, 16, FTW_PHYS);
    if (strcmp(verb, "fixture") == 0 && argc == 5) return fixtures(argv + 2);
    if (strcmp(verb, "peek") == 0 && argc == 4) return peek(argv[2], argv[3]);
    if (strcmp(verb, "landlock") == 0) return landlock();
    fprintf(stderr, "witness: no such verb\n");
    return 2;
}
