package secretstore

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
)

// name is a parsed reference.
type name struct {
	scheme string
	// path names the secret in the manager, without what selects a version or a field.
	path    string
	version url.Values
	field   string
}

// schemes are those of the managers, with the form of their references.
var schemes = map[string]string{
	"vault": "${vault:PATH#FIELD}, as in ${vault:secret/data/github#token}",
	"op":    "${op:VAULT/ITEM/FIELD} or ${op:VAULT/ITEM/SECTION/FIELD}",
	"aws":   "${aws:NAME} or ${aws:NAME#FIELD}",
	"gcp":   "${gcp:NAME} or ${gcp:projects/PROJECT/secrets/NAME/versions/VERSION}",
}

// Owns reports whether a reference (what is between "${" and "}") is to a secret manager.
func Owns(reference string) bool {
	scheme, rest, ok := strings.Cut(reference, ":")
	return ok && schemes[scheme] != "" && !strings.HasPrefix(rest, "-")
}

// Check returns the error of a reference that no manager can have.
func Check(reference string) error {
	_, err := parse(reference)
	return err
}

// maxName bounds a reference, in bytes.
const maxName = 600

// parse parses a reference. Errors are *Error of the kind Missing.
func parse(reference string) (name, error) {
	scheme, rest, _ := strings.Cut(reference, ":")
	n := name{scheme: scheme}
	wrong := func(why string) (name, error) {
		return name{}, &Error{Kind: Missing, Message: fmt.Sprintf("${%s} %s", sanitize.Line(reference, 120), why), Fix: "write " + schemes[scheme]}
	}
	if len(reference) > maxName || strings.ContainsFunc(rest, sanitize.Hidden) || strings.TrimSpace(rest) != rest {
		return wrong("is not the name of a secret")
	}
	var hasField bool
	if scheme != "op" {
		rest, n.field, hasField = cutLast(rest, "#")
		var query string
		rest, query, _ = strings.Cut(rest, "?")
		var err error
		if n.version, err = url.ParseQuery(query); err != nil || !validVersion(scheme, n.version) {
			return wrong(`has an option after "?" that is unknown`)
		}
	}
	if n.path = rest; hasField && n.field == "" || !n.isWellFormed() {
		return wrong("is incomplete")
	}
	return n, nil
}

func cutLast(text, at string) (before, after string, found bool) {
	if i := strings.LastIndex(text, at); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// validVersion reports whether options select a version, as the manager of a scheme has them.
func validVersion(scheme string, options url.Values) bool {
	allowed := map[string][]string{"vault": {"version"}, "aws": {"version", "stage"}}[scheme]
	for key, values := range options {
		if !slices.Contains(allowed, key) || len(values) != 1 || values[0] == "" {
			return false
		}
	}
	return true
}

// isWellFormed splits the path of 1Password, completes that of Google, and reports whether the parts make a name.
func (n *name) isWellFormed() bool {
	parts := strings.Split(n.path, "/")
	if slices.ContainsFunc(parts, func(part string) bool { return part == "" || part == "." || part == ".." }) {
		return false
	}
	switch n.scheme {
	case "vault":
		return len(parts) > 1 && n.field != ""
	case "op":
		if len(parts) != 3 && len(parts) != 4 || strings.ContainsAny(n.path, `"\`) {
			return false
		}
		n.path, n.field = strings.Join(parts[:2], "/"), strings.Join(parts[2:], "/")
		return true
	case "gcp":
		return googleName.MatchString(n.path)
	}
	return true
}

var googleName = regexp.MustCompile(`^(projects/[a-zA-Z0-9:.-]+/secrets/)?[a-zA-Z0-9_-]+(/versions/[a-zA-Z0-9_-]+)?$`)

// document returns what names everything that is read together: two fields of a secret are of one version.
func (n name) document() string { return n.scheme + ":" + n.path + "?" + n.version.Encode() }

// String returns the reference as it is written.
func (n name) String() string {
	text := n.scheme + ":" + n.path
	if len(n.version) > 0 {
		text += "?" + n.version.Encode()
	}
	switch {
	case n.scheme == "op":
		text += "/" + n.field
	case n.field != "":
		text += "#" + n.field
	}
	return "${" + sanitize.Line(text, 120) + "}"
}
