//go:build unix

package process

import (
	"os"
	"syscall"
)

// signalGroup sends a signal to the group that a process began.
func signalGroup(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }

// heirGroup has the heir begin a group, so that no signal to ours reaches it.
func heirGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
