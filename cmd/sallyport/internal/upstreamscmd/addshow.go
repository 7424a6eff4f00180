package upstreamscmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/candidate"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// show prints the description of the server. All of it is untrusted.
func (d *addition) show() {
	c := d.found
	var b strings.Builder
	line := func(label, text string) {
		if text = sanitize.Line(text, 300); text != "" {
			fmt.Fprintf(&b, "  %-14s%s\n", label, text)
		}
	}
	title := c.Server
	if c.Title != "" {
		title = c.Title + " (" + c.Server + ")"
	}
	line("server", title+", from "+c.Source)
	line("about", c.Description)
	line("published by", c.Publisher)
	line("version", c.Version)
	line("source code", c.Repository)
	for _, in := range c.Inputs {
		line("value", describeInput(in))
	}
	line("note", c.Needs.Note)
	for _, warning := range c.Warnings {
		line("warning", warning)
	}
	fmt.Fprint(d.Err(), cli.Clean(b.String()))
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
	process := e.Command+e.Image() != ""
	switch {
	case e.Image() != "":
		b.WriteString("  runs image    " + candidate.Command(e) + "\n")
	case e.Command != "":
		b.WriteString("  runs          " + candidate.Command(e) + "\n")
	case e.OpenAPI != "":
		b.WriteString("  reads         " + e.OpenAPI + "\n")
	case e.GraphQL != "":
		b.WriteString("  connects to   " + e.GraphQL + " (GraphQL)\n")
	default:
		b.WriteString("  connects to   " + e.URL + "\n")
	}
	if !process {
		return b.String()
	}
	if e.Isolate == nil {
		return b.String() + "  isolated      NO: it runs with your rights, can read your files and use your network\n"
	}
	hosts := strings.Join(e.Isolate.HostNames(), ", ")
	if hosts == "" {
		hosts = "none (--host HOST allows one)"
	}
	fmt.Fprintf(&b, "  isolated      yes\n  hosts         %s\n", hosts)
	for _, mount := range e.Isolate.Mounts {
		mode := "read only"
		if mount.Mode == config.MountWritable {
			mode = "may be changed"
		}
		fmt.Fprintf(&b, "  files         %s (%s)\n", mount.Path, mode)
	}
	return b.String()
}

// ask asks for the values that were not given, on a terminal.
func (d *addition) ask(ctx context.Context) error {
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
func (d *addition) askOne(ctx context.Context, tty *os.File, in candidate.Input) error {
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

func (d *addition) readValue(ctx context.Context, tty *os.File, in candidate.Input, question string) (string, error) {
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
func (d *addition) report(r addResult) error {
	e := d.made.Entry
	if r.Name == "" {
		r.Name = e.Name
	}
	r.Server, r.Source, r.Version, r.Publisher, r.Path, r.Warnings = d.found.Server, d.found.Source, d.found.Version, d.found.Publisher, d.file.Path, d.found.Warnings
	r.URL, r.Secrets, r.Unset = e.URL, slices.Sorted(maps.Keys(d.made.Secrets)), d.UnsetVariables(d.file, e)
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

func (d *addition) printResult(r addResult) error {
	switch r.Outcome {
	case "existing":
		return d.Print(r.Name + " is in " + r.Path + " already")
	case "dry run":
		d.Say("nothing was written; this would be added to " + r.Path + ":")
		added := &settingsfile.File{Path: d.file.Path}
		if err := added.Add(d.made.Entry); err != nil {
			return err
		}
		return d.Print(string(added.Data))
	case "failed":
		if err := d.PrintFinding(r.Test.String()); err != nil {
			return err
		}
		if e := d.made.Entry; e.Remote() && len(e.Headers) == 0 {
			d.Say("nothing was added; --header 'Authorization=Bearer ${TOKEN}' sends credentials, --no-test adds it without a test")
		} else {
			d.Say("nothing was added; --no-test adds it without a test")
		}
		return nil
	}
	return d.printAdded(r)
}

func (d *addition) printAdded(r addResult) error {
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
	lines := append([]string{text}, d.flags.Report(d.file, d.storedSecrets())...)
	if err := d.Print(strings.Join(lines, "\n")); err != nil {
		return err
	}
	if len(r.Unset) > 0 {
		d.Say("set before you start sallyport: " + strings.Join(r.Unset, ", "))
	}
	if r.Test != nil && r.Test.Problem != "" {
		d.Say(r.Test.Problem + "; " + r.Test.Fix)
	}
	d.warnOfSecrets(d.made.Entry)
	return nil
}

// unusable is the error of a server that cannot be tested here.
func unusable(err error) error {
	return &tool.Error{Kind: tool.Failed, Message: err.Error(), Err: err, Hint: "--no-test adds it without a test"}
}
