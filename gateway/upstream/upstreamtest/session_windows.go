package upstreamtest

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }
