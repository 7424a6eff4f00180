package pii

import (
	"encoding/json"
	"strings"
)

// partKind is the format of a part of a text.
type partKind uint8

const (
	prose partKind = iota
	document
	table
)

// part is a piece of a text.
type part struct {
	sort       partKind
	delimiter  byte
	start, end int
}

// parts splits a text into JSON lines, tables with a header that classifies a column, and the rest.
func (d *Detector) parts(text string) (list []part) {
	if delimiter := tableDelimiter(text); delimiter != 0 && delimiter != '|' {
		return []part{{table, delimiter, 0, len(text)}}
	}
	if !strings.Contains(text, "|") && !strings.HasPrefix(text, "{") && !strings.Contains(text, "\n{") {
		return []part{{prose, 0, 0, len(text)}}
	}
	for at := 0; at < len(text); {
		p := partAt(text, at)
		at = p.end
		if n := len(list); n > 0 && p.sort == prose && list[n-1].sort == prose {
			list[n-1].end = p.end
		} else {
			list = append(list, p)
		}
	}
	return list
}

// partAt returns the part that begins with the line at i.
func partAt(text string, i int) part {
	end := lineEnd(text, i)
	line := strings.TrimSpace(text[i:end])
	switch {
	case strings.HasPrefix(line, "{") && json.Valid([]byte(line)):
		return part{document, 0, i, end}
	case !strings.HasPrefix(line, "|"):
		return part{prose, 0, i, end}
	case tableDelimiter(text[i:]) == '|':
		return part{table, '|', i, rowsEnd(text, end)}
	}
	return part{prose, 0, i, rowsEnd(text, end)} // not a header: no row of the table is
}

// rowsEnd returns the end of the lines at i that begin with "|".
func rowsEnd(text string, i int) int {
	for i < len(text) && text[i] == '|' {
		i = lineEnd(text, i)
	}
	return i
}

// lineEnd returns where the line at i ends, with its newline.
func lineEnd(text string, i int) int {
	if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// maxHead is the longest table header, in bytes.
const maxHead = 4096

// tableDelimiter returns the column separator of a text that begins with a table header, of which at least one column is
// classified and whose next line has as many columns; 0 for other texts.
func tableDelimiter(text string) byte {
	head, rest, ok := strings.Cut(text[:min(len(text), 2*maxHead)], "\n")
	next, _, _ := strings.Cut(rest, "\n")
	if !ok || next == "" || len(head) > maxHead || strings.ContainsAny(head, "{}[]@=") {
		return 0
	}
	for _, delimiter := range []byte(",;\t|") {
		n := strings.Count(head, string(rune(delimiter)))
		if n == 0 || strings.Count(next, string(rune(delimiter))) < n {
			continue
		}
		for name := range strings.SplitSeq(head, string(rune(delimiter))) {
			name = strings.Trim(name, " \"'\r")
			if len(strings.Fields(name)) > 4 {
				return 0 // a sentence
			}
			if said := senseOfKey(name); said&^(other|weak) != 0 {
				return delimiter
			}
		}
	}
	return 0
}

// findInTable is find for each cell, with the hint of its column header.
func (j *job) findInTable(text string, delimiter byte) (found []Finding) {
	var heads []hint
	column, row := 0, 0
	cell := func(start, end int) {
		start, end = trimCell(text, start, end)
		switch {
		case row == 0:
			heads = append(heads, hint{sense: senseOfKey(text[start:end])})
			return
		case start == end:
			return
		}
		var h hint
		if column < len(heads) {
			h = heads[column]
		}
		for _, f := range j.find(text[start:end], h) {
			found = append(found, Finding{Kind: f.Kind, Start: start + f.Start, End: start + f.End})
		}
	}
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"' && delimiter != '|':
			quoted = !quoted
		case quoted:
		case b == delimiter:
			cell(start, i)
			start, column = i+1, column+1
		case b == '\n':
			cell(start, i)
			start, column, row = i+1, 0, row+1
		}
	}
	if start < len(text) {
		cell(start, len(text))
	}
	return found
}

// trimCell trims white space and quotes around a cell.
func trimCell(text string, start, end int) (int, int) {
	for start < end && (text[start] == ' ' || text[start] == '\r') {
		start++
	}
	for end > start && (text[end-1] == ' ' || text[end-1] == '\r') {
		end--
	}
	if end-start >= 2 && text[start] == '"' && text[end-1] == '"' {
		start, end = start+1, end-1
	}
	return start, end
}
