package resultschema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/resultschema"
	"sallyport/internal/jsontype"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// digest is one for each number.
func digest(n int) string { return fmt.Sprintf("%032x", n) }

func text(s string) tool.Result {
	return tool.Result{Content: []tool.Content{{Type: "text", Text: s}}}
}

func files(t testing.TB, dir string) *resultschema.Files {
	t.Helper()
	f, err := resultschema.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// show writes what is known of definition 1 of the upstream "up".
func show(s *resultschema.Store) string { return showOf(s.Lookup("up", digest(1))) }

func showOf(o *tool.Observed) string {
	if o == nil {
		return "nothing"
	}
	data, err := json.Marshal(o.Shape)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%dx %s", o.Count, data)
}

func want(t testing.TB, s *resultschema.Store, text string) {
	t.Helper()
	if got := show(s); got != text {
		t.Errorf("observed %s, want %s", got, text)
	}
}

func TestLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := resultschema.New(nil, nil)
		defer s.Close()
		want(t, s, "nothing")
		for i, step := range []struct{ result, want string }{
			{`{"id":1}`, `1x {"k":64,"p":[{"n":"id","s":{"k":4}}]}`},
			{`{"id":2,"at":"2024-01-01"}`, `2x {"k":64,"p":[{"n":"at","o":true,"s":{"k":16,"f":"date"}},{"n":"id","s":{"k":4}}]}`},
			{`{"id":3,"at":"soon"}`, `2x {"k":64,"p":[{"n":"at","o":true,"s":{"k":16}},{"n":"id","s":{"k":4}}]}`},
			{`plain`, `2x {"k":80,"p":[{"n":"at","o":true,"s":{"k":16}},{"n":"id","s":{"k":4}}]}`},
			{`plain`, `5x {"k":80,"p":[{"n":"at","o":true,"s":{"k":16}},{"n":"id","s":{"k":4}}]}`},
		} {
			s.Learn("up", digest(1), text(step.result))
			synctest.Wait()
			if got := show(s); got != step.want {
				t.Errorf("after %d: %s, want %s", i+1, got, step.want)
			}
		}
		if o := s.Lookup("up", digest(2)); o != nil {
			t.Errorf("another definition: %v", o)
		}
		if o := s.Lookup("other", digest(1)); o != nil {
			t.Errorf("another upstream: %v", o)
		}
		if !s.Has("up") || s.Has("other") {
			t.Error("Has does not tell")
		}
	})
}

func TestValues(t *testing.T) {
	image := tool.Content{Type: "image", Data: []byte("SECRET"), MIME: "image/png"}
	for _, test := range []struct {
		result tool.Result
		want   string
	}{
		{tool.Result{Structured: json.RawMessage(`{"a":1}`), Content: []tool.Content{{Type: "text", Text: "x"}}}, `1x {"k":64,"p":[{"n":"a","s":{"k":4}}]}`},
		{tool.Result{Content: []tool.Content{image}}, `1x {"k":128}`},
		{tool.Result{Content: []tool.Content{image, {Type: "text", Text: "SECRET"}}}, `1x {"k":32,"e":{"k":144}}`},
		{tool.Result{}, `1x {"k":1}`},
		{text(strings.Repeat("[", 300) + strings.Repeat("]", 300)), `1x ` + strings.Repeat(`{"k":32,"e":`, 12) + `{"any":true}` + strings.Repeat("}", 12)},
		{tool.Result{Content: []tool.Content{image, {Type: "text", Text: strings.Repeat("[", 300) + strings.Repeat("]", 300)}}},
			`1x {"k":32,"e":{"k":160,"e":` + strings.Repeat(`{"k":32,"e":`, 10) + `{"any":true}` + strings.Repeat("}", 12)},
		{tool.Result{Structured: json.RawMessage(`{broken`)}, `nothing`},
	} {
		dir := t.TempDir()
		s := resultschema.New(files(t, dir), nil)
		s.Learn("up", digest(1), test.result)
		s.Close()
		want(t, s, test.want)
		again := resultschema.New(files(t, dir), nil)
		want(t, again, test.want)
		again.Close()
		data, _ := os.ReadFile(filepath.Join(dir, "up.shapes"))
		if strings.Contains(string(data), "SECRET") {
			t.Errorf("a value is kept: %s", data)
		}
	}
}

// TestChangesAreGathered: many results, few words.
func TestChangesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		start := time.Now()
		s := resultschema.New(nil, &resultschema.Options{OnChange: func(upstream string) {
			if told.Add(1); upstream != "up" || time.Since(start) < 200*time.Millisecond {
				t.Errorf("told of %s after %v", upstream, time.Since(start))
			}
		}})
		defer s.Close()
		for range 40 {
			s.Learn("up", digest(1), text(`{"id":1}`))
		}
		time.Sleep(time.Second)
		if told.Load() != 1 {
			t.Errorf("told %d times of 40 results at once", told.Load())
		}
		s.Learn("up", digest(1), text(`{"id":1}`)) // the 41st: neither the shape nor the rounded count is new
		time.Sleep(time.Second)
		if told.Load() != 1 {
			t.Error("told of what has not changed")
		}
		s.Learn("up", digest(1), text(`{"id":"x"}`))
		time.Sleep(time.Second)
		if told.Load() != 2 {
			t.Error("not told of another shape")
		}
	})
}

// TestBusy: what comes while much waits is passed over, and the caller never waits.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keep := &slow{wait: make(chan struct{})}
		s := resultschema.New(keep, nil)
		for range 1000 {
			s.Learn("up", digest(1), text(`1`))
		}
		large := text(strings.Repeat("x", 20<<20))
		s.Learn("up", digest(2), large)
		s.Learn("up", digest(3), large)
		close(keep.wait)
		s.Close()
		o := s.Lookup("up", digest(1))
		if o == nil || o.Count < 20 || o.Count > 50 {
			t.Errorf("of a thousand: %s", showOf(o))
		}
	})
}

// slow loads when it may.
type slow struct{ wait chan struct{} }

func (k *slow) Load(string) (resultschema.Entries, error) {
	<-k.wait
	return resultschema.Entries{}, nil
}
func (k *slow) Merge(_ string, learned resultschema.Entries) (resultschema.Entries, error) {
	return learned, nil
}

// TestPlenty: what is well known is looked at seldom.
func TestPlenty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := resultschema.New(nil, nil)
		defer s.Close()
		for range 1000 {
			s.Learn("up", digest(1), text(`{"id":1}`))
			synctest.Wait()
		}
		if o := s.Lookup("up", digest(1)); o == nil || o.Count != 100 {
			t.Errorf("%s", showOf(o))
		}
		for range 16 {
			s.Learn("up", digest(1), text(`{"id":null}`))
			synctest.Wait()
		}
		want(t, s, `100x {"k":64,"p":[{"n":"id","s":{"k":5}}]}`)
	})
}

func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "shapes")
	for i := range 3 {
		s := resultschema.New(files(t, dir), nil)
		for range 2 {
			s.Learn("up", digest(1), text(fmt.Sprintf(`{"m%c":1}`, 'a'+i)))
		}
		s.Close()
		s.Close()
	}
	s := resultschema.New(files(t, dir), nil)
	defer s.Close()
	want(t, s, `5x {"k":64,"p":[{"n":"ma","o":true,"s":{"k":4}},{"n":"mb","o":true,"s":{"k":4}},{"n":"mc","o":true,"s":{"k":4}}]}`)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if info, _ := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 || strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSavedWhileRunning: a process that is killed has lost the last seconds at most.
func TestSavedWhileRunning(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := resultschema.New(files(t, dir), nil)
		defer s.Close()
		s.Learn("up", digest(1), text(`1`))
		time.Sleep(10 * time.Second)
		known, err := files(t, dir).Load("up")
		if err != nil || known[digest(1)].Count != 1 {
			t.Errorf("%v, %v", known, err)
		}
	})
}

// TestTwoShareADirectory: neither overwrites what the other has learned.
func TestTwoShareADirectory(t *testing.T) {
	dir := t.TempDir()
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			keep, err := resultschema.OpenFiles(dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer keep.Close()
			for range 10 {
				s := resultschema.New(keep, nil)
				s.Learn("up", digest(1), text(fmt.Sprintf(`{"m%c":1}`, 'a'+i)))
				s.Learn("up", digest(10+i), text(`1`))
				s.Close()
			}
		})
	}
	work.Wait()
	known, err := files(t, dir).Load("up")
	if err != nil || len(known) != 5 || known[digest(1)].Count != 40 || len(known[digest(1)].Shape.Fields) != 4 {
		t.Errorf("%v, %v", known, err)
	}
}

// TestDamagedFile is begun anew, with a line in the log.
func TestDamagedFile(t *testing.T) {
	good := func(t *testing.T, dir string) []byte {
		t.Helper()
		s := resultschema.New(files(t, dir), nil)
		s.Learn("up", digest(1), text(`{"id":1}`))
		s.Close()
		data, err := os.ReadFile(filepath.Join(dir, "up.shapes"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":    func([]byte) []byte { return nil },
		"cut":      func(d []byte) []byte { return d[:len(d)-3] },
		"a bit":    func(d []byte) []byte { d[len(d)-5] ^= 1; return d },
		"version":  func(d []byte) []byte { return bytes.Replace(d, []byte(`"version":1`), []byte(`"version":2`), 1) },
		"nonsense": func([]byte) []byte { return []byte("\x00\n\xff") },
		"long":     func(d []byte) []byte { return append(d, make([]byte, 9<<20)...) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			data := damage(good(t, dir))
			if err := os.WriteFile(filepath.Join(dir, "up.shapes"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s := resultschema.New(files(t, dir), &resultschema.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			want(t, s, "nothing")
			s.Learn("up", digest(1), text(`"x"`))
			s.Close()
			if !strings.Contains(log.String(), "stored shapes are ignored") {
				t.Errorf("log: %s", log.String())
			}
			again := resultschema.New(files(t, dir), nil)
			defer again.Close()
			want(t, again, `1x {"k":16}`)
		})
	}
}

// TestLostFile: what was deleted under a running store comes back.
func TestLostFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := resultschema.New(files(t, dir), nil)
		for range 5 {
			s.Learn("up", digest(1), text(`{"id":1}`))
		}
		time.Sleep(10 * time.Second)
		if err := os.Remove(filepath.Join(dir, "up.shapes")); err != nil {
			t.Fatal(err)
		}
		s.Learn("up", digest(1), text(`{"id":null}`))
		time.Sleep(10 * time.Second)
		want(t, s, `5x {"k":64,"p":[{"n":"id","s":{"k":5}}]}`)
		s.Close()
		known, err := files(t, dir).Load("up")
		if err != nil || known[digest(1)].Count != 6 {
			t.Errorf("%v, %v", known, err)
		}
	})
}

// TestCannotBeKept is a line in the log; what was learned stays known, and is kept later.
func TestCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		keep := &broken{}
		s := resultschema.New(keep, &resultschema.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		keep.broken.Store(true)
		s.Learn("up", digest(1), text(`1`))
		time.Sleep(10 * time.Second)
		want(t, s, `1x {"k":16}`)
		if !strings.Contains(log.String(), "save observed shapes") {
			t.Errorf("log: %s", log.String())
		}
		keep.broken.Store(false)
		s.Learn("up", digest(1), text(`1`))
		s.Close()
		want(t, s, `2x {"k":16}`)
		if got := keep.known[digest(1)].Count; got != 2 {
			t.Errorf("%d results are kept", got)
		}
	})
}

type broken struct {
	broken atomic.Bool
	known  resultschema.Entries
}

func (k *broken) Load(string) (resultschema.Entries, error) { return resultschema.Entries{}, nil }
func (k *broken) Merge(_ string, learned resultschema.Entries) (resultschema.Entries, error) {
	if k.broken.Load() {
		return nil, fmt.Errorf("disk is full")
	}
	if k.known == nil {
		k.known = resultschema.Entries{}
	}
	k.known.Merge(learned)
	return k.known, nil
}

// TestForgotten: what is neither called nor offered is dropped, what is offered stays.
func TestForgotten(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := resultschema.New(files(t, dir), nil)
		s.Learn("up", digest(1), text(`1`))
		s.Learn("up", digest(2), text(`2`))
		s.Close()
		time.Sleep(60 * 24 * time.Hour)
		s = resultschema.New(files(t, dir), nil)
		want(t, s, `1x {"k":16}`) // it was offered
		s.Close()
		time.Sleep(60 * 24 * time.Hour)
		s = resultschema.New(files(t, dir), nil)
		s.Learn("up", digest(3), text(`3`))
		s.Close()
		known, err := files(t, dir).Load("up")
		if err != nil || len(known) != 2 || known[digest(1)].Count != 1 || known[digest(3)].Count != 1 {
			t.Errorf("%v, %v", known, err)
		}
	})
}

// TestBoundsOfAFile: an upstream of which endless definitions were called fills no disk.
func TestBoundsOfAFile(t *testing.T) {
	var members []string
	for i := range 120 {
		members = append(members, fmt.Sprintf(`"%s%c%c":{"name_of_it":%d,"number_of_it":%q,"e":[]}`, strings.Repeat("m", 50), 'a'+i/26, 'a'+i%26, i, "x"))
		if i%3 == 0 { // or it would be a map
			members[i] = fmt.Sprintf(`"%c%c":1`, 'a'+i/26, 'a'+i%26)
		}
	}
	large, err := jsontype.Of([]byte("{" + strings.Join(members, ",") + "}"))
	if err != nil {
		t.Fatal(err)
	}
	learned := resultschema.Entries{}
	day := int(time.Now().Unix() / 86400)
	for i := range 2500 {
		learned[digest(i)] = resultschema.Entry{Shape: large, Count: 1, Day: day - i%3}
	}
	dir := t.TempDir()
	keep := files(t, dir)
	if _, err := keep.Merge("up", learned); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "up.shapes"))
	if err != nil || info.Size() > 8<<20 {
		t.Errorf("%v, %v", info, err)
	}
	known, err := keep.Load("up")
	if err != nil || len(known) < 10 || len(known) > 2000 {
		t.Errorf("%d are kept, %v", len(known), err)
	}
	for digest, e := range known {
		if e.Day == day-2 {
			t.Errorf("%s is old and kept", digest)
		}
	}
}

func FuzzLoad(f *testing.F) {
	dir := f.TempDir()
	keep := files(f, dir)
	f.Add([]byte(`{"00000000000000000000000000000001":{"s":{"k":64,"p":[{"n":"id","s":{"k":4}}]},"n":1,"d":20000}}`))
	f.Add([]byte(`{"00000000000000000000000000000001":{"s":{"k":32,"e":{}},"n":-1,"d":20000}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var known resultschema.Entries
		if json.Unmarshal(body, &known) != nil {
			return
		}
		if _, err := keep.Merge("up", known); err != nil {
			t.Fatal(err)
		}
		if _, err := keep.Load("up"); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		_ = os.Remove(filepath.Join(dir, "up.shapes"))
	})
}

// BenchmarkLearn is what a call pays.
func BenchmarkLearn(b *testing.B) {
	s := resultschema.New(nil, nil)
	defer s.Close()
	result := text(`{"items":[` + strings.Repeat(`{"id":1,"name":"x"},`, 200) + `{}]}`)
	testutil.Measure(b, func() error { s.Learn("up", digest(1), result); return nil })
}
