package index

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
