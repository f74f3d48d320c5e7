/* The yardstick of the link scan: the same idea in C with no safety net. 64 KB getdents64, relative statx with
 * STATX_NLINK only, no stat of directories, a fixed number of threads over one stack of open directories.
 *
 *     cc -O2 -pthread -o link_scan_reference link_scan_reference.c
 *     ./link_scan_reference THREADS DIR...
 *
 * It keeps a descriptor for every directory that waits, so a wide tree needs a high RLIMIT_NOFILE; it counts
 * names with several links and does not group them. Prints entries, directories, such names and microseconds. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct entry {
    uint64_t ino;
    int64_t off;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* A directory that is open as long as one of its children waits. */
struct holder {
    int fd;
    int users;
};

struct item {
    struct holder *holder;
    char *name;
};

struct counts {
    long entries, directories, linked;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct item *stack;
static size_t length, capacity;
static int busy;
static struct counts total;

static void push(struct item item)
{
    if (length == capacity)
        stack = realloc(stack, (capacity = capacity ? capacity * 2 : 1024) * sizeof *stack);
    stack[length++] = item;
}

static void release(struct holder *holder)
{
    if (holder && __atomic_sub_fetch(&holder->users, 1, __ATOMIC_ACQ_REL) == 0) {
        close(holder->fd);
        free(holder);
    }
}

static void scan(struct item item, char *buffer, struct counts *counts)
{
    int from = item.holder ? item.holder->fd : AT_FDCWD;
    int fd = openat(from, item.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct item found[256];
    size_t waiting = 0;
    struct holder *holder = NULL;
    long got;

    free(item.name);
    release(item.holder);
    if (fd < 0)
        return;
    counts->directories++;
    while ((got = syscall(SYS_getdents64, fd, buffer, 65536)) > 0) {
        for (long at = 0; at < got;) {
            struct entry *entry = (void *)(buffer + at);
            struct statx st;

            at += entry->length;
            if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
                continue;
            counts->entries++;
            if (entry->type == DT_DIR) {
                if (!holder) {
                    holder = malloc(sizeof *holder);
                    *holder = (struct holder){fd, 1};
                }
                __atomic_add_fetch(&holder->users, 1, __ATOMIC_RELAXED);
                found[waiting++] = (struct item){holder, strdup(entry->name)};
                if (waiting == 256) {
                    pthread_mutex_lock(&lock);
                    while (waiting)
                        push(found[--waiting]);
                    pthread_cond_broadcast(&wake);
                    pthread_mutex_unlock(&lock);
                }
            } else if (!syscall(SYS_statx, fd, entry->name, AT_SYMLINK_NOFOLLOW, STATX_NLINK, &st)) {
                counts->linked += st.stx_nlink > 1;
            }
        }
    }
    if (waiting) {
        pthread_mutex_lock(&lock);
        while (waiting)
            push(found[--waiting]);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&lock);
    }
    if (holder)
        release(holder);
    else
        close(fd);
}

static void *work(void *unused)
{
    struct counts counts = {0};
    char *buffer = malloc(65536);

    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct item item;

        while (!length && busy)
            pthread_cond_wait(&wake, &lock);
        if (!length)
            break;
        item = stack[--length];
        busy++;
        pthread_mutex_unlock(&lock);
        scan(item, buffer, &counts);
        pthread_mutex_lock(&lock);
        if (--busy == 0 && !length)
            pthread_cond_broadcast(&wake);
    }
    total.entries += counts.entries;
    total.directories += counts.directories;
    total.linked += counts.linked;
    pthread_mutex_unlock(&lock);
    free(buffer);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    struct rlimit limit;
    struct timespec from, to;

    if (argc < 3 || threads < 1 || threads > 64) {
        fprintf(stderr, "usage: %s THREADS DIR...\n", argv[0]);
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 2; i < argc; i++)
        push((struct item){NULL, strdup(argv[i])});
    pthread_t ids[64];
    for (int i = 0; i < threads - 1; i++)
        pthread_create(&ids[i], NULL, work, NULL);
    work(NULL);
    for (int i = 0; i < threads - 1; i++)
        pthread_join(ids[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%ld %ld %ld %ld\n", total.entries, total.directories, total.linked,
           (to.tv_sec - from.tv_sec) * 1000000L + (to.tv_nsec - from.tv_nsec) / 1000);
    return 0;
}
