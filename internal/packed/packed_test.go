package packed

import (
	"testing"

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
