package index

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/tool"
)

// catalogDir holds the tool lists of real servers; see its README.
const catalogDir = "../../shared/catalog"

// catalogTools are the tools of the catalog.
func catalogTools(t testing.TB) []tool.Tool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(catalogDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no catalog in %s", catalogDir)
	}
	var tools []tool.Tool
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		up := tool.Identifier(strings.TrimSuffix(filepath.Base(file), ".json"))
		tools = append(tools, toolsOf(t, up, data)...)
	}
	return tools
}

// readCatalog returns a document for each of them.
func readCatalog(t testing.TB) (docs []Doc) {
	t.Helper()
	for _, one := range catalogTools(t) {
		docs = append(docs, FromTool(one, ""))
	}
	return docs
}

func toolsOf(t testing.TB, up string, data []byte) []tool.Tool {
	t.Helper()
	var list struct {
		Tools []struct {
			Name, Title, Description string
			InputSchema              json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("read %s: %v", up, err)
	}
	wires := make([]string, len(list.Tools))
	for i, row := range list.Tools {
		wires[i] = row.Name
	}
	tools := make([]tool.Tool, len(list.Tools))
	for i, name := range tool.Identifiers(wires) {
		row := list.Tools[i]
		tools[i] = tool.Tool{ID: tool.ID{Upstream: up, Name: name}, Wire: row.Name, Title: row.Title,
			Description: row.Description, Input: row.InputSchema}
	}
	return tools
}

// queries are what models and people type: names, keywords, sentences, slips.
var queries = []string{
	"create issue", "github.create_issue", "send message", "list files in a folder", "send a message to a channel in slack",
	"serch repositries", "delete calendar event", "upload file to drive", "query the database", "get weather forecast",
	"take a screenshot of the page", "find emails from a customer about an invoice", "restart deployment", "convert pdf to text",
	"what changed in the last commit", "add a row to the spreadsheet and share it with the team", "who is on call",
	"translate text", "run sql", "cancel the order of a customer and refund the payment",
}

// BenchmarkBuild builds an index of the catalog, and of 10,000 tools.
func BenchmarkBuild(b *testing.B) {
	for _, size := range []int{0, 10_000} {
		docs := readCatalog(b)
		if size > 0 {
			docs = manyDocs(docs, size)
		}
		b.Run(fmt.Sprint(len(docs)), func(b *testing.B) {
			start := cpuTime()
			for b.Loop() {
				ix, err := New(docs, nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := ix.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(docs))/b.Elapsed().Seconds(), "tools/s")
			b.ReportMetric(float64((cpuTime()-start).Microseconds())/float64(b.N*len(docs)), "cpu-µs/tool")
		})
	}
}

// BenchmarkFromTool makes the documents of the catalog's tools.
func BenchmarkFromTool(b *testing.B) {
	tools := catalogTools(b)
	for b.Loop() {
		for _, t := range tools {
			FromTool(t, "")
		}
	}
	b.ReportMetric(float64(b.N*len(tools))/b.Elapsed().Seconds(), "tools/s")
}

// BenchmarkSearch asks the queries, one after the other, of 2,000 and 100,000 tools.
func BenchmarkSearch(b *testing.B) {
	for _, size := range []int{2_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ix, err := New(manyDocs(readCatalog(b), size), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer ix.Close()
			var took, cpu []time.Duration
			for i := 0; b.Loop(); i++ {
				start, busy := time.Now(), cpuTime()
				if _, err := ix.Search(b.Context(), Query{Text: queries[i%len(queries)]}); err != nil {
					b.Fatal(err)
				}
				took, cpu = append(took, time.Since(start)), append(cpu, cpuTime()-busy)
			}
			slices.Sort(took)
			slices.Sort(cpu)
			b.ReportMetric(float64(cpu[len(cpu)/2].Microseconds())/1000, "cpu-p50-ms")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkSearchChanged searches an index of 2,000 tools after 60 changes of 30 tools each.
func BenchmarkSearchChanged(b *testing.B) {
	docs := manyDocs(readCatalog(b), 2_000)
	ix, err := New(docs, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	for i := range 60 {
		first := i * 37 % (len(docs) - 30)
		for at := first; at < first+30; at++ {
			docs[at].Title += "."
		}
		if err := ix.Replace(docs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(ix.store.segments)), "segments")
	for i := 0; b.Loop(); i++ {
		if _, err := ix.Search(b.Context(), Query{Text: queries[i%len(queries)]}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChange replaces the documents of an index in which one upstream of 30
// tools, or of 500, has changed all of its descriptions.
func BenchmarkChange(b *testing.B) {
	catalog := readCatalog(b)
	for _, size := range []int{2_000, 10_000} {
		for _, changed := range []int{30, 500} {
			b.Run(fmt.Sprintf("%d/%d", size, changed), func(b *testing.B) {
				docs := manyDocs(catalog, size)
				ix, err := New(docs, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer ix.Close()
				var took, cpu []time.Duration
				for i := 0; b.Loop(); i++ {
					first := i * 37 % (size - changed)
					for at := first; at < first+changed; at++ {
						docs[at].Description = fmt.Sprintf("Edition %d. %s", i, docs[at].Description)
					}
					start, busy := time.Now(), cpuTime()
					if err := ix.Replace(docs); err != nil {
						b.Fatal(err)
					}
					took, cpu = append(took, time.Since(start)), append(cpu, cpuTime()-busy)
				}
				slices.Sort(took)
				slices.Sort(cpu)
				b.ReportMetric(float64(cpu[len(cpu)/2].Microseconds())/1000, "cpu-p50-ms")
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "worst-ms")
			})
		}
	}
}

// BenchmarkOpen makes an index of a catalog with what is on disk, and without.
func BenchmarkOpen(b *testing.B) {
	docs := manyDocs(readCatalog(b), 2_000)
	dir := b.TempDir()
	for _, name := range []string{"rebuild", "snapshot"} {
		opts := &Options{Dir: dir}
		if name == "rebuild" {
			opts.Dir = ""
		}
		open := func(b *testing.B) {
			b.Helper()
			ix, err := New(docs, opts)
			if err != nil {
				b.Fatal(err)
			}
			if err := ix.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			open(b) // the first one writes
			busy := cpuTime()
			for b.Loop() {
				open(b)
			}
			b.ReportMetric(float64((cpuTime()-busy).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpuTime is what the process has used: on a machine that does other things as well, it says more than the clock.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkMemory reports what an index holds, the texts of its documents included.
func BenchmarkMemory(b *testing.B) {
	catalog := readCatalog(b)
	for _, size := range []int{2_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				ix, err := New(manyDocs(catalog, size), nil)
				if err != nil {
					b.Fatal(err)
				}
				held := heap() - before
				b.ReportMetric(held/float64(size)/1024, "KB/tool")
				if err := ix.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func heap() float64 {
	runtime.GC()
	runtime.GC() // what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// manyDocs makes size documents: the catalog, over and over, under upstreams of
// other names and with other words. One word in five is exchanged for another of
// the catalog, as frequent ones as there are, and one in fifty for a new one; so
// the vocabulary grows as that of real texts does, and no two rounds are alike.
func manyDocs(catalog []Doc, size int) []Doc {
	v := variety{rand: rand.New(rand.NewPCG(1, 2))}
	for _, d := range catalog {
		v.words = append(v.words, strings.Fields(d.Description)...)
	}
	docs, known := make([]Doc, 0, size), map[tool.ID]bool{}
	for i := 0; len(docs) < size; i++ {
		d := catalog[i%len(catalog)]
		d.Upstream, d.Params = strings.Clone(d.Upstream), slices.Clone(d.Params)
		if round := i / len(catalog); round > 0 {
			v.vary(&d, round)
		}
		if !known[d.ID] {
			known[d.ID] = true
			docs = append(docs, d)
		}
	}
	return docs
}

// variety makes other texts of texts.
type variety struct {
	rand  *rand.Rand
	words []string
}

func (v *variety) vary(d *Doc, round int) {
	d.ID.Upstream += fmt.Sprint(round)
	name := strings.Join(strings.Fields(v.text(strings.ReplaceAll(d.ID.Name, "_", " "))), "_")
	d.ID.Name, d.Wire = tool.Identifier(name), name
	d.Title, d.Description, d.Values = v.text(d.Title), v.text(d.Description), v.text(d.Values)
	for i, p := range d.Params {
		d.Params[i] = Param{v.text(p.Name), v.text(p.Description)}
	}
}

func (v *variety) text(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		switch n := v.rand.IntN(50); {
		case n == 0:
			words[i] = v.coin()
		case n <= 10:
			words[i] = v.words[v.rand.IntN(len(v.words))]
		default:
			words[i] = w
		}
	}
	return strings.Join(words, " ")
}

// coin makes a word up, one of 32,000.
func (v *variety) coin() string {
	word := ""
	for range 3 {
		word += string("bdfgklmnprstvz"[v.rand.IntN(14)]) + string("aeiou"[v.rand.IntN(5)])
	}
	return word[:5]
}
