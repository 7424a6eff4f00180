package upstream

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

// headerPrefix is the prefix of the headers that repeat arguments of a call.
const headerPrefix = "Mcp-Param-"

// maxHeaderDepth is the deepest level of a property that is repeated in a header.
const maxHeaderDepth = 32

// headerSchema is the part of a schema that declares headers: a property with
// x-mcp-header is repeated in a header of that name, which proxies can read
// (MCP 2026-07-28).
type headerSchema struct {
	Type       json.RawMessage            `json:"type"`
	Header     json.RawMessage            `json:"x-mcp-header"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// headerBinding maps one property to a header.
type headerBinding struct {
	path   []string
	header string
}

// checkHeaders returns an error if a schema declares invalid headers.
func checkHeaders(schema json.RawMessage) error {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil // the common case
	}
	_, err := headerBindings(schema, nil, map[string]bool{})
	return err
}

// headerBindings returns the headers of the properties of a schema, at every depth.
func headerBindings(schema json.RawMessage, path []string, seen map[string]bool) ([]headerBinding, error) {
	var s headerSchema
	_ = json.Unmarshal(schema, &s) // other defects do not affect the headers
	var found []headerBinding
	if s.Header != nil && len(path) > 0 {
		name := text(s.Header)
		if err := checkHeader(name, text(s.Type), seen); err != nil {
			return nil, fmt.Errorf("property %q: %w", strings.Join(path, "."), err)
		}
		seen[strings.ToLower(name)] = true
		found = append(found, headerBinding{slices.Clone(path), name})
	}
	if len(path) == maxHeaderDepth {
		return found, nil
	}
	for property, sub := range s.Properties {
		deeper, err := headerBindings(sub, append(slices.Clone(path), property), seen)
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

// headersOf returns the headers that repeat arguments, nil for none.
func headersOf(schema, args json.RawMessage) map[string]string {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil
	}
	all, err := headerBindings(schema, nil, map[string]bool{})
	if err != nil {
		return nil
	}
	headers := map[string]string{}
	for _, b := range all {
		value := args
		for _, name := range b.path {
			value = member(value, name)
		}
		if s, ok := headerValue(value); ok {
			headers[headerPrefix+b.header] = s
		}
	}
	return headers
}

// headerValue encodes a string, a boolean or a safe integer for a header, in
// base64 if it is not a valid header value.
func headerValue(raw json.RawMessage) (string, bool) {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	switch v := value.(type) {
	case string:
		return headerText(v), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatInt(int64(v), 10), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return "", false
}

func headerText(s string) string {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if s == "" || s == strings.Trim(s, " ") && !strings.ContainsFunc(s, odd) && !strings.HasPrefix(s, "=?base64?") {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
