package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Rewritten is a program rewritten as a function.
type Rewritten struct {
	Code string
	// Counts is the number of literals that each parameter replaces.
	Counts map[string]int
	Notes  []string
}

// Function rewrites a TypeScript program as an exported function: it keeps imports at the top, returns the value of
// the last expression, and replaces the literals that equal one of params, a JSON string, number or boolean, by a
// parameter with that default. lex finds tokens heuristically, so Function compares the result with the program
// through esbuild: a wrong token causes an error, never a different program.
func Function(program, name string, params map[string]json.RawMessage, doc string) (Rewritten, error) {
	program = strings.ReplaceAll(program, "\r\n", "\n")
	f := &function{program: program, name: name, tokens: lex(program), counts: map[string]int{}, params: params}
	if err := f.check(); err != nil {
		return Rewritten{}, err
	}
	f.findImports()
	if err := f.findLiterals(); err != nil {
		return Rewritten{}, err
	}
	if err := f.verify(); err != nil {
		return Rewritten{}, err
	}
	f.findValue()
	code := f.write(doc)
	if wrong := api.Transform(code, transformTS()); len(wrong.Errors) > 0 {
		return Rewritten{}, fmt.Errorf("cannot turn the program into a function: %s; pass code instead", wrong.Errors[0].Text)
	}
	return Rewritten{Code: code, Counts: f.counts, Notes: f.notes}, nil
}

func transformTS() api.TransformOptions {
	return api.TransformOptions{Loader: api.LoaderTS, Target: api.ESNext, Format: api.FormatESModule, LogLevel: api.LogLevelSilent, TsconfigRaw: everyImport}
}

// edit replaces a range of the program by text; literal reports that the text is a parameter.
type edit struct {
	start, end int
	text       string
	literal    bool
}

type function struct {
	program, name string
	tokens        []token
	params        map[string]json.RawMessage
	edits         []edit
	imports       [][2]int
	counts        map[string]int
	notes         []string
}

var parameterName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

func (f *function) check() error {
	if wrong := api.Transform(f.program, transformTS()); len(wrong.Errors) > 0 {
		return fmt.Errorf("invalid program: %s", wrong.Errors[0].Text)
	}
	for i, t := range f.tokens {
		switch {
		case t.kind != word || f.isMember(i):
		case t.text == "export" && t.depth == 0:
			return fmt.Errorf("the program has exports; pass it as code")
		case t.text == f.name:
			return fmt.Errorf("the program already uses the name %s; give the skill another name", f.name)
		}
	}
	for name := range f.params {
		if !parameterName.MatchString(name) || slices.Contains(reserved, name) {
			return fmt.Errorf("%q is not a valid parameter name", name)
		}
	}
	return nil
}

// isMember reports whether a word names a member, as in a.word or {word: 1}, not a variable.
func (f *function) isMember(i int) bool {
	before := i > 0 && f.tokens[i-1].text == "."
	spread := before && i > 2 && f.tokens[i-2].text == "." && f.tokens[i-3].text == "." // ...word
	after := i+1 < len(f.tokens) && f.tokens[i+1].text == ":" && i > 0 && strings.Contains("{,", f.tokens[i-1].text)
	return before && !spread || after
}

// findImports finds the top-level import declarations, each including the line break after it.
func (f *function) findImports() {
	for i := 0; i < len(f.tokens); i++ {
		t := f.tokens[i]
		if t.text != "import" || t.kind != word || t.depth != 0 || i+1 == len(f.tokens) || strings.Contains("(.", f.tokens[i+1].text) {
			continue
		}
		if i = f.importEnd(i); i < len(f.tokens) {
			end := f.tokens[i].end
			if strings.HasPrefix(f.program[end:], "\n") {
				end++
			}
			f.imports = append(f.imports, [2]int{t.start, end})
			f.edits = append(f.edits, edit{t.start, end, "", false})
		}
	}
}

// importEnd returns the index of the last token of the import that begins at i.
func (f *function) importEnd(i int) int {
	next := func(text string) bool { return i+1 < len(f.tokens) && f.tokens[i+1].text == text }
	for i++; i < len(f.tokens) && f.tokens[i].kind != quotedText; i++ {
	}
	if next("with") {
		for i++; i < len(f.tokens) && f.tokens[i].text != "}"; i++ {
		}
	}
	if next(";") {
		i++
	}
	return i
}

func (f *function) inImport(at int) bool {
	return slices.ContainsFunc(f.imports, func(span [2]int) bool { return at >= span[0] && at < span[1] })
}

// findLiterals replaces the values of the parameters by their names.
func (f *function) findLiterals() error {
	for _, name := range slices.Sorted(maps.Keys(f.params)) {
		var wanted any
		if json.Unmarshal(f.params[name], &wanted) != nil {
			return fmt.Errorf("the value of %s is not JSON", name)
		}
		switch wanted.(type) {
		case string, float64, bool:
		default:
			return fmt.Errorf("the value of %s must be a string, number or boolean", name)
		}
		gone, err := f.claimName(name, wanted)
		if err != nil {
			return err
		}
		f.replace(name, wanted, gone)
		if f.counts[name] == 0 {
			return fmt.Errorf("the program has no literal %s, the value of %s", f.params[name], name)
		}
	}
	slices.SortFunc(f.edits, func(a, b edit) int { return a.start - b.start })
	return nil
}

func (f *function) replace(name string, wanted any, gone [2]int) {
	parts := 0
	for i, t := range f.tokens {
		inside := t.start >= gone[0] && t.start < gone[1]
		value, ok := f.literal(t)
		if !ok || value != wanted {
			if !inside && f.hasPart(t, wanted) {
				parts++
			}
			continue
		}
		if f.inImport(t.start) || f.isKey(i) || i > 0 && f.tokens[i-1].text == "from" || t.kind == word && f.isMember(i) {
			continue
		}
		f.counts[name]++
		if !inside {
			f.edits = append(f.edits, edit{t.start, t.end, name, true})
		}
	}
	if parts > 0 {
		f.notes = append(f.notes, fmt.Sprintf("%s is also part of %d longer strings, which stay unchanged", f.params[name], parts))
	}
}

// hasPart reports whether a token is a string that contains a value.
func (f *function) hasPart(t token, wanted any) bool {
	text, isText := wanted.(string)
	return isText && text != "" && !f.inImport(t.start) && (t.kind == quotedText || t.kind == templateText) && strings.Contains(t.text, text)
}

// isKey reports whether a token is the key of an object member.
func (f *function) isKey(i int) bool {
	return i+1 < len(f.tokens) && f.tokens[i+1].text == ":" && i > 0 && strings.Contains("{,", f.tokens[i-1].text)
}

// literal returns the JSON value of a token.
func (f *function) literal(t token) (any, bool) {
	switch {
	case t.kind == quotedText, t.isPlainTemplate():
		return unquote(t.text)
	case t.kind == number:
		value, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		return value, err == nil && !strings.HasPrefix(t.text, "0x")
	case t.kind == word && (t.text == "true" || t.text == "false"):
		return t.text == "true", true
	}
	return nil, false
}

// unquote returns the value of a JavaScript string literal, which esbuild prints as JSON.
func unquote(text string) (any, bool) {
	made := api.Transform("export default "+text, api.TransformOptions{Loader: api.LoaderJS, MinifySyntax: true, Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent})
	printed := strings.TrimSuffix(strings.TrimSpace(string(made.Code)), ";")
	printed = strings.TrimPrefix(printed, "export default ")
	var value string
	if json.Unmarshal([]byte(printed), &value) == nil {
		return value, true
	}
	if len(printed) > 1 && (printed[0] == '\'' || printed[0] == '`') && !strings.ContainsAny(printed[1:len(printed)-1], "\\"+printed[:1]) {
		return printed[1 : len(printed)-1], true
	}
	return nil, false
}

// claimName removes the declaration "const name = value" of a parameter, if there is one, and returns
// its range. It returns an error if the program uses the name otherwise.
func (f *function) claimName(name string, wanted any) (gone [2]int, err error) {
	uses, declared := 0, 0
	for i, t := range f.tokens {
		if t.kind != word || t.text != name || f.isMember(i) {
			continue
		}
		uses++
		if span, ok := f.declaration(i, wanted); ok {
			gone = span
			declared++
		} else if i > 0 && slices.Contains([]string{"const", "let", "var", "function", "class"}, f.tokens[i-1].text) || i+1 < len(f.tokens) && (f.tokens[i+1].text == "=" && !strings.HasPrefix(f.program[f.tokens[i+1].start:], "==") || strings.HasPrefix(f.program[f.tokens[i+1].start:], "=>")) {
			declared += 2
		}
	}
	if uses > 0 && declared != 1 {
		return gone, fmt.Errorf("the program uses %s for something else; give the parameter another name", name)
	}
	if declared == 1 {
		f.edits = append(f.edits, edit{gone[0], gone[1], "", false})
	}
	return gone, nil
}

// tokenAt returns the token at index n, or the end of a statement if n is out of range.
func (f *function) tokenAt(n int) token {
	if n < 0 || n >= len(f.tokens) {
		return token{kind: punctuation, start: len(f.program), end: len(f.program), text: ";", line: true}
	}
	return f.tokens[n]
}

// declaration reports whether token i is declared at the top level as the literal wanted, and the range of the statement.
func (f *function) declaration(i int, wanted any) (span [2]int, ok bool) {
	at := f.tokenAt
	head, next := at(i-1), i+1
	if at(next).text == ":" && at(next+1).kind == word {
		next += 2
	}
	value, literal := f.literal(at(next + 1))
	after := at(next + 2)
	if head.depth != 0 || (head.text != "const" && head.text != "let") || at(next).text != "=" || !literal || value != wanted || !(after.text == ";" || after.line) {
		return span, false
	}
	span = [2]int{head.start, at(next + 1).end}
	if after.text == ";" && next+2 < len(f.tokens) {
		span[1] = after.end
	}
	if strings.HasPrefix(f.program[span[1]:], "\n") {
		span[1]++
	}
	return span, true
}

// verify checks the edits: with marks or with values in place of the literals, esbuild must print the same program.
// This detects literals in comments and parts of other tokens.
func (f *function) verify() error {
	marked := slices.Clone(f.edits)
	want := len(marked)
	for i, e := range marked {
		if e.literal {
			marked[i].text = "__sallyport_mark__"
			continue
		}
		marked[i].text = f.program[e.start:e.end]
		want--
	}
	made := api.Transform(f.apply(marked, 0, len(f.program)), transformTS())
	types := mayHaveTypes(f.program)
	if got := strings.Count(string(made.Code), "__sallyport_mark__"); len(made.Errors) > 0 || got > want || got < want && !types {
		return fmt.Errorf("cannot locate the values reliably; pass code instead")
	}
	back := strings.ReplaceAll(string(made.Code), "__sallyport_mark__", "0")
	values := slices.Clone(marked)
	for i := range values {
		if values[i].literal {
			values[i].text = "0"
		}
	}
	zero := api.Transform(f.apply(values, 0, len(f.program)), transformTS())
	if string(zero.Code) != back {
		return fmt.Errorf("cannot locate the values reliably; pass code instead")
	}
	return nil
}

// mayHaveTypes reports whether a literal may be in a type, which esbuild strips.
func mayHaveTypes(program string) bool {
	return strings.Contains(program, "type ") || strings.Contains(program, "interface ") || strings.Contains(program, ":")
}

// apply returns a range of the program with the edits applied.
func (f *function) apply(edits []edit, from, to int) string {
	var b strings.Builder
	at := from
	for _, e := range edits {
		if e.start < at || e.end > to {
			continue
		}
		b.WriteString(f.program[at:e.start] + e.text)
		at = e.end
	}
	b.WriteString(f.program[at:to])
	return b.String()
}

// maxStatementStarts is the maximum number of candidates for the start of the last statement: each costs a print of the program.
const maxStatementStarts = 24

// findValue turns the last statement into a return if it is an expression.
func (f *function) findValue() {
	last := f.tokenAt(len(f.tokens) - 1)
	stop := last.end
	if last.text == ";" {
		stop = last.start
	}
	whole := printProgram(f.program)
	tried := 0
	for i := len(f.tokens) - 1; i >= 0 && tried < maxStatementStarts; i-- {
		t := f.tokens[i]
		if t.depth != 0 || i > 0 && !t.line && !strings.Contains(";}", f.tokens[i-1].text) || t.start >= stop {
			continue
		}
		tried++
		if f.inImport(t.start) || !isTypedExpression(f.program[t.start:stop]) {
			continue
		}
		if printProgram(f.program[:t.start]+"\n;\n"+f.program[t.start:]) != whole {
			continue // it continues the previous line
		}
		begin, close := "return (", ")"
		if t.text == "(" && closingBracket(f.program[:stop], t.start) == stop {
			begin, close = "return ", ""
		}
		f.edits = append(f.edits, edit{t.start, t.start, begin, false}, edit{stop, stop, close, false})
		slices.SortStableFunc(f.edits, func(a, b edit) int {
			if a.start != b.start {
				return a.start - b.start
			}
			return editOrder(a) - editOrder(b)
		})
		return
	}
}

var emptyStatement = regexp.MustCompile(`(?m)^\s*;\n`)

// printProgram returns a program as esbuild prints it, without empty statements; "" if it is invalid.
func printProgram(program string) string {
	return emptyStatement.ReplaceAllString(string(api.Transform(program, transformTS()).Code), "")
}

// editOrder returns the rank of edits at one offset: closing text comes before opening text.
func editOrder(e edit) int {
	switch e.text {
	case ")":
		return 0
	case "return (", "return ":
		return 1
	}
	return 2
}

func isTypedExpression(statement string) bool {
	for _, declaration := range []string{"function", "async function", "class", "abstract class", "import ", "import{", "export", "let ", "const ", "var ", "type ", "interface ", "enum ", "declare ", "namespace ", "{"} {
		if strings.HasPrefix(statement, declaration) {
			return false
		}
	}
	return len(api.Transform("export default ("+statement+"\n);", transformTS()).Errors) == 0
}

// write returns the source of the function.
func (f *function) write(doc string) string {
	var b strings.Builder
	for _, span := range f.imports {
		b.WriteString(strings.TrimRight(f.program[span[0]:span[1]], "\n") + "\n")
	}
	if len(f.imports) > 0 {
		b.WriteString("\n")
	}
	if doc = strings.ReplaceAll(doc, "*/", "* /"); strings.Contains(doc, "\n") {
		b.WriteString("/**\n * " + strings.ReplaceAll(doc, "\n", "\n * ") + "\n */\n")
	} else {
		b.WriteString("/** " + doc + " */\n")
	}
	b.WriteString("export async function " + f.name + "(" + f.parameters() + ") {\n")
	b.WriteString(f.body())
	b.WriteString("}\n")
	return b.String()
}

func (f *function) parameters() string {
	if len(f.params) == 0 {
		return ""
	}
	var names, types []string
	for _, name := range slices.Sorted(maps.Keys(f.params)) {
		var value any
		_ = json.Unmarshal(f.params[name], &value) // read before
		kind := map[bool]string{true: "string", false: "number"}[f.params[name][0] == '"']
		if _, ok := value.(bool); ok {
			kind = "boolean"
		}
		text, _ := json.Marshal(value)
		names, types = append(names, name+" = "+string(text)), append(types, name+"?: "+kind)
	}
	return "{ " + strings.Join(names, ", ") + " }: { " + strings.Join(types, "; ") + " } = {}"
}

// body returns the program with its edits, indented except for lines that begin inside a token.
func (f *function) body() string {
	inside := map[int]bool{} // offsets of lines that begin inside a token
	for _, t := range f.tokens {
		for at := t.start; ; {
			next := strings.IndexByte(f.program[at:t.end], '\n')
			if next < 0 {
				break
			}
			at += next + 1
			inside[at] = true
		}
	}
	edits := slices.Clone(f.edits)
	for at := 0; at < len(f.program); {
		end := strings.IndexByte(f.program[at:], '\n')
		line := f.program[at:]
		if end >= 0 {
			line = f.program[at : at+end]
		}
		covered := slices.ContainsFunc(f.edits, func(e edit) bool { return e.text == "" && at >= e.start && at < e.end })
		if !inside[at] && !covered && strings.TrimSpace(line) != "" {
			edits = append(edits, edit{at, at, "  ", false})
		}
		if end < 0 {
			break
		}
		at += end + 1
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.start != b.start {
			return a.start - b.start
		}
		indent := map[bool]int{true: 0, false: 1}
		return indent[a.text == "  "] - indent[b.text == "  "]
	})
	return strings.Trim(f.apply(edits, 0, len(f.program)), "\n") + "\n"
}

// JavaScript returns a program without types, "" if it has an error. It resolves no imports.
func JavaScript(program string) string {
	return string(api.Transform(program, transformTS()).Code)
}
