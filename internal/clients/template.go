package clients

import (
	"path/filepath"
	"regexp"
	"strings"

	"sallyport/internal/sanitize"
)

// Placeholders of other programs are converted to references of upstreams.yaml: ${NAME},
// ${NAME:-default} and ${file:PATH}. Literal text is escaped.

var (
	nameOnly    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	withDefault = regexp.MustCompile(`(?s)^(?:env:)?([A-Za-z_][A-Za-z0-9_]*):-(.*)$`)
	prefixed    = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*):(.+)$`)
	bareName    = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)`)
)

// part is a part of a text: a reference in the syntax of upstreams.yaml, or literal text.
type part struct {
	text      string
	reference bool
}

// text converts a value: placeholders to references, and secrets to variables.
func (r *serverParser) text(kind textKind, name, value string) string {
	if strings.ContainsRune(value, 0) {
		r.out.Skip, value = "it has a NUL byte", strings.ReplaceAll(value, "\x00", "")
	}
	var b strings.Builder
	r.secretContext = usesName(kind) && secretName(name)
	parts := r.hide(kind, name, r.parts(value))
	for i, p := range parts {
		if p.reference {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(escape(p.text, i+1 < len(parts)))
	}
	return b.String()
}

// escape doubles each $ that would be special; more reports that a reference follows.
func escape(text string, more bool) string {
	var b strings.Builder
	for i := range len(text) {
		if b.WriteByte(text[i]); text[i] == '$' && (i+1 == len(text) && more || i+1 < len(text) && strings.IndexByte("${", text[i+1]) >= 0) {
			b.WriteByte('$')
		}
	}
	return b.String()
}

func (r *serverParser) parts(value string) []part {
	var all []part
	plainText := 0
	for i := 0; i < len(value); i++ {
		if value[i] != '$' {
			continue
		}
		p, length := r.placeholder(value[:i], value[i:])
		if length == 0 {
			continue
		}
		if plainText < i {
			all = append(all, part{value[plainText:i], false})
		}
		all = append(all, p)
		i += length - 1
		plainText = i + 1
	}
	if plainText < len(value) {
		all = append(all, part{value[plainText:], false})
	}
	return all
}

// placeholder converts the placeholder at the start of text, which follows before, and returns its length, 0 if there is none.
func (r *serverParser) placeholder(before, text string) (part, int) {
	if m := bareName.FindStringSubmatch(text); m != nil && r.client.bareVariables {
		return reference(r.read(m[1])), len(m[0])
	}
	if !strings.HasPrefix(text, "${") {
		return part{}, 0
	}
	end := strings.IndexByte(text, '}')
	if end < 0 {
		r.note(`a "${" without "}" was kept as text`)
		return part{}, 0
	}
	inside := text[2:end]
	if nested := strings.Contains(inside, "${"); nested {
		r.note("a default with a placeholder in it was left out")
		name, _, _ := strings.Cut(inside, ":")
		if end = strings.LastIndexByte(text, '}'); !nameOnly.MatchString(name) {
			return part{}, 0
		}
		inside = name
	}
	if r.client.noPlaceholders {
		r.note("%s does not expand placeholders; here they are variables", r.client.Title)
	}
	return r.resolve(before, inside), end + 1
}

func reference(name string) part { return part{"${" + name + "}", true} }

func literal(text string) part { return part{text, false} }

// resolve converts the content of a ${...} placeholder.
func (r *serverParser) resolve(before, inside string) part {
	switch inside {
	case "workspaceFolder", "workspaceRoot", "cwd":
		return literal(r.workspace())
	case "workspaceFolderBasename":
		return literal(filepath.Base(r.workspace()))
	case "userHome":
		return reference(r.read("HOME"))
	case "pathSeparator", "/":
		return literal("/")
	}
	if nameOnly.MatchString(inside) {
		return reference(r.read(inside))
	}
	if m := withDefault.FindStringSubmatch(inside); m != nil {
		return r.defaultReference(before, m[1], m[2])
	}
	m := prefixed.FindStringSubmatch(inside)
	if m == nil {
		name := r.read(r.prefix + "_" + variableName(inside))
		r.note("the placeholder ${%s} is not known: set the variable %s", sanitize.Line(inside, 60), name)
		return reference(name)
	}
	switch kind, rest := m[1], m[2]; {
	case kind == "env" && nameOnly.MatchString(rest):
		return reference(r.read(rest))
	case kind == "file":
		return part{"${file:" + rest + "}", true}
	case kind == "input":
		return r.inputReference(rest)
	}
	name := r.read(r.prefix + "_" + variableName(m[2]))
	r.note("only %s can expand ${%s}: set the variable %s", r.client.Title, sanitize.Line(inside, 60), name)
	return reference(name)
}

// workspace returns the folder of the project, or the current directory for the user's
// own settings.
func (r *serverParser) workspace() string {
	if r.project != "" {
		return r.project
	}
	r.note("the workspace folder became %s, where you are", sanitize.Line(r.system.Dir, 120))
	return r.system.Dir
}

var assignment = regexp.MustCompile(`(?:([A-Za-z0-9_.-]+)=|://[^/@?#]*:)$`)

// defaultReference converts a placeholder with a default. The default becomes a variable if it
// is secret by its value, the variable's name, or the text before it.
func (r *serverParser) defaultReference(before, name, otherwise string) part {
	secret := r.secretContext || secretName(name) || secretValue(otherwise) || userinfo.MatchString(otherwise)
	if m := assignment.FindStringSubmatch(before); m != nil {
		secret = secret || m[1] == "" || secretName(m[1])
	}
	if !secret || !isPlausible(otherwise) {
		return part{"${" + r.read(name) + ":-" + strings.ReplaceAll(otherwise, "$", "$$") + "}", true}
	}
	return reference(r.assignVariable(name, otherwise, "the default of "+name))
}

// inputReference converts an input of VS Code to a variable.
func (r *serverParser) inputReference(id string) part {
	in := r.inputs[id]
	about := sanitize.Line(in.Description, 60)
	if about != "" {
		about = " (" + about + ")"
	}
	if in.Default != "" && !in.Password && !secretValue(in.Default) && !strings.Contains(in.Default, "}") {
		made := r.defaultReference("", variableName(id), in.Default)
		r.note("VS Code asks for %s%s: here it is the variable %s, with the same default", sanitize.Line(id, 60), about, namesIn(made.text)[0])
		return made
	}
	name := r.read(variableName(id))
	r.note("VS Code asks for %s%s: set the variable %s", sanitize.Line(id, 60), about, name)
	return reference(name)
}
