package toolsearch

import (
	"cmp"
	"strings"

	"sallyport/internal/tool"
)

// parameterDedup records the parameter descriptions in one answer: servers repeat the same ones in every tool.
type parameterDedup map[passageKey]tool.ID

type passageKey struct{ upstream, passage string }

// minDedupLength is the length of the shortest description that is not repeated, in bytes.
const minDedupLength = 40

// full returns the full description of a tool, with mark after its signature. Parameters
// that an earlier hit of the same upstream describes in the same words refer to it.
func (o parameterDedup) full(t FoundTool, mark string) string {
	text, list := t.Text, t.parts.Parameters
	at := cmp.Or(t.parts.Signature, len(text))
	text = text[:at] + mark + text[at:]
	if len(list) == 0 {
		return text
	}
	kept, pointers := o.split(t)
	first, last := list[0].From+len(mark), list[len(list)-1].To+len(mark)
	return text[:first] + strings.Join(append(kept, pointers...), "\n") + text[last:]
}

// split returns the new passages, and a line for each tool that describes some of the others.
func (o parameterDedup) split(t FoundTool) (kept, pointers []string) {
	names := map[tool.ID][]string{}
	var order []tool.ID
	for _, p := range t.parts.Parameters {
		passage := t.Text[p.From:p.To]
		key := passageKey{t.ID.Upstream, passage}
		first, known := o[key]
		if !known || len(passage) < minDedupLength {
			o[key] = t.ID
			kept = append(kept, passage)
			continue
		}
		if names[first] == nil {
			order = append(order, first)
		}
		names[first] = append(names[first], p.Name)
	}
	for _, first := range order {
		pointers = append(pointers, "  "+strings.Join(names[first], ", ")+": as for "+first.Name)
	}
	return kept, pointers
}
