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

	"sallyport/bench/doc"
	host "sallyport/bench/machine"
	"sallyport/bench/table"
)

// page is the name of the page that is made from the results, and of its section.
const page = "cluster"

// machine is where and with what was measured.
type machine struct {
	Date    string `json:"date"`
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Memory  string `json:"memory"`
	Kernel  string `json:"kernel"`
	Load    string `json:"load"`
	Commit  string `json:"commit"`
	Digest  string `json:"digest"` // of sallyport
	Servers int    `json:"servers"`
	Seats   int    `json:"seats"`
	Waits   int    `json:"waits"`
	// Busy says that others had the processors too, and that it was measured all the same.
	Busy bool   `json:"busy,omitempty"`
	Took string `json:"took,omitempty"`
}

func (o *options) describe(ctx context.Context) *machine {
	digest, _ := host.Digest(o.sallyport) // what is missing fails later
	return &machine{
		Date: time.Now().UTC().Format(time.DateTime) + " UTC", CPU: host.CPU(), Cores: runtime.NumCPU(), Memory: host.Memory(), Kernel: host.Kernel(), Load: host.Load(),
		Commit: host.Commit(ctx), Digest: digest[:min(16, len(digest))], Servers: o.servers, Seats: o.seats, Waits: o.waits,
	}
}

// head is what stands above the table.
func (m *machine) head() string {
	return fmt.Sprintf("# Workers next to a gateway that runs its programs itself (make bench-cluster)\n# %s, %d x %s, %s, Linux %s, load %s%s\n# commit %s, sallyport sha256 %s, NATS servers %d\n",
		m.Date, m.Cores, m.CPU, m.Memory, m.Kernel, m.Load, host.BusyNote(m.Busy), m.Commit, m.Digest, m.Servers)
}

// mayWrite says, before anything is measured, that a busy machine is none to measure on.
func (o *options) mayWrite(m *machine) (err error) {
	if o.out == "" {
		return nil
	}
	m.Busy, err = host.CheckLoad(m.Load, m.Cores, o.busy)
	return err
}

// notes says what the rows are.
func notes(rows []table.Row) string {
	var b strings.Builder
	fmt.Fprintln(&b, "# what the rows are:")
	for i, r := range rows {
		switch {
		case i+1 < len(rows) && rows[i+1].Note == r.Note:
			fmt.Fprintf(&b, "#   %s;\n", r.Case)
		default:
			fmt.Fprintf(&b, "#   %s: %s\n", r.Case, r.Note)
		}
	}
	fmt.Fprintf(&b, "# %s\n", table.Tally(rows))
	return b.String()
}

// write writes a line of JSON for the machine and for each row, the table, and the documents.
func (o *options) write(m *machine, rows []table.Row) error {
	return errors.Join(table.WriteResults(o.out+".jsonl", m, rows), o.show(m, rows))
}

// show writes the table and the documents.
func (o *options) show(m *machine, rows []table.Row) error {
	text := m.head() + table.Text(rows, true) + notes(rows) + "# took " + m.Took + "\n"
	err := os.WriteFile(o.out+".txt", []byte(text), 0o644) //nolint:gosec // results are for everybody
	if o.docs == "" {
		return err
	}
	return errors.Join(err, writeDocument(o.docs, m, rows))
}

// rewrite makes text and documents from FILE.jsonl.
func (o *options) rewrite() error {
	m, rows, err := readResults(o.out + ".jsonl")
	if err != nil {
		return err
	}
	return o.show(m, rows)
}

// readResults reads what write wrote.
func readResults(path string) (*machine, []table.Row, error) { return table.ReadResults[machine](path) }

// writeDocument writes losses and rows into the page, between its marks.
func writeDocument(folder string, m *machine, rows []table.Row) error {
	return doc.Replace(documentPath(folder), page, documentText(m, rows))
}

func documentPath(folder string) string { return filepath.Join(folder, "benchmarks", page+".md") }

// documentText returns what is written into the document.
func documentText(m *machine, rows []table.Row) string {
	return doc.Texts{Tables: losses(rows) + "\n" + tables(m, rows)}.Wrapped().Tables
}

// losses returns how many targets are met, and those that are missed.
func losses(rows []table.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s.\n", table.Tally(rows))
	for _, r := range rows {
		for _, bar := range r.Bars {
			if !bar.Met {
				fmt.Fprintf(&b, "- Missed: %s: %s %.4g, target %s %g.\n", r.Case, bar.What, bar.Got, bar.Sign(), bar.Limit)
			}
		}
	}
	return b.String()
}

// tables returns all rows.
func tables(m *machine, rows []table.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s at commit %s, on %d x %s with %s and Linux %s, load %s at the start%s, NATS servers: %d.\n\n%s",
		m.Date, m.Commit, m.Cores, m.CPU, m.Memory, m.Kernel, host.MeanLoad(m.Load), host.BusyNote(m.Busy), m.Servers, table.Heading)
	for _, r := range rows {
		b.WriteString(r.Line())
	}
	b.WriteString("\n")
	for i, r := range rows {
		if i == 0 || rows[i-1].Note != r.Note {
			fmt.Fprintf(&b, "- %s: %s.\n", r.Case, r.Note)
		}
	}
	return b.String()
}
