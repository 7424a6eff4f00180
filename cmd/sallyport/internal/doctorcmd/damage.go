package doctorcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/audit"
	"sallyport/internal/journal"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

const (
	// maxVerified is the size of the largest audit log that doctor verifies, in bytes.
	maxVerified = 128 << 20
	// maxJournal bounds how much of a journal is read.
	maxJournal = 64 << 20
	// journalDelay is how long a journal may end with half a record, because it is being written.
	journalDelay = time.Minute
)

// verifyAudit adds to the check of the audit log what is wrong with its records.
func verifyAudit(check *sandbox.Check, dir string) {
	if size(dir) > maxVerified {
		check.Detail += ", not verified because of its size (sallyport log verify)"
		return
	}
	report, err := audit.Verify(dir, nil)
	if err == nil && report.OK() {
		return
	}
	check.OK, check.Fix = false, "`sallyport log verify` shows all of it; compare with a sink or a backup; new records are still written"
	if err != nil {
		check.Detail += ": " + sanitize.Line(err.Error(), 200)
		return
	}
	check.Detail += ": " + cli.Count(len(report.Problems), "problem") + ", first " + sanitize.Line(report.Problems[0].String(), 200)
}

// size returns the size of the files of a folder, in bytes.
func size(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// checkJournals finds journals of executions that cannot be read to their end.
func (a *app) checkJournals() []finding {
	if a.DataDir() == "" {
		return nil
	}
	var damaged []string
	folder := filepath.Join(a.DataDir(), "executions")
	folders, _ := os.ReadDir(folder)
	for _, owner := range folders {
		dir := filepath.Join(folder, owner.Name())
		for _, id := range journal.List(dir) {
			if why := journalDamage(journal.Path(dir, id)); why != "" {
				damaged = append(damaged, sanitize.Line(id, 40)+" ("+why+")")
			}
		}
	}
	if len(damaged) == 0 {
		return nil
	}
	check := sandbox.Check{Name: "journals", OK: true, Warn: true, Detail: cli.Count(len(damaged), "execution") + " with a damaged journal: " + summarizeList(damaged)}
	check.Fix = "what it has lost cannot be resumed; other executions are not affected"
	return []finding{{Check: check}}
}

// journalDamage returns what is wrong with a journal, "" if nothing is.
func journalDamage(path string) string {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxJournal || time.Since(info.ModTime()) < journalDelay {
		return ""
	}
	found, err := journal.Peek(path, maxJournal)
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return "it cannot be read"
	case err == nil && found.Whole < info.Size():
		return fmt.Sprintf("%d of %d bytes can be read", found.Whole, info.Size())
	}
	return ""
}
