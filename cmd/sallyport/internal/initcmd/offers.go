package initcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// offer is a server that needs no credentials.
type offer struct {
	name, about string
	// program starts it; "" is sallyport itself.
	program string
	// proposed offers are the proposed answer if their program is installed.
	proposed bool
	args     []string
}

// offers returns the servers that init offers.
func offers() []offer {
	return []offer{
		{"filesystem", "read, write, search and list the files of one folder", "npx", true, []string{"-y", "@modelcontextprotocol/server-filesystem"}},
		{"memory", "a knowledge graph of entities, relations and notes about them", "npx", true, []string{"-y", "@modelcontextprotocol/server-memory"}},
		{"fetch", "web pages as text", "uvx", false, []string{"mcp-server-fetch"}},
		{"everything", "test server with one tool of every kind", "npx", false, []string{"-y", "@modelcontextprotocol/server-everything"}},
		{"shop", samples()[0].description, "", false, nil},
	}
}

func offerNames() (names []string) {
	for _, o := range offers() {
		names = append(names, o.name)
	}
	return names
}

// missing reports whether the program of an offer is not installed.
func (o offer) missing() bool {
	if o.program == "" {
		return false
	}
	_, err := exec.LookPath(o.program)
	return err != nil
}

// addServers adds servers that init offers: those of --server, or where there is no other server, those that the user
// chooses.
func (s *setup) addServers(ctx context.Context) error {
	entries, err := s.file.Entries()
	if err != nil || len(s.servers) == 0 && len(entries) > 0 {
		return err
	}
	all := offers()
	chosen, err := s.ask.choose(ctx, "There is no MCP server yet. Which ones shall Sallyport have?", offerOptions(all), s.servers, "--server")
	if err != nil {
		return err
	}
	for _, i := range chosen {
		if err := s.addServer(ctx, all[i]); err != nil {
			return err
		}
	}
	return s.saveServers(len(chosen))
}

func offerOptions(all []offer) (options []option) {
	usable := slices.ContainsFunc(all, func(o offer) bool { return o.proposed && !o.missing() })
	for _, o := range all {
		note := ""
		if o.missing() {
			note = " (needs " + o.program + ", which is not installed)"
		}
		options = append(options, option{name: o.name, label: fmt.Sprintf("%-12s %s%s", o.name, o.about, note),
			proposed: o.proposed && !o.missing() || !usable && o.program == ""})
	}
	return options
}

func (s *setup) addServer(ctx context.Context, o offer) error {
	if s.has(o.name) {
		return s.Print(o.name + " is in " + s.file.Path + " already")
	}
	if o.missing() {
		s.fail("add "+o.name, errors.New(o.program+" is not installed"), "install "+packageOf(o.program)+", then: sallyport init --server "+o.name)
		return nil
	}
	e, err := s.offerEntry(ctx, o)
	if err != nil {
		return err
	}
	s.begin()
	return s.file.Add(e)
}

// packageOf names what a program comes with.
func packageOf(program string) string {
	if program == "npx" {
		return "Node.js with npm"
	}
	return "uv"
}

// saveServers writes the settings.
func (s *setup) saveServers(chosen int) error {
	if chosen == 0 || !s.file.Changed() {
		return nil
	}
	entries, err := s.file.Entries()
	if err != nil {
		return err
	}
	if err := s.file.Save(); err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return s.Print("wrote " + s.file.Path + ": " + strings.Join(names, ", "))
}

// offerEntry returns the upstream that an offer becomes.
func (s *setup) offerEntry(ctx context.Context, o offer) (settingsfile.Entry, error) {
	e := settingsfile.Entry{Name: o.name, Description: o.about, Command: o.program, Args: slices.Clone(o.args)}
	switch o.name {
	case "filesystem":
		folder, err := s.sharedFolder(ctx)
		e.Args = append(e.Args, strings.ReplaceAll(folder, "$", "$$"))
		return e, err
	case "memory":
		if dir := s.DataDir(); dir != "" { // otherwise its notes are lost with npm's cache
			e.Env = settingsfile.Values{"MEMORY_FILE_PATH": strings.ReplaceAll(filepath.Join(dir, "memory.jsonl"), "$", "$$")}
			return e, os.MkdirAll(dir, 0o700)
		}
	case "shop":
		return sampleEntry(samples()[0])
	}
	return e, nil
}

// sharedFolder returns the folder for the server filesystem, and makes it.
func (s *setup) sharedFolder(ctx context.Context) (string, error) {
	home, _ := s.Env("HOME")
	folder, err := s.ask.text(ctx, "Which folder may the server filesystem read and write?", s.folder, filepath.Join(home, "sallyport-files"))
	if err != nil {
		return "", err
	}
	if rest, ok := strings.CutPrefix(folder, "~/"); ok {
		folder = filepath.Join(home, rest)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	if folder == filepath.Clean(home) {
		return "", &tool.Error{Kind: tool.Invalid, Message: "the server filesystem must not have your whole home folder, which holds keys and passwords", Hint: "name a folder below it with --folder"}
	}
	return folder, os.MkdirAll(folder, 0o755)
}
