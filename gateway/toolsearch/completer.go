package toolsearch

import (
	"context"
	"strings"

	"sallyport/codegen"
	"sallyport/codegen/runtime"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Completer tells an editor what a program of a caller can import and call. It is safe for concurrent use.
type Completer struct{ sr *Searcher }

// NewCompleter returns a completer for what a searcher finds.
func NewCompleter(sr *Searcher) Completer { return Completer{sr} }

// Server is a module of functions that programs can import.
type Server struct {
	Name string `json:"name"`
	// About is the first line of its description.
	About string `json:"about,omitempty"`
}

// Function is a function of a server.
type Function = codegen.Outline

// Parameter is an argument of a function.
type Parameter = codegen.Parameter

const (
	// maxServers is the maximum number of servers, maxFunctions that of the functions of one.
	maxServers, maxFunctionsOf = 1000, 2000
	// maxOutlines bounds the outlines of a server, in bytes. Further functions have their names only.
	maxOutlines = 512 << 10
)

// Servers returns the upstreams that the caller sees.
func (c Completer) Servers(ctx context.Context) []Server {
	list := []Server{}
	for _, up := range c.sr.opts.Upstreams(ctx) {
		if len(list) < maxServers {
			about, _, _ := strings.Cut(sanitize.Text(up.Description, 400), "\n")
			list = append(list, Server{Name: up.ID, About: sanitize.Line(about, 200)})
		}
	}
	return list
}

// Functions returns the functions of a server that the caller may call; of an unknown one, none.
func (c Completer) Functions(ctx context.Context, server, language string) []Function {
	lang, list, size := codegen.Python, []Function{}, 0
	if language == string(codegen.TypeScript) {
		lang = codegen.TypeScript
	}
	if server == toolcall.GatewayID {
		return builtinOutlines(lang)
	}
	v := c.sr.in(ctx)
	for _, t := range v.snapshot().Tools {
		if t.ID.Upstream != server || len(list) == maxFunctionsOf || !c.callable(ctx, v, t.ID) {
			continue
		}
		f := Function{Name: t.ID.Name}
		if size < maxOutlines {
			f = codegen.OutlineOf(t, lang)
		}
		size += sizeOf(f)
		list = append(list, f)
	}
	return list
}

// callable reports whether a tool exists for a caller, is not quarantined, and is not always refused.
func (c Completer) callable(ctx context.Context, v view, id tool.ID) bool {
	_, known := v.lookup(id)
	return known && !c.sr.opts.Guard.AlwaysDenied(ctx, id)
}

// sizeOf returns about how many bytes an outline has.
func sizeOf(f Function) int {
	n := len(f.Name) + len(f.Signature) + len(f.About)
	for _, p := range f.Parameters {
		n += len(p.Name) + len(p.Type) + len(p.About) + 40
	}
	return n
}

// builtinOutlines returns the functions of the gateway itself.
func builtinOutlines(lang codegen.Language) (list []Function) {
	for _, f := range runtime.Functions() {
		form := f.Python
		if lang == codegen.TypeScript {
			form = f.TypeScript
		}
		list = append(list, Function{Name: f.Name, Signature: form.Signature, About: f.Summary})
	}
	return list
}
