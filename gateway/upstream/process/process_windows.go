package process

import (
	"os"
	"syscall"
)

// ownGroup starts a process that does not get the Ctrl-C for the gateway.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func reaperGroup() *syscall.SysProcAttr { return ownGroup() }

// signalGroup kills the process itself on SIGKILL and ignores other signals: Windows has no process groups.
func signalGroup(p *os.Process, sig syscall.Signal) error {
	if sig != syscall.SIGKILL {
		return nil
	}
	return p.Kill()
}

// awaitExit waits until the process has ended.
func awaitExit(pid int) {
	const synchronize = 0x00100000
	process, err := syscall.OpenProcess(synchronize, false, uint32(pid))
	if err != nil {
		return
	}
	defer func() { _ = syscall.CloseHandle(process) }()
	_, _ = syscall.WaitForSingleObject(process, syscall.INFINITE)
}

// unread is not available on this system; 0 means read, so that a call that may have started is not sent twice.
func unread(uintptr) int { return 0 }
