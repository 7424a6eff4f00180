// Package cli is shared by the verbs of sallyport: the streams and the environment of the process, settings, access to a gateway in
// this process or another, output, and errors with their exit statuses.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/secretstore"
	"sallyport/internal/settingsfile"
	"sallyport/internal/suggest"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// App has the streams and the environment of the process, and the global flags. All verbs share it.
type App struct {
	Env            func(string) (string, bool)
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	ConfigPath string
	DataPath   string
	LogLevel   string
	// remote overrides sandbox.remote of the settings; only some verbs have the flag.
	remote string
	// secrets reads secret managers; see managedSecrets.
	secrets     *secretstore.Store
	openSecrets sync.Once
	// logins are those of upstreams, see ShareLogins.
	logins logins
	// progress is what is shown now, nil for nothing.
	progress atomic.Pointer[Progress]
}

// levels returns the levels by their names in --log-level.
func levels() map[string]slog.Level {
	return map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
}

// CheckLevel returns an error if --log-level is unknown.
func (a *App) CheckLevel() error {
	if _, ok := levels()[a.LogLevel]; ok || a.LogLevel == "" {
		return nil
	}
	hint := "use debug, info, warn or error"
	if near := suggest.Of(a.LogLevel, []string{"debug", "info", "warn", "error"}); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown log level %.40q", a.LogLevel), Hint: hint}
}

// Logger returns a logger to stderr with the level of --log-level, or usual without it.
func (a *App) Logger(usual slog.Level) *slog.Logger {
	level, ok := levels()[a.LogLevel]
	if !ok {
		level = usual
	}
	return slog.New(telemetry.LogHandler(slog.NewTextHandler(a.Err(), &slog.HandlerOptions{Level: level})))
}

// Load reads the settings. Errors are *[ConfigError].
func (a *App) Load() (*config.Config, error) {
	path, err := settingsfile.Find(a.ConfigPath, a.Env)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	cfg, err := config.Sources{Getenv: a.Env, Managers: managedSecrets(a)}.Load(path)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	if a.remote == "" {
		return cfg, nil
	}
	cfg.Sandbox.Remote = a.remote
	if err := cfg.Validate(); err != nil {
		return nil, &ConfigError{Err: err}
	}
	return cfg, nil
}

// managedSecrets returns the store of secrets from secret managers, which all loads of the settings share.
func managedSecrets(a *App) *secretstore.Store {
	a.openSecrets.Do(func() {
		a.secrets = secretstore.New(&secretstore.Options{Getenv: a.Env, Logger: a.Logger(slog.LevelWarn)})
	})
	return a.secrets
}

// SandboxFlag adds the flag --sandbox, which runs programs on another machine.
func (a *App) SandboxFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.remote, "sandbox", "", "run programs on another machine, a Linux one that has sallyport: `URL`\nis ssh://[USER@]HOST[:PORT][/PATH], lima://NAME or wsl://[USER@]NAME,\nor workers for those that have joined\n(default sandbox.remote in upstreams.yaml, or this machine)")
}

// Platform returns an error if programs cannot run on this platform with these settings.
func Platform(cfg *config.Config) error {
	if cfg.Sandbox.Remote != "" {
		return nil
	}
	return sandbox.Platform()
}

// ConnectTimeout bounds the wait for the connections to upstreams, for commands that need them.
const ConnectTimeout = 2 * time.Minute

// WaitConnected waits until the upstreams are connected or have failed, and prints their names if that takes long.
func (a *App) WaitConnected(ctx context.Context, g *gateway.Gateway) error {
	return a.WaitFor(ctx, g, g.Catalog.WaitConnected)
}

// WaitFor calls wait, and prints the upstreams that are still connecting if that takes long.
func (a *App) WaitFor(ctx context.Context, g *gateway.Gateway, wait func(ctx context.Context)) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait(ctx)
	}()
	p := a.Progress("connecting to "+strings.Join(ConnectingUpstreams(g), ", "), 0)
	defer p.Stop()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		if late := ConnectingUpstreams(g); len(late) > 0 && !p.Visible() {
			a.Say("waiting for " + strings.Join(late, ", "))
		}
		<-done
	}
	return ctx.Err()
}

// ConnectingUpstreams returns the upstreams that are still connecting.
func ConnectingUpstreams(g *gateway.Gateway) []string {
	var ids []string
	for _, up := range g.Catalog.Upstreams() {
		if up.State.Status == upstream.Connecting || up.State.Status == upstream.Idle && !up.Cached {
			ids = append(ids, up.ID)
		}
	}
	return ids
}

// UpstreamProblem returns why an upstream is not available, "" if it is, or would be when it is called.
func UpstreamProblem(up catalog.Upstream) string {
	switch {
	case up.State.Status == upstream.Ready, up.State.Error == "" && up.Known:
		return ""
	case up.State.Error != "":
		return Clean(up.State.Error)
	}
	return "still connecting to upstream " + up.ID
}

// UpstreamStatus returns the state of an upstream in a word or two.
func UpstreamStatus(up catalog.Upstream) string {
	if up.Cached && (up.State.Status == upstream.Idle) {
		return "cached, not started"
	}
	return string(up.State.Status)
}

// Count formats a number with a noun: "1 tool", "2 tools".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// CompleteFlag registers values for the completion of a flag. It panics if the flag does not exist.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// CheckLogin returns an error if an upstream cannot have an OAuth login.
func CheckLogin(up config.Upstream) error {
	var why string
	switch {
	case up.Problem != "":
		why = up.Problem
	case up.URL == "":
		why = "it is not an HTTP upstream"
	case AuthType(up) == "none":
		why = "its auth.type is none"
	case AuthType(up) == "header":
		why = "it has an Authorization header in the settings"
	default:
		return nil
	}
	return &tool.Error{Kind: tool.Invalid, Message: "upstream " + up.Name + " has no login: " + why}
}

// NewAuthorizer returns the login of a principal at an upstream over HTTP, of "" the one that all share: an API key, or OAuth. The
// principal logs in at that page, "" for none, or comes with one of the subjects; nil for none.
func (a *App) NewAuthorizer(up config.Upstream, principal, page string, subjects *access.Subjects) oauth.Authorizer {
	settings := oauth.Settings{
		Principal: principal, LoginPage: page,
		ID: up.ID, URL: up.URL, Socket: up.Socket, TLS: up.TLS, Type: up.Auth.Type, ClientID: up.Auth.ClientID, ClientSecret: string(up.Auth.ClientSecret),
		ClientMetadata: up.Auth.ClientMetadata, Scopes: up.Auth.Scopes, RedirectPort: up.Auth.RedirectPort, Issuer: up.Auth.Issuer, Store: up.Auth.Store,
	}
	if e := up.Auth.Exchange; e != nil && principal != "" {
		settings.Exchange = &oauth.Exchange{Exchange: *e, Subject: func(issuer, kind string) (access.Subject, bool) { return subjects.Get(principal, issuer, kind) }}
	}
	opts := &oauth.Options{Dir: oauth.Dir(a.Env), Records: a.logins.records()}
	if up.Auth.Type == config.AuthKey {
		return oauth.NewKey(settings, up.Auth.Header, opts)
	}
	return oauth.New(settings, opts)
}

// requestRelease asks standby processes to release the records, and reports whether one does.
func requestRelease(ctx context.Context, a *App) (given bool) {
	_ = a.WithGateways(ctx, func(ctx context.Context, c *Gateways) error {
		for _, gate := range c.All {
			var nothing struct{}
			given = DoJSON(ctx, gate, http.MethodPost, "/release", nothing, &nothing) == nil || given
		}
		return nil
	})
	return given
}

// releaseTimeout bounds the wait for a standby to release the records.
const releaseTimeout = 20 * time.Second

// RecordsFolder is the folder of the records in the data directory.
const RecordsFolder = "records"

// Cell returns text as one line of at most most characters for a table, "-" if it is empty.
func Cell(text string, most int) string { return cmp.Or(sanitize.Line(text, most), "-") }

// Age formats the time since then in one unit: 5s, 3m, 7h or 2d.
func Age(then time.Time) string {
	d := time.Since(then)
	switch {
	case d < time.Minute:
		return fmt.Sprint(max(0, int(d.Seconds())), "s")
	case d < time.Hour:
		return fmt.Sprint(int(d.Minutes()), "m")
	case d < 48*time.Hour:
		return fmt.Sprint(int(d.Hours()), "h")
	}
	return fmt.Sprint(int(d.Hours()/24), "d")
}

// OneID returns an error unless there is one argument, an id.
func OneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return Misuse(cmd, "%s takes one ID", cmd.Name())
	}
	return nil
}

// AuthType returns how the gateway authenticates to an upstream over HTTP: auth.type, header, or "" for neither.
func AuthType(up config.Upstream) string {
	if up.URL == "" {
		return ""
	}
	if up.Auth.Type != "" {
		return up.Auth.Type
	}
	for name := range up.Headers {
		if strings.EqualFold(name, "Authorization") {
			return "header"
		}
	}
	return ""
}
