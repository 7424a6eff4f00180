package wordvec_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"sallyport/index/wordvec"
)

func newModel(t testing.TB) *wordvec.Model {
	t.Helper()
	m, err := wordvec.New()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func part(m *wordvec.Model, text string) wordvec.Part {
	p := wordvec.Part{Weight: 1}
	for w := range strings.FieldsSeq(text) {
		p.Words = append(p.Words, m.Find(w))
	}
	return p
}

func embed(t testing.TB, m *wordvec.Model, text string) wordvec.Vector {
	t.Helper()
	v, ok := m.Embed(part(m, text))
	if !ok {
		t.Fatalf("%q means nothing", text)
	}
	return v
}

func TestLikeMeaningIsNear(t *testing.T) {
	m := newModel(t)
	for _, c := range []struct{ text, near, far string }{
		{"parcel", "package", "meeting"},
		{"get rid of", "delete", "create"},
		{"my bill", "invoice", "repository"},
		{"call off an appointment", "cancel calendar event", "send email message"},
		{"who wrote to me", "list messages", "create chart"},
		{"picture of the page", "take screenshot", "run query"},
		{"money back", "refund payment", "delete branch"},
		{"forecast for tomorrow", "get weather", "get stock price"},
	} {
		v, near, far := embed(t, m, c.text), embed(t, m, c.near), embed(t, m, c.far)
		if a, b := v.Likeness(&near), v.Likeness(&far); a <= b {
			t.Errorf("%q is %.2f near %q and %.2f near %q", c.text, a, c.near, b, c.far)
		}
	}
}

func TestVectorHasLengthOne(t *testing.T) {
	m := newModel(t)
	for _, text := range []string{"parcel", "create a new issue in a repository", "the of and"} {
		v := embed(t, m, text)
		if l := v.Likeness(&v); l < .97 || l > 1.03 {
			t.Errorf("%q is %.3f like itself", text, l)
		}
	}
}

func TestWordsThatAreNotKnown(t *testing.T) {
	m := newModel(t)
	for _, text := range []string{"", "qqxzzy", "qqxzzy vvbnmm parcel", "予定 定を 削除"} {
		if v, ok := m.Embed(part(m, text)); ok || v != (wordvec.Vector{}) {
			t.Errorf("%q means something", text)
		}
	}
	if _, ok := m.Embed(); ok {
		t.Error("no parts mean something")
	}
	if m.Find("parcels") != m.Find("parcel") && m.Find("parcels") == wordvec.Unknown {
		t.Error("a plural is not known")
	}
}

// TestPartsCountByWeight has a long part of little weight, which must not drown the other.
func TestPartsCountByWeight(t *testing.T) {
	m := newModel(t)
	name, long := part(m, "delete event"), part(m, strings.Repeat("weather forecast temperature ", 20))
	name.Weight, long.Weight = 2, .5
	v, ok := m.Embed(name, long)
	event, weather := embed(t, m, "delete event"), embed(t, m, "weather forecast temperature")
	if a, b := v.Likeness(&event), v.Likeness(&weather); !ok || a <= b {
		t.Errorf("%.2f near the name, %.2f near the rest", a, b)
	}
}

func TestLoadRefuses(t *testing.T) {
	size := func(words, bytes uint32, rest int) []byte {
		data := binary.LittleEndian.AppendUint32([]byte("words96\n"), words)
		return append(binary.LittleEndian.AppendUint32(data, bytes), make([]byte, rest)...)
	}
	for name, data := range map[string][]byte{
		"nothing":       nil,
		"another file":  []byte("PNG and more than a header of bytes"),
		"too short":     size(3, 6, 10),
		"too many":      size(1<<32-1, 1<<32-1, 0),
		"words missing": size(2, 2, 2+2*(4+wordvec.Dim)),
	} {
		if _, err := wordvec.Load(data); !errors.Is(err, wordvec.ErrData) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzEmbed(f *testing.F) {
	m := newModel(f)
	f.Add("delete a meeting", float32(1))
	f.Add("\xff\x00 ü 予定", float32(-3))
	f.Fuzz(func(t *testing.T, text string, weight float32) {
		p := part(m, text)
		p.Weight = weight
		p.Words = append(p.Words, wordvec.Word(len(text)*977))
		a, okA := m.Embed(p)
		b, okB := m.Embed(p)
		if a != b || okA != okB {
			t.Fatal("the same text has two vectors")
		}
		if l := a.Likeness(&a); okA && (l < .5 || l > 1.2) {
			t.Fatalf("a vector of length %.2f", l)
		}
	})
}

func BenchmarkEmbedQuery(b *testing.B) {
	m := newModel(b)
	for b.Loop() {
		m.Embed(part(m, "please get rid of the meeting with anna tomorrow"))
	}
}

func BenchmarkEmbedTool(b *testing.B) {
	m := newModel(b)
	name, lead := part(m, "create pull request review"), part(m, strings.Repeat("create a review on a pull request ", 3))
	about := part(m, strings.Repeat("repositories issues and code on a host ", 4))
	for b.Loop() {
		m.Embed(name, lead, about)
	}
}

func BenchmarkLikeness(b *testing.B) {
	m := newModel(b)
	v, vectors := embed(b, m, "delete event"), make([]wordvec.Vector, 100_000)
	for i := range vectors {
		vectors[i] = embed(b, m, "cancel meeting")
	}
	sum := float32(0)
	for b.Loop() {
		for i := range vectors {
			sum += v.Likeness(&vectors[i])
		}
	}
	b.ReportMetric(float64(sum), "sum")
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newModel(b)
	}
}
