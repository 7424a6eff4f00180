package yamlstrict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A block is a line that others are indented like, or more than.
type block struct {
	line, indent int
	key          string
}

var keyLine = regexp.MustCompile(`^( *)([A-Za-z_][A-Za-z0-9_.-]*):(?: +(.*))?$`)

// misindented returns the message for a key whose indentation fits no line above, "" for other lines.
func (s *Source) misindented(line int) string {
	m := keyLine.FindStringSubmatch(strings.TrimRight(s.Line(line), " "))
	if m == nil {
		return ""
	}
	open, last := s.openBlocks(line)
	here := len(m[1])
	if last.indent < here && last.line > 0 {
		return fmt.Sprintf("%d spaces are before %.40q, and %d before %.40q on line %d, which has a value; indent both alike",
			here, m[2], last.indent, last.key, last.line)
	}
	if len(open) == 0 || slices.ContainsFunc(open, func(b block) bool { return b.indent == here }) {
		return ""
	}
	var choices []string
	for _, b := range open {
		choices = append(choices, fmt.Sprintf("%d as %.40q on line %d", b.indent, b.key, b.line))
	}
	return fmt.Sprintf("%d spaces are before %.40q; write %s", here, m[2], strings.Join(choices[max(0, len(choices)-2):], ", or "))
}

// openBlocks returns the lines with keys above a line, the outermost first, one for each indentation that is in
// force, and the line directly above if it has a value.
func (s *Source) openBlocks(line int) (open []block, last block) {
	limit := 1 << 30
	for n := line - 1; n > 0 && n > line-maxLines; n-- {
		m := keyLine.FindStringSubmatch(strings.TrimRight(s.Line(n), " "))
		if m == nil {
			continue
		}
		one := block{n, len(m[1]), m[2]}
		if limit == 1<<30 && m[3] != "" && !strings.HasPrefix(m[3], "#") {
			last = one
		}
		if one.indent < limit {
			limit, open = one.indent, append(open, one)
		}
	}
	slices.Reverse(open)
	return open, last
}
