/* Calls that a broker answers must look like the kernel's own: the same words are run with and without one, and what is printed is
 * compared. `broker same DIR` is for a directory of one's own, `broker outside VICTIM OWN` for somebody else's file. */
#include "broker.h"
#include <linux/fs.h>
#include <linux/memfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

static const struct timespec past[2] = {{1000, 5}, {2000, 6}};
static const struct timeval past_us[2] = {{1000, 5}, {2000, 6}};

/* Every call that takes a directory and a path, or a path alone. */
enum { FOLLOWS, LINK };
struct by_path {
	const char *name;
	long (*run)(int, const char *, int);
	int link; /* has a form for the link itself */
	int at;   /* has a directory */
};
#define CALL(name, ...) static long name(int dir, const char *path, int flag) { (void)dir, (void)flag; return __VA_ARGS__; }
#define NF (flag ? AT_SYMLINK_NOFOLLOW : 0)
CALL(p_chmod, syscall(SYS_chmod, path, 0740))
CALL(p_fchmodat, syscall(SYS_fchmodat, dir, path, 0704))
CALL(p_fchmodat2, syscall(452, dir, path, 0744, NF))
CALL(p_chown, flag ? lchown(path, -1, getegid()) : syscall(SYS_chown, path, geteuid(), -1))
CALL(p_fchownat, syscall(SYS_fchownat, dir, path, geteuid(), getegid(), NF))
CALL(p_utime, syscall(SYS_utime, path, &(struct utimbuf){1000, 3000}))
CALL(p_utimes, syscall(SYS_utimes, path, past_us))
CALL(p_futimesat, syscall(SYS_futimesat, dir, path, past_us))
CALL(p_utimensat, syscall(SYS_utimensat, dir, path, past, NF))
CALL(p_setxattr, flag ? lsetxattr(path, "user.a", "b", 1, 0) : setxattr(path, "user.a", "b", 1, 0))
CALL(p_removexattr, flag ? lremovexattr(path, "user.a") : removexattr(path, "user.a"))
struct xattr_at {
	uint64_t value;
	uint32_t size, flags;
};
CALL(p_setxattrat, syscall(463, dir, path, NF, "user.b", &(struct xattr_at){(uintptr_t)"cd", 2, 0}, sizeof(struct xattr_at)))
CALL(p_removexattrat, syscall(466, dir, path, NF, "user.b"))
static const struct by_path calls[] = {
	{"chmod", p_chmod, 0, 0}, {"fchmodat", p_fchmodat, 0, 1}, {"fchmodat2", p_fchmodat2, 1, 1}, {"chown", p_chown, 1, 0},
	{"fchownat", p_fchownat, 1, 1}, {"utime", p_utime, 0, 0}, {"utimes", p_utimes, 0, 0}, {"futimesat", p_futimesat, 0, 1},
	{"utimensat", p_utimensat, 1, 1}, {"setxattr", p_setxattr, 1, 0}, {"removexattr", p_removexattr, 1, 0},
	{"setxattrat", p_setxattrat, 1, 1}, {"removexattrat", p_removexattrat, 1, 1},
};
#define COUNT(list) (sizeof list / sizeof *list)

static void look(const char *what, const char *file)
{
	struct stat st;
	char names[256] = "";

	if (lstat(file, &st) < 0) {
		printf("%s: gone\n", what);
		return;
	}
	ssize_t n = llistxattr(file, names, sizeof names);
	printf("%s: mode %o atime %ld mtime %ld.%ld attributes %zd\n", what, st.st_mode, S_ISLNK(st.st_mode) || st.st_atime > 5000 ? 0 : (long)st.st_atime,
	       (long)st.st_mtime < 5000 ? (long)st.st_mtime : 0, st.st_mtime < 5000 ? st.st_mtim.tv_nsec : 0, n);
}

/* Each call on each path; `seen` is looked at afterwards. */
static void on_paths(const char *label, int dir, const char *path, const char *seen)
{
	for (size_t i = 0; i < COUNT(calls); i++)
		for (int link = FOLLOWS; link <= calls[i].link; link++) {
			/* A link in /proc is nobody's to change: the broker refuses what a kernel lets pass without effect. */
			if (link && path && path != (char *)8 && strncmp(path, "/proc/", 6) == 0)
				continue;
			if (dir != AT_FDCWD && path && path[0] != '/' && !calls[i].at)
				continue;
			long done = calls[i].run(dir, path, link);
			printf("%s %s%s %s\n", label, calls[i].name, link ? " link" : "", done < 0 ? spell(errno) : "ok");
			if (seen)
				look(label, seen);
		}
}

static void on_descriptor(const char *label, int fd)
{
	int flags = 0;
	struct fsxattr attr = {0};

	print_result(label, "fchmod", fchmod(fd, 0740));
	print_result(label, "fchown", fchown(fd, geteuid(), getegid()));
	print_result(label, "futimens", futimens(fd, past));
	print_result(label, "futimens now", futimens(fd, NULL));
	print_result(label, "futimesat", syscall(SYS_futimesat, fd, NULL, past_us));
	print_result(label, "fsetxattr", fsetxattr(fd, "user.f", "g", 1, 0));
	print_result(label, "fsetxattr again", fsetxattr(fd, "user.f", "g", 1, XATTR_CREATE));
	print_result(label, "fremovexattr", fremovexattr(fd, "user.f"));
	print_result(label, "fremovexattr again", fremovexattr(fd, "user.f"));
	print_result(label, "getflags", ioctl(fd, FS_IOC_GETFLAGS, &flags));
	print_result(label, "setflags", ioctl(fd, FS_IOC_SETFLAGS, &flags));
	print_result(label, "fsgetxattr", ioctl(fd, FS_IOC_FSGETXATTR, &attr));
	print_result(label, "fssetxattr", ioctl(fd, FS_IOC_FSSETXATTR, &attr));
	print_result(label, "fchmodat2 empty", syscall(452, fd, "", 0700, AT_EMPTY_PATH));
	print_result(label, "fchownat empty", fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH));
	print_result(label, "utimensat empty", syscall(SYS_utimensat, fd, "", past, AT_EMPTY_PATH));
	print_result(label, "setxattrat empty",
	             syscall(463, fd, "", AT_EMPTY_PATH, "user.h", &(struct xattr_at){(uintptr_t)"i", 1, 0}, sizeof(struct xattr_at)));
	print_result(label, "removexattrat empty", syscall(466, fd, "", AT_EMPTY_PATH, "user.h"));
	print_result(label, "empty without the flag", syscall(SYS_fchmodat, fd, "", 0600));
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	on_paths(label, AT_FDCWD, path, NULL);
	snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
	print_result(label, "thread-self", chmod(path, 0744));
	snprintf(path, sizeof path, "/dev/fd/%d", fd);
	print_result(label, "dev-fd", chmod(path, 0744));
	snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), fd);
	print_result(label, "by number", chmod(path, 0744));
}

static void arguments(const char *file, int fd)
{
	static char name[300], big[70000];
	char *end = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *volatile bad_address = (char *)8, *bad = bad_address;
	struct timespec odd[2] = {{1, 2000000000}, {1, 0}}, omit[2] = {{0, UTIME_OMIT}, {7, 8}}, now[2] = {{0, UTIME_NOW}, {9, 0}};
	struct timeval odd_us[2] = {{1, 1000000}, {1, 0}};
	struct xattr_at args = {(uintptr_t)"x", 1, 0};

	munmap(end + 4096, 4096);
	memset(name, 'n', sizeof name - 1);
	memset(big, 'p', 4999);
	/* A path that ends with its page, and one that does not end there. */
	snprintf(end + 4096 - strlen(file) - 1, strlen(file) + 1, "%s", file);
	print_result("path", "at the end of a page", chmod(end + 4096 - strlen(file) - 1, 0644));
	memset(end, 'a', 4096);
	print_result("path", "into nothing", chmod(end + 4000, 0644));
	on_paths("bad path", AT_FDCWD, bad, NULL);
	on_paths("null path", AT_FDCWD, NULL, NULL);
	on_paths("empty path", AT_FDCWD, "", NULL);
	on_paths("long path", AT_FDCWD, big, NULL);
	name[255] = 0;
	on_paths("longest name", AT_FDCWD, name, NULL);
	name[255] = 'n';
	on_paths("long name", AT_FDCWD, name, NULL);
	print_result("times", "bad", utimensat(AT_FDCWD, file, (void *)bad, 0));
	print_result("times", "odd", utimensat(AT_FDCWD, file, odd, 0));
	print_result("times", "odd micro", syscall(SYS_utimes, file, odd_us));
	print_result("times", "omit", utimensat(AT_FDCWD, file, omit, 0));
	look("times", file);
	print_result("times", "one now", utimensat(AT_FDCWD, file, now, 0));
	print_result("times", "flags", utimensat(AT_FDCWD, file, now, 0x40000));
	print_result("times", "null path", syscall(SYS_utimensat, AT_FDCWD, NULL, now, 0));
	print_result("times", "null path, flags", syscall(SYS_utimensat, fd, NULL, now, AT_SYMLINK_NOFOLLOW));
	print_result("chmod", "flags", syscall(452, AT_FDCWD, file, 0644, 0x40000));
	print_result("chown", "flags", fchownat(AT_FDCWD, file, -1, -1, 0x40000));
	print_result("chown", "nothing", chown(file, -1, -1));
	print_result("name", "bad", setxattr(file, bad, "x", 1, 0));
	print_result("name", "empty", setxattr(file, "", "x", 1, 0));
	print_result("name", "long", setxattr(file, name, "x", 1, 0));
	print_result("name", "no class", setxattr(file, "plain", "x", 1, 0));
	print_result("name", "trusted", setxattr(file, "trusted.x", "x", 1, 0));
	print_result("value", "bad", setxattr(file, "user.x", bad, 1, 0));
	print_result("value", "none", setxattr(file, "user.x", NULL, 0, 0));
	print_result("value", "too long", setxattr(file, "user.x", big, 65537, 0));
	print_result("value", "flags", setxattr(file, "user.x", "x", 1, 7));
	print_result("value", "replace", setxattr(file, "user.none", "x", 1, XATTR_REPLACE));
	print_result("xattr_args", "short", syscall(463, AT_FDCWD, file, 0, "user.x", &args, 8));
	print_result("xattr_args", "long", syscall(463, AT_FDCWD, file, 0, "user.x", &args, 5000));
	print_result("xattr_args", "bad", syscall(463, AT_FDCWD, file, 0, "user.x", bad, sizeof args));
	print_result("xattr_args", "flags", syscall(463, AT_FDCWD, file, 0x40000, "user.x", &args, sizeof args));
	print_result("ioctl", "bad flags", ioctl(fd, FS_IOC_SETFLAGS, bad));
	print_result("ioctl", "bad attributes", ioctl(fd, FS_IOC_FSSETXATTR, bad));
	print_result("descriptor", "none", fchmod(777, 0644));
	print_result("descriptor", "negative", fchmod(-1, 0644));
	print_result("directory", "none", fchmodat(777, "x", 0644, 0));
	print_result("directory", "a file", fchmodat(fd, "x", 0644, 0));
	print_result("directory", "ignored", fchmodat(777, file, 0644, 0));
}

int same(char **a)
{
	char file[400], path[4000] = "";
	int fd;

	if (chdir(a[0]) < 0)
		return -1;
	snprintf(file, sizeof file, "%s/file", a[0]);
	close(open("file", O_CREAT | O_RDWR, 0644));
	mkdir("dir", 0755), mkdir("dir/deep", 0755), mkdir("shut", 0755), mkdir("shut/in", 0755);
	close(open("dir/deep/file", O_CREAT | O_RDWR, 0644));
	symlink("file", "link"), symlink("loop", "loop"), symlink("dir/deep", "to-dir"), symlink("nowhere", "dangling");
	symlink(file, "absolute"), symlink("link", "link-to-link"), symlink("dir/../to-dir/../../link-to-link", "winding");
	symlink("/proc/self/cwd/file", "by-proc");
	for (int i = 0; i < 42; i++) {
		char from[20], to[20];
		snprintf(from, sizeof from, "chain%d", i), snprintf(to, sizeof to, i ? "chain%d" : "file", i - 1);
		symlink(to, from);
	}
	chmod("shut", 0);
	const char *paths[] = {"file", "./file", "dir/../file", "dir/deep/../../file", "link", "absolute", "link-to-link", "winding",
	                       "by-proc", "//proc//self//cwd/./file", "chain30", "chain41", "loop",
	                       "dangling", "nowhere", "file/", "file/.", "file/x", "link/", "to-dir/", "to-dir", "to-dir/file", "dir/",
	                       "dir/.", "dir/..", "shut/in", "shut", "dangling/", "/proc/self/fd/99", "/proc/nothing"};
	for (size_t i = 0; i < COUNT(paths); i++) {
		on_paths(paths[i], AT_FDCWD, paths[i], "file");
	}
	snprintf(path, sizeof path, "%s", file);
	on_paths("whole path", AT_FDCWD, path, "file");
	int dir = open("dir", O_RDONLY | O_DIRECTORY), handle = open("dir/deep", O_PATH | O_DIRECTORY);
	on_paths("at", dir, "deep/file", "dir/deep/file");
	on_paths("at handle", handle, "file", "dir/deep/file");
	on_paths("at up", handle, "../../file", "file");
	on_paths("at whole", handle, path, "file");
	on_descriptor("read-only", fd = open("file", O_RDONLY));
	arguments(file, fd);
	on_descriptor("read and write", open("file", O_RDWR));
	on_descriptor("handle", open("file", O_PATH));
	on_descriptor("handle of a link", open("link", O_PATH | O_NOFOLLOW));
	on_descriptor("directory", dir);
	int gone = open("gone", O_CREAT | O_RDWR, 0644), pipes[2], pair[2];
	unlink("gone");
	on_descriptor("unlinked", gone);
	on_descriptor("without a name", open(".", O_TMPFILE | O_RDWR, 0644));
	on_descriptor("memfd", (int)syscall(SYS_memfd_create, "m", 0));
	if (pipe(pipes) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return -1;
	print_result("pipe", "fchmod", fchmod(pipes[0], 0600));
	print_result("pipe", "futimens", futimens(pipes[0], past));
	print_result("pair", "fchmod", fchmod(pair[0], 0600));
	mkfifo("fifo", 0644);
	on_paths("fifo", AT_FDCWD, "fifo", "fifo");
	chmod("shut", 0755);
	return 0;
}

/* Every way to a file of somebody else; none may lead there. */
int outside(char **a)
{
	char *victim = a[0], *own = a[1], path[4096], dirname[4096];
	int fd = open(victim, O_RDONLY), handle = open(victim, O_PATH), dir;

	snprintf(dirname, sizeof dirname, "%s", victim);
	*strrchr(dirname, '/') = 0;
	const char *name = strrchr(victim, '/') + 1;
	if (chdir(own) < 0 || handle < 0)
		return -1;
	on_paths("plain", AT_FDCWD, victim, NULL);
	unlink("to"), unlink("to-dir");
	symlink(victim, "to"), symlink(dirname, "to-dir");
	on_paths("link", AT_FDCWD, "to", NULL);
	snprintf(path, sizeof path, "to-dir/%s", name);
	on_paths("link to directory", AT_FDCWD, path, NULL);
	snprintf(path, sizeof path, "/proc/self/root%s", victim);
	on_paths("own root", AT_FDCWD, path, NULL);
	snprintf(path, sizeof path, "/proc/self/cwd/to-dir/%s", name);
	on_paths("own cwd", AT_FDCWD, path, NULL);
	char up[4096] = "";
	for (int i = 0; i < 30; i++)
		strcat(up, "../");
	strcat(up, victim + 1);
	on_paths("up", AT_FDCWD, up, NULL);
	dir = open(dirname, O_PATH | O_DIRECTORY);
	on_paths("at", dir, name, NULL);
	static const char *forms[] = {"/proc/self/fd/%d", "/proc/thread-self/fd/%d", "/dev/fd/%d"};
	for (size_t i = 0; i < COUNT(forms); i++)
		for (int which = 0; which < 2; which++) {
			snprintf(path, sizeof path, forms[i], which ? handle : fd);
			if (which || fd >= 0)
				on_paths(path, AT_FDCWD, path, NULL);
		}
	snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dir, name);
	on_paths("through a directory", AT_FDCWD, path, NULL);
	print_result("handle", "empty path", syscall(452, handle, "", 0600, AT_EMPTY_PATH));
	print_result("handle", "empty path", fchownat(handle, "", geteuid(), getegid(), AT_EMPTY_PATH));
	if (fd >= 0)
		on_descriptor("descriptor", fd);
	if (fchdir(dir) == 0)
		on_paths("cwd", AT_FDCWD, name, NULL);
	return 0;
}
