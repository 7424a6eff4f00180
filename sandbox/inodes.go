//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// limitInodes bounds how many files and folders the writable mounts of a started sandbox hold, before anything of a
// model's runs in it. gVisor's tmpfs can do that, but runsc hands no such option of a spec on,
// so each mount is covered by one that is made from inside; a snapshot keeps them. An image may lack what
// that takes: then memory bounds files too, since gVisor's kernel needs some for each.
func (b *box) limitInodes(ctx context.Context) {
	script := []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	for _, m := range []specs.Mount{scratch("/tmp"), scratch("/dev/shm"), workspaceMount(b.kind)} {
		script = append(script, fmt.Sprintf("mount -n -t tmpfs -o %s tmpfs %s", strings.Join(m.Options, ","), m.Destination))
	}
	if err := b.host.runsc.Mount(ctx, b.id, "/bin/sh", "-ec", strings.Join(script, "\n")); err != nil && ctx.Err() == nil {
		b.host.log.Warn("the number of files in a sandbox is not limited", "environment", b.kind.environment, "error", err)
	}
}
