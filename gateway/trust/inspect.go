package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sallyport/internal/tool"
)

// Finding is one thing that looks wrong with the text of a definition.
type Finding struct {
	// Rule names what was found, in a word or two.
	Rule string `json:"rule"`
	// Where is the path of the text in the definition, such as inputSchema.properties.path.description.
	Where string `json:"where"`
	// Text is an excerpt of it as Visible shows it, at most 120 runes.
	Text string `json:"text"`
}

const (
	// maxFindings is how many findings of one tool are reported.
	maxFindings = 10
	// maxText is how much of one string is inspected, in bytes.
	maxText = 256 << 10
)

// Inspect returns what looks as if it were meant to mislead a model: invisible
// characters, and instructions to a model beyond the use of the tool. others has the
// names of other upstreams' tools. Inspect is heuristic: sufficiently clever text
// passes.
func Inspect(t tool.Tool, others map[string]bool) []Finding {
	in := inspector{others: others, weak: map[string]Finding{}}
	if !isValidName(t.Wire) {
		in.add("name", "name", t.Wire)
	}
	in.checkText("name", t.Wire, true)
	in.checkText("title", t.Title, false)
	in.checkText("description", t.Description, false)
	in.checkJSON("inputSchema", t.Input)
	in.checkJSON("outputSchema", t.Output)
	in.checkJSON("annotations", annotations(t))
	return in.findings()
}

// inspector collects findings. A weak one counts only next to one of another rule.
type inspector struct {
	others map[string]bool
	strong []Finding
	weak   map[string]Finding
	order  []string
}

func (in *inspector) add(rule, where, text string) {
	if len(in.strong) < maxFindings {
		in.strong = append(in.strong, Finding{rule, where, excerpt(text)})
	}
}

func (in *inspector) addWeak(rule, where, text string) {
	if _, ok := in.weak[rule]; !ok {
		in.weak[rule] = Finding{rule, where, excerpt(text)}
		in.order = append(in.order, rule)
	}
}

func (in *inspector) findings() []Finding {
	if len(in.strong) == 0 && len(in.weak) < 2 {
		return nil
	}
	all := in.strong
	for _, rule := range in.order {
		all = append(all, in.weak[rule])
	}
	return all[:min(len(all), maxFindings)]
}

// checkText inspects one string; name marks identifiers rather than prose.
func (in *inspector) checkText(where, s string, name bool) {
	s = s[:min(len(s), maxText)]
	in.checkHidden(where, s)
	if name {
		in.checkMixedScript(where, s)
	}
	in.checkProse(where, s)
}

// checkJSON inspects every string of a schema, including keys.
func (in *inspector) checkJSON(where string, data json.RawMessage) {
	if len(data) == 0 {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := in.checkValue(dec, where); err != nil {
		in.add("not JSON", where, string(data))
	}
}

func (in *inspector) checkValue(dec *json.Decoder, where string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case string:
		in.checkText(where, v, false)
	case json.Delim:
		if v == '[' {
			return in.checkArray(dec, where)
		}
		return in.checkObject(dec, where)
	}
	return nil
}

func (in *inspector) checkArray(dec *json.Decoder, where string) error {
	for i := 0; dec.More(); i++ {
		if err := in.checkValue(dec, fmt.Sprintf("%s[%d]", where, i)); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func (in *inspector) checkObject(dec *json.Decoder, where string) error {
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder takes no other key
		under := where + "." + key
		if len(under) > 300 {
			under = where // long enough to find the text
		}
		if seen[key] {
			in.add("key twice", where, key)
		}
		seen[key] = true
		in.checkText(under+" (key)", key, true)
		if err := in.checkValue(dec, under); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// excerpt returns the visible form of the beginning of s.
func excerpt(s string) string {
	s = strings.Join(strings.Fields(Visible(s[:min(len(s), 1000)])), " ")
	if r := []rune(s); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return s
}
