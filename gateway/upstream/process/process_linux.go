package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup starts a process in its own group, and ends it with the gateway.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until the process has ended, without reaping it: as long as it
// is a zombie, its ID cannot be reused for another group.
func awaitExit(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// unread returns the number of unread bytes in a pipe.
func unread(fd uintptr) int {
	waiting, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return waiting
}
