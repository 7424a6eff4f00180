package catalog

import (
	"cmp"
	"strings"

	"sallyport/codegen"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Habits is the text and the parameters that most tools of an upstream share, which do not describe a single tool.
type Habits struct {
	// Opening is the first sentence of most descriptions, "" if there is none.
	Opening string
	Params  codegen.Usual
}

const (
	// leastHabit is how many tools, and more than half of all, must share something for it to be boilerplate.
	leastHabit = 6
	// fewParams is how many shared parameters are the topic of the tools rather than boilerplate.
	fewParams = 2
)

// habitsOf looks for boilerplate in an upstream's tools, with the documents docs.
func habitsOf(tools []tool.Tool, docs []index.Doc) (h Habits) {
	openings, params := map[string]int{}, map[string]int{}
	for i := range tools {
		openings[FirstSentence(tools[i].Description, "")]++
		for _, p := range docs[i].Params {
			params[p.Name]++
		}
	}
	is := func(n int) bool { return n >= leastHabit && 2*n > len(tools) }
	for opening, n := range openings {
		if is(n) {
			h.Opening = opening
		}
	}
	for name, n := range params {
		if is(n) {
			if h.Params == nil {
				h.Params = codegen.Usual{}
			}
			h.Params[name] = true
		}
	}
	if len(h.Params) <= fewParams {
		h.Params = nil
	}
	return h
}

// Habits returns the boilerplate of a tool's upstream.
func (s *Snapshot) Habits(id tool.ID) Habits {
	if of := s.usual[id.Upstream]; of != nil {
		return of()
	}
	return Habits{}
}

// Summary returns the first sentence of a tool's description that is not boilerplate.
func (h Habits) Summary(t tool.Tool) string {
	first := FirstSentence(t.Description, t.Title)
	if h.Opening == "" || first != h.Opening {
		return first
	}
	_, rest, _ := strings.Cut(sanitize.Text(t.Description, 2000), first)
	rest = strings.TrimLeft(rest, ".…: \n")
	return cmp.Or(FirstSentence(rest, ""), first)
}
