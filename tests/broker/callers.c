/* Callers that make it hard: many at once, interrupted, killed, without a table of descriptors in common, racing themselves. */
#include "broker.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

static _Atomic long done, failed, stop;
static const char *own;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static int said(void)
{
	printf("done %ld failed %ld\n", done, failed);
	return 0;
}

static void *calls(void *count)
{
	for (long i = 0; i < (long)count && !stop; i++)
		chmod(own, i & 1 ? 0600 : 0640) == 0 ? done++ : failed++;
	return NULL;
}
/* DIR THREADS PROCESSES CALLS */
int threads(char **a)
{
	int count = atoi(a[1]), processes = atoi(a[2]);
	pthread_t thread[1000];

	for (int p = 0; p < processes; p++)
		if (fork() == 0) {
			own = a[0];
			int started = 0;
			for (; started < count && pthread_create(&thread[started], NULL, calls, (void *)atol(a[3])) == 0; started++) {}
			for (int i = 0; i < started; i++)
				pthread_join(thread[i], NULL);
			_exit(failed || done != count * atol(a[3]));
		}
	for (int status; wait(&status) > 0;)
		status ? failed++ : done++;
	return said();
}

static void nothing(int signal) { (void)signal; }
static pthread_t hit;
static int what;
static void *hits(void *unused)
{
	while (!stop)
		pthread_kill(hit, what);
	return unused;
}
/* FILE SECONDS: signals as Go's runtime sends them, as fast as can be. */
int storm(char **a)
{
	struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
	pthread_t sender;

	own = a[0], hit = pthread_self(), what = SIGURG;
	sigaction(SIGURG, &action, NULL);
	pthread_create(&sender, NULL, hits, NULL);
	for (double end = now() + atof(a[1]); now() < end;)
		chmod(own, 0600) == 0 ? done++ : failed++;
	stop = 1;
	pthread_join(sender, NULL);
	return said();
}
/* FILE SECONDS: a timer, without SA_RESTART. */
int alarms(char **a)
{
	struct sigaction action = {.sa_handler = nothing};
	struct itimerval timer = {{0, 300}, {0, 300}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (double end = now() + atof(a[1]); now() < end;)
		chmod(a[0], 0600) == 0 || errno == EINTR ? done++ : failed++;
	return said();
}
/* FILE ROUNDS: ends in the middle of a call; the next ones are answered all the same. */
int killed(char **a)
{
	for (int i = 0; i < atoi(a[1]); i++) {
		pid_t child = fork();
		if (child == 0)
			for (;;)
				chmod(a[0], 0600);
		struct timespec pause = {0, (i % 50) * 20000};
		nanosleep(&pause, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		chmod(a[0], i & 1 ? 0600 : 0640) == 0 ? done++ : failed++;
	}
	return said();
}
int vforked(char **a)
{
	for (volatile int i = 0; i < 200; i++) {
		int status;
		pid_t child = vfork();
		if (child == 0)
			_exit(chmod(a[0], i & 1 ? 0600 : 0640) != 0);
		waitpid(child, &status, 0);
		status ? failed++ : done++;
	}
	return said();
}
int undumpable(char **a)
{
	int fd = open(a[0], O_RDONLY);

	prctl(PR_SET_DUMPABLE, 0);
	print_result("undumpable", "chmod", chmod(a[0], 0600));
	print_result("undumpable", "fchmod", fchmod(fd, 0600));
	prctl(PR_SET_DUMPABLE, 1);
	print_result("dumpable", "chmod", chmod(a[0], 0600));
	return 0;
}

/* VICTIM OWN SECONDS: everything that a call names is swapped between the two while the broker looks. OWN lies in a directory of
 * one's own, which is the cwd. */
static char shared[2][4096], *volatile names[2];
static char path[4096];
static int ends[2];
static void *swap_memory(void *unused)
{
	for (unsigned i = 0; !stop; i++)
		memcpy(path, shared[i & 1], sizeof path);
	return unused;
}
static void *swap_links(void *unused)
{
	unlink("race"), unlink("race.0"), unlink("race.1");
	while (!stop)
		for (int i = 0; i < 2; i++) {
			symlink(shared[i], "race.0");
			rename("race.0", "race");
		}
	return unused;
}
static void *swap_directories(void *unused)
{
	char outside[4096];

	snprintf(outside, sizeof outside, "%s", shared[0]);
	*strrchr(outside, '/') = 0;
	mkdir("real", 0755);
	close(open("real/file", O_CREAT | O_WRONLY, 0644));
	symlink(outside, "fake");
	while (!stop) {
		rename("real", "walk");
		rename("walk", "real");
		rename("fake", "walk");
		rename("walk", "fake");
	}
	return unused;
}
static void *swap_descriptors(void *unused)
{
	while (!stop)
		for (int i = 0; i < 2; i++)
			dup2(ends[i], 100);
	return unused;
}
static void *swap_cwd(void *unused)
{
	char outside[4096];
	int here = open(".", O_PATH | O_DIRECTORY), there;

	snprintf(outside, sizeof outside, "%s", shared[0]);
	*strrchr(outside, '/') = 0;
	there = open(outside, O_PATH | O_DIRECTORY);
	while (!stop) {
		fchdir(there);
		fchdir(here);
	}
	return unused;
}
static void count(long result) { result == 0 ? done++ : failed++; }
static void *strike_memory(void *unused)
{
	while (!stop) {
		count(chmod(path, 0600));
		count(chown(path, geteuid(), getegid()));
	}
	return unused;
}
static void *strike_links(void *unused)
{
	while (!stop)
		count(chmod("race", 0600));
	return unused;
}
static void *strike_directories(void *unused)
{
	while (!stop)
		count(chmod("walk/file", 0600));
	return unused;
}
static void *strike_descriptors(void *unused)
{
	struct timespec times[2] = {{1, 0}, {1, 0}};

	while (!stop) {
		count(fchmod(100, 0600));
		count(futimens(100, times));
		count(chmod("/proc/self/fd/100", 0600));
	}
	return unused;
}
static void *strike_cwd(void *unused)
{
	while (!stop)
		count(chmod("file", 0600));
	return unused;
}
int race(char **a)
{
	static void *(*const pairs[][2])(void *) = {
		{swap_memory, strike_memory}, {swap_links, strike_links}, {swap_directories, strike_directories},
		{swap_descriptors, strike_descriptors}, {swap_cwd, strike_cwd},
	};
	long every = 1;

	snprintf(shared[0], sizeof *shared, "%s", a[0]), snprintf(shared[1], sizeof *shared, "%s", a[1]);
	ends[0] = open(a[0], O_RDONLY), ends[1] = open(a[1], O_RDONLY);
	if (ends[0] < 0 || ends[1] < 0)
		return -1;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		pthread_t thread[2];
		stop = 0;
		done = 0;
		failed = 0;
		for (int j = 0; j < 2; j++)
			pthread_create(&thread[j], NULL, pairs[i][j], NULL);
		usleep((unsigned)(atof(a[2]) * 1e6));
		stop = 1;
		for (int j = 0; j < 2; j++)
			pthread_join(thread[j], NULL);
		printf("%zu: ", i);
		said();
		every = every && done && failed;
	}
	return every ? 0 : (errno = ERANGE, -1);
}

/* FILE ROUNDS: one thread executes while others call; the same process goes on with the next round. */
int executes(char **a)
{
	char rounds[20], self[4096];
	pthread_t thread;

	own = a[0];
	if (atoi(a[1]) == 0)
		return chmod(own, 0640);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, calls, (void *)1000000L);
	usleep(2000);
	snprintf(rounds, sizeof rounds, "%d", atoi(a[1]) - 1);
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n < 0 ? 0 : n] = 0;
	return execl(self, self, "executes", a[0], rounds, (char *)NULL);
}

/* Threads that share memory but neither descriptors nor working directory: what a number means is the caller's own. */
static _Atomic int ready, result[3];
static const char *directory, *mine;
static int unshared(void *unused)
{
	(void)unused;
	/* Without errno, which this thread has in common with the one that waits. */
	close(50);
	int fd = open(mine, O_RDONLY);
	dup2(fd, 50);
	chdir(directory);
	result[0] = (int)syscall(SYS_fchmod, 50, 0600);
	result[1] = (int)syscall(SYS_chmod, "inner", 0600);
	ready = 1;
	syscall(SYS_exit, 0);
	return 0;
}
/* THE-LEADER'S MINE DIRECTORY: DIRECTORY/inner and MINE are changed, THE-LEADER'S is not. */
int tables(char **a)
{
	char *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mine = a[1], directory = a[2];
	dup2(open(a[0], O_RDONLY), 50);
	if (clone(unshared, stack + (1 << 16), CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, NULL) < 0)
		return -1;
	while (!ready) {}
	printf("%d %d\n", result[0], result[1]);
	return 0;
}

/* FILE PATH COUNT: that many calls; PATH is a socket that is listened to here, or "-". */
int repeat(char **a)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int server = -1;

	if (strcmp(a[1], "-")) {
		snprintf(address.sun_path, sizeof address.sun_path, "%s", a[1]);
		server = socket(AF_UNIX, SOCK_STREAM, 0);
		unlink(a[1]);
		if (bind(server, (void *)&address, sizeof address) < 0 || listen(server, 16) < 0)
			return -1;
	}
	for (long i = 0; i < atol(a[2]); i++) {
		if (server < 0) {
			if (chmod(a[0], i & 1 ? 0600 : 0640) < 0)
				return -1;
			continue;
		}
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (void *)&address, sizeof address) < 0)
			return -1;
		close(accept(server, NULL, NULL)), close(fd);
	}
	return 0;
}
