//go:build linux

package runsc

import (
	"context"
	"io"
)

// Stop sends SIGSTOP to all processes of a container. Processes that Pipe starts later
// are not affected.
func (r *Runsc) Stop(ctx context.Context, id string) error {
	_, err := r.output(ctx, "kill", "--all", id, "STOP")
	return err
}

// Pipe runs one more process in a container and waits for its end. It runs as the
// container's root, so that the other processes cannot interfere, with the single
// capability to read all files. When ctx ends, the command is killed, but not the process inside.
func (r *Runsc) Pipe(ctx context.Context, id string, stdin io.Reader, stdout io.Writer, args ...string) error {
	return r.run(ctx, stdin, stdout, "exec", append([]string{"--user=0:0", "--cap=CAP_DAC_READ_SEARCH", "--cwd=/", id}, args...)...)
}

// Mount runs a command in a container and waits for its end, as the container's root with the capability to mount.
func (r *Runsc) Mount(ctx context.Context, id string, args ...string) error {
	_, err := r.output(ctx, "exec", append([]string{"--user=0:0", "--cap=CAP_SYS_ADMIN", "--cwd=/", id}, args...)...)
	return err
}
