package codegen

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// Paging describes the pagination of a tool for the guest's iterate. It is the member
// "pages" of a spec.
//
//	{"by":"cursor","name":"after","next":["pageInfo","endCursor"],"items":["issues"]}
type Paging struct {
	// By is "cursor" (the result has the next cursor), "link" (the result has the
	// next URL), "last" (the cursor is the id of the last item), "page" (a page
	// number) or "offset" (an item number).
	By string `json:"by"`
	// Name is the wire name of the parameter.
	Name string `json:"name"`
	// First is the number of the first page if it is not 1.
	First *int `json:"first,omitempty"`
	// Next, More and Items are the paths in the result of the next cursor, of the
	// flag for more pages, and of the list. They are empty if the type does not show
	// them: iterate then searches the results for the same names.
	Next  []string `json:"next,omitempty"`
	More  []string `json:"more,omitempty"`
	Items []string `json:"items,omitempty"`
}

// Names of parameters and members are compared without case and punctuation.
var (
	cursorNames = stringSet(strings.Fields(`pagetoken nexttoken nextcursor nextpagetoken nextpagecursor startcursor pagecursor aftercursor continuationtoken
		paginationtoken paginationcursor scrollid skiptoken startingtoken nextmarker exclusivestartkey`))
	vagueCursors = stringSet(strings.Fields("cursor continuation marker start after from nextpage next token"))
	pageNames    = stringSet(strings.Fields("page pagenumber pageno pagenum pageindex pageidx currentpage"))
	offsetNames  = stringSet(strings.Fields("offset skip startindex startat start from"))
	sizeNames    = stringSet(strings.Fields(`limit perpage pagesize size count top first maxresults maxcount maxitems pagelimit resultsperpage itemsperpage
		numresults rows take max n num`))

	nextNames = stringSet(strings.Fields(`nextcursor nextpagetoken nexttoken endcursor nextpagecursor nextstartcursor continuationtoken continuation
		nextmarker scrollid odatanextlink nextlink nextpageuri nextpageurl nexturl nextpage next nextoffset nextskiptoken cursor`))
	moreNames = stringSet(strings.Fields("hasmore hasnextpage hasnext morepages moreavailable hasadditionalresults istruncated"))

	aboutCursors = regexp.MustCompile(`(?i)cursor|paginat|continuation|next (page|set)|previous (response|page|result)|page token`)
	aboutPages   = regexp.MustCompile(`(?i)paginat|page (number|index)|results? page|page of (the )?results|number of the page|which page`)
	aboutText    = regexp.MustCompile(`(?i)\b(lines?|characters?|chars?|bytes?|tokens?|seconds?|frames?|pixels?)\b`)
	zeroBased    = regexp.MustCompile(`(?i)(0|zero)[- ]?(based|indexed)|(starts?|starting|begins?) (at|from|with) (0|zero)\b|first page is 0`)
	fewPages     = regexp.MustCompile(`(?im)\bmax(imum)?:? (is )?1?[0-9]\b|^0-1?[0-9]$`)
)

// letters returns a name in lower case without punctuation.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
}

// pages returns the detected pagination of a function, nil if there is none.
func pages(fn function) *Paging {
	if textual(fn.result) {
		return nil
	}
	var p *Paging
	for _, find := range []func([]field, field) *Paging{byCursor, byPage, byOffset} {
		for _, f := range fn.params {
			if p = find(fn.params, f); p != nil {
				p.findPaths(fn.result)
				return p
			}
		}
	}
	return nil
}

// PagingOf returns the detected pagination of a tool, nil if there is none. size is the name of the parameter that sets how
// many items a page has, "" if there is none.
func PagingOf(t tool.Tool) (p *Paging, size string) {
	fn := model(t)
	if p = pages(fn); p == nil {
		return nil, ""
	}
	for _, f := range fn.params {
		if hasSize([]field{f}, p.Name) {
			return p, f.name
		}
	}
	return p, ""
}

// IsNext reports whether a member of a result has a name as the cursor of the next page has.
func IsNext(member string) bool { return nextNames[letters(member)] }

// IsMore reports whether a member of a result has a name as the flag has that says whether there is another page.
func IsMore(member string) bool { return moreNames[letters(member)] }

// pagesJSON returns the pagination as JSON, "" if there is none.
func pagesJSON(fn function) string {
	p := pages(fn)
	if p == nil {
		return ""
	}
	data, err := json.Marshal(p)
	if err != nil {
		return "" // strings and numbers can be marshaled
	}
	return string(data)
}

// textual reports whether a result cannot contain a list.
func textual(t *typ) bool {
	switch t.kind {
	case stringKind, boolKind, intKind, numberKind, nullKind, literalKind:
		return true
	case unionKind:
		return !slices.ContainsFunc(t.arms, func(arm *typ) bool { return !textual(arm) })
	}
	return false
}

func (f field) docWords() string { return f.doc.text + "\n" + strings.Join(f.doc.notes, "\n") }

// accepts reports whether a parameter accepts a value of one of the kinds.
func (f field) accepts(kinds ...kind) bool {
	arms := []*typ{f.typ}
	if f.typ.kind == unionKind {
		arms = f.typ.arms
	}
	return slices.ContainsFunc(arms, func(t *typ) bool { return slices.Contains(kinds, t.kind) })
}

func hasSize(params []field, but string) bool {
	return slices.ContainsFunc(params, func(f field) bool {
		return f.name != but && sizeNames[letters(f.name)] && f.accepts(intKind, numberKind, stringKind, anyKind, literalKind)
	})
}

func byCursor(params []field, f field) *Paging {
	name, words := letters(f.name), f.docWords()
	switch {
	case f.required || !f.accepts(stringKind, anyKind):
		return nil
	case name == "startingafter":
		return &Paging{By: "last", Name: f.name}
	case cursorNames[name], name == "cursor" && hasSize(params, f.name), vagueCursors[name] && aboutCursors.MatchString(words):
	default:
		return nil
	}
	if strings.Contains(strings.ToLower(words), "nextlink") || name == "nextlink" || name == "nexturl" {
		return &Paging{By: "link", Name: f.name}
	}
	return &Paging{By: "cursor", Name: f.name}
}

func byPage(params []field, f field) *Paging {
	if f.required || !pageNames[letters(f.name)] || !f.accepts(intKind, numberKind) {
		return nil
	}
	if !hasSize(params, f.name) && !aboutPages.MatchString(f.docWords()) {
		return nil
	}
	p := &Paging{By: "page", Name: f.name}
	if zeroBased.MatchString(f.docWords()) || f.defaultValue != nil && f.defaultValue.text == "0" {
		p.First = new(int)
	}
	return p
}

// byOffset detects pagination by offset, except offsets into a text. An offset of at most 19 is a page number.
func byOffset(params []field, f field) *Paging {
	words := f.docWords()
	if f.required || !offsetNames[letters(f.name)] || !f.accepts(intKind, numberKind) || aboutText.MatchString(words) {
		return nil
	}
	switch {
	case !hasSize(params, f.name) && !aboutCursors.MatchString(words):
		return nil
	case fewPages.MatchString(words):
		return &Paging{By: "page", Name: f.name, First: new(int)}
	}
	return &Paging{By: "offset", Name: f.name}
}

// maxPagePath is the maximum depth in a result of a cursor or a list.
const maxPagePath = 3

// findPaths sets the paths of the cursor and the list from the result's type.
func (p *Paging) findPaths(result *typ) {
	if result.kind != refKind {
		return
	}
	if p.By == "cursor" || p.By == "link" {
		p.Next = find(result, nil, func(f field) bool { return nextNames[letters(f.name)] && !f.accepts(listKind, refKind, boolKind) })
	}
	p.More = find(result, nil, func(f field) bool { return moreNames[letters(f.name)] })
	p.Items = find(result, nil, func(f field) bool { return f.accepts(listKind) })
}

// find returns the path of the topmost member that fits. It returns nil if several
// fit on that level.
func find(t *typ, path []string, fit func(field) bool) []string {
	type place struct {
		typ  *typ
		path []string
	}
	level := []place{{t, path}}
	for range maxPagePath {
		var found [][]string
		var below []place
		for _, at := range level {
			for _, f := range members(at.typ) {
				if len(f.name) > maxName {
					continue
				}
				here := append(slices.Clone(at.path), f.name)
				if fit(f) {
					found = append(found, here)
				}
				below = append(below, place{f.typ, here})
			}
		}
		if len(found) == 1 {
			return found[0]
		}
		if len(found) > 1 {
			return nil
		}
		level = below[:min(len(below), 100)]
	}
	return nil
}

// members returns the fields of an object, or of all objects in a union.
func members(t *typ) (fields []field) {
	switch t.kind {
	case refKind:
		return members(t.def.typ)
	case objectKind:
		return t.fields
	case unionKind:
		for _, arm := range t.arms {
			if arm.kind != unionKind {
				fields = append(fields, members(arm)...)
			}
		}
	}
	return fields
}
