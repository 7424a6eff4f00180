package benchcmd

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sallyport/cmd/sallyport/internal/cli"
)

// benchOptions are the flags of bench that are not about a model.
type benchOptions struct {
	asJSON, noCalls bool
	pool            bool
	only, program   string
	runs            int
}

// defaultBenchRuns is how often bench takes each measurement by default.
const defaultBenchRuns = 10

// Command returns the verb.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var o benchOptions
	var m modelOptions
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "measure the savings with your own upstreams",
		Long: `Bench measures the tokens that a model reads at every turn with the tools of all
upstreams in its context, and with sallyport; the cost of a search; and from which
turn on sallyport reads less, if ever.

Then it calls tools, each once directly and once from a program, and counts the
tokens that a model reads either way. It calls only read-only tools without
required arguments that the policy allows without approval. The calls are in the
audit record like all others, and their results are not stored. --no-calls skips
them.

Last it measures times on this machine: start, search, programs and calls. For
these it repeats the fastest tool, four times for each of --runs and at most 200
times. With --only latency that is the first tool that answers.

With --program it runs FILE instead, and counts the tokens that a model reads and
writes with it, and if it made the same calls directly. With --pool it measures the
first program and the following ones, with and without waiting sandboxes.

With --model an agent with a real model works on built-in tasks instead, in each
mode; the settings are not used then.`,
		Example: `  sallyport bench
  sallyport bench --only tokens --no-calls
  sallyport bench --json | jq .tokens.per_turn
  sallyport bench --program report.py
  sallyport bench --model http://localhost:11434/v1 --name qwen3`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd, m); err != nil {
				return err
			}
			if m.URL != "" {
				m.Runs, m.JSON = max(o.runs, 1), o.asJSON
				return a.benchModel(cmd.Context(), m)
			}
			if o.program != "" {
				return a.benchProgram(cmd.Context(), o)
			}
			if o.pool {
				return a.benchPool(cmd.Context(), o)
			}
			return a.bench(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object, with every tool and all versions; with\n--model a line of JSON for each task, mode and run")
	flags.StringVar(&o.only, "only", "", "measure only `WHAT`: tokens or latency")
	flags.IntVar(&o.runs, "runs", 0, "take each time `N` times (default 10); with --model, do each\ntask N times (default 1)")
	flags.BoolVar(&o.noCalls, "no-calls", false, "call no tool of any upstream")
	flags.StringVar(&o.program, "program", "", "run `FILE`, and compare its tokens with those of direct calls")
	flags.BoolVar(&o.pool, "pool", false, "measure programs with and without waiting sandboxes")
	m.flags(flags)
	cli.CompleteFlag(cmd, "only", "tokens", "latency")
	return cmd
}

// check refuses flags that do not go together.
func (o *benchOptions) check(cmd *cobra.Command, m modelOptions) error {
	switch {
	case o.only != "" && o.only != "tokens" && o.only != "latency":
		return cli.Misuse(cmd, "--only is tokens or latency, not %.40q", o.only)
	case o.program != "" && (o.pool || o.only != "" || o.noCalls || o.runs != 0):
		return cli.Misuse(cmd, "of the other flags only --json goes with --program")
	case o.pool && (o.only != "" || o.noCalls):
		return cli.Misuse(cmd, "of the other flags only --json and --runs go with --pool")
	case o.runs < 0 || o.runs == 0 && cmd.Flags().Changed("runs"):
		return cli.Misuse(cmd, "--runs must be at least 1")
	}
	return checkModelFlags(cmd, m)
}

// checkModelFlags refuses model flags without --model, and other flags with it.
func checkModelFlags(cmd *cobra.Command, m modelOptions) (err error) {
	of := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&modelOptions{}).flags(of)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		mine := of.Lookup(f.Name) != nil
		switch {
		case f.Name == "model" && m.URL == "":
			err = cli.Misuse(cmd, "--model needs the URL of an endpoint")
		case err != nil || f.Name == "json" || f.Name == "runs" || cmd.InheritedFlags().Lookup(f.Name) != nil:
		case mine && m.URL == "":
			err = cli.Misuse(cmd, "--%s goes with --model URL", f.Name)
		case !mine && m.URL != "":
			err = cli.Misuse(cmd, "--%s does not go with --model", f.Name)
		}
	})
	return err
}
