//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// limitInodes bounds how many files and folders the writable mounts of a started sandbox can hold, before a model's
// program runs in it. gVisor's tmpfs supports nr_inodes, but runsc does not pass the option on from the spec,
// so each mount is covered by one that is made inside; a snapshot keeps them. If an image lacks the
// commands for that, only the memory limit bounds files, because gVisor's kernel needs memory for each.
func (b *instance) limitInodes(ctx context.Context) {
	script := []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	for _, m := range []specs.Mount{scratch("/tmp"), scratch("/dev/shm"), workspaceMount(b.kind)} {
		script = append(script, fmt.Sprintf("mount -n -t tmpfs -o %s tmpfs %s", strings.Join(m.Options, ","), m.Destination))
	}
	if err := b.host.runsc.Mount(ctx, b.id, "/bin/sh", "-ec", strings.Join(script, "\n")); err != nil && ctx.Err() == nil {
		b.host.log.Warn("the number of files in a sandbox is not limited", "environment", b.kind.environment, "error", err)
	}
}
