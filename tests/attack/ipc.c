/* Sockets, System V and POSIX queues, keyrings: ways to another program that are not files and not signals. */
#include "attack.h"
#include <mqueue.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un addr;
static socklen_t len;

static void path_address(const char *path) {
    memset(&addr, 0, sizeof addr);
    addr.sun_family = AF_UNIX;
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    len = sizeof addr;
}
static void abstract_address(const char *name) {
    memset(&addr, 0, sizeof addr);
    addr.sun_family = AF_UNIX;
    snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, "%s", name);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}
static int send_connected(int type) {
    int s = socket(AF_UNIX, type, 0);
    if (s < 0 || connect(s, (struct sockaddr *)&addr, len) < 0) return -1;
    return send(s, "pwned", 5, MSG_NOSIGNAL) == 5 ? 0 : -1;
}
static int send_to(int s) {
    return s < 0 ? -1 : sendto(s, "pwned", 5, 0, (struct sockaddr *)&addr, len) == 5 ? 0 : -1;
}

static int unix_stream(char **a) { return path_address(a[0]), send_connected(SOCK_STREAM); }
static int unix_seqpacket(char **a) { return path_address(a[0]), send_connected(SOCK_SEQPACKET); }
static int unix_dgram_connect(char **a) { return path_address(a[0]), send_connected(SOCK_DGRAM); }
static int unix_dgram(char **a) { return path_address(a[0]), send_to(socket(AF_UNIX, SOCK_DGRAM, 0)); }
static int unix_pair(char **a) {
    int pair[2];
    path_address(a[0]);
    return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0 ? -1 : send_to(pair[0]);
}
static int send_vector(int many) {
    struct iovec vec = {"pwned", 5};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &addr, .msg_namelen = len, .msg_iov = &vec, .msg_iovlen = 1}};
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (s < 0) return -1;
    return many ? (sendmmsg(s, &message, 1, 0) == 1 ? 0 : -1) : (sendmsg(s, &message.msg_hdr, 0) == 5 ? 0 : -1);
}
static int unix_sendmsg(char **a) { return path_address(a[0]), send_vector(0); }
static int unix_sendmmsg(char **a) { return path_address(a[0]), send_vector(1); }
static int unix_via_proc_fd(char **a) {
    char path[100];
    int dir = open(a[0], O_PATH | O_DIRECTORY);
    if (dir < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dir, a[1]);
    return path_address(path), send_connected(SOCK_STREAM);
}
static int unix_via_chdir(char **a) { return chdir(a[0]) < 0 ? -1 : (path_address(a[1]), send_connected(SOCK_STREAM)); }
static int abstract_stream(char **a) { return abstract_address(a[0]), send_connected(SOCK_STREAM); }
static int abstract_dgram(char **a) { return abstract_address(a[0]), send_to(socket(AF_UNIX, SOCK_DGRAM, 0)); }
static int abstract_pair(char **a) {
    int pair[2];
    abstract_address(a[0]);
    return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0 ? -1 : send_to(pair[0]);
}
/* A server and a client that are both inside. */
static int talk_to_oneself(int type) {
    char text[8];
    int server = socket(AF_UNIX, type, 0), from = server;
    if (server < 0 || bind(server, (struct sockaddr *)&addr, len) < 0) return -1;
    if (type != SOCK_DGRAM && listen(server, 1) < 0) return -1;
    if (send_connected(type) < 0) return -1;
    if (type != SOCK_DGRAM && (from = accept(server, NULL, NULL)) < 0) return -1;
    return recv(from, text, sizeof text, 0) == 5 ? 0 : -1;
}
static int unix_self(char **a) { return path_address(a[0]), talk_to_oneself(SOCK_STREAM); }
static int unix_self_dgram(char **a) { return path_address(a[0]), talk_to_oneself(SOCK_DGRAM); }
static int abstract_self(char **a) { return abstract_address(a[0]), talk_to_oneself(SOCK_STREAM); }
static int socketpair_self(char **a) {
    char text[8];
    int pair[2];
    (void)a;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || write(pair[0], "pwned", 5) != 5) return -1;
    return read(pair[1], text, 5) == 5 ? 0 : -1;
}

union semun {
    int val;
};
static int shm_make(char **a) {
    int id = shmget(atoi(a[0]), 4096, IPC_CREAT | IPC_EXCL | 0666);
    char *map = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    if (map == (char *)-1) return -1;
    strcpy(map, a[1]);
    return printf("%d\n", id), 0;
}
static int shm_read(char **a) {
    char *map = shmat(atoi(a[0]), NULL, SHM_RDONLY);
    return map == (char *)-1 ? -1 : (puts(map), 0);
}
static int shm_write(char **a) {
    char *map = shmat(atoi(a[0]), NULL, 0);
    return map == (char *)-1 ? -1 : (strcpy(map, "pwned"), 0);
}
static int shm_key(char **a) {
    int id = shmget(atoi(a[0]), 0, 0);
    char *map = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    return map == (char *)-1 ? -1 : (puts(map), strcpy(map, "pwned"), 0);
}
static int shm_remove(char **a) { return shmctl(atoi(a[0]), IPC_RMID, NULL); }
static int msg_make(char **a) {
    int id = msgget(atoi(a[0]), IPC_CREAT | IPC_EXCL | 0666);
    return id < 0 ? -1 : (printf("%d\n", id), 0);
}
static int msg_send(char **a) {
    struct {
        long type;
        char text[8];
    } message = {1, "pwned"};
    return msgsnd(atoi(a[0]), &message, 5, IPC_NOWAIT);
}
static int msg_key(char **a) {
    char id[16];
    snprintf(id, sizeof id, "%d", msgget(atoi(a[0]), 0));
    return *id == '-' ? -1 : msg_send((char *[]){id});
}
static int msg_count(char **a) {
    struct msqid_ds state;
    return msgctl(atoi(a[0]), IPC_STAT, &state) < 0 ? -1 : (printf("%lu\n", (unsigned long)state.msg_qnum), 0);
}
static int msg_remove(char **a) { return msgctl(atoi(a[0]), IPC_RMID, NULL); }
static int sem_make(char **a) {
    int id = semget(atoi(a[0]), 1, IPC_CREAT | IPC_EXCL | 0666);
    return id < 0 ? -1 : (printf("%d\n", id), 0);
}
static int sem_set(char **a) { return semctl(atoi(a[0]), 0, SETVAL, (union semun){.val = 7}); }
static int sem_key(char **a) {
    int id = semget(atoi(a[0]), 1, 0);
    return id < 0 ? -1 : semctl(id, 0, SETVAL, (union semun){.val = 7});
}
static int sem_value(char **a) {
    int value = semctl(atoi(a[0]), 0, GETVAL);
    return value < 0 ? -1 : (printf("%d\n", value), 0);
}
static int sem_remove(char **a) { return semctl(atoi(a[0]), 0, IPC_RMID); }
static int sysv_self(char **a) {
    (void)a;
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    char *map = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    if (map == (char *)-1) return -1;
    strcpy(map, "pwned");
    return shmctl(id, IPC_RMID, NULL);
}

static int queue_make(char **a) {
    struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 16};
    return mq_open(a[0], O_CREAT | O_EXCL | O_RDWR, 0666, &attr) < 0 ? -1 : 0;
}
static int queue_send(char **a) {
    mqd_t queue = mq_open(a[0], O_WRONLY | O_NONBLOCK);
    return queue < 0 ? -1 : mq_send(queue, "pwned", 5, 0);
}
static int queue_count(char **a) {
    struct mq_attr attr;
    mqd_t queue = mq_open(a[0], O_RDONLY);
    return queue < 0 || mq_getattr(queue, &attr) < 0 ? -1 : (printf("%ld\n", attr.mq_curmsgs), 0);
}
static int queue_remove(char **a) { return mq_unlink(a[0]); }

#define SESSION (-3)
static int key_read(char **a) {
    char text[64];
    long id = syscall(SYS_keyctl, 10 /* SEARCH */, SESSION, "user", a[0], 0);
    long n = id < 0 ? -1 : syscall(SYS_keyctl, 11 /* READ */, id, text, sizeof text - 1);
    if (n < 0) return -1;
    text[n] = 0;
    return puts(text), 0;
}
static int key_request(char **a) {
    return syscall(SYS_request_key, "user", a[0], NULL, 0) < 0 ? -1 : 0;
}
/* By number, as a key that was left readable can be found without any keyring. */
static int key_read_id(char **a) {
    char text[64];
    long n = syscall(SYS_keyctl, 11, atol(a[0]), text, sizeof text - 1);
    if (n < 0) return -1;
    text[n] = 0;
    return puts(text), 0;
}
static int key_add(char **a) { return syscall(SYS_add_key, "user", a[0], "pwned", 5, SESSION) < 0 ? -1 : 0; }

const struct op ipc_ops[] = {
    {"unix-stream", 1, "PATH", unix_stream},
    {"unix-seqpacket", 1, "PATH", unix_seqpacket},
    {"unix-dgram", 1, "PATH", unix_dgram},
    {"unix-dgram-connect", 1, "PATH", unix_dgram_connect},
    {"unix-pair", 1, "PATH", unix_pair},
    {"unix-sendmsg", 1, "PATH", unix_sendmsg},
    {"unix-sendmmsg", 1, "PATH", unix_sendmmsg},
    {"unix-via-proc-fd", 2, "DIR NAME", unix_via_proc_fd},
    {"unix-via-chdir", 2, "DIR NAME", unix_via_chdir},
    {"abstract-stream", 1, "NAME", abstract_stream},
    {"abstract-dgram", 1, "NAME", abstract_dgram},
    {"abstract-pair", 1, "NAME", abstract_pair},
    {"unix-self", 1, "PATH", unix_self},
    {"unix-self-dgram", 1, "PATH", unix_self_dgram},
    {"abstract-self", 1, "NAME", abstract_self},
    {"socketpair-self", 0, "", socketpair_self},
    {"shm-make", 2, "KEY TEXT", shm_make},
    {"shm-read", 1, "ID", shm_read},
    {"shm-write", 1, "ID", shm_write},
    {"shm-key", 1, "KEY", shm_key},
    {"shm-remove", 1, "ID", shm_remove},
    {"msg-make", 1, "KEY", msg_make},
    {"msg-send", 1, "ID", msg_send},
    {"msg-key", 1, "KEY", msg_key},
    {"msg-count", 1, "ID", msg_count},
    {"msg-remove", 1, "ID", msg_remove},
    {"sem-make", 1, "KEY", sem_make},
    {"sem-set", 1, "ID", sem_set},
    {"sem-key", 1, "KEY", sem_key},
    {"sem-value", 1, "ID", sem_value},
    {"sem-remove", 1, "ID", sem_remove},
    {"sysv-self", 0, "", sysv_self},
    {"queue-make", 1, "NAME", queue_make},
    {"queue-send", 1, "NAME", queue_send},
    {"queue-count", 1, "NAME", queue_count},
    {"queue-remove", 1, "NAME", queue_remove},
    {"key-read", 1, "NAME", key_read},
    {"key-request", 1, "NAME", key_request},
    {"key-read-id", 1, "ID", key_read_id},
    {"key-add", 1, "NAME", key_add},
    {0},
};
