package codegen

import (
	_ "embed"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

//go:embed aio.py
var aioModule []byte

const (
	// maxListing is how many tools of an upstream are listed.
	maxListing = 500
	// maxPackageDoc bounds an upstream's description, in runes.
	maxPackageDoc = 2000
)

func toolFiles(t tool.Tool) []File {
	fn, base := model(t), t.ID.Upstream+"/"+t.ID.Name
	return []File{
		{Path: base + ".py", Data: pythonTool(t, fn)},
		{Path: base + ".ts", Data: typescriptTool(t, fn)},
	}
}

// pythonPackage prints servers/UP/__init__.py. The names of its own begin with two
// underscores, which names of tools never do.
func pythonPackage(up Upstream, tools []tool.Tool) []byte {
	p := &printer{unit: "    "}
	p.line("# ", header)
	p.lines(pyDoc(packageDoc(up, tools, Python)))
	p.line("import typing as __typing")
	p.line("from sallyport import package as __package")
	p.line()
	if len(tools)+len(up.modules()) > 0 {
		p.block("if __typing.TYPE_CHECKING:", func() {
			for _, t := range tools {
				name := ident(t.ID.Name)
				p.line("from .", name, " import ", name, " as ", name, private(t.ID.Name))
			}
			for _, module := range up.modules() {
				p.line("from . import ", ident(module), " as ", ident(module))
			}
		}, "")
		p.line()
	}
	var names, entries []code
	for _, t := range tools {
		name := pyString(t.ID.Name)
		names, entries = append(names, name), append(entries, name+": "+name)
	}
	for _, module := range up.modules() {
		name := pyString(module)
		names, entries = append(names, name), append(entries, name+": "+name)
	}
	p.list("__all__ = [", names, "]")
	p.list("__package(__name__, {", entries, "})")
	return p.bytes()
}

// private returns a comment that makes pyright accept the export of a name with a leading underscore.
func private(name string) code {
	if strings.HasPrefix(name, "_") {
		return "  # pyright: ignore[reportPrivateUsage]"
	}
	return ""
}

// typescriptPackage prints servers/UP/index.ts.
func typescriptPackage(up Upstream, tools []tool.Tool) []byte {
	p := &printer{unit: "  "}
	p.line("// ", header)
	p.lines(tsDoc(packageDoc(up, tools, TypeScript)))
	for _, t := range tools {
		name := ident(t.ID.Name)
		p.line("export { ", name, ` } from "./`, name, `";`)
	}
	for _, module := range up.modules() {
		p.line("export * as ", ident(module), ` from "./`, ident(module), `";`)
	}
	if len(tools)+len(up.modules()) == 0 {
		p.line("export {};")
	}
	return p.bytes()
}

// packageDoc returns the upstream's description and a line for each of its tools.
func packageDoc(up Upstream, tools []tool.Tool, lang Language) string {
	var b strings.Builder
	b.WriteString(up.ID)
	if title := sanitize.Line(up.Title, 200); title != "" && title != up.ID {
		b.WriteString(": " + title)
	}
	if text := sanitize.Text(up.Description, maxPackageDoc); text != "" {
		b.WriteString("\n\n" + text)
	}
	if line := Offers(up, lang); line != "" {
		b.WriteString("\n\n" + line)
	}
	b.WriteString("\n\nTools:")
	for _, t := range tools[:min(len(tools), maxListing)] {
		b.WriteString("\n  " + t.ID.Name)
		if line := oneLiner(t); line != "" {
			b.WriteString(": " + line)
		}
	}
	if n := len(tools) - maxListing; n > 0 {
		b.WriteString("\n  and more; list the folder, or search_tools")
	}
	return b.String()
}

// pythonRoot prints servers/__init__.py, which loads packages on first use, as in
// "from servers import memory".
func pythonRoot(ups []Upstream) []byte {
	p := &printer{unit: "    "}
	p.line("# ", header)
	p.lines(pyDoc(rootDoc(ups)))
	p.line("import typing as __typing")
	p.line()
	var names []code
	for _, up := range ups {
		names = append(names, pyString(up.ID))
	}
	if len(ups) > 0 {
		p.block("if __typing.TYPE_CHECKING:", func() {
			for _, up := range ups {
				p.line("from . import ", ident(up.ID), " as ", ident(up.ID))
			}
		}, "")
		p.line()
	}
	p.list("__all__ = [", names, "]")
	p.line()
	p.line()
	p.block("def __getattr__(name: str) -> __typing.Any:", func() {
		p.block("if name in __all__:", func() {
			p.line("import importlib")
			p.line(`return importlib.import_module("." + name, __name__)`)
		}, "")
		p.block(`if name.startswith("__"):`, func() { p.line("raise AttributeError(name)") }, "")
		p.line("import difflib")
		p.line("near = difflib.get_close_matches(name, __all__, 1, 0.5) or __all__")
		p.line(`raise ImportError(f"no upstream {name!r}; available: {', '.join(near)}")`)
	}, "")
	return p.bytes()
}

// typescriptRoot prints servers/index.ts.
func typescriptRoot(ups []Upstream) []byte {
	p := &printer{unit: "  "}
	p.line("// ", header)
	p.lines(tsDoc(rootDoc(ups)))
	for _, up := range ups {
		p.line("export * as ", ident(up.ID), ` from "./`, ident(up.ID), `/index";`)
	}
	if len(ups) == 0 {
		p.line("export {};")
	}
	return p.bytes()
}

func rootDoc(ups []Upstream) string {
	var b strings.Builder
	b.WriteString("The upstreams, each a package of functions.\n")
	for _, up := range ups {
		b.WriteString("\n" + up.ID)
		if title := sanitize.Line(up.Title, 100); title != "" && title != up.ID {
			b.WriteString(": " + title)
		}
	}
	return b.String()
}

// usableTools returns the tools that can be generated, sorted by name, without duplicates.
func usableTools(up Upstream) []tool.Tool {
	tools := slices.DeleteFunc(slices.Clone(up.Tools), func(t tool.Tool) bool {
		return !usable(t.ID.Name) || t.ID.Upstream != up.ID
	})
	slices.SortStableFunc(tools, func(a, b tool.Tool) int { return strings.Compare(a.ID.Name, b.ID.Name) })
	return slices.CompactFunc(tools, func(a, b tool.Tool) bool { return a.ID == b.ID })
}

// usableUpstreams is usableTools for upstreams.
func usableUpstreams(ups []Upstream) []Upstream {
	list := slices.DeleteFunc(slices.Clone(ups), func(up Upstream) bool { return !usable(up.ID) })
	slices.SortStableFunc(list, func(a, b Upstream) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(list, func(a, b Upstream) bool { return a.ID == b.ID })
}
