//go:build unix

package process

import (
	"os"
	"syscall"
)

// signalGroup sends a signal to the process group of p.
func signalGroup(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }

// reaperGroup starts the shell in its own group, so that signals to the gateway's group do not reach it.
func reaperGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
