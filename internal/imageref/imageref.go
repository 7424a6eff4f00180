// Package imageref checks the form of references to OCI images.
package imageref

import (
	"regexp"
	"strings"
)

// The parts of a reference: a registry with a dot, a port or the name localhost; the path of a repository; a tag; a digest.
const (
	registry   = `([A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9.-]+(:[0-9]{1,5})?|[A-Za-z0-9][A-Za-z0-9-]*:[0-9]{1,5}|localhost)/`
	repository = `[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*`
	tag        = `:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`
	digest     = `@sha256:[0-9a-f]{64}`
)

var form = regexp.MustCompile(`^(` + registry + `)?` + repository + `(` + tag + `)?(` + digest + `)?$`)

// maxLength bounds a reference.
const maxLength = 500

// Valid reports whether a text is a reference, with or without a tag and a digest.
func Valid(text string) bool { return len(text) <= maxLength && form.MatchString(text) }

// Pinned reports whether a reference has a digest, so that it always means the same image.
func Pinned(text string) bool { return Valid(text) && strings.Contains(text, "@") }

// Name returns the reference without its tag and digest.
func Name(text string) string {
	name, _, _ := strings.Cut(text, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}
