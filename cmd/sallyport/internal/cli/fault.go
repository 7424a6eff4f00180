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

// The exit statuses that have a meaning of their own; see also exec, which passes on that of a program.
const (
	ExitFailed      = 1
	ExitUsage       = 2  // the command line or the settings are wrong; nothing was done
	ExitHeld        = 75 // a call needs approval: resumed once it has that
	ExitTimeout     = 124
	ExitUnable      = 125 // a limit, or a sandbox that does not start
	ExitInterrupted = 130
	exitBrokenPipe  = 141
)

// Status ends the process where all there is to say has been said.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ConfigError is an error in upstreams.yaml, or its absence.
type ConfigError struct{ Err error }

// Error returns the text of the error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ConfigError) Unwrap() error { return e.Err }

// ExitStatus is the one table from errors to exit statuses.
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

// Report tells of an error on stderr, once for each that was joined into it.
// What the reader of a pipe or the sender of a signal knows anyway is not said.
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
		a.Complain(e)
		return
	}
	a.Say(err.Error())
}

// Complain tells of a failure and what would be right.
func (a *App) Complain(e *tool.Error) {
	a.Say(e.Message)
	if e.Hint != "" {
		fmt.Fprintf(a.Stderr, "hint: %s\n", Clean(e.Hint))
	}
}

// Say writes a message to stderr. All that is no log and no output of a program goes through here.
func (a *App) Say(message string) {
	fmt.Fprintf(a.Stderr, "sallyport: %s\n", strings.TrimRight(Clean(message), "\n"))
}

// Misuse is a wrong command line.
func Misuse(cmd *cobra.Command, format string, args ...any) error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(format, args...), Hint: "see " + cmd.CommandPath() + " --help"}
}

// NoArguments refuses any.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Misuse(cmd, "%s takes no arguments, not %.40q", cmd.Name(), args[0])
	}
	return nil
}

// UnknownCommand refuses what is no verb.
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

// FlagError words what the parser of flags has found.
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
