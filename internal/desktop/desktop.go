// Package desktop shows notifications on the desktop of the user that runs the process.
package desktop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"sallyport/internal/sanitize"
)

// ErrUnsupported is returned by [Notify], wrapped, on a machine without the program that shows notifications.
var ErrUnsupported = errors.New("desktop notifications are not available")

// timeout bounds the program.
const timeout = 10 * time.Second

// script shows its arguments, which it does not evaluate.
const script = `on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run`

// Notify shows a notification. The title must not begin with "-".
func Notify(ctx context.Context, title, text string) error {
	name, args := command(runtime.GOOS, title, text)
	if name == "" {
		return fmt.Errorf("%w on %s", ErrUnsupported, runtime.GOOS)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%w: %s is not installed", ErrUnsupported, name)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", name, err, sanitize.Line(string(out), 200))
	}
	return nil
}

// markup escapes text, in which notification servers read a few HTML elements.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// command returns the program of an operating system with its arguments, "" if there is none.
func command(system, title, text string) (name string, args []string) {
	switch system {
	case "linux", "freebsd", "openbsd", "netbsd":
		return "notify-send", []string{"--app-name=Sallyport", "--", title, markup.Replace(text)}
	case "darwin":
		return "osascript", []string{"-e", script, title, text} // its options end at the title, which does not begin with "-"
	}
	return "", nil
}
