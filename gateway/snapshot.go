package gateway

import (
	"cmp"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/index"
	"sallyport/internal/tool"
)

// snapshot is what searches and programs see, made from one state of the lists.
type snapshot struct {
	roster *roster
	tools  []tool.Tool
	files  map[string][]byte
}

// assemble makes a snapshot, but for the files, and the documents of the index.
func assemble(r *roster) (*snapshot, []index.Doc) {
	next := &snapshot{roster: r}
	var docs []index.Doc
	for _, m := range r.members {
		up := m.describe()
		for _, t := range up.Tools {
			next.tools = append(next.tools, t)
			docs = append(docs, index.FromTool(t, up.Title+" "+up.Description))
		}
	}
	slices.SortFunc(next.tools, func(a, b tool.Tool) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	return next, docs
}

// tree gathers the files of all members.
func tree(r *roster) map[string][]byte {
	files := map[string][]byte{}
	ups := make([]codegen.Upstream, len(r.members))
	for i, m := range r.members {
		ups[i] = m.describe()
		for _, file := range m.files {
			files[file.Path] = file.Data
		}
	}
	for _, file := range codegen.GenerateRoot(ups) {
		files[file.Path] = file.Data
	}
	return files
}

// File and List make a snapshot the tree that TypeScript programs are compiled against.
func (s *snapshot) File(path string) ([]byte, bool) {
	data, ok := s.files[path]
	return data, ok
}

// List returns the names of an upstream's tools, or of the upstreams for "".
func (s *snapshot) List(upstream string) []string {
	seen := map[string]bool{}
	for path := range s.files {
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
