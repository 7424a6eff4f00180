// Package privacy keeps personal data away from models and their programs: they see tokens, and upstreams get the values
// (see docs/how-to/privacy.md for the guarantees).
package privacy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/pii"
	"sallyport/internal/tool"
)

// Tokenizer replaces personal data from upstreams by tokens, and tokens in calls to upstreams by their values, according
// to the settings. Values are kept by principal and session: in memory, and sealed in a store that gateways share. It is safe for
// concurrent use.
type Tokenizer struct {
	// Plugins, if set before the first call, finds further personal data.
	Plugins PluginFinder

	rules  atomic.Pointer[rules]
	mu     sync.Mutex // held while rules change
	cfg    *config.Config
	kinds  []string // that Plugins finds
	vaults pii.Vaults
	shared *sharedVaults // nil: values are in memory only
	log    *slog.Logger
}

// PluginFinder finds personal data with the recognizers of plugins.
type PluginFinder interface {
	// Recognizes reports whether results must pass a recognizer.
	Recognizes() bool
	// Find returns the findings in each of some texts, in order and without overlaps.
	Find(ctx context.Context, texts []string) ([][]pii.Finding, error)
}

// New returns a tokenizer with the settings of cfg.
func New(cfg *config.Config, log *slog.Logger) (*Tokenizer, error) {
	t := &Tokenizer{log: log}
	return t, t.Apply(cfg)
}

// rules are the compiled settings.
type rules struct {
	// on reports whether any upstream has a mode, or a model can ask for tokens.
	on       bool
	detector *pii.Detector
	modes    map[string]config.PrivacyMode // by upstream
	mode     config.PrivacyMode            // of plugins
	fields   []toolFields
	to       []string
	never    []string
	// binary are the paths of base64 data and of opaque values in results, which are not searched.
	binary *pii.Fields
	// recognizer calls the recognizer; nil without one.
	recognizer *recognizerClient
}

type toolFields struct {
	tools string
	paths *pii.Fields
}

// binaryPaths returns the paths of base64 data and of opaque values in the results of all methods.
func binaryPaths() []string {
	return []string{"$.content[*].data", "$.content[*].resource.blob", "$.contents[*].blob", "$.messages[*].content.data", "$.messages[*].content.resource.blob", "$.requestState"}
}

// Apply replaces the settings. Existing tokens stay valid.
func (p *Tokenizer) Apply(cfg *config.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.apply(cfg, p.kinds)
}

// SetKinds sets the kinds of personal data that Plugins finds.
func (p *Tokenizer) SetKinds(kinds []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.apply(p.cfg, kinds)
}

// apply compiles settings and puts them into force. It is called with mu held.
func (p *Tokenizer) apply(cfg *config.Config, kinds []string) error {
	set := cfg.Privacy
	opts, err := detectorOptions(set)
	if err != nil {
		return err
	}
	opts.Recognized = kinds
	r := &rules{on: cfg.Profiles.Has(config.ProfilePrivacy) || cfg.Compat == config.CompatCodeExecution, to: set.RestoreTo, never: set.RestoreNever}
	r.setModes(cfg)
	if r.detector, err = pii.New(opts); err != nil {
		return err
	}
	if r.binary, err = pii.ParseFields(binaryPaths()); err != nil {
		return err
	}
	for _, tools := range slices.Sorted(maps.Keys(set.Fields)) {
		paths, err := pii.ParseFields(set.Fields[tools])
		if err != nil {
			return fmt.Errorf("read privacy.fields: %w", err)
		}
		r.fields = append(r.fields, toolFields{tools, paths})
	}
	var old *recognizerClient
	if before := p.rules.Load(); before != nil {
		old = before.recognizer
	}
	if r.recognizer, err = newRecognizerClient(set.Recognizer, old, p.log); err != nil {
		return err
	}
	p.rules.Store(r)
	p.cfg, p.kinds = cfg, kinds
	if old != r.recognizer {
		old.close()
	}
	return nil
}

// setModes sets the modes of upstreams and plugins, and on if one of them has one.
func (r *rules) setModes(cfg *config.Config) {
	r.modes, r.mode = map[string]config.PrivacyMode{}, cfg.Privacy.Mode
	r.on = r.on || r.mode != config.PrivacyOff && r.mode != ""
	for _, up := range cfg.Upstreams {
		mode := cmp.Or(up.Privacy, r.mode)
		r.modes[up.ID] = mode
		r.on = r.on || mode != config.PrivacyOff && mode != ""
	}
}

func detectorOptions(set config.Privacy) (*pii.Options, error) {
	opts := &pii.Options{Allow: set.Allow, Custom: map[string]*regexp.Regexp{}}
	for _, k := range set.Kinds {
		opts.Kinds = append(opts.Kinds, pii.Kind(k))
	}
	for name, text := range set.Custom {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("read privacy.custom.%s: %w", name, err)
		}
		opts.Custom[name] = re
	}
	return opts, nil
}

// Close closes the recognizer, and stops following other gateways.
func (p *Tokenizer) Close() {
	p.rules.Load().recognizer.close()
	if p.shared != nil {
		p.shared.end()
	}
}

// On reports whether any call may have tokens.
func (p *Tokenizer) On() bool { return p.rules.Load().on }

// matches reports whether a glob names a tool.
func matches(globs []string, id tool.ID) bool {
	name := id.Upstream + "." + strings.ReplaceAll(id.Name, "/", ".")
	return slices.ContainsFunc(globs, func(g string) bool { ok, _ := path.Match(g, name); return ok })
}

// mayRestore returns which values a tool gets: those from its own upstream, or all if
// restore_to has it, or none if restore_never has it.
func (r *rules) mayRestore(id tool.ID) pii.May {
	never, to := matches(r.never, id), matches(r.to, id)
	return func(_ pii.Kind, origins []string) bool {
		return !never && (to || slices.Contains(origins, id.Upstream))
	}
}

func (r *rules) fieldsOf(id tool.ID) *pii.Fields {
	for _, f := range r.fields {
		if matches([]string{f.tools}, id) {
			return f.paths
		}
	}
	return nil
}

// vault returns the vault of the session of ctx. If lacks, which reports whether a token has no value there, returns true, it has first
// the tokens that other gateways gave.
func (p *Tokenizer) vault(ctx context.Context, lacks func(v *pii.Vault) bool) *pii.Vault {
	at := pii.Place{Principal: tool.Principal(ctx), Session: tool.Session(ctx)}
	v := p.vaults.Of(at.Principal, at.Session)
	if p.shared != nil && lacks(v) {
		p.shared.refresh(at, v)
	}
	return v
}

// lacksIn is for a text.
func lacksIn(text string) func(v *pii.Vault) bool {
	return func(v *pii.Vault) bool { return v.LacksToken(text) }
}

// lacksInCall is for the arguments of a call.
func lacksInCall(c tool.Call) func(v *pii.Vault) bool {
	return func(v *pii.Vault) bool {
		lacks := v.LacksToken(string(c.Args))
		for _, value := range c.Params {
			lacks = lacks || v.LacksToken(string(value))
		}
		return lacks
	}
}

// store stores the tokens of a vault that other gateways do not know. It must return before a model sees them.
func (p *Tokenizer) store(ctx context.Context, v *pii.Vault) {
	if p.shared != nil {
		p.shared.store(ctx, v)
	}
}

// Middleware replaces personal data in results by tokens, and tokens in arguments by values. It is the last middleware
// before the upstream, so that all others see tokens only. Upstreams for which own reports true are part of this process
// and get tokens.
func (p *Tokenizer) Middleware(own func(upstream string) bool) toolcall.Middleware {
	return func(next toolcall.Handler) toolcall.Handler {
		return func(ctx context.Context, c tool.Call) (tool.Result, error) {
			r := p.rules.Load()
			if !r.on || own(c.Tool.Upstream) {
				return next(ctx, c)
			}
			return p.redactCall(ctx, r, c, next)
		}
	}
}

// modeOf returns the mode of an upstream of the settings, or of a plugin.
func (r *rules) modeOf(upstream string) config.PrivacyMode {
	if mode, ok := r.modes[upstream]; ok {
		return mode
	}
	return r.mode
}

// redactCall makes a call with values in place of tokens, and returns its result with tokens in place of values.
func (p *Tokenizer) redactCall(ctx context.Context, r *rules, c tool.Call, next toolcall.Handler) (tool.Result, error) {
	v := &redaction{rules: r, vault: p.vault(ctx, lacksInCall(c)), store: p.store, id: c.Tool, mode: r.modeOf(c.Tool.Upstream), plugins: p.Plugins, counts: map[pii.Kind]int{}}
	defer func() { p.store(ctx, v.vault) }()
	c, err := v.restoreCall(c)
	if err != nil {
		return tool.Result{}, err
	}
	if c.Peer != nil {
		c.Peer = redactingPeer{c.Peer, v}
	}
	result, err := next(ctx, c)
	if err != nil {
		return tool.Result{}, v.redactError(ctx, err)
	}
	if result, err = v.processResult(ctx, result, c.Execution != "" && !c.Rounds); err != nil {
		return tool.Result{}, err
	}
	if kind := v.splitValue(result); kind != "" {
		return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: fmt.Sprintf("the result of %s has a value that it was given (%s) in pieces", c.Tool, kind), Hint: "the call was made; have the tool return no parts of the value"}
	}
	if found := v.summary(); found != "" && v.mode != config.PrivacyOff {
		p.log.InfoContext(ctx, "personal data in a result", "tool", c.Tool.String(), "execution", c.Execution, "mode", string(v.mode), "found", found)
		if v.mode == config.PrivacyBlock {
			return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: fmt.Sprintf("the result of %s has personal data (%s), which the settings block", c.Tool, found), Hint: "ask for less, or for other fields; the operator's privacy settings decide"}
		}
	}
	return result, nil
}

// Arguments returns the arguments of a call as its upstream gets them: with values in place of tokens.
func (p *Tokenizer) Arguments(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	r := p.rules.Load()
	if !r.on || !pii.Has(string(c.Args)) {
		return c.Args, nil
	}
	args, _, err := p.vault(ctx, lacksInCall(c)).RestoreJSON(c.Args, r.mayRestore(c.Tool))
	return args, err
}

// Share makes the tokens of one session of a principal valid in another one.
func (p *Tokenizer) Share(principal, from, to string) {
	if !p.On() {
		return
	}
	p.vaults.Share(principal, from, to)
	if p.shared != nil {
		p.shared.share(context.Background(), pii.Place{Principal: principal, Session: to}, p.vaults.Of(principal, from))
	}
}

// UnknownToken returns a token in a call's arguments that has no value in this session, "" for none.
func (p *Tokenizer) UnknownToken(ctx context.Context, c tool.Call) string {
	if !p.On() {
		return ""
	}
	return p.vault(ctx, lacksInCall(c)).UnknownToken(string(c.Args))
}

// Redact replaces personal data by the names of its kinds, regardless of the settings.
func (p *Tokenizer) Redact(text string) string {
	return p.rules.Load().detector.Replace(text, nil, kindOf)
}

func kindOf(kind pii.Kind, _ string, _ bool) (string, bool) {
	return "[" + strings.ToUpper(string(kind)) + "]", true
}

// withoutCause returns only a context error from the causes of err: other causes may quote the upstream.
func withoutCause(err error) error {
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return cause
		}
	}
	return nil
}

// RedactNotice replaces personal data by the names of its kinds in notifications of an upstream, if the settings hide its
// data.
func (p *Tokenizer) RedactNotice(upstream string, params json.RawMessage) json.RawMessage {
	r := p.rules.Load()
	if mode := r.modes[upstream]; !r.on || mode != config.PrivacyTokenize && mode != config.PrivacyBlock {
		return params
	}
	return r.detector.ReplaceJSON(params, nil, kindOf)
}

// Mask replaces personal data in a model's text by tokens and returns a summary of what
// it found, such as "2 email, 1 phone", or "". Tokens in the text stay.
func (p *Tokenizer) Mask(ctx context.Context, text string) (clean, found string, err error) {
	v := &redaction{rules: p.rules.Load(), vault: p.vault(ctx, lacksIn(text)), store: p.store, id: tool.ID{Upstream: config.RestoreToModel}, mode: config.PrivacyTokenize, plugins: p.Plugins, counts: map[pii.Kind]int{}}
	defer func() { p.store(ctx, v.vault) }()
	ours := map[string]bool{} // before new tokens are created
	v.rules.detector.Replace(text, &pii.Look{Only: true}, func(_ pii.Kind, value string, _ bool) (string, bool) {
		ours[value] = v.vault.HasToken(value)
		return "", false
	})
	err = v.analyze(ctx, func(look *pii.Look) { v.rules.detector.Replace(text, look, v.swap) })
	if err != nil {
		return "", "", err
	}
	clean = v.rules.detector.Replace(text, &pii.Look{Recognized: v.findingsIn}, func(kind pii.Kind, value string, number bool) (string, bool) {
		if kind == pii.Text && ours[value] {
			return "", false
		}
		return v.swap(kind, value, number)
	})
	return clean, v.summary(), nil
}

// Unmask replaces the tokens in a text by values for a model, if the settings allow it.
func (p *Tokenizer) Unmask(ctx context.Context, text string) (string, error) {
	r := p.rules.Load()
	if !slices.Contains(r.to, config.RestoreToModel) || slices.Contains(r.never, config.RestoreToModel) {
		return "", &tool.Error{Kind: tool.Denied, Message: "the settings keep personal data from models",
			Hint: "pass tokens to tools as they are: those that may have the values get them"}
	}
	out, _, err := p.vault(ctx, lacksIn(text)).Restore(text, func(pii.Kind, []string) bool { return true })
	if err != nil {
		return "", restoreError(err)
	}
	return out, nil
}

// restoreError returns the error of a call with tokens that cannot be replaced by their values.
func restoreError(err error) error {
	hint := "get it again from the tool that returned it"
	switch {
	case errors.Is(err, pii.ErrUnknown):
		hint = "take tokens from results of this session; to send it as text, write it in two pairs of brackets: [[EMAIL_1]]"
	case errors.Is(err, pii.ErrGlued):
		hint = "put a space or a sign next to the token"
	}
	return &tool.Error{Kind: tool.Invalid, Message: err.Error(), Hint: hint, Err: err}
}
