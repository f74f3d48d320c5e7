/* calls SEED MILLISECONDS PLAY OUTSIDE: brokered calls with arguments of edges and chance, in the directory PLAY. Prints "ok" when
 * a plain call is still answered afterwards. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;
static uint64_t next(void)
{
	uint64_t mixed = state += 0x9e3779b97f4a7c15;
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}
static unsigned below(unsigned limit) { return next() % limit; }

/* Numbers of x86_64, the younger ones by hand. */
static const int calls[] = {
	90, 91, 268, 452, 92, 94, 93, 260, 132, 235, 261, 280, 188, 189, 190, 463, 197, 198, 199, 466, 469, 16, 42, 50,
};
static const unsigned long requests[] = {0x40086602, 0x40046602, 0x401c5820};

enum { ARENA = 1 << 17, PATHS = 16 };
static char *arena, paths[PATHS][4200];
static int descriptors[12];

static uint64_t address(void)
{
	switch (below(12)) {
	case 0: return 0;
	case 1: return 0xffffffff81000000;
	case 2: return UINT64_MAX - below(16);
	case 3: return (uint64_t)arena + ARENA - below(64);
	case 4: return (uint64_t)arena + below(ARENA);
	case 5: return (uint64_t)descriptors;
	default: return (uint64_t)paths[below(PATHS)];
	}
}
static uint64_t argument(void)
{
	static const uint64_t edges[] = {
		0, 1, 8, 16, 24, 104, 110, 4095, 4096, 65536, 65537, 1 << 20, INT32_MAX, UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX,
		AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, (uint32_t)AT_FDCWD, 0700, 04755, 02755, 1000000000,
		(1 << 30) - 1, (1 << 30) - 2,
	};
	switch (below(8)) {
	case 0: return next();
	case 1: case 2: return edges[below(sizeof edges / sizeof *edges)];
	case 3: case 4: return (uint64_t)descriptors[below(12)];
	default: return address();
	}
}

static void prepare(const char *play, const char *outside)
{
	static const char *const inside[] = {"file", "directory", "pipe", "way", "self", ".", "", "missing", "file/", "loop"};
	/* What an earlier round has done to them does not stop this one. */
	chmod(play, 0700);
	if (chdir(play) != 0)
		exit(3);
	mkdir("directory", 0700);
	mkfifo("pipe", 0600);
	symlink("/proc/self/fd/0", "self");
	symlink("loop", "loop");
	/* Low numbers are drawn too: 0 is a file of its own, never a device that the caller has there. */
	int own = open("file", O_CREAT | O_RDWR, 0600);
	if (own < 0 || dup2(own, 0) != 0 || (own != 0 && close(own) != 0))
		exit(3);
	for (int i = 0; i < 10; i++)
		snprintf(paths[i], sizeof *paths, "%s", inside[i]);
	snprintf(paths[10], sizeof *paths, "%s/f", outside);
	snprintf(paths[11], sizeof *paths, "../../outside/d");
	snprintf(paths[12], sizeof *paths, "/proc/self/cwd/../../outside/f");
	snprintf(paths[13], sizeof *paths, "user.name");
	memset(paths[14], '/', 4199);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", outside);
	memcpy(paths[15], &name, sizeof name);

	arena = mmap(NULL, ARENA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(arena + ARENA, 4096, PROT_NONE);
	for (int i = 0; i < ARENA; i++)
		arena[i] = next();
	int fds[12] = {
		open("file", O_RDWR), open("file", O_RDONLY), open("directory", O_RDONLY), open("way", O_PATH), open(".", O_PATH),
		open("/", O_RDONLY), open("pipe", O_RDWR), socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), open("pipe", O_RDWR | O_NONBLOCK),
		-1, AT_FDCWD, 9999,
	};
	memcpy(descriptors, fds, sizeof fds);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	state = strtoull(argv[1], NULL, 10);
	prepare(argv[3], argv[4]);
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	long done = 0, worked = 0;
	do {
		int call = calls[below(sizeof calls / sizeof *calls)];
		uint64_t a[6];
		for (int i = 0; i < 6; i++)
			a[i] = argument();
		if (call == 16)
			a[1] = requests[below(3)];
		/* A queue of connections that nobody takes would wait. */
		if (call == 42 || call == 50)
			a[0] = below(4) ? descriptors[7] : descriptors[below(12)];
		worked += syscall(call, a[0], a[1], a[2], a[3], a[4], a[5]) == 0;
		if (++done % 64 == 0) {
			chmod(argv[3], 0700);
			chmod("file", 0600);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < atol(argv[2]));
	printf("%ld calls, %ld worked\n", done, worked);

	/* It still says yes to what is allowed and no to the rest. */
	struct stat stat;
	if (chmod(argv[3], 0700) != 0 || chmod("file", 0640) != 0 || lstat("file", &stat) != 0 || (stat.st_mode & 0777) != 0640)
		return printf("a change inside: errno %d\n", errno), 1;
	if (chmod(paths[10], 0600) == 0 || errno == ENOSYS)
		return printf("a change outside: errno %d\n", errno), 1;
	puts(worked > 0 ? "ok" : "no call ever worked");
	return 0;
}
