package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	host "sallyport/bench/machine"
	"sallyport/bench/table"
)

// machine is where and with what was measured.
type machine struct {
	Date    string `json:"date"`
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Memory  string `json:"memory"`
	Kernel  string `json:"kernel"`
	User    int    `json:"uid"`
	Load    string `json:"load"`
	Cgroups string `json:"cgroups"`
	// Busy says that others had the processors too, and that it was measured all the same.
	Busy bool `json:"busy,omitempty"`
	// Versions and Digests are by program; digests are SHA-256.
	Versions map[string]string `json:"versions"`
	Digests  map[string]string `json:"digests"`
	Took     string            `json:"took,omitempty"`
}

func describe(ctx context.Context, o *options) *machine {
	m := &machine{
		Date: time.Now().UTC().Format(time.DateTime) + " UTC", Cores: runtime.NumCPU(), User: os.Getuid(),
		CPU: host.CPU(), Memory: host.Memory(),
		Kernel: host.Kernel(), Load: host.Load(), Cgroups: cgroups(),
		Versions: map[string]string{}, Digests: map[string]string{},
	}
	programs := []struct{ name, path, flag string }{
		{"sallyport", o.sallyport, "version"}, {"runsc", filepath.Join(filepath.Dir(o.sallyport), "runsc"), "--version"},
	}
	for _, l := range languages() {
		programs = append(programs, struct{ name, path, flag string }{filepath.Base(l.interpreter), l.interpreter, "--version"})
	}
	for _, p := range programs {
		m.Versions[p.name], m.Digests[p.name] = programVersion(ctx, p.path, p.flag)
	}
	if commit := host.Commit(ctx); commit != "" {
		m.Versions["commit"] = commit
	}
	return m
}

func cgroups() string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return "v2"
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err == nil {
		return "v1"
	}
	return "none"
}

// programVersion returns a program's reported version and the start of its digest; for a missing one, the error text and "".
func programVersion(ctx context.Context, path, flag string) (version, digest string) {
	version, err := host.Version(ctx, path, flag)
	if err != nil {
		version = err.Error()
	}
	if digest, err = host.Digest(path); err != nil {
		return version, ""
	}
	return version, digest[:16]
}

// head is what stands above the table.
func (m *machine) head(title string) string {
	var b strings.Builder
	if title != "" {
		fmt.Fprintf(&b, "# %s\n", title)
	}
	fmt.Fprintf(&b, "# %s, %d x %s, %s, Linux %s, uid %d, cgroup %s, load %s%s\n", m.Date, m.Cores, m.CPU, m.Memory, m.Kernel, m.User, m.Cgroups, m.Load, host.BusyNote(m.Busy))
	for _, name := range []string{"sallyport", "runsc", "python3", "node", "tools"} {
		if m.Versions[name] != "" {
			fmt.Fprintf(&b, "# %-9s %s, sha256 %s\n", name, m.Versions[name], m.Digests[name])
		}
	}
	if commit := m.Versions["commit"]; commit != "" {
		fmt.Fprintf(&b, "# commit    %s\n", commit)
	}
	return b.String()
}

// verdict is what stands below the table.
func verdict(rows []row) string {
	var b strings.Builder
	fmt.Fprintln(&b, "# what the rows are:")
	for i, r := range rows {
		if r.Note == "" {
			continue
		}
		name := strings.TrimSpace(r.Case + " " + r.Language)
		if i+1 < len(rows) && rows[i+1].Note == r.Note {
			fmt.Fprintf(&b, "#   %s;\n", name)
			continue
		}
		fmt.Fprintf(&b, "#   %s: %s\n", name, r.Note)
	}
	fmt.Fprint(&b, "# Bare is measured by turns with ours, in the same run: what the row says or, for programs, the same line in the interpreter alone. Before both, unless the\n"+
		"# row says otherwise, serve has replaced what sandboxes were used up, and nothing that it started used processor time or came or went for 120 ms: that work is in\n"+
		"# no time but in the processor time. The ratio is our median time to the bare one, also where the unit is a rate: below 1 is faster. p99 is the largest where n\n"+
		"# is below 100.\n"+
		"# The nearest peers need 6 to 50 ms for a script with one call, in the gateway's own process and without isolation (quoted, not measured here).\n")
	b.WriteString("# " + table.Tally(rows) + "\n")
	return b.String()
}

// writePartial writes the rows of a run that failed to FILE.partial, and says so; it is no result.
func writePartial(o *options, m *machine, rows []row) error {
	if o.out == "" || o.partialReason != "" || len(rows) == 0 {
		return nil
	}
	name := o.out + ".partial"
	if err := os.WriteFile(name, []byte(m.head(o.title)+table.Text(rows, true)+verdict(rows)), 0o644); err != nil {
		return fmt.Errorf("keep what was measured: %w", err)
	}
	return fmt.Errorf("the %d rows before that are in %s", len(rows), name)
}

// write writes a line of JSON for the machine and for each row, the table, and the documents.
func write(o *options, m *machine, rows []row) error {
	return errors.Join(table.WriteResults(o.out+".jsonl", m, rows), o.show(m, rows))
}

// show writes the table and the documents.
func (o *options) show(m *machine, rows []row) error {
	text := m.head(o.title) + table.Text(rows, true) + verdict(rows) + "# took " + m.Took + "\n"
	err := os.WriteFile(o.out+".txt", []byte(text), 0o644)
	if o.docs == "" {
		return err
	}
	return errors.Join(err, texts(*m, rows).Write(o.docs, page))
}
