package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// variableName is what a variable of a program can be called in both languages. What begins
// with "__" belongs to them.
var variableName = regexp.MustCompile(`^(_?[A-Za-z][A-Za-z0-9_]{0,63}|_)$`)

// checkGiven refuses variables and limits that a program cannot have.
func (ex *Executor) checkGiven(p execution.Program) error {
	if most := int64(ex.opts.Settings.Load().Sandbox.Memory); p.Memory > most {
		return toolcall.Invalid(fmt.Sprintf("a program can have at most %v of memory", config.Size(most)), "leave it out")
	}
	size := len(p.Code)
	for name, value := range p.Variables {
		if !variableName.MatchString(name) {
			return toolcall.Invalid(fmt.Sprintf("a variable cannot be called %q", sanitize.Line(name, 80)), "use a letter, then letters, digits and _")
		}
		if !simple(value) {
			return toolcall.Invalid("the variable "+name+" is no JSON value that a program can have", fmt.Sprintf("at most %d lists and objects in each other", maxDepth))
		}
		size += len(name) + len(value)
	}
	if size > execution.MaxCode {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("code and variables must be at most %d bytes together, not %d", execution.MaxCode, size), Hint: "write what is large into a file of /workspace"}
	}
	return nil
}

// maxDepth is how many lists and objects can be in each other: an interpreter has to read them.
const maxDepth = 100

// simple reports whether a value is JSON that every interpreter can read.
func simple(value json.RawMessage) bool {
	if !utf8.Valid(value) || !json.Valid(value) {
		return false
	}
	decoder, depth := json.NewDecoder(bytes.NewReader(value)), 0
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return true // the end
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth > maxDepth {
			return false
		}
	}
}
