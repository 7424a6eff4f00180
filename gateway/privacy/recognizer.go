package privacy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/pii"
	"sallyport/internal/recognizer"
	"sallyport/internal/tool"
)

// finder finds names and addresses in texts, in order and without overlaps. The caller must not change the result.
type finder interface {
	Find(ctx context.Context, principal string, texts []string) ([][]pii.Finding, error)
	Close()
}

// recognizerClient calls the recognizer of the settings on data of upstreams.
type recognizerClient struct {
	settings   config.Recognizer
	finder     finder // nil if its settings have unresolved references
	log        *slog.Logger
	failing    atomic.Bool
	retryAfter atomic.Int64 // the end of the backoff, in Unix nanoseconds
}

// failureBackoff is how long a failed recognizer is not called, if results may pass without it.
const failureBackoff = 5 * time.Second

// newRecognizerClient returns the old one if the settings are the same, nil without settings.
func newRecognizerClient(cfg *config.Recognizer, old *recognizerClient, log *slog.Logger) (*recognizerClient, error) {
	if cfg == nil {
		return nil, nil //nolint:nilnil // no recognizer
	}
	if old != nil && reflect.DeepEqual(old.settings, *cfg) {
		return old, nil
	}
	a := &recognizerClient{settings: *cfg, log: log}
	if cfg.Problem != "" {
		return a, nil
	}
	var err error
	if a.finder, err = newFinder(*cfg); err != nil {
		return nil, err
	}
	return a, nil
}

func newFinder(cfg config.Recognizer) (finder, error) {
	if cfg.Local {
		return recognizer.NewLocal()
	}
	return recognizer.New(RecognizerOf(cfg))
}

// RecognizerOf converts the settings of the configuration to those of a client.
func RecognizerOf(cfg config.Recognizer) recognizer.Settings {
	kinds := map[string]pii.Kind{}
	for name, kind := range cfg.Entities {
		kinds[name] = pii.Kind(kind)
	}
	return recognizer.Settings{
		URL: cfg.URL, Headers: cfg.Headers, Authorities: cfg.CA, Language: cfg.Language,
		Threshold: cfg.Threshold, Entities: kinds, Single: !cfg.Batch, Timeout: cfg.Timeout,
	}
}

func (a *recognizerClient) close() {
	if a != nil && a.finder != nil {
		a.finder.Close()
	}
}

// passOnFailure reports whether results pass if the recognizer fails.
func (a *recognizerClient) passOnFailure() bool { return a.settings.OnFailure == config.FailurePass }

// find returns the findings in each text.
func (a *recognizerClient) find(ctx context.Context, texts pii.Texts) ([][]pii.Finding, error) {
	switch {
	case a.finder == nil:
		return nil, a.logFailure(ctx, a.settings.Problem)
	case texts.Bytes > int(a.settings.MaxText):
		return nil, fmt.Errorf("it has %s of text, more than privacy.recognizer.max_text (%s)", config.Size(texts.Bytes), a.settings.MaxText)
	case a.passOnFailure() && time.Now().UnixNano() < a.retryAfter.Load():
		return nil, fmt.Errorf("it failed less than %s ago", failureBackoff)
	}
	limited, cancel := context.WithTimeout(ctx, a.settings.Timeout)
	defer cancel()
	found, err := a.finder.Find(limited, tool.Principal(ctx), texts.List)
	if err != nil {
		if ctx.Err() == nil {
			a.retryAfter.Store(time.Now().Add(failureBackoff).UnixNano())
		}
		return nil, a.logFailure(ctx, err.Error())
	}
	if a.failing.Swap(false) {
		a.log.InfoContext(ctx, "the recognizer of personal data answers again")
	}
	return found, nil
}

// logFailure logs the first of consecutive failures and returns the error.
func (a *recognizerClient) logFailure(ctx context.Context, reason string) error {
	if ctx.Err() == nil && !a.failing.Swap(true) {
		a.log.WarnContext(ctx, "the recognizer of personal data fails", "reason", reason, "results", string(a.settings.OnFailure))
	}
	return errors.New(reason)
}

// analyze calls the recognizers, if there are any, on the texts that walk visits. The error is for the caller of a tool.
func (v *redaction) analyze(ctx context.Context, walk func(*pii.Look)) error {
	if v.mode == config.PrivacyOff || v.mode == "" {
		return nil
	}
	detector := v.rules.detector
	if a := v.rules.recognizer; a != nil {
		texts := v.unknown(walk, detector.Prose, &v.prose)
		if len(texts.List) > 0 {
			found, err := a.find(ctx, texts)
			if err != nil {
				return v.analysisError(ctx, err)
			}
			v.addFindings(texts, found)
		}
	}
	if v.plugins == nil || !v.plugins.Recognizes() {
		return nil
	}
	texts := v.unknown(walk, detector.Every, &v.every)
	if len(texts.List) == 0 {
		return nil
	}
	found, err := v.plugins.Find(ctx, texts.List)
	if err != nil {
		return v.pluginError(err)
	}
	v.addFindings(texts, found)
	return nil
}

// unknown returns the texts of a walk that have not been seen, and marks them as seen.
func (v *redaction) unknown(walk func(*pii.Look), collect func(*pii.Texts) *pii.Look, seen *map[string]bool) (texts pii.Texts) {
	var all pii.Texts
	walk(collect(&all))
	v.mu.Lock()
	defer v.mu.Unlock()
	if *seen == nil {
		*seen = map[string]bool{}
	}
	for _, text := range all.List {
		if !(*seen)[text] {
			(*seen)[text] = true
			texts.List, texts.Bytes = append(texts.List, text), texts.Bytes+len(text)
		}
	}
	return texts
}

// addFindings adds the findings in some texts to those of an earlier recognizer, which take precedence.
func (v *redaction) addFindings(texts pii.Texts, found [][]pii.Finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.findings == nil {
		v.findings = map[string][]pii.Finding{}
	}
	for i, text := range texts.List {
		v.findings[text] = mergeFindings(v.findings[text], found[i])
	}
}

// mergeFindings returns both lists in order, without those of the second that overlap one of the first.
func mergeFindings(first, second []pii.Finding) []pii.Finding {
	if len(first) == 0 {
		return second
	}
	all := slices.Clone(first)
	for _, f := range second {
		if !slices.ContainsFunc(first, func(o pii.Finding) bool { return f.Start < o.End && o.Start < f.End }) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b pii.Finding) int { return a.Start - b.Start })
	return all
}

// pluginError returns the error for data that the recognizers of plugins could not check, nil if the data may pass.
func (v *redaction) pluginError(err error) error {
	if !v.hides() {
		return nil
	}
	return &tool.Error{
		Kind: tool.Denied, Message: fmt.Sprintf("what %s answered could not be checked for personal data: %s", v.id, err),
		Hint: "the call was made; tell the user, the operator's `sallyport plugin list` says more",
	}
}

// analysisError returns the error for data that the recognizer could not check, nil if the data may pass.
func (v *redaction) analysisError(ctx context.Context, err error) error {
	if a := v.rules.recognizer; a.passOnFailure() || !v.hides() {
		a.log.DebugContext(ctx, "passed without the recognizer", "tool", v.id.String(), "reason", err.Error())
		return nil
	}
	return &tool.Error{
		Kind: tool.Denied, Message: fmt.Sprintf("what %s answered could not be checked for personal data: %s", v.id, err),
		Hint: "the call was made; ask for less text, or have the operator fix privacy.recognizer",
	}
}

// findingsIn returns what the recognizer found in a text.
func (v *redaction) findingsIn(text string) []pii.Finding {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.findings[text]
}
