package upstreamscmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

func upstreamsTestCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [flags] [NAME...]",
		Short: "test the connections to upstreams",
		Long: `Test connects to the named upstreams, or to all that are not disabled, and prints
what each offers, or why it cannot be reached.

Exit status: 0 if all answer, 1 if one does not.`,
		Example: `  sallyport upstreams test
  sallyport upstreams test files --json | jq '.upstreams[].tools'`,
		RunE: func(cmd *cobra.Command, names []string) error { return a.upstreamsTest(cmd.Context(), names, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// testResult is the result of a connection to one upstream.
type testResult struct {
	Name      string `json:"name"`
	OK        bool   `json:"ok"`
	Problem   string `json:"problem,omitempty"`
	Fix       string `json:"fix,omitempty"`
	Stderr    string `json:"stderr,omitempty"`
	Protocol  string `json:"protocol,omitempty"`
	Server    string `json:"server,omitempty"`
	Tools     int    `json:"tools"`
	Resources int    `json:"resources"`
	Templates int    `json:"resource_templates"`
	Prompts   int    `json:"prompts"`
	Millis    int64  `json:"milliseconds"`

	tools []string // names, as add shows them
	held  int
}

func (a *app) upstreamsTest(ctx context.Context, names []string, asJSON bool) error {
	return a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout}, func(ctx context.Context, g *gateway.Gateway) error {
		var ups []catalog.Upstream
		for _, name := range names {
			one, err := cli.SelectUpstreams(g.Catalog.Upstreams(), name)
			if err != nil {
				return a.explainMissing(name, err)
			}
			ups = append(ups, one...)
		}
		if len(names) == 0 {
			ups = g.Catalog.Upstreams()
		}
		trials := a.testAll(ctx, g, ups, !asJSON)
		if err := ctx.Err(); err != nil {
			return err
		}
		return a.printResults(trials, asJSON)
	})
}

// explainMissing returns a better error than err if an upstream was not found because it is disabled.
func (a *app) explainMissing(name string, err error) error {
	cfg, glance := a.ReadSettings()
	if glance != nil {
		return err
	}
	for _, up := range cfg.Upstreams {
		if up.Disabled && (up.Name == name || up.ID == name) {
			return &tool.Error{Kind: tool.NotFound, Message: "upstream " + name + " is disabled", Hint: "sallyport upstreams enable " + name}
		}
	}
	return err
}

// testAll connects to all upstreams concurrently and returns the results. With tell it prints which ones take long.
func (a *app) testAll(ctx context.Context, g *gateway.Gateway, ups []catalog.Upstream, tell bool) []testResult {
	trials := make([]testResult, len(ups))
	var all sync.WaitGroup
	done := make(chan struct{})
	for i, up := range ups {
		all.Go(func() {
			start := time.Now()
			err := g.Catalog.Test(ctx, up.ID)
			trials[i] = testResult{Name: up.Name, OK: err == nil, Millis: time.Since(start).Milliseconds()}
			if err != nil {
				trials[i].Problem = cli.Clean(err.Error())
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	p := a.Progress("testing "+cli.Count(len(ups), "upstream"), 0)
	defer p.Stop()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		if late := cli.ConnectingUpstreams(g); tell && !p.Visible() && len(late) > 0 {
			a.Say("waiting for " + strings.Join(late, ", "))
		}
		<-done
	}
	g.Catalog.WaitConnected(ctx)
	for i, up := range ups {
		trials[i].addState(g, up.ID)
	}
	return trials
}

// addState fills in the state and the offer of the upstream.
func (t *testResult) addState(g *gateway.Gateway, id string) {
	for _, up := range g.Catalog.Offers() {
		if up.ID != id {
			continue
		}
		t.Protocol, t.Server = sanitize.Line(up.State.Protocol, 20), sanitize.Line(up.State.ServerName+" "+up.State.ServerVersion, 80)
		t.Tools, t.Resources, t.Templates, t.Prompts = up.State.Tools, len(up.Offer.Resources), len(up.Offer.Templates), len(up.Offer.Prompts)
		if !t.OK {
			t.Fix, t.Stderr = catalog.Remedy(t.Problem), cli.LastLines(up.State.Stderr)
		}
	}
}

func (a *app) printResults(trials []testResult, asJSON bool) error {
	var err error
	for _, t := range trials {
		if !t.OK {
			err = cli.Status(cli.ExitFailed)
		}
	}
	if asJSON {
		return errors.Join(a.PrintJSON(struct {
			Upstreams []testResult `json:"upstreams"`
		}{trials}), err)
	}
	if len(trials) == 0 {
		a.Say("no upstreams to test")
	}
	for _, t := range trials {
		if e := a.PrintFinding(t.String()); e != nil {
			return e
		}
	}
	return err
}

// String formats the result as text: a line, with details of a failure below it.
func (t testResult) String() string {
	const indent = "\n      "
	if !t.OK {
		text := fmt.Sprintf("FAIL  %s: %s", t.Name, strings.ReplaceAll(t.Problem, "\n", indent))
		if t.Stderr != "" {
			text += indent + "stderr: " + strings.ReplaceAll(t.Stderr, "\n", indent+"        ")
		}
		return text + indent + "fix: " + t.Fix
	}
	offer := cli.Count(t.Tools, "tool")
	if n := t.Resources + t.Templates; n > 0 {
		offer += ", " + cli.Count(n, "resource")
	}
	if t.Prompts > 0 {
		offer += ", " + cli.Count(t.Prompts, "prompt")
	}
	return fmt.Sprintf("ok    %s: %s, protocol %s, %s, %d ms", t.Name, strings.TrimSpace(t.Server), t.Protocol, offer, t.Millis)
}
