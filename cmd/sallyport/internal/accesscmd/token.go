package accesscmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/access"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// TokenCommand returns the verb.
func TokenCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "token COMMAND",
		Short: "make and revoke tokens for serve --http",
		Long: `Token manages bearer tokens for serve --http, each with its scopes. The data
directory stores only their digests, so a token is shown only when it is made.
A running gateway notices a new or revoked token at once.

Scopes: mcp (speak MCP, at /mcp), read (see tools, upstreams and what is one's
own), execute (run programs), call (call single tools), workflow (start runs),
files (change files of one's own workspaces), metrics (read /metrics), operate
(see all of everybody, and answer what waits for a person).`,
		Example: `  sallyport token create laptop --scope mcp
  sallyport token create grafana --scope metrics --expires 365d
  sallyport token list
  sallyport token revoke laptop`,
	}
	return cli.Group(cmd, tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
}

func tokenCreateCommand(a *app) *cobra.Command {
	var scopes []string
	var expires, rate string
	cmd := &cobra.Command{
		Use:     "create [flags] NAME",
		Short:   "make a token, and print it",
		Long:    "Create makes a token and prints it, only this once. Requests with it have the\nprincipal token:NAME, with workspaces and records of its own.",
		Example: "  sallyport token create ci --scope execute,read --expires 90d --rate 60/m",
		Args:    cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			wish, err := parseTokenSpec(args[0], scopes, expires, rate)
			if err != nil {
				return cli.Misuse(cmd, "%s", err.Error())
			}
			return cli.UseTokens(cmd.Context(), a.App, func(ctx context.Context, in access.Place) error { return a.createToken(ctx, in, wish) })
		},
	}
	var names []string
	for _, scope := range tool.Scopes() {
		names = append(names, string(scope))
	}
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "what it may do: `SCOPES` of "+strings.Join(names[:5], ", ")+",\n"+strings.Join(names[5:], ", "))
	cmd.Flags().StringVar(&expires, "expires", "", "it is valid for `TIME`, such as 90d or 12h; without, until it is revoked")
	cmd.Flags().StringVar(&rate, "rate", "", "it may make `RATE` requests, such as 60/m, instead of\nhttp.limits.requests")
	cli.CompleteFlag(cmd, "scope", names...)
	return cmd
}

// parseTokenSpec returns the token to create for the flags of create.
func parseTokenSpec(name string, scopes []string, expires, rate string) (w access.TokenSpec, err error) {
	w.Name = name
	if w.Scopes, err = access.ParseScopes(scopes); err != nil {
		return w, err
	}
	if expires != "" {
		if w.Lifetime, err = parseLifetime(expires); err != nil {
			return w, err
		}
	}
	if rate != "" {
		w.Rate, err = access.ParseRate(rate)
	}
	return w, err
}

// parseLifetime parses a lifetime of at least a second.
func parseLifetime(text string) (time.Duration, error) {
	life, ok := cli.ParseSpan(text)
	if !ok || life < time.Second {
		return 0, errors.New("--expires is a time, such as 90d, 12h or 30m")
	}
	return life, nil
}

func (a *app) createToken(ctx context.Context, in access.Place, w access.TokenSpec) error {
	if cfg, err := a.Load(); err == nil { // without settings there is no other token with this name
		if _, taken := cfg.HTTP.Tokens[w.Name]; taken {
			return &tool.Error{Kind: tool.Invalid, Message: "http.tokens has a token " + w.Name + " already", Hint: "both would be the principal token:" + w.Name + "; use another name"}
		}
	}
	text, made, err := access.Create(ctx, in, w)
	if err != nil {
		return err
	}
	if err := a.RecordEvents(audit.Event{Kind: audit.TokenMade, Note: fmt.Sprintf("%s: %s; %s", w.Name, scopeText(made.Scopes), expiryText(made))}); err != nil {
		return errors.Join(err, access.Revoke(ctx, in, w.Name)) // the token was not shown yet
	}
	note := "it is shown this once; " + expiryText(made)
	a.Say(note)
	return a.Print(text)
}

func expiryText(t access.Token) string {
	if t.Expires == nil {
		return "it is valid until: sallyport token revoke " + t.Name
	}
	return "it is valid until " + t.Expires.Format(time.RFC3339)
}

func tokenListCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list [flags]",
		Short:   "list the tokens",
		Example: "  sallyport token list",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.UseTokens(cmd.Context(), a.App, func(ctx context.Context, in access.Place) error { return a.listTokens(ctx, in, asJSON) })
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// tokensJSON is what list --json prints.
type tokensJSON struct {
	Tokens []tokenJSON `json:"tokens"`
}

// tokenJSON is one token of it.
type tokenJSON struct {
	Name    string       `json:"name"`
	ID      string       `json:"id"`
	Scopes  []tool.Scope `json:"scopes"`
	Created time.Time    `json:"created"`
	Expires *time.Time   `json:"expires,omitempty"`
	Used    *time.Time   `json:"used,omitempty"`
	Rate    access.Rate  `json:"rate,omitzero"`
	Expired bool         `json:"expired"`
}

func (a *app) listTokens(ctx context.Context, in access.Place, asJSON bool) error {
	all, err := access.List(ctx, in)
	if err != nil {
		return err
	}
	list := []tokenJSON{}
	for _, t := range all {
		list = append(list, tokenJSON{t.Name, t.ID, t.Scopes, t.Created, t.Expires, t.Used, t.Rate, t.Expired(time.Now())})
	}
	if asJSON {
		return a.PrintJSON(tokensJSON{list})
	}
	if len(list) == 0 {
		a.Say("there are no tokens; sallyport token create makes one")
		return nil
	}
	return a.printTokens(list)
}

func (a *app) printTokens(list []tokenJSON) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSCOPES\tCREATED\tEXPIRES\tLAST USED\tRATE")
	for _, t := range list {
		expires := "-"
		if t.Expires != nil {
			expires = t.Expires.Local().Format(time.DateOnly)
		}
		if t.Expired {
			expires = "expired"
		}
		used, rate := "never", "-"
		if t.Used != nil {
			used = cli.Age(*t.Used) + " ago"
		}
		if t.Rate.Count > 0 {
			rate = t.Rate.String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cli.Cell(t.Name, 63), cli.Cell(scopeText(t.Scopes), 80), t.Created.Local().Format(time.DateOnly), expires, used, rate)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

// scopeText returns scopes in the form of --scope.
func scopeText(scopes []tool.Scope) string {
	var all []string
	for _, s := range scopes {
		all = append(all, string(s))
	}
	return strings.Join(all, ",")
}

func tokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke [flags] NAME",
		Short:   "end a token",
		Long:    "Revoke ends a token and the sessions that it has begun: a running gateway refuses\nit at once, and closes its open connections within seconds.",
		Example: "  sallyport token revoke ci",
		Args:    cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.UseTokens(cmd.Context(), a.App, func(ctx context.Context, in access.Place) error { return access.Revoke(ctx, in, args[0]) }); err != nil {
				return err
			}
			a.Say("revoked")
			return a.RecordEvents(audit.Event{Kind: audit.TokenRevoked, Note: args[0]}) // it is revoked even if this fails
		},
	}
}
