package config

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"sallyport/internal/secretvalue"
)

// Secret is one value that may be secret.
type Secret = secretvalue.Secret

// Secrets maps names to values that may be secret: the environment of a process or the headers of a request.
type Secrets = secretvalue.Map

// String names the upstream and its transport and shows no value that may have
// come from a variable: arguments and URLs carry secrets as often as headers do.
func (u Upstream) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "upstream %q (", u.Name)
	switch {
	case u.IsAPI():
		key, _ := u.document()
		fmt.Fprintf(&b, "%s, headers %v, query %v", key, u.Headers, u.Query)
	case len(u.Tools) > 0:
		fmt.Fprintf(&b, "%d tools, env %v", len(u.Tools), u.Env)
	case u.Egress != nil:
		fmt.Fprintf(&b, "egress to %d hosts", len(u.Egress.All()))
	case u.URL != "":
		fmt.Fprintf(&b, "http, headers %v", u.Headers)
		if u.Auth.isSet() {
			fmt.Fprintf(&b, ", auth %v", u.Auth)
		}
	default:
		fmt.Fprintf(&b, "stdio, %d args, env %v", len(u.Args), u.Env)
	}
	if u.Disabled {
		b.WriteString(", disabled")
	}
	return b.String() + ")"
}

// Format writes String for every verb, so that no %v, %+v or %#v shows a secret.
func (u Upstream) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// MarshalText returns String, for JSON, YAML and slog's handlers. An Upstream cannot
// be written back to a file, as it has the values of references.
func (u Upstream) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// LogValue returns String.
func (u Upstream) LogValue() slog.Value { return slog.StringValue(u.String()) }

// String returns the type only, as client ids and scopes may come from variables, too.
func (a Auth) String() string { return cmp.Or(a.Type, "auto") }

// Format writes String for every verb.
func (a Auth) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, a.String()) }

// MarshalText returns String.
func (a Auth) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// LogValue returns String.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }
