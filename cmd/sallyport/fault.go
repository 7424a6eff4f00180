package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sallyport/internal/nearest"
	"sallyport/internal/tool"
)

// The exit statuses that have a meaning of their own; see also exec, which passes on that of a program.
const (
	exitFailed      = 1
	exitUsage       = 2  // the command line or the settings are wrong; nothing was done
	exitHeld        = 75 // a call needs approval: resumed once it has that
	exitTimeout     = 124
	exitUnable      = 125 // a limit, or a sandbox that does not start
	exitInterrupted = 130
	exitBrokenPipe  = 141
)

// status ends the process where all there is to say has been said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// configError is a fault of upstreams.yaml, or that there is none.
type configError struct{ error }

func (e *configError) Unwrap() error { return e.error }

// exitStatus is the one table from errors to exit statuses.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe
	}
	if s, ok := errors.AsType[status](err); ok {
		return int(s)
	}
	if _, ok := errors.AsType[*configError](err); ok {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		switch e.Kind {
		case tool.Invalid:
			return exitUsage
		case tool.Timeout:
			return exitTimeout
		case tool.Canceled:
			return exitInterrupted
		case tool.Internal, tool.Busy:
			return exitUnable
		}
	}
	return exitFailed
}

// report tells of an error on stderr, once for each that was joined into it.
// What the reader of a pipe or the sender of a signal knows anyway is not said.
func (a *app) report(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			a.report(e)
		}
		return
	}
	if c, ok := err.(*configError); ok { //nolint:errorlint // looks at this one, not at what it wraps
		a.report(c.error)
		return
	}
	_, silent := errors.AsType[status](err)
	if err == nil || silent || errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled) {
		return
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		a.complain(e)
		return
	}
	a.say(err.Error())
}

// complain tells of a failure and what would be right.
func (a *app) complain(e *tool.Error) {
	a.say(e.Message)
	if e.Hint != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", clean(e.Hint))
	}
}

// say writes a message to stderr. All that is no log and no output of a program goes through here.
func (a *app) say(message string) {
	fmt.Fprintf(a.stderr, "sallyport: %s\n", strings.TrimRight(clean(message), "\n"))
}

// misuse is a wrong command line.
func misuse(cmd *cobra.Command, format string, args ...any) error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(format, args...), Hint: "see " + cmd.CommandPath() + " --help"}
}

// noArguments refuses any.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse(cmd, "%s takes no arguments, not %.40q", cmd.Name(), args[0])
	}
	return nil
}

// unknownCommand refuses what is no verb.
func unknownCommand(parent *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown command %.40q", args[0]), Hint: "see " + parent.CommandPath() + " --help"}
	var names []string
	for _, cmd := range parent.Commands() {
		names = append(names, cmd.Name())
	}
	if near := nearest.Of(args[0], names); near != "" {
		err.Hint = "did you mean " + parent.CommandPath() + " " + near + "?"
	}
	return err
}

var (
	unknownFlag = regexp.MustCompile(`^unknown flag: --(.*)$`)
	flagInUsage = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)
)

// flagError words what the parser of flags has found.
func flagError(cmd *cobra.Command, err error) error {
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
		if near := nearest.Of(m[1], names); near != "" {
			return &tool.Error{Kind: tool.Invalid, Message: message, Hint: "did you mean --" + near + "?"}
		}
	}
	return misuse(cmd, "%s", message)
}
