package gateway

import (
	"encoding/json"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Misfit is one way in which a value does not fit a schema.
type Misfit struct {
	// At leads to where, by the names of members and the numbers of items.
	At []string
	// Message says what is wrong there, without a place.
	Message string
}

// Misfits returns the first ways in which a JSON value does not fit a JSON Schema, in the words that a call with such arguments gets. There are
// none where it fits, or where one of the two is too large, too deep or too odd to be checked.
func Misfits(schema, value json.RawMessage) []Misfit {
	invalid := compileSchema(schema).validate(value)
	if invalid == nil {
		return nil
	}
	f := faults{printer: message.NewPrinter(language.English), said: map[string]bool{}}
	_ = json.Unmarshal(schema, &f.schema)
	_ = json.Unmarshal(value, &f.args)
	f.walk(invalid)
	all := make([]Misfit, len(f.found))
	for i, text := range f.found {
		all[i] = Misfit{At: f.at[i], Message: strings.TrimPrefix(text, place(f.at[i]))}
	}
	return all
}
