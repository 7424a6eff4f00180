package initcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// questions asks the user on a terminal.
type questions struct {
	in       io.Reader
	out      io.Writer
	terminal bool
	yes      bool
}

func newQuestions(a *cli.App, yes bool) *questions {
	return &questions{in: a.Stdin, out: a.Stderr, terminal: cli.IsTerminal(a.Stdin), yes: yes}
}

// possible reports whether there is someone to ask.
func (q *questions) possible() bool { return q.terminal && !q.yes }

// option is one possible answer.
type option struct {
	// name selects it by a flag, label is what is shown.
	name, label string
	// proposed options are the proposed answer.
	proposed bool
}

// choose returns the indices of the chosen options: those that given names, else the proposed ones with --yes, else
// those that the user answers with, else none.
func (q *questions) choose(ctx context.Context, title string, options []option, given []string, flag string) ([]int, error) {
	switch {
	case len(given) > 0:
		return named(options, given, flag)
	case q.yes:
		return proposals(options), nil
	case !q.terminal || len(options) == 0:
		return nil, nil
	}
	return q.askNumbers(ctx, title, options)
}

// named returns the options with the given names.
func named(options []option, given []string, flag string) (chosen []int, err error) {
	for _, name := range given {
		before := len(chosen)
		for i, o := range options {
			if o.name == name {
				chosen = append(chosen, i)
			}
		}
		if len(chosen) == before {
			return nil, unknownName(options, name, flag)
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

func unknownName(options []option, name, flag string) error {
	var names []string
	for _, o := range options {
		names = append(names, o.name)
	}
	err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s: there is no %.40q", flag, name), Hint: "there is none to choose"}
	if len(names) > 0 {
		err.Hint = "choose from " + strings.Join(names, ", ")
	}
	if near := suggest.Of(name, names); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return err
}

func proposals(options []option) (chosen []int) {
	for i, o := range options {
		if o.proposed {
			chosen = append(chosen, i)
		}
	}
	return chosen
}

func (q *questions) askNumbers(ctx context.Context, title string, options []option) ([]int, error) {
	var b strings.Builder
	b.WriteString("\n" + title + "\n")
	for i, o := range options {
		fmt.Fprintf(&b, "  %2d  %s\n", i+1, o.label)
	}
	fmt.Fprint(q.out, cli.Clean(b.String()))
	proposed := proposals(options)
	for {
		line, err := q.line(ctx, fmt.Sprintf("Numbers, all or none [%s]: ", numbers(proposed, len(options))))
		if err != nil {
			return nil, err
		}
		if chosen, ok := parseNumbers(line, len(options), proposed); ok {
			return chosen, nil
		}
		fmt.Fprintf(q.out, "Answer with numbers from 1 to %d, such as 1 2, or all, or none.\n", len(options))
	}
}

// numbers writes a choice as it is typed.
func numbers(chosen []int, of int) string {
	switch len(chosen) {
	case 0:
		return "none"
	case of:
		return "all"
	}
	var words []string
	for _, i := range chosen {
		words = append(words, strconv.Itoa(i+1))
	}
	return strings.Join(words, " ")
}

// parseNumbers reads a choice. An empty line is the proposed one.
func parseNumbers(line string, of int, proposed []int) (chosen []int, ok bool) {
	switch strings.ToLower(line) {
	case "":
		return proposed, true
	case "none", "no", "n", "0":
		return nil, true
	case "all", "yes", "y":
		line = numbers(upTo(of), of+1)
	}
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > of {
			return nil, false
		}
		chosen = append(chosen, n-1)
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), len(chosen) > 0
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// text returns given, else the proposal with --yes or without a terminal, else what the user types.
func (q *questions) text(ctx context.Context, question, given, proposal string) (string, error) {
	if given != "" {
		return given, nil
	}
	if !q.possible() {
		return proposal, nil
	}
	line, err := q.line(ctx, fmt.Sprintf("%s [%s]: ", question, proposal))
	if line == "" {
		line = proposal
	}
	return line, err
}

// line prints a question and reads one line.
func (q *questions) line(ctx context.Context, question string) (string, error) {
	return cli.ReadLine(ctx, q.in, q.out, question)
}
