package netcluster

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace without a name: it ends with this descriptor and the processes in it.
type namespace struct {
	file *os.File
	link string // what /proc/PID/ns/net of its processes points to
}

const threadNamespace = "/proc/thread-self/ns/net"

// newNamespace makes a namespace with its loopback interface up.
func newNamespace() (*namespace, error) {
	n := &namespace{}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if n.file, err = os.Open(threadNamespace); err != nil {
			return err
		}
		if n.link, err = os.Readlink(threadNamespace); err != nil {
			return err
		}
		return setUp("lo", true)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a network namespace: %w", err), n.close())
	}
	return n, nil
}

// do calls f on a thread that is in the namespace: processes and sockets that f makes are in it.
func (n *namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return f()
	})
}

// onThread calls f on a thread of its own, and returns the thread to its namespace. A thread that cannot return ends.
func onThread(f func() error) error {
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open(threadNamespace)
		if err != nil {
			failed <- err
			return
		}
		defer func() { _ = home.Close() }() // it was only read
		err = f()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		failed <- err
	}()
	return <-failed
}

func (n *namespace) close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}
