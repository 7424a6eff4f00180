package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// damagedFolder holds the original blocks in which damage was found, and the list of lost records.
const (
	damagedFolder = "damaged"
	damagedList   = "list.jsonl"
)

// Damage describes a record that cannot be read any more.
type Damage struct {
	// Found is when the damage was detected.
	Found time.Time `json:"found"`
	// Place is the name of its bucket or log, prefixed with the kind: "bucket_approvals".
	Place string `json:"place"`
	// Key and Revision identify the record, nil and 0 if they cannot be read either.
	Key      Key    `json:"key,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Restored means that the record was reconstructed: nothing is lost.
	Restored bool `json:"restored,omitempty"`
	// Whole means that nothing of the place can be read.
	Whole bool `json:"whole,omitempty"`
}

// String describes what was lost.
func (d Damage) String() string {
	switch {
	case d.Whole:
		return "all of " + d.Place
	case d.Key == nil:
		return fmt.Sprintf("a record of %s (revision %d, its key cannot be read)", d.Place, d.Revision)
	}
	return fmt.Sprintf("%s %s", d.Place, strings.Join(d.Key, "/"))
}

// ListDamage returns all damage found when the directory was opened, now and earlier. To clear the list, remove the
// folder "damaged" in the directory.
func (s *Store) ListDamage(ctx context.Context) ([]Damage, error) {
	if err := s.wait(ctx); err != nil || s.dir == "" {
		return nil, err
	}
	return readDamage(s.dir)
}

// Check searches a directory for damage, whether or not a store has it open, and changes nothing. The result includes
// what ListDamage returns. A directory without records has no damage.
func Check(ctx context.Context, dir string) ([]Damage, error) {
	known, err := readDamage(dir)
	if err != nil {
		return nil, err
	}
	var found []Damage
	for range copyTries { // a concurrent write may look torn
		if found, err = scan(ctx, dir, nil); err != nil || len(found) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return append(known, found...), err
}

func readDamage(dir string) (all []Damage, err error) {
	data, err := os.ReadFile(filepath.Join(dir, damagedFolder, damagedList))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read damage: %w", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var d Damage
		if json.Unmarshal(lines.Bytes(), &d) == nil {
			all = append(all, d)
		}
	}
	return all, nil
}

// repair finds damage before the engine does, which would drop the rest of a block after it: it keeps the rest of each
// block, and moves the original block to damagedFolder.
func repair(ctx context.Context, dir string) ([]Damage, error) {
	found, err := scan(ctx, dir, func(block string, sound []byte) error { return replaceBlock(dir, block, sound) })
	if err == nil {
		err = noteDamage(dir, found)
	}
	if err != nil {
		return nil, fmt.Errorf("mend records: %w", err)
	}
	return found, nil
}

// noteDamage adds to the list of lost records, unless the place is listed already.
func noteDamage(dir string, found []Damage) error {
	known, err := readDamage(dir)
	if err != nil {
		return err
	}
	whole := map[string]bool{}
	for _, d := range known {
		whole[d.Place] = whole[d.Place] || d.Whole
	}
	var text []byte
	for _, d := range found {
		if d.Whole && whole[d.Place] {
			continue
		}
		line, err := json.Marshal(d)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	if len(text) == 0 {
		return nil
	}
	folder := filepath.Join(dir, damagedFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	before, err := os.ReadFile(filepath.Join(folder, damagedList))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeFile(filepath.Join(folder, damagedList), append(before, text...))
}

// replaceBlock moves a block to damagedFolder, and writes its sound records in its place.
func replaceBlock(dir, block string, sound []byte) error {
	stream := filepath.Base(filepath.Dir(filepath.Dir(block)))
	aside := filepath.Join(dir, damagedFolder, fmt.Sprintf("%s-%s-%d", stream, filepath.Base(block), time.Now().UnixNano()))
	data, err := os.ReadFile(block)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
		return err
	}
	if err := writeFile(aside, data); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(filepath.Dir(block), "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) { // the engine rebuilds it from the blocks
		return err
	}
	if len(sound) == 0 {
		return os.Remove(block)
	}
	return writeFile(block, sound)
}

// scan reads all blocks of a directory, and calls replace, unless it is nil, with the sound records of each damaged
// one.
func scan(ctx context.Context, dir string, replace func(block string, sound []byte) error) (all []Damage, err error) {
	streams, err := filepath.Glob(filepath.Join(dir, engineFolder, "jetstream", "*", "streams", "*"))
	if err != nil {
		return nil, err
	}
	for _, folder := range streams {
		if replace != nil {
			if err := completeMetadata(dir, folder); err != nil {
				return nil, err
			}
		}
		found, err := scanStream(ctx, folder, replace)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	lost, err := lostStreams(dir, streams, replace != nil)
	return append(all, lost...), err
}

// lostStreams returns the streams that were created but that the engine will not open. With restore, it restores
// their metadata.
func lostStreams(dir string, streams []string, restore bool) (all []Damage, err error) {
	made, err := os.ReadDir(filepath.Join(dir, madeFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, mark := range made {
		at := slices.IndexFunc(streams, func(folder string) bool { return filepath.Base(folder) == mark.Name() })
		if isPartial(mark.Name()) || at >= 0 && (hasMetadata(streams[at]) || isUnfinished(dir, streams[at])) {
			continue
		}
		d := Damage{Found: time.Now().UTC(), Place: mark.Name(), Whole: true}
		if at >= 0 {
			d.Restored, err = restoreMetadata(filepath.Join(dir, madeFolder, mark.Name()), streams[at], restore)
		}
		all = append(all, d)
	}
	return all, err
}
