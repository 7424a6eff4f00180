package misuse

import (
	"maps"
	"slices"
)

// program is a program with what its variables hold.
type program struct {
	tokenized
	tools  map[string]*shape // what functions of the program return
	guards bool              // the program looks at the types of values itself

	// bound has the positions where a variable gets a value, given those where that is a known shape.
	bound map[string][]int
	given map[string]map[int]*shape

	suspicious bool // the program has probably found nothing
	report     func(Finding)
}

// tokenized is the text of a program.
type tokenized struct {
	tokens []token
	pair   []int // of a bracket, the index of the other one, else -1
	outer  []int // the index of the innermost open bracket around a token, -1 for none
	python bool
}

// passes is how often bindings are searched: a variable may depend on another one.
const passes = 4

func newProgram(code string, python bool, tools map[string]*shape) *program {
	p := &program{tokenized: tokenized{tokens: lex(code, python), python: python}, tools: maps.Clone(tools), given: map[string]map[int]*shape{}}
	p.match()
	for i := range p.tokens {
		if s := tools[p.word(i)]; s != nil && p.is(i+1, "as") && p.kind(i+2) == name {
			p.tools[p.word(i+2)] = s
		}
		switch p.word(i) {
		case "isinstance", "typeof", "isArray", "hasattr":
			p.guards = true
		}
	}
	p.findBindings()
	for range passes {
		p.chains(p.bind)
	}
	return p
}

// match finds the brackets that belong together.
func (p *tokenized) match() {
	p.pair, p.outer = make([]int, len(p.tokens)), make([]int, len(p.tokens))
	var stack []int
	for i, t := range p.tokens {
		p.pair[i], p.outer[i] = -1, -1
		if len(stack) > 0 {
			p.outer[i] = stack[len(stack)-1]
		}
		if t.kind != sign && t.kind != open && t.kind != shut {
			continue
		}
		switch t.text {
		case "(", "[", "{", "${":
			stack = append(stack, i)
		case ")", "]", "}":
			if n := len(stack); n > 0 {
				p.pair[i], p.pair[stack[n-1]] = stack[n-1], i
				stack = stack[:n-1]
			}
		}
	}
}

func (p *tokenized) at(i int) token {
	if i < 0 || i >= len(p.tokens) {
		return token{}
	}
	return p.tokens[i]
}

func (p *tokenized) kind(i int) kind { return p.at(i).kind }

// is reports whether a token is one of these operators, brackets or words.
func (p *tokenized) is(i int, texts ...string) bool {
	t := p.at(i)
	return (t.kind == sign || t.kind == name) && slices.Contains(texts, t.text)
}

// word returns the name at i, "" if it is none.
func (p *tokenized) word(i int) string {
	if t := p.at(i); t.kind == name {
		return t.text
	}
	return ""
}

func (p *tokenized) inner(i int) int {
	if i < 0 || i >= len(p.outer) {
		return -1
	}
	return p.outer[i]
}

// closing returns the index after the bracket that closes the one at i, 0 if nothing closes it.
func (p *tokenized) closing(i int) int {
	if i < 0 || i >= len(p.pair) || p.pair[i] < i {
		return 0
	}
	return p.pair[i] + 1
}

// findBindings finds where variables get values.
func (p *program) findBindings() {
	p.bound = map[string][]int{}
	for i := range p.tokens {
		if p.kind(i) == name && p.binds(i) {
			p.bound[p.word(i)] = append(p.bound[p.word(i)], i)
		}
	}
}

// binds reports whether the name at i gets a value there.
func (p *tokenized) binds(i int) bool {
	switch {
	case p.is(i-1, ".", "?."):
		return false
	case p.is(i+1, "=", ":="):
		return !p.python || !p.isArgument(i) || p.is(i+1, ":=")
	case p.is(i+1, "=>"), p.is(i-1, "as", "let", "const", "var", "lambda", "global"):
		return true
	case p.is(i+1, "in") && p.is(i-1, "for", ","):
		return true
	case p.is(i+1, ",") && p.is(i-1, "for", ","):
		return p.inner(i) < 0 || p.python && p.inForTarget(i) || p.isParameter(i)
	}
	return p.isParameter(i) || p.isDestructured(i)
}

// inForTarget reports whether a name is one of several that a loop in Python sets.
func (p *tokenized) inForTarget(i int) bool {
	for ; i > 0 && (p.kind(i) == name || p.is(i, ",")); i-- {
		if p.is(i, "for") {
			return true
		}
	}
	return false
}

// isArgument reports whether a name is one of a call's in Python: f(name=...).
func (p *tokenized) isArgument(i int) bool {
	open := p.inner(i)
	return open > 0 && p.is(open, "(") && p.kind(open-1) == name && p.is(i-1, "(", ",")
}

// isParameter reports whether a name is a parameter of a function.
func (p *tokenized) isParameter(i int) bool {
	open := p.inner(i)
	for open >= 0 && p.is(open, "{", "[") { // destructured
		open = p.inner(open)
	}
	if open < 0 || !p.is(open, "(") || !p.is(i-1, "(", ",", "{", "[", ":", "*", "**", "...") {
		return p.inLambda(i)
	}
	return p.is(p.closing(open), "=>") || p.is(open-1, "function", "catch") || p.is(open-2, "function", "def", "*")
}

// inLambda reports whether a name is a further parameter of a lambda: lambda a, b: ...
func (p *tokenized) inLambda(i int) bool {
	if !p.python || !p.is(i+1, ",", ":") {
		return false
	}
	for ; i > 0 && (p.kind(i) == name || p.is(i, ",")); i-- {
		if p.is(i, "lambda") {
			return true
		}
	}
	return false
}

// isDestructured reports whether a name gets a value from a part of another one: const { a, b: c } = ...
func (p *tokenized) isDestructured(i int) bool {
	open := p.inner(i)
	if open < 0 || !p.is(open, "{", "[") || !p.is(i+1, ",", "}", "]", "=") {
		return false
	}
	for p.inner(open) >= 0 && p.is(p.inner(open), "{", "[") {
		open = p.inner(open)
	}
	return p.is(p.closing(open), "=", "of")
}

// variable returns what a variable holds, nil if that is not certain.
func (p *program) variable(word string) *shape {
	var found *shape
	for _, at := range p.bound[word] {
		s := p.given[word][at]
		if s == nil || found != nil && s != found {
			return nil
		}
		found = s
	}
	return found
}

// give notes that the variable at i gets a value of a shape.
func (p *program) give(i int, s *shape) {
	word := p.word(i)
	if word == "" || s == nil {
		return
	}
	if p.given[word] == nil {
		p.given[word] = map[int]*shape{}
	}
	p.given[word][i] = s
}
