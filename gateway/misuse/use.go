package misuse

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Members that lists and texts have in JavaScript, and attributes that those and dicts have in Python.
var (
	jsListMembers = strings.Fields(`at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap forEach includes indexOf join keys
		lastIndexOf length map pop push reduce reduceRight reverse shift slice some sort splice toLocaleString toReversed toSorted toSpliced toString unshift values with`)
	jsTextMembers = strings.Fields(`at charAt charCodeAt codePointAt concat endsWith includes indexOf isWellFormed lastIndexOf length localeCompare match matchAll normalize
		padEnd padStart repeat replace replaceAll search slice split startsWith substr substring toLocaleLowerCase toLocaleUpperCase toLowerCase toString toUpperCase
		toWellFormed trim trimEnd trimStart valueOf`)
	pyListMembers = strings.Fields("append clear copy count extend index insert pop remove reverse sort")
)

// missingAttribute reports a member or a method that lists or texts do not have.
func (p *program) missingAttribute(c chain, word string) {
	switch s := c.shape; {
	case p.python && s.only(isList) && !slices.Contains(pyListMembers, word):
		if word == "length" || word == "size" {
			p.add(Finding{word, "a list has no " + word + ": len(...)"})
			return
		}
		p.missing(c, word, c.end+2)
	case !p.python && s.only(isList) && !slices.Contains(jsListMembers, word), !p.python && s.only(isText) && !slices.Contains(jsTextMembers, word):
		p.missing(c, word, c.end+2)
	}
}

// use reports uses of a whole chain.
func (p *program) use(c chain) {
	s := c.shape
	switch {
	case s.only(isList) && s.elem.only(isObject) && p.is(c.start-1, "in") && p.kind(c.start-2) == text:
		p.objects(s)
	case s.only(isObject) && p.takenForText(c):
		p.add(Finding{"", s.at + " is an object: " + list(s.keys())})
	case s.only(isText):
		p.useText(c)
	}
}

// useText reports uses of a text as a number or as a list.
func (p *program) useText(c chain) {
	s := c.shape
	switch {
	case s.numeric:
		if p.computed(c) || strings.HasSuffix(s.at, "()") && p.judged(c) {
			p.add(Finding{"", fmt.Sprintf("%s is text, here %q, %sequal to no number: %s", s.at, s.sample, trueText[s.sample == "0"], p.conversion(s))})
		}
	case p.python && p.is(c.start-1, "(") && p.is(c.start-2, "len") && p.is(c.end, ")"):
		p.measured(s)
	}
}

// objects reports that the items of a list are objects, where texts are expected.
func (p *program) objects(s *shape) {
	keys := s.elem.keys()
	if len(keys) == 0 {
		return
	}
	key := keys[0]
	for _, usual := range []string{"id", "title", "name"} {
		if slices.Contains(keys, usual) {
			key = usual
		}
	}
	text := fmt.Sprintf(".map((x) => x.%s)", sanitize.Line(key, 40))
	if p.python {
		text = fmt.Sprintf("[x[%s] for x in ...]", quoted(key))
	}
	p.add(Finding{"", fmt.Sprintf("%s are objects {%s}: %s", s.elem.at, list(keys), text)})
}

// callbacks reports functions that are passed to a tool in JavaScript, which calls none.
func (p *program) callbacks() {
	for i := range p.tokens {
		if p.python || p.tools[p.word(i)] == nil || !p.is(i+1, "(") {
			continue
		}
		if parts := p.parts(i + 1); len(parts) > 1 && (p.is(parts[1], "function") || p.is(parts[1]+1, "=>") || p.is(p.closing(parts[1]), "=>")) {
			p.add(Finding{"", fmt.Sprintf("%[1]s calls no callback: const r = await %[1]s({...})", p.word(i))})
		}
	}
}

// takenForText reports whether a program puts an object into a text, or makes a date of it.
func (p *program) takenForText(c chain) bool {
	inText := !p.python && p.kind(c.start-1) == open && p.kind(c.end) == shut
	made := p.is(c.start-1, "(") && (p.is(c.start-2, "Date", "fromisoformat", "strptime", "Number", "parseInt", "parseFloat", "float", "int"))
	return inText || made
}

// compared reports texts that are looked for in a list of objects, and lists of objects that are joined.
func (p *program) compared(c chain, method string, open int) {
	if !c.shape.elem.only(isObject) {
		return
	}
	switch method {
	case "includes", "indexOf", "count", "index":
		if p.kind(open+1) == text {
			p.objects(c.shape)
		}
	case "join":
		p.objects(c.shape)
	}
}

// nullDefault reports a default for a member in Python that is there, as None.
func (p *program) nullDefault(c chain, key string, open int) {
	inner := c.shape.members[key]
	if inner == nil || inner.kinds&isNull == 0 || !p.is(open+2, ",") || p.is(open+3, "None") {
		return
	}
	p.add(Finding{key, fmt.Sprintf("%s can be None, get's default is for a missing key: .get(%q) or ...", inner.at, key)})
}

// measured reports a table in a text whose length is taken.
func (p *program) measured(s *shape) {
	lines := strings.Split(strings.TrimSpace(s.sample), "\n")
	if len(lines) < 2 {
		return
	}
	commas := strings.Count(lines[0], ",")
	if commas == 0 || slices.ContainsFunc(lines, func(l string) bool { return strings.Count(l, ",") < commas }) {
		return
	}
	p.add(Finding{"", fmt.Sprintf("%s is text of %d lines, its length is in characters: split it", s.at, len(lines))})
}

func (p *program) conversion(s *shape) string {
	if !p.python {
		return "Number(...)"
	}
	if strings.ContainsAny(s.sample, ".eE") {
		return "float(...)"
	}
	return "int(...)"
}

// computed reports whether the text of a number is taken for the number, without an error.
func (p *program) computed(c chain) bool {
	before, after := c.start-1, c.end
	if p.python {
		return p.ordered(before, after)
	}
	switch {
	case p.is(after, "+") && p.is(before, "+"), p.kind(before) == open, p.kind(after) == shut:
		return false
	case p.is(after, "+"):
		return p.kind(after+1) == number && !p.isConverted(before)
	case p.is(before, "+", "+="):
		return p.isSum(before)
	case p.is(after, "<", ">", "<=", ">="):
		return p.kind(after+1) != number && !p.isConverted(before)
	}
	return false
}

// ordered reports whether a program in Python compares or sorts by what stands between two tokens.
func (p *program) ordered(before, after int) bool {
	return p.is(after, "<", ">", "<=", ">=") && p.kind(after+1) == text && tool.IsNumber(p.at(after+1).text) ||
		p.is(before, ":") && p.is(before-2, "lambda") && p.ordersBy(before-2) && p.is(after, ")", ",") ||
		p.is(before, "(") && p.is(before-1, "min", "max", "sorted") && p.is(after, "for")
}

// isConverted reports whether the operator at i makes a number of the text after it: the plus in f(+text).
func (p *tokenized) isConverted(i int) bool {
	return p.is(i, "+", "-") && p.kind(i-1) != number && (p.kind(i-1) != name || p.is(i-1, "return")) && !p.is(i-1, ")", "]")
}

// trueText says of a text that is a wrong number's that it counts as true.
var trueText = map[bool]string{true: "which is true and "}

// judged reports whether a program decides by the text of a number: if it is true, or equal to a number.
func (p *program) judged(c chain) bool {
	before, after := c.start-1, c.end
	if p.isConverted(before) {
		return false
	}
	if p.is(after, "===", "!==") || p.python && p.is(after, "==", "!=") {
		return p.kind(after+1) == number
	}
	if p.is(before, "===", "!==") || p.python && p.is(before, "==", "!=") {
		return p.kind(before-1) == number
	}
	if !p.is(after, ":", "else", "and", "or", ")", "?", "&&", "||", "\n", ";") {
		return false
	}
	return p.is(after, "?", "&&") || p.is(before, "!", "not", "if", "while", "and", "&&") || p.is(before, "(") && p.is(before-1, "if", "while", "bool", "Boolean")
}

// isSum reports whether what stands before the plus at i is a number, as far as its names tell.
func (p *program) isSum(i int) bool {
	if p.kind(i-1) == number {
		return true
	}
	word := p.word(i - 1)
	for _, at := range p.bound[word] {
		if p.is(at+1, "=") && p.kind(at+2) == number || p.isParameter(at) && p.inReduce(at) {
			return true
		}
	}
	return false
}

// inReduce reports whether the parameter at i is that of a reduce that begins with a number.
func (p *tokenized) inReduce(i int) bool {
	params := p.inner(i)
	call := p.inner(params)
	if call < 0 || !p.is(call-1, "reduce") || p.closing(call) == 0 {
		return false
	}
	last := p.closing(call) - 2
	return p.kind(last) == number && p.is(last-1, ",")
}

// ordersBy reports whether the lambda at i gives the key of an order.
func (p *tokenized) ordersBy(i int) bool {
	call := p.inner(i)
	return p.is(i-1, "=") && p.is(i-2, "key") && call > 0 && p.is(call-1, "min", "max", "sort", "sorted")
}
