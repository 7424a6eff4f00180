package process

import (
	"os"
	"os/exec"
	"strconv"
)

// heir is a shell that outlives us only if we are killed: then it kills the group
// of an upstream, of which the kernel would end the direct child alone. A npx or a
// shell script between us and a server that ignores the end of its input would
// leave that running for good.
type heir struct {
	cmd *exec.Cmd
	// alive is the other end of its input. No other process has it open.
	alive *os.File
}

// startHeir returns nil where there is no shell. The group must not have been reaped yet.
func startHeir(group int) *heir {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer theirs.Close()
	cmd := exec.Command("/bin/sh", "-c", `read -r never; kill -9 "-$0"`, strconv.Itoa(group)) //nolint:noctx // it ends with its input
	cmd.Stdin, cmd.Env, cmd.Dir = theirs, []string{}, "/"
	cmd.SysProcAttr = heirGroup()
	if cmd.Start() != nil {
		_ = ours.Close()
		return nil
	}
	return &heir{cmd, ours}
}

// disarm keeps the heir from killing anything. It is called before the group's
// leader is reaped, after which the group's number may become another's.
func (h *heir) disarm() {
	if h != nil {
		_ = h.cmd.Process.Kill()
	}
}

// bury waits for the heir's end.
func (h *heir) bury() {
	if h != nil {
		_ = h.cmd.Wait()
		_ = h.alive.Close()
	}
}
