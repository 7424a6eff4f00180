package upstreamscmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/connections"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/config"
	"sallyport/internal/secret"
	"sallyport/internal/suggest"
	"sallyport/internal/terminal"
	"sallyport/internal/tool"
)

// AuthCommand returns the parent of the verbs about logins and secrets.
func AuthCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "auth COMMAND",
		Short: "log in to upstreams, and keep secrets",
		Long:  "Auth logs in to upstreams that need OAuth, lists the logins, and puts secrets into\nthe keyring for ${keyring:NAME}.",
		Example: `  sallyport auth login tickets
  sallyport auth status`,
	}
	return cli.Group(cmd, authLoginCommand(a), authStatusCommand(a), authLogoutCommand(a), authSetCommand(a))
}

type loginFlags struct {
	scopes           []string
	noBrowser, paste bool
	wait             time.Duration
	principal        string
}

// principalFlag adds the flag for the login of one principal.
func principalFlag(cmd *cobra.Command, principal *string) {
	cmd.Flags().StringVar(principal, "principal", "", "the login of `PRINCIPAL` (such as token:ada), where auth.per is principal")
}

func authLoginCommand(a *app) *cobra.Command {
	var flags loginFlags
	cmd := &cobra.Command{
		Use:   "login [flags] UPSTREAM",
		Short: "log in to an upstream",
		Long: `Login opens the upstream's login page in a browser, waits for the answer and
stores the tokens. A running gateway uses them without a restart. For an upstream
with auth.type key it reads an API key from stdin instead; input at a terminal is
not shown.`,
		Example: `  sallyport auth login tickets
  sallyport auth login crm --principal token:ada < key.txt
  sallyport auth login tickets --scope tickets:write
  sallyport auth login tickets --paste    the browser is on another machine`,
		Args: oneUpstream,
		RunE: func(cmd *cobra.Command, args []string) error { return a.authLogin(cmd.Context(), args[0], flags) },
	}
	cmd.Flags().StringArrayVar(&flags.scopes, "scope", nil, "ask for `SCOPE` too; may be given more than once")
	cmd.Flags().BoolVar(&flags.noBrowser, "no-browser", false, "open no browser, only print the page's URL")
	cmd.Flags().BoolVar(&flags.paste, "paste", false, "read the final URL of the browser from stdin")
	cmd.Flags().DurationVar(&flags.wait, "wait", 5*time.Minute, "wait for the answer for `DURATION`")
	principalFlag(cmd, &flags.principal)
	return cmd
}

func oneUpstream(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Misuse(cmd, "%s takes the name of one upstream", cmd.Name())
	}
	return nil
}

func (a *app) authLogin(ctx context.Context, name string, flags loginFlags) error {
	h, up, err := a.authorizer(name, flags.principal)
	if err != nil {
		return err
	}
	if saver, ok := h.(connections.Saver); ok {
		return a.saveKey(ctx, saver, up)
	}
	login, ok := h.(interface {
		Login(ctx context.Context, how oauth.Login) error
	})
	if !ok {
		return &tool.Error{Kind: tool.Invalid, Message: "upstream " + up.Name + " has no login page"}
	}
	ctx, cancel := context.WithTimeout(ctx, flags.wait)
	defer cancel()
	how := oauth.Login{Scopes: flags.scopes, Show: func(page string) {
		a.Say("open this page to log in to " + up.Name + ":\n" + page)
		if flags.paste {
			a.Say("then paste the final URL of the browser (it cannot load that page):")
		}
	}}
	if flags.paste {
		how.Paste = a.Stdin
	} else if !flags.noBrowser {
		how.Browse = cli.OpenBrowser
	}
	if err := login.Login(ctx, how); err != nil {
		return err
	}
	state, err := h.Status()
	if err != nil {
		return err
	}
	return a.Print("logged in to " + up.Name + " (tokens are in the " + state.Store + ")")
}

// saveKey reads an API key and stores it.
func (a *app) saveKey(ctx context.Context, saver connections.Saver, up config.Upstream) error {
	key, err := a.readSecret(ctx)
	if err != nil {
		return fmt.Errorf("read the key: %w", err)
	}
	if err := saver.Save(ctx, key); err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: err.Error()}
	}
	return a.Print("stored the API key for " + up.Name)
}

// authorizer returns the login at an upstream by its name or its id, for the login of a principal, "" for the one that
// all share.
func (a *app) authorizer(name, principal string) (oauth.Authorizer, config.Upstream, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, config.Upstream{}, err
	}
	cli.ShareLogins(a.App, cfg, nil)
	var names []string
	for _, up := range cfg.Upstreams {
		if up.Name == name || up.ID == name {
			err := cli.CheckLogin(up)
			if err == nil && principal != "" && up.Auth.Per != config.PerPrincipal {
				err = &tool.Error{Kind: tool.Invalid, Message: "all principals share one login at " + up.Name, Hint: "auth.per: principal in its settings gives each one its own"}
			}
			return a.NewAuthorizer(up, principal, "", nil), up, err
		}
		names = append(names, up.Name)
	}
	unknown := &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("no upstream %.40q in %s", name, cfg.Path), Hint: "see sallyport upstreams list"}
	if near := suggest.Of(name, names); near != "" {
		unknown.Hint = "did you mean " + near + "?"
	}
	return nil, config.Upstream{}, unknown
}

func authStatusCommand(a *app) *cobra.Command {
	var asJSON bool
	var principal string
	cmd := &cobra.Command{
		Use:     "status [flags] [UPSTREAM]",
		Short:   "list the logins",
		Long:    "Status prints the logins to the upstreams over HTTP, or to one of them. It contacts\nno server, and prints no token.",
		Example: "  sallyport auth status\n  sallyport auth status tickets --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return oneUpstream(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.authStatus(args, principal, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	principalFlag(cmd, &principal)
	return cmd
}

// loginJSON is one upstream as auth status --json prints it.
type loginJSON struct {
	Name    string    `json:"name"`
	Auth    string    `json:"auth"`
	State   string    `json:"state"`
	Since   time.Time `json:"since,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	Renewed time.Time `json:"renewed,omitzero"`
	Issuer  string    `json:"issuer,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Store   string    `json:"store,omitempty"`
}

func (a *app) authStatus(args []string, principal string, asJSON bool) error {
	list := struct {
		Logins []loginJSON `json:"logins"`
	}{[]loginJSON{}}
	if len(args) == 1 {
		h, up, err := a.authorizer(args[0], principal)
		if err != nil {
			return err
		}
		list.Logins = append(list.Logins, loginOf(h, up))
	} else {
		cfg, err := a.Load()
		if err != nil {
			return err
		}
		cli.ShareLogins(a.App, cfg, nil)
		for _, up := range cfg.Upstreams {
			if up.URL != "" && !up.Disabled && (principal == "" || up.Auth.Per == config.PerPrincipal) {
				list.Logins = append(list.Logins, loginOf(a.NewAuthorizer(up, principal, "", nil), up))
			}
		}
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list.Logins) == 0 {
		a.Say("no upstreams over HTTP in the settings")
		return nil
	}
	return a.printLogins(list.Logins)
}

func loginOf(h connections.Login, up config.Upstream) loginJSON {
	l := loginJSON{Name: up.Name, Auth: cmp.Or(cli.AuthType(up), "oauth")}
	if up.Problem != "" {
		l.State = up.Problem
		return l
	}
	if cli.CheckLogin(up) != nil || l.Auth == "client_credentials" {
		l.State = "needs no login"
		return l
	}
	s, err := h.Status()
	l.Since, l.Expires, l.Renewed, l.Issuer, l.Scopes, l.Store = s.Since, s.Expires, s.Renewed, s.Issuer, s.Scopes, s.Store
	switch {
	case err != nil:
		l.State = err.Error()
	case s.LoggedIn && !s.Renewable && !s.Expires.IsZero() && s.Expires.Before(time.Now()):
		l.State = "the login has expired"
	case s.LoggedIn:
		l.State = "logged in"
	default:
		l.State = cmp.Or(s.Ended, "not logged in")
	}
	return l
}

func (a *app) printLogins(list []loginJSON) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tAUTH\tSTATE\tSINCE\tTOKEN UNTIL\tSTORE\tSCOPES")
	for _, l := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, l.Auth, l.State, formatTime(l.Since), formatTime(l.Expires),
			cmp.Or(l.Store, "-"), cmp.Or(strings.Join(l.Scopes, " "), "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func authLogoutCommand(a *app) *cobra.Command {
	var principal string
	cmd := &cobra.Command{
		Use:     "logout UPSTREAM",
		Short:   "forget a login",
		Long:    "Logout revokes the tokens of an upstream, if its server can do that, and forgets them.",
		Example: "  sallyport auth logout tickets",
		Args:    oneUpstream,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.authLogout(cmd.Context(), args[0], principal) },
	}
	principalFlag(cmd, &principal)
	return cmd
}

func (a *app) authLogout(ctx context.Context, name, principal string) error {
	h, up, err := a.authorizer(name, principal)
	if err != nil {
		return err
	}
	was, revoked, err := h.Logout(ctx)
	switch {
	case err != nil:
		return err
	case !was:
		return a.Print("there was no login to " + up.Name)
	case revoked:
		return a.Print("logged out of " + up.Name + "; its tokens are revoked")
	case up.Auth.Type == config.AuthKey:
		return a.Print("deleted the API key for " + up.Name + "; it stays valid until you revoke it there")
	}
	return a.Print("logged out of " + up.Name + "; its server cannot revoke tokens, so they stay valid until they expire")
}

// secretName matches the names of ${keyring:NAME}. Logins have names of another form.
var secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func authSetCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "set NAME",
		Short:   "put a secret into the keyring",
		Long:    "Set reads a secret from stdin and puts it into the keyring of the system, where\n${keyring:NAME} in upstreams.yaml finds it. One newline at its end is removed.\nInput at a terminal is not shown.",
		Example: "  sallyport auth set tickets\n  sallyport auth set tickets < token.txt",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !secretName.MatchString(args[0]) {
				return cli.Misuse(cmd, `set takes one name: letters, digits, ".", "_" and "-"`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.authSet(cmd.Context(), args[0]) },
	}
}

func (a *app) authSet(ctx context.Context, name string) error {
	value, err := a.readSecret(ctx)
	if err != nil {
		return fmt.Errorf("read the secret: %w", err)
	}
	if err := secret.Set(name, value); err != nil {
		return err
	}
	return a.Print("stored; use ${keyring:" + name + "} in upstreams.yaml")
}

// readSecret reads all of stdin, or a hidden line if stdin is a terminal.
func (a *app) readSecret(ctx context.Context) (string, error) {
	if tty, ok := a.Stdin.(*os.File); ok && cli.IsTerminal(tty) {
		return readHidden(ctx, tty, func() { a.Say("type or paste the secret (it is not shown), then Enter:") })
	}
	value, err := io.ReadAll(io.LimitReader(a.Stdin, secret.MaxSize+3))
	return strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r"), err
}

// maxTerminalLine is the longest line that a terminal accepts, in bytes. It drops the rest without an error.
const maxTerminalLine = 4095

// readHidden calls ask and reads a line from a terminal without echo. It restores the
// terminal's mode.
func readHidden(ctx context.Context, tty *os.File, ask func()) (string, error) {
	restore, err := terminal.HideInput(tty)
	if err != nil {
		return "", err
	}
	defer restore()
	ask()
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the process: a read of a terminal cannot be canceled
		line, err := bufio.NewReader(tty).ReadString('\n')
		answers <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-answers:
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return "", got.err
		}
		if len(got.line) >= maxTerminalLine {
			return "", errors.New("a terminal takes no line that long; put it into a file and use: sallyport auth set NAME < FILE")
		}
		return strings.TrimRight(got.line, "\r\n"), nil
	}
}
