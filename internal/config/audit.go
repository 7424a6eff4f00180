package config

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"sallyport/internal/redact"
	"sallyport/internal/reference"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Audit configures the audit record, which is in the data directory.
type Audit struct {
	// Off turns the record off.
	Off bool
	// Required reports that the settings have enabled: true. Then the gateway does not start without a record.
	Required bool
	// Code is what is recorded of programs: their digest, or their text; default digest.
	Code string
	// Keep is how long a record is kept; default 90 days.
	Keep time.Duration
	// Size bounds the files of the record; default 1GiB. The oldest files are removed.
	Size Size
	// Sinks are additional destinations of records.
	Sinks AuditSinks
}

// The values of Audit.Code.
const (
	AuditDigest = "digest"
	AuditText   = "text"
)

// AuditSinks are destinations of records in addition to the files; each is nil if it is not configured.
type AuditSinks struct {
	// Syslog is a syslog server (RFC 5424).
	Syslog *Syslog
	// OTLP is a collector for OTLP over HTTP.
	OTLP *OTLP
	// SurrealDB is a database that gets a record of each execution, in the table execution_log.
	SurrealDB *SurrealDB
	// Problem describes references without a value, "" if all have one. Unless it is "", nothing may be sent.
	Problem string
}

// Syslog is a syslog server (RFC 5424).
type Syslog struct {
	// Address is the address of the server: unix:PATH, udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT.
	Address string
	// Facility is a number from 0 to 23; default 13 (log audit).
	Facility int
}

// OTLP is a collector for OTLP over HTTP.
type OTLP struct {
	// URL is the URL of the endpoint. "/v1/logs" for records, "/v1/traces" and "/v1/metrics" for telemetry are
	// appended unless it ends with that.
	URL string
	// Headers are sent with every request.
	Headers Secrets
}

// SurrealDB is a database that gets a record of each execution, in the table execution_log.
type SurrealDB struct {
	// URL is the URL of the server, as in http://127.0.0.1:8000.
	URL string
	// Namespace is the namespace of the database.
	Namespace string
	// Database is the name of the database.
	Database string
	// User is the name of the user.
	User string
	// Password is the password of the user.
	Password Secret
	// Token is a token to use instead of user and password.
	Token Secret
	// Output also sends the output of programs, up to 4 KiB of each, which is then part of the record. Default false.
	Output bool
}

func (d *decoder) audit(at path, n *yaml.Node, a *Audit) {
	// Whether there is a record; default true. If the file has it, the gateway does not start without a record.
	enabled := true
	seen := d.Fields(at, n, []key{
		{"enabled", scalar(d, &enabled, yamlstrict.Bool)},
		{"code", d.OneOf(&a.Code, AuditDigest, AuditText)},
		{"keep", scalar(d, &a.Keep, yamlstrict.Age)},
		{"size", scalar(d, &a.Size, parseSize)},
		{"sinks", func(at path, n *yaml.Node) { d.auditSinks(at, n, &a.Sinks) }},
	})
	a.Off, a.Required = !enabled, enabled && seen["enabled"]
}

func (d *decoder) auditSinks(at path, n *yaml.Node, s *AuditSinks) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { s.Problem = withProblem(s.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"syslog", func(at path, n *yaml.Node) {
			s.Syslog = &Syslog{Facility: 13}
			d.Fields(at, n, []key{{"address", d.Text(&s.Syslog.Address)}, {"facility", scalar(d, &s.Syslog.Facility, yamlstrict.Count)}})
		}},
		{"otlp", func(at path, n *yaml.Node) {
			s.OTLP = &OTLP{}
			d.Fields(at, n, []key{{"url", d.Text(&s.OTLP.URL)}, {"headers", d.secrets(&s.OTLP.Headers)}})
		}},
		{"surrealdb", func(at path, n *yaml.Node) { s.SurrealDB = &SurrealDB{}; d.surrealDB(at, n, s.SurrealDB) }},
	})
}

func (d *decoder) surrealDB(at path, n *yaml.Node, s *SurrealDB) {
	d.Fields(at, n, []key{
		{"url", d.Text(&s.URL)},
		{"namespace", d.Text(&s.Namespace)},
		{"database", d.Text(&s.Database)},
		{"user", d.Text(&s.User)},
		{"password", d.Text((*string)(&s.Password))},
		{"token", d.Text((*string)(&s.Token))},
		{"output", scalar(d, &s.Output, yamlstrict.Bool)},
	})
}

func (a Audit) problems(at path) []problem {
	sinks := at.To("sinks")
	all := slices.Concat(
		oneOfProblem(at.To("code"), a.Code, []string{AuditDigest, AuditText}),
		between(at.To("keep"), a.Keep, time.Hour, 36500*24*time.Hour),
		between(at.To("size"), a.Size, MiB, TiB),
	)
	if a.Sinks.Problem != "" {
		return all // their values are undefined
	}
	if s := a.Sinks.Syslog; s != nil {
		all = append(all, s.problems(sinks.To("syslog"))...)
	}
	if o := a.Sinks.OTLP; o != nil {
		all = append(all, neededURL(sinks.To("otlp"), o.URL)...)
		all = append(all, headerProblems(sinks.To("otlp").To("headers"), o.Headers)...)
		all = append(all, ownHeaderProblems(sinks.To("otlp").To("headers"), o.Headers)...)
	}
	if s := a.Sinks.SurrealDB; s != nil {
		all = append(all, s.problems(sinks.To("surrealdb"))...)
	}
	return all
}

func (s Syslog) problems(at path) []problem {
	all := between(at.To("facility"), s.Facility, 0, 23)
	if s.Address == "" {
		return append(all, problem{at: at, onKey: true, needs: []path{at.To("address"), at.Unknown()}, message: `"syslog" needs "address", as in unix:/dev/log or tls://HOST:6514`})
	}
	if _, _, err := s.Dial(); err != nil {
		all = append(all, problem{at: at.To("address"), message: err.Error()})
	}
	return all
}

// Dial returns what to connect to: the network (unix, udp, tcp or tls) and the address in it.
func (s Syslog) Dial() (network, address string, err error) {
	if path, ok := strings.CutPrefix(s.Address, "unix:"); ok && strings.HasPrefix(path, "/") {
		return "unix", path, nil
	}
	network, address, _ = strings.Cut(s.Address, "://")
	if !slices.Contains([]string{"udp", "tcp", "tls"}, network) {
		return "", "", fmt.Errorf("an address is unix:/PATH, udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT")
	}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" || strings.ContainsAny(address, "/@?#") {
		return "", "", fmt.Errorf("an address needs a host and a port, as in %s://logs.example.com:6514", network)
	}
	return network, address, nil
}

func neededURL(at path, text string) []problem {
	if text == "" {
		return []problem{{at: at, onKey: true, needs: []path{at.To("url"), at.Unknown()}, message: fmt.Sprintf("%s needs %q", label(at), "url")}}
	}
	return urlProblems(at.To("url"), text)
}

func (s SurrealDB) problems(at path) []problem {
	all := neededURL(at, s.URL)
	for _, part := range []struct{ name, value string }{{"namespace", s.Namespace}, {"database", s.Database}} {
		switch {
		case part.value == "":
			all = append(all, problem{at: at, onKey: true, needs: []path{at.To(part.name), at.Unknown()}, message: fmt.Sprintf("%s needs %q", label(at), part.name)})
		case len(part.value) > 64 || url.PathEscape(part.value) != part.value:
			all = append(all, problem{at: at.To(part.name), message: fmt.Sprintf("%q has letters, digits and -._~, at most 64", part.name)})
		}
	}
	if s.Token != "" && (s.User != "" || s.Password != "") {
		all = append(all, problem{at: at.To("token"), onKey: true, message: "a token replaces user and password; keep one"})
	}
	return all
}

// SecretValues returns the credentials of the sinks.
func (s AuditSinks) SecretValues() (all []string) {
	if o := s.OTLP; o != nil {
		all = slices.Concat(all, redact.Values(o.Headers), redact.OfURL(o.URL))
	}
	if d := s.SurrealDB; d != nil {
		all = slices.Concat(all, []string{string(d.Password), string(d.Token)}, redact.OfURL(d.URL))
	}
	return all
}

// String names the sinks only: addresses may hold secrets.
func (s AuditSinks) String() string {
	var names []string
	for name, there := range map[string]bool{"syslog": s.Syslog != nil, "otlp": s.OTLP != nil, "surrealdb": s.SurrealDB != nil} {
		if there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

// Format writes String for every verb.
func (s AuditSinks) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns String.
func (s AuditSinks) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s AuditSinks) LogValue() slog.Value { return slog.StringValue(s.String()) }
