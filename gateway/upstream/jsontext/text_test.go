package jsontext

import (
	"encoding/json"
	"testing"
)

// A long string is what encoding/json reads.
func FuzzLongString(f *testing.F) {
	for _, s := range []string{`""`, `"a\"b\\"`, `"\ud83d\ude00 \ud83d \ude00\ud83d\n\/\b\f\r\t"`, `"é\u00e9\u0000"`, `"\u12"`, `"\x"`, `"\"`, "\"\xff\"", `"\ud83d\u0041"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want string
		if json.Unmarshal(data, &want) != nil {
			return // only parts of valid JSON come here
		}
		if got, ok := LongString(data); ok && got != want {
			t.Errorf("%s: got %q, want %q", data, got, want)
		}
	})
}
