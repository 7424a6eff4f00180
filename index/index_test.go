package index_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/index"
	"sallyport/internal/tool"
)

func doc(id, description string, params ...string) index.Doc {
	parsed, err := tool.ParseID(id)
	if err != nil {
		panic(err)
	}
	d := index.Doc{ID: parsed, Description: description}
	for _, p := range params {
		name, about, _ := strings.Cut(p, ":")
		d.Params = append(d.Params, index.Param{Name: name, Description: about})
	}
	return d
}

// few is a small catalog of the usual kinds.
func few() []index.Doc {
	sum := doc("everything.get_sum", "Returns the sum of two numbers.", "a:first number", "b:second number")
	sum.Wire = "get-sum"
	chinese := doc("bing.bing_search", "使用必应搜索指定的关键词，并返回搜索结果列表")
	chinese.Upstream = "中文必应搜索工具"
	cyrillic := doc("mail.otpravit", "Отправить письмо получателю")
	return []index.Doc{
		doc("memory.create_entities", "Create multiple new entities in the knowledge graph", "entities:the entities to store"),
		doc("memory.delete_entities", "Delete entities and their relations from the knowledge graph", "entityNames:names"),
		doc("memory.read_graph", "Read the entire knowledge graph"),
		doc("files.read_file", "Read a file from disk as text.", "path:where it lies"),
		doc("files.write_file", "Write text to a file, replacing what is there.", "path:where it lies", "content:the text"),
		doc("files.list_directory", "List what a directory holds.", "path:where it lies"),
		doc("github.create_issue", "Create a new issue in a repository.", "owner:account", "repo:name", "title:headline"),
		doc("github.create_pull_request", "Create a pull request.", "head:branch", "base:branch"),
		doc("github.searchRepositories", "Search for repositories.", "query:what to look for"),
		doc("billing.createInvoice", "Make out an invoice for a customer.", "customerId:whom"),
		doc("calendar.delete_event", "Delete an event from the calendar.", "eventId:which"),
		doc("chatter.post_message", "Post a message to a channel.", "channel:where", "text:what"),
		sum, chinese, cyrillic,
	}
}

func build(t testing.TB, docs []index.Doc) *index.Index {
	t.Helper()
	ix, err := index.New(docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

func find(t testing.TB, ix *index.Index, q index.Query) index.Results {
	t.Helper()
	res, err := ix.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("Search(%.100q): %v", q.Text, err)
	}
	return res
}

func ids(res index.Results) []string {
	var out []string
	for _, h := range res.Hits {
		out = append(out, h.ID.String())
	}
	return out
}

func TestSearchPutsFirst(t *testing.T) {
	ix := build(t, few())
	for name, tests := range map[string][][2]string{
		"exact names": {
			{"create_entities", "memory.create_entities"}, {"memory.create_entities", "memory.create_entities"},
			{"CREATE_ENTITIES", "memory.create_entities"}, {"createEntities", "memory.create_entities"},
			{"create entities", "memory.create_entities"}, {"`memory.create_entities`", "memory.create_entities"},
			{"get-sum", "everything.get_sum"}, {"getSum", "everything.get_sum"}, {"Everything.Get-Sum", "everything.get_sum"},
			{"how do I call read_graph for a repository issue", "memory.read_graph"}, {"create_invoice", "billing.createInvoice"},
		},
		"words": {
			{"knowledge graph read", "memory.read_graph"}, {"put text into a file", "files.write_file"},
			{"creating issues", "github.create_issue"}, {"repositories", "github.searchRepositories"},
			{"where is my directory", "files.list_directory"}, {"add two numbers", "everything.get_sum"},
		},
		"joined and split": {
			{"pullrequest", "github.create_pull_request"}, {"pull-request", "github.create_pull_request"},
			{"pull request", "github.create_pull_request"}, {"customer id", "billing.createInvoice"}, {"postmessage", "chatter.post_message"},
			{"channeltext", "chatter.post_message"},
		},
		"synonyms": {
			{"remove calendar entry", "calendar.delete_event"}, {"new bill", "billing.createInvoice"}, {"open a ticket", "github.create_issue"},
			{"chat", "chatter.post_message"}, {"folder", "files.list_directory"},
		},
		"slips and pieces": {
			{"repositries", "github.searchRepositories"}, {"creat_entites", "memory.create_entities"}, {"invioce", "billing.createInvoice"},
			{"direct", "files.list_directory"}, {"calen", "calendar.delete_event"}, {"knowlxedge graph", "memory.read_graph"},
		},
		"other writing": {
			{"关键词", "bing.bing_search"}, {"必应搜索", "bing.bing_search"}, {"письмо", "mail.otpravit"}, {"ОТПРАВИТЬ", "mail.otpravit"},
			{"ｃｒｅａｔｅ＿ｉｓｓｕｅ", "github.create_issue"}, {"inv\u00f3ice", "billing.createInvoice"}, {"invo\u0301ice", "billing.createInvoice"},
		},
		"an upstream": {
			{"upstream:github create", "github.create_issue"}, {"UPSTREAM:Files text", "files.write_file"}, {"create upstream:memory", "memory.create_entities"},
		},
	} {
		for _, test := range tests {
			t.Run(name+"/"+test[0], func(t *testing.T) {
				if got := ids(find(t, ix, index.Query{Text: test[0]})); len(got) == 0 || got[0] != test[1] {
					t.Errorf("got %v, want %s first", got, test[1])
				}
			})
		}
	}
}

func TestUpstreamRestricts(t *testing.T) {
	ix := build(t, few())
	for _, q := range []index.Query{{Text: "create", Upstream: "github"}, {Text: "upstream:github create"}, {Text: "create upstream:memory", Upstream: "GitHub"}} {
		res := find(t, ix, q)
		if len(res.Hits) < 2 || res.Total != len(res.Hits) {
			t.Fatalf("%+v: %d of %d hits", q, len(res.Hits), res.Total)
		}
		for _, h := range res.Hits {
			if h.ID.Upstream != "github" {
				t.Errorf("%+v found %s", q, h.ID)
			}
		}
	}
	if got := ids(find(t, ix, index.Query{Text: "create_entities", Upstream: "github"})); slices.Contains(got, "memory.create_entities") {
		t.Errorf("an exact name got past the restriction: %v", got)
	}
}

func TestUnknownUpstream(t *testing.T) {
	ix := build(t, few())
	want := index.Results{Weak: true, Unmatched: []string{"githb"}, Suggest: []string{"github"}}
	for _, text := range []string{"", "create issue"} {
		if diff := cmp.Diff(want, find(t, ix, index.Query{Text: text, Upstream: "githb"})); diff != "" {
			t.Errorf("text %q: %s", text, diff)
		}
	}
	res := find(t, ix, index.Query{Text: "upstream:githb create issue"})
	if len(res.Hits) == 0 || res.Hits[0].ID.String() != "github.create_issue" || !slices.Contains(res.Suggest, "github") {
		t.Errorf("a wrong upstream inside the text hid the answer: %+v", res)
	}
}

func TestEmptyText(t *testing.T) {
	ix := build(t, few())
	if res := find(t, ix, index.Query{Text: " \n "}); len(res.Hits) != 0 || res.Total != 0 || res.Weak {
		t.Errorf("no text, no upstream: %+v", res)
	}
	want := []string{"files.list_directory", "files.read_file", "files.write_file"}
	for _, q := range []index.Query{{Upstream: "files"}, {Text: "upstream:files"}, {Text: "???", Upstream: "Files"}} {
		if diff := cmp.Diff(want, ids(find(t, ix, q))); diff != "" {
			t.Errorf("%+v: %s", q, diff)
		}
	}
	for _, limit := range []int{-1, math.MaxInt} {
		if res := find(t, ix, index.Query{Upstream: "files", Limit: limit}); len(res.Hits) != 3 {
			t.Errorf("limit %d: %+v", limit, res)
		}
		if res := find(t, ix, index.Query{Text: "file", Limit: limit}); len(res.Hits) == 0 {
			t.Errorf("limit %d: %+v", limit, res)
		}
	}
	if res := find(t, ix, index.Query{Upstream: "files", Limit: 2}); len(res.Hits) != 2 || res.Total != 3 {
		t.Errorf("limit 2: %+v", res)
	}
}

func TestHonestAboutMisses(t *testing.T) {
	ix := build(t, few())
	for _, text := range []string{"sequence a genome", "book a flight to Lagos", "zzzzqqq", "stock price of a company"} {
		if res := find(t, ix, index.Query{Text: text}); !res.Weak || len(res.Unmatched) == 0 {
			t.Errorf("%q: weak %t, unmatched %v, hits %v", text, res.Weak, res.Unmatched, ids(res))
		}
	}
	for _, text := range []string{"create issue", "read a file", "delete event from calendar", "get-sum", "post message to a channel", "serch repositories"} {
		if res := find(t, ix, index.Query{Text: text}); res.Weak {
			t.Errorf("%q is called weak: %v", text, ids(res))
		}
	}
	res := find(t, ix, index.Query{Text: "create invioce"})
	if !slices.Equal(res.Unmatched, []string{"invioce"}) || !slices.Contains(res.Suggest, "invoice") {
		t.Errorf("unmatched %v, suggest %v", res.Unmatched, res.Suggest)
	}
}

func TestSeveralNeedsShareTheFirstHits(t *testing.T) {
	ix := build(t, few())
	for text, want := range map[string][]string{
		"create an issue in github and post a message to a channel":              {"github.create_issue", "chatter.post_message"},
		"1. read the file from disk\n2. delete the calendar event":               {"files.read_file", "calendar.delete_event"},
		"Make out an invoice for the customer. Then list the directory's files.": {"billing.createInvoice", "files.list_directory"},
		"read the knowledge graph; add two numbers; write text to a file":        {"memory.read_graph", "everything.get_sum", "files.write_file"},
	} {
		res := find(t, ix, index.Query{Text: text, Limit: 5})
		for _, id := range want {
			if !slices.Contains(ids(res), id) || res.Weak {
				t.Errorf("%q: %s is not in %v, weak %t", text, id, ids(res), res.Weak)
			}
		}
	}
}

func TestUpstreamsBeforeAColonArePreferred(t *testing.T) {
	docs := append(few(), doc("files.files_feedback", "Send the makers of files what you think of it."), doc("box.list_directory", "List what a directory holds."))
	ix := build(t, docs)
	for text, want := range map[string]string{
		"files: list the directory":                "files.list_directory",
		"Box: list the directory":                  "box.list_directory",
		"box or other storage: list the directory": "box.list_directory",
		"files: delete an event from the calendar": "calendar.delete_event",
		"files: what it holds, of a directory":     "files.list_directory",
	} {
		if res := find(t, ix, index.Query{Text: text}); len(res.Hits) == 0 || res.Hits[0].ID.String() != want {
			t.Errorf("%q: %v, want %s", text, ids(res), want)
		}
	}
}

func TestValuesAreNotWhatIsAskedFor(t *testing.T) {
	docs := append(few(), doc("music.play_song", "Play a song", "song:which"), doc("music.stop_music", "Stop the music"))
	ix := build(t, docs)
	for text, want := range map[string]string{
		"read /home/music/play_list.txt":                           "files.read_file",
		"What is in the directory /srv/music/song?":                "files.list_directory",
		"create an issue in https://calendar.example/delete/event": "github.create_issue",
		"delete the event Zorblax Gathering in Quuxville at 12:30": "calendar.delete_event",
	} {
		if res := find(t, ix, index.Query{Text: text}); len(res.Hits) == 0 || res.Hits[0].ID.String() != want || res.Weak {
			t.Errorf("%q: %v, weak %t, want %s", text, ids(res), res.Weak, want)
		}
	}
}

func TestOtherLanguages(t *testing.T) {
	german := doc("rechnungen.rechnung_stornieren", "Storniert eine bestehende Rechnung und erzeugt eine Gutschrift für den Empfänger.")
	ix := build(t, append(few(), german))
	for text, want := range map[string]string{
		"Gutschrift für den Empfänger":         "rechnungen.rechnung_stornieren",
		"gutschrift empfaenger rechnung":       "rechnungen.rechnung_stornieren",
		"lösche den Termin im Kalender":        "calendar.delete_event",
		"supprimer un événement du calendrier": "calendar.delete_event",
		"enviar un mensaje al canal":           "chatter.post_message",
		"leggere il file":                      "files.read_file",
		"criar uma fatura para o cliente":      "billing.createInvoice",
		"カレンダーの予定を削除":                          "calendar.delete_event",
		"读取文件":                                 "files.read_file",
	} {
		if got := ids(find(t, ix, index.Query{Text: text})); len(got) == 0 || got[0] != want {
			t.Errorf("%q: %v, want %s first", text, got, want)
		}
	}
}

func TestPiecesOfNames(t *testing.T) {
	docs := append(few(), doc("gitlab.create_merge_request", "Create a merge request"), doc("gitlab.list_merge_requests", "List the merge requests"))
	ix := build(t, docs)
	for text, want := range map[string]string{
		"create_iss": "github.create_issue", "merge_req": "gitlab.list_merge_requests gitlab.create_merge_request", "CREATE-INVOICE": "billing.createInvoice",
		"create_merge": "gitlab.create_merge_request", "post_mess": "chatter.post_message", "gitlab.create_mer": "gitlab.create_merge_request",
		"github create issue": "github.create_issue", "searchRepo": "github.searchRepositories", "delete_ent": "memory.delete_entities",
	} {
		if got := ids(find(t, ix, index.Query{Text: text})); len(got) == 0 || !slices.Contains(strings.Fields(want), got[0]) {
			t.Errorf("%q: %v, want %s first", text, got, want)
		}
	}
}

func TestProductsThatNoToolHas(t *testing.T) {
	ix := build(t, few())
	for _, text := range []string{"create a Trello issue", "add a Salesforce invoice", "delete an event in Zoom"} {
		if res := find(t, ix, index.Query{Text: text}); !res.Weak {
			t.Errorf("%q is answered with %v", text, ids(res))
		}
	}
	for _, text := range []string{"create an issue in GitHub", "zoom in and read the graph"} {
		if res := find(t, ix, index.Query{Text: text}); res.Weak {
			t.Errorf("%q is called weak: %v", text, ids(res))
		}
	}
}

func TestScoresFallAndTiesGoByID(t *testing.T) {
	var docs []index.Doc
	for i := range 30 {
		docs = append(docs, doc(fmt.Sprintf("up%02d.same_thing", (i*7)%30), "does the same"))
	}
	ix := build(t, docs)
	res := find(t, ix, index.Query{Text: "thing that is same", Limit: 30})
	if got := ids(res); len(got) != 30 || !slices.IsSorted(got) {
		t.Errorf("ties are not in order of id: %v", got)
	}
	res = find(t, build(t, few()), index.Query{Text: "create_issue file graph", Limit: 20})
	if !slices.IsSortedFunc(res.Hits, func(a, b index.Hit) int { return -compare(a.Score, b.Score) }) {
		t.Errorf("scores do not fall: %+v", res.Hits)
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestSameCatalogSameRanking(t *testing.T) {
	docs := few()
	reversed := slices.Clone(docs)
	slices.Reverse(reversed)
	a, b := build(t, docs), build(t, nil)
	if err := b.Replace(reversed); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"create", "file text", "read the graph of a repositry", "a channel for customers", "搜索"} {
		q := index.Query{Text: text, Limit: 50}
		if diff := cmp.Diff(find(t, a, q), find(t, b, q)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestReplace(t *testing.T) {
	ix := build(t, few())
	if err := ix.Replace([]index.Doc{doc("songs.play_music", "Play a song"), doc("songs.play_music", "an impostor of the same id")}); err != nil {
		t.Fatal(err)
	}
	if got := ids(find(t, ix, index.Query{Text: "play music"})); !slices.Equal(got, []string{"songs.play_music"}) {
		t.Errorf("got %v", got)
	}
	if res := find(t, ix, index.Query{Text: "impostor"}); res.Total != 0 {
		t.Errorf("a second document with a known id got in: %+v", res)
	}
	if res := find(t, ix, index.Query{Text: "create issue"}); res.Total != 0 {
		t.Errorf("the old content is still there: %+v", res)
	}
}

func TestReplaceWhileSearching(t *testing.T) {
	ix := build(t, few())
	stop := make(chan struct{})
	var searchers sync.WaitGroup
	for range 4 {
		searchers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := ix.Search(t.Context(), index.Query{Text: "create an isue in github"})
				if err != nil || len(res.Hits) == 0 || res.Hits[0].ID.String() != "github.create_issue" {
					t.Errorf("got %v, %v", ids(res), err)
					return
				}
			}
		})
	}
	for range 20 {
		if err := ix.Replace(few()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	searchers.Wait()
}

func TestClose(t *testing.T) {
	ix := build(t, few())
	before := runtime.NumGoroutine() // bleve's own workers have started
	for range 10 {
		other := build(t, few())
		if err := errors.Join(other.Replace(few()), other.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Search(t.Context(), index.Query{Text: "x"}); !errors.Is(err, index.ErrClosed) {
			t.Errorf("Search after Close: %v", err)
		}
		if err := other.Replace(nil); !errors.Is(err, index.ErrClosed) {
			t.Errorf("Replace after Close: %v", err)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
	if res := find(t, ix, index.Query{Text: "create issue"}); len(res.Hits) == 0 {
		t.Error("closing others broke this one")
	}
}

func TestSearchEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := build(t, few()).Search(ctx, index.Query{Text: "create issue"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestHostileText(t *testing.T) {
	ix := build(t, few())
	for _, text := range hostile() {
		start := time.Now()
		find(t, ix, index.Query{Text: text})
		find(t, ix, index.Query{Text: "create", Upstream: text})
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%.40q took %v", text, took)
		}
	}
}

func hostile() []string {
	return []string{
		"", "\x00", "\xff\xfe\xc3", `"`, `+name:x -y ~2 ^3 *?[a-z]{9} /(a+)+$/`, "upstream:", "upstream:upstream:", "..", "a.b.c.d",
		"_", "-", "__init__", "'s", "’s", "a\u200bb", "\u202eevil", "İIıi", "Ⱥ Ⱦ ΣΣ", "ﬁ ﬀ ẞ", "👩‍👩‍👧 👍🏽", "e\u0301\u0301\u0301", "ก่า ສະບາຍ မြန်မာ",
		strings.Repeat("a", 1<<20), strings.Repeat("a ", 1<<19), strings.Repeat("a_", 1<<19), strings.Repeat("aB", 1<<19),
		strings.Repeat("创", 1<<18), strings.Repeat("\xff", 1<<20), strings.Repeat("upstream:x ", 1<<16), strings.Repeat("create_issue ", 1<<16),
		strings.Repeat("\u0301", 1<<18), strings.Repeat("-'", 1<<19), strings.Join(strings.Split(strings.Repeat("abcdefgh", 500), ""), "x1 "),
	}
}

func FuzzSearch(f *testing.F) {
	for _, text := range hostile() {
		f.Add(cutTo(text, 5000), "")
	}
	f.Add("create isue", "github")
	ix := build(f, few())
	f.Fuzz(func(t *testing.T, text, upstream string) {
		res := find(t, ix, index.Query{Text: text, Upstream: upstream, Limit: 5})
		if len(res.Hits) > 5 || len(res.Hits) > res.Total {
			t.Errorf("%d hits of %d with limit 5", len(res.Hits), res.Total)
		}
		seen := map[tool.ID]bool{}
		for _, h := range res.Hits {
			if seen[h.ID] {
				t.Errorf("%s twice", h.ID)
			}
			seen[h.ID] = true
		}
		// What a search leaves in the pooled memory must not show in the next one.
		if again := find(t, ix, index.Query{Text: text, Upstream: upstream, Limit: 5}); !cmp.Equal(res, again) {
			t.Error(cmp.Diff(res, again))
		}
	})
}

func cutTo(s string, n int) string { return s[:min(len(s), n)] }
