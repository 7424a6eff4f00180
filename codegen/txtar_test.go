package codegen_test

import (
	"regexp"
	"strings"
)

// archive is a txtar file: a comment, then files after "-- NAME --" lines.
type archive struct {
	comment string
	files   []member
}

type member struct{ name, data string }

var marker = regexp.MustCompile(`(?m)^-- (\S+) --\n`)

func parseArchive(text string) archive {
	marks := marker.FindAllStringSubmatchIndex(text, -1)
	if len(marks) == 0 {
		return archive{comment: text}
	}
	a := archive{comment: text[:marks[0][0]]}
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		a.files = append(a.files, member{text[m[2]:m[3]], text[m[1]:end]})
	}
	return a
}

func (a archive) String() string {
	var b strings.Builder
	b.WriteString(a.comment)
	for _, f := range a.files {
		b.WriteString("-- " + f.name + " --\n" + f.data)
	}
	return b.String()
}
