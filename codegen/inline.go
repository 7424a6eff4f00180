package codegen

import (
	"slices"
	"strings"
)

// maxLevel is the maximum nesting of objects that is written out. On level 0 an
// object shows only its required members, on untypedLevel none.
const (
	maxLevel     = 4
	untypedLevel = -1
)

// inliner writes types for a model: it expands definitions in place and writes
// literals bare. It replaces what is deeper than level or beyond limit bytes by "...".
type inliner struct {
	b     strings.Builder
	lang  Language
	level int
	limit int
	// inProgress holds the definitions being expanded; a recursive one becomes "...".
	inProgress []*def
	// cut is set if something was omitted.
	cut bool
}

// inlineType writes t as fully as fits into limit bytes; whole is false if something is omitted.
func inlineType(t *typ, lang Language, limit int) (text string, whole bool) {
	w := inlineFrom(maxLevel, t, lang, limit)
	return w.finish(), !w.cut
}

// inlineFrom writes t on the highest level that fits, starting at level.
func inlineFrom(level int, t *typ, lang Language, limit int) *inliner {
	w := &inliner{lang: lang, level: level, limit: limit}
	w.typ(t, 0)
	if w.b.Len() > limit && level > untypedLevel {
		return inlineFrom(level-1, t, lang, limit)
	}
	return w
}

func (w *inliner) finish() string {
	if w.b.Len() <= w.limit {
		return w.b.String()
	}
	w.cut = true
	return "..."
}

func (w *inliner) text(parts ...code) {
	for _, part := range parts {
		w.b.WriteString(string(part))
	}
}

func (w *inliner) typ(t *typ, depth int) {
	if w.b.Len() > w.limit {
		return
	}
	switch t.kind {
	case literalKind:
		w.literals(t.values)
	case listKind:
		w.list(t, depth)
	case tupleKind:
		w.tuple(t, depth)
	case mapKind:
		w.text(w.byLanguage("dict[str, ", "Record<string, "))
		w.typ(t.elem, depth)
		w.text(w.byLanguage("]", ">"))
	case objectKind:
		w.object(t, depth)
	case unionKind:
		w.union(t, depth)
	case refKind:
		w.ref(t.def, depth)
	default:
		w.text(w.scalar(t))
	}
}

func (w *inliner) byLanguage(python, typescript code) code {
	if w.lang == TypeScript {
		return typescript
	}
	return python
}

func (w *inliner) scalar(t *typ) code {
	switch t.kind {
	case nullKind:
		return w.byLanguage("None", "null")
	case boolKind:
		return w.byLanguage("bool", "boolean")
	case intKind:
		return w.byLanguage("int", "number")
	case numberKind:
		if t == countType {
			return w.byLanguage("int", "number")
		}
		return w.byLanguage("float", "number")
	case stringKind:
		return w.byLanguage("str", "string")
	case blobKind:
		return "Blob"
	}
	if t.fromCaller {
		return w.byLanguage("Any", "unknown")
	}
	return w.byLanguage("Any", "any")
}

// literals shows more values on higher levels. It joins them without spaces, which
// would cost a token each.
func (w *inliner) literals(values []literal) {
	shown := values[:min(len(values), 4+8*max(0, w.level))]
	for i, v := range shown {
		if i > 0 {
			w.text("|")
		}
		w.text(w.literal(v))
	}
	if len(shown) < len(values) {
		w.cut = true
		w.text("|...")
	}
}

func (w *inliner) literal(v literal) code {
	if w.lang == TypeScript {
		return tsLiteral(v)
	}
	return pyLiteral(v)
}

func (w *inliner) list(t *typ, depth int) {
	if w.lang == Python {
		w.text("list[")
		w.typ(t.elem, depth)
		w.text("]")
		return
	}
	brackets := t.elem.kind == unionKind || t.elem.kind == literalKind && len(t.elem.values) > 1 || isAlias(t.elem)
	before := w.b.String()
	w.typ(t.elem, depth)
	if elem := w.b.String()[len(before):]; brackets && elem != "{...}" {
		w.b.Reset()
		w.b.WriteString(before + "(" + elem + ")")
	}
	w.text("[]")
}

func isAlias(t *typ) bool { return t.kind == refKind && t.def.typ.kind != objectKind }

func (w *inliner) tuple(t *typ, depth int) {
	w.text("[")
	for i, arm := range t.arms {
		if i > 0 {
			w.text(", ")
		}
		w.typ(arm, depth)
	}
	if t.elem != nil {
		w.text(", *")
		w.typ(t.elem, depth)
	}
	w.text("]")
}

// union writes the arms. It writes arms with the same truncated text once.
func (w *inliner) union(t *typ, depth int) {
	seen := map[string]bool{}
	for _, arm := range t.arms {
		before := w.b.String()
		if len(seen) > 0 {
			w.text(" | ")
		}
		start := w.b.Len()
		w.typ(arm, depth)
		text := w.b.String()[start:]
		if seen[text] {
			w.b.Reset()
			w.b.WriteString(before)
		}
		seen[text] = true
	}
}

func (w *inliner) ref(d *def, depth int) {
	again := slices.Contains(w.inProgress, d)
	switch {
	case depth < w.level && !again:
		w.inProgress = append(w.inProgress, d)
		w.typ(d.typ, depth+1)
		w.inProgress = w.inProgress[:len(w.inProgress)-1]
		return
	case d.typ.kind == objectKind && w.level == 0 && depth == 0 && !again:
		w.requiredMembers(d.typ)
	case d.typ.kind == objectKind:
		w.text("{...}")
	default:
		w.text("...")
	}
	w.cut = w.cut || !again
}

// requiredMembers writes only the required members of an object.
func (w *inliner) requiredMembers(t *typ) {
	w.text("{")
	for _, f := range t.fields {
		if f.required {
			w.member(f)
			w.typ(f.typ, w.level+1)
			w.text(", ")
		}
	}
	w.text("...}")
}

func (w *inliner) object(t *typ, depth int) {
	w.text("{")
	for i, f := range t.fields {
		if i > 0 {
			w.text(", ")
		}
		w.member(f)
		w.typ(f.typ, depth)
	}
	if t.open {
		w.text(", ...")
	}
	w.text("}")
}

func (w *inliner) member(f field) {
	w.text(tsMember(f))
}
