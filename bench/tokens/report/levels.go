package report

import "strings"

// Levels is what a tool costs at each level of detail, on the mean of each server.
type Levels struct {
	Columns []string `json:"columns"`
	Rows    []Level  `json:"rows"`
}

// Level is a row of [Levels]: a server, or a measure over all tools.
type Level struct {
	Name   string `json:"name"`
	Tools  int    `json:"tools"`
	Counts []int  `json:"counts"`
}

// Text is a table with a row for each server, for people at a terminal.
func (l Levels) Text() string { return l.table(true).text() }

// table has a row for each server, or only those over all tools.
func (l Levels) table(servers bool) *table {
	t := &table{
		title: "What one tool costs to read",
		note: "Tokens of " + Encoding + ": as the server sends it, as a client shows it for direct calls (which is counted above), and as search_tools prints it as the only result, " +
			"at each level of detail.",
		head: append([]string{"mean of a server's tools", "tools"}, l.Columns...),
	}
	for _, level := range l.Rows {
		if !servers && !strings.HasPrefix(level.Name, "all") && !strings.HasPrefix(level.Name, "%") {
			continue
		}
		row := []string{level.Name, number(level.Tools)}
		for _, n := range level.Counts {
			row = append(row, number(n))
		}
		t.add(row...)
	}
	return t
}
