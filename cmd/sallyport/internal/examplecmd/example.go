// Package examplecmd has the verbs of sallyport example, which run the examples that are part of the binary.
package examplecmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/examples"
	"sallyport/internal/tool"
)

// app has the verbs.
type app struct{ *cli.App }

// Command returns the verb example.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "example COMMAND",
		Short: "run the examples, from a first call to a task for a model",
		Long: `The examples are part of sallyport: each has settings, programs and a README with
commands and what they print. Their upstreams are sample servers of sallyport, so
they need no network and no other server.`,
		Example: "  sallyport example list\n  sallyport example run 05\n  sallyport example copy 05 state",
	}
	cli.Group(cmd, a.listCommand(), a.runCommand(), a.copyCommand())
	return cmd
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list [flags]", Short: "list the examples", Args: cli.NoArguments, RunE: func(*cobra.Command, []string) error {
		all, err := examples.All()
		if err != nil {
			return err
		}
		if asJSON {
			list := listJSON{[]exampleJSON{}}
			for _, e := range all {
				list.Examples = append(list.Examples, exampleJSON{e.Number(), e.Title})
			}
			return a.PrintJSON(list)
		}
		var b strings.Builder
		for _, e := range all {
			fmt.Fprintf(&b, "%s  %s\n", e.Number(), e.Title)
		}
		return a.Print(b.String())
	}}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// listJSON is what list --json prints.
type listJSON struct {
	Examples []exampleJSON `json:"examples"`
}

type exampleJSON struct {
	Number string `json:"number"`
	Title  string `json:"title"`
}

func (a *app) runCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "run [flags] NUMBER...",
		Short: "run examples, and compare what they print with their README",
		Long: `Run runs the commands of examples in order, in a temporary folder with data of its
own, and prints them with their output. At the end a table has the time of each, its
programs and calls, and tokens: of the programs and what they printed, which a model
writes and reads, and of the results of calls, which a model would read without
programs.

Where an example needs a model and the variables of none are set (OPENAI_API_KEY, or
AZURE_OPENAI_ENDPOINT with AZURE_OPENAI_API_KEY), a scripted model on this machine
takes its part.

Exit status: 0 all printed what their README says; 1 one did not.`,
		Example: "  sallyport example run 05\n  sallyport example run --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if all != (len(args) == 0) {
				return cli.Misuse(cmd, "run needs the NUMBER of an example, or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := choose(args)
			if err != nil {
				return err
			}
			return a.runAll(cmd.Context(), chosen)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "run all of them")
	cmd.ValidArgsFunction = complete
	return cmd
}

func (a *app) copyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy NUMBER [DIR]",
		Short: "write the files of an example to a new folder",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return cli.Misuse(cmd, "copy needs the NUMBER of an example, and may have a DIR")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			chosen, err := choose(args[:1])
			if err != nil {
				return err
			}
			dir := chosen[0].Name
			if len(args) == 2 {
				dir = args[1]
			}
			if err := chosen[0].Copy(dir); err != nil {
				return &tool.Error{Kind: tool.Invalid, Message: "copy the example: " + err.Error(), Err: err, Hint: "name a folder that does not exist"}
			}
			return a.Print("The example is in " + dir + ": its README.md has the commands.")
		},
		ValidArgsFunction: complete,
	}
}

// choose returns the examples with these numbers or names, all without any.
func choose(names []string) ([]examples.Example, error) {
	all, err := examples.All()
	if err != nil || len(names) == 0 {
		return all, err
	}
	var chosen []examples.Example
	for _, name := range names {
		i := slices.IndexFunc(all, func(e examples.Example) bool {
			return e.Name == name || strings.TrimPrefix(e.Number(), "0") == strings.TrimPrefix(name, "0")
		})
		if i < 0 {
			return nil, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no example %.40q", name), Hint: "list them: sallyport example list"}
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func complete(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	all, _ := examples.All()
	for _, e := range all {
		names = append(names, e.Number()+"\t"+e.Title)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
