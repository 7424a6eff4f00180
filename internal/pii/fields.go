package pii

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Fields are paths to values in JSON. Nil is empty.
type Fields struct{ paths [][]step }

// step is one part of a path: the name of a member, an index, or any of either.
type step struct {
	name string
	at   int // -1: not an index
	any  bool
	deep bool // at any depth
}

// maxSteps bounds the length of a path.
const maxSteps = 32

// ParseFields reads paths such as $.contact.name, $.items[*].owner, $['full name'], $..iban.
func ParseFields(paths []string) (*Fields, error) {
	f := &Fields{}
	for _, text := range paths {
		steps, err := parsePath(text)
		if err != nil {
			return nil, fmt.Errorf("path %.80q: %w", text, err)
		}
		f.paths = append(f.paths, steps)
	}
	return f, nil
}

func parsePath(text string) ([]step, error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, errors.New(`it must begin with "$"`)
	}
	var steps []step
	for rest != "" {
		s := step{at: -1}
		var err error
		switch {
		case strings.HasPrefix(rest, "["):
			rest, err = s.bracket(rest[1:])
		case strings.HasPrefix(rest, ".."):
			s.deep = true
			rest, err = s.parseName(rest[2:])
		case strings.HasPrefix(rest, "."):
			rest, err = s.parseName(rest[1:])
		default:
			err = fmt.Errorf(`"." or "[" must follow, not %.20q`, rest)
		}
		if err != nil {
			return nil, err
		}
		if steps = append(steps, s); len(steps) > maxSteps {
			return nil, fmt.Errorf("it has more than %d parts", maxSteps)
		}
	}
	if len(steps) == 0 {
		return nil, errors.New("it names no member")
	}
	return steps, nil
}

func (s *step) parseName(rest string) (string, error) {
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	s.name = rest[:end]
	if s.any = s.name == "*"; s.name == "" {
		return "", errors.New("a name is missing")
	}
	return rest[end:], nil
}

func (s *step) bracket(rest string) (string, error) {
	inner, after, ok := strings.Cut(rest, "]")
	if quoted := rest != "" && (rest[0] == '\'' || rest[0] == '"'); quoted {
		inner, after, ok = strings.Cut(rest[1:], rest[:1]+"]")
		s.name = inner
		if !ok || inner == "" {
			return "", errors.New(`a "[" is not closed`)
		}
		return after, nil
	}
	if !ok {
		return "", errors.New(`a "[" is not closed`)
	}
	if s.any = inner == "*"; s.any {
		return after, nil
	}
	n, err := strconv.Atoi(inner)
	if err != nil || n < 0 {
		return "", fmt.Errorf(`%.20q is not an index; use a number, "*", or a name in quotes`, inner)
	}
	s.at = n
	return after, nil
}

// cursor is the state of following the paths.
type cursor struct {
	list *Fields
	// open are the remaining steps of the paths that lead here; done means that one ends here or above.
	open [][]step
	done bool
}

// Under returns the same paths below a member of the root.
func (f *Fields) Under(member string) *Fields {
	if f == nil {
		return nil
	}
	under := &Fields{}
	for _, p := range f.paths {
		under.paths = append(under.paths, append([]step{{name: member, at: -1}}, p...))
	}
	return under
}

func (f *Fields) start() cursor {
	if f == nil {
		return cursor{}
	}
	return cursor{list: f, open: f.paths}
}

// member continues to the member of an object.
func (c cursor) member(name string) cursor {
	return c.next(func(s step) bool { return s.any || s.at < 0 && s.name == name })
}

// index continues to an element of an array.
func (c cursor) index(i int) cursor {
	return c.next(func(s step) bool { return s.any || s.at == i })
}

func (c cursor) next(fits func(step) bool) cursor {
	if c.list == nil || c.done {
		return c
	}
	now := cursor{list: c.list}
	for _, p := range c.open {
		if fits(p[0]) {
			if len(p) == 1 {
				now.done = true
				return now
			}
			now.add(p[1:])
		}
		if p[0].deep {
			now.add(p)
		}
	}
	return now
}

// add adds a path unless it is there: data may be arbitrarily deep.
func (c *cursor) add(path []step) {
	for _, p := range c.open {
		if &p[0] == &path[0] {
			return
		}
	}
	c.open = append(c.open, path)
}
