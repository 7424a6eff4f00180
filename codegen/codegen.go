// Package codegen generates the files of the servers/ tree, in memory: one typed
// Python and one typed TypeScript wrapper for each tool, and the short texts
// (signature, import line, description) that a model reads before it writes a
// call. It converts a JSON Schema to a language-neutral model (schema.go, types.go),
// which two backends print (python.go, typescript.go). Output is deterministic.
//
// Every text in a [tool.Tool] is untrusted. It reaches the output only through the
// functions of quote.go, and never becomes code.
package codegen

import (
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// Language is a language that wrappers are generated in.
type Language string

// The languages.
const (
	Python     Language = "python"
	TypeScript Language = "typescript"
)

// File is one generated file.
type File struct {
	// Path is relative to the servers/ folder and slash separated: "memory/create_entities.py".
	Path string
	Data []byte
}

// Upstream is one upstream with the tools to generate wrappers for.
type Upstream struct {
	// ID is the identifier of its package: servers.ID.
	ID string
	// Title and Description come from the upstream. They are untrusted and may be empty.
	Title, Description string
	Tools              []tool.Tool
	// Resources, Templates and Prompts are those of its [tool.Offer]. No module is
	// generated for an empty list.
	Resources []tool.Resource
	Templates []tool.Template
	Prompts   []tool.Prompt
}

// Generate returns the whole servers/ tree, sorted by path.
func Generate(ups []Upstream) []File {
	files := GenerateRoot(ups)
	for _, up := range usableUpstreams(ups) {
		files = append(files, GenerateUpstream(up)...)
	}
	return sortFiles(files)
}

// GenerateRoot returns the files that list all upstreams, sorted by path.
func GenerateRoot(ups []Upstream) []File {
	ups = usableUpstreams(ups)
	return sortFiles([]File{
		{Path: "__aio__.py", Data: aioModule},
		{Path: "__init__.py", Data: pythonRoot(ups)},
		{Path: "__offer__.py", Data: pythonOffer},
		{Path: "__offer__.ts", Data: typescriptOffer},
		{Path: "index.ts", Data: typescriptRoot(ups)},
	})
}

// GenerateUpstream returns the files of one upstream, sorted by path. It skips a
// tool with a name that is not an identifier (see tool.Identifiers) or that an earlier tool
// has, and one with the ID of another upstream.
func GenerateUpstream(up Upstream) []File {
	if !usable(up.ID) {
		return nil
	}
	tools := usableTools(up)
	files := []File{
		{Path: up.ID + "/__init__.py", Data: pythonPackage(up, tools)},
		{Path: up.ID + "/index.ts", Data: typescriptPackage(up, tools)},
	}
	for _, t := range tools {
		files = append(files, toolFiles(t)...)
	}
	files = append(files, offerFiles(up)...)
	return sortFiles(files)
}

func sortFiles(files []File) []File {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files
}
