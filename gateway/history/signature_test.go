package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzSignature: a record that contains a text may contain it.
func FuzzSignature(f *testing.F) {
	f.Add("invoices of customer 99 are open", uint(3), uint(11))
	f.Add("", uint(0), uint(0))
	f.Add("ÄÖÜ İstanbul ﬁ", uint(1), uint(4))
	f.Fuzz(func(t *testing.T, text string, from, to uint) {
		text = strings.ToLower(text)
		n := uint(len(text)) + 1
		from, to = min(from%n, to%n), max(from%n, to%n)
		if s := newSignature(text); !s.mayContain(text[from:to]) {
			t.Errorf("%q in %q, with %d words", text[from:to], text, len(s))
		}
	})
}

// TestSignatureExcludes: nearly all records without a text are known by their signature, which is short.
func TestSignatureExcludes(t *testing.T) {
	words := strings.Fields("open invoices of customer are listed by servers crm list limit print for in sum total import from tool result page error name value")
	rng := rand.New(rand.NewPCG(1, 2))
	size, wrong := 0, 0
	for i := range 500 {
		var b strings.Builder
		for range 20 + rng.IntN(400) {
			fmt.Fprintf(&b, "%s%d ", words[rng.IntN(len(words))], rng.IntN(100))
		}
		s := newSignature(b.String())
		size += 8 * len(s)
		for _, absent := range []string{"kubernetes", fmt.Sprintf("order-%d", 1000+i), "zürich"} {
			if s.mayContain(absent) {
				wrong++
			}
		}
	}
	if wrong > 15 || size/500 > 512 {
		t.Errorf("%d of 1500 may contain what they do not; %d bytes a record", wrong, size/500)
	}
}
