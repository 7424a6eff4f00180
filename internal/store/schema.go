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
	s := newStore(nil)
	s.open = func(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
		return openStream(ctx, e, dir, name, perSubject, limits)
	}
	s.openAlarms = func(ctx context.Context, name string) (alarmClock, error) { return e.openAlarms(ctx, name) }
	if from == 0 {
		if from, err = firstVersion, writeVersion(dir, firstVersion); err != nil {
			return err
		}
	}
	return runSteps(ctx, s, from, steps, func(version int) error { return writeVersion(dir, version) })
}

// runSteps runs the steps after a version, and records each with done.
func runSteps(ctx context.Context, s *Store, from int, steps []migration, done func(version int) error) error {
	for version := from; version < newest(steps); version++ {
		if err := steps[version-firstVersion](ctx, s); err != nil {
			return fmt.Errorf("bring records from version %d to %d: %w", version, version+1, err)
		}
		if err := done(version + 1); err != nil {
			return err
		}
	}
	return nil
}

// migrateShared is migrate for a store of several processes, which has its version in a bucket. Two processes may run the
// same step.
func migrateShared(ctx context.Context, s *Store, steps []migration) error {
	versions, err := s.Bucket("schema", Limits{Records: 10, Bytes: 1 << 20, Keep: true})
	if err != nil {
		return err
	}
	key := Key{"version"}
	from := firstVersion
	switch e, err := versions.Get(ctx, key); {
	case errors.Is(err, ErrNotFound):
		if _, err := versions.Put(ctx, key, strconv.AppendInt(nil, int64(from), 10)); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if from, err = strconv.Atoi(string(e.Value)); err != nil {
			return fmt.Errorf("%w: the version of the records is %.20q", ErrCorrupt, e.Value)
		}
	}
	if from > newest(steps) {
		return fmt.Errorf("%w: the store has version %d, and this program knows %d at most", ErrNewer, from, newest(steps))
	}
	return runSteps(ctx, s, from, steps, func(version int) error {
		_, err := versions.Put(ctx, key, strconv.AppendInt(nil, int64(version), 10))
		return err
	})
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
