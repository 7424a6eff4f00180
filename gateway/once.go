package gateway

import (
	"strings"

	"sallyport/internal/tool"
)

// once remembers what the hits of one answer have said of parameters: servers repeat the same ones in every tool.
type once map[told]tool.ID

type told struct{ upstream, block string }

const parametersMark = "\n\nParameters:\n"

// minRepeated is the shortest explanation that is not repeated, in bytes.
const minRepeated = 40

// full is all there is to tell of a tool, the mark behind its signature. Parameters
// that an earlier hit of the same upstream explained in the same words point to it.
func (o once) full(t FoundTool, mark string) string {
	text := strings.TrimSpace(t.Text)
	if line, rest, ok := cutLines(text, 2); ok {
		text = line + mark + "\n" + rest
	} else {
		text += mark
	}
	at := strings.LastIndex(text, parametersMark)
	if at < 0 {
		return text
	}
	head, list := text[:at+len(parametersMark)], text[at+len(parametersMark):]
	list, rest, _ := strings.Cut(list, "\n\n")
	if rest != "" {
		rest = "\n\n" + rest
	}
	kept, pointers := o.split(t.ID, blocks(list))
	return strings.TrimSuffix(head+strings.Join(append(kept, pointers...), "\n")+rest, "\n")
}

// split returns the blocks that are new, and a line for each tool that explained some of the others.
func (o once) split(id tool.ID, list []string) (kept, pointers []string) {
	names := map[tool.ID][]string{}
	var order []tool.ID
	for _, block := range list {
		key := told{id.Upstream, block}
		first, known := o[key]
		if !known || len(block) < minRepeated {
			o[key] = id
			kept = append(kept, block)
			continue
		}
		if names[first] == nil {
			order = append(order, first)
		}
		names[first] = append(names[first], parameterName(block))
	}
	for _, first := range order {
		pointers = append(pointers, "  "+strings.Join(names[first], ", ")+": as for "+first.Name)
	}
	return kept, pointers
}

// blocks cuts the list of parameters: each with the lines about its members.
func blocks(list string) []string {
	var found []string
	for line := range strings.SplitSeq(list, "\n") {
		if n := len(found); n > 0 && (strings.HasPrefix(line, "   ") || !strings.HasPrefix(line, "  ")) {
			found[n-1] += "\n" + line
			continue
		}
		found = append(found, line)
	}
	return found
}

// parameterName is the name that a block begins with: "  page_size (...): ..." has page_size.
func parameterName(block string) string {
	name := strings.TrimSpace(block)
	if end := strings.IndexAny(name, " :?"); end > 0 {
		name = name[:end]
	}
	return name
}

// cutLines cuts a text after n lines.
func cutLines(text string, n int) (before, after string, ok bool) {
	at := 0
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return text, "", false
		}
		at += i + 1
	}
	return text[:at-1], text[at:], true
}
