package misuse

import (
	"bytes"
	"encoding/json"
	"slices"

	"sallyport/internal/tool"
)

// Kinds of values.
const (
	isNull = 1 << iota
	isBool
	isNumber
	isText
	isList
	isObject
)

// shape is what all values at one place of the results of a tool have in common.
type shape struct {
	kinds   int
	members map[string]*shape
	elem    *shape
	// numeric is set if every text is a number; sample is the first text.
	numeric bool
	sample  string
	// words are the names of all members that the tool declares, at any depth; nil if it declares none.
	words map[string]bool
	// at is the place as a program would write it, without the calls' arguments.
	at string
}

const (
	maxNodes = 20_000 // values of a result that are looked at
	maxDepth = 8
	maxPath  = 80
)

// shapeOf adds a result to a shape. It reports whether all of the result was looked at.
func (s *shape) add(data json.RawMessage) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return false
	}
	left := maxNodes
	return s.merge(value, maxDepth, &left)
}

func (s *shape) merge(value any, depth int, left *int) (whole bool) {
	if *left--; *left < 0 || depth < 0 {
		return false
	}
	whole = true
	switch v := value.(type) {
	case nil:
		s.kinds |= isNull
	case bool:
		s.kinds |= isBool
	case json.Number:
		s.kinds |= isNumber
	case string:
		s.mergeText(v)
	case []any:
		s.kinds |= isList
		for _, item := range v {
			if s.elem == nil {
				s.elem = &shape{at: s.at + "[]", words: s.words}
			}
			whole = s.elem.merge(item, depth-1, left) && whole
		}
	case map[string]any:
		s.kinds |= isObject
		for key, inner := range v {
			whole = s.member(key).merge(inner, depth-1, left) && whole
		}
	}
	return whole
}

func (s *shape) mergeText(v string) {
	if s.kinds&isText == 0 {
		s.sample, s.numeric = v, true
	}
	s.kinds |= isText
	s.numeric = s.numeric && tool.IsNumber(v)
}

// member returns the shape of a member, which it creates.
func (s *shape) member(key string) *shape {
	if s.members == nil {
		s.members = map[string]*shape{}
	}
	if s.members[key] == nil {
		s.members[key] = &shape{at: s.at + "." + key, words: s.words}
	}
	return s.members[key]
}

// only reports whether all values are of a kind, or null.
func (s *shape) only(kind int) bool { return s != nil && s.kinds&^isNull == kind }

// keys returns the names of the members, sorted.
func (s *shape) keys() (list []string) {
	for key := range s.members {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// declared returns the names of all properties in a JSON schema; nil if there are none.
func declared(schema json.RawMessage) map[string]bool {
	var value any
	if len(schema) == 0 || json.Unmarshal(schema, &value) != nil {
		return nil
	}
	words, left := map[string]bool{}, maxNodes
	collectProperties(value, words, &left)
	if len(words) == 0 {
		return nil
	}
	return words
}

func collectProperties(value any, words map[string]bool, left *int) {
	if *left--; *left < 0 {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			collectProperties(item, words, left)
		}
	case map[string]any:
		if properties, ok := v["properties"].(map[string]any); ok {
			for key := range properties {
				words[key] = true
			}
		}
		for _, inner := range v {
			collectProperties(inner, words, left)
		}
	}
}
