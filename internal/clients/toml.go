package clients

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// addTable appends sallyport's entry as a table.
func addTable(data []byte, section string, entry fields) []byte {
	eol := "\n"
	if at := bytes.IndexByte(data, '\n'); at > 0 && data[at-1] == '\r' {
		eol = "\r\n"
	}
	var b strings.Builder
	b.Write(data)
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		b.WriteString(eol)
	}
	if len(bytes.TrimSpace(data)) > 0 {
		b.WriteString(eol)
	}
	fmt.Fprintf(&b, "[%s.%s]%s", section, OurName, eol)
	for _, f := range entry {
		fmt.Fprintf(&b, "%s = %s%s", f.name, tomlValue(f.value), eol)
	}
	return []byte(b.String())
}

// tomlValue returns a value of an entry as TOML.
func tomlValue(value any) string {
	if list, ok := value.([]string); ok {
		quoted := make([]string, len(list))
		for i, text := range list {
			quoted[i] = tomlValue(text)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	text, err := toml.Marshal(map[string]any{"x": value})
	if err != nil {
		return quote(fmt.Sprint(value))
	}
	return strings.TrimSpace(strings.TrimPrefix(string(text), "x = "))
}

var tableHeader = regexp.MustCompile(`^[ \t]*\[\[?[ \t]*((?:[A-Za-z0-9_-]+|"[^"\r\n]*"|'[^'\r\n]*')(?:[ \t]*\.[ \t]*(?:[A-Za-z0-9_-]+|"[^"\r\n]*"|'[^'\r\n]*'))*)[ \t]*\]\]?[ \t]*(?:#.*)?\r?\n?$`)

var tableKey = regexp.MustCompile(`[A-Za-z0-9_-]+|"[^"\r\n]*"|'[^'\r\n]*'`)

// removeTable removes the table of a server and its subtables. Comments above the next
// table stay. The caller verifies the result.
func removeTable(data []byte, section, name string) ([]byte, error) {
	var out, held []byte // held are blank lines and comments, which may belong to the next table
	removing, removed := false, false
	for line := range bytes.Lines(data) {
		if m := tableHeader.FindSubmatch(line); m != nil {
			ours := isTable(string(m[1]), section, name)
			if !removing || !ours {
				out = appendHeld(out, held)
			}
			removing, removed, held = ours, removed || ours, nil
		}
		trimmed := bytes.TrimSpace(line)
		switch {
		case !removing:
			out = append(out, line...)
		case len(trimmed) == 0 || trimmed[0] == '#':
			held = append(held, line...)
		default:
			held = nil
		}
	}
	if !removed {
		return nil, fmt.Errorf("%w: there is no table [%s.%s]", ErrUnsafe, section, name)
	}
	return appendHeld(out, held), nil
}

// appendHeld appends held to out. It drops one of two adjacent blank lines.
func appendHeld(out, held []byte) []byte {
	first := bytes.IndexByte(held, '\n') + 1
	if first > 0 && len(bytes.TrimSpace(held[:first])) == 0 && (bytes.HasSuffix(out, []byte("\n\n")) || bytes.HasSuffix(out, []byte("\r\n\r\n"))) {
		held = held[first:]
	}
	return append(out, held...)
}

// isTable reports whether a header is that of section.name or of a subtable.
func isTable(header, section, name string) bool {
	keys := tableKey.FindAllString(header, 3)
	if len(keys) < 2 {
		return false
	}
	return strings.Trim(keys[0], `"'`) == section && strings.Trim(keys[1], `"'`) == name
}
