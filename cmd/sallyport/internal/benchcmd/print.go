package benchcmd

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"sallyport/bench/local"
	"sallyport/bench/tokencount"
	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/sanitize"
)

// writeTokens writes the tokens per turn, first the totals.
func writeTokens(b *strings.Builder, t *local.Tokens) {
	direct, here := t.PerTurn.Direct.O200k, t.PerTurn.Here.O200k
	fmt.Fprintf(b, "direct: %s tokens per turn; here: %s\n", groupDigits(direct), groupDigits(here))
	switch {
	case t.Tools == 0:
		b.WriteString("The upstreams have no tools to save on.\n")
	case here >= direct:
		fmt.Fprintf(b, "With %s direct calling reads fewer tokens a turn than here: nothing is saved on definitions.\n", toolsOfUpstreams(t))
	case direct > local.Window:
		fmt.Fprintf(b, "All definitions together fit no context of %s tokens: direct calling is not possible with all of them, and not a saving either.\n", groupDigits(local.Window))
	}
	b.WriteString("\n")
	writeUpstreams(b, t)
	writeSearch(b, t)
}

func toolsOfUpstreams(t *local.Tokens) string {
	n := 0
	for _, up := range t.Upstreams {
		if up.Problem == "" {
			n++
		}
	}
	return cli.Count(t.Tools, "tool") + " of " + cli.Count(n, "upstream")
}

func writeUpstreams(b *strings.Builder, t *local.Tokens) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "TOOLS\tTOKENS\t  UPSTREAM")
	for _, up := range t.Upstreams {
		if up.Problem != "" {
			fmt.Fprintf(table, "-\t-\t  %s: not counted, %s\n", sanitize.Line(up.ID, 80), sanitize.Line(up.Problem, 120))
			continue
		}
		held := ""
		if up.Quarantined > 0 {
			held = fmt.Sprintf(" (%d more quarantined, not counted)", up.Quarantined)
		}
		fmt.Fprintf(table, "%d\t%s\t  %s%s\n", up.Tools, groupDigits(up.Tokens.O200k), sanitize.Line(up.ID, 80), held)
	}
	fmt.Fprintf(table, "%d\t%s\t  together: what direct calling reads at every turn\n", t.Tools, groupDigits(t.PerTurn.Direct.O200k))
	fmt.Fprintf(table, "\t%s\t  a client with a tool search, which defers all of them\n", groupDigits(t.PerTurn.Search.O200k))
	fmt.Fprintf(table, "\t%s\t  here, with instructions\n", groupDigits(t.PerTurn.Here.O200k))
	_ = table.Flush() // to a Builder, which cannot fail
}

func writeSearch(b *strings.Builder, t *local.Tokens) {
	if t.Search == nil || len(t.Conversations) == 0 {
		return
	}
	s, c := t.Search, t.Conversations[0]
	fmt.Fprintf(b, "\nA search here costs %s tokens (median of %d; %s at most); %d of %d had the tool.\n", roundedText(s.Tokens.P50), s.Queries, roundedText(s.Tokens.Max), s.Found, s.Queries)
	fmt.Fprintf(b, "A conversation of %d turns reads, and writes, of definitions and one search:\n\n", c.Turns)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "NO CACHE\tCACHED\t  ")
	for _, row := range []struct {
		name string
		cost local.Cost
	}{{"direct", c.Direct}, {"tool search", c.Search}, {"here", c.Here}} {
		fmt.Fprintf(table, "%s\t%s\t  %s\n", roundedText(row.cost.Plain), roundedText(row.cost.Cached), row.name)
	}
	_ = table.Flush()
	if t.PerTurn.Direct.O200k > local.Window {
		b.WriteString("\nThe row of direct is no conversation that any usual model can have: compare with the tool search.\n")
		return
	}
	fmt.Fprintf(b, "\nHere costs less than direct %s; with a cache (a token read again counts %g, in contexts of %s tokens or more) %s.\n",
		breakEvenText(c.Even.Plain, c.Last.Plain), local.Cached, groupDigits(tokencount.CacheMinimum), breakEvenText(c.Even.Cached, c.Last.Cached))
}

// breakEvenText describes from which turn on sallyport is cheaper, or else at which turn it last was.
func breakEvenText(turn, last int) string {
	switch {
	case turn == 1:
		return "from the first turn on"
	case turn > 0:
		return fmt.Sprintf("from turn %d on", turn)
	case last > 0:
		return fmt.Sprintf("at turn %d for the last time", last)
	}
	return "never, in 100 turns"
}

// writeCalls writes the calls and the tokens that a model reads for them.
func writeCalls(b *strings.Builder, t *local.Tokens) {
	c := t.Calls
	if c == nil {
		if t.Tools > 0 {
			b.WriteString("\nNo tool was called.\n")
		}
		return
	}
	b.WriteString("\n")
	left := fmt.Sprintf("%d do not say that they only read, %d need arguments, %d are not allowed unasked", c.NotReadOnly, c.NeedArguments, c.Refused)
	if c.Beyond > 0 {
		left += fmt.Sprintf(", %d more than enough", c.Beyond)
	}
	if len(c.Made) == 0 {
		fmt.Fprintf(b, "No tool was called: %s.\n", left)
		return
	}
	fmt.Fprintf(b, "%s called for real (not the others: %s).\n", toolsWere(len(c.Made)), left)
	if c.Problem != "" {
		fmt.Fprintf(b, "None was called from a program: %s\n", c.Problem)
	}
	b.WriteString("\n")
	writeCallTable(b, c)
	writeCallTotals(b, t)
}

func toolsWere(n int) string {
	if n == 1 {
		return "1 tool was"
	}
	return fmt.Sprintf("%d tools were", n)
}

func writeCallTable(b *strings.Builder, c *local.Calls) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "DIRECT\tPROGRAM\t  CALL AND RESULT; CODE AND WHAT IT PRINTS")
	for _, call := range c.Made {
		direct, program, note := cli.OrDash(call.Direct.O200k), cli.OrDash(call.Program.O200k), ""
		switch {
		case call.Problem != "":
			note = ": not counted, " + sanitize.Line(call.Problem, 120)
		case call.Program.O200k >= call.Direct.O200k:
			note = ": cheaper directly"
		}
		fmt.Fprintf(table, "%s\t%s\t  %s%s\n", direct, program, sanitize.Line(call.Tool, 150), note)
	}
	if c.Counted > 1 {
		fmt.Fprintf(table, "%s\t%s\t  together\n", groupDigits(c.Direct.O200k), groupDigits(c.Program.O200k))
	}
	_ = table.Flush()
}

// writeCallTotals writes the total of the calls including the searches before them.
func writeCallTotals(b *strings.Builder, t *local.Tokens) {
	c := t.Calls
	if c.Counted == 0 || t.Search == nil {
		return
	}
	searches := float64(c.Counted) * t.Search.Tokens.P50
	fmt.Fprintf(b, "\nWith a search before each program: %s tokens in place of %s.\n", roundedText(float64(c.Program.O200k)+searches), groupDigits(c.Direct.O200k))
}

// writeLatency writes the table of latencies.
func writeLatency(b *strings.Builder, l *local.Latency) {
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	calls := ""
	if l.Runs > local.MaxAgain {
		calls = fmt.Sprintf(", calls %d times", local.MaxAgain)
	}
	fmt.Fprintf(b, "Milliseconds on this machine (%s of %s), each taken %d times or more%s:\n\n", cli.Count(l.Tools, "tool"), cli.Count(l.Upstreams, "upstream"), l.Runs, calls)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "MIN\tMEDIAN\tP99\tBESIDE\tRATIO\t  ")
	for _, r := range l.Rows {
		beside, ratio, what := "-", "-", r.What
		if r.Bare != nil {
			beside, ratio, what = formatMillis(r.Bare.P50), fmt.Sprintf("%.2f", r.Ratio), what+"; beside: "+r.Baseline
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s\n", formatMillis(r.Min), formatMillis(r.P50), formatMillis(r.P99), beside, ratio, sanitize.Line(what, 200))
	}
	_ = table.Flush()
	if slices.ContainsFunc(l.Rows, func(r local.Row) bool { return r.N < 100 }) {
		b.WriteString("\nOf fewer than 100 times P99 is the longest.\n")
	}
	for _, missing := range l.Missing {
		writeMissing(b, missing)
	}
}

func writeMissing(w io.Writer, what string) { fmt.Fprintf(w, "Not measured: %s.\n", what) }

// formatMillis formats milliseconds with a sensible number of digits.
func formatMillis(ms float64) string {
	switch {
	case ms >= 100:
		return groupDigits(int(ms + .5))
	case ms >= 1:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.3f", ms)
}

func roundedText(f float64) string { return groupDigits(int(f + .5)) }

// groupDigits formats a number with commas between thousands.
func groupDigits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
