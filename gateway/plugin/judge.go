package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/gateway/plugin/folder"
	"sallyport/internal/pii"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// guarding returns an error if a plugin that does not run guards what.
func (s *state) guarding(what string) error {
	for _, e := range s.order {
		if e.runner == nil && slices.Contains(e.guards, what) {
			return &OffError{Plugin: e.name, Reason: e.problem.Error()}
		}
	}
	return nil
}

// Check has the checks judge a program before it runs. language is python or typescript. A check that fails refuses the
// program. Errors are *tool.Error.
func (p *Plugins) Check(ctx context.Context, code, language string) error {
	s := p.state.Load()
	if err := s.guarding(folder.GuardsPrograms); err != nil {
		return &tool.Error{Kind: tool.Denied, Message: "no program can be checked: " + err.Error(), Hint: "tell the user; the operator's `sallyport plugin list` says more"}
	}
	for _, e := range s.order {
		for _, c := range e.plugin.Checks {
			if e.runner == nil || len(c.Languages) > 0 && !slices.Contains(c.Languages, language) {
				continue
			}
			if err := e.check(ctx, c.Run, code, language); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *entry) check(ctx context.Context, run, code, language string) error {
	a, err := (&hook{Hook: folder.Hook{Run: run}, entry: e}).judge(ctx, code, language)
	switch {
	case ctx.Err() != nil:
		return e.toolError(ctx.Err())
	case err == nil && a == nil:
		return nil
	case err == nil && a.Deny == nil:
		err = fmt.Errorf("%s must return None, or a dict with deny", run)
	}
	if err != nil {
		return &tool.Error{Kind: tool.Denied, Message: fmt.Sprintf("plugin %s could not check the program: %s", e.name, e.mask(sanitize.Line(err.Error(), maxReason))), Hint: "tell the user"}
	}
	return &tool.Error{Kind: tool.Denied, Message: fmt.Sprintf("plugin %s refuses the program: %s", e.name, e.mask(sanitize.Line(*a.Deny, maxReason))), Hint: "change the program"}
}

// maxFound bounds what a recognizer finds in one text.
const maxFound = 10_000

// Find returns the personal data that recognizers find in each of some texts, in order and without overlaps.
func (p *Plugins) Find(ctx context.Context, texts []string) ([][]pii.Finding, error) {
	s := p.state.Load()
	if err := s.guarding(folder.GuardsResults); err != nil {
		return nil, err
	}
	all := make([][]pii.Finding, len(texts))
	for _, e := range s.order {
		for _, r := range e.plugin.Recognizers {
			if e.runner == nil {
				continue
			}
			if err := e.find(ctx, r, texts, all); err != nil {
				return nil, fmt.Errorf("recognizer %s of plugin %s: %s", r.Kind, e.name, e.mask(err.Error()))
			}
		}
	}
	for i := range all {
		all[i] = withoutOverlaps(all[i])
	}
	return all, nil
}

// Recognizes reports whether results must pass a recognizer.
func (p *Plugins) Recognizes() bool {
	s := p.state.Load()
	return slices.ContainsFunc(s.order, func(e *entry) bool {
		return e.runner == nil && slices.Contains(e.guards, folder.GuardsResults) || e.runner != nil && len(e.plugin.Recognizers) > 0
	})
}

// find adds what one recognizer finds.
func (e *entry) find(ctx context.Context, r folder.Recognizer, texts []string, all [][]pii.Finding) error {
	value, err := e.runner.call(ctx, min(hookTimeout, e.plugin.Timeout), request{Run: r.Run, Each: texts})
	if err != nil {
		return err
	}
	var found [][]string
	if json.Unmarshal(value, &found) != nil || len(found) != len(texts) {
		return fmt.Errorf("%s must return a list of texts that it found", r.Run)
	}
	for i, words := range found {
		for _, word := range words {
			all[i] = appendOccurrences(all[i], pii.Kind(r.Kind), texts[i], word)
			if len(all[i]) > maxFound {
				return fmt.Errorf("%s found more than %d in one text", r.Run, maxFound)
			}
		}
	}
	return nil
}

// appendOccurrences appends all places of a word in a text.
func appendOccurrences(list []pii.Finding, kind pii.Kind, text, word string) []pii.Finding {
	if word == "" {
		return list
	}
	for from := 0; len(list) <= maxFound; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			break
		}
		list = append(list, pii.Finding{Kind: kind, Start: from + at, End: from + at + len(word)})
		from += at + len(word)
	}
	return list
}

// withoutOverlaps sorts findings and keeps the first and longest of those that overlap.
func withoutOverlaps(list []pii.Finding) []pii.Finding {
	slices.SortStableFunc(list, func(a, b pii.Finding) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	kept := list[:0]
	for _, f := range list {
		if len(kept) == 0 || f.Start >= kept[len(kept)-1].End {
			kept = append(kept, f)
		}
	}
	return kept
}

// Rendered is a result as a renderer shows it: a text or a table. All texts are untrusted, and cleaned.
type Rendered struct {
	// Plugin made it.
	Plugin  string
	Text    string
	Columns []string
	Rows    [][]string
}

// The limits of what a renderer shows.
const (
	maxShown   = 20_000
	maxCell    = 500
	maxColumns = 20
	maxRows    = 500
)

// Render returns a result as a renderer shows it, nil if none does. result is a text, or JSON.
func (p *Plugins) Render(ctx context.Context, id tool.ID, result string) (*Rendered, error) {
	for _, e := range p.state.Load().order {
		for _, r := range e.plugin.Renderers {
			if e.runner != nil && matches(r.Tools, id) {
				return e.render(ctx, r, id, result)
			}
		}
	}
	return nil, nil //nolint:nilnil // no renderer
}

func (e *entry) render(ctx context.Context, r folder.Renderer, id tool.ID, result string) (*Rendered, error) {
	var value any = result
	if json.Valid([]byte(result)) {
		value = json.RawMessage(result)
	}
	shown, err := e.runner.call(ctx, min(hookTimeout, e.plugin.Timeout), request{Run: r.Run, Args: []any{id.String(), value}})
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %s", e.name, e.mask(err.Error()))
	}
	shown = e.hide(shown)
	found := &Rendered{Plugin: e.name}
	if json.Unmarshal(shown, &found.Text) == nil && string(shown) != "null" {
		found.Text = sanitize.Text(found.Text, maxShown)
		return found, nil
	}
	var table struct {
		Columns []any   `json:"columns"`
		Rows    [][]any `json:"rows"`
	}
	if json.Unmarshal(shown, &table) != nil || len(table.Columns) == 0 {
		return nil, fmt.Errorf("plugin %s: %s must return a text, or a dict with columns and rows", e.name, r.Run)
	}
	found.Columns = cells(table.Columns)
	for _, row := range table.Rows[:min(len(table.Rows), maxRows)] {
		found.Rows = append(found.Rows, cells(row))
	}
	return found, nil
}

// cells returns values as clean lines.
func cells(values []any) []string {
	list := make([]string, 0, min(len(values), maxColumns))
	for _, v := range values[:min(len(values), maxColumns)] {
		text, ok := v.(string)
		if !ok {
			data, _ := json.Marshal(v) // decoded from JSON
			text = string(data)
		}
		list = append(list, sanitize.Line(text, maxCell))
	}
	return list
}
