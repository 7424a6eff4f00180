// System calls of Linux on 64-bit ARM.
#define AUDIT_ARCH 0xC00000B7
#define NR_dup3 24
#define NR_fcntl 25
#define NR_flock 32
#define NR_umount2 39
#define NR_mount 40
#define NR_pivot_root 41
#define NR_chroot 51
#define NR_openat 56
#define NR_close 57
#define NR_read 63
#define NR_write 64
#define NR_readlinkat 78
#define NR_exit_group 94
#define NR_unshare 97
#define NR_nanosleep 101
#define NR_kill 129
#define NR_setresuid 147
#define NR_setresgid 149
#define NR_setsid 157
#define NR_setgroups 159
#define NR_prctl 167
#define NR_shmget 194
#define NR_socket 198
#define NR_connect 203
#define NR_add_key 217
#define NR_request_key 218
#define NR_keyctl 219
#define NR_clone 220
#define NR_madvise 233
#define NR_wait4 260
#define NR_prlimit64 261
#define NR_setns 268
#define NR_close_range 436

static long sys(long number, long a, long b, long c, long d, long e, long f) {
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
