package packed

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
)

func TestRead(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	packed := z.EncodeAll([]byte(`{"a": 1}`), nil)
	for _, data := range [][]byte{packed, []byte(`{"a": 1}`)} {
		if got := Read(data); string(got) != `{"a": 1}` {
			t.Errorf("%q is read as %q", data, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a damaged file is read")
		}
	}()
	Read(packed[:len(packed)-6])
}

func TestFS(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text := []byte("print('hello, hello, hello, hello')\n")
	files := FS(fstest.MapFS{"dir/packed.py": {Data: z.EncodeAll(text, nil), Mode: 0o444}, "dir/plain.py": {Data: text, Mode: 0o444}})
	for _, name := range []string{"dir/packed.py", "dir/plain.py"} {
		got, err := fs.ReadFile(files, name)
		if err != nil || string(got) != string(text) {
			t.Errorf("%s is read as %q: %v", name, got, err)
		}
		info, err := fs.Stat(files, name)
		if err != nil || info.Size() != int64(len(text)) || info.Mode() != 0o444 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if list, err := fs.ReadDir(files, "dir"); err != nil || len(list) != 2 {
		t.Errorf("the directory: %v, %v", list, err)
	}
	if _, err := fs.ReadFile(files, "dir/none.py"); err == nil {
		t.Error("a missing file is read")
	}
}
