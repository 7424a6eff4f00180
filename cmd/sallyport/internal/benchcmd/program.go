package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"sallyport/bench/local"
	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/tool"
)

// benchProgram runs one program, and compares it with the same calls made directly.
func (a *app) benchProgram(ctx context.Context, o benchOptions) error {
	p, err := readProgram(o.program)
	if err != nil {
		return err
	}
	return a.withBench(ctx, gateway.Options{NoPool: true}, func(ctx context.Context, b *local.Bench) error {
		c, err := b.Compare(ctx, p)
		if err != nil {
			return err
		}
		if o.asJSON {
			return a.PrintJSON(c)
		}
		return a.Print(comparisonText(c))
	})
}

// withBench opens a gateway for the settings, and calls use when its upstreams are connected. Its journals are not kept.
func (a *app) withBench(ctx context.Context, opts gateway.Options, use func(ctx context.Context, b *local.Bench) error) (err error) {
	cfg, err := a.Load()
	if err == nil {
		err = cli.Platform(cfg)
	}
	if err != nil {
		return err
	}
	if opts.Journals, err = os.MkdirTemp("", "sallyport-bench-"); err != nil {
		return fmt.Errorf("make folder for journals: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(opts.Journals)) }()
	opts.Purpose = "bench"
	return a.WithGateway(ctx, opts, func(ctx context.Context, g *gateway.Gateway) error {
		if err := a.WaitConnected(ctx, g); err != nil {
			return err
		}
		b, err := local.New(g, cli.ToolOptions(cfg, g, a.Logger(0)))
		if err != nil {
			return err
		}
		return use(ctx, b)
	})
}

func readProgram(path string) (p execution.Program, err error) {
	if p.Language, err = cli.LanguageOf(path); err != nil {
		return p, err
	}
	f, err := os.Open(path)
	if err != nil {
		return p, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err}
	}
	defer f.Close()
	code, err := io.ReadAll(io.LimitReader(f, execution.MaxCode+1))
	p.Code = string(code)
	return p, err
}

func comparisonText(c local.Comparison) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The program printed:\n%s\n\nTokens that a model reads and writes, each counted once:\n\n", strings.TrimRight(c.Printed, "\n"))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "DIRECT\tHERE\t  ")
	fmt.Fprintf(w, "%s\t%s\t  definitions of tools, instructions\n", groupDigits(c.Direct.Definitions.O200k), groupDigits(c.Here.Definitions.O200k))
	fmt.Fprintf(w, "%s\t%s\t  one search\n", groupDigits(c.Direct.Search.O200k), groupDigits(c.Here.Search.O200k))
	fmt.Fprintf(w, "%s\t%s\t  %s and their results; the program and its output\n", groupDigits(c.Direct.Work.O200k), groupDigits(c.Here.Work.O200k), cli.Count(c.Calls, "call"))
	fmt.Fprintf(w, "%s\t%s\t  together\n", groupDigits(c.Direct.Total().O200k), groupDigits(c.Here.Total().O200k))
	_ = w.Flush() // to a Builder, which cannot fail
	return b.String()
}
