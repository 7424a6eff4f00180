package upstreamscmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/addition"
	"sallyport/internal/clients"
	"sallyport/internal/config"
	"sallyport/internal/settingsfile"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/internal/yamledit"
)

func upstreamsAddCommand(a *app) *cobra.Command {
	var e settingsfile.Entry
	var headers, env, hosts []string
	cmd := &cobra.Command{
		Use:   "add NAME [flags] {{--url | --openapi | --graphql | --grpc | --egress} WHERE | -- COMMAND [ARG...]}",
		Short: "add an upstream to the settings",
		Long: `Add appends an upstream to upstreams.yaml; the rest of the file is not changed. The
file is created if it does not exist. The upstream is not started; see sallyport
upstreams test.

Write secrets as references to variables, in quotes for the shell:
'${TICKETS_TOKEN}'. The variable is read when sallyport starts.`,
		Example: `  sallyport upstreams add files -- npx -y @modelcontextprotocol/server-filesystem /data
  sallyport upstreams add tickets --url https://tickets.example.com/mcp \
    --header 'Authorization=Bearer ${TICKETS_TOKEN}'
  sallyport upstreams add pets --openapi ./pets.yaml --url https://pets.example.com/v1
  sallyport upstreams add shop --graphql https://shop.example.com/graphql
  sallyport upstreams add orders --grpc https://orders.example.com
  sallyport upstreams add web --egress api.example.com --egress status.example.com`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Egress = settingsfile.NewEgress(hosts)
			if err := upstreamFrom(cmd, &e, args, headers, env); err != nil {
				return err
			}
			return a.upstreamsAdd(e)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&e.URL, "url", "", "the `URL` of a server that speaks streamable HTTP or SSE")
	flags.StringVar(&e.OpenAPI, "openapi", "", "the OpenAPI `DOCUMENT` of an HTTP API, a file or URL; --url then is the\nURL of the API, default that in the document")
	flags.StringVar(&e.GraphQL, "graphql", "", "the URL of a GraphQL `API`, or a file with its schema; --url then is the\nURL of the API")
	flags.StringVar(&e.GRPC, "grpc", "", "the `URL` of a gRPC server, or a file with its descriptor set; --url then is\nthe URL of the server")
	flags.StringArrayVar(&hosts, "egress", nil, "let programs send HTTP requests to a `HOST`, by functions; may be repeated")
	flags.StringArrayVar(&headers, "header", nil, "send a header `NAME=VALUE` with every request; may be repeated")
	flags.StringArrayVar(&env, "env", nil, "set a variable `NAME=VALUE` for the command; may be repeated")
	flags.StringVar(&e.Dir, "cwd", "", "start the command in this `DIR`")
	flags.StringVar(&e.Description, "description", "", "tell models in a few `WORDS` what they would find there")
	return cmd
}

// upstreamFrom reads the command line into e.
func upstreamFrom(cmd *cobra.Command, e *settingsfile.Entry, args, headers, env []string) (err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	}
	command := args[dash:]
	local := len(command) > 0 || e.Egress != nil
	switch {
	case dash == 0:
		return cli.Misuse(cmd, "add needs the name of the upstream")
	case dash > 1:
		return cli.Misuse(cmd, "add takes one name, not also %.40q; a command comes after --", args[1])
	case !e.Remote() && !local:
		return cli.Misuse(cmd, "add needs --url URL, --openapi DOCUMENT, --graphql API, --grpc URL, --egress HOST, or -- and a command")
	case e.Remote() && local || e.Egress != nil && len(command) > 0 || severalOf(e.OpenAPI, e.GraphQL, e.GRPC):
		return cli.Misuse(cmd, "add takes a --url, an --openapi, a --graphql, a --grpc, --egress or a command, not both")
	}
	e.Name = args[0]
	if len(command) > 0 {
		e.Command, e.Args = command[0], command[1:]
	}
	if e.Headers, err = pairs(cmd, "header", headers); err != nil {
		return err
	}
	e.Env, err = pairs(cmd, "env", env)
	return err
}

// severalOf reports whether more than one text is not "".
func severalOf(texts ...string) bool {
	return len(slices.DeleteFunc(texts, func(s string) bool { return s == "" })) > 1
}

// pairs parses NAME=VALUE; a header may also have a colon. Errors show no value.
func pairs(cmd *cobra.Command, flag string, texts []string) (settingsfile.Values, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all := settingsfile.Values{}
	for _, text := range texts {
		at := strings.IndexByte(text, '=')
		if colon := strings.IndexByte(text, ':'); flag == "header" && colon >= 0 && (at < 0 || colon < at) {
			at = colon
		}
		if at <= 0 {
			return nil, cli.Misuse(cmd, "--%s must be NAME=VALUE", flag)
		}
		name := strings.TrimSpace(text[:at])
		if _, twice := all[name]; twice {
			return nil, cli.Misuse(cmd, "--%s %.80s is given twice", flag, name)
		}
		all[name] = strings.TrimSpace(text[at+1:])
	}
	return all, nil
}

func (a *app) upstreamsAdd(e settingsfile.Entry) error {
	f, err := a.EditSettings()
	if err != nil {
		return err
	}
	for _, document := range []*string{&e.OpenAPI, &e.GraphQL, &e.GRPC} {
		if *document, err = addition.DocumentPath(f.Path, *document); err != nil {
			return err
		}
	}
	if err := f.Add(e); err != nil {
		return editError(f, e.Name, err)
	}
	if err := f.Save(); err != nil {
		return err
	}
	a.reportUnset(f, e)
	a.warnOfSecrets(e)
	return a.Print(fmt.Sprintf("added %s to %s; try it: sallyport upstreams test %s", e.Name, f.Path, e.Name))
}

// warnOfSecrets warns of values in the file that look like secrets.
func (a *app) warnOfSecrets(e settingsfile.Entry) {
	var names []string
	for _, values := range []settingsfile.Values{e.Env, e.Headers, e.Query, {"the URL": e.URL}} {
		for name, value := range values {
			if clients.LooksSecret(name, value) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		a.Say("looks like a secret, and is in the file in plain text: " + strings.Join(names, ", ") + "; better remove it and add it with '${VARIABLE}'")
	}
}

func upstreamsRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "remove an upstream from the settings",
		Long: `Remove takes one upstream out of upstreams.yaml, with the comment directly above
it; the rest of the file is not changed.`,
		Example: "  sallyport upstreams remove files",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Misuse(cmd, "remove needs the name of one upstream")
			}
			return a.upstreamsRemove(args[0])
		},
	}
}

func (a *app) upstreamsRemove(name string) error {
	f, err := a.EditSettings()
	if err != nil {
		return err
	}
	if err := f.Remove(name); err != nil {
		return editError(f, name, err)
	}
	if err := f.Save(); err != nil {
		return err
	}
	return a.Print("removed " + name + " from " + f.Path)
}

// editError adds a hint to an error of an edit of the settings.
func editError(f *settingsfile.File, name string, err error) error {
	if _, wrong := errors.AsType[*config.Error](err); wrong {
		return &cli.ConfigError{Err: fmt.Errorf("%s was not changed, as it would not load:\n%w", f.Path, err)}
	}
	fault := &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err}
	entries, _ := f.Entries()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	switch {
	case errors.Is(err, yamledit.ErrMissing):
		fault.Message = fmt.Sprintf("there is no upstream %.80q in %s", name, f.Path)
		fault.Hint = "there are " + strings.Join(names, ", ")
		if near := suggest.Of(name, names); near != "" {
			fault.Hint = "did you mean " + near + "?"
		} else if len(names) == 0 {
			fault.Hint = "there is none"
		}
	case errors.Is(err, yamledit.ErrExists):
		fault.Message = fmt.Sprintf("there is an upstream %q in %s already", name, f.Path)
		fault.Hint = "choose another name, or remove that one first: sallyport upstreams remove " + name
	}
	return fault
}

// reportUnset prints the variables that have no value yet.
func (a *app) reportUnset(f *settingsfile.File, entries ...settingsfile.Entry) {
	if names := a.UnsetVariables(f, entries...); len(names) > 0 {
		a.Say("set before you start sallyport: " + strings.Join(names, ", "))
	}
}
