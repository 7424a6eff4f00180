package cli

import (
	"cmp"
	"context"
	"os/exec"
	"runtime"
)

// OpenBrowser opens a page in the default browser. The process that it starts may be
// the browser itself, so it may outlive this process and ctx.
func OpenBrowser(ctx context.Context, page string) error {
	program := map[string]string{"darwin": "open"}[runtime.GOOS]
	return exec.CommandContext(context.WithoutCancel(ctx), cmp.Or(program, "xdg-open"), page).Start()
}
