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

// MaxFile bounds a file, in bytes: larger than any handwritten file, and fast to read.
const MaxFile = 1 << 20

const (
	// MaxErrors bounds the errors that are reported.
	MaxErrors = 10
	// MaxFaults bounds the faults that are collected.
	MaxFaults = 50
	// maxSearch bounds the size of a file in which the position of a syntax error is searched for: that takes some 17
	// more parses, a tenth of a second in all.
	maxSearch = 64 << 10
	// maxLines bounds the lines of a text in which a position is searched for.
	maxLines = 1000
)

// Source is the text of a file with its line positions. It must not change once it is used.
type Source struct {
	// Path is the file as it was given, for messages.
	Path string
	// All reports all errors that were collected; the default is to report the first MaxErrors.
	All  bool
	data []byte
	// starts holds the offset of each line.
	starts []int
}

// Fault is an error with a position, not yet formatted. Line and Column count from 1, columns in characters; 0 means
// no position.
type Fault struct {
	Line, Column int
	Message      string
}

// NewSource returns a Source for a text, without its byte order mark; path is for messages. Lines end as in YAML.
func NewSource(path string, data []byte) *Source {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	s := &Source{Path: path, data: data, starts: []int{0}}
	for i, r := range string(data) {
		switch r {
		case '\r':
			if i+1 < len(data) && data[i+1] == '\n' {
				continue // "\r\n" ends the line
			}
			fallthrough
		case '\n', '\u0085', '\u2028', '\u2029':
			s.starts = append(s.starts, i+utf8.RuneLen(r))
		}
	}
	return s
}

// Lines returns the number of lines.
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

// Error formats a fault.
func (s *Source) Error(f Fault) *Error {
	e := &Error{File: s.Path, Line: f.Line, Column: f.Column, Message: f.Message}
	if f.Line > 0 {
		e.Snippet = snippet(f.Line, s.Line(f.Line), f.Column)
	}
	return e
}

// Errors joins faults in file order, nil if there are none; at most ten are reported. A single one is an *Error,
// several are joined.
func (s *Source) Errors(faults []Fault) error {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var errs []error
	reported := min(len(faults), MaxErrors)
	if s.All {
		reported = len(faults)
	}
	for _, f := range faults[:reported] {
		errs = append(errs, s.Error(f))
	}
	if len(faults) >= MaxFaults {
		errs = append(errs, &Error{File: s.Path, Message: "has very many more errors"})
	} else if more := len(faults) - reported; more > 0 {
		errs = append(errs, &Error{File: s.Path, Message: fmt.Sprintf("has %d more", more)})
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// OffsetOf returns the offset of a column in a line.
func OffsetOf(line string, column int) int {
	for at := range line {
		if column--; column == 0 {
			return at
		}
	}
	return len(line)
}

// Document returns the root of the only YAML document in the file; empty is the message for an empty file.
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

// readable rejects a file that is not text, or too long.
func (s *Source) readable() error {
	if len(s.data) > MaxFile {
		return &Error{File: s.Path, Message: "is larger than 1 MiB"}
	}
	if at := invalidUTF8(s.data); at >= 0 {
		return s.faultAt(at, "is not UTF-8 text")
	}
	return nil
}

// readAll reads up to two documents, to detect a second one. Decoding into nodes does not expand aliases, so alias
// bombs have no effect.
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

// ReadFile reads a file of at most MaxFile bytes. For a larger one it returns one byte more, which [Source.Document]
// rejects.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}
