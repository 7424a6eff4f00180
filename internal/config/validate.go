package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// upstreamName matches names that are safe in a path, a log line and a command line.
var upstreamName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// The allowed values of some keys.
var (
	trusts       = []string{string(TrustPin), string(TrustReview), string(TrustAllow)}
	privacyModes = []string{string(PrivacyOff), string(PrivacyDetect), string(PrivacyTokenize), string(PrivacyBlock)}
	transports   = []string{"auto", "streamable", "sse"}
	authTypes    = []string{"oauth", "client_credentials", AuthKey, "none"}
	stores       = []string{"auto", "keyring", "file"}
)

// maxDescription is the longest description in runes, as models read it often.
const maxDescription = 200

// problem is an invalid setting.
type problem struct {
	at path
	// fallback is the path to report if at does not exist.
	fallback path
	// onKey: the caret belongs under the key, not under its value.
	onKey   bool
	message string
	// inside is the position in the text of the value, nil for the whole value.
	inside *expr.Error
	// needs are other paths. If one of them is bad, the problem is not reported.
	needs []path
}

// Validate returns an error for all invalid settings of a Config that was built or
// changed by hand; Load and Parse do the same checks. The error shows no value of an
// upstream.
func (c *Config) Validate() error {
	var errs []error
	for _, p := range c.problems() {
		errs = append(errs, fmt.Errorf("%v: %s", p.at, p.message))
	}
	return errors.Join(errs...)
}

func (c *Config) problems() []problem {
	var all []problem
	byID := map[string]string{}
	for _, u := range c.Upstreams {
		at := path{"upstreams", u.Name}
		all = append(all, u.nameProblems(at, byID)...)
		all = append(all, append(u.problems(at), u.Auth.exchangeProblems(at.To("auth"), c.HTTP)...)...)
		if u.Isolate != nil && c.Sandbox.Remote != "" {
			all = append(all, problem{at: at.To("isolate"), fallback: at, onKey: true, message: `with "remote" under "sandbox" the sandboxes are on another machine, and an upstream runs on this one: leave out one of the two`})
		}
	}
	if c.Sandbox.Remote == RemoteWorkers && !c.Store.IsRemote() {
		all = append(all, problem{at: path{"sandbox", "remote"}, message: `"workers" join at the servers of the store: set "url" under "store"`})
	}
	all = append(all, oneOfProblem(path{"trust"}, string(c.Trust), trusts)...)
	if e := c.Search.Embeddings; e != nil {
		all = append(all, e.problems(path{"search", "embeddings"})...)
	}
	all = append(all, managerProblems(path{managersKey}, c.SecretManagers)...)
	all = append(all, registryProblems(path{"registry"}, c.Registry)...)
	all = append(all, c.modelProblems(path{"models"}, path{"tasks"})...)
	all = append(all, c.pluginProblems(path{"plugins"})...)
	all = append(all, c.Privacy.problems(path{"privacy"})...)
	all = append(all, c.Journal.problems(path{"journal"})...)
	all = append(all, c.Records.problems(path{"records"})...)
	all = append(all, c.Approval.problems(path{"approval"})...)
	all = append(all, c.Workflows.problems(path{"workflows"})...)
	all = append(all, c.policyProblems(path{"policy"})...)
	all = append(all, c.budgetProblems(path{"budgets"})...)
	all = append(all, c.alertProblems(path{"alerts"})...)
	all = append(all, c.Audit.problems(path{"audit"})...)
	all = append(all, c.Telemetry.problems(path{"telemetry"})...)
	all = append(all, c.Store.problems(path{"store"})...)
	all = append(all, c.HTTP.problems(path{"http"})...)
	all = append(all, c.environmentProblems(path{"environments"})...)
	all = append(all, c.workspaceProblems(path{"workspaces"})...)
	all = append(all, c.profileProblems(path{"profiles"})...)
	all = append(all, c.clientProblems()...)
	all = append(all, c.endpointProblems(path{"endpoints"})...)
	if c.Compat != "" {
		all = append(all, oneOfProblem(path{"compat"}, c.Compat, compats)...)
	}
	return append(all, c.Sandbox.problems(path{"sandbox"})...)
}

func (u Upstream) nameProblems(at path, byID map[string]string) []problem {
	id := tool.Identifier(u.Name)
	other, taken := byID[id]
	byID[id] = u.Name
	var message string
	switch {
	case !upstreamName.MatchString(u.Name):
		message = fmt.Sprintf(`%.40q cannot name an upstream: a letter, then letters, digits, "-" and "_", at most 64`, u.Name)
	case taken:
		message = fmt.Sprintf("upstreams %q and %q would both be imported as %s; rename one", other, u.Name, id)
	case u.ID != id:
		message = fmt.Sprintf("the ID of upstream %q must be %s", u.Name, id)
	default:
		return nil
	}
	return []problem{{at: at, onKey: true, message: message}}
}

func (u Upstream) problems(at path) []problem {
	all := slices.Concat(
		between(at.To("timeout"), u.Timeout, 10*time.Millisecond, 24*time.Hour),
		between(at.To("concurrency"), u.Concurrency, 1, 1024),
		between(at.To("max_message"), u.MaxMessage, 64*KiB, GiB),
		oneOfProblem(at.To("trust"), string(u.Trust), trusts),
		oneOfProblem(at.To("privacy"), string(u.Privacy), append([]string{""}, privacyModes...)),
	)
	if u.Idle != 0 { // 0 is never
		all = append(all, between(at.To("idle"), u.Idle, time.Second, 30*24*time.Hour)...)
	}
	if utf8.RuneCountInString(u.Description) > maxDescription {
		all = append(all, problem{at: at.To("description"), message: fmt.Sprintf("a description is a few words for a model, at most %d characters", maxDescription)})
	}
	all = append(all, u.transportProblems(at)...)
	all = append(all, u.nameRuleProblems(at)...)
	all = append(all, u.labelProblems(at)...)
	if u.Disabled || u.Problem != "" {
		return all // its variables may be unset, so its values are undefined
	}
	if len(u.Tools) > 0 {
		return append(all, u.toolProblems(at)...)
	}
	if u.Egress != nil {
		return append(all, u.egressProblems(at.To("egress"))...)
	}
	if u.IsAPI() {
		return append(all, u.apiProblems(at)...)
	}
	if u.URL != "" {
		return append(all, u.httpProblems(at)...)
	}
	return slices.Concat(all, u.stdioProblems(at), u.isolationProblems(at.To("isolate")))
}

func between[T ~int | ~int64](at path, value, least, most T) []problem {
	if value >= least && value <= most {
		return nil
	}
	return []problem{{at: at, message: fmt.Sprintf("%s must be from %s to %s", label(at), formatBound(least), formatBound(most))}}
}

// oneOfProblem checks a Config that was built by hand. For a file the decoder does that.
func oneOfProblem(at path, value string, words []string) []problem {
	if slices.Contains(words, value) {
		return nil
	}
	return []problem{{at: at, message: fmt.Sprintf("%s must be one of %s", label(at), strings.Join(words, ", "))}}
}

// formatBound formats a number or a size, and a duration without trailing zero units.
func formatBound(v any) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(fmt.Sprint(v))
}

// registryProblems checks the URL of the MCP registry. Its answers become command lines, so it is read over TLS only.
func registryProblems(at path, text string) []problem {
	if text == "" {
		return nil
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil || parsed.RawQuery != "" {
		return []problem{{at: at, message: `"registry" must be an https:// URL without a user and a query, as in https://registry.example.com`}}
	}
	return nil
}
