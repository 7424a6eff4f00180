// Package paramheader makes the headers that repeat arguments of a call, so that proxies can read them: a property whose schema
// has x-mcp-header (MCP 2026-07-28).
package paramheader

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// prefix is the prefix of the headers that repeat arguments of a call.
const prefix = "Mcp-Param-"

// maxDepth is the deepest level of a property that is repeated in a header.
const maxDepth = 32

// schemaPart is the part of a schema that declares headers: a property with
// x-mcp-header is repeated in a header of that name, which proxies can read
// (MCP 2026-07-28).
type schemaPart struct {
	Type       json.RawMessage            `json:"type"`
	Header     json.RawMessage            `json:"x-mcp-header"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// binding maps one property to a header.
type binding struct {
	path   []string
	header string
}

// Check returns an error if a schema declares invalid headers.
func Check(schema json.RawMessage) error {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil // the common case
	}
	_, err := bindings(schema, nil, map[string]bool{})
	return err
}

// bindings returns the headers of the properties of a schema, at every depth.
func bindings(schema json.RawMessage, path []string, seen map[string]bool) ([]binding, error) {
	var s schemaPart
	_ = json.Unmarshal(schema, &s) // other defects do not affect the headers
	var found []binding
	if s.Header != nil && len(path) > 0 {
		name := text(s.Header)
		if err := checkHeader(name, text(s.Type), seen); err != nil {
			return nil, fmt.Errorf("property %q: %w", strings.Join(path, "."), err)
		}
		seen[strings.ToLower(name)] = true
		found = append(found, binding{slices.Clone(path), name})
	}
	if len(path) == maxDepth {
		return found, nil
	}
	for property, sub := range s.Properties {
		deeper, err := bindings(sub, append(slices.Clone(path), property), seen)
		if err != nil {
			return nil, err
		}
		found = append(found, deeper...)
	}
	return found, nil
}

func checkHeader(name, kind string, seen map[string]bool) error {
	switch {
	case name == "" || strings.ContainsFunc(name, notToken):
		return errors.New("x-mcp-header is not a valid header name")
	case !slices.Contains([]string{"string", "integer", "boolean"}, kind):
		return errors.New("x-mcp-header is for strings, integers and booleans only")
	case seen[strings.ToLower(name)]:
		return errors.New("x-mcp-header is duplicated")
	}
	return nil
}

// notToken reports whether r may not be in the name of a header.
func notToken(r rune) bool {
	return r > '~' || r <= ' ' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
}

// Of returns the headers that repeat arguments, nil for none.
func Of(schema, args json.RawMessage) map[string]string {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil
	}
	all, err := bindings(schema, nil, map[string]bool{})
	if err != nil {
		return nil
	}
	headers := map[string]string{}
	for _, b := range all {
		arg := args
		for _, name := range b.path {
			arg = member(arg, name)
		}
		if s, ok := value(arg); ok {
			headers[prefix+b.header] = s
		}
	}
	return headers
}

// value encodes a string, a boolean or a safe integer for a header, in
// base64 if it is not a valid header value.
func value(raw json.RawMessage) (string, bool) {
	var decoded any
	if len(raw) == 0 || json.Unmarshal(raw, &decoded) != nil {
		return "", false
	}
	switch v := decoded.(type) {
	case string:
		return Text(v), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatInt(int64(v), 10), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return "", false
}

// Text encodes a text for a header, in base64 if it is not a valid header value.
func Text(s string) string {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if s == "" || s == strings.Trim(s, " ") && !strings.ContainsFunc(s, odd) && !strings.HasPrefix(s, "=?base64?") {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// text returns a JSON string, "" for anything else.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// member returns one member of a JSON object, nil if there is none.
func member(raw json.RawMessage, name string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields[name]
}
