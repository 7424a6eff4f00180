package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/filelock"
	"sallyport/internal/tool"
)

const extension = ".journal"

var validID = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// Path returns the path of an execution's journal in a folder. For an invalid id it is a path where no file is.
func Path(dir, id string) string {
	if !validID.MatchString(id) {
		return filepath.Join(dir, ".none"+extension)
	}
	return filepath.Join(dir, id+extension)
}

// Contents is a parsed journal.
type Contents struct {
	Header
	// Calls are in the order in which they began, carried over calls first.
	Calls []Call
	// Over is the record of the program's end; nil if it has not ended.
	Over json.RawMessage
	// Resumed is the execution that resumes this one, "" if none does.
	Resumed string
	// Kept: the execution's record is stored elsewhere.
	Kept bool
	// Whole is the length of the valid prefix of the file, in bytes: the rest is damaged or half a record.
	Whole int64
}

// Parse reads a journal. An error means that not even its header can be read.
func Parse(data []byte) (*Contents, error) {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: unknown format", ErrDamaged)
	}
	p := parser{Contents: Contents{Whole: int64(len(magic))}}
	for {
		f, n := nextFrame(data[p.Whole:])
		if n == 0 || p.take(f) != nil {
			break
		}
		p.Whole += int64(n)
	}
	if p.ID == "" {
		return nil, fmt.Errorf("%w: it has no header", ErrDamaged)
	}
	p.order()
	return &p.Contents, nil
}

// Peek reads a journal without locking it, also while it is being written. It reads at most most bytes. Errors are
// fs.ErrNotExist, ErrDamaged, or the system's.
func Peek(path string, most int64) (*Contents, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return Parse(data)
}

type parser struct {
	Contents
	frames    int
	lastBegin int   // the frame of the last beginning
	endFrames []int // by place in Calls: the frame of its end, 0 for none
	consumed  []bool
}

var errUnexpected = errors.New("a record that cannot be here")

// take applies one frame; the error means that the frame is invalid here.
func (p *parser) take(f frame) error {
	p.frames++
	if (f.kind == isHeader) != (p.ID == "") {
		return errUnexpected
	}
	switch f.kind {
	case isHeader:
		return decode(f.head, &p.Header)
	case isBegin, isRefused, isCarried:
		return p.begin(f)
	case isEnd:
		return p.end(f)
	case isTask:
		return p.task(f)
	case isRequest:
		return p.request(f)
	case isDecided:
		return p.decide(f)
	case isProgramEnd:
		if !json.Valid(f.head) {
			return errUnexpected
		}
		p.Over = f.head
	case isResumed:
		return decode(f.head, &p.Resumed)
	case isSettled, isSuccess:
		p.Kept = true
	default:
		return errUnexpected
	}
	return nil
}

func (p *parser) begin(f frame) error {
	var l callRecord
	if err := decode(f.head, &l); err != nil {
		return err
	}
	if l.Number != len(p.Calls)+1 || !slices.Contains([]State{Begun, Ended, Refused}, l.State) {
		return errUnexpected
	}
	c, err := callOf(l, f.rest)
	if err != nil {
		return err
	}
	if err := p.replace(l.Replaces); err != nil {
		return err
	}
	c.Asked = f.kind != isCarried
	if c.Asked {
		p.lastBegin = p.frames
	}
	ended := 0
	if c.State != Begun && c.Asked {
		ended = p.frames
	}
	p.Calls, p.endFrames, p.consumed = append(p.Calls, c), append(p.endFrames, ended), append(p.consumed, false)
	return nil
}

func (p *parser) end(f frame) error {
	var l callRecord
	if err := decode(f.head, &l); err != nil {
		return err
	}
	if l.Number < 1 || l.Number > len(p.Calls) || p.Calls[l.Number-1].State != Begun {
		return errUnexpected
	}
	c := &p.Calls[l.Number-1]
	c.State, p.endFrames[l.Number-1] = Ended, p.frames
	return c.setOutcome(l, f.rest)
}

func (p *parser) task(f frame) error {
	var l callRecord
	if err := decode(f.head, &l); err != nil {
		return err
	}
	if l.Number < 1 || l.Number > len(p.Calls) || p.Calls[l.Number-1].State != Begun {
		return errUnexpected
	}
	p.Calls[l.Number-1].Task = l.Task
	return nil
}

func (p *parser) request(f frame) error {
	var l callRecord
	if err := decode(f.head, &l); err != nil {
		return err
	}
	if l.Number < 1 || l.Number > len(p.Calls) || p.Calls[l.Number-1].Asked {
		return errUnexpected
	}
	at := l.Number - 1
	p.Calls[at].Optional = false
	p.Calls[at].Asked, p.lastBegin, p.endFrames[at] = true, p.frames, p.frames
	return nil
}

// replace marks the carried calls that another call replaces.
func (p *parser) replace(places []int) error {
	for _, n := range places {
		if n < 1 || n > len(p.Calls) || p.consumed[n-1] {
			return errUnexpected
		}
		p.consumed[n-1] = true
	}
	return nil
}

// decide records a person's decision about a carried call.
func (p *parser) decide(f frame) error {
	var l callRecord
	if err := decode(f.head, &l); err != nil {
		return err
	}
	if l.Number < 1 || l.Number > len(p.Calls) || l.Decision != Done && l.Decision != Skipped {
		return errUnexpected
	}
	c := &p.Calls[l.Number-1]
	c.State, c.Result, c.Err = Ended, tool.Result{}, nil
	return c.setOutcome(l, f.rest)
}

// order sets Last for each call, and drops calls that were replaced.
func (p *parser) order() {
	var calls []Call
	for i, c := range p.Calls {
		if p.endFrames[i] > 0 {
			c.Last = p.endFrames[i] >= p.lastBegin
		}
		if !p.consumed[i] {
			calls = append(calls, c)
		}
	}
	p.Calls = calls
}

// File is the journal of an execution that is not running, locked until Close.
type File struct {
	*Contents
	file   *os.File
	path   string
	copy   Copy
	closed bool
}

// maxFile is the largest file that is read, in bytes.
const maxFile = 512 << 20

// Open reads and locks a journal. Errors are fs.ErrNotExist, ErrRunning, ErrDamaged, or the system's.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	file := &File{file: f, path: path, copy: noCopy{}}
	if err := file.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), file.Close())
	}
	return file, nil
}

func (f *File) read() error {
	data, err := f.lock()
	if err != nil {
		return err
	}
	f.Contents, err = Parse(data)
	return err
}

// lock locks the file, and returns what is in it.
func (f *File) lock() ([]byte, error) {
	if err := filelock.File(f.file); errors.Is(err, filelock.ErrBusy) {
		return nil, ErrRunning
	} else if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(f.path); err != nil { // the previous lock holder removed it
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f.file, maxFile))
}

// Resume records that another execution resumes this one; "" undoes that. It is on disk when Resume returns, before the other one can
// make a call: without it, after a loss of power, both could be resumed.
func (f *File) Resume(by string) error {
	head, err := json.Marshal(by)
	if err != nil {
		return err
	}
	f.Resumed = by
	err = f.write(isResumed, head)
	if errors.Is(err, ErrTaken) && f.isOnlySettled() {
		err = f.write(isResumed, head)
	}
	if err != nil {
		return err
	}
	return f.file.Sync()
}

// isOnlySettled loads the copy again, and reports whether another gateway has only written there that the execution is on record.
func (f *File) isOnlySettled() bool {
	loaded, err := f.copy.Load()
	if err != nil {
		return false
	}
	now, err := Parse(loaded.Data)
	return err == nil && now.Kept && !f.Kept && now.Resumed == "" && bytes.Equal(now.Over, f.Over) && len(now.Calls) == len(f.Calls)
}

// End records the end of an execution after its process died without doing so.
func (f *File) End(record json.RawMessage) error {
	f.Over = record
	return f.write(isProgramEnd, record)
}

// Settle records that the execution's record is stored elsewhere; well means that it needs no resume.
func (f *File) Settle(well bool) error {
	f.Kept = true
	if well {
		return f.write(isSuccess, nil)
	}
	return f.write(isSettled, nil)
}

// write appends a frame after the valid prefix.
func (f *File) write(kind byte, head []byte) error {
	data := appendFrame(nil, kind, head)
	f.copy.Append(data)
	if err := f.copy.Flush(true); err != nil {
		return fmt.Errorf("write copy of journal: %w", err)
	}
	if err := f.file.Truncate(f.Whole); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if _, err := f.file.Write(data); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	f.Whole += int64(len(data))
	return nil
}

// Remove closes and removes the file.
func (f *File) Remove() error {
	return errors.Join(os.Remove(f.path), f.copy.Remove(), f.Close())
}

// Close unlocks and closes the file.
func (f *File) Close() error {
	if !f.closed {
		filelock.Unlock(f.file)
		f.closed = true
	}
	return f.file.Close()
}

// List returns the ids of the journals in a folder, the latest file first; none where there is no folder.
func List(dir string) []string {
	entries, _ := os.ReadDir(dir) // a missing folder has none
	type one struct {
		id   string
		info fs.FileInfo
	}
	var all []one
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), extension)
		if info, err := e.Info(); ok && err == nil && info.Mode().IsRegular() && validID.MatchString(id) {
			all = append(all, one{id, info})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	ids := make([]string, len(all))
	for i, a := range all {
		ids[i] = a.id
	}
	return ids
}
