package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/build"
)

func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "man [flags] DIR",
		Short: "write the manual pages",
		Long: `Man writes a manual page for each command into DIR, which is made if there is none:
what --help says, for man. Only files that differ are written.`,
		Example: `  sallyport man ~/.local/share/man/man1
  man sallyport-exec`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Misuse(cmd, "man takes one folder")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes a page for the command and one for each of its subcommands.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	date, version := buildDate(), cli.BuildVersion()
	var write func(cmd *cobra.Command) error
	write = func(cmd *cobra.Command) error {
		path := filepath.Join(dir, pageName(cmd)+".1")
		page := manual(cmd, date, version)
		if there, err := os.ReadFile(path); err != nil || !bytes.Equal(there, page) {
			if err := os.WriteFile(path, page, 0o644); err != nil { //nolint:gosec // a manual page is public
				return err
			}
		}
		var errs []error
		for _, sub := range documentedCommands(cmd) {
			errs = append(errs, write(sub))
		}
		return errors.Join(errs...)
	}
	return write(root)
}

// documentedCommands returns the subcommands that have a page.
func documentedCommands(cmd *cobra.Command) (list []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, sub)
		}
	}
	return list
}

// buildDate returns the date of SOURCE_DATE_EPOCH or of the commit that was built, "" if neither is known. So the
// pages of a version are reproducible.
func buildDate() string {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly)
	}
	return build.Read().Date
}

// pageName returns the name of a command's page: sallyport-exec.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manual returns the page of a command, in the macros of man(7). The texts have no markup of their own.
func manual(cmd *cobra.Command, date, version string) []byte {
	cmd.InitDefaultHelpFlag()
	p := &page{}
	p.macro("TH", strings.ToUpper(pageName(cmd)), "1", date, "sallyport "+version, "Sallyport")
	p.put(".nh\n.ad l") // no hyphenation, so that commands stay in one piece
	p.section("name")
	p.line(pageName(cmd) + " - " + cmd.Short)
	p.section("synopsis")
	words := strings.SplitAfterN(cmd.UseLine(), " ", strings.Count(cmd.CommandPath(), " ")+2)
	p.put(`\fB` + escape(strings.TrimSpace(strings.Join(words[:len(words)-1], ""))) + `\fR ` + escape(words[len(words)-1]))
	text, statuses := cmd.Long, ""
	if text == "" {
		text = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	if before, after, found := strings.Cut(text, "Exit status: "); found {
		text, statuses = before, after
	}
	p.section("description")
	p.paragraphs(text)
	if subs := documentedCommands(cmd); len(subs) > 0 {
		p.section("commands")
		for _, sub := range subs {
			p.entry(sub.Name(), "", sub.Short)
		}
	}
	p.flags("options", cmd.NonInheritedFlags())
	p.flags("global options", cmd.InheritedFlags())
	p.statuses(statuses)
	if cmd.Example != "" {
		p.section("examples")
		p.verbatim(cmd.Example)
	}
	p.seeAlso(cmd)
	return p.Bytes()
}

// page builds a manual page.
type page struct{ bytes.Buffer }

func (p *page) put(line string) { p.WriteString(line + "\n") }

// line writes a line of text.
func (p *page) line(text string) { p.put(escape(text)) }

// macro writes a request with arguments.
func (p *page) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, arg := range args {
		p.WriteString(` "` + escape(arg) + `"`)
	}
	p.put("")
}

func (p *page) section(title string) { p.macro("SH", strings.ToUpper(title)) }

// paragraphs writes help text: paragraphs and indented lines.
func (p *page) paragraphs(text string) {
	for part := range strings.SplitSeq(strings.Trim(text, "\n "), "\n\n") {
		if strings.HasPrefix(part, " ") || strings.HasPrefix(part, "\t") {
			p.verbatim(part)
			continue
		}
		p.put(".PP")
		for line := range strings.Lines(part) {
			p.line(strings.TrimSpace(line))
		}
	}
}

// verbatim writes lines unchanged and indented.
func (p *page) verbatim(text string) {
	p.put(".PP\n.RS 4\n.nf")
	for line := range strings.Lines(text) {
		p.line(strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	p.put(".fi\n.RE")
}

// entry writes a term, the placeholder of its value if any, and its description.
func (p *page) entry(term, value, text string) {
	head := `\fB` + escape(term) + `\fR`
	if value != "" {
		head += ` \fI` + escape(value) + `\fR`
	}
	p.put(".TP\n" + head)
	p.line(strings.Join(strings.Fields(text), " "))
}

func (p *page) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.section(title)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		term := "--" + flag.Name
		if flag.Shorthand != "" {
			term = "-" + flag.Shorthand + ", " + term
		}
		value, text := pflag.UnquoteUsage(flag)
		switch flag.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			text += " (default " + flag.DefValue + ")"
		}
		p.entry(term, value, text)
	})
}

// statuses writes the text after "Exit status:", as a list if it has several statuses.
func (p *page) statuses(text string) {
	if text == "" {
		return
	}
	p.section("exit status")
	parts := strings.Split(strings.TrimSuffix(strings.Join(strings.Fields(text), " "), "."), "; ")
	if len(parts) == 1 {
		p.put(".PP")
		p.line(parts[0] + ".")
		return
	}
	for _, part := range parts {
		number, meaning, _ := strings.Cut(part, " ")
		p.entry(number, "", meaning)
	}
}

func (p *page) seeAlso(cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, pageName(cmd.Parent()))
	}
	for _, sub := range documentedCommands(cmd) {
		pages = append(pages, pageName(sub))
	}
	p.section("see also")
	for i, name := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		p.put(`.BR ` + escape(name) + ` (1)` + end)
	}
}

// escape escapes text for roff, so that it has no markup and can be copied from the formatted page.
func escape(text string) string {
	text = roffEscaper.Replace(text)
	if strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return text
}

var roffEscaper = strings.NewReplacer(`\`, `\(rs`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`, `"`, `\(dq`)
