package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// Globs select tools by their ids, as the tools of a [Rule] do. Without globs, none is selected.
type Globs []string

// NewGlobs returns globs in the form that ids are compared with.
func NewGlobs(texts []string) Globs {
	all := make(Globs, len(texts))
	for i, text := range texts {
		all[i] = glob(text)
	}
	return all
}

// CheckGlob returns what is wrong with a glob of tools, "" if nothing is.
func CheckGlob(text string) string {
	if isToolGlob(text) {
		return ""
	}
	return fmt.Sprintf(`%.40q names no tools; write upstream.tool, upstream.* or "*"`, text)
}

// Match reports whether a tool is selected.
func (g Globs) Match(id tool.ID) bool {
	name := nameOf(id)
	return slices.ContainsFunc(g, func(one string) bool { ok, _ := path.Match(one, name); return ok })
}

// MayMatch reports whether a tool of an upstream can be selected, whatever its name.
func (g Globs) MayMatch(upstream string) bool {
	return slices.ContainsFunc(g, func(one string) bool {
		up, _, ok := strings.Cut(one, ".")
		fits, _ := path.Match(up, upstream)
		return fits || !ok || strings.ContainsAny(up, `*[`) // a class or a "*" may contain the dot
	})
}
