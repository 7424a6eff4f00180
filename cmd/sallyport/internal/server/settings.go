package server

import (
	"context"
	"time"

	"sallyport/gateway/addition"
	"sallyport/gateway/dashboard"
	"sallyport/gateway/rehearsal"
	"sallyport/gateway/settingsedit"
	"sallyport/internal/config"
	"sallyport/internal/policy"
)

// editSettings lets the dashboard show the policy, and edit the settings file.
func (s *service) editSettings(opts *dashboard.Options) {
	g := s.gateway
	opts.Policy = func() policy.Settings { return g.Reloader.Current().Load().Policy }
	opts.Disabled = func() (names []string) {
		for _, up := range g.Reloader.Current().Load().Upstreams {
			if up.Disabled {
				names = append(names, up.Name)
			}
		}
		return names
	}
	editor := settingsedit.New(settingsedit.Options{
		Path: func() string { return g.Reloader.Settings().Path }, Getenv: s.env, Record: g.Auditor.Audit, Reload: g.Reloader.ReloadNow,
	})
	opts.Editor = editor
	opts.Adder = addition.Adder{Settings: editor, Finder: addition.Finder{Env: s.env}, Test: g.Catalog.Test}
	past := rehearsal.Options{Records: g.Service(), Lookup: g.Catalog.Lookup, Groups: s.directory.Groups}
	opts.Rehearse = func(ctx context.Context, cfg *config.Config) (rehearsal.Outcome, error) {
		rules, err := g.Guard.Compile(cfg)
		if err != nil {
			return rehearsal.Outcome{}, err
		}
		return rehearsal.Run(ctx, past, rules, time.Now().Add(-rehearsal.Span))
	}
}
