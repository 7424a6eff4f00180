package process

import (
	"os"
	"os/exec"
	"strconv"
)

// reaper is a shell that kills an upstream's process group if the gateway is killed. The
// kernel ends only the direct child then: below npx or a shell script, a server that
// ignores the end of its input would keep running.
type reaper struct {
	cmd *exec.Cmd
	// alive is the write end of its input, which is closed when the gateway ends.
	alive *os.File
}

// startReaper returns nil where there is no shell. The group must not have been reaped yet.
func startReaper(group int) *reaper {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer theirs.Close()
	cmd := exec.Command("/bin/sh", "-c", `read -r never; kill -9 "-$0"`, strconv.Itoa(group)) //nolint:noctx // it ends with its input
	cmd.Stdin, cmd.Env, cmd.Dir = theirs, []string{}, "/"
	cmd.SysProcAttr = reaperGroup()
	if cmd.Start() != nil {
		_ = ours.Close()
		return nil
	}
	return &reaper{cmd, ours}
}

// disarm ends the shell before it kills the group. It is called before the group's
// leader is reaped, after which the group's ID may be reused.
func (h *reaper) disarm() {
	if h != nil {
		_ = h.cmd.Process.Kill()
	}
}

// wait waits for the shell to end.
func (h *reaper) wait() {
	if h != nil {
		_ = h.cmd.Wait()
		_ = h.alive.Close()
	}
}
