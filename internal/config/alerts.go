package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sallyport/internal/redact"
	"sallyport/internal/reference"
	"sallyport/internal/yamlstrict"
)

// Alert is a receiver of alerts: a webhook, or the desktop of this machine.
type Alert struct {
	// Name is shown to people, and is in the audit log for an approval that the receiver answered; default "alert N", counted from 1.
	Name string
	// URL is the address of a webhook. Alerts have it or desktop.
	URL Secret
	// Format is json (Standard Webhooks) or slack; default json.
	Format string
	// Secret signs alerts in JSON, and the receiver's answers to approvals: base64 after "whsec_", or a text; default no signature and no answers.
	Secret Secret
	// Desktop shows notifications on the desktop of the user that runs the gateway; default false.
	Desktop bool
	// On are the events that are sent to it: approval, quarantine, upstream and budget; default all.
	On []string
	// Problem describes references without a value, "" if all have one. Unless it is "", nothing may be sent.
	Problem string
}

// The values of Alert.On and Alert.Format.
const (
	OnApproval   = "approval"
	OnQuarantine = "quarantine"
	OnUpstream   = "upstream"
	OnBudget     = "budget"
	AlertJSON    = "json"
	AlertSlack   = "slack"
)

// minAlertSecret is the least length of a secret.
const minAlertSecret = 16

// alertDecoder decodes an entry of the key alerts.
type alertDecoder struct{ *decoder }

func (d alertDecoder) alert(at path, n *yaml.Node, a *Alert) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { a.Problem = withProblem(a.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	a.Format = AlertJSON
	d.Fields(at, n, []key{
		{"name", d.Text(&a.Name)},
		{"url", d.Text((*string)(&a.URL))},
		{"format", d.OneOf(&a.Format, AlertJSON, AlertSlack)},
		{"secret", d.Text((*string)(&a.Secret))},
		{"desktop", scalar(d.decoder, &a.Desktop, yamlstrict.Bool)},
		{"on", d.Texts(&a.On)},
	})
}

func (c *Config) alertProblems(at path) (all []problem) {
	for i, a := range c.Alerts {
		under := at.Item(i)
		if slices.ContainsFunc(c.Alerts[:i], func(other Alert) bool { return other.Name == a.Name }) {
			all = append(all, problem{at: under.To("name"), fallback: under, message: fmt.Sprintf("there is another alert %.60q", a.Name)})
		}
		all = append(all, slices.Concat(textProblems(under.To("name"), a.Name), a.problems(under))...)
	}
	return all
}

func (a Alert) problems(at path) (all []problem) {
	words := []string{OnApproval, OnQuarantine, OnUpstream, OnBudget}
	for i, word := range a.On {
		if !slices.Contains(words, word) {
			all = append(all, problem{at: at.To("on").Item(i), message: fmt.Sprintf("%.40q is none of %s", word, strings.Join(words, ", "))})
		}
	}
	switch secret := strings.TrimPrefix(string(a.Secret), "whsec_"); {
	case a.Problem != "": // the values are undefined
	case (a.URL != "") == a.Desktop:
		all = append(all, problem{at: at, needs: []path{at.Unknown(), at.To("url"), at.To("desktop")}, message: `an alert needs one of "url" and "desktop: true"`})
	case a.Desktop && a.Secret != "", a.Format == AlertSlack && a.Secret != "":
		all = append(all, problem{at: at.To("secret"), onKey: true, message: "only alerts in JSON are signed; leave out the secret"})
	case a.URL != "":
		all = append(all, urlProblems(at.To("url"), string(a.URL))...)
		if a.Secret != "" && len(secret) < minAlertSecret {
			all = append(all, problem{at: at.To("secret"), message: fmt.Sprintf("a secret has at least %d characters, as from openssl rand -base64 32", minAlertSecret)})
		}
	}
	return all
}

// SecretValues returns the secret and what is secret in the URL. Its path is, as those of Slack are keys.
func (a Alert) SecretValues() []string {
	all := append(redact.OfURL(string(a.URL)), string(a.Secret))
	if u, err := url.Parse(string(a.URL)); err == nil && len(u.Path) > minAlertSecret {
		return append(all, strings.TrimPrefix(u.EscapedPath(), "/"))
	}
	return all
}

// Wants reports whether it gets an event.
func (a Alert) Wants(what string) bool { return len(a.On) == 0 || slices.Contains(a.On, what) }
