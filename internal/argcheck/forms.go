package argcheck

import (
	"bytes"
	"encoding/json"
	"slices"

	"sallyport/internal/suggest"
)

// Rename returns the arguments with the parameters' own names in place of other forms of them: perPage for per_page. It
// changes nothing that could mean something else: a name that the schema may allow, a form of several parameters, and
// a parameter that is given, too.
func (s *Schema) Rename(args json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if s.open || json.Unmarshal(args, &object) != nil {
		return args
	}
	renamed := map[string]string{} // parameter -> name in args
	for name := range object {
		if slices.Contains(s.names, name) {
			continue
		}
		meant := suggest.Form(name, s.names)
		if _, twice := renamed[meant]; meant == "" || twice || object[meant] != nil {
			return args
		}
		renamed[meant] = name
	}
	if len(renamed) == 0 {
		return args
	}
	for meant, name := range renamed {
		object[meant] = object[name]
		delete(object, name)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(object) != nil { // its values are JSON
		return args
	}
	return bytes.TrimSpace(b.Bytes())
}
