package config

import (
	"strings"

	"sallyport/internal/reference"
	"sallyport/internal/secretstore"
)

// Sources are where the references in a file get their values from.
type Sources struct {
	// Getenv looks a variable up, as os.LookupEnv does; nil: none is set.
	Getenv func(name string) (string, bool)
	// File reads the file at an absolute path; nil: secret.File. No error of it may hold a value.
	File func(path string) (string, error)
	// EnvFile reads the file that env_file names, at an absolute path; nil: a file that
	// only its owner may read. No error of it may hold a value.
	EnvFile func(path string) ([]byte, error)
	// Keyring reads the keyring of the system; nil: secret.Get. No error of it may hold a value.
	Keyring func(name string) (string, error)
	// Managers reads secret managers; nil: a store for this file. No error of it may hold a value.
	Managers secretstore.Reader
	// AllErrors reports all errors of a file, not only the first ten.
	AllErrors bool
}

// resolver returns a resolver for a file in dir.
func (s Sources) resolver(dir string) *reference.Resolver {
	return reference.New(reference.Sources{Getenv: s.Getenv, File: s.File, EnvFile: s.EnvFile, Keyring: s.Keyring, Managers: s.Managers}, dir)
}

// Placeholder is the value of every reference without a value while a file is edited. It
// is valid wherever a reference is allowed, except where [isPlaceholder] is asked.
const Placeholder = "http://reference-without-value.invalid"

// isPlaceholder reports whether a value is not known because the file is only edited: its length and characters say nothing.
func isPlaceholder(value string) bool { return strings.Contains(value, Placeholder) }

// Source returns the current settings. An *atomic.Pointer[Config] implements it.
type Source interface {
	Load() *Config
}
