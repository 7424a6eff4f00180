package bridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"sallyport/internal/workspace"
)

// intake receives changed files from a guest, from its first frame about files to the
// end of the program. All of it is untrusted, and bounded by room.
type intake struct {
	// next returns the next frame about files or the program's end, or a message with contents.
	next    func() (guestFrame, io.Reader, error)
	replica *replica
	quota   Quota // the remaining quota
	entries int   // how many more entries may come
	paths   int   // how many more bytes of frames may come
	notes   workspace.Notes

	queue   []entry
	message io.Reader // the rest of a message with contents
	left    int64     // of the content that is being read
	taken   []workspace.File
	end     guestFrame // the frame after the last file
	err     error      // of the guest
}

func newIntake(r *replica, room Quota, next func() (guestFrame, io.Reader, error)) *intake {
	room = room.withDefaults()
	if r.versions == nil {
		r.versions = map[string]string{}
	}
	return &intake{next: next, replica: r, quota: room, entries: maxEntries*room.Files + fileBatch, paths: maxPaths}
}

// run updates the workspace with the guest's files. Errors of the guest are in in.err; hostErr is the workspace's. The
// notes, for the model, say what was not kept.
func (in *intake) run(ws Workspace) (notes []string, hostErr error) {
	updated, err := ws.Update(in.changes())
	for in.err == nil && in.end.Type == "" { // the workspace stopped early: read the rest anyway
		_, _ = in.file()
	}
	in.replica.recordVersions(in.taken, updated.Versions)
	notes = append(in.notes.Lines(), updated.Notes...)
	if err != nil && in.err == nil {
		return append(notes, "what this program changed in /workspace could not be kept"), err
	}
	return notes, nil
}

func (in *intake) changes() iter.Seq2[workspace.File, error] {
	return func(yield func(workspace.File, error) bool) {
		for {
			f, err := in.file()
			if err == io.EOF || !yield(f, err) || err != nil { //nolint:errorlint // file returns it unwrapped
				return
			}
			in.taken = append(in.taken, workspace.File{Path: f.Path, Folder: f.Folder, Gone: f.Gone})
		}
	}
}

// file returns the next file, and io.EOF after the last one.
func (in *intake) file() (workspace.File, error) {
	f, err := in.advance()
	if err != nil && err != io.EOF { //nolint:errorlint // advance returns it unwrapped
		in.err = err
	}
	return f, err
}

func (in *intake) advance() (workspace.File, error) {
	if in.err != nil {
		return workspace.File{}, in.err
	}
	if _, err := io.Copy(io.Discard, contentReader{in}); err != nil { // skip unread content of the last file
		return workspace.File{}, err
	}
	for in.end.Type == "" {
		for len(in.queue) > 0 {
			e := in.queue[0]
			in.queue = in.queue[1:]
			if f, wanted := in.change(e); wanted {
				return f, nil
			}
		}
		if err := in.accept(); err != nil {
			return workspace.File{}, err
		}
	}
	return workspace.File{}, io.EOF
}

// accept processes the next frame.
func (in *intake) accept() error {
	frame, err := in.frame()
	if err != nil {
		return err
	}
	switch frame.Type {
	case "copied":
		in.replica.setClock(frame.Clock)
		return nil
	case "files":
	default:
		in.end = frame
		return nil
	}
	entries, err := parseEntries(frame.Entries, in.entries)
	if err != nil {
		return err
	}
	in.entries -= len(entries)
	if in.paths -= frame.size; in.paths < 0 {
		return errFileProtocol
	}
	for _, e := range entries {
		if e.Size > in.quota.Bytes {
			return fmt.Errorf("%w: it handed over more than fits into its workspace", ErrClosed)
		}
		in.quota.Bytes -= e.Size
	}
	in.queue = entries
	return nil
}

// frame returns the next frame. A message with contents is an error here.
func (in *intake) frame() (guestFrame, error) {
	if in.message != nil { // of the last content
		if _, err := io.Copy(io.Discard, in.message); err != nil {
			return guestFrame{}, closedBy(err)
		}
		in.message = nil
	}
	frame, message, err := in.next()
	if err == nil && message != nil {
		err = errFileProtocol
	}
	return frame, err
}

// change returns the file change of an entry, and false if there is nothing to do.
func (in *intake) change(e entry) (workspace.File, bool) {
	version, known := in.replica.versions[e.Path]
	f := workspace.File{Path: e.Path, Folder: e.Folder, Gone: e.Gone, Executable: e.Executable, Version: version}
	switch {
	case e.Skipped != "":
		in.notes.Add(e.Path, e.Skipped)
		in.left = e.Size
		return f, false
	case e.Gone:
		return f, known
	case !e.Folder:
		f.Size, in.left = e.Size, e.Size
		f.Content = io.NopCloser(contentReader{in})
	}
	return f, true
}

// contentReader reads the content of an intake's current file.
type contentReader struct{ in *intake }

func (c contentReader) Read(p []byte) (int, error) {
	in := c.in
	for in.left > 0 && in.err == nil {
		if in.message == nil {
			frame, message, err := in.next()
			if err == nil && (message == nil || frame.Type != "") {
				err = errFileProtocol
			}
			in.message, in.err = message, err
			continue
		}
		n, err := in.message.Read(p[:min(int64(len(p)), in.left)])
		in.left -= int64(n)
		if err != nil {
			in.message = nil
			if err != io.EOF {
				in.err = closedBy(err)
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	if in.err != nil {
		return 0, in.err
	}
	return 0, io.EOF
}

// RescueRequest returns the request for the stdin of a reader in a sandbox whose program was
// stopped. The reader sends the changes in /workspace, which the host takes with Rescue.
func (b *Bridge) RescueRequest(room Quota) ([]byte, error) {
	return appendJSON(nil, b.replica.request(room))
}

// Rescue reads a reader's stdout: messages as on the bridge, each after a byte for its kind (1
// is text, 2 binary) and four for its length, big-endian. It is as untrusted as the
// program. It must not be called during Run. After an error, the files received until
// then are kept.
func (b *Bridge) Rescue(reader io.Reader, ws Workspace, room Quota) (notes []string, err error) {
	in := newIntake(&b.replica, room, func() (guestFrame, io.Reader, error) { return readStreamMessage(reader) })
	notes, err = in.run(ws)
	if err == nil && in.err == nil && in.end.Type != "done" {
		in.err = errFileProtocol
	}
	return notes, errors.Join(err, in.err)
}

const (
	textMessage   = 1
	binaryMessage = 2
	// maxMessageText is the maximum length of a reader's text message, in bytes.
	maxMessageText = 16 << 20
)

// readStreamMessage reads the next message of a reader.
func readStreamMessage(reader io.Reader) (guestFrame, io.Reader, error) {
	var head [5]byte
	if _, err := io.ReadFull(reader, head[:]); err != nil {
		return guestFrame{}, nil, closedBy(err)
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if head[0] == binaryMessage {
		return guestFrame{}, io.LimitReader(reader, size), nil
	}
	if head[0] != textMessage || size > maxMessageText {
		return guestFrame{}, nil, errFileProtocol
	}
	data, err := io.ReadAll(io.LimitReader(reader, size))
	if err != nil || int64(len(data)) < size {
		return guestFrame{}, nil, closedBy(io.ErrUnexpectedEOF)
	}
	frame, err := parse(data)
	if err != nil {
		return guestFrame{}, nil, errFileProtocol
	}
	return frame, nil, nil
}
