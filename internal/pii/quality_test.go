package pii_test

import (
	"testing"

	"sallyport/internal/pii"
	"sallyport/internal/pii/piitest"
)

func detector(t testing.TB, opts *pii.Options) *pii.Detector {
	t.Helper()
	d, err := pii.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The bars of the detector: precision and recall of each kind, and what it finds where there is nothing.
func TestQuality(t *testing.T) {
	r := piitest.Judge(detector(t, nil), piitest.Samples(1, 3000))
	bars := map[pii.Kind][2]float64{pii.Phone: {0.90, 0.85}}
	for _, k := range pii.Kinds() {
		precision, recall := 0.98, 0.99
		if bar, ok := bars[k]; ok {
			precision, recall = bar[0], bar[1]
		}
		s := r.Kinds[k]
		if s.Found < 50 {
			t.Errorf("%s: only %d found: the samples say nothing", k, s.Found)
		}
		if s.Precision() < precision || s.Recall() < recall {
			t.Errorf("%s: precision %.3f, recall %.3f; want %.2f and %.2f (%+v)", k, s.Precision(), s.Recall(), precision, recall, *s)
		}
	}
	if r.Fields < 10_000 || r.Hits*1000 > r.Fields {
		t.Errorf("%d false hits in %d benign fields", r.Hits, r.Fields)
	}
	if t.Failed() || testing.Verbose() {
		for _, w := range r.Wrong[:min(len(r.Wrong), 40)] {
			t.Log(w)
		}
	}
}

func BenchmarkReplace(b *testing.B) {
	d := detector(b, nil)
	samples := piitest.Samples(2, 600)
	n := 0
	for _, s := range samples {
		n += len(s.Text)
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		for _, s := range samples {
			d.Replace(s.Text, nil, func(pii.Kind, string, bool) (string, bool) { return "[X_1]", true })
		}
	}
}
