// System calls of Linux on x86-64.
#define AUDIT_ARCH 0xC000003E
#define NR_read 0
#define NR_write 1
#define NR_close 3
#define NR_madvise 28
#define NR_shmget 29
#define NR_nanosleep 35
#define NR_socket 41
#define NR_connect 42
#define NR_clone 56
#define NR_wait4 61
#define NR_kill 62
#define NR_fcntl 72
#define NR_flock 73
#define NR_setsid 112
#define NR_setgroups 116
#define NR_setresuid 117
#define NR_setresgid 119
#define NR_pivot_root 155
#define NR_prctl 157
#define NR_chroot 161
#define NR_mount 165
#define NR_umount2 166
#define NR_exit_group 231
#define NR_add_key 248
#define NR_request_key 249
#define NR_keyctl 250
#define NR_openat 257
#define NR_readlinkat 267
#define NR_unshare 272
#define NR_dup3 292
#define NR_prlimit64 302
#define NR_setns 308
#define NR_close_range 436

static long sys(long number, long a, long b, long c, long d, long e, long f) {
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
}
