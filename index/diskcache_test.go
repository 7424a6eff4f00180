package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/checksumfile"
)

// builtLine is what a build tells in the log.
type builtLine struct {
	Msg             string
	Analyzed, Known int
}

// open makes an index of docs with snapshots in dir, and returns what it told of the build.
func open(t *testing.T, dir string, docs []Doc) (*Index, builtLine, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	ix, err := New(docs, &Options{Dir: dir, Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	var built builtLine
	for line := range bytes.Lines(log.Bytes()) {
		if bytes.Contains(line, []byte("index built")) {
			if err := json.Unmarshal(line, &built); err != nil {
				t.Fatal(err)
			}
		}
	}
	return ix, built, &log
}

func someDocs(n int) []Doc {
	r := rand.New(rand.NewPCG(3, 4))
	docs := make([]Doc, n)
	for i := range docs {
		docs[i] = randomDoc(r, fmt.Sprint("up", i/30))
		docs[i].ID.Name = fmt.Sprint("tool", i)
	}
	return docs
}

func closeIndex(t *testing.T, ix *Index) {
	t.Helper()
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
}

func snapshots(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+".index"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sameAnswers asks two indexes the same, some of it twisted.
func sameAnswers(t *testing.T, got, want *Index) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		q := Query{Text: words(r, 1+r.IntN(4)), Limit: 20}
		a, err := got.Search(t.Context(), q)
		b, wantErr := want.Search(t.Context(), q)
		if err != nil || wantErr != nil {
			t.Fatal(err, wantErr)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Fatalf("%+v: (-want +got)\n%s", q, diff)
		}
	}
}

func TestSecondOpenDoesNotAnalyze(t *testing.T) {
	dir, docs := filepath.Join(t.TempDir(), "cache", "index"), someDocs(300)
	first, built, _ := open(t, dir, docs)
	if built.Analyzed != 300 || built.Known != 0 {
		t.Errorf("the first index: %+v", built)
	}
	want, _, _ := open(t, "", docs)
	closeIndex(t, first)
	second, built, _ := open(t, dir, docs)
	if built.Analyzed != 0 || built.Known != 300 {
		t.Errorf("the second index: %+v", built)
	}
	sameAnswers(t, second, want)
	closeIndex(t, second)
	if files := snapshots(t, dir); len(files) != 1 {
		t.Errorf("one catalog has %d files", len(files))
	}
}

// TestUpstreamsConnectOneByOne: what was saved is at hand for all of them, whichever is first.
func TestUpstreamsConnectOneByOne(t *testing.T) {
	dir, docs := t.TempDir(), someDocs(300)
	first, _, _ := open(t, dir, docs)
	closeIndex(t, first)
	ix, _, log := open(t, dir, nil)
	for _, n := range []int{60, 90, 300} {
		if err := ix.Replace(docs[:n]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`"analyzed":0,"known":60`, `"analyzed":0,"known":30`, `"analyzed":0,"known":210`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no build with %s in\n%s", want, log)
		}
	}
}

func TestChangedToolIsFound(t *testing.T) {
	dir, docs := t.TempDir(), someDocs(300)
	first, _, _ := open(t, dir, docs)
	closeIndex(t, first)
	docs = slices.Clone(docs)
	docs[17].Description = "Whittle a xylophone"
	ix, built, _ := open(t, dir, docs)
	if built.Analyzed != 1 || built.Known != 299 {
		t.Errorf("%+v", built)
	}
	res, err := ix.Search(t.Context(), Query{Text: "whittle xylophones"})
	if err != nil || len(res.Hits) == 0 || res.Hits[0].ID != docs[17].ID {
		t.Errorf("%+v, %v", res, err)
	}
	want, _, _ := open(t, "", docs)
	sameAnswers(t, ix, want)
}

func TestDamagedSnapshotIsMadeAgain(t *testing.T) {
	docs := someDocs(60)
	want, _, _ := open(t, "", docs)
	for name, damage := range map[string]func([]byte) []byte{
		"empty":   func([]byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"one bit": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"other":   func([]byte) []byte { return bytes.Repeat([]byte("x\n"), 5000) },
		"sealed nonsense": func([]byte) []byte {
			return seal(t, bytes.Repeat([]byte{0xff}, 5000))
		},
		"another analysis": func(b []byte) []byte {
			body, err := checksumfile.Decode(snapshotVersion, b)
			if err != nil {
				t.Fatal(err)
			}
			return seal(t, append(make([]byte, 32), body[32:]...))
		},
		"too many documents": func(b []byte) []byte {
			body, err := checksumfile.Decode(snapshotVersion, b)
			if err != nil {
				t.Fatal(err)
			}
			return seal(t, append(body[:32:32], 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, _, _ := open(t, dir, docs)
			closeIndex(t, first)
			file := snapshots(t, dir)[0]
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(bytes.Clone(data)), 0o600); err != nil {
				t.Fatal(err)
			}
			ix, built, log := open(t, dir, docs)
			if built.Analyzed != 60 || !strings.Contains(log.String(), "index snapshot ignored") {
				t.Errorf("%+v, log %s", built, log)
			}
			sameAnswers(t, ix, want)
			closeIndex(t, ix)
			if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, data) && name != "another analysis" && len(again) != len(data) {
				t.Errorf("the file was not written again: %d bytes for %d, %v", len(again), len(data), err)
			}
			if _, built, _ := open(t, dir, docs); built.Analyzed != 0 {
				t.Errorf("the file that was written again: %+v", built)
			}
		})
	}
}

func seal(t *testing.T, body []byte) []byte {
	t.Helper()
	data, err := checksumfile.Encode(snapshotVersion, body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSnapshotsAreSwept(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "of another.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		ix, _, _ := open(t, dir, someDocs(10+i))
		closeIndex(t, ix)
	}
	files := snapshots(t, dir)
	if len(files) != maxSnapshotFiles {
		t.Errorf("%d files are kept", len(files))
	}
	old := time.Now().Add(-2 * maxSnapshotAge)
	for _, file := range append(files, filepath.Join(dir, "of another.txt")) {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	ix, _, _ := open(t, dir, someDocs(100))
	closeIndex(t, ix)
	if files := snapshots(t, dir); len(files) > 2 { // the one that was read, and the new one
		t.Errorf("%d files are kept though nobody used them for long", len(files))
	}
	if _, err := os.Stat(filepath.Join(dir, "of another.txt")); err != nil {
		t.Error(err)
	}
}

func TestNoFolderForSnapshots(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ix, built, log := open(t, file, someDocs(10))
	if built.Analyzed != 10 || !strings.Contains(log.String(), "index snapshots disabled") {
		t.Errorf("%+v, log %s", built, log)
	}
	closeIndex(t, ix)
}

// TestRenumber makes the table anew at every step.
func TestRenumber(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var docs []Doc
	ix, _, _ := open(t, t.TempDir(), nil)
	for range 10 {
		docs = mutate(r, docs)
		if err := ix.Replace(slices.Clone(docs)); err != nil {
			t.Fatal(err)
		}
		ix.store.tableSize = -maxUnusedTerms
		fresh, _, _ := open(t, "", docs)
		sameAnswers(t, ix, fresh)
		closeIndex(t, fresh)
	}
	if known := len(ix.store.table.texts); known > 2000 {
		t.Errorf("%d terms are still known", known)
	}
}

// FuzzDecode reads what anybody may have written: it is read in full or not at all.
func FuzzDecode(f *testing.F) {
	words, err := newAnalyzers()
	if err != nil {
		f.Fatal(err)
	}
	known := newTable()
	l := newDocAnalyzer(&wordCache{analyzers: words, table: known}, defaultWeights())
	var docs []analyzed
	for _, d := range someDocs(5) {
		docs = append(docs, analyzed{d.digest(), l.analyze(d)})
	}
	f.Add(encode(digest{}, known.list(), docs))
	f.Add(encode(digest{}, nil, nil))
	f.Add(append(make([]byte, 32), 0xff, 0xff, 0xff, 0xff, 0x0f))
	f.Fuzz(func(t *testing.T, data []byte) {
		texts, docs, err := decode(data, digest{})
		if err != nil {
			return
		}
		again, docsAgain, err := decode(encode(digest{}, texts, docs), digest{})
		if err != nil || len(docsAgain) != len(docs) || len(again) > len(texts) {
			t.Fatalf("%d documents became %d, %v", len(docs), len(docsAgain), err)
		}
		for i, d := range docs {
			for j, id := range d.terms {
				if texts[id] != again[docsAgain[i].terms[j]] || d.freqs[j] != docsAgain[i].freqs[j] {
					t.Fatalf("document %d, term %d differs", i, j)
				}
			}
		}
	})
}
