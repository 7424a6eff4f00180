package recognizer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/pii"
	"sallyport/internal/recognizer"
	"sallyport/internal/recognizer/recognizertest"
	"sallyport/internal/testutil/tlstest"
)

func settings(t *testing.T, url string) recognizer.Settings {
	t.Helper()
	return recognizer.Settings{
		URL: url, Authorities: tlstest.Authority(t), Language: "en", Threshold: 0.5, Timeout: 10 * time.Second,
		Entities: map[string]pii.Kind{"PERSON": pii.Name, "LOCATION": pii.Address},
	}
}

func client(t *testing.T, s recognizer.Settings) *recognizer.Client {
	t.Helper()
	c, err := recognizer.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestOffsets: code points of an answer become bytes, whatever stands before: signs of two to four bytes, joined ones, bytes that are not UTF-8.
func TestOffsets(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, map[string]string{"Zoë Müller": "PERSON", "東京": "LOCATION", "Ann Lee": "PERSON"})
	c := client(t, settings(t, s.URL))
	var texts []string
	var want []string
	for _, before := range []string{"", "to ", "ß ", "“x” ", "😀👩‍👩‍👧 ", "e\u0301 ", "\xff\xfe ", "\u2028<&>\"\\\t ", "\x00 "} {
		for _, value := range []string{"Zoë Müller", "東京", "Ann Lee"} {
			texts, want = append(texts, before+value+" 😀."), append(want, value)
		}
	}
	found, err := c.Find(t.Context(), "ann", texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, list := range found {
		if len(list) != 1 || texts[i][list[0].Start:list[0].End] != want[i] {
			t.Errorf("%q: %v, want %q", texts[i], list, want[i])
		}
	}
}

// TestBatches: many texts are few requests, and what stands at the border of two pieces of a long text is found.
func TestBatches(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, map[string]string{"Ann Lee": "PERSON"})
	c := client(t, settings(t, s.URL))
	var texts []string
	for i := range 250 {
		texts = append(texts, fmt.Sprintf("row %d of Ann Lee", i))
	}
	if found, err := c.Find(t.Context(), "ann", texts); err != nil || len(found) != 250 || len(found[249]) != 1 {
		t.Fatalf("%d, %v", len(found), err)
	}
	if _, n := s.Requests(); n != 3 {
		t.Errorf("%d requests for 250 short texts, want 3", n)
	}
	for _, fill := range []string{"x", "x ", "é", "word after word\n"} {
		for _, at := range []int{0, 15800, 15872, 15900, 16370, 16380, 16384, 16390, 32000, 60000} {
			text := strings.Repeat(fill, at/len(fill)) + " Ann Lee " + strings.Repeat(fill, 3000)
			found, err := c.Find(t.Context(), "ann", []string{text})
			if err != nil {
				t.Fatal(err)
			}
			if len(found[0]) == 0 || text[found[0][0].Start:found[0][0].End] != "Ann Lee" {
				t.Errorf("behind %d bytes of %q: %v", at, fill, found[0])
			}
		}
	}
}

// TestFaults: an answer that is not right is an error that has nothing of the text, and never a result.
func TestFaults(t *testing.T) {
	t.Parallel()
	const text = "The secret of Ann Lee"
	entity := func(fields string) string { return `[[{` + fields + `}]]` }
	for name, c := range map[string]struct {
		status     int
		body, want string
	}{
		"status":       {500, `{"error":"The secret of Ann Lee"}`, "HTTP 500"},
		"redirect":     {302, ``, "HTTP 302"},
		"no JSON":      {200, `<html>`, "not one list"},
		"one list":     {200, `[{"entity_type":"PERSON","start":0,"end":3,"score":1}]`, "not one list"},
		"null":         {200, `[null]`, "not one list"},
		"too few":      {200, `[]`, "0 texts of 1"},
		"too many":     {200, `[[],[]]`, "2 texts of 1"},
		"no end":       {200, entity(`"entity_type":"PERSON","start":0,"score":1`), "no entity_type"},
		"null score":   {200, entity(`"entity_type":"PERSON","start":0,"end":2,"score":null`), "no entity_type"},
		"text number":  {200, entity(`"entity_type":"PERSON","start":"0","end":2,"score":1`), "not one list"},
		"beyond":       {200, entity(`"entity_type":"PERSON","start":0,"end":22,"score":1`), "code points"},
		"negative":     {200, entity(`"entity_type":"PERSON","start":-1,"end":2,"score":1`), "code points"},
		"empty":        {200, entity(`"entity_type":"PERSON","start":2,"end":2,"score":1`), "code points"},
		"not a number": {200, entity(`"entity_type":"PERSON","start":0,"end":2,"score":NaN`), "not one list"},
		"fraction":     {200, entity(`"entity_type":"PERSON","start":0.5,"end":2,"score":1`), "not one list"},
		"beyond int":   {200, entity(`"entity_type":"PERSON","start":0,"end":99999999999999999999,"score":1`), "not one list"},
		"deep":         {200, strings.Repeat("[", 1<<20), "not one list"},
		"only null":    {200, `null`, "0 texts of 1"},
		"score":        {200, entity(`"entity_type":"PERSON","start":0,"end":2,"score":85`), "0 to 1"},
		"huge":         {200, "[[" + strings.Repeat(" ", 8<<20) + "]]", "larger than"},
	} {
		s := recognizertest.New(t, nil)
		s.Down.Store(recognizertest.FixedResponse(c.status, c.body))
		found, err := client(t, settings(t, s.URL)).Find(t.Context(), "ann", []string{text})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Ann") || found != nil {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// TestOverlaps: of entities that overlap nothing is left over, in whatever order they come.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	const text = "Ann Lee of Lee Road 7, York"
	entity := func(kind string, start, end int) string {
		return fmt.Sprintf(`{"entity_type":%q,"start":%d,"end":%d,"score":0.9}`, kind, start, end)
	}
	person, road, city, inner := entity("PERSON", 0, 14), entity("LOCATION", 11, 27), entity("LOCATION", 23, 27), entity("PERSON", 4, 7)
	for _, list := range []string{person + "," + road + "," + city + "," + inner, inner + "," + city + "," + road + "," + person} {
		s := recognizertest.New(t, nil)
		s.Down.Store(recognizertest.FixedResponse(200, "[["+list+"]]"))
		found, err := client(t, settings(t, s.URL)).Find(t.Context(), "ann", []string{text})
		if want := []pii.Finding{{Kind: pii.Address, Start: 0, End: 27}}; err != nil || !slices.Equal(found[0], want) {
			t.Errorf("%s: %v, %v", list, found, err)
		}
	}
}

// TestManyEntities: as many as an answer may have cost no more than to read them.
func TestManyEntities(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Ann ", 4000)
	var b strings.Builder
	for i := range 130_000 {
		fmt.Fprintf(&b, `,{"entity_type":"PERSON","start":%d,"end":%d,"score":1}`, i%15000, i%15000+3)
	}
	s := recognizertest.New(t, nil)
	s.Down.Store(recognizertest.FixedResponse(200, "[["+b.String()[1:]+"]]"))
	found, err := client(t, settings(t, s.URL)).Find(t.Context(), "ann", []string{text})
	if err != nil || len(found[0]) != 1 || found[0][0].End != 15002 {
		t.Errorf("%d, %v", len(found[0]), err)
	}
}

// TestKnownTexts: what was asked once is not sent again, for the same principal; a fault is not kept.
func TestKnownTexts(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, map[string]string{"Ann Lee": "PERSON"})
	c := client(t, settings(t, s.URL))
	s.Down.Store(recognizertest.FixedResponse(500, ""))
	if _, err := c.Find(t.Context(), "ann", []string{"Ann Lee"}); err == nil {
		t.Error("no fault")
	}
	s.Down.Store(nil)
	for _, step := range []struct {
		principal string
		texts     []string
		sent      int
	}{
		{"ann", []string{"Ann Lee", "no one"}, 2},
		{"ann", []string{"no one", "to Ann Lee", "Ann Lee"}, 3},
		{"bob", []string{"Ann Lee"}, 4},
	} {
		found, err := c.Find(t.Context(), step.principal, step.texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range step.texts {
			if got := len(found[i]); got != strings.Count(text, "Ann Lee") {
				t.Errorf("%s, %q: %v", step.principal, text, found[i])
			}
		}
		if sent, _ := s.Requests(); len(sent) != step.sent {
			t.Errorf("%s, %q: %q were sent, want %d", step.principal, step.texts, sent, step.sent)
		}
	}
	many := make([]string, 60_000) // more than are kept
	for i := range many {
		many[i] = fmt.Sprint("row ", i)
	}
	if _, err := c.Find(t.Context(), "ann", many); err != nil {
		t.Fatal(err)
	}
	before, _ := s.Requests()
	if _, err := c.Find(t.Context(), "ann", []string{"Ann Lee", many[len(many)-1]}); err != nil {
		t.Fatal(err)
	}
	if after, _ := s.Requests(); len(after)-len(before) != 1 {
		t.Errorf("%d texts were sent, want the one that was forgotten", len(after)-len(before))
	}
}

// TestSingle: a service that takes no list gets one text in a request, and answers with one list.
func TestSingle(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, map[string]string{"Ann Lee": "PERSON"})
	s.NoLists = true
	set := settings(t, s.URL)
	if _, err := client(t, set).Find(t.Context(), "ann", []string{"Ann Lee", "x Ann Lee"}); err == nil {
		t.Error("it took a list")
	}
	set.Single = true
	found, err := client(t, set).Find(t.Context(), "ann", []string{"Ann Lee", "no one", "x Ann Lee"})
	if err != nil || len(found[0]) != 1 || len(found[1]) != 0 || len(found[2]) != 1 || found[2][0].Start != 2 {
		t.Errorf("%v, %v", found, err)
	}
	s.Down.Store(recognizertest.FixedResponse(200, "[[]]"))
	if _, err := client(t, set).Find(t.Context(), "ann", []string{"Ann Lee"}); err == nil || err.Error() != "its answer is not one list of entities" {
		t.Errorf("a list of lists: %v", err)
	}
}

// TestRefusals are the service's own: an entity, language or path that it does not have.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, nil)
	for name, change := range map[string]func(*recognizer.Settings){
		"language": func(s *recognizer.Settings) { s.Language = "tlh" },
		"entities": func(s *recognizer.Settings) { s.Entities = map[string]pii.Kind{"WIZARD": pii.Name} },
		"path":     func(s *recognizer.Settings) { s.URL += "/v2" },
	} {
		set := settings(t, s.URL)
		change(&set)
		if _, err := client(t, set).Find(t.Context(), "ann", []string{"Ann Lee"}); err == nil || !strings.Contains(err.Error(), "HTTP ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNotAsked: entities of other types and with a low score are no findings.
func TestNotAsked(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, nil)
	s.Down.Store(recognizertest.FixedResponse(200, `[[{"entity_type":"NRP","start":0,"end":3,"score":1},{"entity_type":"PERSON","start":0,"end":3,"score":0.4}]]`))
	if found, err := client(t, settings(t, s.URL)).Find(t.Context(), "ann", []string{"Ann Lee"}); err != nil || len(found[0]) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestConnections: who is not who the certificate says is not asked, nor who does not answer; a lost connection is tried again.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, map[string]string{"Ann Lee": "PERSON"})
	stranger := settings(t, s.URL)
	stranger.Authorities = ""
	if _, err := client(t, stranger).Find(t.Context(), "ann", []string{"Ann Lee"}); err == nil || err.Error() != "its certificate is not trusted" {
		t.Errorf("unknown authority: %v", err)
	}
	if texts, _ := s.Requests(); len(texts) > 0 {
		t.Errorf("it was sent %q", texts)
	}
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server learns that a client has gone when it has read what was sent
		<-r.Context().Done()
	})
	s.Down.Store(&slow)
	hasty := settings(t, s.URL)
	hasty.Timeout = 50 * time.Millisecond
	if _, err := client(t, hasty).Find(t.Context(), "ann", []string{"Ann Lee"}); err == nil || err.Error() != "it does not answer in time" {
		t.Errorf("slow: %v", err)
	}
	var calls atomic.Int32
	once := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		(*recognizertest.FixedResponse(200, `[[]]`))(w, r)
	})
	s.Down.Store(&once)
	if _, err := client(t, settings(t, s.URL)).Find(t.Context(), "ann", []string{"Ann Lee"}); err != nil || calls.Load() != 2 {
		t.Errorf("lost once: %v after %d calls", err, calls.Load())
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	if _, err := client(t, settings(t, "https://"+gone.Addr().String())).Find(t.Context(), "ann", []string{"Ann Lee"}); err == nil || err.Error() != "it cannot be reached" {
		t.Errorf("nobody there: %v", err)
	}
}

// TestRedirects: neither texts nor headers go to another host.
func TestRedirects(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	other := tlstest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	s := recognizertest.New(t, nil)
	away := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	s.Down.Store(&away)
	if _, err := client(t, settings(t, s.URL)).Find(t.Context(), "ann", []string{"Ann Lee"}); err == nil || asked.Load() != 0 {
		t.Errorf("%v, %d requests elsewhere", err, asked.Load())
	}
}

// TestLoad: many callers at once have few requests under way, and one that is cancelled waits for nothing.
func TestLoad(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, nil)
	var now, most atomic.Int32
	held := make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for n := now.Add(1); ; {
			if seen := most.Load(); n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		<-held
		now.Add(-1)
		(*recognizertest.FixedResponse(200, `[[]]`))(w, r)
	})
	s.Down.Store(&slow)
	c := client(t, settings(t, s.URL))
	done := make(chan error, 20)
	for range 20 {
		go func() { _, err := c.Find(context.Background(), "ann", []string{"Ann Lee"}); done <- err }()
	}
	for now.Load() < 4 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Find(ctx, "ann", []string{"Ann Lee"}); !errors.As(err, new(*recognizer.Fault)) {
		t.Errorf("cancelled: %v", err)
	}
	close(held)
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 4 {
		t.Errorf("%d requests at once", most.Load())
	}
}
