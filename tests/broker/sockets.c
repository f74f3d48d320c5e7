/* connect(2) through a broker. */
#include "broker.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

static struct sockaddr_un to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	return address;
}
static int serve(const char *path, int type, int backlog)
{
	struct sockaddr_un address = to(path);
	int fd = socket(AF_UNIX, type, 0);

	unlink(path);
	return fd < 0 || bind(fd, (void *)&address, sizeof address) < 0 || listen(fd, backlog) < 0 ? -1 : fd;
}
static int reached(int fd, const char *path)
{
	struct sockaddr_un address = to(path);
	return connect(fd, (void *)&address, sizeof address);
}

/* PATH: by every kind of name; nothing but the verdicts. */
int reach(char **a)
{
	char text[200], base[200];
	struct stat st;

	print_result("stream", "connect", reached(socket(AF_UNIX, SOCK_STREAM, 0), a[0]));
	print_result("seqpacket", "connect", reached(socket(AF_UNIX, SOCK_SEQPACKET, 0), a[0]));
	print_result("nonblocking", "connect", reached(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), a[0]));
	unlink("to-socket");
	symlink(a[0], "to-socket");
	print_result("link", "connect", reached(socket(AF_UNIX, SOCK_STREAM, 0), "to-socket"));
	int handle = open(a[0], O_PATH);
	snprintf(text, sizeof text, "/proc/self/fd/%d", handle);
	print_result("handle", "connect", reached(socket(AF_UNIX, SOCK_STREAM, 0), text));
	snprintf(base, sizeof base, "%s", a[0]);
	char *slash = strrchr(base, '/');
	*slash = 0;
	int here = open(".", O_PATH);
	if (chdir(base) == 0)
		print_result("relative", "connect", reached(socket(AF_UNIX, SOCK_STREAM, 0), slash + 1));
	fchdir(here);
	snprintf(text, sizeof text, "/proc/self/root%s", a[0]);
	print_result("root", "connect", reached(socket(AF_UNIX, SOCK_STREAM, 0), text));
	return stat(a[0], &st);
}

/* Server and client in here, both kinds, bytes both ways. */
int serve_self(char **a)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};

	for (int i = 0; i < 2; i++) {
		char byte = 0;
		int server = serve(a[0], types[i], 4), client = socket(AF_UNIX, types[i], 0);
		if (server < 0 || reached(client, a[0]) < 0)
			return -1;
		int peer = accept(server, NULL, NULL);
		if (write(client, "x", 1) != 1 || read(peer, &byte, 1) != 1 || write(peer, "y", 1) != 1 || read(client, &byte, 1) != 1 || byte != 'y')
			return -1;
		print_result("again", "connect", reached(client, a[0]));
	}
	return 0;
}

/* A full backlog: EAGAIN without waiting; with waiting until somebody accepts. */
int full(char **a)
{
	int server = serve(a[0], SOCK_STREAM, 0), i = 0;

	for (; i < 10 && reached(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), a[0]) == 0; i++) {}
	print_result("full", "connect", -1);
	pid_t child = fork();
	if (child == 0)
		_exit(reached(socket(AF_UNIX, SOCK_STREAM, 0), a[0]) != 0);
	/* Asleep in the call, however long it took to get there: then it waits. */
	usleep(100000);
	int status, waits = waitpid(child, &status, WNOHANG) == 0;
	for (; i >= 0; i--)
		close(accept(server, NULL, NULL));
	waitpid(child, &status, 0);
	printf("waited %d status %d\n", waits, status);
	return 0;
}

static volatile int rung;
static void ring(int signal) { (void)signal, rung++; }
/* A call that waits ends with a signal whose handler does not restart it, and goes on with one whose handler does. */
int interrupted(char **a)
{
	struct sigaction action = {.sa_handler = ring};
	/* Again and again: on a busy machine the first may come before the call. */
	struct itimerval timer = {{0, 200000}, {0, 200000}}, none = {{0, 0}, {0, 0}};
	int server = serve(a[0], SOCK_STREAM, 0), i = 0, fd;

	for (; i < 10 && reached(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), a[0]) == 0; i++) {}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	print_result("no restart", "connect", reached(socket(AF_UNIX, SOCK_STREAM, 0), a[0]));
	setitimer(ITIMER_REAL, &none, NULL);
	printf("rung %d\n", rung > 0);
	rung = 0;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	pid_t child = fork();
	if (child == 0) {
		usleep(900000);
		for (int j = 0; j <= i; j++)
			close(accept(server, NULL, NULL));
		_exit(0);
	}
	setitimer(ITIMER_REAL, &timer, NULL);
	print_result("restart", "connect", reached(fd = socket(AF_UNIX, SOCK_STREAM, 0), a[0]));
	setitimer(ITIMER_REAL, &none, NULL);
	printf("rung %d\n", rung > 0);
	waitpid(child, NULL, 0);
	/* What a killed caller left waiting is nobody's business any more. */
	for (i = 0; i < 10 && reached(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), a[0]) == 0; i++) {}
	for (int round = 0; round < 300; round++) {
		if ((child = fork()) == 0)
			_exit(reached(socket(AF_UNIX, SOCK_STREAM, 0), a[0]));
		usleep(1000);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	usleep(300000);
	for (; i >= 1; i--)
		close(accept(server, NULL, NULL));
	print_result("after the killed", "connect", reached(fd = socket(AF_UNIX, SOCK_STREAM, 0), a[0]));
	return 0;
}

int pass_rights(char **a)
{
	int server = serve(a[0], SOCK_STREAM, 4), client = socket(AF_UNIX, SOCK_STREAM, 0), fd = open("/proc/self/comm", O_RDONLY);
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	if (server < 0 || reached(client, a[0]) < 0 || sendmsg(client, &message, 0) < 0)
		return -1;
	if (recvmsg(accept(server, NULL, NULL), &message, 0) < 0)
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return read(fd, &byte, 1) == 1 ? 0 : -1;
}

int datagrams(char **a)
{
	int pair[2];

	(void)a;
	print_result("datagram", "socket", socket(AF_UNIX, SOCK_DGRAM, 0));
	print_result("raw", "socket", socket(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0));
	print_result("datagram", "socketpair", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	print_result("stream", "socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	print_result("seqpacket", "socketpair", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	return 0;
}

/* PATH: a datagram socket connected to another of one's own, and then to nobody again. */
int datagram_self(char **a)
{
	struct sockaddr_un address = to(a[0]);
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	int server = socket(AF_UNIX, SOCK_DGRAM, 0), client = socket(AF_UNIX, SOCK_DGRAM, 0);
	char byte = 0;

	unlink(a[0]);
	if (server < 0 || client < 0 || bind(server, (void *)&address, sizeof address) < 0)
		return -1;
	print_result("own", "connect", connect(client, (void *)&address, sizeof address));
	print_result("own", "received", send(client, "x", 1, 0) == 1 && read(server, &byte, 1) == 1 && byte == 'x' ? 0 : -1);
	print_result("nobody", "connect", connect(client, &nobody, sizeof nobody));
	return 0;
}

/* Odd arguments: the verdicts are the kernel's own. */
int kinds(char **a)
{
	struct sockaddr_un address = to(a[0]);
	struct sockaddr_in inet = {.sin_family = AF_INET};
	int fd, file = open("/proc/self/comm", O_RDONLY), listening;

	listening = serve(a[0], SOCK_STREAM, 9);
	print_result("bad", "descriptor", connect(777, (void *)&address, sizeof address));
	print_result("file", "descriptor", connect(file, (void *)&address, sizeof address));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	print_result("bad", "address", connect(fd, (void *)8, sizeof address));
	print_result("long", "address", connect(fd, (void *)&address, 4096));
	print_result("negative", "address", connect(fd, (void *)&address, (socklen_t)-1));
	print_result("empty", "address", connect(fd, (void *)&address, 0));
	print_result("inet", "address", connect(fd, (void *)&inet, sizeof inet));
	print_result("none", "path", reached(fd, "nowhere/at/all"));
	print_result("file", "path", reached(fd, "/proc/self/comm/"));
	print_result("listening", "itself", reached(listening, a[0]));
	print_result("seqpacket", "to stream", reached(socket(AF_UNIX, SOCK_SEQPACKET, 0), a[0]));
	print_result("exact", "length", connect(fd, (void *)&address, (socklen_t)(2 + strlen(a[0]))));
	return 0;
}

static _Atomic int ready, first = 1;
static char *server_path;
static int unshared(void *unused)
{
	struct sockaddr_un address = to(server_path);
	(void)unused;
	close(60);
	dup2((int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0), 60);
	first = (int)syscall(SYS_connect, 60, &address, sizeof address);
	/* It is this thread's own socket that is connected. */
	first |= (int)syscall(SYS_write, 60, "x", 1) != 1;
	ready = 1;
	syscall(SYS_exit, 0);
	return 0;
}
int table_socket(char **a)
{
	char *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), byte = 0;
	int server = serve(server_path = a[0], SOCK_STREAM, 4);

	dup2(socket(AF_UNIX, SOCK_STREAM, 0), 60);
	if (server < 0 || clone(unshared, stack + (1 << 16), CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, NULL) < 0)
		return -1;
	while (!ready) {}
	printf("thread %d\n", first);
	print_result("leader", "write", send(60, "x", 1, MSG_NOSIGNAL));
	return read(accept(server, NULL, NULL), &byte, 1) == 1 ? 0 : -1;
}

/* PORT...: TCP to 127.0.0.1, ::1 and by a mapped address. */
int inet(char **a)
{
	struct sockaddr unspec = {.sa_family = AF_UNSPEC};

	for (; *a; a++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(*a)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = v4.sin_port};
		inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		print_result(*a, "v4", connect(fd, (void *)&v4, sizeof v4));
		print_result(*a, "end", connect(fd, &unspec, sizeof unspec));
		print_result(*a, "mapped", connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&v6, sizeof v6));
	}
	print_result("udp", "socket", socket(AF_INET, SOCK_DGRAM, 0));
	return 0;
}

/* PORT MILLISECONDS: one socket bound to that port of every address or of the loopback, whose local address other threads have set to the loopback and
   taken away again, by every call that may do so, while this one listens. Prints how often that worked, and how often the socket
   was then bound to another address. A socket that got to listen is used up. */
static struct sockaddr_in closed_port;
static volatile int contested, over;
static void *reconnects(void *unused)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};

	while (!over) {
		connect(contested, (void *)&closed_port, sizeof closed_port);
		connect(contested, &none, sizeof none);
	}
	return unused;
}
static void *shuts(void *unused)
{
	while (!over) {
		shutdown(contested, SHUT_RDWR);
		send(contested, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	return unused;
}
static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}
int race_listen(char **a)
{
	struct sockaddr_in bound = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(a[0]))}, where;
	double end = now() + atoi(a[1]);
	long tried = 0, listened = 0, open = 0, turn = 0;
	pthread_t others[3];
	int on = 1;

	closed_port = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(1), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	contested = -1;
	pthread_create(&others[0], NULL, reconnects, NULL);
	pthread_create(&others[1], NULL, reconnects, NULL);
	pthread_create(&others[2], NULL, shuts, NULL);
	while (now() < end) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		setsockopt(fd, IPPROTO_TCP, 30 /* TCP_FASTOPEN_CONNECT */, &on, sizeof on);
		/* Every other one is free to listen, but for those who connect it. */
		bound.sin_addr.s_addr = htonl(turn++ % 2 ? INADDR_LOOPBACK : INADDR_ANY);
		if (fd < 0)
			return -1;
		if (bind(fd, (void *)&bound, sizeof bound) < 0) {
			/* Another thread is in a call on the last one still. */
			if (errno != EADDRINUSE)
				return -1;
			close(fd);
			continue;
		}
		contested = fd;
		for (int i = 0; i < 200 && now() < end; i++, tried++)
			if (listen(fd, 4) == 0) {
				socklen_t length = sizeof where;
				listened++;
				open += getsockname(fd, (void *)&where, &length) == 0 && where.sin_addr.s_addr != htonl(INADDR_LOOPBACK);
				break;
			}
		contested = -1;
		close(fd);
	}
	over = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(others[i], NULL);
	printf("tried %ld, listened %ld, open %ld\n", tried, listened, open);
	return 0;
}
