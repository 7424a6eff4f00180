package config

import (
	"maps"
	"slices"
	"strings"

	"sallyport/internal/redact"
	"sallyport/internal/secretstore"
)

// SecretValues returns the secret values in the settings, by the ID of the upstream whose entry has them,
// "" for all others. Values from a file, a keyring or a secret manager are always secret.
func (c *Config) SecretValues() map[string][]string {
	all := map[string][]string{"": c.ownSecrets()}
	for _, up := range c.Upstreams {
		all[up.ID] = append(all[up.ID], up.SecretValues()...)
	}
	for owner, references := range c.References {
		all[owner] = append(all[owner], secretsIn(references)...)
	}
	for owner := range all {
		slices.Sort(all[owner])
		all[owner] = slices.DeleteFunc(slices.Compact(all[owner]), func(s string) bool { return s == "" || c.isUnread(s) })
	}
	return all
}

// isUnread reports whether a value has a reference to a secret manager in place of a secret that could not be read. Messages
// name such references.
func (c *Config) isUnread(value string) bool {
	return slices.ContainsFunc(c.ManagedSecrets, func(s ManagedSecret) bool {
		return s.Problem != "" && strings.Contains(value, "${"+s.Name+"}")
	})
}

// secretsIn returns the secret values of references.
func secretsIn(references Secrets) (secrets []string) {
	for name, value := range references {
		if strings.HasPrefix(name, "file:") || strings.HasPrefix(name, "keyring:") || secretstore.Owns(name) {
			secrets = append(secrets, value)
		}
		secrets = append(secrets, redact.Value(name, value)...)
	}
	return secrets
}

// SecretValues returns the secrets in an upstream's entry.
func (u Upstream) SecretValues() (all []string) {
	if u.Isolate != nil {
		for _, host := range slices.Concat(u.Isolate.Hosts, u.Isolate.PrivateHosts) {
			all = append(all, redact.Values(host.Header)...)
		}
	}
	if u.Egress != nil {
		for _, host := range u.Egress.All() {
			all = append(all, redact.Values(host.Header)...)
		}
	}
	return slices.Concat(all, redact.Values(u.Env), redact.Values(u.Headers), redact.Args(u.Args), redact.OfURL(u.URL), redact.Values(u.Query), redact.OfURL(u.OpenAPI+u.GraphQL+u.GRPC), []string{string(u.Auth.ClientSecret), u.Auth.Exchange.Secret(), string(u.Basic.Password)})
}

// ownSecrets returns the secrets that belong to no upstream.
func (c *Config) ownSecrets() []string {
	all := slices.Concat(slices.Collect(maps.Values(c.HTTP.Tokens)), slices.Collect(maps.Values(c.Workflows.Secrets)), redact.OfURL(c.Sandbox.Remote))
	if l := c.HTTP.Login; l != nil {
		all = append(all, string(l.ClientSecret))
	}
	if e := c.Search.Embeddings; e != nil {
		all = slices.Concat(all, redact.Values(e.Headers), redact.OfURL(e.URL))
	}
	for _, m := range c.Models {
		all = append(all, m.secretValues()...)
	}
	for _, g := range c.Plugins {
		all = append(all, slices.Collect(maps.Values(g.Secrets))...)
	}
	for _, a := range c.Alerts {
		all = append(all, a.SecretValues()...)
	}
	if r := c.Privacy.Recognizer; r != nil {
		all = append(all, r.secretValues()...)
	}
	return slices.Concat(all, c.Audit.Sinks.SecretValues(), c.Telemetry.SecretValues(), c.Store.SecretValues(), c.SecretManagers.SecretValues())
}
