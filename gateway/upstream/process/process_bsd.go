//go:build darwin || freebsd

package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup starts a process in its own group. It ends with the gateway by the shell that startReaper starts.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits until the process has ended, without reaping it, see process_linux.go.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(queue) }()
	event := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&event, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	for {
		// ESRCH means that it is already a zombie.
		if _, err := unix.Kevent(queue, []unix.Kevent_t{event}, make([]unix.Kevent_t, 1), nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// unread is not available on this system; 0 means read, so that a call that may have started is not sent twice.
func unread(uintptr) int { return 0 }
