package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/redact"
	"sallyport/internal/reference"
	"sallyport/internal/tlsfiles"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Store configures NATS servers that keep the records, in place of the data directory.
type Store struct {
	// URL is the address of a NATS server with JetStream, nats://HOST:PORT or tls://HOST:PORT, or several of one cluster
	// with commas; default none, so that the records are in the data directory.
	URL string
	// Creds is a file with the credentials of the gateway at the servers.
	Creds string
	// Key is a file with 32 random bytes as base64 or hex, which sallyport cluster init writes: logins and sessions are in the store only
	// with it, encrypted. Further lines are older keys.
	Key string
	// TLS is the TLS of the connection.
	TLS tlsfiles.Files
	// Replicas is the number of servers that keep each record: 1, 3 or 5; default 1. A change applies at the next start.
	Replicas int
	// Prefix begins the names of all streams, and is the first word of their subjects; default sallyport. Gateways with the
	// same prefix share their records.
	Prefix string
	// Problem describes references without a value, "" if all have one. Unless it is "", the store must not be used.
	Problem string
}

// IsRemote reports whether records are on the servers of a URL, which may be one without a value.
func (s Store) IsRemote() bool { return s.URL != "" || s.Problem != "" }

func defaultStore() Store { return Store{Replicas: 1, Prefix: "sallyport"} }

// storeDecoder decodes the key store.
type storeDecoder struct{ *decoder }

func (d storeDecoder) store(at path, n *yaml.Node, s *Store) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { s.Problem = withProblem(s.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"url", d.Text(&s.URL)},
		{"creds", d.path(&s.Creds)},
		{"key", d.path(&s.Key)},
		{"tls", func(at path, n *yaml.Node) { tlsDecoder(d).tls(at, n, &s.TLS) }},
		{"replicas", scalar(d.decoder, &s.Replicas, yamlstrict.Count)},
		{"prefix", d.Text(&s.Prefix)},
	})
}

// storePrefix matches a prefix: it is part of the names of streams.
var storePrefix = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)

func (s Store) problems(at path) (all []problem) {
	if s == defaultStore() || s.Problem != "" {
		return nil
	}
	if s.URL == "" {
		all = append(all, problem{at: at, onKey: true, needs: []path{at.To("url"), at.Unknown()}, message: fmt.Sprintf("%s needs %q", label(at), "url")})
	}
	for address := range strings.SplitSeq(s.URL, ",") {
		if wrong := storeURLProblem(address); s.URL != "" && wrong != "" {
			all = append(all, problem{at: at.To("url"), message: wrong})
			break
		}
	}
	if !slices.Contains([]int{1, 3, 5}, s.Replicas) {
		all = append(all, problem{at: at.To("replicas"), message: "replicas must be 1, 3 or 5: a majority of the servers must answer"})
	}
	if !storePrefix.MatchString(s.Prefix) {
		all = append(all, problem{at: at.To("prefix"), message: "a prefix is a letter, then at most 31 letters, digits, \"-\" and \"_\""})
	}
	return append(all, pairProblems(at.To("tls"), s.TLS)...)
}

// storeURLProblem returns what is wrong with the address of a server, "" for nothing.
func storeURLProblem(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return "a server of the store is nats://HOST:PORT or tls://HOST:PORT"
	case u.User != nil:
		return `an address has no user: name a file with credentials as "creds"`
	case text != strings.TrimSpace(text):
		return "there is a space beside a comma"
	}
	return ""
}

// SecretValues returns the parts of the address that may be secret.
func (s Store) SecretValues() []string { return redact.OfURL(s.URL) }

// String shows no value, as all may come from variables.
func (s Store) String() string {
	if s.URL == "" {
		return "store (data directory)"
	}
	return fmt.Sprintf("store (nats, %d replicas)", s.Replicas)
}

// Format writes String for every verb.
func (s Store) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns String.
func (s Store) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s Store) LogValue() slog.Value { return slog.StringValue(s.String()) }
