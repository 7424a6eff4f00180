package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

const (
	// maxErrors is how many errors are spelled out, maxFaults how many are looked for.
	maxErrors = 10
	maxFaults = 50
	// maxSearch is the size of file in which the place of a syntax error is worth
	// searching for: some 17 more parses, a tenth of a second in all.
	maxSearch = 64 << 10
	// maxLines is how far below the start of a text a reference in it is searched for.
	maxLines = 1000
)

// source is the text of a file and finds its way around in it.
type source struct {
	path string
	data []byte
	// starts holds the offset of each line.
	starts []int
}

// fault is an error with a place but no looks yet.
type fault struct {
	line, column int
	message      string
}

// newSource splits data at what YAML counts as the end of a line.
func newSource(path string, data []byte) *source {
	s := &source{path: path, data: data, starts: []int{0}}
	for i, r := range string(data) {
		switch r {
		case '\r':
			if i+1 < len(data) && data[i+1] == '\n' {
				continue // they end the line together
			}
			fallthrough
		case '\n', '\u0085', '\u2028', '\u2029':
			s.starts = append(s.starts, i+utf8.RuneLen(r))
		}
	}
	return s
}

// line returns line n, counted from 1, without its end; "" if there is none.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.starts) {
		return ""
	}
	rest := s.data[s.starts[n-1]:]
	if n < len(s.starts) {
		rest = rest[:s.starts[n]-s.starts[n-1]]
	}
	return strings.TrimRight(string(rest), "\r\n\u0085\u2028\u2029")
}

// place returns the line and column of an offset.
func (s *source) place(offset int) (line, column int) {
	line = sort.SearchInts(s.starts, offset+1)
	return line, utf8.RuneCount(s.data[s.starts[line-1]:offset]) + 1
}

func (s *source) faultAt(offset int, format string, args ...any) error {
	line, column := s.place(offset)
	return s.error(fault{line, column, fmt.Sprintf(format, args...)})
}

func (s *source) error(f fault) *Error {
	e := &Error{File: s.path, Line: f.line, Column: f.column, Message: f.message}
	if f.line > 0 {
		e.Snippet = snippet(f.line, s.line(f.line), f.column)
	}
	return e
}

// errors joins the faults in the order of the file, nil if there are none.
func (s *source) errors(faults []fault) error {
	slices.SortStableFunc(faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var errs []error
	for _, f := range faults[:min(len(faults), maxErrors)] {
		errs = append(errs, s.error(f))
	}
	if len(faults) >= maxFaults {
		errs = append(errs, &Error{File: s.path, Message: "has very many more errors"})
	} else if more := len(faults) - maxErrors; more > 0 {
		errs = append(errs, &Error{File: s.path, Message: fmt.Sprintf("has %d more", more)})
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// find returns where a reference in the text of n stands: text is how it starts,
// and before it come nth others, from 0. What is made of escapes cannot be found
// as text; the place is that of n then.
func (s *source) find(n *yaml.Node, nth int, text string) (line, column int) {
	for line := n.Line; line < n.Line+maxLines; line++ {
		here, from := s.line(line), 0
		if line == n.Line {
			from = offsetOf(here, n.Column)
		}
		if count := strings.Count(here[from:], "${"); nth >= count {
			nth -= count
			continue
		}
		at := from + strings.Index(here[from:], "${")
		for range nth {
			at += 2 + strings.Index(here[at+2:], "${")
		}
		if strings.HasPrefix(here[at:], text) {
			return line, utf8.RuneCountInString(here[:at]) + 1
		}
		break
	}
	return n.Line, n.Column
}

// offsetOf returns where in a line a column begins.
func offsetOf(line string, column int) int {
	for at := range line {
		if column--; column == 0 {
			return at
		}
	}
	return len(line)
}

// document returns the root of the only document in the file.
func (s *source) document() (*yaml.Node, error) {
	if at := invalidUTF8(s.data); at >= 0 {
		return nil, s.faultAt(at, "is not UTF-8 text")
	}
	docs, err := readAll(s.data)
	switch {
	case err != nil:
		return nil, s.syntaxError(err)
	case len(docs) == 0 || len(docs) == 1 && docs[0].Content[0].Tag == "!!null":
		return nil, &Error{File: s.path, Message: `is empty; it needs at least the key "upstreams"`}
	case len(docs) > 1:
		line := docs[1].Line
		return nil, s.error(fault{line, docs[1].Column, "a second document starts here; the file must be one"})
	}
	return docs[0].Content[0], nil
}

// readAll reads up to two documents, for a second is one too many. Reading into
// nodes follows no alias, so that no bomb of them goes off.
func readAll(data []byte) (docs []*yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for len(docs) < 2 {
		doc := new(yaml.Node)
		switch err := dec.Decode(doc); {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			return docs, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
