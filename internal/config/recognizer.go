package config

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/pii"
	"sallyport/internal/redact"
	"sallyport/internal/reference"
	"sallyport/internal/weburl"
	"sallyport/internal/yamlstrict"
)

// Recognizer is a service that finds names and addresses in prose: a Presidio analyzer, or a compatible one.
type Recognizer struct {
	// Local selects the built-in model, which uses only Timeout, MaxText and OnFailure.
	Local bool
	// URL is the URL of the service. "/analyze" is appended unless its path ends with that.
	URL string
	// Headers are sent with every request.
	Headers Secrets
	// CA is a file with the certificates to trust, absolute; default those of the system.
	CA string
	// Plain allows http for a service on another machine; key insecure.
	Plain bool
	// Language is the language of the texts; default en.
	Language string
	// Threshold is the minimum score; default 0.5.
	Threshold float64
	// Entities maps the requested entity types to kinds; default name for PERSON, address for LOCATION.
	Entities map[string]string
	// Batch sends many texts in one request, which newer analyzers support; default true.
	Batch bool
	// Timeout bounds all requests for one result; default 10s.
	Timeout time.Duration
	// MaxText bounds the text of one result that is sent; default 1MiB.
	MaxText Size
	// OnFailure is what happens to a result if the service fails; default refuse.
	OnFailure OnFailure
	// Problem describes references without a value, "" if all have one. Unless it is "", the service must not be used.
	Problem string
}

// OnFailure is what happens to a result that could not be analyzed.
type OnFailure string

// The values of OnFailure.
const (
	// FailureRefuse: the call fails.
	FailureRefuse OnFailure = "refuse"
	// FailurePass: it passes with the findings of the other detectors, and a warning is logged.
	FailurePass OnFailure = "pass"
)

func defaultRecognizer() *Recognizer {
	return &Recognizer{Language: "en", Threshold: 0.5, Batch: true, Timeout: 10 * time.Second, MaxText: MiB, OnFailure: FailureRefuse}
}

// defaultEntities returns the entities of a Presidio analyzer that the other detectors do not find.
func defaultEntities() map[string]string {
	return map[string]string{"PERSON": string(pii.Name), "LOCATION": string(pii.Address)}
}

// localRecognizer is the value of the setting for the built-in model.
const localRecognizer = "local"

func (d *decoder) recognizer(at path, n *yaml.Node, r *Recognizer) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		var name string
		d.OneOf(&name, localRecognizer)(at, n)
		*r = Recognizer{Local: true, Timeout: time.Minute, MaxText: 16 * MiB, OnFailure: FailureRefuse}
		return
	}
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { r.Problem = withProblem(r.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"url", d.Text(&r.URL)},
		{"headers", d.secrets(&r.Headers)},
		{"ca", d.path(&r.CA)},
		{"insecure", scalar(d, &r.Plain, yamlstrict.Bool)},
		{"language", d.Text(&r.Language)},
		{"threshold", scalar(d, &r.Threshold, parsePart)},
		{"entities", d.secrets((*Secrets)(&r.Entities))},
		{"batch", scalar(d, &r.Batch, yamlstrict.Bool)},
		{"timeout", scalar(d, &r.Timeout, yamlstrict.Duration)},
		{"max_text", scalar(d, &r.MaxText, parseSize)},
		{"on_failure", d.OneOf((*string)(&r.OnFailure), string(FailureRefuse), string(FailurePass))},
	})
	if r.Entities == nil {
		r.Entities = defaultEntities()
	}
}

var (
	languageName = regexp.MustCompile(`^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,3}$`)
	entityName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
)

// problems returns the problems. They never show a part of the URL, which may hold a key.
func (r Recognizer) problems(at path, custom map[string]string) []problem {
	if r.Local {
		return nil
	}
	all := slices.Concat(
		between(at.To("timeout"), r.Timeout, 10*time.Millisecond, 5*time.Minute),
		between(at.To("max_text"), r.MaxText, KiB, 64*MiB),
		oneOfProblem(at.To("on_failure"), string(r.OnFailure), []string{string(FailureRefuse), string(FailurePass)}),
		r.entityProblems(at.To("entities"), custom),
	)
	if math.IsNaN(r.Threshold) || r.Threshold < 0 || r.Threshold > 1 {
		all = append(all, problem{at: at.To("threshold"), message: "threshold must be from 0 to 1"})
	}
	if r.Problem != "" {
		return all // its values mean nothing
	}
	if !languageName.MatchString(r.Language) {
		all = append(all, problem{at: at.To("language"), message: `a language is written as in "en" or "pt-BR"`})
	}
	return slices.Concat(all, r.urlProblems(at), headerProblems(at.To("headers"), r.Headers), ownHeaderProblems(at.To("headers"), r.Headers))
}

func (r Recognizer) urlProblems(at path) []problem {
	if all := neededURL(at, r.URL); len(all) > 0 {
		return all
	}
	u, err := url.Parse(r.URL)
	switch plain := err == nil && u.Scheme == "http"; {
	case plain && !weburl.IsLoopback(u.Hostname()) && !r.Plain:
		return []problem{{at: at.To("url"), message: "personal data would go over the network as it is; use https://, or set insecure: true"}}
	case plain && r.CA != "":
		return []problem{{at: at.To("ca"), onKey: true, message: `"ca" belongs to a url with https://`}}
	}
	return nil
}

func (r Recognizer) entityProblems(at path, custom map[string]string) (all []problem) {
	if len(r.Entities) == 0 {
		return []problem{{at: at, onKey: true, message: "no entity is asked for; leave the key out for PERSON and LOCATION"}}
	}
	kinds := slices.Sorted(maps.Keys(custom))
	for _, k := range pii.Kinds() {
		kinds = append(kinds, string(k))
	}
	for _, name := range sortedKeys(r.Entities) {
		kind := r.Entities[name]
		if !entityName.MatchString(name) {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf("%.40q cannot name an entity", name)})
		}
		all = append(all, kindProblem(at.To(name), kind, kinds)...)
	}
	return all
}

// secretValues returns the credentials of the service.
func (r Recognizer) secretValues() []string {
	return slices.Concat(redact.Values(r.Headers), redact.OfURL(r.URL))
}

// String shows neither URL nor values of headers: either may hold a key.
func (r Recognizer) String() string { return fmt.Sprintf("recognizer (headers %v)", r.Headers) }

// Format writes String for every verb.
func (r Recognizer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// MarshalText returns String.
func (r Recognizer) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// LogValue returns String.
func (r Recognizer) LogValue() slog.Value { return slog.StringValue(r.String()) }
