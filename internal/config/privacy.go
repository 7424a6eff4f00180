package config

import (
	"fmt"
	"maps"
	glob "path"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/pii"
	"sallyport/internal/suggest"

	"gopkg.in/yaml.v3"
)

// PrivacyMode is how personal data in the results of an upstream is handled.
type PrivacyMode string

// The values of PrivacyMode.
const (
	// PrivacyOff: nothing.
	PrivacyOff PrivacyMode = "off"
	// PrivacyDetect: kinds and counts are logged.
	PrivacyDetect PrivacyMode = "detect"
	// PrivacyTokenize: it is replaced with tokens.
	PrivacyTokenize PrivacyMode = "tokenize"
	// PrivacyBlock: a result with personal data is refused.
	PrivacyBlock PrivacyMode = "block"
)

// RestoreToModel in Privacy.RestoreTo lets models see values again, by restore_pii.
const RestoreToModel = "model"

// Privacy configures the handling of personal data.
type Privacy struct {
	// Mode is the mode of upstreams without their own; default off.
	Mode PrivacyMode
	// Kinds are the kinds of personal data to find; default all.
	Kinds []string
	// Custom are regular expressions (RE2) of further kinds, by name.
	Custom map[string]string
	// Fields are JSON paths of values to take, by globs of tools (upstream.tool).
	Fields map[string][]string
	// Allow are values, domains and globs that are not personal data.
	Allow []string
	// RestoreTo are globs of tools that get values back, in addition to those of the upstream that a
	// value came from; "model" is restore_pii.
	RestoreTo []string
	// RestoreNever are globs of tools that get no value back. They have precedence.
	RestoreNever []string
	// Recognizer is a service that finds names and addresses in prose, or the built-in model; default none.
	Recognizer *Recognizer
}

func (d *decoder) privacy(at path, n *yaml.Node, p *Privacy) {
	d.Fields(at, n, []key{
		{"mode", d.OneOf((*string)(&p.Mode), privacyModes...)},
		{"kinds", d.Texts(&p.Kinds)},
		{"custom", d.secrets((*Secrets)(&p.Custom))},
		{"fields", func(at path, n *yaml.Node) { d.privateFields(at, n, p) }},
		{"allow", d.Texts(&p.Allow)},
		{"restore", func(at path, n *yaml.Node) {
			d.Fields(at, n, []key{{"to", d.Texts(&p.RestoreTo)}, {"never", d.Texts(&p.RestoreNever)}})
		}},
		{"recognizer", func(at path, n *yaml.Node) { p.Recognizer = defaultRecognizer(); d.recognizer(at, n, p.Recognizer) }},
	})
}

func (d *decoder) privateFields(at path, n *yaml.Node, p *Privacy) {
	p.Fields = map[string][]string{}
	d.Each(at, n, func(under path, key, value *yaml.Node) {
		var paths []string
		d.Texts(&paths)(under, value)
		p.Fields[key.Value] = paths
	})
}

func (p Privacy) problems(at path) []problem {
	restore := at.To("restore")
	var recognizer []problem
	if p.Recognizer != nil {
		recognizer = p.Recognizer.problems(at.To("recognizer"), p.Custom)
	}
	return slices.Concat(
		recognizer,
		oneOfProblem(at.To("mode"), string(p.Mode), append([]string{""}, privacyModes...)),
		kindProblems(at.To("kinds"), p.Kinds),
		customProblems(at.To("custom"), p.Custom),
		fieldProblems(at.To("fields"), p.Fields),
		allowProblems(at.To("allow"), p.Allow),
		toolGlobProblems(restore.To("to"), p.RestoreTo),
		toolGlobProblems(restore.To("never"), p.RestoreNever),
	)
}

func kindProblems(at path, named []string) []problem {
	var kinds []string
	for _, k := range pii.Kinds() {
		kinds = append(kinds, string(k))
	}
	var all []problem
	for i, k := range named {
		all = append(all, kindProblem(at.Item(i), k, kinds)...)
	}
	return all
}

// kindProblem returns the problem of a kind that is none of kinds.
func kindProblem(at path, kind string, kinds []string) []problem {
	if slices.Contains(kinds, kind) {
		return nil
	}
	hint := "the kinds are " + strings.Join(kinds, ", ")
	if near := suggest.Of(kind, kinds); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return []problem{{at: at, message: fmt.Sprintf("unknown kind %.40q; %s", kind, hint)}}
}

func customProblems(at path, custom map[string]string) []problem {
	var all []problem
	for _, name := range sortedKeys(custom) {
		under := at.To(name)
		if wrong := pii.CheckName(name); wrong != "" {
			all = append(all, problem{at: under, onKey: true, message: wrong})
		} else if re, err := regexp.Compile(custom[name]); err != nil {
			all = append(all, problem{at: under, message: "this is not a regular expression (RE2): " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")})
		} else if re.MatchString("") {
			all = append(all, problem{at: under, message: "this expression matches an empty text, so it would be found everywhere"})
		}
	}
	return all
}

func fieldProblems(at path, fields map[string][]string) []problem {
	var all []problem
	for _, tools := range slices.Sorted(maps.Keys(fields)) {
		under := at.To(tools)
		if !isToolGlob(tools) {
			all = append(all, problem{at: under, onKey: true, message: notToolGlob(tools)})
		}
		for i, text := range fields[tools] {
			if _, err := pii.ParseFields([]string{text}); err != nil {
				all = append(all, problem{at: under.Item(i), message: err.Error()})
			}
		}
	}
	return all
}

func allowProblems(at path, allow []string) []problem {
	var all []problem
	for i, a := range allow {
		if _, err := glob.Match(a, ""); err != nil || a == "" {
			all = append(all, problem{at: at.Item(i), message: "this is not a value, domain or glob"})
		}
	}
	return all
}

func toolGlobProblems(at path, globs []string) []problem {
	var all []problem
	for i, g := range globs {
		if g != RestoreToModel && !isToolGlob(g) {
			all = append(all, problem{at: at.Item(i), message: notToolGlob(g)})
		}
	}
	return all
}

// isToolGlob reports whether a text is "*" or a glob with a dot, as the ids of tools have.
func isToolGlob(text string) bool {
	_, err := glob.Match(text, "")
	return err == nil && (text == "*" || strings.Contains(text, "."))
}

func notToolGlob(text string) string {
	return fmt.Sprintf(`%.40q names no tools; write upstream.tool, upstream.* or "*"`, text)
}
