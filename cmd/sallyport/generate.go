package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/gateway"
	"sallyport/internal/tool"
)

func generateCommand(a *app) *cobra.Command {
	var g generation
	cmd := &cobra.Command{
		Use:   "generate [flags]",
		Short: "write the servers/ tree to a folder",
		Long: `Generate writes the wrappers of all tools to a folder, as programs see them in
/servers, to be read or to let an editor complete names. Only files that differ
are written. Files that it wrote earlier and that are no longer made are
removed, by the list in ` + manifestName + `; nothing else is ever removed.

The files of an upstream that is not available stay as they are; it is told on
stderr, and the exit status is then 1.`,
		Example: `  sallyport generate
  sallyport generate --out build/servers --lang typescript`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.generate(cmd.Context(), g) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.out, "out", "servers", "write to this `DIR`")
	flags.StringVar(&g.lang, "lang", "all", "write wrappers in `LANGUAGE`: python, typescript or all")
	flags.BoolVar(&g.force, "force", false, "write also to a folder that has other files in it, and over them")
	flags.BoolVar(&g.refresh, "refresh", false, "connect to every upstream and list its tools anew")
	complete(cmd, "lang", "python", "typescript", "all")
	return cmd
}

// generation holds the flags.
type generation struct {
	out, lang string
	force     bool
	refresh   bool
}

func (a *app) generate(ctx context.Context, opts generation) error {
	suffix, ok := map[string]string{"all": "", "python": ".py", "typescript": ".ts"}[opts.lang]
	if !ok {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown language %.40q", opts.lang), Hint: "use python, typescript or all"}
	}
	target, err := openTarget(opts.out, opts.force)
	if err != nil {
		return err
	}
	defer target.close()
	return a.withGateway(ctx, gateway.Options{Settle: patience, Fresh: opts.refresh}, func(ctx context.Context, g *gateway.Gateway) error {
		if err := a.settle(ctx, g); err != nil {
			return err
		}
		ups := g.Upstreams()
		files := maps.Clone(g.Tree())
		maps.DeleteFunc(files, func(path string, _ []byte) bool { return !strings.HasSuffix(path, suffix) || absent(ups, path) })
		counts, err := target.replace(files, func(path string) bool { return strings.HasSuffix(path, suffix) && absent(ups, path) })
		if err != nil {
			return err
		}
		if err := a.print(counts.String() + " in " + opts.out); err != nil {
			return err
		}
		return a.tellMissing(ups)
	})
}

// absent reports whether a file of the tree belongs to an upstream whose tools are not known now.
func absent(ups []gateway.Upstream, path string) bool {
	folder, _, _ := strings.Cut(path, "/")
	for _, up := range ups {
		if up.ID == folder {
			return problem(up) != "" && up.State.Tools == 0
		}
	}
	return false
}
