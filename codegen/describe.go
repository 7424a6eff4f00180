package codegen

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxDescribe bounds a full description, in bytes.
	maxDescribe = 8000
	// maxDeep bounds a description that explains members of members of parameters, in bytes.
	maxDeep = 5000
	// maxPurpose bounds the upstream's description of the tool, in runes.
	maxPurpose = 2500
	// maxPath is the depth to which members of parameters are explained.
	maxPath = 3
	// maxDescribedType bounds the type of a parameter and that of the result, in bytes.
	maxDescribedType = 160
	maxReturns       = 1200
)

// Description is a text about a tool, with the byte offsets of its parts.
type Description struct {
	Text string
	// Signature is the end of the signature's line.
	Signature int
	// Parameters holds the passage of each explained parameter, in order, separated by
	// line breaks. Parameters without an explanation have none.
	Parameters []Passage
}

// Passage is the explanation Text[From:To] of the parameter Name.
type Passage struct {
	Name     string
	From, To int
}

// lookalikes matches lines that look like the gateway's own output about upstreams,
// trust or search results.
var lookalikes = regexp.MustCompile(`(?mi)^([ \t]*(?:from servers\b|import (?:type )?\{|also: |no (?:good |tools? )?match|not sure: |perhaps:|did you mean|upstreams that look right|the upstream says:|` +
	`example: |paged: |\w+\.\w+(?:: |\()|\(.*(?:\[|\d+ more\)|give a query|more upstreams|not searched|not available|approve))|.*\[(?:destructive|quarantined)\])`)

// QuoteLookalikes prefixes with "> " the lines of an upstream's text that look like the gateway's own output.
func QuoteLookalikes(text string) string { return lookalikes.ReplaceAllString(text, "> $1") }

// Describe returns all that a model needs to call a tool: the import line, the
// signature, the tool's description, each parameter and member with its
// constraints, and the type of the result if the signature truncates it. The text
// has at most about 8,000 bytes.
func Describe(t tool.Tool, lang Language) Description {
	fn := model(t)
	d := describe(t, fn, lang, maxPath)
	for depth := maxPath - 1; depth > 0 && (d.omitted > 0 || depth > 1 && d.b.Len() > maxDeep); depth-- {
		d = describe(t, fn, lang, depth)
	}
	return Description{Text: strings.TrimRight(d.b.String(), "\n"), Signature: d.signature, Parameters: d.passages}
}

func describe(t tool.Tool, fn function, lang Language, depth int) *description {
	d := &description{lang: lang, depth: depth, seen: map[*def]bool{}, firstUse: map[string]string{}}
	sig, _ := signature(t, fn, lang, maxParams, maxResult, 0)
	d.line(Import(t.ID, lang))
	d.line(sig)
	d.signature = d.b.Len() - 1
	d.line("")
	d.line(QuoteLookalikes(sanitize.Text(purpose(t), maxPurpose)))
	if pages(fn) != nil {
		d.line("Paged: iterate(" + t.ID.Name + ", ...)")
	}
	for _, n := range fn.notes {
		d.line(n)
	}
	d.parameters(fn)
	d.returns(fn.result)
	if fn.observed > 0 {
		d.formats(fn.result)
	}
	return d
}

type description struct {
	b    strings.Builder
	lang Language
	// depth is the depth to which members are explained.
	depth int
	// types is set if the signature omits the type of the current parameter.
	types bool
	// seen holds the definitions with explained members.
	seen map[*def]bool
	// firstUse maps long sentences to the member that had them first.
	firstUse map[string]string
	// pendingLines holds the unwritten lines of the members that enclose the current one.
	pendingLines []string
	// omitted counts lines that exceed maxDescribe.
	omitted int
	// signature and passages are as in Description.
	signature int
	passages  []Passage
}

func (d *description) line(text string) {
	if d.b.Len()+len(text) > maxDescribe {
		d.omitted++
		return
	}
	d.b.WriteString(text)
	d.b.WriteByte('\n')
}

func (d *description) parameters(fn function) {
	params := fn.params
	names := make([]string, len(params))
	for i, f := range params {
		names[i] = f.name
	}
	if d.lang == Python {
		names = pyParams(params)
	}
	before, told := d.b.Len(), newParamList(fn, d.lang, maxParams, 0).params
	d.line("\nParameters:")
	start := d.b.Len()
	for i, f := range params {
		d.types = told[i].cut
		from := d.b.Len()
		d.member(names[i], names[i] != f.name, f, 1)
		if to := d.b.Len(); to > from {
			d.passages = append(d.passages, Passage{sanitize.Line(names[i], maxName), from, to - 1})
		}
	}
	if d.b.Len() == start { // no parameter has an explanation
		text := d.b.String()[:before]
		d.b.Reset()
		d.b.WriteString(text)
	}
	if d.omitted > 0 {
		d.b.WriteString("(more is left out; read the wrapper's file)\n")
	}
}

// member explains one parameter or member, then its own members with more indentation.
func (d *description) member(name string, renamed bool, f field, depth int) {
	label, text := name, d.memberText(name, f, depth)
	if d.types {
		inline, _ := inlineType(f.typ, d.lang, maxDescribedType)
		text = strings.TrimSpace("(" + inline + ") " + text)
		if !f.required {
			label += "?"
		}
	}
	if renamed {
		label += " (" + show(f.name) + ")"
	}
	line := strings.TrimSuffix(strings.Repeat("  ", depth)+sanitize.Line(label, maxName)+": "+text, " ")
	above := len(d.pendingLines)
	if d.pendingLines = append(d.pendingLines, line); text != "" || renamed {
		d.flush()
	}
	if depth < d.depth {
		d.nested("", f.typ, depth)
	}
	d.pendingLines = d.pendingLines[:min(above, len(d.pendingLines))]
}

// flush writes the pending lines.
func (d *description) flush() {
	for _, line := range d.pendingLines {
		d.line(line)
	}
	d.pendingLines = d.pendingLines[:0]
}

// memberText returns the documentation of a member, without what its name, its type or, in
// a Python signature, its default already shows.
func (d *description) memberText(name string, f field, depth int) string {
	known := f.doc
	if repeats(known.text, f.name) {
		known.text = ""
	}
	known.text = d.dedupe(name, known.text)
	shown := depth == 1 && d.lang == Python && f.defaultValue != nil && !d.types
	known.notes = slices.DeleteFunc(slices.Clone(known.notes), func(note string) bool {
		value, ok := strings.CutPrefix(note, "default ")
		return ok && (shown || f.defaultValue != nil && saysDefault(known.text, value))
	})
	return known.line(maxFieldDoc)
}

// readOnly reports whether a member is read-only for callers.
func readOnly(d doc) bool {
	return slices.Contains(d.notes, "read-only") || strings.HasSuffix(d.text, " Read-only.")
}

// minSharedSentence is the length from which on a repeated sentence is replaced, in bytes.
const minSharedSentence = 80

// dedupe replaces long sentences that an earlier member has too by a reference to that member.
func (d *description) dedupe(name, text string) string {
	if len(text) < minSharedSentence {
		return text
	}
	var kept []string
	for sentence := range strings.SplitSeq(text, ". ") {
		first, known := d.firstUse[sentence]
		switch pointer := "As for " + first; {
		case len(sentence) < minSharedSentence:
			kept = append(kept, sentence)
		case !known:
			d.firstUse[sentence] = name
			kept = append(kept, sentence)
		case len(kept) == 0 || kept[len(kept)-1] != pointer:
			kept = append(kept, pointer)
		}
	}
	return strings.Join(kept, ". ")
}

// nested explains the members of the objects in a type, each object once.
func (d *description) nested(path string, t *typ, depth int) {
	switch t.kind {
	case listKind:
		d.nested(path+"[]", t.elem, depth)
	case mapKind:
		d.nested(path+"{}", t.elem, depth)
	case unionKind, tupleKind:
		for _, arm := range t.arms {
			d.nested(path, arm, depth)
		}
	case refKind:
		if d.seen[t.def] {
			return
		}
		d.seen[t.def] = true
		d.nested(path, t.def.typ, depth)
	case objectKind:
		for _, f := range t.fields {
			if f.required || !readOnly(f.doc) {
				d.member(path+"."+f.name, false, f, depth+1)
			}
		}
	}
}

// returns writes the type of the result if the signature truncates it.
func (d *description) returns(t *typ) {
	if _, whole := inlineType(t, d.lang, maxResult); whole {
		return
	}
	text, _ := inlineType(t, d.lang, maxReturns)
	if utf8.RuneCountInString(text) > 3 {
		d.line("\nReturns: " + text)
	}
}

// maxFormats is how many members with a format are listed.
const maxFormats = 8

// formats lists the members of an observed result that are dates, addresses and the like.
func (d *description) formats(t *typ) {
	var found []string
	collectFormats(t, "", map[*def]bool{}, &found)
	if len(found) > 0 {
		d.line("\nFormats: " + strings.Join(found[:min(len(found), maxFormats)], ", "))
	}
}

func collectFormats(t *typ, path string, seen map[*def]bool, found *[]string) {
	switch t.kind {
	case listKind:
		collectFormats(t.elem, path+"[]", seen, found)
	case unionKind:
		for _, arm := range t.arms {
			collectFormats(arm, path, seen, found)
		}
	case refKind:
		if !seen[t.def] && len(*found) < maxFormats {
			seen[t.def] = true
			collectFormats(t.def.typ, path, seen, found)
		}
	case objectKind:
		for _, f := range t.fields {
			name := strings.TrimPrefix(path+"."+sanitize.Line(f.name, maxName), ".")
			for _, note := range f.doc.notes {
				format, each := strings.CutPrefix(note, "each ")
				*found = append(*found, name+map[bool]string{true: "[] ", false: " "}[each]+format)
			}
			collectFormats(f.typ, name, seen, found)
		}
	}
}
