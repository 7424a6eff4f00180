package remote

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil/golden"
)

// TestAgree: two sides speak the newest version that both know, also with builds that say one version only.
func TestAgree(t *testing.T) {
	t.Parallel()
	here := Compat{Oldest: 2, Newest: 4}
	for there, want := range map[Compat]int{{Oldest: 2}: 2, {Oldest: 4}: 4, {Oldest: 2, Newest: 3}: 3, {Oldest: 4, Newest: 9}: 4, {Oldest: 1}: 0, {Oldest: 5, Newest: 9}: 0, {}: 0, {Oldest: -1, Newest: -5}: 0, {Oldest: 1, Newest: 2}: 2} {
		got, err := here.Agree(there)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%+v: %d, %v; want %d", there, got, err, want)
		}
	}
	if _, err := here.Agree(Here()); err != nil {
		t.Errorf("this build: %v", err)
	}
}

// TestGuestFiles fails when a file changes that the host of a worker starts or talks with. If hosts of the release before cannot run the new
// files, or this host cannot run theirs, raise hostInterface. Then run it with -update.
func TestGuestFiles(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for _, name := range []string{"guest.py", "guest.mjs", "files.mjs", "sallyport_files.py", "sallyport_warm.py", "warm.mjs", "bridge.mjs", "sallyport/bridge.py", "zygote-x86_64.so", "zygote-aarch64.so"} {
		data, err := fs.ReadFile(runtime.Guest(), name)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := digest(fstest.MapFS{name: {Data: data}})
		if err != nil {
			t.Fatal(err)
		}
		lines.WriteString(sum + " " + name + "\n")
	}
	golden.Check(t, "testdata/guest.txt", lines.String())
}

// TestGuestSent: the files of a guest arrive as they are; what is not the gateway's, or invalid, is refused.
func TestGuestSent(t *testing.T) {
	t.Parallel()
	want, err := digest(runtime.Guest())
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	if err := writeGuest(&sent, runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	got, err := readGuest(bytes.NewReader(sent.Bytes()), want)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(got, "guest.py", "sallyport/bridge.py"); err != nil {
		t.Error(err)
	}
	if _, err := readGuest(bytes.NewReader(sent.Bytes()), "another"); err == nil {
		t.Error("files of another digest are taken")
	}
	for name, headers := range map[string][]zip.FileHeader{
		"a path that leaves the folder": {{Name: "../x", Method: zip.Store}},
		"an absolute path":              {{Name: "/x", Method: zip.Store}},
		"compression":                   {{Name: "x", Method: zip.Deflate}},
		"a size of 4 GiB":               {{Name: "x", Method: zip.Store, CompressedSize64: 4 << 30, UncompressedSize64: 4 << 30}},
		"sizes that overflow together":  {{Name: "x", Method: zip.Store, CompressedSize64: 12 << 20, UncompressedSize64: 12 << 20}, {Name: "y", Method: zip.Store, CompressedSize64: 12 << 20, UncompressedSize64: 12 << 20}},
	} {
		var data bytes.Buffer
		archive := zip.NewWriter(&data)
		for _, header := range headers {
			if _, err := archive.CreateRaw(&header); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		part := append(binary.BigEndian.AppendUint64(nil, uint64(data.Len())), data.Bytes()...)
		if _, err := readGuest(bytes.NewReader(part), want); err == nil || !strings.Contains(err.Error(), "is invalid") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzGuest: whatever comes as the files of a guest are those of the digest, or an error.
func FuzzGuest(f *testing.F) {
	files := fstest.MapFS{"a": {Data: []byte("one")}, "b/c": {Data: []byte("two")}}
	sum, err := digest(files)
	if err != nil {
		f.Fatal(err)
	}
	var sent bytes.Buffer
	if err := writeGuest(&sent, files); err != nil {
		f.Fatal(err)
	}
	f.Add(sent.Bytes())
	f.Add(sent.Bytes()[:sent.Len()-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readGuest(bytes.NewReader(data), sum)
		if err != nil {
			return
		}
		if again, err := digest(got); err != nil || again != sum {
			t.Errorf("%s, %v", again, err)
		}
	})
}
