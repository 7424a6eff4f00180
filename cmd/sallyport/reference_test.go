package main

import (
	"cmp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/testutil/refpage"
)

// TestReference holds docs/reference/cli.md to the commands.
func TestReference(t *testing.T) {
	root := newRoot(&app{App: &cli.App{Env: func(string) (string, bool) { return "", false }}})
	p := refpage.New("cli.md", "Commands", "cmd/sallyport", "TestReference")
	p.Text("Every command of `sallyport` with its flags, defaults and examples: what `--help` prints. " +
		"`sallyport man DIR` writes the same as manual pages.")
	p.Text("With `--json`, a command that prints what there is prints one JSON object; a list is a member of it, also when it is empty. " +
		"Records that follow one another (`log`, `workflow log`) are one object to a line. " +
		"A command that groups others prints its help on stderr when it is alone, with exit status 2. One that lists, and finds nothing, says so on stderr, with exit status 0.")
	p.List(contents(root))
	if shown := referCommand(p, root); shown < 60 {
		t.Errorf("only %d commands", shown)
	}
	p.Check(t)
}

// contents lists the commands below cmd, each with a link.
func contents(cmd *cobra.Command) (items []string) {
	for _, sub := range documentedCommands(cmd) {
		path := sub.CommandPath()
		items = append(items, "["+path+"](#"+strings.ReplaceAll(path, " ", "-")+"): "+refpage.Escape(refpage.Sentence(sub.Short)))
		items = append(items, contents(sub)...)
	}
	return items
}

// referCommand writes a command and those below it, and returns their number.
func referCommand(p *refpage.Page, cmd *cobra.Command) int {
	cmd.InitDefaultHelpFlag()
	p.Heading(2, cmd.CommandPath())
	helpText(p, cmp.Or(cmd.Long, refpage.Sentence(cmd.Short)))
	p.Code("text", cmd.UseLine())
	flagList(p, cmd.NonInheritedFlags())
	if cmd.Example != "" {
		p.Text("Examples:")
		p.Code("text", cmd.Example)
	}
	count := 1
	for _, sub := range documentedCommands(cmd) {
		count += referCommand(p, sub)
	}
	return count
}

// helpText writes help text: paragraphs, and indented lines as they are.
func helpText(p *refpage.Page, text string) {
	for part := range strings.SplitSeq(strings.Trim(text, "\n "), "\n\n") {
		before, block := part, ""
		if i := strings.Index("\n"+part, "\n "); i >= 0 {
			before, block = part[:i], part[i:]
		}
		if strings.TrimSpace(before) != "" {
			p.Text(refpage.Escape(before))
		}
		if block != "" {
			p.Code("text", block)
		}
	}
}

// flagList writes the flags of a command but --help.
func flagList(p *refpage.Page, flags *pflag.FlagSet) {
	var items []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		term := "--" + flag.Name
		if flag.Shorthand != "" {
			term = "-" + flag.Shorthand + ", " + term
		}
		value, text := pflag.UnquoteUsage(flag)
		text = refpage.Escape(strings.Join(strings.Fields(text), " "))
		switch flag.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			text += " (default " + refpage.Quote(flag.DefValue) + ")"
		}
		items = append(items, refpage.Quote(strings.TrimSpace(term+" "+value))+": "+text)
	})
	p.List(items)
}
