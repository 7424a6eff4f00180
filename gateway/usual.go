package gateway

import (
	"cmp"
	"strings"

	"sallyport/codegen"
	"sallyport/index"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// habits are what most tools of an upstream have and say, which tells nothing of a single one.
type habits struct {
	// opening is the first sentence of most descriptions, "" if there is none.
	opening string
	params  codegen.Usual
}

const (
	// leastHabit is how many tools must have something for it to be a habit, besides being more than half.
	leastHabit = 6
	// fewParams that tools share are what they are about, not how all of them are called.
	fewParams = 2
)

// habitsOf looks for habits in an upstream's tools, whose documents are docs.
func habitsOf(tools []tool.Tool, docs []index.Doc) (h habits) {
	openings, params := map[string]int{}, map[string]int{}
	for i := range tools {
		openings[firstSentence(tools[i].Description, "")]++
		for _, p := range docs[i].Params {
			params[p.Name]++
		}
	}
	is := func(n int) bool { return n >= leastHabit && 2*n > len(tools) }
	for opening, n := range openings {
		if is(n) {
			h.opening = opening
		}
	}
	for name, n := range params {
		if is(n) {
			if h.params == nil {
				h.params = codegen.Usual{}
			}
			h.params[name] = true
		}
	}
	if len(h.params) <= fewParams {
		h.params = nil
	}
	return h
}

// habitsIn are those of a tool's upstream.
func habitsIn(usual map[string]func() habits, id tool.ID) habits {
	if of := usual[id.Upstream]; of != nil {
		return of()
	}
	return habits{}
}

// summary is the first sentence of what a tool says of itself that not most of its upstream say.
func (h habits) summary(t tool.Tool) string {
	first := firstSentence(t.Description, t.Title)
	if h.opening == "" || first != h.opening {
		return first
	}
	_, rest, _ := strings.Cut(plain.Text(t.Description, 2000), first)
	rest = strings.TrimLeft(rest, ".…: \n")
	return cmp.Or(firstSentence(rest, ""), first)
}
