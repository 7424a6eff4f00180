package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scanner scans the blocks of one stream.
type scanner struct {
	stream  string
	newest  map[string]uint64 // the highest sound number of each subject
	removed map[uint64]bool
	before  uint64 // the highest number so far
	lost    []lostRecord
	dirty   bool // a block has bytes besides its sound records
}

// lostRecord is a damaged record.
type lostRecord struct {
	subject  string // "" if unknown
	number   uint64
	restored bool
}

// scanStream reads the blocks of a stream, and calls replace, unless it is nil, with the sound records of damaged
// ones.
func scanStream(ctx context.Context, folder string, replace func(block string, sound []byte) error) ([]Damage, error) {
	blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(blocks, func(a, b string) int {
		return cmp.Compare(blockNumber(filepath.Base(a)), blockNumber(filepath.Base(b)))
	})
	first := &scanner{stream: filepath.Base(folder), newest: map[string]uint64{}, removed: map[uint64]bool{}}
	if err := first.each(ctx, blocks, nil, nil); err != nil || !first.dirty {
		return nil, err
	}
	if replace != nil {
		again := &scanner{stream: first.stream, newest: map[string]uint64{}, removed: map[uint64]bool{}}
		err = again.each(ctx, blocks, first.older(), replace)
	}
	return first.damage(), err
}

// each reads the blocks in order.
func (s *scanner) each(ctx context.Context, blocks []string, older map[string]uint64, replace func(block string, sound []byte) error) error {
	for i, block := range blocks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		data, err := os.ReadFile(block)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return err
		}
		b := newBlockReader(s.stream, blockNumber(filepath.Base(block)), data)
		sound := s.block(b, i == len(blocks)-1, older)
		if bytes.Equal(sound, data) {
			continue
		}
		s.dirty = true
		if replace != nil {
			if err := replace(block, sound); err != nil {
				return err
			}
		}
	}
	return nil
}

// block reads one block, and returns its sound records, without those of the subjects in older up to these numbers. A
// half-written record at the end of the last block, left by a crash, is not damage.
func (s *scanner) block(b *blockReader, last bool, older map[string]uint64) (sound []byte) {
	sound = make([]byte, 0, len(b.data))
	keep := func(r blockRecord, data []byte) {
		if s.note(r); r.isMark() || r.number >= older[r.subject] {
			sound = append(sound, data...)
		}
	}
	for offset := 0; offset < len(b.data); {
		if r, ok := b.at(offset); ok {
			keep(r, b.data[offset:offset+r.size])
			offset += r.size
			continue
		}
		end := b.next(offset)
		region := b.data[offset:end]
		parts := [][]byte{region}
		if fixed, _ := b.restore(region); fixed == nil {
			if last && end == len(b.data) && torn(region) {
				return append(sound, region...)
			}
			parts = b.split(region)
		}
		after, _ := b.at(end)
		s.repair(b, parts, after, keep)
		offset = end
	}
	return sound
}

// repair restores the damaged records before a sound one, or records their loss.
func (s *scanner) repair(b *blockReader, parts [][]byte, after blockRecord, keep func(blockRecord, []byte)) {
	for _, part := range parts {
		fixed, r := b.restore(part)
		if fixed == nil {
			s.recordLoss(b, part, after)
			continue
		}
		s.lost = append(s.lost, lostRecord{r.subject, r.plainNumber(), true})
		keep(r, fixed)
	}
}

// note records a sound record.
func (s *scanner) note(r blockRecord) {
	if r.isMark() {
		s.removed[r.plainNumber()] = true
		return
	}
	s.newest[r.subject] = max(s.newest[r.subject], r.number)
	s.before = max(s.before, r.number)
}

// recordLoss records the loss of a damaged record before another one.
func (s *scanner) recordLoss(b *blockReader, data []byte, after blockRecord) {
	l := lostRecord{subject: b.subjectIn(data), number: s.before + 1}
	if len(data) >= recordHead {
		said := binary.LittleEndian.Uint64(data[4:])
		if said&tombstoneBit != 0 && len(data) == emptySize {
			return // it was a tombstone
		}
		fits := after.size == 0 || after.isMark() || said < after.number
		if l.subject != "" && said > s.before && fits && said < s.before+1<<32 {
			l.number = said
		}
	}
	s.before = l.number
	s.lost = append(s.lost, l)
}

// keepsOne reports whether a later record of a subject replaces earlier ones.
func (s *scanner) keepsOne() bool {
	return strings.HasPrefix(s.stream, "bucket_") || strings.HasPrefix(s.stream, "schedule_")
}

// superseded reports whether a record was replaced by a later one.
func (s *scanner) superseded(l lostRecord) bool {
	return s.removed[l.number] || s.keepsOne() && s.newest[l.subject] > l.number
}

// older returns the numbers below which records of a subject must not reappear because its last one is lost: an old
// value would become current again.
func (s *scanner) older() map[string]uint64 {
	older := map[string]uint64{}
	for _, l := range s.lost {
		if s.keepsOne() && !l.restored && l.subject != "" && !s.superseded(l) {
			older[l.subject] = max(older[l.subject], l.number)
		}
	}
	return older
}

// damage returns the lost records that had not been replaced or removed.
func (s *scanner) damage() (all []Damage) {
	for _, l := range s.lost {
		if s.superseded(l) || strings.HasPrefix(s.stream, "alarm_") { // alarms are restored from the schedules
			continue
		}
		d := Damage{Found: time.Now().UTC(), Place: s.stream, Revision: l.number, Restored: l.restored}
		if encoded, ok := strings.CutPrefix(l.subject, s.stream+"."); ok {
			d.Key, _ = decodeKey(encoded) // empty if it cannot be read either
		}
		all = append(all, d)
	}
	return all
}

// next returns the offset of the first record after a damaged one (its length may be wrong, too), or of the end.
func (b *blockReader) next(offset int) int {
	for at := offset + emptySize; at+emptySize <= len(b.data); at++ {
		if _, ok := b.at(at); ok {
			return at
		}
	}
	return len(b.data)
}

// split divides a damaged region at probable starts of records.
func (b *blockReader) split(region []byte) (parts [][]byte) {
	prefix, from := []byte(b.stream+"."), 0
	for at := emptySize; ; at++ {
		found := bytes.Index(region[min(at, len(region)):], prefix)
		if found < 0 {
			return append(parts, region[from:])
		}
		if at += found; at-recordHead >= from+emptySize {
			parts, from = append(parts, region[from:at-recordHead]), at-recordHead
		}
	}
}

// torn reports whether a region is an incomplete record left by a crash: shorter than its length, or only zeros.
func torn(region []byte) bool {
	if len(region) < emptySize || len(bytes.Trim(region, "\x00")) == 0 {
		return true
	}
	size := binary.LittleEndian.Uint32(region) &^ headersBit
	return int(size) > len(region) && size <= maxOnDisk
}
