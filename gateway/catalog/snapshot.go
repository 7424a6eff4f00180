package catalog

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"sallyport/codegen"
	"sallyport/gateway/trust"
	"sallyport/index"
	"sallyport/internal/tool"
)

// Snapshot is what searches and programs see, made from one state of the lists.
type Snapshot struct {
	roster *roster
	Tools  []tool.Tool
	// Offers holds what a search finds besides tools.
	Offers map[DocumentKey]Document
	// Files generates the servers/ tree at the first call, so that no search waits for it.
	Files func() map[string][]byte
	// Docs are those of the index of tools.
	Docs []index.Doc
	// boilerplate has the boilerplate of each upstream.
	boilerplate map[string]func() Boilerplate
	// artifacts are those of each upstream, in the order of the settings.
	artifacts []*artifacts
}

// artifacts has what is generated from one upstream for a snapshot. Documents and wrappers
// are generated at the first call, and kept until the upstream changes.
type artifacts struct {
	up   codegen.Upstream
	docs func() []index.Doc
	// offers returns the documents of resources, templates and prompts.
	offers      func() []Document
	files       func() []codegen.File
	boilerplate func() Boilerplate
}

// maxIndexed is how much text of one upstream is indexed, in bytes: five times the
// text of the largest known upstream. Random words of that size take seconds.
const maxIndexed = 4 << 20

func newArtifacts(up codegen.Upstream, held map[string]trust.Held) *artifacts {
	p := &artifacts{
		up: up,
		docs: sync.OnceValue(func() []index.Doc {
			docs := append(documents(up), heldDocuments(up.ID, up.Title+" "+up.Description, held)...)
			fit := make([]*index.Doc, len(docs))
			for i := range docs {
				fit[i] = &docs[i]
			}
			index.Truncate(fit, maxIndexed)
			return docs
		}),
		offers: sync.OnceValue(func() []Document { return offerDocuments(up) }),
		files:  sync.OnceValue(func() []codegen.File { return codegen.GenerateUpstream(up) }),
	}
	p.boilerplate = sync.OnceValue(func() Boilerplate { return findBoilerplate(up.Tools, p.docs()) })
	return p
}

func documents(up codegen.Upstream) []index.Doc {
	docs := make([]index.Doc, len(up.Tools))
	for i, t := range up.Tools {
		docs[i] = index.FromTool(t, up.Title+" "+up.Description)
	}
	return docs
}

// assemble makes a snapshot of the members' portraits, and the documents of the
// two indexes: of tools, and of other offers.
func assemble(r *roster) (next *Snapshot, tools, offers []index.Doc) {
	next = &Snapshot{roster: r, Offers: map[DocumentKey]Document{}, boilerplate: map[string]func() Boilerplate{}}
	portraits := make([]*artifacts, len(r.members))
	for i, m := range r.members {
		portraits[i] = m.artifacts
		next.Tools = append(next.Tools, m.artifacts.up.Tools...)
	}
	each(len(portraits), func(i int) { portraits[i].docs(); portraits[i].offers() })
	for _, p := range portraits {
		tools = append(tools, p.docs()...)
		next.boilerplate[p.up.ID] = p.boilerplate
		for _, d := range p.offers() {
			next.Offers[DocumentKey{d.Kind, d.ID}] = d
			offers = append(offers, d.Doc)
		}
	}
	next.Docs, next.artifacts = tools, portraits
	next.Files = sync.OnceValue(func() map[string][]byte { return tree(portraits) })
	sortTools(next.Tools)
	return next, tools, offers
}

func sortTools(tools []tool.Tool) {
	slices.SortFunc(tools, func(a, b tool.Tool) int {
		return cmp.Or(cmp.Compare(a.ID.Upstream, b.ID.Upstream), cmp.Compare(a.ID.Name, b.ID.Name))
	})
}

// tree collects the files of all upstreams, and generates the missing ones.
func tree(portraits []*artifacts) map[string][]byte {
	each(len(portraits), func(i int) { portraits[i].files() })
	files := map[string][]byte{}
	ups := make([]codegen.Upstream, len(portraits))
	for i, p := range portraits {
		ups[i] = p.up
		for _, file := range p.files() {
			files[file.Path] = file.Data
		}
	}
	for _, file := range codegen.GenerateRoot(ups) {
		files[file.Path] = file.Data
	}
	return files
}

// File returns a file of the servers/ tree. File and List serve the compiler of TypeScript programs.
func (s *Snapshot) File(path string) ([]byte, bool) {
	data, ok := s.Files()[path]
	return data, ok
}

// List returns the names of an upstream's tools, or of the upstreams for "".
func (s *Snapshot) List(upstream string) []string {
	seen := map[string]bool{}
	for path := range s.Files() {
		folder, name, ok := strings.Cut(path, "/")
		switch {
		case ok && upstream == "":
			seen[folder] = true
		case ok && folder == upstream && strings.HasSuffix(name, ".ts") && name != "index.ts":
			seen[strings.TrimSuffix(name, ".ts")] = true
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
