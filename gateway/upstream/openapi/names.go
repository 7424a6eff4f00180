package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"sallyport/gateway/upstream/apitools"
)

// maxName is the longest name of a tool that MCP recommends.
const maxName = 128

// nameOperations gives each operation its name: the operationId, or method and path if there is none, or if several have the
// same. Of names that would be the same afterwards each gets a digest of method and path. So a name depends on no
// operation but those with the same, and not on the order.
func nameOperations(all []*operation) {
	count := map[string]int{}
	for _, o := range all {
		count[cleanName(o.id)]++
	}
	for _, o := range all {
		if o.name = cleanName(o.id); o.name == "" || count[o.name] > 1 {
			o.name = o.pathName()
		}
	}
	apitools.Distinguish(all, func(o *operation) *string { return &o.name }, func(o *operation) string { return withDigest(o.name, o.method+" "+o.path) })
}

// plainName returns the name of an operation as if there were no other.
func (o *operation) plainName() string {
	if cleanName(o.id) != "" {
		return o.id
	}
	return o.pathName()
}

// pathName returns a name from method and path: get_pets_id.
func (o *operation) pathName() string {
	path := strings.NewReplacer("{", "", "}", "", "/", "_").Replace(strings.Trim(o.path, "/"))
	return cleanName(strings.TrimSuffix(strings.ToLower(o.method)+"_"+path, "_"))
}

// cleanName returns a text in the characters that MCP recommends for names; one that is too long gets a digest.
func cleanName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' {
			return r
		}
		return nameRune(r)
	}, text)
	if strings.Trim(name, "_./-") == "" {
		return ""
	}
	if len(name) > maxName {
		name = withDigest(name, text)
	}
	return name
}

func withDigest(name, of string) string {
	sum := sha256.Sum256([]byte(of))
	return name[:min(len(name), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
}

// argumentNames gives each parameter a name of its own: its own name, or one with its place if several parameters, or members of a
// body, have the same.
func argumentNames(params []*parameter, members []string) {
	taken := map[string]bool{}
	for _, m := range members {
		taken[m] = true
	}
	for _, p := range params {
		name := p.wire
		if taken[name] {
			name += "_" + p.in
		}
		for taken[name] {
			name += "_"
		}
		p.name, taken[name] = name, true
	}
}
