package rules

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/tool"
)

// call is a tool with the arguments that were found.
type call struct {
	schema  schema
	args    []arg
	missing []string
}

// bind finds the arguments of a tool: required ones by everything that is known, others only if the task names them.
func bind(t tool.Tool, f *facts) call {
	c := call{schema: parse(t.Input)}
	required := slices.Clone(c.schema.Required)
	slices.Sort(required)
	b := binder{facts: f, call: &c, tool: t}
	for _, pass := range []func(name string, p schema) (json.RawMessage, bool){b.given, b.named, b.enum, b.byKind} {
		for _, name := range sortedKeys(c.schema.Properties) {
			b.try(name, pass)
		}
	}
	for _, name := range required {
		b.try(name, b.onlyOne)
	}
	for _, name := range sortedKeys(c.schema.Properties) {
		b.try(name, b.flag)
	}
	for _, name := range required {
		if p := c.schema.Properties[name]; !b.has(name) && len(p.Default) == 0 {
			c.missing = append(c.missing, name)
		}
	}
	return c
}

type binder struct {
	facts *facts
	call  *call
	tool  tool.Tool
}

func (b binder) has(name string) bool {
	return slices.ContainsFunc(b.call.args, func(a arg) bool { return a.name == name })
}

func (b binder) required(name string) bool { return slices.Contains(b.call.schema.Required, name) }

func (b binder) try(name string, pass func(string, schema) (json.RawMessage, bool)) {
	if b.has(name) {
		return
	}
	if value, ok := pass(name, b.call.schema.Properties[name]); ok {
		b.call.args = append(b.call.args, arg{name: name, value: value})
	}
}

// given takes an argument of the request.
func (b binder) given(name string, p schema) (json.RawMessage, bool) {
	value, ok := b.facts.args[fold(name)]
	if !ok {
		return nil, false
	}
	b.facts.taken[fold(name)] = true
	var text string
	if json.Unmarshal(value, &text) == nil && p.kind() != "string" && p.kind() != "" {
		if converted, fits := p.convert(text); fits {
			return converted, true
		}
	}
	return value, true
}

// named takes the value after the name of a parameter: title "x", limit 5, page: 2, path /a/b.
func (b binder) named(name string, p schema) (json.RawMessage, bool) {
	words := strings.Join(wordLike.FindAllString(camel.ReplaceAllString(name, "$1 $2"), -1), `[ _-]?`)
	if words == "" {
		return nil, false
	}
	pattern, err := regexp.Compile(`(?i)\b` + words + `s?(?:\s*[:=]\s*|\s+(?:is|of|to|named|called|with|number|no\.?)?\s*)$`)
	if err != nil {
		return nil, false
	}
	for _, one := range b.facts.of("quoted", "number", "date", "path", "url", "email", "repo", "name") {
		if !pattern.MatchString(b.facts.task[:one.at]) {
			continue
		}
		if value, ok := b.convert(p, one); ok {
			return value, true
		}
	}
	return b.assigned(words, p)
}

// assigned takes name=value and name: value without quotes.
func (b binder) assigned(words string, p schema) (json.RawMessage, bool) {
	pattern, err := regexp.Compile(`(?i)\b` + words + `\s*[:=]\s*([^\s,;"']+)`)
	if err != nil {
		return nil, false
	}
	found := pattern.FindStringSubmatch(b.facts.task)
	if found == nil {
		return nil, false
	}
	return p.convert(strings.TrimRight(found[1], "."))
}

// convert uses a fact as a value, if its type fits.
func (b binder) convert(p schema, one *fact) (json.RawMessage, bool) {
	value, ok := p.convert(one.text)
	one.used = one.used || ok
	return value, ok
}

// convert makes a value of a text, if the type allows it.
func (s schema) convert(text string) (json.RawMessage, bool) {
	switch s.kind() {
	case "string", "":
		if len(s.Enum) > 0 {
			return s.choice(text)
		}
		return encode(text), true
	case "integer":
		n, err := strconv.ParseInt(strings.TrimPrefix(text, "#"), 10, 64)
		return encode(n), err == nil
	case "number":
		n, err := strconv.ParseFloat(strings.TrimPrefix(text, "#"), 64)
		return encode(n), err == nil
	case "boolean":
		yes, err := strconv.ParseBool(strings.ToLower(text))
		return encode(yes), err == nil
	case "array":
		if s.Items == nil {
			return encode([]string{text}), true
		}
		item, ok := s.Items.convert(text)
		return encode([]json.RawMessage{item}), ok
	}
	return nil, false
}

// choice returns the value of an enumeration that a text names.
func (s schema) choice(text string) (json.RawMessage, bool) {
	for _, v := range s.Enum {
		if one, ok := v.(string); ok && strings.EqualFold(one, text) {
			return encode(one), true
		}
	}
	return nil, false
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}

// enum takes the only value of an enumeration that is a word of the task.
func (b binder) enum(name string, p schema) (json.RawMessage, bool) {
	var found []string
	plain := read(b.facts.task).plain
	for _, v := range p.Enum {
		one, ok := v.(string)
		if ok && len(one) > 1 && regexp.MustCompile(`(?i)(?:^|[^\w])`+regexp.QuoteMeta(one)+`(?:[^\w]|$)`).MatchString(plain) {
			found = append(found, one)
		}
	}
	own := nameWords(b.tool)
	found = slices.DeleteFunc(found, func(s string) bool { return slices.Contains(own, stem(strings.ToLower(s))) })
	if len(found) != 1 {
		return nil, false
	}
	for _, one := range b.facts.of("name") {
		if strings.EqualFold(one.text, found[0]) {
			one.used = true
		}
	}
	return encode(found[0]), true
}

// hints are words in the names of parameters, with the kinds of values that fit.
var hints = []struct {
	kind, words string
}{
	{"email", "email mail to recipient cc bcc address from"},
	{"url", "url uri link href website page"},
	{"date", "date day since until after before start end time due from to"},
	{"path", "path file filename dir directory folder source destination paths files"},
	{"repo", "repo repository project fullname"},
}

// byKind takes values of a form that fits the name or format of a parameter.
func (b binder) byKind(name string, p schema) (json.RawMessage, bool) {
	if v, ok := b.half(name); ok {
		return v, true
	}
	words := stems(name)
	for _, h := range hints {
		if !slices.ContainsFunc(strings.Fields(h.words), func(w string) bool { return slices.Contains(words, stem(w)) }) && p.Format != h.kind && !(h.kind == "url" && p.Format == "uri") {
			continue
		}
		all := b.facts.of(h.kind)
		if p.kind() == "array" && len(all) > 1 {
			return b.list(all), true
		}
		if one := b.sided(words, all); one != nil {
			if v, ok := b.convert(p, one); ok {
				return v, true
			}
		}
	}
	return b.amount(words, p)
}

func (b binder) list(all []*fact) json.RawMessage {
	var values []string
	for _, one := range all {
		one.used = true
		values = append(values, one.text)
	}
	return encode(values)
}

// half takes owner and repository from owner/name.
func (b binder) half(name string) (json.RawMessage, bool) {
	_, owner := b.call.schema.Properties["owner"]
	_, repo := b.call.schema.Properties["repo"]
	if !owner || !repo || name != "owner" && name != "repo" {
		return nil, false
	}
	for _, one := range b.facts.all {
		if one.kind == "repo" {
			one.used = true
			left, right, _ := strings.Cut(one.text, "/")
			return encode(map[string]string{"owner": left, "repo": right}[name]), true
		}
	}
	return nil, false
}

// sided chooses between values by the words from and to. Of one value there is no choice.
func (b binder) sided(words []string, all []*fact) *fact {
	side := ""
	for _, w := range words {
		switch w {
		case "source", "from", "start", "since", "old", "after":
			side = "from since after"
		case "destination", "to", "end", "until", "new", "before", "target":
			side = "to until before into as"
		}
	}
	if side == "" || len(all) < 2 {
		if len(all) == 1 || len(all) > 1 && side == "" && b.count(words) == 1 {
			return all[0]
		}
		return nil
	}
	for _, one := range all {
		before := b.facts.before(one)
		if n := len(before); n > 0 && slices.Contains(strings.Fields(side), before[n-1]) {
			return one
		}
	}
	if strings.HasPrefix(side, "from") {
		return all[0]
	}
	return all[len(all)-1]
}

// count returns how many required parameters have one of the words.
func (b binder) count(words []string) (n int) {
	for _, name := range b.call.schema.Required {
		if slices.ContainsFunc(stems(name), func(w string) bool { return slices.Contains(words, w) }) {
			n++
		}
	}
	return n
}

// amount takes a number for a limit (first 5, 10 newest) or for the number of a thing (ticket 12, #12).
func (b binder) amount(words []string, p schema) (json.RawMessage, bool) {
	numeric := p.kind() == "integer" || p.kind() == "number"
	fits := func(last string, one *fact) bool {
		return last != "" && slices.Contains(words, last) && (numeric || one.kind == "name" || isIdentifier(words)) || b.isNumberOf(words, last, one)
	}
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(limitWords, w) }) {
		fits = func(last string, one *fact) bool {
			return numeric && one.kind == "number" && slices.Contains(beforeLimits, last)
		}
	}
	for _, one := range b.facts.of("number", "name") {
		last := ""
		if before := b.facts.before(one); len(before) > 0 {
			last = before[len(before)-1]
		}
		if !fits(last, one) {
			continue
		}
		if v, ok := b.convert(p, one); ok {
			return v, true
		}
	}
	return nil, false
}

var (
	// limitWords are words in the names of parameters that limit how much is returned.
	limitWords = []string{"limit", "count", "max", "perpage", "size", "top", "n", "head", "tail", "num", "results"}
	// beforeLimits are words of a task in front of such a limit.
	beforeLimits = []string{"first", "last", "limit", "most", "top", "latest", "recent", "newest"}
)

// isNumberOf reports whether a fact is the number or id of a thing that the tool's name or the parameter has: ticket #12.
func (b binder) isNumberOf(words []string, last string, one *fact) bool {
	if !isIdentifier(words) || !b.required(strings.Join(words, "_")) && !slices.ContainsFunc(b.call.schema.Required, func(n string) bool { return slices.Equal(stems(n), words) }) {
		return false
	}
	return last != "" && (slices.Contains(nameWords(b.tool), last) || slices.Contains(words, last)) || strings.HasPrefix(one.text, "#")
}

func isIdentifier(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains([]string{"id", "number", "iid", "key", "no", "num"}, w) })
}

// free are names of parameters that take any text.
var free = strings.Fields("query q text message search pattern name title content body description comment prompt sql code input thought subject customer city user username keyword topic key")

// onlyOne takes the only value that is left for the only required parameter that is left.
func (b binder) onlyOne(name string, p schema) (json.RawMessage, bool) {
	var open []string
	for _, other := range b.call.schema.Required {
		if !b.has(other) && len(b.call.schema.Properties[other].Default) == 0 {
			open = append(open, other)
		}
	}
	if len(open) != 1 || open[0] != name {
		return nil, false
	}
	switch kind := p.kind(); {
	case kind == "integer" || kind == "number":
		return b.single(p, "number")
	case kind == "array":
		if all := b.facts.of("quoted"); len(all) > 0 && p.Items != nil && p.Items.kind() == "string" {
			return b.list(all), true
		}
		return nil, false
	case kind == "string" && len(p.Enum) == 0:
		return b.onlyText(name, p)
	}
	return nil, false
}

// onlyText takes the only quoted text, or for a parameter that takes any text the only name.
func (b binder) onlyText(name string, p schema) (json.RawMessage, bool) {
	if v, ok := b.single(p, "quoted"); ok {
		return v, true
	}
	if slices.Contains(free, strings.ToLower(name)) && !b.facts.hasQuoted() {
		if all := b.facts.of("name"); len(all) == 1 && b.belongs(all[0]) {
			return b.convert(p, all[0])
		}
	}
	return nil, false
}

// belongs reports whether the word before a name is not of another thing: the o-3 of "order o-3" is no name of a customer.
func (b binder) belongs(one *fact) bool {
	before := b.facts.before(one)
	if len(before) == 0 {
		return true
	}
	last := before[len(before)-1]
	return stop[last] != "" || class(last) != "" || slices.Contains(nameWords(b.tool), last)
}

// hasQuoted reports whether the task has quoted texts, used or not: then others are part of the sentence.
func (f *facts) hasQuoted() bool {
	return slices.ContainsFunc(f.all, func(o *fact) bool { return o.kind == "quoted" })
}

func (b binder) single(p schema, kinds ...string) (json.RawMessage, bool) {
	all := b.facts.of(kinds...)
	if len(all) != 1 {
		return nil, false
	}
	return b.convert(p, all[0])
}

// flag takes a boolean that the task has as a word of its own: "recursive", but not "not recursive".
func (b binder) flag(name string, p schema) (json.RawMessage, bool) {
	words := stems(name)
	if p.kind() != "boolean" || len(words) != 1 || slices.Contains(nameWords(b.tool), words[0]) {
		return nil, false
	}
	task := stems(read(b.facts.task).plain)
	i := slices.Index(task, words[0])
	if i < 0 || i > 0 && slices.Contains([]string{"not", "no", "non", "without"}, task[i-1]) {
		return nil, false
	}
	return encode(true), true
}
