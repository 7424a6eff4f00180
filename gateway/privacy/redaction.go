package privacy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/config"
	"sallyport/internal/pii"
	"sallyport/internal/tool"
)

// redaction is the state of one call.
type redaction struct {
	rules *rules
	vault *pii.Vault
	store func(ctx context.Context, v *pii.Vault) // stores new tokens
	id    tool.ID
	mode  config.PrivacyMode
	// plugins finds further data, nil without plugins.
	plugins PluginFinder
	// echo finds values that the upstream was given in its answer.
	echo *pii.Echo

	mu       sync.Mutex // a peer may be called from any goroutine
	counts   map[pii.Kind]int
	findings map[string][]pii.Finding // what the recognizers found, by text
	prose    map[string]bool          // the texts that the recognizer of the settings has seen
	every    map[string]bool          // the texts that those of plugins have seen
}

// restoreCall replaces the tokens in a call by values.
func (v *redaction) restoreCall(c tool.Call) (tool.Call, error) {
	may := v.rules.mayRestore(c.Tool)
	v.echo = v.vault.Echo(c.Tool.Upstream, string(c.Args), v.hides())
	args, restored, err := v.rules.detector.Arguments(v.vault, c.Args, may)
	if err != nil {
		return c, restoreError(err)
	}
	c.Args = args
	for name, value := range c.Params { // input responses of MCP 2026-07-28
		if name == "_meta" {
			continue
		}
		opened, more, err := v.vault.RestoreJSON(value, may)
		if err != nil {
			return c, restoreError(err)
		}
		if len(more) > 0 {
			c.Params = maps.Clone(c.Params)
			c.Params[name] = opened
			restored = append(restored, more...)
		}
	}
	v.echo.AddSent(restored)
	return c, nil
}

// hides reports whether values are replaced by tokens, rather than only counted.
func (v *redaction) hides() bool {
	return v.mode == config.PrivacyTokenize || v.mode == config.PrivacyBlock
}

// swap returns the token of a value. Text that looks like a token is replaced in every mode.
func (v *redaction) swap(kind pii.Kind, value string, number bool) (string, bool) {
	if kind != pii.Text {
		v.count(kind)
		if !v.hides() {
			return "", false
		}
	}
	return v.vault.Token(kind, value, number, v.id.Upstream), true
}

// swapEcho returns the token of a value that the upstream was given, in every mode.
func (v *redaction) swapEcho(kind pii.Kind, value string, number bool) (string, bool) {
	v.count(kind)
	return v.vault.PartToken(kind, value, number, v.id.Upstream), true
}

func (v *redaction) count(kind pii.Kind) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[kind]++
}

// look returns how to search a result. whole is for a raw result, which includes the structured content.
func (v *redaction) look(whole bool) *pii.Look {
	l := &pii.Look{Echo: v.echo.Find, EchoSwap: v.swapEcho, Recognized: v.findingsIn, Only: v.mode == config.PrivacyOff || v.mode == ""}
	if v.hides() {
		l.Names = v.vault.Names
	}
	if fields := v.rules.fieldsOf(v.id); !whole {
		l.Fields = fields
	} else {
		l.Fields, l.Inner, l.Skip = fields.Under("structuredContent"), fields, v.rules.binary
	}
	return l
}

// processResult redacts a result. A program gets no raw result.
func (v *redaction) processResult(ctx context.Context, r tool.Result, program bool) (tool.Result, error) {
	if program {
		r.Raw = nil
	}
	if err := v.analyze(ctx, func(look *pii.Look) { v.replaceResult(r, look) }); err != nil {
		return r, err
	}
	known := v.vault.NamesKnown()
	r = v.redactResult(r)
	if v.hides() && v.vault.NamesKnown() > known {
		// Names that were found behind a key of the result may also be in its texts.
		r = v.replaceResult(r, &pii.Look{Names: v.vault.Names, NamesOnly: true})
	}
	return r, nil
}

// splitValue returns the kind of a value that the upstream was given and returns in pieces, "" for none.
func (v *redaction) splitValue(r tool.Result) pii.Kind {
	var text strings.Builder
	for _, c := range r.Content {
		if kind := v.echo.FindScattered(json.RawMessage(c.Text)); kind != "" {
			return kind
		}
		text.WriteString(c.Text)
	}
	if joined, err := json.Marshal(text.String()); err == nil && len(r.Content) > 1 {
		if kind := v.echo.FindScattered(joined); kind != "" {
			return kind
		}
	}
	return v.echo.FindScattered(r.Structured)
}

// replaceResult replaces personal data in all texts of a result with one look.
func (v *redaction) replaceResult(r tool.Result, look *pii.Look) tool.Result {
	r.Content = slices.Clone(r.Content)
	for i := range r.Content {
		v.redactBlock(&r.Content[i], look, look)
	}
	raw := *look
	raw.Skip = v.rules.binary
	if r.Raw != nil {
		r.Raw = v.rules.detector.ReplaceJSON(r.Raw, &raw, v.swap)
	}
	if r.Structured == nil {
		return r
	}
	if v.id.Method() != "tools/call" {
		look = &raw
	}
	r.Structured = v.rules.detector.ReplaceJSON(r.Structured, look, v.swap)
	return r
}

func (v *redaction) redactResult(r tool.Result) tool.Result {
	look, bare := v.look(false), v.look(false)
	bare.Fields = nil
	if len(r.Content) > 0 {
		r.Content = slices.Clone(r.Content)
	}
	for i := range r.Content {
		v.redactBlock(&r.Content[i], look, bare)
	}
	if r.Structured != nil {
		if look.Skip = nil; v.id.Method() != "tools/call" {
			look.Skip = v.rules.binary
		}
		r.Structured = v.rules.detector.ReplaceJSON(r.Structured, look, v.swap)
	}
	if r.Raw == nil {
		return r
	}
	counted := maps.Clone(v.counts)
	r.Raw = v.rules.detector.ReplaceJSON(r.Raw, v.look(true), v.swap)
	maps.Copy(v.counts, counted) // do not count the same data twice
	return r
}

func (v *redaction) redactBlock(c *tool.Content, look, bare *pii.Look) {
	d := v.rules.detector
	c.Text = d.Replace(c.Text, look, v.swap)
	c.URI = d.Replace(c.URI, bare, v.swap)
	c.Name = d.Replace(c.Name, bare, v.swap)
	if c.Raw != nil {
		c.Raw = d.ReplaceJSON(c.Raw, bare, v.swap)
	}
}

// redactError redacts an error.
func (v *redaction) redactError(ctx context.Context, err error) error {
	e := *tool.AsError(err)
	if unknown := v.analyze(ctx, func(look *pii.Look) {
		v.rules.detector.Replace(e.Message, look, v.swap)
		v.rules.detector.Replace(e.Hint, look, v.swap)
	}); unknown != nil { // kind and retryability stay
		e.Message, e.Hint, e.Err = "the error cannot be shown: "+tool.AsError(unknown).Message, "have the operator fix privacy.recognizer", withoutCause(err)
		return &e
	}
	look := v.look(false)
	look.Fields = nil
	e.Message = v.rules.detector.Replace(e.Message, look, v.swap)
	e.Hint = v.rules.detector.Replace(e.Hint, look, v.swap)
	e.Err = withoutCause(err)
	return &e
}

// summary returns a summary of the findings, such as "2 email, 1 phone".
func (v *redaction) summary() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(v.counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", v.counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// redactingPeer is the peer of a call. It gets tokens in place of personal data in the upstream's requests.
type redactingPeer struct {
	tool.Peer
	redaction *redaction
}

// Notify implements [tool.Peer].
func (p redactingPeer) Notify(method string, params json.RawMessage) {
	if hidden, err := p.hide(context.Background(), params); err == nil { // drop a notification that may not be shown
		p.Peer.Notify(method, hidden)
	}
}

// Ask implements [tool.Peer].
func (p redactingPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	hidden, err := p.hide(ctx, params)
	if err != nil {
		return nil, err
	}
	answer, err := p.Peer.Ask(ctx, method, hidden)
	if err != nil {
		return nil, err
	}
	opened, restored, err := p.redaction.vault.RestoreJSON(answer, p.redaction.rules.mayRestore(p.redaction.id))
	if err != nil {
		return nil, restoreError(err)
	}
	p.redaction.echo.AddSent(restored)
	return opened, nil
}

func (p redactingPeer) hide(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	err := p.redaction.analyze(ctx, func(look *pii.Look) { p.redaction.rules.detector.ReplaceJSON(params, look, p.redaction.swap) })
	if err != nil {
		return nil, err
	}
	look := p.redaction.look(false)
	look.Fields = nil
	hidden := p.redaction.rules.detector.ReplaceJSON(params, look, p.redaction.swap)
	p.redaction.store(ctx, p.redaction.vault)
	return hidden, nil
}
