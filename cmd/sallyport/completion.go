package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/trust"
	"sallyport/internal/access"
	"sallyport/internal/audit"
	"sallyport/internal/clients"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// completionTimeout bounds a lookup of completions, which may ask a running gateway.
const completionTimeout = 2 * time.Second

// nameSource returns completions for a shell, each optionally followed by a tab and a description.
type nameSource func(ctx context.Context) []string

// addCompletions registers the completion of arguments for all verbs. Verbs without an entry complete no files.
func (a *app) addCompletions(root *cobra.Command) {
	one := map[string]nameSource{
		"call": a.toolIDs, "policy try": a.toolIDs, "auth login": a.upstreamNames, "auth logout": a.upstreamNames, "auth status": a.upstreamNames,
		"upstreams remove": a.upstreamNames, "upstreams edit": a.upstreamNames, "upstreams logs": a.upstreamNames, "upstreams review": a.upstreamNames,
		"executions show": a.executionIDs, "explain": a.executionIDs, "workflow from-execution": a.executionIDs,
		"approvals approve": a.approvalIDs, "approvals deny": a.approvalIDs,
		"skills show": a.skillNames, "token revoke": a.tokenNames, "skills review": a.pendingSkills, "install": knownClients,
	}
	several := map[string]nameSource{
		"upstreams enable": a.upstreamNames, "upstreams disable": a.upstreamNames, "upstreams restart": a.upstreamNames,
		"upstreams test": a.upstreamNames, "upstreams approve": a.upstreamNames,
		"skills rm": a.skillNames, "skills approve": a.pendingSkills, "skills reject": a.pendingSkills,
	}
	files := []string{"exec", "backup", "restore", "import", "man", "workflow lint"}
	var visit func(cmd *cobra.Command, path string)
	visit = func(cmd *cobra.Command, path string) {
		list, many := several[path]
		if !many {
			list = one[path]
		}
		switch {
		case cmd.ValidArgsFunction != nil || slices.Contains(files, path):
		case list != nil:
			cmd.ValidArgsFunction = completeNames(list, many)
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for flag, list := range map[string]nameSource{"upstream": a.upstreamNames, "environment": a.environmentNames, "workspace": a.workspaceNames,
			"execution": a.executionIDs, "tool": a.toolIDs} {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, completeNames(list, true)) // fails only if the flag has one already
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub, joinWords(path, sub.Name()))
		}
	}
	visit(root, "")
}

func joinWords(path, name string) string {
	if path == "" {
		return name
	}
	return path + " " + name
}

// completeNames completes the first argument with names, or with many each argument, without those already given.
func completeNames(list nameSource, many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return slices.DeleteFunc(list(ctx), func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// The sources of names. One that fails returns none: a shell cannot show an error.

func (a *app) upstreamNames(context.Context) (list []string) {
	if cfg, err := a.ReadSettings(); err == nil {
		for _, up := range cfg.Upstreams {
			list = append(list, up.Name)
		}
	}
	return list
}

func (a *app) environmentNames(context.Context) (list []string) {
	if cfg, err := a.ReadSettings(); err == nil {
		list = slices.Sorted(maps.Keys(cfg.Environments))
	}
	return list
}

func (a *app) workspaceNames(context.Context) (list []string) {
	if cfg, err := a.ReadSettings(); err == nil {
		list = slices.Sorted(maps.Keys(cfg.Workspaces))
	}
	return list
}

// skillNames returns the skills of local clients and the shared skills.
func (a *app) skillNames(context.Context) (list []string) {
	_ = a.withSkills(func(s *skill.Store) error {
		list = append(s.Names(""), s.SharedNames()...)
		return nil
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// pendingSkills returns the skills that wait for approval to be shared.
func (a *app) pendingSkills(context.Context) (list []string) {
	_ = a.withSkills(func(s *skill.Store) error {
		list = s.Pending()
		return nil
	})
	return list
}

func (a *app) tokenNames(ctx context.Context) (list []string) {
	_ = cli.UseTokens(ctx, a.App, func(ctx context.Context, in access.Place) error {
		tokens, err := access.List(ctx, in)
		for _, one := range tokens {
			list = append(list, one.Name)
		}
		return err
	})
	return list
}

func knownClients(context.Context) (list []string) {
	for _, one := range clients.All() {
		list = append(list, one.Name)
	}
	return list
}

// toolIDs returns the tools of the gateways that run; else those in the lock file, as it would take too long to connect.
func (a *app) toolIDs(ctx context.Context) (list []string) {
	_ = a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return cli.GetFromAll(ctx, c, "/tools?limit=1000", func(got httpapi.ToolList) {
			for _, t := range got.Tools {
				list = append(list, cli.Cell(t.ID.String(), 150)+"\t"+cli.Cell(t.Description, 60))
			}
		})
	})
	if len(list) == 0 {
		list = a.pinnedTools()
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// pinnedTools returns the tools in the lock file of the upstreams that are not disabled.
func (a *app) pinnedTools() (list []string) {
	cfg, err := a.ReadSettings()
	if err != nil {
		return nil
	}
	names, err := trust.ReadNames(filepath.Join(cfg.Dir, trust.FileName))
	if err != nil {
		return nil
	}
	for _, up := range cfg.Upstreams {
		for _, name := range tool.Identifiers(names[up.Name]) {
			if !up.Disabled {
				list = append(list, tool.ID{Upstream: up.ID, Name: name}.String())
			}
		}
	}
	return list
}

// executionIDs returns the executions of running gateways, else those in the audit record. It does not open stored records, which
// would take too long.
func (a *app) executionIDs(ctx context.Context) (list []string) {
	_ = a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return cli.GetFromAll(ctx, c, "/executions?limit=20", func(got httpapi.ExecutionList) {
			for _, e := range got.Executions {
				list = append(list, fmt.Sprintf("%s\t%s, %s ago", cli.Cell(e.ID, 40), cli.Cell(e.Status, 20), cli.Age(e.Started)))
			}
		})
	})
	if len(list) == 0 {
		list = a.auditedIDs(ctx, audit.ExecutionEnd, func(r audit.Record) (id, about string) { return r.Execution, r.Outcome })
	}
	return list
}

// auditedDays is how many days of the audit record are read for completions, auditedMost how many it returns.
const (
	auditedDays = 7
	auditedMost = 20
)

// auditedIDs returns the last ids of the records of a kind, the newest first.
func (a *app) auditedIDs(ctx context.Context, kind audit.Kind, of func(audit.Record) (id, about string)) (list []string) {
	dir := audit.Dir(a.DataDir())
	first, err := audit.Since(dir, time.Now().AddDate(0, 0, -auditedDays))
	if err != nil {
		return nil
	}
	for r, damaged := range audit.Read(dir, first) {
		if ctx.Err() != nil {
			break
		}
		if damaged == nil && r.Kind == kind {
			id, about := of(r)
			list = append(list, fmt.Sprintf("%s\t%s, %s ago", cli.Cell(id, 40), cli.Cell(about, 60), cli.Age(r.Time)))
		}
	}
	slices.Reverse(list)
	return list[:min(len(list), auditedMost)]
}

func (a *app) approvalIDs(ctx context.Context) (list []string) {
	_ = a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		all, err := cli.PendingApprovals(ctx, c, false)
		for _, one := range all {
			list = append(list, cli.Cell(one.ID, 40)+"\t"+cli.Cell(one.Tool, 60))
		}
		return err
	})
	return list
}
