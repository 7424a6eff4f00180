package clients

import (
	"errors"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/secret"
)

// KeyringPrefix begins the name of a secret in the keyring, as in ${keyring:NAME}. All other secrets are variables.
const KeyringPrefix = "keyring:"

// keyring reads each value of the keyring once.
type keyring struct {
	get    func(name string) (string, error)
	values map[string]string
	// unusable: there is no keyring, so further names are not tried.
	unusable bool
}

func newKeyring(get func(string) (string, error)) *keyring {
	return &keyring{get: get, values: map[string]string{}}
}

// value returns the value of a name. A keyring that cannot be used has none.
func (k *keyring) value(name string) (value string, ok bool) {
	value, read := k.values[name]
	if !read && !k.unusable {
		got, err := k.get(name)
		k.unusable = errors.Is(err, secret.ErrNoKeyring)
		value, k.values[name] = got, got
	}
	return value, value != ""
}

// keyringNames returns the names that variables have in the keyring.
func keyringNames(variables []string) []string {
	names := make([]string, len(variables))
	for i, name := range variables {
		names[i] = KeyringPrefix + name
	}
	return names
}

// SplitSecrets returns the secrets for a file of variables, and those for the keyring by their names there.
func SplitSecrets(all config.Secrets) (variables, keyring config.Secrets) {
	variables, keyring = config.Secrets{}, config.Secrets{}
	for name, value := range all {
		if inner, ok := strings.CutPrefix(name, KeyringPrefix); ok {
			keyring[inner] = value
		} else {
			variables[name] = value
		}
	}
	return variables, keyring
}
