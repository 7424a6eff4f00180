//go:build linux

package runsc

import (
	"context"
	"io"
)

// Stop stops all processes of a container, as SIGSTOP does: nothing in it continues, and
// what is started in it later by Pipe does.
func (r *Runsc) Stop(ctx context.Context, id string) error {
	_, err := r.output(ctx, "kill", "--all", id, "STOP")
	return err
}

// Pipe runs one more process in a container, to its end: as the container's root,
// so that the others cannot touch it, with the one capability to read what they
// have closed to others. A ctx that ends kills the command, and not the process inside.
func (r *Runsc) Pipe(ctx context.Context, id string, stdin io.Reader, stdout io.Writer, args ...string) error {
	return r.run(ctx, stdin, stdout, "exec", append([]string{"--user=0:0", "--cap=CAP_DAC_READ_SEARCH", "--cwd=/", id}, args...)...)
}

// Mount runs an internal command in a container, to its end, as the container's root that may mount there.
func (r *Runsc) Mount(ctx context.Context, id string, args ...string) error {
	_, err := r.output(ctx, "exec", append([]string{"--user=0:0", "--cap=CAP_SYS_ADMIN", "--cwd=/", id}, args...)...)
	return err
}
