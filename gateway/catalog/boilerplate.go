package catalog

import (
	"cmp"
	"strings"

	"sallyport/codegen"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Boilerplate is the text and the parameters that most tools of an upstream share, which do not describe a single tool.
type Boilerplate struct {
	// Opening is the first sentence of most descriptions, "" if there is none.
	Opening string
	Params  codegen.Usual
}

const (
	// minBoilerplateTools is how many tools, and more than half of all, must share something for it to be boilerplate.
	minBoilerplateTools = 6
	// maxTopicParams is how many shared parameters are the topic of the tools rather than boilerplate.
	maxTopicParams = 2
)

// findBoilerplate looks for boilerplate in an upstream's tools, with the documents docs.
func findBoilerplate(tools []tool.Tool, docs []index.Doc) (h Boilerplate) {
	openings, params := map[string]int{}, map[string]int{}
	for i := range tools {
		openings[FirstSentence(tools[i].Description, "")]++
		for _, p := range docs[i].Params {
			params[p.Name]++
		}
	}
	is := func(n int) bool { return n >= minBoilerplateTools && 2*n > len(tools) }
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
	if len(h.Params) <= maxTopicParams {
		h.Params = nil
	}
	return h
}

// Boilerplate returns the boilerplate of a tool's upstream.
func (s *Snapshot) Boilerplate(id tool.ID) Boilerplate {
	if of := s.boilerplate[id.Upstream]; of != nil {
		return of()
	}
	return Boilerplate{}
}

// Summary returns the first sentence of a tool's description that is not boilerplate.
func (h Boilerplate) Summary(t tool.Tool) string {
	return codegen.ProgramNames(h.summary(t), t.Siblings)
}

func (h Boilerplate) summary(t tool.Tool) string {
	first := FirstSentence(t.Description, t.Title)
	if h.Opening == "" || first != h.Opening {
		return first
	}
	_, rest, _ := strings.Cut(sanitize.Text(t.Description, 2000), first)
	rest = strings.TrimLeft(rest, ".…: \n")
	return cmp.Or(FirstSentence(rest, ""), first)
}
