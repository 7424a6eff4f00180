package yamlstrict

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// MaxFile is how large a file may be, in bytes: more than anyone writes by hand, and little enough to read in a moment.
const MaxFile = 1 << 20

const (
	// MaxErrors is how many errors are spelled out.
	MaxErrors = 10
	// MaxFaults is how many are looked for.
	MaxFaults = 50
	// maxSearch is the size of file in which the place of a syntax error is worth
	// searching for: some 17 more parses, a tenth of a second in all.
	maxSearch = 64 << 10
	// maxLines is how far below the start of a text a place in it is searched for.
	maxLines = 1000
)

// Source is the text of a file, and finds its way around in it. It never changes.
type Source struct {
	// Path is the file as it was given, for messages.
	Path string
	data []byte
	// starts holds the offset of each line.
	starts []int
}

// Fault is an error with a place but no looks yet. Line and Column count from 1, columns in characters; 0 is no place.
type Fault struct {
	Line, Column int
	Message      string
}

// NewSource takes a text, without the mark that some editors put in front of it; path is for messages. Lines end at
// what YAML counts as the end of one.
func NewSource(path string, data []byte) *Source {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	s := &Source{Path: path, data: data, starts: []int{0}}
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

// Lines is how many lines there are.
func (s *Source) Lines() int { return len(s.starts) }

// Line returns line n, counted from 1, without its end; "" if there is none.
func (s *Source) Line(n int) string {
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
func (s *Source) place(offset int) (line, column int) {
	line = sort.SearchInts(s.starts, offset+1)
	return line, utf8.RuneCount(s.data[s.starts[line-1]:offset]) + 1
}

func (s *Source) faultAt(offset int, format string, args ...any) error {
	line, column := s.place(offset)
	return s.Error(Fault{line, column, fmt.Sprintf(format, args...)})
}

// Error gives a fault its looks.
func (s *Source) Error(f Fault) *Error {
	e := &Error{File: s.Path, Line: f.Line, Column: f.Column, Message: f.Message}
	if f.Line > 0 {
		e.Snippet = snippet(f.Line, s.Line(f.Line), f.Column)
	}
	return e
}

// Errors joins faults in the order of the file, nil if there are none; at most ten are spelled out. One comes as an
// *Error, several joined.
func (s *Source) Errors(faults []Fault) error {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var errs []error
	for _, f := range faults[:min(len(faults), MaxErrors)] {
		errs = append(errs, s.Error(f))
	}
	if len(faults) >= MaxFaults {
		errs = append(errs, &Error{File: s.Path, Message: "has very many more errors"})
	} else if more := len(faults) - MaxErrors; more > 0 {
		errs = append(errs, &Error{File: s.Path, Message: fmt.Sprintf("has %d more", more)})
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// OffsetOf returns where in a line a column begins.
func OffsetOf(line string, column int) int {
	for at := range line {
		if column--; column == 0 {
			return at
		}
	}
	return len(line)
}

// Document returns the root of the only YAML document in the file; empty is what to say of a file with nothing in it.
func (s *Source) Document(empty string) (*yaml.Node, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	docs, err := readAll(s.data)
	switch {
	case err != nil:
		return nil, s.syntaxError(err)
	case len(docs) == 0 || len(docs) == 1 && docs[0].Content[0].Tag == "!!null":
		return nil, &Error{File: s.Path, Message: empty}
	case len(docs) > 1:
		line := docs[1].Line
		return nil, s.Error(Fault{line, docs[1].Column, "a second document starts here; the file must be one"})
	}
	return docs[0].Content[0], nil
}

// readable refuses what is no text, or too long.
func (s *Source) readable() error {
	if len(s.data) > MaxFile {
		return &Error{File: s.Path, Message: "is larger than 1 MiB"}
	}
	if at := invalidUTF8(s.data); at >= 0 {
		return s.faultAt(at, "is not UTF-8 text")
	}
	return nil
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

// ReadFile reads a file of at most MaxFile bytes. Of a larger one it returns one byte more, which [Source.Document] refuses.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}
