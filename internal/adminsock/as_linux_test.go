package adminsock_test

import (
	"runtime"
	"syscall"
	"testing"
)

// as connects as another user, and returns what it hears. Only this thread is that user, and it ends here.
func as(t *testing.T, uid uintptr, path string) string {
	t.Helper()
	heard := make(chan string, 1)
	go func() {
		defer close(heard)
		runtime.LockOSThread() // and never unlocked: it goes with its user
		keep := ^uintptr(0)
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, uid, keep); e != 0 {
			t.Error("become another user:", e)
			return
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err == nil {
			defer syscall.Close(fd)
			err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		}
		if err != nil {
			t.Error("connect as another user:", err)
			return
		}
		buf := make([]byte, 8)
		n, _ := syscall.Read(fd, buf)
		heard <- string(buf[:max(n, 0)])
	}()
	return <-heard
}
