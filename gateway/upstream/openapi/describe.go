package openapi

import (
	"regexp"
	"slices"
	"strings"
)

const maxDescription = 1000

var markup = regexp.MustCompile(`</?[A-Za-z][^<>]{0,200}>`)

// describe returns the description of a tool: what the document says, how to get the next page, and the request. The request
// is part of it so that a tool which sends another one is a changed tool.
func (o *operation) describe() string {
	text := strings.TrimSpace(markup.ReplaceAllString(o.description, ""))
	summary := strings.TrimSpace(o.summary)
	if summary != "" && !strings.HasPrefix(strings.ToLower(text), strings.ToLower(strings.TrimRight(summary, "."))) {
		text = strings.TrimSpace(summary + "\n\n" + text)
	}
	lines := []string{}
	if o.deprecated {
		lines = append(lines, "Deprecated.")
	}
	if text = prose(text, maxDescription); text != "" {
		lines = append(lines, text)
	}
	if hint := o.pages(); hint != "" {
		lines = append(lines, hint)
	}
	return strings.Join(append(lines, o.method+" "+o.path), "\n")
}

// Names of parameters that choose a page, and its size.
var (
	cursorNames = []string{"cursor", "next_cursor", "page_token", "pagetoken", "starting_after", "after", "continue", "marker", "offset", "skip", "start", "startat", "page", "page_number", "pagenumber", "pageindex"}
	sizeNames   = []string{"limit", "per_page", "perpage", "page_size", "pagesize", "max_results", "maxresults", "count", "top", "$top"}
)

// pages returns a hint on pagination, "" if the operation has no parameter for it.
func (o *operation) pages() string {
	cursor, size := o.parameterOf(cursorNames), o.parameterOf(sizeNames)
	if cursor == "" || size == "" && !o.paged && o.method != "GET" {
		return ""
	}
	hint := "Returns one page; the next one by " + cursor
	if size != "" {
		hint += ", its size by " + size
	}
	return hint + "."
}

// parameterOf returns the argument of the first of some names, in the query or in a flat body.
func (o *operation) parameterOf(names []string) string {
	for _, name := range names {
		for _, p := range o.params {
			if p.in == "query" && strings.ToLower(p.wire) == name {
				return p.name
			}
		}
		if o.body != nil && o.body.flat {
			if i := slices.IndexFunc(o.body.members, func(m string) bool { return strings.ToLower(m) == name }); i >= 0 && o.method == "POST" && o.paged {
				return o.body.members[i]
			}
		}
	}
	return ""
}
