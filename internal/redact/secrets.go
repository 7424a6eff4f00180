package redact

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Values returns the secrets among values, by their names or their form, including the parts that may appear alone:
// the token of "Bearer TOKEN", the password of basic authorization and of a URL.
func Values(values map[string]string) (secrets []string) {
	for name, value := range values {
		secrets = append(secrets, Value(name, value)...)
	}
	return secrets
}

// Value is Values for one value.
func Value(name, value string) (secrets []string) {
	secrets = OfURL(value)
	if !isSecret(name, value) {
		return secrets
	}
	secrets = append(secrets, value)
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return secrets
	}
	secrets = append(secrets, rest)
	if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		if _, password, ok := strings.Cut(string(plain), ":"); ok {
			secrets = append(secrets, string(plain), password)
		}
	}
	return secrets
}

// Args is Values for the arguments of a program: --token=X, --token X, X that looks like a secret.
func Args(args []string) (secrets []string) {
	for i, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case ok && strings.HasPrefix(name, "-"):
			secrets = append(secrets, Value(name, value)...)
		case strings.HasPrefix(arg, "-"):
		case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "="):
			secrets = append(secrets, Value(args[i-1], arg)...)
		default:
			secrets = append(secrets, Value("", arg)...)
		}
		if _, header, ok := strings.Cut(arg, ": "); ok { // --header "Authorization: Bearer X"
			name := arg[strings.LastIndex(arg[:len(arg)-len(header)-2], "=")+1 : len(arg)-len(header)-2]
			secrets = append(secrets, Value(name, header)...)
		}
	}
	return secrets
}

// OfURL returns the password of a URL, and the secrets in its query.
func OfURL(text string) (secrets []string) {
	if !strings.Contains(text, "://") {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	password, set := u.User.Password()
	switch {
	case password != "":
		secrets = append(secrets, password)
	case !set && looksRandom(u.User.Username()): // https://TOKEN@host
		secrets = append(secrets, u.User.Username())
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if isSecret(name, value) {
				secrets = append(secrets, value)
			}
		}
	}
	return secrets
}

// isSecret classifies a value by its name, or else by its form.
func isSecret(name, value string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) > 0 && slices.Contains([]string{"type", "mode", "url", "uri", "file", "path", "dir", "name", "id", "user", "endpoint", "host"}, words[len(words)-1]) ||
		strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") {
		return false
	}
	return slices.ContainsFunc(words, isSecretWord) || looksRandom(value)
}

func isSecretWord(word string) bool {
	for _, part := range []string{"token", "key", "secret", "passw", "passphrase", "pwd", "auth", "credential", "cookie", "bearer", "pat"} {
		if word == part || len(part) > 3 && strings.Contains(word, part) || part == "key" && strings.HasSuffix(word, part) {
			return true
		}
	}
	return false
}

// looksRandom reports whether a value is long, of one word, and mixes letters and digits irregularly.
func looksRandom(value string) bool {
	if len(value) < 20 || strings.ContainsAny(value, " /\\@:,") {
		return false
	}
	kinds, changes, last := map[int]bool{}, 0, -1
	for _, r := range value {
		kind := 0
		switch {
		case unicode.IsDigit(r):
			kind = 1
		case unicode.IsUpper(r):
			kind = 2
		case !unicode.IsLetter(r):
			kind = 3
		}
		if kind != last {
			changes++
		}
		kinds[kind], last = true, kind
	}
	return kinds[1] && (kinds[0] || kinds[2]) && changes*4 >= len(value)
}
