package bridge

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"sallyport/internal/workspace"
)

// encodeMessages is what a reader writes: a kind and a content for each message.
func encodeMessages(messages ...string) []byte {
	var b []byte
	for _, m := range messages {
		b = append(b, m[0]-'0')
		b = binary.BigEndian.AppendUint32(b, uint32(len(m)-1))
		b = append(b, m[1:]...)
	}
	return b
}

// FuzzFiles lets a reader say anything at all about files. What is taken keeps to the room that there is,
// and is nowhere but in the workspace.
func FuzzFiles(f *testing.F) {
	for _, seed := range [][]byte{
		encodeMessages(`1{"type":"files","entries":[{"path":"a","size":3},{"path":"b/c","size":2}]}`, "2abc", "2de", `1{"type":"done"}`),
		encodeMessages(`1{"type":"files","entries":[{"path":"a","size":3,"skipped":"x"},{"path":"../b","size":1}]}`, "2abcd", `1{"type":"done"}`),
		encodeMessages(`1{"type":"files","entries":[{"path":"a","size":4097}]}`), encodeMessages(`1{"type":"files","entries":[{"path":"a","size":-1}]}`),
		encodeMessages(`1{"type":"files","entries":[{"path":"a","size":9}]}`, "2abc", `1{"type":"done"}`), encodeMessages("2abc"), {2, 255, 255, 255, 255, 1}, {1, 255, 255, 255, 255, 1},
		encodeMessages(`1{"type":"files","entries":[{"path":"old","gone":true},{"path":"f","folder":true},{"path":"f","size":1}]}`, "2xyz", `1{"type":"copied","clock":"12"}`, `1{"type":"done"}`),
		encodeMessages(`1{"type":"files","entries":{}}`), encodeMessages(`1{"type":"files","entries":[`+strings.Repeat("{},", 2000)+`{}]}`, `1{"type":"done"}`),
	} {
		f.Add(seed)
	}
	room := Quota{Bytes: 4096, Files: 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		ws, err := workspace.Open(t.TempDir(), workspace.Options{Bytes: room.Bytes, Inodes: room.Files})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ws.Close() }()
		kept, err := ws.Update(workspace.Changes(workspace.File{Path: "old", Size: 1, Content: io.NopCloser(strings.NewReader("o"))}))
		if err != nil {
			t.Fatal(err)
		}
		b := &Bridge{replica: replica{versions: kept.Versions}}
		notes, _ := b.Rescue(bytes.NewReader(data), ws, room)
		files, err := ws.List()
		var size int64
		for _, f := range files {
			size += f.Size
		}
		if err != nil || size > room.Bytes || len(files) > room.Files || len(notes) > 20 {
			t.Fatalf("%d bytes in %d files, %d notes, %v", size, len(files), len(notes), err)
		}
	})
}
