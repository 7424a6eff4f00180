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

// variableName matches valid names of variables in both languages. Names that begin
// with "__" are reserved.
var variableName = regexp.MustCompile(`^(_?[A-Za-z][A-Za-z0-9_]{0,63}|_)$`)

// checkInputs rejects invalid variables and limits of a program.
func (ex *Executor) checkInputs(p execution.Program) error {
	if most := int64(ex.opts.Settings.Load().Sandbox.Memory); p.Memory > most {
		return toolcall.Invalid(fmt.Sprintf("a program can have at most %v of memory", config.Size(most)), "leave it out")
	}
	size := len(p.Code)
	for name, value := range p.Variables {
		if !variableName.MatchString(name) {
			return toolcall.Invalid(fmt.Sprintf("invalid variable name %q", sanitize.Line(name, 80)), "use a letter, then letters, digits and _")
		}
		if !isPortableJSON(value) {
			return toolcall.Invalid("variable "+name+" is not a valid JSON value", fmt.Sprintf("at most %d levels of lists and objects", maxDepth))
		}
		size += len(name) + len(value)
	}
	if size > execution.MaxCode {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("code and variables must be at most %d bytes together, not %d", execution.MaxCode, size), Hint: "write what is large into a file of /workspace"}
	}
	return nil
}

// maxDepth bounds the nesting of lists and objects: an interpreter has to parse them.
const maxDepth = 100

// isPortableJSON reports whether a value is JSON that every interpreter can read.
func isPortableJSON(value json.RawMessage) bool {
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
