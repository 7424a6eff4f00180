package misuse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/internal/sanitize"
)

// page is the last page that a program got of a tool, which is not the last one that there is.
type page struct {
	tool      string
	how       *codegen.Paging
	items     int
	total     string // how many items there are in all, "" if that is not known
	totalName string // the member that says it
	next      string // the member with the next cursor, "" if there is none
	// full is set if all that tells of further pages is that this one is full; most is how long it could be.
	full bool
	most string
	size string // the parameter for the length of a page, "" if there is none
	set  bool   // the program set it
}

// Pages returns what to tell a program that took the first page of a result for all of it, "" if none did.
func Pages(r Run) string {
	for _, t := range r.Tools {
		if p := t.unread(); p != nil && r.takesForAll(p) {
			return p.String()
		}
	}
	return ""
}

// String says what was not read, and how to read it.
func (p *page) String() string {
	all := fmt.Sprintf("iterate(%s, ...)", p.tool)
	if p.full {
		longer := ""
		if p.most != "" {
			longer = fmt.Sprintf("%s up to %s, ", p.size, p.most)
		}
		return fmt.Sprintf("%s gave a full page of %d, more may follow: %s%s=..., or %s", p.tool, p.items, longer, p.how.Name, all)
	}
	of := ""
	if p.total != "" {
		of = " of " + p.total
	}
	value := p.next
	if value == "" {
		value = "..."
	}
	return fmt.Sprintf("%s has more pages, read were %d%s items: %s=%s, or %s", p.tool, p.items, of, p.how.Name, value, all)
}

// unread returns the page after which a program read no other, nil if it read several or the last one.
func (t Tool) unread() *page {
	how, size := codegen.PagingOf(t.Tool)
	if how == nil || len(t.Calls) == 0 {
		return nil
	}
	for _, c := range t.Calls {
		if given := argument(c.Args, how.Name); given != nil && (how.By != "page" || string(given) != "1") {
			return nil
		}
	}
	for _, c := range t.Calls {
		p := &page{tool: t.ID.Name, how: how, size: size, set: size != "" && argument(c.Args, size) != nil}
		if p.read(c.Value) || p.isFull(t.Input, c.Args) {
			return p
		}
	}
	return nil
}

// argument returns an argument in JSON, nil if it is missing or null.
func argument(args json.RawMessage, name string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil || string(all[name]) == "null" {
		return nil
	}
	return all[name]
}

// totals are the names of members that say how many items there are, without punctuation.
var totals = []string{"total", "totalcount", "totalresults", "totalitems", "totalhits", "totalrecords", "totalsize", "count"}

// read reads a result, and reports whether it says that there is another page.
func (p *page) read(value json.RawMessage) bool {
	if trimmed := bytes.TrimSpace(value); len(trimmed) > 0 && trimmed[0] == '[' {
		p.items = length(value)
		return false
	}
	total, more := 0, ""
	for _, m := range membersOf(value) {
		switch {
		case length(m.value) > p.items:
			p.items = length(m.value)
		case codegen.IsMore(m.name):
			more = string(m.value)
		case codegen.IsNext(m.name) && isCursor(m.value):
			p.next = m.name
		case slices.Contains(totals, strings.ToLower(strings.ReplaceAll(m.name, "_", ""))):
			if n := 0; json.Unmarshal(m.value, &n) == nil {
				total, p.totalName = max(total, n), m.name
			}
		}
	}
	if total > p.items {
		p.total = fmt.Sprint(total)
	}
	return p.items > 0 && more != "false" && (p.next != "" || more == "true" || p.total != "")
}

func isCursor(value json.RawMessage) bool {
	s := string(value)
	return s != "" && s != "null" && s != `""` && s != "false" && s[0] != '[' && s[0] != '{'
}

type namedValue struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object and of the objects in it, in the order of their names.
func membersOf(value json.RawMessage) (list []namedValue) {
	var outer map[string]json.RawMessage
	if json.Unmarshal(value, &outer) != nil {
		return nil
	}
	for key, inner := range outer {
		list = append(list, namedValue{key, inner})
		var below map[string]json.RawMessage
		if len(inner) > 0 && inner[0] == '{' && json.Unmarshal(inner, &below) == nil {
			for k, v := range below {
				list = append(list, namedValue{k, v})
			}
		}
	}
	slices.SortFunc(list, func(a, b namedValue) int { return strings.Compare(a.name, b.name) })
	return list
}

// length returns the length of a list, 0 for other values.
func length(value json.RawMessage) int {
	var items []json.RawMessage
	if trimmed := bytes.TrimSpace(value); len(trimmed) == 0 || trimmed[0] != '[' || json.Unmarshal(trimmed, &items) != nil {
		return 0
	}
	return len(items)
}

// minFull is the length from which on a page of exactly the default length is probably not the last one.
const minFull = 10

// isFull reports whether a page has exactly as many items as it can have.
func (p *page) isFull(input, args json.RawMessage) bool {
	var schema struct {
		Properties map[string]struct{ Default, Maximum json.RawMessage }
	}
	if p.size == "" || p.items < minFull || p.total != "" || json.Unmarshal(input, &schema) != nil {
		return false
	}
	size := schema.Properties[p.size]
	limit := string(argument(args, p.size))
	if limit == "" {
		limit = string(size.Default)
	}
	if limit != fmt.Sprint(p.items) {
		return false
	}
	if p.full = true; limit != string(size.Maximum) {
		p.most = sanitize.Line(string(size.Maximum), 20)
	}
	return true
}

var (
	// onlyFirst matches programs that want the first items only.
	onlyFirst = regexp.MustCompile(`\[\s*:|\[-?\d+\]|\.at\(\d|\.slice\(0|\bislice\b|\bnext\(|\.find\(|\bbreak\b|\.pop\(0\)|\.shift\(\)|\[\s*\w+\s*\]\s*=|\biterate\b|(?i:\bfirst)`)
	// isSum matches output that is one number.
	isSum = regexp.MustCompile(`^\s*(?:=> )?-?\d+(?:\.\d+)?\s*$`)
)

// takesForAll reports whether a program seems to take a page for the whole result: it does not look at what the result
// says about further pages, and it did not ask for a few items to show them.
func (r Run) takesForAll(p *page) bool {
	words := []string{p.next, p.how.Name, p.totalName}
	for _, word := range append(words, p.how.Next...) {
		if word != "" && regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).MatchString(r.Code) {
			return false
		}
	}
	if mentionsMore.MatchString(r.Code) || onlyFirst.MatchString(r.Code) {
		return false
	}
	return isSum.MatchString(r.Output) || !p.full && !p.set
}

// mentionsMore matches programs that look at how many items there are, or whether there are more.
var mentionsMore = regexp.MustCompile(`(?i)\btotal_?(count|results|items|hits)\b|\bhas_?(more|next)`)
