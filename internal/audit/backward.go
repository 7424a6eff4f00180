package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
)

// blockSize is how much of a file is read at once from its end, in bytes.
const blockSize = 64 << 10

// ReadBackward yields the records of a directory with a number below before (0: all records), the newest first. Newer records are
// skipped without decoding. It holds one record in memory, however long the log is. A line that is not a record comes with
// an error that is an ErrDamaged, and the walk continues; another error ends it.
func ReadBackward(dir string, before uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		all, err := segments(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Record{}, err)
			return
		}
		for _, s := range slices.Backward(all) {
			if before > 0 && s.first >= before {
				continue
			}
			if !readBackward(s, before, yield) {
				return
			}
		}
	}
}

// readBackward yields the records of one file, and reports whether to continue with the file before it.
func readBackward(s segment, before uint64, yield func(Record, error) bool) bool {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) { // it was pruned, and so were all before it
		return false
	}
	if err != nil {
		yield(Record{}, err)
		return false
	}
	defer func() { _ = f.Close() }()
	lines, err := newReverseLines(f)
	for err == nil {
		var line []byte
		if line, err = lines.next(); err != nil {
			break
		}
		if seq, ok := seqOf(line); ok && before > 0 && seq >= before {
			continue
		}
		record, wrong := decode(line)
		if wrong != nil {
			wrong = fmt.Errorf("%w: %s: %w", ErrDamaged, s.path, wrong)
		}
		if !yield(record, wrong) {
			return false
		}
	}
	if !errors.Is(err, io.EOF) {
		yield(Record{}, fmt.Errorf("read %s: %w", s.path, err))
		return false
	}
	return true
}

// seqOf returns the record number at the beginning of a line.
func seqOf(line []byte) (seq uint64, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	end := bytes.IndexByte(rest, ',')
	if !ok || end < 1 || end > 20 {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(rest[:end]), 10, 64)
	return seq, err == nil
}

// reverseLines reads the complete lines of a file, the last first. It ignores what follows the last newline. Of a line that is
// longer than any record it returns only the end.
type reverseLines struct {
	file       *os.File
	at         int64  // offset; the bytes before it are unread
	rest       []byte // bytes that were read and not returned
	unscanned  int    // length of the part of rest that may have newlines
	terminated bool   // a newline follows rest
}

func newReverseLines(f *os.File) (*reverseLines, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &reverseLines{file: f, at: info.Size()}, nil
}

// next returns the line before the one it returned last. It returns io.EOF if there is none.
func (b *reverseLines) next() ([]byte, error) {
	for {
		line, whole := b.rest, b.terminated
		if cut := bytes.LastIndexByte(b.rest[:b.unscanned], '\n'); cut >= 0 {
			line, b.rest, b.unscanned, b.terminated = b.rest[cut+1:], b.rest[:cut], cut, true
		} else if b.at > 0 {
			if err := b.read(); err != nil {
				return nil, err
			}
			continue
		} else if b.terminated = false; !whole {
			return nil, io.EOF
		}
		if whole {
			return line, nil
		}
	}
}

// read reads the block before rest and prepends it.
func (b *reverseLines) read() error {
	n := min(blockSize, b.at)
	block := make([]byte, n, int(n)+len(b.rest))
	if _, err := io.ReadFull(io.NewSectionReader(b.file, b.at-n, n), block); err != nil {
		return err
	}
	b.rest = append(block, b.rest[max(0, len(b.rest)-2*maxLine):]...)
	b.at, b.unscanned = b.at-n, int(n)
	return nil
}
