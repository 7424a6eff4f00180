// Command pii judges the detector of personal data: on text made with known labels,
// and on ../shared/pii if that is there. It prints precision and recall of each kind,
// false hits in benign fields, and MB/s on one core.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/pii"
	"sallyport/internal/pii/piitest"
)

func main() {
	shared := flag.String("shared", "../shared/pii/synth_dataset_v2.json", "labelled samples of presidio-research; skipped if they are not there")
	wrong := flag.Int("wrong", 0, "print so many of the mistakes")
	flag.Parse()
	if err := run(os.Stdout, *shared, *wrong); err != nil {
		fmt.Fprintln(os.Stderr, "pii:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, shared string, wrong int) error {
	d, err := pii.New(nil)
	if err != nil {
		return err
	}
	samples := piitest.Samples(8, 12_000)
	report(w, "made here (seed 8)", piitest.Judge(d, samples), pii.Kinds(), wrong)
	speed(w, d, "dense, as above", samples)
	speed(w, d, "a log with an address on every tenth line", logLines())
	theirs, err := load(shared)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintln(w, "\nno samples of presidio-research at", shared)
		return err
	} else if err != nil {
		return err
	}
	report(w, "presidio-research, synth_dataset_v2", piitest.Judge(d, theirs), []pii.Kind{pii.Email, pii.Phone, pii.Card, pii.IBAN, pii.SSN, pii.IP}, wrong)
	return nil
}

func report(w io.Writer, title string, r piitest.Report, kinds []pii.Kind, wrong int) {
	fmt.Fprintf(w, "\n%s: %d bytes\n%-12s %9s %7s %7s %7s %7s\n", title, r.Bytes, "kind", "precision", "recall", "found", "missed", "false")
	for _, k := range kinds {
		s := r.Kinds[k]
		fmt.Fprintf(w, "%-12s %9.3f %7.3f %7d %7d %7d\n", k, s.Precision(), s.Recall(), s.Found, s.Missed, s.False)
	}
	if r.Fields > 0 {
		fmt.Fprintf(w, "false hits in benign fields: %d of %d (%.2f in 1,000)\n", r.Hits, r.Fields, float64(r.Hits)*1000/float64(r.Fields))
	}
	for _, line := range r.Wrong[:min(wrong, len(r.Wrong))] {
		fmt.Fprintf(w, "  %q\n", line)
	}
}

// speed prints the best of some rounds.
func speed(w io.Writer, d *pii.Detector, title string, samples []piitest.Sample) {
	n, best := 0, time.Duration(1<<62)
	for range 5 {
		n = 0
		begin := time.Now()
		for _, s := range samples {
			n += len(s.Text)
			d.Replace(s.Text, nil, func(pii.Kind, string, bool) (string, bool) { return "[EMAIL_1]", true })
		}
		best = min(best, time.Since(begin))
	}
	fmt.Fprintf(w, "%s: %.0f MB/s\n", title, float64(n)/1e6/best.Seconds())
}

func logLines() []piitest.Sample {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "2026-11-22T02:33:%02dZ INFO worker %d: finished job %d in %d ms, nothing else to report about the queue today", i%60, i%16, i*7919, i%977)
		if i%10 == 0 {
			fmt.Fprintf(&b, " for user%d@example.com", i)
		}
		b.WriteByte('\n')
	}
	return []piitest.Sample{{Text: b.String()}}
}

// load reads the samples of presidio-research. Their spans count characters.
func load(path string) ([]piitest.Sample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	var list []struct {
		Text  string `json:"full_text"`
		Spans []struct {
			Type  string `json:"entity_type"`
			Value string `json:"entity_value"`
		} `json:"spans"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	kinds := map[string]pii.Kind{"EMAIL_ADDRESS": pii.Email, "PHONE_NUMBER": pii.Phone, "CREDIT_CARD": pii.Card, "IBAN_CODE": pii.IBAN, "US_SSN": pii.SSN, "IP_ADDRESS": pii.IP}
	samples := make([]piitest.Sample, len(list))
	for i, l := range list {
		samples[i].Text = l.Text
		for _, s := range l.Spans {
			if kind, ok := kinds[s.Type]; ok && utf8.ValidString(s.Value) {
				samples[i].Labels = append(samples[i].Labels, piitest.Label{Kind: kind, Value: s.Value})
			}
		}
	}
	return samples, nil
}
