package topcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
	"sallyport/internal/sanitize"
)

// viewport is the size, in characters, and the colour support of the output.
type viewport struct {
	width, height int
	colours       bool
}

// defaultViewport is the size for output that is not a terminal.
var defaultViewport = viewport{width: 100, height: 40}

// style is a text style: an SGR parameter, "" for plain.
type style string

const (
	noStyle  style = ""
	bold     style = "1"
	dim      style = "2"
	reversed style = "7"
	red      style = "31"
	green    style = "32"
	yellow   style = "33"
	cyan     style = "36"
)

// styleOf returns the style of a state.
func styleOf(state string) style {
	switch state {
	case "running", "ready", "ok":
		return green
	case "waiting", "connecting", "held":
		return yellow
	case "queued", "idle":
		return cyan
	case "failed", "parked", "timeout", "quarantined":
		return red
	}
	return noStyle
}

// column is a column of a table. Cells are truncated to most characters; right aligns them right.
type column struct {
	title    string
	right    bool
	maxWidth int
}

// cell is one cell of a table.
type cell struct {
	text  string
	style style
}

// frame returns the lines of a view, at most as many as the paper's height.
func (s *screen) frame(v topView, p viewport) []string {
	lines := s.header(v, p)
	room := max(0, p.height-len(lines)-1)
	switch {
	case s.help:
		lines = append(lines, helpLines...)
	case len(v.Gateways) == 0:
		lines = append(lines, "", s.emptyText)
	default:
		lines = append(lines, s.tables(v, p, room)...)
	}
	if len(lines) >= p.height {
		lines = lines[:max(0, p.height-1)]
	}
	for i, line := range lines {
		lines[i] = truncate(line, p.width)
	}
	return lines
}

// helpLines are shown with the key ?.
var helpLines = []string{
	"",
	"  up, down, k, j   choose a program        t  longest first",
	"  c                cancel the chosen one   n  most calls first",
	"  u                upstreams only          o  most printed first",
	"  space            look now                w  by who runs it",
	"  ?                this help               q  end",
	"",
	"  STATE is queued (others run), running, or waiting (for a person: sallyport approvals).",
	"  Tokens saved: tokens of results that programs read, minus those of their answers.",
}

// header returns the lines of the summary above the tables.
func (s *screen) header(v topView, p viewport) []string {
	title := p.paint("sallyport top", bold)
	if n := len(v.Gateways); n > 0 {
		longest, versions := int64(0), []string{}
		for _, g := range v.Gateways {
			longest = max(longest, g.UptimeMS)
			versions = append(versions, sanitize.Line(g.Version, 40))
		}
		slices.Sort(versions)
		title += fmt.Sprintf("  %s, %s, up %s", cli.Count(n, "gateway"), strings.Join(slices.Compact(versions), " and "), formatDuration(time.Duration(longest)*time.Millisecond))
	}
	if v.Silent > 0 {
		title += p.paint(fmt.Sprintf("  %s without an answer", cli.Count(v.Silent, "gateway")), red)
	}
	title += "  " + v.At.Local().Format(time.TimeOnly)
	if len(v.Gateways) == 0 {
		return []string{title}
	}
	states := map[string]int{}
	for _, e := range v.Executions {
		states[e.State]++
	}
	programs := fmt.Sprintf("programs   %d running, %d queued", states["running"], states["queued"])
	if states["waiting"] > 0 {
		programs += p.paint(fmt.Sprintf(", %d waiting for a person", states["waiting"]), yellow)
	}
	today := fmt.Sprintf("today      %s, %d failed, %s; tokens: %s answered, %s saved", cli.Count(v.Today.Executions, "program"), v.Today.Failed,
		cli.Count(v.Today.Calls, "call"), formatCount(v.Today.Answered), formatCount(v.Today.SavedTokens()))
	approvals := "approvals  none waiting"
	if v.Approvals > 0 {
		approvals = p.paint(fmt.Sprintf("approvals  %d waiting: sallyport approvals", v.Approvals), yellow)
	}
	return []string{title, programs, today, approvals + "  " + upstreamsText(v.Upstreams)}
}

func upstreamsText(list []topUpstream) string {
	states := map[string]int{}
	for _, up := range list {
		states[up.Status]++
	}
	var parts []string
	for state, n := range states {
		parts = append(parts, fmt.Sprintf("%d %s", n, sanitize.Line(state, 30)))
	}
	slices.Sort(parts)
	return "  upstreams  " + cmp.Or(strings.Join(parts, ", "), "none")
}

// tables returns the tables of programs and upstreams, in at most room lines.
func (s *screen) tables(v topView, p viewport, room int) []string {
	ups := min(len(v.Upstreams), max(3, room/3-2))
	if s.upstreams {
		return append([]string{""}, s.upstreamTable(v, p, room-2)...)
	}
	programs := s.programTable(v, p, room-ups-4)
	return append(append([]string{""}, programs...), append([]string{""}, s.upstreamTable(v, p, room-len(programs)-3)...)...)
}

func (s *screen) programTable(v topView, p viewport, most int) []string {
	columns := []column{{"", false, 1}, {"PROGRAM", false, 20}, {"STATE", false, 10}, {"TIME", true, 8}, {"WHO", false, 24}, {"LANGUAGE", false, 10}, {"CALLS", true, 6}, {"PRINTED", true, 8}, {"CALLING", false, 60}}
	live := s.sortedExecutions(v.Executions)
	rows, marked := [][]cell{}, -1
	first := max(0, min(slices.IndexFunc(live, func(e httpapi.LiveExecution) bool { return e.ID == s.selected })-most+1, len(live)-1))
	for _, e := range live[min(first, len(live)):] {
		mark := ""
		if e.ID == s.selected {
			mark, marked = ">", len(rows)
		}
		rows = append(rows, []cell{{mark, bold}, {e.ID, noStyle}, {e.State, styleOf(e.State)}, {formatDuration(v.At.Sub(e.Started)), noStyle}, {cmp.Or(e.Principal, "-"), noStyle}, {e.Language, noStyle},
			{fmt.Sprint(e.Made), noStyle}, {formatCount(e.Bytes), noStyle}, {currentCall(e, v.At), noStyle}})
	}
	for _, e := range v.Ended {
		took := time.Duration(e.DurationMS) * time.Millisecond
		rows = append(rows, []cell{{"", noStyle}, {e.ID, dim}, {e.Status, styleOf(e.Status)}, {formatDuration(took), dim}, {cmp.Or(e.Principal, "-"), dim}, {e.Language, dim}, {fmt.Sprint(e.Calls), dim}, {"", dim}, {"ended " + cli.Age(e.Started.Add(took)) + " ago", dim}})
	}
	if len(rows) == 0 {
		return []string{"no program has run yet"}
	}
	return p.table(columns, rows[:min(len(rows), max(1, most))], marked)
}

// currentCall describes the pending calls of a program.
func currentCall(e httpapi.LiveExecution, now time.Time) string {
	var open []string
	var since time.Time
	for _, c := range e.Calls {
		if c.Outcome == "" {
			open = append(open, c.Tool.String())
			if since.IsZero() {
				since = c.Begun
			}
		}
	}
	switch len(open) {
	case 0:
		return "-"
	case 1:
		return open[0] + " " + formatDuration(now.Sub(since))
	}
	return fmt.Sprintf("%s and %d more", open[0], len(open)-1)
}

func (s *screen) upstreamTable(v topView, p viewport, most int) []string {
	list := slices.Clone(v.Upstreams)
	slices.SortStableFunc(list, func(x, y topUpstream) int { return cmp.Compare(urgency(y), urgency(x)) })
	if len(list) == 0 {
		return nil
	}
	var rows [][]cell
	for _, up := range list {
		reason := up.Reason
		if up.Held > 0 {
			reason = strings.TrimPrefix(reason+fmt.Sprintf("; %d held back: sallyport upstreams review", up.Held), "; ")
		}
		rows = append(rows, []cell{{"", noStyle}, {up.ID, noStyle}, {up.Status, styleOf(up.Status)}, {fmt.Sprint(up.Tools), noStyle}, {reason, noStyle}})
	}
	more := len(rows) - max(1, most)
	if more > 0 {
		rows = rows[:len(rows)-more-1]
	}
	lines := p.table([]column{{"", false, 1}, {"UPSTREAM", false, 30}, {"STATE", false, 24}, {"TOOLS", true, 6}, {"WHY", false, 200}}, rows, -1)
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more (u shows them)", more+1))
	}
	return lines
}

// urgency returns how much an upstream needs attention, for sorting.
func urgency(up topUpstream) int {
	switch {
	case up.Reason != "":
		return 2
	case up.Held > 0:
		return 1
	}
	return 0
}

// table returns the lines of a table with aligned columns. The row with the index marked is highlighted.
func (p viewport) table(columns []column, rows [][]cell, marked int) []string {
	wide := make([]int, len(columns))
	for i, c := range columns {
		wide[i] = displayWidth(c.title)
	}
	for _, row := range rows {
		for i := range row {
			row[i].text = sanitize.Line(row[i].text, columns[i].maxWidth)
			wide[i] = max(wide[i], displayWidth(row[i].text))
		}
	}
	titles := make([]cell, len(columns))
	for i, c := range columns {
		titles[i] = cell{c.title, bold}
	}
	lines := []string{p.row(columns, wide, titles)}
	for i, row := range rows {
		line := p.row(columns, wide, row)
		if i == marked && p.colours {
			line = "\x1b[7m" + strings.ReplaceAll(line, "\x1b[0m", "\x1b[0;7m") + "\x1b[0m"
		}
		lines = append(lines, line)
	}
	return lines
}

func (p viewport) row(columns []column, wide []int, row []cell) string {
	var b strings.Builder
	for i, e := range row {
		pad := strings.Repeat(" ", max(0, wide[i]-displayWidth(e.text)))
		if columns[i].right {
			b.WriteString(pad)
			pad = ""
		}
		b.WriteString(p.paint(e.text, e.style))
		if i < len(row)-1 {
			b.WriteString(pad + "  ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// paint returns text in a style. The text must not have escape sequences.
func (p viewport) paint(text string, as style) string {
	if !p.colours || as == noStyle || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// displayWidth returns the width of text in terminal columns. The text must not have escape sequences.
func displayWidth(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) || r == '\u200c' || r == '\u200d' {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// truncate truncates a line to a width. Escape sequences of paint do not count.
func truncate(line string, most int) string {
	var b strings.Builder
	used, escape := 0, false
	for _, r := range line {
		if escape || r == '\x1b' {
			escape = r != 'm'
		} else if used += runeWidth(r); used > most {
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// formatDuration formats a duration in its two largest units.
func formatDuration(d time.Duration) string {
	switch d = max(0, d); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// formatCount formats a count in at most five characters.
func formatCount(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n < unit.size {
			continue
		}
		if in := float64(n) / float64(unit.size); in < 9.95 {
			return fmt.Sprintf("%.1f%s", in, unit.name)
		}
		return fmt.Sprint((n+unit.size/2)/unit.size, unit.name)
	}
	return fmt.Sprint(n)
}
