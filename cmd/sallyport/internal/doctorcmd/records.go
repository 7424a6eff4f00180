package doctorcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/history"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/sandbox"
)

// recordDelay is the longest delay of a record between the audit log and the store.
const recordDelay = 5 * time.Second

// checkRecords finds damaged records, and records of the audit log that are missing in the store.
func (a *app) checkRecords(ctx context.Context, cfg *config.Config) []finding {
	dir := filepath.Join(a.DataDir(), cli.RecordsFolder)
	if _, err := os.Stat(dir); a.DataDir() == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, _, err := store.Version(dir); err != nil {
		return []finding{recordsProblem(err)}
	}
	began := time.Now()
	all, err := store.Check(ctx, dir)
	if err != nil {
		return []finding{recordsProblem(err)}
	}
	found, fresh := damageFinding(dir, all, began)
	if fresh { // a copy is not meaningful before the repair
		return found
	}
	missing, err := a.missingRecords(ctx, cfg.Records.Keep)
	if err != nil {
		return append(found, recordsProblem(err))
	}
	return append(found, missing)
}

func recordsProblem(err error) finding {
	fix := "restore a backup (sallyport restore FILE), or check the permissions of the data directory"
	if errors.Is(err, store.ErrNewer) {
		fix = cli.NewerFix
	}
	return finding{Check: sandbox.Check{Name: "records", Detail: sanitize.Line(err.Error(), 300), Fix: fix}}
}

// damageFinding reports damaged records. Fresh reports that no gateway has repaired them yet.
func damageFinding(dir string, all []store.Damage, began time.Time) (found []finding, fresh bool) {
	var lost []string
	for _, d := range all {
		if d.Restored {
			continue
		}
		lost = append(lost, sanitize.Line(d.String(), 120))
		fresh = fresh || !d.Found.Before(began)
	}
	if len(lost) == 0 {
		return nil, false
	}
	check := sandbox.Check{Name: "damaged records", OK: !fresh, Warn: true, Detail: cli.Count(len(lost), "record") + ": " + summarizeList(lost)}
	check.Fix = "start sallyport serve: it restores what the journals, run logs and the audit log have, and lists the rest"
	if !fresh {
		check.Fix = "everything possible was restored; remove " + filepath.Join(dir, "damaged") + " to forget the rest, or restore a backup"
	}
	return []finding{{Check: check}}, fresh
}

// summarizeList returns the first items of a list, and how many more there are.
func summarizeList(list []string) string {
	const shown = 8
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}

// missingRecords compares the records with the audit log, and workflow runs with their list.
func (a *app) missingRecords(ctx context.Context, keep time.Duration) (finding, error) {
	missing, names, err := a.compareRecords(ctx, keep)
	if err == nil && anyRecent(missing) { // they may not have reached the store yet
		time.Sleep(recordDelay)
		_, names, err = a.compareRecords(ctx, keep)
	}
	check := sandbox.Check{Name: "records", OK: true, Detail: "all records of the audit log are present"}
	if len(names) > 0 {
		check.Warn, check.Detail = true, "missing: "+summarizeList(names)
		check.Fix = "they are lost unless a backup has them; a call with a missing approval asks again"
	}
	return finding{Check: check}, err
}

func anyRecent(m history.Missing) bool {
	for _, list := range [][]audit.Event{m.Executions, m.Approvals} {
		for _, e := range list {
			if time.Since(e.Time) < recordDelay {
				return true
			}
		}
	}
	return false
}

// compareRecords returns the records that are missing in a copy of the store, and their names.
func (a *app) compareRecords(ctx context.Context, keep time.Duration) (missing history.Missing, names []string, err error) {
	records, done, err := a.CopyRecords(ctx)
	defer func() { err = errors.Join(err, done()) }()
	if records == nil || err != nil {
		return missing, nil, err
	}
	if missing, err = history.FindMissing(ctx, a.DataDir(), keep, records); err != nil {
		return missing, nil, err
	}
	runs, err := runlog.Open(records)
	if err != nil {
		return missing, nil, err
	}
	unlisted, empty, err := runs.Missing(ctx)
	return missing, missingNames(missing, unlisted, empty), err
}

func missingNames(m history.Missing, unlisted, empty []string) (names []string) {
	for _, e := range m.Approvals {
		names = append(names, fmt.Sprintf("approval %s (%s, of execution %s)", sanitize.Line(e.Approval, 40), sanitize.Line(e.Tool, 80), sanitize.Line(e.Execution, 40)))
	}
	for _, e := range m.Executions {
		names = append(names, "execution "+sanitize.Line(e.Execution, 40))
	}
	for _, id := range unlisted {
		names = append(names, "the list entry of run "+id)
	}
	for _, id := range empty {
		names = append(names, "the log of run "+id)
	}
	return names
}
