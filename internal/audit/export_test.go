package audit

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Dir is where a log is.
func (l *Log) Dir() string { return l.dir }

// Rewrite changes a line as somebody would who knows how hashes are made.
func Rewrite(line []byte, old, with string) []byte {
	r, err := decode(line)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal([]byte(strings.Replace(string(line), old, with, 1)), &r.Event); err != nil {
		panic(err)
	}
	made, _, err := encode(r.Event, r.Prev)
	if err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(made, []byte("\n"))
}

// Honest reports whether each line has the hash that it says, which whoever knows how hashes are made can bring about.
func Honest(data []byte) (int, bool) {
	n := 0
	for line := range bytes.Lines(data) {
		if _, err := decode(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return n, false
		}
		n++
	}
	return n, true
}
