package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sallyport/cmd/sallyport/internal/cli"
)

// printHelp prints the help of a command with one write, and ignores the error of a closed pipe.
func printHelp(cmd *cobra.Command, _ []string) {
	_, _ = io.WriteString(cmd.OutOrStdout(), commandHelp(cmd))
}

// commandHelp returns the help of a command.
func commandHelp(cmd *cobra.Command) string {
	local, inherited := cmd.LocalFlags(), cmd.InheritedFlags() // they merge the flags, which the usage line needs
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s", trimRight(cmp.Or(cmd.Long, cmd.Short)), cmd.UseLine())
	b.WriteString(subcommandsText(cmd))
	if cmd.HasExample() {
		b.WriteString("\n\nExamples:\n" + cmd.Example)
	}
	b.WriteString(flagsText("Flags", local) + flagsText("Global flags", inherited) + "\n")
	return b.String()
}

func subcommandsText(cmd *cobra.Command) string {
	if !cmd.HasAvailableSubCommands() {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nCommands:")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			fmt.Fprintf(&b, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	return b.String()
}

func flagsText(title string, flags *pflag.FlagSet) string {
	if !flags.HasAvailableFlags() {
		return ""
	}
	return "\n\n" + title + ":\n" + trimRight(flags.FlagUsages())
}

func trimRight(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "tell how a command is used",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root && len(rest) > 0 {
				return cli.UnknownCommand(root, args)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}
