package settingsedit

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/redact"
	"sallyport/internal/yamledit"
)

// plainReference matches a text that has references and nothing else, but for the word that names a scheme.
var plainReference = regexp.MustCompile(`^([A-Za-z]+ )?(\$\{[^}]*\})+$`)

// harmless matches values of variables that are no secret, whatever their name is.
var harmless = regexp.MustCompile(`^(true|false|[0-9]{1,5})?$`)

// mixed matches words of comments that may be an earlier secret: with letters and digits.
var mixed = regexp.MustCompile(`^([^/]*[A-Za-z][^/]*[0-9][^/]*|[^/]*[0-9][^/]*[A-Za-z][^/]*)$`)

// scalar is a value of a part with the secrets in it.
type scalar struct {
	yamledit.Scalar
	secrets []string
}

// path is its path as one text.
func (s scalar) path() string { return strings.Join(s.Path, "\n") }

// inComments is the path of what stands in comments, or in keys.
const inComments = "#"

// scalarsOf returns the values in a text.
func scalarsOf(text string) (all []scalar, err error) {
	found, err := yamledit.Scalars([]byte(text))
	for _, one := range found {
		secrets := secretsOf(one.Path, one.Value)
		all = append(all, scalar{one, append(secrets, redact.Args(one.List)...)})
	}
	return all, err
}

// secretsOf returns the secrets in a value: all of it where secrets are held, else the parts that look like one.
func secretsOf(path []string, value string) []string {
	switch {
	case plainReference.MatchString(value) && !strings.Contains(value, ":-"):
		return nil
	case holdsSecret(path, value):
		return []string{value}
	}
	return append(redact.Value(last(path), value), secretsOfURL(value)...)
}

// holdsSecret reports whether all of a value is a secret, whatever it looks like.
func holdsSecret(path []string, value string) bool {
	if value == "" || len(path) < 2 {
		return false
	}
	switch path[len(path)-2] {
	case "env":
		return !harmless.MatchString(value) && (!strings.HasPrefix(value, "/") || len(redact.Value(last(path), strings.TrimLeft(value, "/"))) > 0)
	case "header", "headers", "query", "secrets", "tokens":
		return true
	}
	return slices.Contains([]string{"client_secret", "password", "token"}, last(path))
}

func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// secretsOfURL returns the parts of a URL that may be secret, as they are written there: what stands before @, values of its query, and
// segments of its path.
func secretsOfURL(text string) (secrets []string) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return nil
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		name, password, both := strings.Cut(authority[:at], ":")
		secrets = append(secrets, password)
		if !both {
			secrets = append(secrets, name)
		}
	}
	for segment := range strings.SplitSeq(path, "/") {
		secrets = append(secrets, redact.Value("", segment)...)
	}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return strings.ContainsRune("&#;", r) }) {
		name, value, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(value); err != nil || len(redact.Value(name, plain)) > 0 {
			secrets = append(secrets, value)
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" || plainReference.MatchString(s) })
}

// secretsOfComments returns what looks like a secret in the comments of a text.
func secretsOfComments(text string) (secrets []string) {
	for line := range strings.Lines(text) {
		_, comment, ok := strings.Cut(line, "#")
		if !ok {
			continue
		}
		words := strings.FieldsFunc(comment, func(r rune) bool { return strings.ContainsRune(" \t\n\"'{}[],", r) })
		secrets = append(secrets, redact.Args(words)...)
		for i, word := range words {
			secrets = append(secrets, secretsOfURL(word)...)
			if name, isKey := strings.CutSuffix(word, ":"); isKey && i+1 < len(words) {
				secrets = append(secrets, redact.Value(name, words[i+1])...)
			}
			if mixed.MatchString(word) {
				secrets = append(secrets, word)
			}
		}
	}
	return strong(slices.DeleteFunc(secrets, func(s string) bool { return strings.Contains(s, "${") }))
}

// strong returns the secrets that are unlikely to be ordinary words, and so are hidden wherever they stand.
func strong(secrets []string) (all []string) {
	for _, s := range secrets {
		if len(s) >= redact.Shortest && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") != "" {
			all = append(all, s)
		}
	}
	return all
}
