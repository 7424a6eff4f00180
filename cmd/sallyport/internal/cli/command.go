package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// Group makes cmd the parent of other commands. Without one of them it prints its help on stderr, and the exit status is that of
// a wrong command line.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = UnknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SetOut(cmd.ErrOrStderr())
		return errors.Join(cmd.Help(), Status(ExitUsage))
	}
	cmd.AddCommand(subs...)
	return cmd
}

// OneObject is the usage of the flag --json.
const OneObject = "print one JSON object"

// JSONFlag adds the flag --json of a command that prints one JSON object: of a list, with the list as a member.
func JSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, OneObject)
}

// JSONLinesFlag adds the flag --json of a command that prints records one after the other.
func JSONLinesFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON objects, one to a line")
}

// SomeNames returns an error unless there are arguments, names of what.
func SomeNames(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Misuse(cmd, "%s takes one %s or several", cmd.Name(), strings.ToUpper(what))
		}
		return nil
	}
}

// MaybeName returns an error if there is more than one argument.
func MaybeName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return Misuse(cmd, "%s takes at most one NAME, not %.40q too", cmd.Name(), args[1])
	}
	return nil
}
