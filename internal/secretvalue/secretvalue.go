// Package secretvalue has types of values that may be secret: what prints, logs or marshals them shows no value.
package secretvalue

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// Map maps names to values that may be secret. When it is printed, logged or marshalled it shows only the names.
type Map map[string]string

// String returns the names only, as "[HOME TOKEN]".
func (m Map) String() string {
	return "[" + strings.Join(slices.Sorted(maps.Keys(m)), " ") + "]"
}

// Format writes String for every verb, so that no %v, %+v or %#v shows a value.
func (m Map) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, m.String()) }

// MarshalText returns String: JSON, YAML and slog's handlers get the names only.
func (m Map) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// LogValue returns String.
func (m Map) LogValue() slog.Value { return slog.StringValue(m.String()) }

// Secret is one value that may be secret. It is shown as "[secret]" when it is printed,
// logged or marshalled.
type Secret string

const hidden = "[secret]"

// Format writes "[secret]" for every verb, or nothing for an empty value.
func (s Secret) Format(f fmt.State, _ rune) {
	if s != "" {
		_, _ = io.WriteString(f, hidden)
	}
}

// MarshalText returns what Format writes.
func (s Secret) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(s)), nil }

// LogValue returns what Format writes.
func (s Secret) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }
