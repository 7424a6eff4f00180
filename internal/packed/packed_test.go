package packed

import (
	"bytes"
	"compress/gzip"
	"testing"
)

func TestRead(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(`{"a": 1}`)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{packed.Bytes(), []byte(`{"a": 1}`)} {
		if got := Read(data); string(got) != `{"a": 1}` {
			t.Errorf("%q is read as %q", data, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a damaged file is read")
		}
	}()
	Read(packed.Bytes()[:packed.Len()-6])
}
