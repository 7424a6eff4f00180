package misuse

import "slices"

// chain is an expression that begins with a call of a tool or with a variable that holds a part of a result:
// (await list_issues(...))[0].labels.
type chain struct {
	start, end int // its tokens
	shape      *shape
	pure       bool // nothing but members were taken since the start
}

// chains calls each for every chain of the program. Longer ones come after their parts.
func (p *program) chains(each func(chain)) {
	for i := range p.tokens {
		c, ok := p.source(i)
		for ok {
			if p.grouped(&c) {
				continue
			}
			c, ok = p.step(c, each)
		}
		if c.shape != nil {
			each(c)
		}
	}
}

// source returns the chain that begins at i: a variable, or a call of a tool.
func (p *program) source(i int) (c chain, ok bool) {
	word := p.word(i)
	if word == "" {
		return chain{}, false
	}
	if s := p.tools[word]; s != nil {
		if next := p.callEnd(i + 1); next > 0 {
			start := i
			for p.is(start-1, ".") && p.kind(start-2) == name { // upstream.tool(...)
				start -= 2
			}
			return chain{start: start, end: next, shape: s, pure: true}, true
		}
	}
	if p.is(i-1, ".", "?.") || p.is(i+1, "(", "=>", ":=") || p.python && p.is(i+1, "=") || slices.Contains(p.bound[word], i) || p.isKey(i) {
		return chain{}, false
	}
	s := p.variable(word)
	return chain{start: i, end: i + 1, shape: s, pure: true}, s != nil
}

// isKey reports whether a name is the key of an object in JavaScript.
func (p *tokenized) isKey(i int) bool {
	return !p.python && p.is(i+1, ":") && p.is(i-1, "{", ",") && p.inner(i) >= 0 && p.is(p.inner(i), "{")
}

// callEnd returns the index after the arguments of a call of a tool, 0 if none is called. It may be .aio(...).
func (p *tokenized) callEnd(i int) int {
	if p.python && p.is(i, ".") && p.is(i+1, "aio") {
		i += 2
	}
	if !p.is(i, "(") {
		return 0
	}
	return p.closing(i)
}

// grouped extends a chain by the await before it or by the brackets around it.
func (p *program) grouped(c *chain) bool {
	if p.is(c.start-1, "await") {
		c.start--
		return true
	}
	isGroup := p.is(c.start-1, "(") && p.is(c.end, ")") && (p.kind(c.start-2) != name || p.is(c.start-2, "return", "await", "in", "of", "or", "and", "not", "if", "else", "print")) && !p.is(c.start-2, ")", "]")
	if !isGroup || p.is(c.start-2, "print") {
		return false
	}
	c.start, c.end = c.start-1, c.end+1
	return true
}

// step takes a member or an item of a chain. ok is false at its end.
func (p *program) step(c chain, each func(chain)) (next chain, ok bool) {
	at := c.end
	if p.is(at, "?.") && p.is(at+1, "[") {
		at++
	}
	switch {
	case p.is(at, "["):
		return p.index(c, at)
	case p.is(at, ".", "?.") && p.kind(at+1) == name:
		if p.is(at+2, "(") || p.is(at+2, "?.") && p.is(at+3, "(") {
			return p.method(c, at+1, each)
		}
		return p.attribute(c, at+1)
	}
	return c, false
}

func (c chain) to(s *shape, end int) (chain, bool) {
	return chain{start: c.start, end: end, shape: s, pure: c.pure}, s != nil
}

// index takes value[...], whose bracket is at i.
func (p *program) index(c chain, i int) (chain, bool) {
	next := p.closing(i)
	if next == 0 {
		return chain{}, false
	}
	if next == i+3 && p.kind(i+1) == text {
		return p.member(c, p.at(i+1).text, next)
	}
	for at := i + 1; at < next-1; at++ {
		if p.is(at, ":") && p.inner(at) == i { // a slice
			return c.to(c.shape, next)
		}
	}
	if c.shape.only(isList) {
		return c.to(c.shape.elem, next)
	}
	return chain{}, false
}

// attribute takes value.NAME, whose name is at i.
func (p *program) attribute(c chain, i int) (chain, bool) {
	word := p.word(i)
	if p.python {
		p.missingAttribute(c, word)
		return chain{}, false
	}
	if c.shape.only(isList) || c.shape.only(isText) {
		if word == "length" {
			p.measured(c.shape)
			return chain{}, false
		}
		p.missingAttribute(c, word)
		return chain{}, false
	}
	return p.member(c, word, i+1)
}

// member takes a member of an object.
func (p *program) member(c chain, key string, next int) (chain, bool) {
	if !c.shape.only(isObject) {
		if c.shape.only(isList) || c.shape.only(isText) {
			p.missing(c, key, next)
		}
		return chain{}, false
	}
	if inner := c.shape.members[key]; inner != nil {
		return c.to(inner, next)
	}
	p.missing(c, key, next)
	return chain{}, false
}

// Methods that return an item of a list, the list or a part of it, and those that call a function with items.
var (
	itemMethods  = []string{"at", "find", "findLast", "pop", "shift"}
	listMethods  = []string{"filter", "slice", "sort", "toSorted", "reverse", "toReversed", "copy"}
	callsOnItems = []string{"map", "filter", "forEach", "some", "every", "find", "findIndex", "findLast", "flatMap", "sort", "toSorted", "reduce"}
)

// method calls a method of a chain, whose name is at i.
func (p *program) method(c chain, i int, each func(chain)) (chain, bool) {
	word, open := p.word(i), i+1
	if p.is(open, "?.") {
		open++
	}
	next := p.closing(open)
	if next == 0 {
		return chain{}, false
	}
	each(chain{start: c.start, end: c.end, shape: c.shape, pure: true})
	switch {
	case word == "then" && !p.python:
		p.bindCallback(open, c.shape, c.shape, word)
		return chain{}, false
	case p.python && word == "get" && c.shape.only(isObject) && p.kind(open+1) == text:
		p.nullDefault(c, p.at(open+1).text, open)
		return p.member(c, p.at(open+1).text, next)
	case c.shape.only(isList):
		return p.listMethod(c, word, open, next)
	case !p.python:
		p.missingMethod(c, word)
	}
	return chain{}, false
}

// missingMethod reports a method in JavaScript that a text or an object does not have.
func (p *program) missingMethod(c chain, word string) {
	switch {
	case c.shape.only(isText):
		p.missingAttribute(c, word)
	case c.shape.only(isObject) && c.shape.members[word] == nil && slices.Contains(callsOnItems, word):
		p.add(Finding{Name: word, Text: c.shape.at + " is an object of " + list(c.shape.keys()) + ", no list"})
	}
}

func (p *program) listMethod(c chain, word string, open, next int) (chain, bool) {
	if slices.Contains(callsOnItems, word) {
		p.bindCallback(open, c.shape.elem, c.shape.elem, word)
	}
	p.compared(c, word, open)
	p.missingAttribute(c, word)
	switch {
	case slices.Contains(itemMethods, word):
		return c.to(c.shape.elem, next)
	case slices.Contains(listMethods, word):
		return c.to(c.shape, next)
	}
	return chain{}, false
}

// functionAt returns where the parameters of the function begin that begins at i.
func (p *tokenized) functionAt(i int) int {
	if p.is(i, "key") && p.is(i+1, "=") {
		i += 2
	}
	if p.is(i, "async", "lambda") {
		i++
	}
	return i
}

// bindCallback gives the parameters of the function that begins after the bracket at i their shapes.
func (p *program) bindCallback(i int, first, second *shape, method string) {
	at := p.functionAt(i + 1)
	if p.kind(at) == name && (p.is(at+1, "=>", ":") || p.is(at+1, ",")) {
		p.give(at, first)
		return
	}
	if !p.is(at, "(") || !p.is(p.closing(at), "=>") {
		return
	}
	params := p.parts(at)
	for n, param := range params {
		switch {
		case n == 0 && method != "reduce":
			p.giveTo(param, first)
		case n == 1 && (method == "reduce" || method == "sort" || method == "toSorted"):
			p.giveTo(param, second)
		}
	}
}

// parts returns where the parts of a list begin, whose bracket is at i.
func (p *tokenized) parts(i int) (starts []int) {
	end := p.closing(i) - 1
	for at := i + 1; at < end; at++ {
		if at == i+1 || p.is(at-1, ",") && p.inner(at-1) == i {
			starts = append(starts, at)
		}
	}
	return starts
}

// giveTo gives a value to the variable or to the destructured variables at i.
func (p *program) giveTo(i int, s *shape) {
	if s == nil {
		return
	}
	if p.kind(i) == name {
		p.give(i, s)
		return
	}
	if !p.is(i, "{") {
		return
	}
	for _, at := range p.parts(i) {
		if p.kind(at) != name {
			continue
		}
		target := at
		if p.is(at+1, ":") {
			target = at + 2
		}
		if inner, ok := p.member(chain{start: at, end: at, shape: s}, p.word(at), at+1); ok {
			p.giveTo(target, inner.shape)
		}
	}
}

// bind gives a variable the value of a chain, if that is what the program does with it.
func (p *program) bind(c chain) {
	before := c.start - 1
	switch {
	case p.is(before, "=") && p.ends(c.end):
		p.giveTo(p.targetBefore(before), c.shape)
	case p.is(before, "in") && p.python && p.is(before-2, "for"), p.is(before, "of"):
		if c.shape.only(isList) {
			p.giveTo(p.targetBefore(before), c.shape.elem)
		}
	case p.is(before, "(") && p.is(before-1, "enumerate") && p.is(before-2, "in") && p.is(before-4, ",") && c.shape.only(isList):
		p.give(before-3, c.shape.elem)
	case p.python && c.shape.only(isList):
		p.bindLambda(c)
	}
}

// targetBefore returns where the target of an assignment begins, which ends before i.
func (p *tokenized) targetBefore(i int) int {
	if p.is(i-1, "}", "]") && p.pair[i-1] >= 0 {
		return p.pair[i-1]
	}
	return i - 1
}

// ends reports whether an expression ends before i, perhaps with a default.
func (p *tokenized) ends(i int) bool {
	return i >= len(p.tokens) || p.is(i, ";", "\n", "??", "||", "or", "}", ",")
}

// bindLambda gives the parameter of a lambda the items of the list that stands next to it: sorted(CHAIN, key=lambda x: ...).
func (p *program) bindLambda(c chain) {
	open := p.inner(c.start)
	if open < 0 || !p.is(open-1, "sorted", "min", "max", "map", "filter", "nlargest", "nsmallest", "groupby") {
		return
	}
	for at := open + 1; at < p.closing(open)-1; at++ {
		if p.is(at, "lambda") && p.inner(at) == open {
			p.give(at+1, c.shape.elem)
		}
	}
}
