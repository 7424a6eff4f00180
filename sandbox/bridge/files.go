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
// methods must be safe for concurrent use.
type Workspace interface {
	// Files returns its files and folders, parents first, without content. An error with a
	// path says why that file is left out; an error without a path ends the sequence.
	Files() iter.Seq2[workspace.File, error]
	// Open returns one of the files with its content, which must be closed.
	Open(path string) (workspace.File, error)
	// Update applies a program's changes: new, changed and removed files. All of it is
	// untrusted. Files that cannot be stored are skipped and named in the notes. An error in
	// changes ends them: earlier changes are applied, and the error is returned.
	Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error)
}

// Quota bounds the changes of /workspace that a guest may send.
type Quota struct {
	// Bytes is the total size of changed files, Files the number of files and folders.
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
}

func (r Quota) withDefaults() Quota {
	return Quota{Bytes: cmp.Or(r.Bytes, 256<<20), Files: cmp.Or(r.Files, 50_000)}
}

const (
	// fileChunk is the approximate size of a message with contents in bytes, fileBatch the number of entries in a frame.
	fileChunk = 1 << 20
	fileBatch = 500
	// maxEntries times Files is the maximum number of entries: each file may be removed and another one added.
	maxEntries = 2
	// maxPaths is the maximum total size of one program's frames about files, in bytes.
	maxPaths = 64 << 20
)

// entry is one file in a frame "files".
type entry struct {
	Path       string `json:"path"`
	Size       int64  `json:"size,omitempty"`
	Folder     bool   `json:"folder,omitempty"`
	Executable bool   `json:"executable,omitempty"`
	// Gone means that it was removed.
	Gone bool `json:"gone,omitempty"`
	// Skipped is the reason why it is not sent.
	Skipped string `json:"skipped,omitempty"`
}

// filesFrame announces files, in either direction. The contents follow in binary messages, in order.
type filesFrame struct {
	Type    string  `json:"type"`
	Entries []entry `json:"entries"`
}

// replica tracks a guest's copy of a workspace: the versions of its files, "" for folders.
type replica struct {
	versions map[string]string
	clock    string
}

// rescueRequest asks a reader, in a sandbox whose program was stopped, for changed files.
type rescueRequest struct {
	Quota
	// Clock is the guest's time, in ns, of the newest change that the host knows.
	Clock string `json:"clock"`
	// Known are the guest's files as the host knows them, Folders its folders.
	Known   []string `json:"known"`
	Folders []string `json:"folders"`
}

func (r *replica) request(room Quota) rescueRequest {
	q := rescueRequest{Quota: room.withDefaults(), Clock: cmp.Or(r.clock, "0"), Known: []string{}, Folders: []string{}}
	for path, version := range r.versions {
		if version == "" {
			q.Folders = append(q.Folders, path)
		} else {
			q.Known = append(q.Known, path)
		}
	}
	return q
}

// recordVersions records the versions of the files that a guest sent, after the workspace's update.
func (r *replica) recordVersions(taken []workspace.File, versions map[string]string) {
	for _, f := range taken {
		version, written := versions[f.Path]
		if f.Gone || !f.Folder && !written {
			delete(r.versions, f.Path)
		} else {
			r.versions[f.Path] = version
		}
	}
}

var clockPattern = regexp.MustCompile(`^[0-9]{1,19}$`)

// setClock records the guest's time up to which its changes are known.
func (r *replica) setClock(clock string) {
	if clockPattern.MatchString(clock) {
		r.clock = clock
	}
}

// fileSender sends files to a guest, many small ones in one frame.
type fileSender struct {
	send     func(kind int, data []byte) error // the error is ErrClosed
	entries  []entry
	contents bytes.Buffer
}

// send sends the files that the guest does not have yet, and the removals.
func (r *replica) send(ws Workspace, out *fileSender, notes *workspace.Notes) error {
	seen := map[string]bool{}
	for f, err := range ws.Files() {
		if f.Path == "" {
			return err
		}
		if err == nil {
			seen[f.Path] = true
			err = r.sendFile(ws, f, out)
		}
		if errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			notes.Add(f.Path, err.Error())
		}
	}
	gone := slices.Sorted(maps.Keys(r.versions))
	for _, path := range slices.Backward(gone) { // the content of a folder before the folder
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

func (r *replica) sendFile(ws Workspace, f workspace.File, out *fileSender) error {
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

func (o *fileSender) add(e entry) error {
	o.entries = append(o.entries, e)
	if len(o.entries) >= fileBatch || o.contents.Len() >= fileChunk {
		return o.flush()
	}
	return nil
}

func (o *fileSender) flush() error {
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

// file sends one file with exactly the announced size: if it has shrunk, it is padded with zeros.
func (o *fileSender) file(f workspace.File) error {
	e := entry{Path: f.Path, Size: f.Size, Executable: f.Executable}
	content := io.MultiReader(f.Content, zeroReader{})
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

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// parseEntries decodes at most most entries of a frame, one by one: they could be far larger in memory than in JSON.
func parseEntries(raw json.RawMessage, most int) ([]entry, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
		return nil, errFileProtocol
	}
	var entries []entry
	for decoder.More() {
		var e entry
		if err := decoder.Decode(&e); err != nil || len(entries) == most || e.Size < 0 {
			return nil, errFileProtocol
		}
		entries = append(entries, e)
	}
	return entries, nil
}

var errFileProtocol = fmt.Errorf("%w: invalid frame about files", ErrClosed)
