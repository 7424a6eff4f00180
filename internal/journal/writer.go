package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"sallyport/internal/filelock"
	"sallyport/internal/tool"
)

// DefaultResults is the default limit for the recorded results of one execution, in bytes. Results beyond it are marked as
// lost.
const DefaultResults = 64 << 20

// Options configure a writer; nil means all defaults.
type Options struct {
	// Results is how many bytes of results and arguments are recorded; 0 means [DefaultResults], less than 0 none.
	Results int64
	// Copy gets all that is written; nil is none.
	Copy Copy
}

// Writer writes the journal of a running execution. It is safe for concurrent use. After an error it writes nothing more: what
// it has written stays true as long as no call is made that Begin could not record.
type Writer struct {
	path string
	copy Copy

	mu        sync.Mutex
	file      *os.File
	buf       []byte
	calls     int
	remaining int64
	synced    bool // the folder's entry is on the disk
	broken    error
}

// errClosed is the error of a closed writer.
var errClosed = errors.New("the journal is closed")

// Create creates a journal with a header and the calls carried over from the previous one. It makes the folder if
// needed.
func Create(dir string, h Header, carried []Call, opts *Options) (*Writer, error) {
	room := int64(DefaultResults)
	if opts != nil && opts.Results != 0 {
		room = max(0, opts.Results)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of journals: %w", err)
	}
	path := Path(dir, h.ID)
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("create journal %s: %w", h.ID, fs.ErrExist)
	}
	early := filepath.Join(dir, "."+h.ID) // not visible until it is locked and has its header
	f, err := os.OpenFile(early, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	w := &Writer{path: early, file: f, remaining: room, copy: noCopy{}}
	if opts != nil && opts.Copy != nil {
		w.copy = opts.Copy
	}
	err = filelock.File(f)
	if err == nil {
		err = w.start(h, carried)
	}
	if err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		w.copy.Close()
		return nil, errors.Join(fmt.Errorf("create journal: %w", err), f.Close(), os.Remove(early))
	}
	w.path = path
	return w, nil
}

// start writes the header and the carried calls.
func (w *Writer) start(h Header, carried []Call) error {
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	w.buf = appendFrame([]byte(magic), isHeader, head)
	if err := w.append(); err != nil {
		return err
	}
	for _, c := range carried {
		w.calls++
		c.Number = w.calls
		if err := w.put(isCarried, c); err != nil {
			return err
		}
	}
	return nil
}

// put writes a call's record, with mu held or before the writer is shared.
func (w *Writer) put(kind byte, c Call, replaces ...int) error {
	l, bodies := recordOf(c)
	l.Replaces = replaces
	size := int64(0)
	for _, body := range bodies {
		size += int64(len(body))
	}
	if size > w.remaining && l.Result != nil {
		l.Result, l.Lost, bodies, size = nil, true, nil, 0
	}
	if given := int64(len(c.Args)); given > 0 && size+given <= w.remaining {
		l.Input, bodies, size = len(c.Args), append([][]byte{c.Args}, bodies...), size+given
	}
	if kind == isEnd || kind == isDecided { // the begin frame has it
		l.Tool, l.Definition, l.Arguments = "", "", ""
	}
	head, err := json.Marshal(l)
	if err != nil {
		return err
	}
	w.remaining -= size
	return w.write(kind, head, bodies...)
}

// write writes one frame with one system call.
func (w *Writer) write(kind byte, head []byte, bodies ...[]byte) error {
	const reuse = 1 << 20
	w.buf = appendFrame(w.buf[:0], kind, head, bodies...)
	err := w.append()
	if cap(w.buf) > reuse {
		w.buf = nil
	}
	return err
}

// append writes the buffer to the file, and then to the copy.
func (w *Writer) append() error {
	_, err := w.file.Write(w.buf)
	if err == nil {
		w.copy.Append(w.buf)
	}
	return err
}

// do writes with mu held, unless an earlier write has failed.
func (w *Writer) do(write func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	if err := write(); err != nil {
		w.broken = fmt.Errorf("write journal: %w", err)
		return w.broken
	}
	return nil
}

// Start describes a call that begins.
type Start struct {
	Tool tool.ID
	// Definition and Arguments are digests. Args are recorded unless they are nil or the limit is reached.
	Definition, Arguments string
	Args                  []byte
	// Replaces are the indexes, from 1, of the carried calls that it replaces. They are not carried further.
	Replaces []int
	// Sync makes Begin sync the journal to disk before it returns, so that the call is known after a loss of power.
	Sync bool
	// Fence makes Begin wait until the copy has the call, so that no other gateway has taken the execution over.
	Fence bool
}

// Begin records that a call is about to be sent to its upstream, and returns its number.
func (w *Writer) Begin(s Start) (number int, err error) {
	number, err = w.add(isBegin, Call{Tool: s.Tool, Definition: s.Definition, Arguments: s.Arguments, Args: s.Args, State: Begun}, s.Replaces...)
	if err == nil && s.Sync {
		err = w.do(w.sync)
	}
	if err == nil && s.Fence {
		err = w.Flush()
	}
	return number, err
}

// Flush returns when the copy has all that was written. The error is [ErrTaken] if another gateway has taken the execution over. Without
// a copy it does nothing.
func (w *Writer) Flush() error { return w.copy.Flush(true) }

// Confirm is as Flush, but does not begin a copy: without one, no gateway can take over an execution.
func (w *Writer) Confirm() error { return w.copy.Flush(false) }

// sync syncs the file to disk, and the first time its folder's entry too. It is called with mu held.
func (w *Writer) sync() error {
	if err := w.file.Sync(); err != nil || w.synced {
		return err
	}
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return err
	}
	err = errors.Join(dir.Sync(), dir.Close())
	w.synced = err == nil
	return err
}

// Decide records a person's decision about a carried call, by its index, from 1: the call's result or error from now
// on. The record is on disk when Decide returns.
func (w *Writer) Decide(carried int, decision Decision, result tool.Result, failed *tool.Error) error {
	err := w.do(func() error {
		if err := w.put(isDecided, Call{Number: carried, State: Ended, Decision: decision, Result: result, Err: failed}); err != nil {
			return err
		}
		return w.sync()
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

// Skip records a call that a person has decided not to make.
func (w *Writer) Skip(id tool.ID, definition, arguments string, failed *tool.Error) error {
	_, err := w.add(isRefused, Call{Tool: id, Definition: definition, Arguments: arguments, State: Ended, Decision: Skipped, Err: failed})
	return err
}

// Refuse records a call that was not sent to its upstream.
func (w *Writer) Refuse(id tool.ID, definition, arguments string, why *tool.Error) error {
	_, err := w.add(isRefused, Call{Tool: id, Definition: definition, Arguments: arguments, State: Refused, Err: why})
	return err
}

func (w *Writer) add(kind byte, c Call, replaces ...int) (number int, err error) {
	err = w.do(func() error {
		w.calls++
		number = w.calls
		c.Number = number
		return w.put(kind, c, replaces...)
	})
	return number, err
}

// End records the outcome of a call that had begun: a result, or an error if that is not nil.
func (w *Writer) End(number int, result tool.Result, failed *tool.Error) error {
	return w.do(func() error { return w.put(isEnd, Call{Number: number, State: Ended, Result: result, Err: failed}) })
}

// Task records the id of the task that a call that had begun became at its upstream.
func (w *Writer) Task(number int, id string) error {
	head, err := json.Marshal(callRecord{Number: number, Task: id})
	if err != nil {
		return err
	}
	return w.do(func() error { return w.write(isTask, head) })
}

// Request records that the program requested a carried over call, by its index among those, from 1.
func (w *Writer) Request(carried int) error {
	head, err := json.Marshal(callRecord{Number: carried})
	if err != nil {
		return err
	}
	return w.do(func() error { return w.write(isRequest, head) })
}

// EndProgram records the end of the program, with its record in JSON.
func (w *Writer) EndProgram(record json.RawMessage) error {
	if err := w.do(func() error { return w.write(isProgramEnd, record) }); err != nil {
		return err
	}
	return w.Confirm()
}

// Settle records that the execution's record is stored elsewhere, syncs the file and closes it. It can be resumed from
// now on.
func (w *Writer) Settle() error {
	err := w.do(func() error {
		if err := w.write(isSettled, nil); err != nil {
			return err
		}
		return w.file.Sync()
	})
	return errors.Join(err, w.Flush(), w.Close())
}

// SettleSuccess records that the program succeeded and that its record is stored elsewhere, and closes the file without a
// sync: a loss of power may lose this.
func (w *Writer) SettleSuccess() error {
	return errors.Join(w.do(func() error { return w.write(isSuccess, nil) }), w.Confirm(), w.Close())
}

// Contents returns what was written so far.
func (w *Writer) Contents() (c *Contents, err error) {
	err = w.do(func() (err error) {
		c, err = Peek(w.path, maxFile)
		return err
	})
	return c, err
}

// Close closes the file without removing it. It is idempotent.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.broken, errClosed) {
		return nil
	}
	w.broken = errClosed
	w.copy.Close()
	filelock.Unlock(w.file)
	return w.file.Close()
}

// Remove closes the file and removes it.
func (w *Writer) Remove() error {
	err := w.Close()
	if gone := os.Remove(w.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return errors.Join(err, w.copy.Remove())
}
