package bridge

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzValid compares with json.Valid, of texts that are long enough to be looked at in our own way.
func FuzzValid(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5e-3,"x\u00e9\n",true,null,false,{}],"b":"é"}`, `[`, `"\x"`, "\"\x01\"", `01`, `-`, `{"a":1,}`, `"\ud800"`, "\"\xff\"", ` [ ] `, `nul`, `{"a"}`, `[1 2]`, `"a" "b"`,
		"\"abcdefgh\x1fijklmnopqr\"", `"abcdefghijklmnopqrstuvwxyz\"`, `"abcdefghijk\\"`, `"abcdefghijk\\\"`, `"abc\`, `"\u12"`, `"\u12g4"`, `"\u12\"4"`, `"\u123456"`, `{1:2}`, `"`, `"\"`, `"\u`, `"\u"`, "\"\x7f\"",
		strings.Repeat("[", 11000) + strings.Repeat("]", 11000), "\"aaaaaaaaaaaaaaa\naaaaaaa\"", `["` + strings.Repeat("a", 5000) + `\t"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		blank := bytes.Repeat([]byte(" "), minScanLength)
		for _, raw := range [][]byte{data, append(blank, data...), append(bytes.Clone(data), blank...)} {
			if got, want := valid(raw), json.Valid(raw); got != want {
				t.Errorf("%t, want %t: %q", got, want, data)
			}
		}
	})
}

func BenchmarkValid(b *testing.B) {
	row := `{"id":12345,"name":"some name \"b\"","tags":["a","b"],"text":"` + strings.Repeat("lorem ipsum ", 20) + `"},`
	raw := []byte("[" + strings.TrimSuffix(strings.Repeat(row, 10<<20/len(row)), ",") + "]")
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if !valid(raw) {
			b.Fatal("not valid")
		}
	}
}
