package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/codegen/bundle"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// lastExecution means the last successful execution of the caller.
const lastExecution = "last"

// fromExecution makes a function of a successful program. The notes describe the new parameters.
func (s *Library) fromExecution(ctx context.Context, d SkillDraft, next *skill.Skill) (string, []string, error) {
	record, err := s.findExecution(ctx, strings.TrimSpace(d.From))
	if err != nil {
		return "", nil, err
	}
	switch {
	case record.Status != sandbox.OK:
		return "", nil, &tool.Error{Kind: tool.Invalid, Message: "execution " + record.ID + " failed", Hint: "a skill needs a successful execution"}
	case d.Language != "" && next.Language != record.Language:
		return "", nil, &tool.Error{Kind: tool.Invalid, Message: "execution " + record.ID + " is in " + record.Language, Hint: "leave out language"}
	}
	s.opts.Guard.AddOrigins(ctx, record.Read)
	next.Language = record.Language
	doc := cmp.Or(next.Description, strings.ReplaceAll(next.Name, "-", " "))
	made, err := s.parameterise(ctx, record, next.Module(), d.Params, doc)
	if err != nil {
		return "", nil, err
	}
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(made.Counts)) {
		notes = append(notes, fmt.Sprintf("%s replaces %s %s", sanitize.Line(name, 60), sanitize.Line(string(d.Params[name]), 60), times(made.Counts[name])))
	}
	for _, note := range made.Notes {
		notes = append(notes, sanitize.Line(note, 200))
	}
	return made.Code, notes, nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// findExecution finds an execution of the caller.
func (s *Library) findExecution(ctx context.Context, id string) (history.Record, error) {
	if id != lastExecution {
		return s.opts.History.Record(ctx, id)
	}
	s.mu.Lock()
	id = s.lastSuccess[tool.Principal(ctx)+"\x00"+tool.Session(ctx)]
	s.mu.Unlock()
	if id == "" {
		return history.Record{}, &tool.Error{Kind: tool.NotFound, Message: "no successful execution in this session", Hint: "run the program first, or give the id of an execution"}
	}
	return s.opts.History.Record(ctx, id)
}

// rewriteResult is the result of turning a program into a function.
type rewriteResult struct {
	Error  string
	Code   string
	Counts map[string]int
	Notes  []string
}

// parameterise turns a program into a function, with parameters in place of literals.
func (s *Library) parameterise(ctx context.Context, record history.Record, function string, params map[string]json.RawMessage, doc string) (made rewriteResult, err error) {
	if record.Language == skill.TypeScript {
		r, err := bundle.Function(record.Code, function, params, doc)
		if err != nil {
			return made, &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(err.Error(), 300)}
		}
		return rewriteResult{Code: r.Code, Counts: r.Counts, Notes: r.Notes}, nil
	}
	if params == nil {
		params = map[string]json.RawMessage{}
	}
	data, err := json.Marshal(params)
	if err != nil {
		return made, toolcall.Invalid("params must be one object", "")
	}
	texts := map[string]string{"SOURCE": record.Code, "FUNCTION": function, "PARAMS": string(data), "DOC": doc}
	if err := (compiler{s}).runPython(ctx, parameterisePython, texts, &made); err != nil {
		return made, err
	}
	if made.Error != "" {
		return made, &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(made.Error, 300)}
	}
	return made, nil
}
