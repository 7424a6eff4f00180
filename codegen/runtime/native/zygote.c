// The zygote of a sandbox: an interpreter that has started and forks one process for each program.
//
// Python loads this library with ctypes and calls zygote_serve; node loads it as an addon and calls serve. Both pass a
// line of settings. The call returns the descriptor of a connected bridge in each forked process, and never in the
// zygote. The loop is in C because interpreter code in the parent would write to memory that both processes share, and
// gVisor copies 2 MiB for each first write.
//
// The library is freestanding: system calls are made directly, and only fork comes from the C library of the process,
// since its handlers and node's thread pool have to notice the fork. It works with glibc and musl.
//
// Control protocol, over the Unix socket DIR/zygote.sock: the host sends "N\n", the zygote forks a process that is
// connected to DIR/N.sock, and answers "N STATUS\n" when all processes of the program have ended. STATUS is the exit
// status, 128 plus the number of the signal that ended it, or 256 plus the number of the step that failed.

// The types of stddef.h and stdint.h, which a cross compiler may lack.
typedef __SIZE_TYPE__ size_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT64_TYPE__ int64_t;
#define NULL ((void *)0)

#if defined(__x86_64__)
#include "syscall_x86_64.h"
#elif defined(__aarch64__)
#include "syscall_aarch64.h"
#else
#error "unsupported architecture"
#endif

// System calls whose numbers are the same on all architectures.
#define NR_open_tree 428
#define NR_move_mount 429
#define NR_fsopen 430
#define NR_fsconfig 431
#define NR_fsmount 432
#define NR_fspick 433
#define NR_clone3 435
#define NR_mount_setattr 442

extern int fork(void);

#define AF_UNIX 1
#define SOCK_STREAM 1
#define SOCK_CLOEXEC 02000000
#define EINTR 4
#define ECHILD 10
#define SIGKILL 9
#define MADV_DOFORK 11
#define O_CLOEXEC 02000000
#define LOCK_UN 8
#define F_SETFD 2
#define F_SETFL 4
#define F_SETOWN 8
#define F_SETSIG 10
#define MNT_DETACH 2
#define MS_RDONLY 1
#define MS_NOSUID 2
#define MS_NODEV 4
#define MS_NOEXEC 8
#define CLONE_NEWNS 0x00020000
#define CLONE_NEWCGROUP 0x02000000
#define CLONE_NEWUTS 0x04000000
#define CLONE_NEWIPC 0x08000000
#define CLONE_NEWUSER 0x10000000
#define CLONE_NEWPID 0x20000000
#define CLONE_NEWNET 0x40000000
#define CLONE_NEWTIME 0x00000080
#define NEW_NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define RLIMIT_FSIZE 1
#define RLIMIT_CORE 4
#define RLIMIT_NPROC 6
#define RLIMIT_NOFILE 7
#define RLIMIT_AS 9
#define PR_SET_NO_NEW_PRIVS 38
#define PR_SET_SECCOMP 22
#define PR_SET_DUMPABLE 4
#define PR_CAPBSET_DROP 24

// Steps that can fail, as reported to the host.
enum step { ENDING = 1, UNMOUNTING, MOUNTING, CONNECTING, UNSHARING, FORKING, NAMESPACES, PROC, HIDING, LIMITS, USER, FILTER, LOOP, SEPARATING };

// settings are what the host passes: see parse.
struct settings {
	uint64_t user, processes, files, file_size, soft_memory, hard_memory;
	const char *scratch, *workspace; // options of tmpfs mounts
};

static const char dir[] = "/run/sallyport/";
static char line[512];

// given_names are the names of the descriptors that the interpreter opened before the first fork: its event loops.
enum { DESCRIPTORS = 64, NAME_SIZE = 32 };
static char given_names[DESCRIPTORS][NAME_SIZE];

static size_t length(const char *s) {
	size_t n = 0;
	while (s[n])
		n++;
	return n;
}

static void sleep_ms(long ms) {
	int64_t t[2] = {ms / 1000, ms % 1000 * 1000000};
	sys(NR_nanosleep, (long)t, 0, 0, 0, 0, 0);
}

// format writes a number in decimal and returns its end.
static char *format(char *at, unsigned long n) {
	char digits[20];
	int count = 0;
	do
		digits[count++] = '0' + n % 10;
	while (n /= 10);
	while (count)
		*at++ = digits[--count];
	return at;
}

// parse_number reads a decimal number and the character behind it.
static uint64_t parse_number(const char **at) {
	uint64_t n = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++)
		n = n * 10 + (uint64_t)(**at - '0');
	if (**at)
		(*at)++;
	return n;
}

// parse reads "USER PROCESSES FILES FILE_SIZE SOFT_MEMORY HARD_MEMORY SCRATCH WORKSPACE"; 0 is no limit of memory.
static struct settings parse(const char *given) {
	struct settings s;
	size_t n = length(given);
	if (n >= sizeof line)
		n = sizeof line - 1;
	for (size_t i = 0; i < n; i++)
		line[i] = given[i];
	line[n] = 0;
	const char *at = line;
	s.user = parse_number(&at);
	s.processes = parse_number(&at);
	s.files = parse_number(&at);
	s.file_size = parse_number(&at);
	s.soft_memory = parse_number(&at);
	s.hard_memory = parse_number(&at);
	s.scratch = at;
	while (*at && *at != ' ')
		at++;
	if (*at) {
		line[at - line] = 0;
		at++;
	}
	s.workspace = at;
	return s;
}

// connect_to connects to a socket of the host in dir; it returns a negative error number if it cannot.
static long connect_to(const char *name, size_t size) {
	struct {
		uint16_t family;
		char path[108];
	} address = {AF_UNIX, {0}};
	char *at = address.path;
	for (const char *c = dir; *c; c++)
		*at++ = *c;
	for (size_t i = 0; i < size; i++)
		*at++ = name[i];
	for (const char *c = ".sock"; *c; c++)
		*at++ = *c;
	long fd = sys(NR_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return fd;
	long err = sys(NR_connect, fd, (long)&address, (long)(2 + (at - address.path) + 1), 0, 0, 0);
	if (err < 0) {
		sys(NR_close, fd, 0, 0, 0, 0, 0);
		return err;
	}
	return fd;
}

// read_number reads the number of the next program as text, and returns its size; 0 when the host has closed the control
// socket. The host sends a number only when it has the answer to the one before.
static size_t read_number(long control, char *text, size_t most) {
	for (size_t n = 0; n < most;) {
		long got = sys(NR_read, control, (long)(text + n), (long)(most - n), 0, 0, 0);
		if (got == -EINTR)
			continue;
		if (got <= 0)
			return 0;
		n += (size_t)got;
		if (text[n - 1] == '\n')
			return n - 1;
	}
	return 0;
}

static void report(long control, const char *number, size_t size, unsigned long status) {
	char text[64], *at = text;
	for (size_t i = 0; i < size; i++)
		*at++ = number[i];
	*at++ = ' ';
	at = format(at, status);
	*at++ = '\n';
	for (char *from = text; from < at;) {
		long n = sys(NR_write, control, (long)from, at - from, 0, 0, 0);
		if (n < 0 && n != -EINTR)
			sys(NR_exit_group, 1, 0, 0, 0, 0, 0);
		if (n > 0)
			from += n;
	}
}

// end_all kills what is left of earlier programs and returns when nothing is. The zygote is process 1, which kill(-1) excludes.
static int end_all(void) {
	for (int tries = 0; tries < 500; tries++) {
		int status;
		while (sys(NR_wait4, -1, (long)&status, 1 /* WNOHANG */, 0, 0, 0) > 0)
			;
		if (sys(NR_kill, -1, SIGKILL, 0, 0, 0, 0) < 0)
			return 1;
		sleep_ms(1);
	}
	return 0;
}

static int starts(const char *text, const char *with) {
	while (*with && *text == *with)
		text++, with++;
	return !*with;
}

static int equal(const char *a, const char *b) {
	return starts(a, b) && starts(b, a);
}

// name_of reads what a descriptor refers to, such as "pipe:[3]", and "" if it is not open.
static void name_of(long fd, char *name) {
	char path[40], *at = path;
	for (const char *c = "/proc/self/fd/"; *c; c++)
		*at++ = *c;
	*format(at, (unsigned long)fd) = 0;
	long n = sys(NR_readlinkat, -100, (long)path, (long)name, NAME_SIZE - 1, 0, 0);
	name[n > 0 ? n : 0] = 0;
}

// is_shared reports whether a descriptor is still the one that all forks have. Only a pipe may differ: libuv reopens one in fork.
static int is_shared(long fd) {
	char name[NAME_SIZE];
	if (!given_names[fd][0] || !starts(given_names[fd], "pipe:"))
		return given_names[fd][0] != 0;
	name_of(fd, name);
	return equal(name, given_names[fd]);
}

// separate_descriptors replaces the open files that a forked process shares with the zygote: what one program puts into
// a pipe or socket, the next one could take out. They belong to event loops of threads that a fork does not have, and to
// node's own loop, for which uv_loop_fork opens new ones. The numbers stay, since the interpreter may still write to them.
static int separate_descriptors(long bridge) {
	long null = sys(NR_openat, -100, (long)"/dev/null", 2 | O_CLOEXEC, 0, 0, 0);
	if (null < 0 || bridge >= DESCRIPTORS)
		return 0;
	for (long fd = 3; fd < DESCRIPTORS; fd++) {
		if (fd == bridge || fd == null || !is_shared(fd))
			continue;
		if (starts(given_names[fd], "anon_inode:[event") || starts(given_names[fd], "pipe:") || equal(given_names[fd], "/dev/null")) {
			if (sys(NR_dup3, null, fd, O_CLOEXEC, 0, 0, 0) < 0)
				return 0;
		} else if (sys(NR_close, fd, 0, 0, 0, 0, 0) < 0) {
			return 0;
		}
	}
	return sys(NR_close, null, 0, 0, 0, 0, 0) >= 0 && sys(NR_close_range, DESCRIPTORS, 0x7fffffff, 0, 0, 0, 0) >= 0;
}

static long mount(const char *type, const char *at, unsigned long flags, const char *options) {
	return sys(NR_mount, (long)type, (long)at, (long)type, (long)flags, (long)options, 0);
}

// renew_mounts replaces the writable file systems of the last program. The first ones of the sandbox are only covered.
static int renew_mounts(const struct settings *s, int first) {
	static const char *const places[] = {"/tmp", "/dev/shm", "/workspace"};
	for (int i = 0; i < 3; i++) {
		if (!first && sys(NR_umount2, (long)places[i], MNT_DETACH, 0, 0, 0, 0) < 0)
			return UNMOUNTING;
		if (mount("tmpfs", places[i], MS_NOSUID | MS_NODEV, i == 2 ? s->workspace : s->scratch) < 0)
			return MOUNTING;
	}
	return 0;
}

// reset_streams undoes what a program may have set on the standard streams, which all programs share.
static void reset_streams(void) {
	for (int fd = 0; fd < 3; fd++) {
		sys(NR_fcntl, fd, F_SETFL, 0, 0, 0, 0);
		sys(NR_fcntl, fd, F_SETOWN, 0, 0, 0, 0);
		sys(NR_fcntl, fd, F_SETSIG, 0, 0, 0, 0);
		sys(NR_flock, fd, LOCK_UN, 0, 0, 0, 0);
	}
}

static long limit(int kind, uint64_t soft, uint64_t hard) {
	uint64_t both[2] = {soft, hard};
	return sys(NR_prlimit64, 0, kind, (long)both, 0, 0, 0);
}

// limit_all sets the limits of a program. gVisor counts the forked process for the user of the zygote, so the program may
// have one process less in addition to it.
static int limit_all(const struct settings *s) {
	if (limit(RLIMIT_CORE, 0, 0) < 0 || limit(RLIMIT_NPROC, s->processes - 1, s->processes) < 0 ||
		limit(RLIMIT_NOFILE, s->files, s->files) < 0 || limit(RLIMIT_FSIZE, s->file_size, s->file_size) < 0)
		return 0;
	return !s->hard_memory || limit(RLIMIT_AS, s->soft_memory, s->hard_memory) >= 0;
}

// bound_rights excludes all capabilities from what programs that are executed can have; this process keeps its own.
static void bound_rights(void) {
	for (long right = 0; right < 64 && sys(NR_prctl, PR_CAPBSET_DROP, right, 0, 0, 0, 0) >= 0; right++)
		;
}

// become_user gives up all rights: a change of all three user IDs from 0 clears the capabilities. It also makes the
// process the owner of its files in /proc again.
static int become_user(uint64_t user) {
	long id = (long)user;
	return sys(NR_setgroups, 0, 0, 0, 0, 0, 0) >= 0 && sys(NR_setresgid, id, id, id, 0, 0, 0) >= 0 &&
		sys(NR_setresuid, id, id, id, 0, 0, 0) >= 0 && sys(NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0) >= 0 && sys(NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) >= 0;
}

struct instruction {
	uint16_t code;
	uint8_t yes, no;
	uint32_t value;
};
struct program {
	uint16_t size;
	const struct instruction *code;
};

#define LOAD(offset) {0x20, 0, 0, offset}
#define RETURN(value) {0x06, 0, 0, value}
#define DENY(number) {0x15, 0, 1, number}, RETURN(0x00050001) /* EPERM */
#define DENIED(number) DENY(number)

// filter denies what would reach beyond the program: new namespaces and mounts have no limits, and keys and System V
// segments outlive a process. clone3 passes its flags in memory, so it "does not exist", and C libraries use clone.
static const struct instruction code[] = {
	LOAD(4), {0x15, 1, 0, AUDIT_ARCH}, RETURN(0x80000000) /* kill */,
	LOAD(0), {0x35, 0, 1, 0x40000000}, RETURN(0x00050026) /* ENOSYS: x32 */,
	DENIED(NR_unshare), DENIED(NR_setns), DENIED(NR_mount), DENIED(NR_umount2), DENIED(NR_pivot_root), DENIED(NR_chroot),
	DENIED(NR_open_tree), DENIED(NR_move_mount), DENIED(NR_fsopen), DENIED(NR_fsconfig), DENIED(NR_fsmount), DENIED(NR_fspick),
	DENIED(NR_mount_setattr), DENIED(NR_shmget), DENIED(NR_add_key), DENIED(NR_request_key), DENIED(NR_keyctl),
	{0x15, 0, 1, NR_clone3}, RETURN(0x00050026),
	{0x15, 0, 3, NR_clone}, LOAD(16), {0x45, 0, 1, NEW_NAMESPACES}, RETURN(0x00050001),
	RETURN(0x7fff0000),
};

static int install_filter(void) {
	struct program p = {sizeof code / sizeof code[0], code};
	return sys(NR_prctl, PR_SET_SECCOMP, 2, (long)&p, 0, 0, 0) >= 0;
}

// enter makes the forked process a program's. It returns the failed step, or 0.
static int enter(const struct settings *s, long bridge) {
	if (!separate_descriptors(bridge) || sys(NR_setsid, 0, 0, 0, 0, 0, 0) < 0)
		return SEPARATING;
	if (sys(NR_unshare, CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET, 0, 0, 0, 0, 0) < 0)
		return NAMESPACES;
	if (mount("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "") < 0)
		return PROC;
	if (mount("tmpfs", "/run/sallyport", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4096,mode=0555") < 0)
		return HIDING;
	if (!limit_all(s))
		return LIMITS;
	if (!become_user(s->user))
		return USER;
	return install_filter() ? 0 : FILTER;
}

// wait_for waits until a process has ended and returns its status for the host.
static unsigned long wait_for(long pid) {
	int status = 0;
	while (sys(NR_wait4, pid, (long)&status, 0, 0, 0, 0) == -EINTR)
		;
	return status & 0x7f ? 128 + (unsigned long)(status & 0x7f) : (unsigned long)(status >> 8 & 0xff);
}

// start forks a process. It returns the bridge's descriptor in the child; in the zygote it returns -1 after the
// program has ended, with its status in *status.
static long start(const struct settings *s, long control, const char *number, size_t size, int first, unsigned long *status) {
	int step = end_all() ? 0 : ENDING;
	if (!step)
		step = renew_mounts(s, first);
	reset_streams();
	long bridge = step ? -1 : connect_to(number, size);
	if (!step && bridge < 0)
		step = CONNECTING;
	if (!step && sys(NR_unshare, CLONE_NEWPID, 0, 0, 0, 0, 0) < 0)
		step = UNSHARING;
	int pid = step ? -1 : fork();
	if (!step && pid < 0)
		step = FORKING;
	if (pid == 0) {
		sys(NR_close, control, 0, 0, 0, 0, 0);
		if ((step = enter(s, bridge)))
			sys(NR_exit_group, 200 + step, 0, 0, 0, 0, 0);
		return bridge;
	}
	if (bridge >= 0)
		sys(NR_close, bridge, 0, 0, 0, 0, 0);
	*status = step ? 256 + (unsigned long)step : wait_for(pid);
	if (!step && !end_all())
		*status = 256 + ENDING;
	return -1;
}

// zygote_serve runs the zygote. It returns in each forked process.
long zygote_serve(const char *given) {
	struct settings s = parse(given);
	long control;
	while ((control = connect_to("zygote", 6)) < 0)
		sleep_ms(3);
	for (long fd = 3; fd < DESCRIPTORS; fd++)
		if (fd != control)
			name_of(fd, given_names[fd]);
	bound_rights();
	for (int first = 1;; first = 0) {
		char number[20];
		size_t size = read_number(control, number, sizeof number);
		if (!size)
			sys(NR_exit_group, 0, 0, 0, 0, 0, 0);
		unsigned long status = 0;
		long bridge = start(&s, control, number, size, first, &status);
		if (bridge >= 0)
			return bridge;
		report(control, number, size, status);
	}
}

// The rest is node's: an addon with one function, serve. Its symbols are node's own, absent in Python.

typedef void *napi;
extern int napi_create_function(napi env, const char *name, size_t size, napi (*call)(napi, napi), void *data, napi *result) __attribute__((weak));
extern int napi_get_cb_info(napi env, napi info, size_t *count, napi *args, napi *self, void **data) __attribute__((weak));
extern int napi_get_value_string_utf8(napi env, napi value, char *text, size_t size, size_t *written) __attribute__((weak));
extern int napi_get_value_int32(napi env, napi value, int32_t *result) __attribute__((weak));
extern int napi_set_named_property(napi env, napi object, const char *name, napi value) __attribute__((weak));
extern int napi_create_int32(napi env, int32_t value, napi *result) __attribute__((weak));
extern int napi_get_uv_event_loop(napi env, void **loop) __attribute__((weak));
extern int napi_open_handle_scope(napi env, napi *scope) __attribute__((weak));
extern int napi_close_handle_scope(napi env, napi scope) __attribute__((weak));
extern int napi_create_reference(napi env, napi value, uint32_t count, napi *result) __attribute__((weak));
extern int napi_get_reference_value(napi env, napi reference, napi *result) __attribute__((weak));
extern int napi_get_global(napi env, napi *result) __attribute__((weak));
extern int napi_make_callback(napi env, napi context, napi self, napi call, size_t count, const napi *args, napi *result) __attribute__((weak));
extern int uv_loop_fork(void *loop) __attribute__((weak));
extern int uv_loop_alive(const void *loop) __attribute__((weak));
extern int uv_prepare_init(void *loop, void *handle) __attribute__((weak));
extern int uv_prepare_start(void *handle, void (*call)(void *)) __attribute__((weak));
extern int uv_async_init(void *loop, void *handle, void (*call)(void *)) __attribute__((weak));
extern void *uv_handle_get_loop(const void *handle) __attribute__((weak));
extern void uv_ref(void *handle) __attribute__((weak));
extern void uv_unref(void *handle) __attribute__((weak));

static long parse_hex(const char **at, unsigned long *n) {
	const char *begin = *at;
	for (*n = 0;; (*at)++) {
		char c = **at;
		if (c >= '0' && c <= '9')
			*n = *n << 4 | (unsigned long)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*n = *n << 4 | (unsigned long)(c - 'a' + 10);
		else
			return *at - begin;
	}
}

// keep_on_fork marks all memory as copied by fork: V8 excludes its heap. It reports whether it could read the mappings.
static int keep_on_fork(void) {
	static char text[1 << 16];
	long fd = sys(NR_openat, -100, (long)"/proc/self/maps", SOCK_CLOEXEC, 0, 0, 0), got;
	size_t have = 0;
	if (fd < 0)
		return 0;
	while ((got = sys(NR_read, fd, (long)(text + have), (long)(sizeof text - 1 - have), 0, 0, 0)) > 0 || have) {
		have += got > 0 ? (size_t)got : 0;
		text[have] = 0;
		const char *at = text, *end = text + have, *last = text;
		for (; at < end; at++) {
			if (*at != '\n')
				continue;
			const char *c = last;
			unsigned long from, to;
			if (parse_hex(&c, &from) && *c++ == '-' && parse_hex(&c, &to))
				sys(NR_madvise, (long)from, (long)(to - from), MADV_DOFORK, 0, 0, 0); // refused for special mappings
			last = at + 1;
		}
		size_t rest = (size_t)(end - last);
		for (size_t i = 0; i < rest; i++)
			text[i] = last[i];
		have = rest;
		if (got <= 0)
			break;
	}
	sys(NR_close, fd, 0, 0, 0, 0, 0);
	return 1;
}

// leave_threads continues in a forked process, which has no other threads: a process with threads cannot unshare its
// namespace of processes, and fork tells node's thread pool to start anew. The first process waits for the end.
static int leave_threads(void) {
	int pid = fork();
	if (pid > 0)
		sys(NR_exit_group, (long)wait_for(pid), 0, 0, 0, 0, 0);
	return pid == 0;
}

static napi serve(napi env, napi info) {
	static char given[sizeof line];
	napi arg, result;
	size_t count = 1, size;
	void *loop;
	if (napi_get_cb_info(env, info, &count, &arg, NULL, NULL) || napi_get_value_string_utf8(env, arg, given, sizeof given, &size) ||
		napi_get_uv_event_loop(env, &loop) || !keep_on_fork() || !leave_threads())
		return NULL;
	long bridge = zygote_serve(given);
	if (uv_loop_fork(loop))
		sys(NR_exit_group, 200 + LOOP, 0, 0, 0, 0, 0);
	napi_create_int32(env, (int32_t)bridge, &result);
	return result;
}

// A forked process has none of the threads on which V8 runs background work, and before node ends its event loop, it waits
// until all such work is done. So the loop is kept from ending, and a handle calls JavaScript when nothing else is pending.
static napi idle_env;
static napi idle_call;
static char prepare_handle[512], keep_handle[512]; // uv_prepare_t and uv_async_t have about 130 bytes

static int is_idle(void *loop) {
	uv_unref(keep_handle);
	int alive = uv_loop_alive(loop);
	uv_ref(keep_handle);
	return !alive;
}

static void call_idle(int32_t again) {
	napi scope, call, receiver, arg, result;
	if (napi_open_handle_scope(idle_env, &scope))
		return;
	if (!napi_get_reference_value(idle_env, idle_call, &call) && !napi_get_global(idle_env, &receiver) && !napi_create_int32(idle_env, again, &arg))
		napi_make_callback(idle_env, NULL, receiver, call, 1, &arg, &result);
	napi_close_handle_scope(idle_env, scope);
}

static void on_prepare(void *handle) {
	void *loop = uv_handle_get_loop(handle);
	for (int again = 0; again < 2 && is_idle(loop); again++)
		call_idle(again);
}

// on_idle calls a function with 0 when no timer, request or handle is pending, and with 1 if that is still so after the
// call. It returns undefined if it cannot.
static napi on_idle(napi env, napi info) {
	napi call, done;
	size_t count = 1;
	void *loop;
	idle_env = env;
	if (napi_get_cb_info(env, info, &count, &call, NULL, NULL) || napi_create_reference(env, call, 1, &idle_call) ||
		napi_get_uv_event_loop(env, &loop) || uv_prepare_init(loop, prepare_handle) ||
		uv_prepare_start(prepare_handle, on_prepare) || uv_async_init(loop, keep_handle, NULL))
		return NULL;
	uv_unref(prepare_handle);
	return napi_create_int32(env, 1, &done) ? NULL : done;
}

// leave ends the process at once: at a normal exit, node would wait for threads that a forked process does not have.
static napi leave(napi env, napi info) {
	napi arg;
	size_t count = 1;
	int32_t status = 1;
	napi_get_cb_info(env, info, &count, &arg, NULL, NULL);
	napi_get_value_int32(env, arg, &status);
	sys(NR_exit_group, status, 0, 0, 0, 0, 0);
	return NULL;
}

static void export(napi env, napi exports, const char *name, napi (*call)(napi, napi)) {
	napi function;
	if (!napi_create_function(env, name, length(name), call, NULL, &function))
		napi_set_named_property(env, exports, name, function);
}

napi napi_register_module_v1(napi env, napi exports) {
	export(env, exports, "serve", serve);
	export(env, exports, "leave", leave);
	export(env, exports, "onIdle", on_idle);
	return exports;
}
