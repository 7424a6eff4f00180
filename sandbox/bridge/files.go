package bridge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"regexp"
	"slices"

	"github.com/gorilla/websocket"

	"sallyport/internal/workspace"
)

// Workspace keeps the files of /workspace from one program to the next. Its
// methods may be called by several programs at once.
type Workspace interface {
	// Files returns what it holds, folders before what is in them, without content. An error
	// with a path says why that one is left out; without a path it is the end.
	Files() iter.Seq2[workspace.File, error]
	// Open returns one of the files with its content, which must be closed.
	Open(path string) (workspace.File, error)
	// Update takes what a program left: what is new, has changed or is gone. All of it is
	// untrusted; what cannot be taken is in the notes and does no harm to the rest. An error
	// of the changes ends them: what came before is taken, and the error returned.
	Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error)
}

// Room is how much a guest may hand over of /workspace.
type Room struct {
	// Bytes is the size of all files that have changed, Files how many files and folders there may be.
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
}

func (r Room) withDefaults() Room {
	return Room{Bytes: cmp.Or(r.Bytes, 256<<20), Files: cmp.Or(r.Files, 50_000)}
}

const (
	// fileChunk is about how long a message with contents is, fileBatch how many entries a frame has.
	fileChunk = 1 << 20
	fileBatch = 500
	// maxEntries times the files that there may be is how many entries are read: each may come and another go.
	maxEntries = 2
	// maxPaths bounds the frames about files of one program together, in bytes.
	maxPaths = 64 << 20
)

// entry is one file in a frame "files".
type entry struct {
	Path       string `json:"path"`
	Size       int64  `json:"size,omitempty"`
	Folder     bool   `json:"folder,omitempty"`
	Executable bool   `json:"executable,omitempty"`
	// Gone says that it is there no longer.
	Gone bool `json:"gone,omitempty"`
	// Skipped says why it stays where it is.
	Skipped string `json:"skipped,omitempty"`
}

// filesFrame is what either side says of files. The contents follow in binary messages, one after the other.
type filesFrame struct {
	Type    string  `json:"type"`
	Entries []entry `json:"entries"`
}

// replica is what a guest has of a workspace: the versions of files, "" of folders.
type replica struct {
	versions map[string]string
	clock    string
}

// request is what a reader is asked for, in a sandbox after its program was stopped.
type request struct {
	Room
	// Clock is the guest's time, in ns, of the newest change that the host knows.
	Clock string `json:"clock"`
	// Known are the files that the guest had, Folders its folders.
	Known   []string `json:"known"`
	Folders []string `json:"folders"`
}

func (r *replica) request(room Room) request {
	q := request{Room: room.withDefaults(), Clock: cmp.Or(r.clock, "0"), Known: []string{}, Folders: []string{}}
	for path, version := range r.versions {
		if version == "" {
			q.Folders = append(q.Folders, path)
		} else {
			q.Known = append(q.Known, path)
		}
	}
	return q
}

// settle notes what has become of what a guest handed over.
func (r *replica) settle(taken []workspace.File, versions map[string]string) {
	for _, f := range taken {
		version, written := versions[f.Path]
		if f.Gone || !f.Folder && !written {
			delete(r.versions, f.Path)
		} else {
			r.versions[f.Path] = version
		}
	}
}

var ticks = regexp.MustCompile(`^[0-9]{1,19}$`)

// tick notes the time up to which the guest's changes are known.
func (r *replica) tick(clock string) {
	if ticks.MatchString(clock) {
		r.clock = clock
	}
}

// outgoing sends files to a guest, many small ones in one frame.
type outgoing struct {
	send     func(kind int, data []byte) error // the error is ErrClosed
	entries  []entry
	contents bytes.Buffer
}

// send hands over what the guest does not have yet, and says what is gone.
func (r *replica) send(ws Workspace, out *outgoing, notes *workspace.Notes) error {
	seen := map[string]bool{}
	for f, err := range ws.Files() {
		if f.Path == "" {
			return err
		}
		if err == nil {
			seen[f.Path] = true
			err = r.offer(ws, f, out)
		}
		if errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			notes.Add(f.Path, err.Error())
		}
	}
	gone := slices.Sorted(maps.Keys(r.versions))
	for _, path := range slices.Backward(gone) { // what is in a folder before the folder
		if seen[path] {
			continue
		}
		delete(r.versions, path)
		if err := out.add(entry{Path: path, Gone: true}); err != nil {
			return err
		}
	}
	return out.flush()
}

func (r *replica) offer(ws Workspace, f workspace.File, out *outgoing) error {
	if version, has := r.versions[f.Path]; has && version == f.Version {
		return nil
	}
	if f.Folder {
		r.versions[f.Path] = ""
		return out.add(entry{Path: f.Path, Folder: true})
	}
	opened, err := ws.Open(f.Path)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Content.Close() }()
	r.versions[f.Path] = opened.Version
	return out.file(opened)
}

func (o *outgoing) add(e entry) error {
	o.entries = append(o.entries, e)
	if len(o.entries) >= fileBatch || o.contents.Len() >= fileChunk {
		return o.flush()
	}
	return nil
}

func (o *outgoing) flush() error {
	if len(o.entries) == 0 {
		return nil
	}
	frame, err := appendJSON(nil, filesFrame{"files", o.entries})
	if err != nil {
		return err
	}
	o.entries = o.entries[:0]
	err = o.send(websocket.TextMessage, frame)
	if err == nil && o.contents.Len() > 0 {
		err = o.send(websocket.BinaryMessage, o.contents.Bytes())
	}
	o.contents.Reset()
	return err
}

// file sends one file, of exactly the announced size: what is missing by now is zeros.
func (o *outgoing) file(f workspace.File) error {
	e := entry{Path: f.Path, Size: f.Size, Executable: f.Executable}
	content := io.MultiReader(f.Content, zeros{})
	if f.Size < fileChunk {
		_, _ = io.CopyN(&o.contents, content, f.Size)
		return o.add(e)
	}
	if err := errors.Join(o.flush(), o.add(e), o.flush()); err != nil {
		return err
	}
	chunk := make([]byte, fileChunk)
	for left := f.Size; left > 0; left -= int64(len(chunk)) {
		chunk = chunk[:min(left, fileChunk)]
		_, _ = io.ReadFull(content, chunk)
		if err := o.send(websocket.BinaryMessage, chunk); err != nil {
			return err
		}
	}
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// entriesOf reads the entries of a frame one by one: they could be far larger in memory than in JSON.
func entriesOf(raw json.RawMessage, most int) ([]entry, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
		return nil, errNoFiles
	}
	var entries []entry
	for decoder.More() {
		var e entry
		if err := decoder.Decode(&e); err != nil || len(entries) == most || e.Size < 0 {
			return nil, errNoFiles
		}
		entries = append(entries, e)
	}
	return entries, nil
}

var errNoFiles = fmt.Errorf("%w: it did not keep to the frames about files", ErrClosed)
