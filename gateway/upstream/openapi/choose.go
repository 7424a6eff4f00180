package openapi

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// choice says which operations become tools.
type choice struct{ include, exclude []rule }

// rule reports whether it is about an operation.
type rule func(o *operation) bool

func newChoice(include, exclude []string) (*choice, error) {
	c := &choice{}
	for list, globs := range map[*[]rule][]string{&c.include: include, &c.exclude: exclude} {
		for _, g := range globs {
			r, err := newRule(g)
			if err != nil {
				return nil, err
			}
			*list = append(*list, r)
		}
	}
	return c, nil
}

// newRule reads "tag:GLOB", "path:GLOB", or a glob of operationIds.
func newRule(text string) (rule, error) {
	kind, glob, _ := strings.Cut(text, ":")
	switch kind {
	case "tag":
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("%.80q is not a glob", text)
		}
		return func(o *operation) bool {
			return slices.ContainsFunc(o.tags, func(t string) bool { return matches(glob, t) })
		}, nil
	case "path":
		re, err := pathPattern(glob)
		if err != nil {
			return nil, fmt.Errorf("%.80q is not a glob", text)
		}
		return func(o *operation) bool { return re.MatchString(o.path) }, nil
	}
	return func(o *operation) bool { return matches(text, o.plainName()) }, nil
}

// matches is path.Match in which "/" is a character as any other.
func matches(glob, text string) bool {
	flat := strings.NewReplacer("/", "\x01")
	ok, err := path.Match(flat.Replace(glob), flat.Replace(text))
	return err == nil && ok
}

// pathPattern returns the expression of a glob of paths: "*" is within a segment, "**" is not.
func pathPattern(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	for i, part := range strings.Split(glob, "**") {
		if i > 0 {
			b.WriteString(".*")
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(part), `\*`, "[^/]*"))
	}
	return regexp.Compile("^" + b.String() + "$")
}

func (c *choice) takes(o *operation) bool {
	about := func(r rule) bool { return r(o) }
	return (len(c.include) == 0 || slices.ContainsFunc(c.include, about)) && !slices.ContainsFunc(c.exclude, about)
}
