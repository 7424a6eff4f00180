package flowtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"gopkg.in/yaml.v3"
)

// difference is one location where a value differs from the wanted one.
type difference struct {
	node    *yaml.Node // the wanted value
	message string
}

// differences compares a value with the wanted parts of it: for a mapping the named members, for a list
// each item, else all of it. at is the path of the value, for messages.
func differences(want *yaml.Node, got any, at string) []difference {
	if name := matcherOf(want); name != "" {
		return compareMatcher(want, name, got, at)
	}
	switch want.Kind {
	case yaml.MappingNode:
		if members, ok := got.(map[string]any); ok {
			return membersDiffer(want, members, at)
		}
	case yaml.SequenceNode:
		if items, ok := got.([]any); ok && len(items) == len(want.Content) {
			return itemsDiffer(want, items, at)
		}
	default:
		if equalScalars(scalarOf(want), got) {
			return nil
		}
	}
	return []difference{{want, at + ": " + wantedGot(formatValue(valueOf(want)), formatValue(got))}}
}

func membersDiffer(want *yaml.Node, got map[string]any, at string) (all []difference) {
	for i := 0; i+1 < len(want.Content); i += 2 {
		key, value := want.Content[i], want.Content[i+1]
		member, ok := got[key.Value]
		under := at + "." + key.Value
		switch {
		case ok || matcherOf(value) == "" && value.Tag == "!!null":
			all = append(all, differences(value, member, under)...)
		default:
			all = append(all, difference{value, under + ": wanted " + formatValue(valueOf(value)) + ", but it is missing"})
		}
	}
	return all
}

func itemsDiffer(want *yaml.Node, got []any, at string) (all []difference) {
	for i, item := range want.Content {
		all = append(all, differences(item, got[i], at+"["+strconv.Itoa(i)+"]")...)
	}
	return all
}

// compareMatcher compares a value with a matcher.
func compareMatcher(want *yaml.Node, name string, got any, at string) []difference {
	pattern := want.Content[1].Value
	text, ok := got.(string)
	switch name {
	case anything:
		ok = true
	case contains:
		ok = ok && strings.Contains(text, pattern)
	case matches:
		ok = ok && regexp.MustCompile(pattern).MatchString(text) // it was validated when it was read
	}
	if ok {
		return nil
	}
	verb := map[string]string{contains: "that contains", matches: "that matches"}[name]
	return []difference{{want, fmt.Sprintf("%s: wanted text %s %s\ngot %s", at, verb, formatValue(pattern), formatValue(got))}}
}

// equalScalars compares scalars; numbers by value, independent of their notation.
func equalScalars(want, got any) bool {
	if n, ok := number(want); ok {
		m, ok := number(got)
		return ok && n == m
	}
	return want == got
}

// number returns a canonical text of a number, exact for integers.
func number(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return strconv.FormatFloat(f, 'g', -1, 64), true
		}
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case int, int64, uint64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// wantedGot shows both values, or their diff if they have many lines.
func wantedGot(want, got string) string {
	if strings.Count(want, "\n")+strings.Count(got, "\n") > 4 {
		return "wanted something else\n" + unifiedDiff(want, got)
	}
	separator := " "
	if strings.Contains(want+got, "\n") {
		separator = "\n"
	}
	return "wanted" + separator + want + "," + separator + "got" + separator + got
}

func unifiedDiff(want, got string) string {
	text := string(diff.Diff("wanted", []byte(want+"\n"), "got", []byte(got+"\n")))
	_, text, _ = strings.Cut(text, "\n") // the line "diff wanted got"
	return strings.TrimSuffix(text, "\n")
}

// maxShown limits the text of a value in messages, in bytes.
const maxShown = 4 << 10

// formatValue formats a value for messages: a multi-line string as it is, else as YAML on one line.
func formatValue(v any) string {
	text, ok := v.(string)
	if !ok || !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		text = flow(v)
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}
