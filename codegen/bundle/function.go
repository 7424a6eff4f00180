package bundle

import (
	"encoding/json"
	"errors"
)

// Rewritten is a program that has become a function.
type Rewritten struct {
	Code string
	// Counts says how many literals each parameter stands in place of.
	Counts map[string]int
	Notes  []string
}

// Function makes an exported function of a program.
func Function(program, name string, params map[string]json.RawMessage, doc string) (Rewritten, error) {
	return Rewritten{}, errors.New("not yet")
}
