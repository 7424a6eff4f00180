package index

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/tool"
)

// catalogDir holds the tool lists of real servers; see its README.
const catalogDir = "../../shared/catalog"

// readCatalog returns a document for each tool of the catalog.
func readCatalog(t testing.TB) []Doc {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(catalogDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no catalog in %s", catalogDir)
	}
	var docs []Doc
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		up := tool.Identifier(strings.TrimSuffix(filepath.Base(file), ".json"))
		docs = append(docs, docsOf(t, up, data)...)
	}
	return docs
}

func docsOf(t testing.TB, up string, data []byte) []Doc {
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
	docs := make([]Doc, len(list.Tools))
	for i, name := range tool.Identifiers(wires) {
		row := list.Tools[i]
		docs[i] = FromTool(tool.Tool{ID: tool.ID{Upstream: up, Name: name}, Wire: row.Name, Title: row.Title,
			Description: row.Description, Input: row.InputSchema}, "")
	}
	return docs
}

func BenchmarkBuild(b *testing.B) {
	docs := readCatalog(b)
	for b.Loop() {
		ix, err := New(docs, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := ix.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000*1000/float64(b.N*len(docs)), "ms/1000tools")
}

func BenchmarkSearch(b *testing.B) {
	ix, err := New(readCatalog(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	for _, text := range []string{
		"create issue",
		"send a message to a channel in slack",
		"serch repositries",
		"List all pull requests of a repository that are open, then read the files of the newest one and write what changed in them to a page in notion, and tell the team",
	} {
		b.Run(fmt.Sprint(len(strings.Fields(text)), "words"), func(b *testing.B) {
			for b.Loop() {
				if _, err := ix.Search(b.Context(), Query{Text: text}); err != nil {
					b.Fatal(err)
				}
			}
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
	search := func(name string) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := ix.Search(b.Context(), Query{Text: "send a message to a channel in slack"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	search("new")
	for i := range 60 {
		first := i * 37 % (len(docs) - 30)
		for at := first; at < first+30; at++ {
			docs[at].Title += "."
		}
		if err := ix.Replace(docs); err != nil {
			b.Fatal(err)
		}
	}
	search(fmt.Sprint(len(ix.store.segments), "segments"))
}

// BenchmarkChange replaces the documents of an index in which one upstream of 30
// tools has changed.
func BenchmarkChange(b *testing.B) {
	catalog := readCatalog(b)
	for _, size := range []int{2_000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			docs := manyDocs(catalog, size)
			ix, err := New(docs, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer ix.Close()
			var worst time.Duration
			for i := 0; b.Loop(); i++ {
				first := i * 37 % (size - 30)
				for at := first; at < first+30; at++ {
					docs[at].Description = fmt.Sprintf("Edition %d. %s", i, docs[at].Description)
				}
				start := time.Now()
				if err := ix.Replace(docs); err != nil {
					b.Fatal(err)
				}
				worst = max(worst, time.Since(start))
			}
			b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
		})
	}
}

// manyDocs repeats the catalog, under upstreams of other names, up to size.
func manyDocs(catalog []Doc, size int) []Doc {
	docs := make([]Doc, size)
	for i := range docs {
		docs[i] = catalog[i%len(catalog)]
		if round := i / len(catalog); round > 0 {
			docs[i].ID.Upstream += fmt.Sprint(round)
		}
	}
	return docs
}
