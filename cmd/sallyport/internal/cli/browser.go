package cli

import (
	"cmp"
	"context"
	"os/exec"
	"runtime"
)

// OpenBrowser tries to; the page's URL is on the terminal as well. What it
// starts may be the browser itself, so it outlives us.
func OpenBrowser(ctx context.Context, page string) error {
	program := map[string]string{"darwin": "open"}[runtime.GOOS]
	return exec.CommandContext(context.WithoutCancel(ctx), cmp.Or(program, "xdg-open"), page).Start()
}
