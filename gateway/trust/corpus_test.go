package trust

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// sample is one definition of testdata/corpus.jsonl. The poisoned ones are the
// published kinds of attack in our own words, and a few that we know to get
// through; the others are definitions of honest servers that come close.
type sample struct {
	Kind     string
	Poisoned bool
	Tool     json.RawMessage
}

func corpus(t testing.TB) []sample {
	t.Helper()
	f, err := os.Open("testdata/corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []sample
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%v: %.100s", err, lines.Text())
		}
		all = append(all, s)
	}
	return all
}

// mailer is what other upstreams offer.
var mailer = map[string]bool{"send_email": true, "send_message": true, "read_file": true, "search": true}

// The floors are what was reached, so that a change which loses something is seen.
func TestCorpus(t *testing.T) {
	hits, misses, falseAlarms, quiet := 0, 0, 0, 0
	for _, s := range corpus(t) {
		findings := Inspect(parse(t, s.Tool), mailer)
		switch held := len(findings) > 0; {
		case s.Poisoned && held:
			hits++
		case s.Poisoned:
			misses++
			t.Logf("missed: %s", s.Kind)
		case held:
			falseAlarms++
			t.Logf("false alarm: %s: %+v", s.Kind, findings)
		default:
			quiet++
		}
		for _, f := range findings {
			if Visible(f.Text) != f.Text || strings.ContainsAny(f.Text, "\n\x1b") {
				t.Errorf("%s: a finding is not fit to be shown: %+q", s.Kind, f)
			}
		}
	}
	precision, recall := float64(hits)/float64(hits+falseAlarms), float64(hits)/float64(hits+misses)
	t.Logf("%d poisoned, %d honest: precision %.3f, recall %.3f", hits+misses, quiet+falseAlarms, precision, recall)
	if precision < 0.98 || recall < 0.94 {
		t.Errorf("precision %.3f, recall %.3f", precision, recall)
	}
}
