package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
)

// migration migrates the store from one schema version to the next. An interrupted step is rerun from its start, so it
// must be idempotent.
type migration func(ctx context.Context, s *Store) error

// firstVersion is the version of the records of the first release.
const firstVersion = 1

// migrations returns the steps from firstVersion to the current version: there are none yet. To change the schema, add a
// step at the end. TestVersions then needs records of the version before it.
func migrations() []migration { return nil }

// newest returns the version that the steps lead to.
func newest(steps []migration) int { return firstVersion + len(steps) }

// migrationTime is the timeout of all steps together.
const migrationTime = 10 * time.Minute

// checkVersion rejects a directory that a newer version wrote.
func checkVersion(dir string, version int) error {
	found, err := schemaOf(dir)
	if err != nil {
		return err
	}
	if found > version {
		return fmt.Errorf("%w: %s has version %d, and this program knows %d at most", ErrNewer, dir, found, version)
	}
	return nil
}

// schemaOf returns the version of a directory, 0 for a new one.
func schemaOf(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, schemaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read schema: %w", err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || version < 0 {
		return 0, fmt.Errorf("%w: %s is no number", ErrCorrupt, filepath.Join(dir, schemaFile))
	}
	return version, nil
}

// migrate runs the missing steps, and records each when it is done. In a new directory it runs all of them.
func migrate(dir string, e *engine, steps []migration) error {
	from, err := schemaOf(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), migrationTime)
	defer cancel()
	s := &Store{streams: map[string]stream{}, alarmClocks: map[string]alarmClock{}, wait: func(context.Context) error { return nil }, stop: func() error { return nil }}
	s.open = func(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
		return openStream(ctx, e, dir, name, perSubject, limits)
	}
	s.openAlarms = func(ctx context.Context, name string) (alarmClock, error) { return e.openAlarms(ctx, name) }
	if from == 0 {
		if from, err = firstVersion, writeVersion(dir, firstVersion); err != nil {
			return err
		}
	}
	for version := from; version < newest(steps); version++ {
		if err := steps[version-firstVersion](ctx, s); err != nil {
			return fmt.Errorf("bring records from version %d to %d: %w", version, version+1, err)
		}
		if err := writeVersion(dir, version+1); err != nil {
			return err
		}
	}
	return nil
}

func writeVersion(dir string, version int) error {
	return writeFile(filepath.Join(dir, schemaFile), strconv.AppendInt(nil, int64(version), 10))
}

// writeFile replaces a file atomically and durably.
func writeFile(path string, data []byte) error { return atomicfile.Replace(path, data, 0o600) }

// isPartial reports whether a file is what a killed process left of [writeFile], which earlier versions named ".new".
func isPartial(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".new")
}
