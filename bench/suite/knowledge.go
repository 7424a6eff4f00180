package suite

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"sallyport/bench/tokencount"
)

// knowledge is what the author of a program has read. Everything that a program assumes must be in it: the quoted words,
// and the members that it takes from the result of a call.
type knowledge struct {
	texts []string
	words map[string]bool
	// seen are the ids of the wrappers that a program has called successfully.
	seen map[string]bool
}

var word = regexp.MustCompile(`[A-Za-z_]\w*`)

func (k *knowledge) read(texts ...string) {
	if k.words == nil {
		k.words, k.seen = map[string]bool{}, map[string]bool{}
	}
	k.texts = append(k.texts, texts...)
	for _, text := range texts {
		for _, w := range word.FindAllString(text, -1) {
			k.words[w] = true
		}
	}
}

func (k *knowledge) addProgram(s *source) {
	for _, id := range s.imports {
		k.seen[id] = true
	}
}

// heading is the line above the signatures of an upstream, in either language.
var heading = regexp.MustCompile(`^(?:from servers\.(\w+) import .+|import \{ .+ \} from "servers/(\w+)")$`)

// signatures are those of a wrapper, below its upstream's import line. To have named or described it is not enough to call it.
func (k *knowledge) signatures(id string) (found []string) {
	upstream, name, _ := strings.Cut(id, ".")
	for _, text := range k.texts {
		above := ""
		for line := range strings.SplitSeq(text, "\n") {
			begins := heading.FindStringSubmatch(line)
			switch {
			case begins != nil:
				above = begins[1] + begins[2]
			case above == upstream && (strings.HasPrefix(line, "  "+name+"(") || strings.HasPrefix(line, id+"(")): // among others, or told in full
				found = append(found, line)
			case !strings.HasPrefix(line, "  "):
				above = ""
			}
		}
	}
	return found
}

// named reports whether an answer names a wrapper without its signature.
func (k *knowledge) named(id string) bool {
	upstream, name, _ := strings.Cut(id, ".")
	for _, text := range k.texts {
		for line := range strings.SplitSeq(text, "\n") {
			for part := range strings.SplitSeq(strings.TrimPrefix(line, "also "), "; ") {
				if names, is := strings.CutPrefix(part, upstream+": "); is && slices.Contains(strings.Split(names, ", "), name) {
					return true
				}
			}
		}
	}
	return false
}

// result is what signatures of a wrapper say that it returns: the one that leaves nothing out, if there is one.
func (k *knowledge) result(id string) (result string) {
	for _, line := range k.signatures(id) {
		_, returned, is := strings.Cut(line, "): Promise<")
		if !is {
			_, returned, _ = strings.Cut(line, ") -> ")
		}
		if result == "" || strings.Contains(result, "...") {
			result = returned
		}
	}
	return result
}

var (
	anything = regexp.MustCompile(`\b[Aa]ny\b`)
	field    = regexp.MustCompile(`(\w+)\??: `)
)

// missingFields returns the wrappers with signatures that leave out what a program takes from their results.
func (k *knowledge) missingFields(s *source) (ids []string) {
	told := map[string]bool{}
	for _, id := range s.imports {
		for _, found := range field.FindAllStringSubmatch(k.result(id), -1) {
			told[found[1]] = true
		}
	}
	if !slices.ContainsFunc(s.members, func(name string) bool { return !told[name] }) {
		return nil
	}
	for _, id := range s.imports {
		if !k.seen[id] && s.uses(id) && strings.Contains(k.result(id), "...") {
			ids = append(ids, id)
		}
	}
	return ids
}

// guess returns what a program cannot know of, "" if it knows everything that it assumes.
func (k *knowledge) guess(s *source) string {
	for _, id := range s.imports {
		if !k.seen[id] && s.uses(id) && anything.MatchString(k.result(id)) {
			return "what " + id + " returns, which was never looked at"
		}
	}
	if ids := k.missingFields(s); len(ids) > 0 {
		return "what there is in what " + ids[0] + " returns"
	}
	for _, name := range slices.Concat(s.quoted, s.members) {
		if !k.words[name] {
			return name + ", which it has read nowhere"
		}
	}
	return ""
}

// source is a program as far as it shows what it takes for granted.
type source struct {
	file, text, language string
	// imports are the ids of wrappers, quoted the words in its strings, members the names of what it takes out of values.
	imports, quoted, members []string
}

var (
	pythonImport     = regexp.MustCompile(`(?m)^from servers\.(\w+) import (.+)$`)
	typescriptImport = regexp.MustCompile(`(?m)^import \{ (.+) \} from "servers/(\w+)";?$`)
	importLine       = regexp.MustCompile(`(?m)^(?:from|import) .*$`)
	literal          = regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|`[^`]*`")
	// What is no text of a literal: an escape, and an expression in it.
	escape     = regexp.MustCompile(`\\.`)
	expression = regexp.MustCompile(`\$?\{([^{}]*)\}`)
	key        = regexp.MustCompile(`\[(?:"(\w+)"|'(\w+)')\]`)
	property   = regexp.MustCompile(`[\w)\]!?]\.([A-Za-z_]\w*)(\(?)`)
	shown      = regexp.MustCompile(`^\s*(?:(?:print|console\.log)\()?(?:await )?$`)
	taken      = regexp.MustCompile(`\)(?:\[|\.)`)
	unpacked   = regexp.MustCompile(`const \{ ([\w, ]+) \} =`)
)

func newSource(file, text string) *source {
	s := &source{file: file, text: text, language: language(file)}
	code := importLine.ReplaceAllString(text, "")
	for _, quoted := range literal.FindAllString(code, -1) {
		s.quote(expression.ReplaceAllString(escape.ReplaceAllString(quoted, ""), ""))
	}
	if s.language == "python" {
		s.python(code)
	} else {
		s.typescript(literal.ReplaceAllStringFunc(code, func(quoted string) string {
			var inside []string
			for _, found := range expression.FindAllStringSubmatch(quoted, -1) {
				inside = append(inside, found[1])
			}
			return strings.Join(inside, ";")
		}))
	}
	return s
}

// quote takes the words of a literal, but for those that stand for themselves in SQL: capitals, and names of one letter.
func (s *source) quote(text string) {
	for _, w := range word.FindAllString(text, -1) {
		if len(w) > 1 && w != strings.ToUpper(w) {
			s.quoted = append(s.quoted, w)
		}
	}
}

func (s *source) python(code string) {
	for _, found := range pythonImport.FindAllStringSubmatch(s.text, -1) {
		s.add(found[1], found[2])
	}
	for _, found := range key.FindAllStringSubmatch(code, -1) {
		s.member(found[1] + found[2])
	}
}

// typescript is given code without strings. What is called is a method of the language, and so is length.
func (s *source) typescript(code string) {
	for _, found := range typescriptImport.FindAllStringSubmatch(s.text, -1) {
		s.add(found[2], found[1])
	}
	for _, found := range property.FindAllStringSubmatch(code, -1) {
		if found[2] == "" && found[1] != "length" {
			s.member(found[1])
		}
	}
	for _, found := range unpacked.FindAllStringSubmatch(code, -1) {
		for name := range strings.SplitSeq(found[1], ", ") {
			s.member(name)
		}
	}
}

// member notes what is taken out of a value; a name of one letter is the program's own, as in COUNT(*) AS n.
func (s *source) member(name string) {
	if len(name) > 1 {
		s.members = append(s.members, name)
	}
}

func (s *source) add(upstream, names string) {
	for name := range strings.SplitSeq(names, ",") {
		s.imports = append(s.imports, upstream+"."+strings.TrimSpace(name))
	}
}

// uses reports whether the program does anything with the result of a wrapper but show it, or leave it.
func (s *source) uses(id string) bool {
	call := regexp.MustCompile(`\b` + strings.TrimPrefix(path.Ext(id), ".") + `\(`)
	for line := range strings.Lines(s.text) {
		for _, at := range call.FindAllStringIndex(line, -1) {
			if !shown.MatchString(line[:at[0]]) || taken.MatchString(line[at[1]:]) {
				return true
			}
		}
	}
	return false
}

// call runs the program.
func (s *source) call() tokencount.Call {
	return Call(ExecuteCode, inLanguage(s.language, map[string]any{"code": s.text}))
}
