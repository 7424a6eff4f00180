package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// The exit statuses. The verb exec also returns the exit status of the program.
const (
	ExitFailed      = 1
	ExitUsage       = 2  // the command line or the settings are wrong; nothing was done
	ExitSuspended   = 75 // suspended: a call needs approval
	ExitTimeout     = 124
	ExitUnable      = 125 // a limit was reached, or no sandbox could be started
	ExitInterrupted = 130
	exitBrokenPipe  = 141
)

// Status is an error that only sets the exit status: the message was already printed.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ConfigError is an error of reading upstreams.yaml, such as an invalid or a missing file.
type ConfigError struct{ Err error }

// Error returns the text of the error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ConfigError) Unwrap() error { return e.Err }

// ExitStatus maps an error to the exit status of the process.
func ExitStatus(err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe
	}
	if s, ok := errors.AsType[Status](err); ok {
		return int(s)
	}
	if _, ok := errors.AsType[*ConfigError](err); ok {
		return ExitUsage
	}
	if errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		switch e.Kind {
		case tool.Invalid:
			return ExitUsage
		case tool.Timeout:
			return ExitTimeout
		case tool.Canceled:
			return ExitInterrupted
		case tool.Internal, tool.Busy:
			return ExitUnable
		}
	}
	return ExitFailed
}

// Report prints an error on stderr, each joined error by itself. It prints nothing for
// closed pipes, cancellation and [Status].
func (a *App) Report(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			a.Report(e)
		}
		return
	}
	if c, ok := err.(*ConfigError); ok { //nolint:errorlint // looks at this one, not at what it wraps
		a.Report(c.Err)
		return
	}
	_, silent := errors.AsType[Status](err)
	if err == nil || silent || errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled) {
		return
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		a.ReportToolError(e)
		return
	}
	sayError(a, err.Error(), "")
}

// ReportToolError prints an error and its hint on stderr.
func (a *App) ReportToolError(e *tool.Error) {
	sayError(a, e.Message, e.Hint)
}

// sayError prints an error to stderr, with colours on a terminal.
func sayError(a *App, message, hint string) {
	text := "sallyport: " + strings.TrimRight(Clean(message), "\n") + "\n"
	if hint != "" {
		text += "hint: " + Clean(hint) + "\n"
	}
	fmt.Fprint(a.Err(), paint(a, a.Stderr, text))
}

// Say prints a message to stderr. All messages that are neither log nor program output use it.
func (a *App) Say(message string) {
	fmt.Fprintf(a.Err(), "sallyport: %s\n", strings.TrimRight(Clean(message), "\n"))
}

// Misuse returns the error for a wrong command line.
func Misuse(cmd *cobra.Command, format string, args ...any) error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(format, args...), Hint: "see " + cmd.CommandPath() + " --help"}
}

// NoArguments returns an error if there are arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Misuse(cmd, "%s takes no arguments, not %.40q", cmd.Name(), args[0])
	}
	return nil
}

// UnknownCommand returns an error for arguments, which are unknown subcommands.
func UnknownCommand(parent *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown command %.40q", args[0]), Hint: "see " + parent.CommandPath() + " --help"}
	var names []string
	for _, cmd := range parent.Commands() {
		names = append(names, cmd.Name())
	}
	if near := suggest.Of(args[0], names); near != "" {
		err.Hint = "did you mean " + parent.CommandPath() + " " + near + "?"
	}
	return err
}

var (
	unknownFlag = regexp.MustCompile(`^unknown flag: --(.*)$`)
	flagInUsage = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)
)

// FlagError rewrites an error of the flag parser, with a hint.
func FlagError(cmd *cobra.Command, err error) error {
	message := err.Error()
	if strings.Contains(message, "time: missing unit") || strings.Contains(message, "time: invalid duration") {
		message, _, _ = strings.Cut(message, " flag: time:")
		return &tool.Error{Kind: tool.Invalid, Message: message, Hint: "write a duration as 30s or 2m"}
	}
	if m := unknownFlag.FindStringSubmatch(message); m != nil {
		var names []string
		for _, flag := range flagInUsage.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
			names = append(names, flag[1])
		}
		if near := suggest.Of(m[1], names); near != "" {
			return &tool.Error{Kind: tool.Invalid, Message: message, Hint: "did you mean --" + near + "?"}
		}
	}
	return Misuse(cmd, "%s", message)
}
