// Package report makes tables, plots and a page of what bench/tokens has
// measured, from its lines of JSON alone: what they say is what is shown.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"sallyport/bench/tokencount"
)

// Format is in the first line, so that an older file is not misread.
const Format = "sallyport tokens 2"

// Window is the largest context that is taken to fit a model, in tokens.
const Window = 200_000

// Encoding is the vocabulary that the page is in; the text has all.
const Encoding = "o200k_base"

// Head is the first line: what was measured, with what and where.
type Head struct {
	Format string `json:"format"`
	Date   string `json:"date"`
	Took   string `json:"took"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Folder string `json:"folder"`
	// Note says what was missing, if something was.
	Note string `json:"note,omitempty"`
	// Versions and Digests are by program and npm package.
	Versions  map[string]string `json:"versions"`
	Digests   map[string]string `json:"digests"`
	Encodings []string          `json:"encodings"`
	// Catalogues are the SHA-256 of their files.
	Catalogues map[string]string `json:"catalogues"`
	// Servers are all that were shown, in the order in which they are added.
	Servers []Server `json:"servers"`
	Sizes   []Size   `json:"sizes"`
	// Plays is how often a task was played. There are more lines than that: a play by direct calls is counted at each size.
	Plays  int    `json:"plays"`
	Levels Levels `json:"levels"`
}

// Server is one that a client can be connected to.
type Server struct {
	Name    string `json:"name"`
	Package string `json:"package,omitempty"`
	Version string `json:"version,omitempty"`
	Tools   int    `json:"tools"`
	// Tokens are those of its definitions, by encoding.
	Tokens map[string]int `json:"tokens"`
	// Shown says that it is an answer to tools/list which someone wrote down, and runs nowhere.
	Shown bool `json:"shown,omitempty"`
}

// Size is how many servers a client is connected to.
type Size struct {
	Servers int      `json:"servers"`
	Names   []string `json:"names,omitempty"`
	Tools   int      `json:"tools"`
	// Definitions are the tokens of all definitions, by encoding.
	Definitions map[string]int `json:"definitions"`
	// Instructions are the tokens of what servers ask clients to show next to their tools, by encoding.
	Instructions map[string]int `json:"instructions_not_counted,omitempty"`
}

// Line is one task in one mode, at one size and in one encoding.
type Line struct {
	Task     string `json:"task"`
	Kind     string `json:"kind"`
	Mode     string `json:"mode"`
	Servers  int    `json:"servers"`
	Tools    int    `json:"tools"`
	Encoding string `json:"encoding"`
	tokencount.Counts
	// Tries are the turns that searched for tools.
	Tries int `json:"tries"`
	// Finds is how many tools a search showed, where the mode is a tool search.
	Finds   int    `json:"finds,omitempty"`
	Answer  string `json:"answer"`
	Correct bool   `json:"correct"`
	Error   string `json:"error,omitempty"`
	// Transcript is the start of the SHA-256 of all that was said, which two runs can be compared by.
	Transcript string `json:"transcript"`
}

// Valid reports whether a line may be compared with others: the answer is right, and a model could have had the context.
func (l *Line) Valid() bool { return l != nil && l.Correct && l.Peak <= Window }

// Results are what a file holds.
type Results struct {
	Head
	Lines []Line
	index map[key]*Line
}

type key struct {
	task, mode string
	servers    int
	encoding   string
}

// New puts lines that were measured together.
func New(head Head, lines []Line) *Results {
	r := &Results{Head: head, Lines: lines, index: map[key]*Line{}}
	for i := range lines {
		l := &lines[i]
		r.index[key{l.Task, l.Mode, l.Servers, l.Encoding}] = l
	}
	return r
}

// Read reads what [Results.Write] wrote.
func Read(in io.Reader) (*Results, error) {
	lines := json.NewDecoder(bufio.NewReader(in))
	var head Head
	if err := lines.Decode(&head); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	if head.Format != Format {
		return nil, fmt.Errorf("read results: format is %q, not %q", head.Format, Format)
	}
	var all []Line
	for {
		var l Line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			return New(head, all), nil
		} else if err != nil {
			return nil, fmt.Errorf("read results: line %d: %w", len(all)+2, err)
		}
		all = append(all, l)
	}
}

// Write writes a line for the head and one for each task, mode, size and encoding.
func (r *Results) Write(out io.Writer) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	errs := []error{lines.Encode(r.Head)}
	for _, l := range r.Lines {
		errs = append(errs, lines.Encode(l))
	}
	return errors.Join(errs...)
}

// of returns a line, nil where nothing was measured.
func (r *Results) of(task, mode string, servers int, encoding string) *Line {
	return r.index[key{task, mode, servers, encoding}]
}

// tasks are the names of the tasks of one size, in their order.
func (r *Results) tasks(servers int) (names []string) {
	for _, l := range r.Lines {
		if l.Servers == servers && !slices.Contains(names, l.Task) {
			names = append(names, l.Task)
		}
	}
	return names
}

func (r *Results) kind(task string) string {
	for _, l := range r.Lines {
		if l.Task == task {
			return l.Kind
		}
	}
	return ""
}

// kinds are in the order of the tasks.
func (r *Results) kinds() (names []string) {
	for _, l := range r.Lines {
		if !slices.Contains(names, l.Kind) {
			names = append(names, l.Kind)
		}
	}
	return names
}

// size returns the size with so many servers.
func (r *Results) size(servers int) Size {
	for _, s := range r.Sizes {
		if s.Servers == servers {
			return s
		}
	}
	return Size{}
}
