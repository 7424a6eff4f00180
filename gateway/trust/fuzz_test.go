package trust

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// FuzzLock: what is read is written again as the same pins, and errors name a line.
func FuzzLock(f *testing.F) {
	digest := strings.Repeat("0af9", 8)
	for _, text := range []string{"", lockHeader, lockHeader + "up \"a\" " + digest + "\n", lockHeader + "up \"\\u200b\\ud83d\\ude00 \\\"\" " + digest + "\r\nUp-1 \"\" " + digest,
		lockHeader + "rejected: {\"by\":\"ada\",\"at\":\"2026-05-01T12:00:00Z\",\"reason\":\"\\u003c } {\"} up \"a\" " + digest + "\n",
		"version 1\n<<<<<<< a\n=======\n", "version 1\nup \"a\n\" x"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseLock(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q", err)
			}
			return
		}
		again, err := parseLock(p.format())
		if err != nil || !bytes.Equal(again.format(), p.format()) {
			t.Errorf("%v: %q became %q", err, p.format(), again.format())
		}
	})
}

// FuzzInspect: no definition crashes the detector, and what it says may be shown;
// whatever the definition is, its digest is stable and its lock line can be read.
func FuzzInspect(f *testing.F) {
	for _, s := range corpus(f) {
		d := parse(f, s.Tool)
		f.Add(d.Wire, d.Description, []byte(d.Input))
	}
	f.Add("\xff", "\u200b", []byte(`{"a":[1,{"a":1,"a":2}],`))
	f.Fuzz(func(t *testing.T, name, description string, schema []byte) {
		d := tool.Tool{Wire: name, Description: description, Input: schema}
		for _, finding := range Inspect(d, mailer) {
			if Visible(finding.Text) != finding.Text || strings.ContainsAny(finding.Text, "\n\x1b") || finding.Rule == "" {
				t.Errorf("not fit to be shown: %+q", finding)
			}
		}
		c := Canonical(d)
		if !json.Valid(c) {
			t.Errorf("canonical form %q", c)
		}
		shown := Held{New: c, Old: Canonical(tool.Tool{})}.Diff()
		if strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && isInvisible(r) }) {
			t.Errorf("a diff hides something: %+q", shown)
		}
		p, digest := newLock(), digestOf(Canonical(d))
		p.pins.set("up", name, digest)
		p.rejected[definition{"up2", name, digest}] = newRejection(description, name, time.Unix(1_800_000_000, 5))
		again, err := parseLock(p.format())
		if isValidName(name) && (err != nil || !cmp.Equal(p, again, cmp.AllowUnexported(lock{}, definition{}))) {
			t.Errorf("%+q makes the lock file unreadable: %v", name, err)
		}
	})
}

// BenchmarkCheck looks at every tool of the catalogue: when all are known, which
// is what each start costs, and when none is.
func BenchmarkCheck(b *testing.B) {
	all := catalog(b)
	run := func(b *testing.B, dir string) {
		b.Helper()
		book, err := OpenForConfig(&config.Config{Dir: dir}, dir, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		for server, tools := range all {
			if held, err := book.Check(server, config.TrustPin, tools); err != nil || len(held) > 0 {
				b.Fatal(held, err)
			}
		}
	}
	b.Run("known", func(b *testing.B) {
		dir := b.TempDir()
		run(b, dir)
		for b.Loop() {
			run(b, dir)
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			run(b, b.TempDir())
		}
	})
}
