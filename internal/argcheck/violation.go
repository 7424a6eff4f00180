package argcheck

import (
	"encoding/json"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Violation is one violation of a schema by a value.
type Violation struct {
	// At is the path of the value: names of members and indexes of items.
	At []string
	// Message says what is wrong, without the path.
	Message string
}

// Explain returns the first violations of a JSON Schema by a JSON value, in the words of [Schema.Check]. It returns nil if the
// value matches, or if either is too large or too deep to be checked.
func Explain(schema, value json.RawMessage) []Violation {
	invalid, _ := Compile(schema).validate(value)
	if invalid == nil {
		return nil
	}
	f := explainer{printer: message.NewPrinter(language.English), covered: map[string]bool{}}
	_ = json.Unmarshal(schema, &f.schema)
	_ = json.Unmarshal(value, &f.args)
	f.walk(invalid)
	all := make([]Violation, len(f.found))
	for i, text := range f.found {
		all[i] = Violation{At: f.at[i], Message: strings.TrimPrefix(text, pathPrefix(f.at[i]))}
	}
	return all
}
