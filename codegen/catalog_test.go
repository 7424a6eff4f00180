package codegen_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/codegen"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// catalog returns the tools of real servers, one upstream a server. It lies
// beside the project and is not part of it.
func catalog(t testing.TB) []codegen.Upstream {
	t.Helper()
	ups := realTools(t)
	if len(ups) == 0 {
		t.Skip("no ../../shared/catalog beside the project: real tool lists are not checked")
	}
	return ups
}

// realTools is catalog, or nothing where there is none.
func realTools(t testing.TB) (ups []codegen.Upstream) {
	t.Helper()
	paths, _ := filepath.Glob("../../shared/catalog/*.json")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ups = append(ups, upstream(t, strings.TrimSuffix(filepath.Base(path), ".json"), data))
	}
	return ups
}

// upstream reads a tools/list answer as an upstream.
func upstream(t testing.TB, name string, data []byte) codegen.Upstream {
	t.Helper()
	var list struct {
		Tools []struct {
			Name, Title, Description  string
			InputSchema, OutputSchema json.RawMessage
		}
		Resources         []tool.Resource
		ResourceTemplates []tool.Template
		Prompts           []tool.Prompt
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	up := codegen.Upstream{ID: tool.Identifier(name), Title: name, Resources: list.Resources, Templates: list.ResourceTemplates, Prompts: list.Prompts}
	var wires []string
	for _, l := range list.Tools {
		wires = append(wires, l.Name)
	}
	for i, id := range tool.Identifiers(wires) {
		l := list.Tools[i]
		up.Tools = append(up.Tools, tool.Tool{
			ID: tool.ID{Upstream: up.ID, Name: id}, Wire: l.Name, Title: l.Title, Description: l.Description,
			Input: l.InputSchema, Output: l.OutputSchema,
		})
	}
	return up
}

func TestCatalogTextsAreBounded(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	for _, up := range catalog(t) {
		for _, tl := range up.Tools {
			for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
				checkTexts(t, tl, lang)
			}
		}
	}
}

// TestCatalogIsDeterministic makes every file once, in the order of the paths,
// whatever the order of the input. That they compile and load is TestEverythingLoads.
func TestCatalogIsDeterministic(t *testing.T) {
	t.Parallel()
	ups := catalog(t)
	first := codegen.Generate(ups)
	tools := 0
	for i, up := range ups {
		tools += len(up.Tools)
		slices.Reverse(ups[i].Tools)
	}
	if want := 2*tools + 2*len(ups) + 5; len(first) != want {
		t.Errorf("%d files for %d tools of %d upstreams, want %d", len(first), tools, len(ups), want)
	}
	if !slices.IsSortedFunc(first, func(a, b codegen.File) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("files are not sorted by path")
	}
	slices.Reverse(ups)
	for i, f := range codegen.Generate(ups) {
		if f.Path != first[i].Path || !bytes.Equal(f.Data, first[i].Data) {
			t.Fatalf("another order of the input changed %s", f.Path)
		}
	}
}

// BenchmarkCatalog makes the wrappers of all upstreams, as the gateway does, on
// all processors, and those of one upstream that has changed.
func BenchmarkCatalog(b *testing.B) {
	ups := catalog(b)
	b.Run("all", func(b *testing.B) {
		defer testutil.ReportCPU(b)()
		for b.Loop() {
			var all sync.WaitGroup
			for _, up := range ups {
				all.Go(func() { codegen.GenerateUpstream(up) })
			}
			all.Wait()
			codegen.GenerateRoot(ups)
		}
	})
	github := slices.IndexFunc(ups, func(up codegen.Upstream) bool { return up.ID == "github" })
	b.Run("one upstream", func(b *testing.B) {
		defer testutil.ReportCPU(b)()
		for b.Loop() {
			codegen.GenerateUpstream(ups[github])
			codegen.GenerateRoot(ups)
		}
	})
}

func BenchmarkSignature(b *testing.B) {
	ups := catalog(b)
	for b.Loop() {
		for _, up := range ups {
			for _, t := range up.Tools {
				codegen.Signature(t, codegen.Python)
			}
		}
	}
}
