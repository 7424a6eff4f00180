package initcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// aboveAll is a level that nothing is logged with: init prints what failed itself.
const aboveAll = slog.LevelError + 1

// firstRun connects to the servers, builds the snapshots, and runs a first search and a first program.
func (s *setup) firstRun(ctx context.Context) (err error) {
	cfg, err := s.Load()
	if err != nil {
		return err
	}
	g, err := s.OpenGateway(cfg, s.Logger(aboveAll), gateway.Options{NoPool: true, Fresh: true, Purpose: "init", ConnectWait: cli.ConnectTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	ctx = tool.WithClient(ctx, "sallyport init")
	ready := s.connect(ctx, g)
	if err := ctx.Err(); err != nil {
		return err
	}
	works := s.buildSnapshots(ctx, g, cfg)
	if len(ready) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.firstSearch(ctx, g, ready); err != nil || !works {
		return err
	}
	return s.firstProgram(ctx, g, s.file, ready)
}

// connect waits for the servers and returns those that answer.
func (s *setup) connect(ctx context.Context, g *gateway.Gateway) (ready []catalog.Upstream) {
	bar := s.Progress("starting "+cli.Count(len(g.Catalog.Upstreams()), "server"), 0)
	g.Catalog.WaitConnected(ctx)
	bar.Stop()
	for _, up := range g.Catalog.Upstreams() {
		if why := cli.UpstreamProblem(up); why != "" && ctx.Err() == nil {
			s.fail("server "+up.Name, errors.New(strings.TrimPrefix(why, "cannot connect to upstream "+up.ID+": ")), catalog.Remedy(why)+"; then: sallyport upstreams test "+up.Name)
			continue
		}
		if up.State.Status == upstream.Ready && up.State.Tools > 0 {
			ready = append(ready, up)
		}
	}
	tools := 0
	for _, up := range ready {
		tools += up.State.Tools
	}
	if len(ready) > 0 {
		_ = s.Print(fmt.Sprintf("%s with %s", cli.Plural(len(ready), "server answers", "servers answer"), cli.Count(tools, "function"))) // a closed stdout shows at the end
	}
	return ready
}

// emptyProgram is a program that does nothing, in every language.
const emptyProgram = "0"

// buildSnapshots runs a program in each language, which builds its snapshot, and reports whether Python works.
func (s *setup) buildSnapshots(ctx context.Context, g *gateway.Gateway, cfg *config.Config) (works bool) {
	if err := cli.Platform(cfg); err != nil {
		s.fail("sandbox", err, "see docs/how-to/remote-sandboxes.md")
		return false
	}
	bar := s.Progress("building snapshots", 2)
	start := time.Now()
	var faults []error
	for i, language := range []string{"python", "typescript"} {
		bar.Step(i, "building the snapshot of "+language)
		result, err := g.Executor.Execute(ctx, execution.Program{Code: emptyProgram, Language: language})
		if err == nil && result.Failed() {
			err = errors.New(result.Text())
		}
		faults = append(faults, err)
	}
	bar.Stop()
	if ctx.Err() != nil {
		return false
	}
	if errors.Join(faults...) == nil {
		_ = s.Print(fmt.Sprintf("sandboxes with Python and TypeScript work; their snapshots were ready after %.1fs", time.Since(start).Seconds()))
	}
	s.reportSandboxes(faults[0], faults[1])
	return faults[0] == nil
}

// reportSandboxes prints why programs of a language cannot run.
func (s *setup) reportSandboxes(python, typescript error) {
	const fix = "run sallyport doctor, which says what is missing"
	if python != nil && typescript != nil && python.Error() == typescript.Error() {
		s.fail("sandboxes", python, fix)
		return
	}
	if python != nil {
		s.fail("sandbox with Python", python, fix)
	}
	if typescript != nil {
		s.fail("sandbox with TypeScript", typescript, fix)
	}
}

// firstSearch searches as a model would for what a server does.
func (s *setup) firstSearch(ctx context.Context, g *gateway.Gateway, ready []catalog.Upstream) error {
	if known, _, ok := knownAmong(s.file, ready); ok {
		s.query = known.query
	} else {
		s.query = queryFor(g, ready[0])
	}
	found, err := g.Searcher.Search(ctx, toolsearch.Request{Query: s.query, Limit: 2})
	if err != nil {
		s.fail("search", err, "run sallyport search "+quoteWord(s.query))
		return ctx.Err()
	}
	return s.Print("\nA first search, as a model would:\n> " + s.query + "\n" + found.Text())
}

// maxQuery is the length of the query for a first search, in words.
const maxQuery = 8

// queryFor returns the beginning of the description of a server's first tool.
func queryFor(g *gateway.Gateway, up catalog.Upstream) string {
	for _, t := range g.Catalog.Tools() {
		if t.ID.Upstream == up.ID && t.Description != "" {
			line, _, _ := strings.Cut(sanitize.Line(t.Description, 120), ". ")
			words := strings.Fields(strings.Map(plain, line))
			return strings.ToLower(strings.Join(words[:min(len(words), maxQuery)], " "))
		}
	}
	return up.Name
}

// plain replaces what a shell would not take as part of a word.
func plain(r rune) rune {
	if strings.ContainsRune("\"'`$\\!*?()[]{}<>|&;#.,:", r) {
		return ' '
	}
	return r
}

// firstProgram runs a program that only reads.
func (s *setup) firstProgram(ctx context.Context, g *gateway.Gateway, f *settingsfile.File, ready []catalog.Upstream) error {
	code := programFor(f, ready)
	result, err := g.Executor.Execute(ctx, execution.Program{Code: code, Language: "python"})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && result.Failed() {
		err = errors.New(result.Text())
	}
	if err != nil {
		s.fail("first program", err, "run sallyport doctor")
		return nil
	}
	return s.Print("\nA first program, in a sandbox:\n" + quote(code) + "\n" + sanitize.Text(result.Text(), maxShown))
}

// maxShown bounds what is shown of a result, in bytes.
const maxShown = 1000

// known is a server with a first search and a first program, which only reads.
type known struct {
	// command is a part of its command line, query the search; NAME is its module in code.
	command, query, code string
}

func knownServers() []known {
	return []known{
		{"server-filesystem", "read a text file", "from servers.NAME import list_allowed_directories\nlist_allowed_directories()"},
		{"server-memory", "read the graph of entities", "from servers.NAME import read_graph\nread_graph()"},
		{"server-everything", "add two numbers", "from servers.NAME import get_sum\nget_sum(a=2, b=40)"},
		{sampleVerb + " shop", "orders of a customer", "from servers.NAME import list_orders\nsum(order[\"amount\"] for order in list_orders()[\"orders\"])"},
	}
}

// knownAmong returns the first of the upstreams that is known, and its module.
func knownAmong(f *settingsfile.File, ready []catalog.Upstream) (k known, module string, ok bool) {
	entries, _ := f.Entries() // without entries, none is known
	for _, up := range ready {
		at := slices.IndexFunc(entries, func(e settingsfile.Entry) bool { return e.Name == up.Name })
		if at < 0 {
			continue
		}
		line := strings.Join(append([]string{entries[at].Command}, entries[at].Args...), " ")
		for _, k := range knownServers() {
			if strings.Contains(line, k.command) {
				return k, up.ID, true
			}
		}
	}
	return known{}, "", false
}

// programFor returns a first program: that of a known server, else one that only looks at the functions.
func programFor(f *settingsfile.File, ready []catalog.Upstream) string {
	if k, module, ok := knownAmong(f, ready); ok {
		return strings.ReplaceAll(k.code, "NAME", module)
	}
	return strings.ReplaceAll("import servers.NAME\n[name for name in dir(servers.NAME) if not name.startswith(\"_\")][:10]", "NAME", ready[0].ID)
}
