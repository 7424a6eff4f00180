package upstreamscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/isolation"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
	"sallyport/internal/yamledit"
)

func upstreamsProfileCommand(a *app) *cobra.Command {
	var calls []string
	var write bool
	cmd := &cobra.Command{
		Use:   "profile [flags] NAME",
		Short: "find what an isolated upstream needs",
		Long: `Profile starts the process of an upstream in a sandbox without any hosts and files,
lists its tools, makes the calls of --call, and prints the setting isolate that allows
what it was refused: hosts that it asked for, files of this machine that it looked for,
a home that it wrote to. Read it before you use it: a server may ask for more than it
needs. With --write the setting is added to the upstream in upstreams.yaml; what is
there already stays.`,
		Example: `  sallyport upstreams profile github
  sallyport upstreams profile github --call 'search_repositories={"query": "x"}' --write`,
		Args: cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, call := range calls {
				if name, text, ok := strings.Cut(call, "="); !ok || name == "" || !json.Valid([]byte(text)) {
					return cli.Misuse(cmd, "--call is TOOL=JSON, such as 'search={\"query\": \"x\"}'")
				}
			}
			return a.upstreamsProfile(cmd.Context(), args[0], calls, write)
		},
	}
	cmd.Flags().StringArrayVar(&calls, "call", nil, "call a tool with arguments, `TOOL=JSON`; may be repeated")
	cmd.Flags().BoolVar(&write, "write", false, "add the setting to upstreams.yaml")
	return cmd
}

func (a *app) upstreamsProfile(ctx context.Context, name string, calls []string, write bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(cfg.Upstreams, func(up config.Upstream) bool { return up.Name == name || up.ID == name })
	switch {
	case i < 0:
		return &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no upstream %.80q", name), Hint: "sallyport upstreams list"}
	case !cfg.Upstreams[i].HasProcess():
		return &tool.Error{Kind: tool.Invalid, Message: name + " has no command, so no process of it runs here", Hint: "isolate is for upstreams with a command"}
	}
	up := cfg.Upstreams[i]
	now := cmp.Or(up.Isolate, config.DefaultIsolation())
	up.Isolate = config.DefaultIsolation()
	up.Isolate.Image, up.Isolate.Registry, up.Isolate.Limits, up.Disabled = now.Image, now.Registry, now.Limits, false
	cfg.Upstreams = []config.Upstream{up}
	needs, err := a.profile(ctx, cfg, calls)
	if err != nil {
		return err
	}
	if write {
		return a.writeProfile(up.Name, *now, needs)
	}
	needs.Image = now.Image
	return a.Print(blockOf(needs))
}

// profile runs the only upstream of cfg and returns what it needs.
func (a *app) profile(ctx context.Context, cfg *config.Config, calls []string) (needs config.Isolation, err error) {
	profile, err := isolation.NewProfile()
	if err != nil {
		return needs, err
	}
	defer func() { err = errors.Join(err, profile.Close()) }()
	g, err := a.OpenGateway(cfg, a.Logger(slog.LevelError), gateway.Options{ConnectWait: cli.ConnectTimeout, NoPool: true, Purpose: "profile", Profile: profile})
	if err != nil {
		return needs, err
	}
	a.use(tool.WithClient(ctx, "sallyport profile"), g, calls)
	if err := g.Close(); err != nil {
		return needs, err
	}
	return profile.Needs()
}

// use connects to the upstream and makes the calls. What fails is printed: it may fail because of what it was refused.
func (a *app) use(ctx context.Context, g *gateway.Gateway, calls []string) {
	id := g.Catalog.Upstreams()[0].ID
	if err := g.Catalog.Test(ctx, id); err != nil {
		a.Say("it did not start: " + cli.Clean(err.Error()))
		return
	}
	g.Catalog.WaitConnected(ctx)
	for _, call := range calls {
		name, text, _ := strings.Cut(call, "=")
		result, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: id, Name: strings.TrimPrefix(name, id+".")}, Args: json.RawMessage(text)})
		switch {
		case err != nil:
			a.Say(name + " failed: " + cli.Clean(err.Error()))
		case result.IsError:
			a.Say(name + " failed: " + sanitize.Line(result.Text(), 200))
		}
	}
}

// blockOf returns the setting isolate as YAML.
func blockOf(needs config.Isolation) string {
	fields := fieldsOf(needs)
	if len(fields) == 0 {
		return "isolate: true"
	}
	lines := []string{"isolate:"}
	for _, field := range fields {
		lines = append(lines, "  "+field.key+": "+field.value)
	}
	return strings.Join(lines, "\n")
}

// field is one key below isolate, with its value in one line of YAML.
type field struct{ key, value string }

func fieldsOf(i config.Isolation) (all []field) {
	if i.Image != "" {
		all = append(all, field{"image", quote(i.Image)})
	}
	for _, list := range []field{{"hosts", strings.Join(quoted(config.HostNames(i.Hosts)), ", ")}, {"private_hosts", strings.Join(quoted(config.HostNames(i.PrivateHosts)), ", ")}} {
		if list.value != "" {
			all = append(all, field{list.key, "[" + list.value + "]"})
		}
	}
	var mounts []string
	for _, m := range i.Mounts {
		text := "{path: " + quote(strings.ReplaceAll(m.Path, "$", "$$"))
		if m.Mode == config.MountWritable {
			text += ", mode: rw"
		}
		mounts = append(mounts, text+"}")
	}
	if len(mounts) > 0 {
		all = append(all, field{"mounts", "[" + strings.Join(mounts, ", ") + "]"})
	}
	if i.Home == config.HomeKeep {
		all = append(all, field{"home", config.HomeKeep})
	}
	return all
}

func quoted(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, quote(text))
	}
	return all
}

// quote returns a text as a string of YAML.
func quote(text string) string {
	data, _ := json.Marshal(text) // JSON is YAML
	return string(data)
}

// writeProfile adds what an upstream needs to its settings.
func (a *app) writeProfile(name string, now, needs config.Isolation) error {
	for _, m := range now.Mounts {
		if i := slices.IndexFunc(needs.Mounts, func(n config.IsolationMount) bool { return n.Path == m.Path }); i >= 0 {
			needs.Mounts = slices.Delete(needs.Mounts, i, i+1)
		}
	}
	hosts, err := union(now.Hosts, needs.Hosts)
	private, wrong := union(now.PrivateHosts, needs.PrivateHosts)
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	all := config.Isolation{
		Hosts: hosts, PrivateHosts: private, Mounts: append(slices.Clone(now.Mounts), needs.Mounts...), Home: cmp.Or(needs.Home, now.Home),
	}
	err = a.changeSettings(name, func(f *settingsfile.File) error {
		fields := fieldsOf(all)
		for _, one := range fields {
			value, err := yamledit.Inline(one.value)
			if err == nil {
				err = f.SetKey(name, value, "isolate", one.key)
			}
			if err != nil {
				return err
			}
		}
		if len(fields) == 0 && now.Image == "" {
			return f.SetKey(name, "true", "isolate")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.Print("changed " + name + "\n" + blockOf(all))
}

// union returns the hosts of both, nil if those of now have all of them and a header, which is not written. What it would lose is an error.
func union(now, more []config.IsolationHost) ([]config.IsolationHost, error) {
	all := slices.Clone(now)
	for _, host := range more {
		if !slices.ContainsFunc(now, func(h config.IsolationHost) bool { return strings.TrimSuffix(h.Name, ":443") == host.Name }) {
			all = append(all, host)
		}
	}
	if slices.ContainsFunc(now, func(h config.IsolationHost) bool { return len(h.Header) > 0 }) {
		if len(all) == len(now) {
			return nil, nil
		}
		return nil, &tool.Error{
			Kind: tool.Invalid, Message: "a host in the settings has a header, which profile cannot write again", Hint: "add by hand: " + strings.Join(quoted(config.HostNames(all[len(now):])), ", "),
		}
	}
	slices.SortFunc(all, func(a, b config.IsolationHost) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
