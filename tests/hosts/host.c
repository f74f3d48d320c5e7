/* A host as confine may meet it, made of an unprivileged user namespace: `host KIND PROGRAM [ARG]...`
 *
 *   no-userns       nobody in here may make a user namespace, as with user.max_user_namespaces=0
 *   container-root  the same for uid 0 without CAP_SYS_ADMIN, as in a container
 *   no-landlock     landlock_create_ruleset(2) answers as a kernel without it
 *   landlock-off    ... as one that has it switched off
 *   listener-held   somebody listens to this chain of filters already, as a container engine may
 *   no-getfd        pidfd_getfd(2) is refused
 *   filter:FILE     under the seccomp program in FILE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYS_ADMIN 21

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die(path);
	close(fd);
}

static void own_namespace(void)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER))
		die("unshare");
	write_to("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	write_to("/proc/self/gid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	write_to("/proc/self/uid_map", map);
	write_to("/proc/sys/user/max_user_namespaces", "0");
}

static void answer(unsigned call, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("seccomp");
}

/* The listener lives in a child that ends with this process. */
static void hold_listener(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, code };
	pid_t self = getpid();
	int listener;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (listener < 0)
		die("listener");
	if (fork() == 0) {
		/* Not by a death signal: Landlock keeps a dying command from sending one. */
		struct pollfd parent = { (int)syscall(SYS_pidfd_open, self, 0), POLLIN, 0 };

		for (int fd = 0; fd < 1024; fd++)
			if (fd != listener && fd != parent.fd)
				close(fd);
		while (getppid() == self)
			poll(&parent, 1, -1);
		_exit(0);
	}
	close(listener);
}

static void load(const char *path)
{
	static struct sock_filter code[BPF_MAXINSNS];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, code, sizeof(code));
	struct sock_fprog program = { (unsigned short)((size_t)length / sizeof(*code)), code };

	if (length <= 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die(path);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 99;
	if (!strcmp(argv[1], "no-userns")) {
		own_namespace();
	} else if (!strcmp(argv[1], "container-root")) {
		own_namespace();
		if (prctl(PR_CAPBSET_DROP, SYS_ADMIN, 0, 0, 0))
			die("capbset");
	} else if (!strcmp(argv[1], "no-landlock")) {
		answer(SYS_landlock_create_ruleset, ENOSYS);
	} else if (!strcmp(argv[1], "landlock-off")) {
		answer(SYS_landlock_create_ruleset, EOPNOTSUPP);
	} else if (!strcmp(argv[1], "listener-held")) {
		hold_listener();
	} else if (!strcmp(argv[1], "no-getfd")) {
		answer(SYS_pidfd_getfd, EPERM);
	} else if (!strncmp(argv[1], "filter:", 7)) {
		load(argv[1] + 7);
	} else {
		return 99;
	}
	execvp(argv[2], argv + 2);
	die(argv[2]);
}
