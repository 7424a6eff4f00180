// Package jsonedit changes members of a JSON object and leaves the rest as it was written, which no decoder does.
package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Edit replaces members of a JSON object, or adds them at its end; everything
// else stays byte for byte. A duplicate member is replaced each time.
func Edit(raw json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var out bytes.Buffer
	copied, seen, empty := 0, map[string]bool{}, true
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		empty = false
		name, _ := key.(string)
		if with, ok := members[name]; ok {
			end := int(dec.InputOffset())
			out.Write(raw[copied : end-len(value)])
			out.Write(with)
			copied, seen[name] = end, true
		}
	}
	if _, err := dec.Token(); err != nil { // the last brace
		return nil, err
	}
	end := int(dec.InputOffset()) - 1 // before the last brace
	out.Write(raw[copied:end])
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !seen[name] {
			if !empty {
				out.WriteByte(',')
			}
			empty = false
			out.Write(quote(name))
			out.WriteByte(':')
			out.Write(members[name])
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// quote encodes a string, which cannot fail.
func quote(s string) []byte {
	quoted, _ := json.Marshal(s)
	return quoted
}
