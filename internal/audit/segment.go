package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A segment is a file of records, named by the number of its first record. Only the last one is written to. The others
// are read-only, by which other processes notice that there is a next one.
const (
	segmentPrefix = "records-"
	segmentSuffix = ".jsonl"
)

// segment is one file of records.
type segment struct {
	path  string
	first uint64
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%016d%s", segmentPrefix, first, segmentSuffix))
}

// segments returns the files of records, the oldest first.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, e := range entries {
		number, ok := strings.CutSuffix(strings.TrimPrefix(e.Name(), segmentPrefix), segmentSuffix)
		first, err := strconv.ParseUint(number, 10, 64)
		if ok && err == nil && e.Type().IsRegular() && e.Name() == filepath.Base(segmentPath(dir, first)) {
			all = append(all, segment{filepath.Join(dir, e.Name()), first})
		}
	}
	slices.SortFunc(all, func(a, b segment) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// end is the last record of a log: its number and hash.
type end struct {
	seq  uint64
	hash string
}

// tornTail describes an incomplete record at the end of a segment, after a crash.
type tornTail struct {
	bytes int64
	sum   string
}

// lastRecord reads the end of a segment: its last record, the size of all complete records, and what follows them. The
// error is io.EOF if the segment has no record.
func lastRecord(path string) (last Record, size int64, rest tornTail, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Record{}, 0, tornTail{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Record{}, 0, tornTail{}, err
	}
	var data []byte
	from := info.Size()
	for window := int64(16 << 10); from > 0 && bytes.Count(data, []byte("\n")) < 2 && window <= 2*maxLine; window *= 8 {
		from = max(0, info.Size()-window)
		if data, err = io.ReadAll(io.NewSectionReader(f, from, info.Size()-from)); err != nil {
			return Record{}, 0, tornTail{}, err
		}
	}
	cut := bytes.LastIndexByte(data, '\n') + 1
	if cut < len(data) {
		rest = tornTail{int64(len(data) - cut), sum(string(data[cut:]))}
	}
	size = from + int64(cut)
	if size == 0 {
		return Record{}, 0, rest, io.EOF
	}
	line := data[:max(0, cut-1)]
	last, err = decode(line[bytes.LastIndexByte(line, '\n')+1:])
	if err != nil {
		err = fmt.Errorf("%w: the last record of %s: %w", ErrDamaged, path, err)
	}
	return last, size, rest, err
}

// findEnd returns the end of the log in a directory, its last segment, the size of the complete records in it, and what follows them.
func findEnd(dir string) (at end, in segment, size int64, rest tornTail, err error) {
	all, err := segments(dir)
	if err != nil {
		return end{}, segment{}, 0, tornTail{}, err
	}
	at = end{0, noHash}
	for i, s := range slices.Backward(all) {
		last, bytes, behind, err := lastRecord(s.path)
		if i == len(all)-1 {
			in, size, rest = s, bytes, behind
		}
		if errors.Is(err, io.EOF) {
			continue // a crash came before its first record
		}
		if err != nil {
			return end{}, segment{}, 0, tornTail{}, err
		}
		return end{last.Seq, last.Hash}, in, size, rest, nil
	}
	return at, in, size, rest, nil
}

// sealed reports whether a segment is complete, so that it is read-only.
func sealed(info fs.FileInfo) bool { return info.Mode().Perm()&0o200 == 0 }
