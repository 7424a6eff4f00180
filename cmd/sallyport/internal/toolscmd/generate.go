package toolscmd

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/codegen"
	"sallyport/codegen/client"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/internal/tool"
)

// GenerateCommand returns the verb.
func GenerateCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var g generateFlags
	cmd := &cobra.Command{
		Use:   "generate [flags]",
		Short: "write wrappers of all tools for your own programs",
		Long: `Generate writes two packages to a folder, for programs that run outside of any
sandbox: servers/ with the wrappers of all tools, and sallyport/ with the same
functions as in a sandbox. Calls go over HTTP to a running gateway: start it with
"sallyport serve --http", and set its address with SALLYPORT_URL and
SALLYPORT_TOKEN, or with connect of sallyport. sallyport/PYTHON.md and
sallyport/TYPESCRIPT.md describe how to import them.

With --lang json it writes model/UPSTREAM/TOOL.json instead: what the wrappers
are generated from, for debugging. Members: tool, wire, params, extra, notes,
result, observed, defs, pages.

Only files that differ are written. Files that it wrote earlier and no longer
generates are removed, by the list in ` + manifestName + `; no other file is
ever removed.

The files of an upstream that is not available stay unchanged; the upstream is
reported on stderr, and the exit status is then 1.`,
		Example: `  sallyport generate
  sallyport generate --out build --lang typescript
  sallyport generate --out /tmp/model --lang json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.generate(cmd.Context(), g) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.out, "out", ".", "write servers/ and sallyport/ to this `DIR`")
	flags.StringVar(&g.lang, "lang", "all", "write for `LANGUAGE`: python, typescript, all, or json (the model)")
	flags.BoolVar(&g.force, "force", false, "write also to folders that have other files in them, and over them")
	flags.BoolVar(&g.refresh, "refresh", false, "connect to every upstream and list its tools again")
	cli.CompleteFlag(cmd, "lang", "python", "typescript", "all", "json")
	return cmd
}

// generateFlags holds the flags of generate.
type generateFlags struct {
	out, lang string
	force     bool
	refresh   bool
}

// extensions returns the file extensions of the wrappers in the language, nil if it is unknown.
func (g generateFlags) extensions() []string {
	return map[string][]string{"all": {".py", ".ts", ".js"}, "python": {".py"}, "typescript": {".ts", ".js"}, "json": {".json"}}[g.lang]
}

func (a *app) generate(ctx context.Context, opts generateFlags) error {
	endings := opts.extensions()
	if endings == nil {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown language %.40q", opts.lang), Hint: "use python, typescript, all or json"}
	}
	target, err := openTarget(opts.out, opts.force, "servers", "sallyport", "model")
	if err != nil {
		return err
	}
	defer target.close()
	return a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout, Fresh: opts.refresh}, func(ctx context.Context, g *gateway.Gateway) error {
		if err := a.WaitConnected(ctx, g); err != nil {
			return err
		}
		ups := g.Catalog.Upstreams()
		files, err := opts.files(g, ups)
		if err != nil {
			return err
		}
		counts, err := target.replace(files, func(path string) bool {
			folder, inside, _ := strings.Cut(path, "/")
			if (folder == "model") != (opts.lang == "json") { // writing the model keeps the wrappers, and vice versa
				return true
			}
			return slices.Contains(endings, filepath.Ext(path)) && absent(ups, inside)
		})
		if err != nil {
			return err
		}
		if err := a.Print(counts.String() + " in " + opts.out); err != nil {
			return err
		}
		return a.ReportMissing(ups)
	})
}

// files returns the generated files by path.
func (g generateFlags) files(gw *gateway.Gateway, ups []catalog.Upstream) (map[string][]byte, error) {
	if g.lang == "json" {
		files := map[string][]byte{}
		for _, t := range gw.Catalog.Tools() {
			files["model/"+t.ID.Upstream+"/"+t.ID.Name+".json"] = codegen.Dump(t)
		}
		return files, nil
	}
	tree := maps.Clone(gw.Catalog.Tree())
	maps.DeleteFunc(tree, func(path string, _ []byte) bool { return absent(ups, path) })
	files, err := client.Files(tree, map[string]codegen.Language{"python": codegen.Python, "typescript": codegen.TypeScript}[g.lang])
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	return files, nil
}

// absent reports whether a file of the tree belongs to an upstream with unknown tools.
func absent(ups []catalog.Upstream, path string) bool {
	folder, _, _ := strings.Cut(path, "/")
	for _, up := range ups {
		if up.ID == folder {
			return cli.UpstreamProblem(up) != "" && up.State.Tools == 0
		}
	}
	return false
}
