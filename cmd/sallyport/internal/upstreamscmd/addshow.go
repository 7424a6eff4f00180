package upstreamscmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/addition"
	"sallyport/internal/candidate"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// show prints the description of the server. All of it is untrusted.
func (d *adding) show() {
	var b strings.Builder
	for _, fact := range addition.About(d.found) {
		b.WriteString(factLine(fact.Label, fact.Text))
	}
	for _, in := range d.found.Inputs {
		b.WriteString(factLine("value", describeInput(in)))
	}
	b.WriteString(factLine("note", d.found.Needs.Note))
	for _, warning := range d.found.Warnings {
		b.WriteString(factLine("warning", warning))
	}
	fmt.Fprint(d.Err(), cli.Clean(b.String()))
}

// factLine returns a line of the description, "" without a text.
func factLine(label, text string) string {
	if text = sanitize.Line(text, 300); text == "" {
		return ""
	}
	return fmt.Sprintf("  %-14s%s\n", label, text)
}

// describeInput returns one line about an input.
func describeInput(in candidate.Input) string {
	var marks []string
	if in.Required {
		marks = append(marks, "required")
	}
	if in.Secret {
		marks = append(marks, "secret")
	}
	if in.Default != "" && !in.Secret {
		marks = append(marks, "default "+in.Default)
	}
	if len(in.Choices) > 0 {
		marks = append(marks, "one of "+strings.Join(in.Choices, ", "))
	}
	text := in.Name
	if len(marks) > 0 {
		text += " (" + strings.Join(marks, "; ") + ")"
	}
	if in.Description != "" {
		text += ": " + in.Description
	}
	return text
}

// describeEntry returns the command of an entry, and the hosts and files that it may reach, a line for each.
func describeEntry(e settingsfile.Entry) string {
	var b strings.Builder
	for _, fact := range addition.Access(e) {
		if fact.Label == "hosts" && fact.Text == addition.NoHosts {
			fact.Text += " (--host HOST allows one)"
		}
		fmt.Fprintf(&b, "  %-14s%s\n", fact.Label, fact.Text)
	}
	return b.String()
}

// ask asks for the values that were not given, on a terminal.
func (d *adding) ask(ctx context.Context) error {
	tty, ok := d.Stdin.(*os.File)
	if !ok || !cli.IsTerminal(tty) || d.flags.yes || d.flags.asJSON {
		return nil
	}
	for _, in := range d.found.Inputs {
		if len(d.values[in.Name]) > 0 || !in.Required && !in.Secret && len(in.Choices) == 0 && !in.Path {
			continue
		}
		if err := d.askOne(ctx, tty, in); err != nil {
			return err
		}
	}
	return nil
}

// askOne asks until the answer is valid. An empty one is the default, or leaves the value out.
func (d *adding) askOne(ctx context.Context, tty *os.File, in candidate.Input) error {
	question := sanitize.Line(describeInput(in), 300)
	for {
		value, err := d.readValue(ctx, tty, in, question)
		if err != nil {
			return err
		}
		if value == "" {
			if !in.Required || in.Secret {
				return nil
			}
			continue
		}
		if err := in.Check(value); err != nil {
			d.Report(err)
			continue
		}
		d.values[in.Name] = []string{value}
		return nil
	}
}

func (d *adding) readValue(ctx context.Context, tty *os.File, in candidate.Input, question string) (string, error) {
	if in.Secret {
		return readHidden(ctx, tty, func() { d.Say(question + " (it is not shown; Enter leaves it for later)") })
	}
	return cli.ReadLine(ctx, d.Stdin, d.Stderr, question+": ")
}

// addResult is what add --json prints.
type addResult struct {
	// Outcome is added, existing, failed or dry run.
	Outcome string `json:"outcome"`
	Name    string `json:"name"`
	Server  string `json:"server"`
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`
	// Publisher publishes the server, by its source.
	Publisher string `json:"publisher,omitempty"`
	Path      string `json:"path"`
	Command   string `json:"command,omitempty"`
	URL       string `json:"url,omitempty"`
	Isolated  bool   `json:"isolated"`
	// Hosts and Mounts are what its process may reach.
	Hosts  []string `json:"hosts"`
	Mounts []string `json:"mounts"`
	// Secrets are the variables with stored values, Unset those that still need one.
	Secrets  []string    `json:"secrets"`
	Unset    []string    `json:"unset"`
	Warnings []string    `json:"warnings"`
	Test     *testResult `json:"test,omitempty"`
	// Tools are the names of its tools.
	Tools []string `json:"tools"`

	held int
}

// report prints the result.
func (d *adding) report(r addResult) error {
	e := d.Made.Entry
	if r.Name == "" {
		r.Name = e.Name
	}
	r.Server, r.Source, r.Version, r.Publisher, r.Path, r.Warnings = d.found.Server, d.found.Source, d.found.Version, d.found.Publisher, d.file.Path, d.found.Warnings
	r.URL, r.Secrets, r.Unset = e.URL, slices.Sorted(maps.Keys(d.Made.Secrets)), d.UnsetVariables(d.file, e)
	if e.Command+e.Image() != "" {
		r.Command = candidate.Command(e)
	}
	if e.Isolate != nil {
		r.Isolated, r.Hosts = true, e.Isolate.HostNames()
		for _, mount := range e.Isolate.Mounts {
			r.Mounts = append(r.Mounts, mount.Path)
		}
	}
	if r.Test != nil {
		r.Tools, r.held = r.Test.tools, r.Test.held
	}
	if d.flags.asJSON {
		return d.PrintJSON(r)
	}
	return d.printResult(r)
}

func (d *adding) printResult(r addResult) error {
	switch r.Outcome {
	case "existing":
		return d.Print(r.Name + " is in " + r.Path + " already")
	case "dry run":
		d.Say("nothing was written; this would be added to " + r.Path + ":")
		added := &settingsfile.File{Path: d.file.Path}
		if err := added.Add(d.Made.Entry); err != nil {
			return err
		}
		return d.Print(string(added.Data))
	case "failed":
		if err := d.PrintFinding(r.Test.String()); err != nil {
			return err
		}
		if e := d.Made.Entry; e.Remote() && len(e.Headers) == 0 {
			d.Say("nothing was added; --header 'Authorization=Bearer ${TOKEN}' sends credentials, --no-test adds it without a test")
		} else {
			d.Say("nothing was added; --no-test adds it without a test")
		}
		return nil
	}
	return d.printAdded(r)
}

func (d *adding) printAdded(r addResult) error {
	text := fmt.Sprintf("added %s to %s", r.Name, r.Path)
	if r.Test != nil {
		text += ": " + cli.Count(len(r.Tools), "tool")
		if names := strings.Join(r.Tools[:min(len(r.Tools), 8)], ", "); names != "" {
			text += " (" + names + ")"
		}
	}
	if r.held > 0 {
		text += fmt.Sprintf("\n%s held for review: sallyport upstreams review %s", cli.Plural(r.held, "tool is", "tools are"), r.Name)
	}
	lines := append([]string{text}, d.Store.Report(d.file, d.Secrets())...)
	if err := d.Print(strings.Join(lines, "\n")); err != nil {
		return err
	}
	if len(r.Unset) > 0 {
		d.Say("set before you start sallyport: " + strings.Join(r.Unset, ", "))
	}
	if r.Test != nil && r.Test.Problem != "" {
		d.Say(r.Test.Problem + "; " + r.Test.Fix)
	}
	d.warnOfSecrets(d.Made.Entry)
	return nil
}

// unusable is the error of a server that cannot be tested here.
func unusable(err error) error {
	return &tool.Error{Kind: tool.Failed, Message: err.Error(), Err: err, Hint: "--no-test adds it without a test"}
}
