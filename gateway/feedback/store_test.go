package feedback_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/feedback"
	"sallyport/internal/tool"
)

var (
	me     = feedback.Caller{}
	create = tool.ID{Upstream: "github", Name: "create_issue"}
	remove = tool.ID{Upstream: "calendar", Name: "delete_event"}
	other  = tool.ID{Upstream: "slack", Name: "post_message"}
)

const digest = "00112233445566778899aabbccddeeff"

// current is a catalog in which nothing has changed.
func current(tool.ID) string { return digest }

// words makes a query of words that are all as telling as their length says.
func words(text string) map[string]float64 {
	all := map[string]float64{}
	for word := range strings.FieldsSeq(text) {
		all[word] = float64(len(word))
	}
	return all
}

// use searches and then calls.
func use(s *feedback.Store, who feedback.Caller, query string, id tool.ID) {
	s.RecordSearch(who, words(query), []tool.ID{id})
	s.RecordCall(who, "", id, digest)
}

// days uses it on several days, which has to be in a bubble.
func days(n int, s *feedback.Store, query string, id tool.ID) {
	for range n {
		use(s, me, query, id)
		time.Sleep(time.Hour)
	}
}

func favour(s *feedback.Store, query string) map[tool.ID]float64 {
	return s.Boost(me.Principal, words(query), current)
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > .01 {
		t.Errorf("%s is %.3f, want %.3f", what, got, want)
	}
}

func memory(t *testing.T) *feedback.Store {
	t.Helper()
	s := feedback.New(nil, nil)
	t.Cleanup(s.Close)
	return s
}

// TestFewClicks: one moves little, more move more, and there is an end to it.
func TestFewClicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		if got := favour(s, "open ticket"); len(got) > 0 {
			t.Errorf("from nothing: %v", got)
		}
		last := 0.0
		for n, want := range []float64{1: .036, 2: .229, 3: .5, 6: .889} {
			if n > 0 {
				days(1, s, "open ticket", create)
			}
			got := favour(s, "open ticket")[create]
			if want > 0 {
				near(t, fmt.Sprint("favour after ", n), got, want)
			}
			if got < last || got > 1 {
				t.Errorf("%d clicks: %v after %v", n, got, last)
			}
			last = got
		}
		days(500, s, "open ticket", create)
		use(s, me, "open ticket", remove)
		got := favour(s, "open ticket")
		if got[create] > 1 || got[create] < .9 || got[remove] > .01 {
			t.Errorf("one stray call among many: %v", got)
		}
	})
}

// TestAlike: what was learned counts for queries like it, the rare words more than the common.
func TestAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		days(6, s, "a repository ticket", create)
		same, telling, common, none := favour(s, "a ticket repository")[create], favour(s, "repository")[create], favour(s, "a note")[create], favour(s, "weather")[create]
		if !(same > telling && telling > .2 && common == 0 && none == 0) {
			t.Errorf("the same %v, the telling word %v, the common one %v, none %v", same, telling, common, none)
		}
	})
}

// TestWhatCounts: which call counts for which search.
func TestWhatCounts(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(s *feedback.Store)
		want map[string]float64 // strength of create, by query
	}{
		"no search before it": {func(s *feedback.Store) {
			s.RecordCall(me, "e", create, digest)
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
		}, map[string]float64{"ticket": 0}},
		"another session": {func(s *feedback.Store) {
			s.RecordSearch(feedback.Caller{Session: "a"}, words("ticket"), []tool.ID{create})
			s.RecordCall(feedback.Caller{Session: "b"}, "e", create, digest)
		}, map[string]float64{"ticket": 0}},
		"another principal": {func(s *feedback.Store) {
			s.RecordSearch(feedback.Caller{Principal: "x"}, words("ticket"), []tool.ID{create})
			s.RecordCall(feedback.Caller{Principal: "x"}, "e", create, digest)
		}, map[string]float64{"ticket": 0}},
		"a loop in a program": {func(s *feedback.Store) {
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			for range 100 {
				s.RecordCall(me, "e", create, digest)
			}
		}, map[string]float64{"ticket": 1}},
		"a loop of searches and calls in a program": {func(s *feedback.Store) {
			for i := range 100 {
				s.RecordSearch(me, words("ticket "+spell(i)), []tool.ID{create})
				s.RecordCall(me, "e", create, digest)
			}
		}, map[string]float64{"ticket a": 1}},
		"a loop of one search and one call": {func(s *feedback.Store) {
			for range 100 {
				use(s, me, "ticket", create)
			}
		}, map[string]float64{"ticket": 1}},
		"the same in an hour": {func(s *feedback.Store) { days(2, s, "ticket", create) }, map[string]float64{"ticket": 2}},
		"a loop of direct calls": {func(s *feedback.Store) {
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			for range 10 {
				s.RecordCall(me, "", create, digest)
			}
		}, map[string]float64{"ticket": 1}},
		"the last search most": {func(s *feedback.Store) {
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			s.RecordSearch(me, words("problem"), []tool.ID{create})
			s.RecordCall(me, "e", create, digest)
		}, map[string]float64{"ticket": .5, "problem": 1}},
		"a search that found nothing of use, before one that did": {func(s *feedback.Store) {
			s.RecordSearch(me, words("grievance"), []tool.ID{other})
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			s.RecordCall(me, "e", create, digest)
			s.Close()
		}, map[string]float64{"ticket": 1, "grievance": .5}},
		"a search for something else, in the same program": {func(s *feedback.Store) {
			s.RecordSearch(me, words("message"), []tool.ID{other})
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			s.RecordCall(me, "e", create, digest)
			s.RecordCall(me, "e", other, digest)
			s.Close()
		}, map[string]float64{"ticket": 1, "message": 0}},
		"a tool that no search showed": {func(s *feedback.Store) {
			s.RecordSearch(me, words("message"), []tool.ID{other})
			s.RecordSearch(me, words("grievance"), []tool.ID{remove})
			s.RecordCall(me, "e", create, digest)
			s.Close()
		}, map[string]float64{"grievance": .5, "message": 0}},
		"too late": {func(s *feedback.Store) {
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			time.Sleep(11 * time.Minute)
			s.RecordCall(me, "e", create, digest)
		}, map[string]float64{"ticket": 0}},
		"too many programs later": {func(s *feedback.Store) {
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			for i := range 6 {
				s.RecordCall(me, fmt.Sprint(i), other, digest)
			}
			s.RecordCall(me, "e", create, digest)
		}, map[string]float64{"ticket": 0}},
		"the third program": {func(s *feedback.Store) {
			s.RecordSearch(me, words("ticket"), []tool.ID{create})
			for i := range 2 {
				s.RecordCall(me, fmt.Sprint(i), other, digest)
			}
			s.RecordCall(me, "e", create, digest)
		}, map[string]float64{"ticket": 1}},
		"secrets and persons": {func(s *feedback.Store) {
			s.RecordSearch(me, map[string]float64{"ada@example": 1, "4711": 1, "k3y": 1, "dottedname.": 1, strings.Repeat("a", 25): 1}, []tool.ID{create})
			s.RecordCall(me, "e", create, digest)
		}, map[string]float64{"ada@example 4711 k3y": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory(t)
				test.do(s)
				for query, want := range test.want {
					f := favour(s, query)[create]
					near(t, "strength for "+query, math.Cbrt(27*f/(1-f)), want) // of one tool alone
				}
			})
		})
	}
}

// TestDefinition: what was learned of a definition counts for no other one.
func TestDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		for range 5 {
			use(s, me, "ticket", create)
			use(s, me, "ticket", remove)
			time.Sleep(time.Hour)
		}
		got := s.Boost("", words("ticket"), func(id tool.ID) string {
			if id == create {
				return "ffffffffffffffffffffffffffffffff"
			}
			return digest
		})
		if len(got) != 1 || got[remove] == 0 {
			t.Errorf("got %v", got)
		}
		if got := s.Boost("", words("ticket"), func(tool.ID) string { return "" }); len(got) > 0 {
			t.Errorf("of tools that are gone: %v", got)
		}
	})
}

// TestDecay: a pair that is not used any more fades, and goes.
func TestDecay(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := feedback.New(files(t, dir), nil)
		days(3, s, "ticket", create)
		near(t, "at once", favour(s, "ticket")[create], .5)
		time.Sleep(30 * 24 * time.Hour)
		near(t, "after 30 days", favour(s, "ticket")[create], 3.375/(3.375+27))
		use(s, me, "ticket", create)
		near(t, "used again", favour(s, "ticket")[create], 15.625/(15.625+27))
		s.Close()
		time.Sleep(300 * 24 * time.Hour)
		s = feedback.New(files(t, dir), nil)
		defer s.Close()
		use(s, me, "note", other)
		time.Sleep(time.Minute)
		known, err := files(t, dir).Load("")
		if err != nil || len(known) != 1 {
			t.Errorf("%v, %v", known, err)
		}
	})
}

func files(t testing.TB, dir string) *feedback.Files {
	t.Helper()
	f, err := feedback.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestKept: what was learned outlives the store, principals apart, and nothing else is in the files.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "clicks")
	synctest.Test(t, func(t *testing.T) {
		s := feedback.New(files(t, dir), nil)
		for range 3 {
			use(s, me, "ticket k3y ada@example 4711", create)
			use(s, feedback.Caller{Principal: "../ada"}, "ticket", remove)
			time.Sleep(time.Hour)
		}
		s.Close()
		s.Close()
		s = feedback.New(files(t, dir), nil)
		defer s.Close()
		near(t, "mine", favour(s, "ticket")[create], .5)
		if got := s.Boost("../ada", words("ticket"), current); len(got) != 1 || got[remove] < .4 {
			t.Errorf("ada's: %v", got)
		}
		if got := s.Boost("bob", words("ticket"), current); len(got) > 0 {
			t.Errorf("bob's: %v", got)
		}
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(names) != 2 {
			t.Errorf("files: %v", names)
		}
		for _, name := range names {
			info, err := os.Stat(name)
			data, _ := os.ReadFile(name)
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			for _, secret := range []string{"k3y", "ada", "4711"} {
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("%s has %q:\n%s", name, secret, data)
				}
			}
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
}

// TestTwoProcesses: stores on one directory add up what they learn.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a, b := feedback.New(files(t, dir), nil), feedback.New(files(t, dir), nil)
		near(t, "b at first", favour(b, "ticket")[create], 0)
		for range 3 {
			use(a, me, "ticket", create)
			use(b, me, "ticket", create)
			time.Sleep(time.Hour)
		}
		use(a, me, "ticket", other) // so that both have saved, and read, once more
		use(b, me, "ticket", other)
		time.Sleep(10 * time.Second)
		use(a, me, "ticket", other)
		time.Sleep(10 * time.Second)
		near(t, "a", favour(a, "ticket")[create], .889)
		b.Close()
		a.Close()
		c := feedback.New(files(t, dir), nil)
		near(t, "c", favour(c, "ticket")[create], .889)
		c.Close()
	})
}

// TestForgotten: a file that is deleted while a gateway runs is not written again with what it held.
func TestForgotten(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := feedback.New(files(t, dir), nil)
		defer s.Close()
		days(3, s, "ticket", create)
		time.Sleep(10 * time.Second)
		names, _ := filepath.Glob(filepath.Join(dir, "*.clicks"))
		if len(names) != 1 || os.Remove(names[0]) != nil {
			t.Fatalf("files: %v", names)
		}
		use(s, me, "note", other)
		time.Sleep(10 * time.Second)
		if got := favour(s, "ticket"); len(got) > 0 {
			t.Errorf("it remembers %v", got)
		}
	})
}

// TestDamage: a file that is of no use is no reason to stop, nor to forget what is in memory.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		opts := &feedback.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		s := feedback.New(files(t, dir), opts)
		days(3, s, "ticket", create)
		time.Sleep(10 * time.Second)
		names, _ := filepath.Glob(filepath.Join(dir, "*.clicks"))
		whole, err := os.ReadFile(names[0])
		if err != nil || os.WriteFile(names[0], whole[:len(whole)-3], 0o600) != nil {
			t.Fatal(err)
		}
		cut := feedback.New(files(t, dir), opts)
		if got := favour(cut, "ticket"); len(got) > 0 || !strings.Contains(log.String(), "its checksum is wrong") {
			t.Errorf("%v of a damaged file, log: %s", got, log.String())
		}
		cut.Close()
		use(s, me, "note", other)
		s.Close()
		s = feedback.New(files(t, dir), opts)
		defer s.Close()
		near(t, "after the damage", favour(s, "ticket")[create], .5)
	})
}

// TestBounds: endless queries fill neither memory nor disk, and what counts most stays.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		keep := files(t, dir)
		s := feedback.New(keep, nil)
		days(4, s, "ticket", create)
		for i := range 6000 {
			use(s, me, fmt.Sprintf("word%s %s", spell(i), strings.Repeat("x", 20)), other)
		}
		for i := range 700 {
			use(s, feedback.Caller{Principal: fmt.Sprint(i), Session: "s"}, "ticket", remove)
		}
		if got := favour(s, "ticket")[create]; got < .6 {
			t.Errorf("the one that counts: %v", got)
		}
		s.Close()
		known, err := keep.Load("")
		if err != nil || len(known) > 2000 || len(known) < 1900 {
			t.Errorf("%d are kept, %v", len(known), err)
		}
		files(t, dir)
		if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) > 500 {
			t.Errorf("%d files after a start", len(names))
		}
	})
}

// spell writes a number in letters.
func spell(i int) string {
	return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i))
}

// TestAtOnce is for the race detector.
func TestAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := feedback.New(files(t, dir), nil)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for j := range 50 {
				who := feedback.Caller{Principal: fmt.Sprint((i + j) % 40)}
				use(s, who, "ticket "+spell(j%7), create)
				s.Boost(who.Principal, words("ticket"), current)
			}
		})
	}
	work.Wait()
	s.Close()
	use(s, me, "ticket", create) // after the end it does no harm
}

func BenchmarkFavour(b *testing.B) {
	s := feedback.New(nil, nil)
	defer s.Close()
	for i := range 2000 {
		use(s, me, fmt.Sprintf("ticket %s %s", spell(i%50), spell(i)), create)
	}
	for b.Loop() {
		s.Boost("", words("ticket b weather"), current)
	}
}

// TestClockSetBack: what was learned before neither grows nor is lost.
func TestClockSetBack(t *testing.T) {
	dir := t.TempDir()
	ahead := feedback.Pair{Words: words("ticket"), Tool: create, Digest: digest, Strength: 3, At: time.Now().Add(20 * 365 * 24 * time.Hour).Unix()}
	if _, err := files(t, dir).Merge("", feedback.Pairs{}, feedback.Pairs{"one": ahead}); err != nil {
		t.Fatal(err)
	}
	s := feedback.New(files(t, dir), nil)
	defer s.Close()
	near(t, "from a time to come", favour(s, "ticket")[create], .5)
}
