package addition

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sallyport/internal/atomicfile"
	"sallyport/internal/clients"
	"sallyport/internal/config"
	"sallyport/internal/envfile"
	"sallyport/internal/secret"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// SecretStore is where secrets of new upstreams are stored. Without any, only the settings are written.
type SecretStore struct {
	// EnvFile is the path of a file of variables; it becomes the env_file of the settings.
	EnvFile string
	// Keyring is the keyring of the system.
	Keyring bool
}

// Put stores secrets, each where its name says. A file of variables becomes the env_file of the settings.
func (store SecretStore) Put(f *settingsfile.File, secrets config.Secrets) error {
	variables, keyring := clients.SplitSecrets(secrets)
	if store.Keyring {
		return storeInKeyring(keyring)
	}
	if store.EnvFile == "" || len(variables) == 0 {
		return nil
	}
	return storeInFile(f, store.EnvFile, variables)
}

// storeInKeyring stores secrets that the keyring does not have yet. A second import does not ask to unlock it for writing.
func storeInKeyring(secrets config.Secrets) error {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if old, err := secret.Get(name); err == nil && old == secrets[name] {
			continue
		}
		if err := secret.Set(name, secrets[name]); err != nil {
			return &tool.Error{Kind: tool.Failed, Message: err.Error(), Err: err, Hint: "upstreams.yaml was not written; use --env-file FILE where there is no keyring"}
		}
	}
	return nil
}

// storeInFile writes the env file, and sets env_file in the settings to it.
func storeInFile(f *settingsfile.File, envFile string, secrets config.Secrets) error {
	file, err := filepath.Abs(envFile)
	if err != nil {
		return err
	}
	switch set := f.EnvFile(); set {
	case file:
	case "":
		if err := f.SetEnvFile(file); err != nil {
			return &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err, Hint: "write env_file: " + file + " into it yourself, then try again"}
		}
	default:
		return &tool.Error{Kind: tool.Invalid, Message: f.Path + " reads its variables from another file, " + set, Hint: "use --env-file " + set}
	}
	return writeSecrets(envFile, secrets)
}

// Report says where the secrets are.
func (store SecretStore) Report(f *settingsfile.File, secrets config.Secrets) (text []string) {
	variables, keyring := clients.SplitSecrets(secrets)
	if store.Keyring && len(keyring) > 0 {
		text = append(text, count(len(keyring))+" in the keyring")
	}
	if store.EnvFile != "" && len(variables) > 0 {
		text = append(text, fmt.Sprintf("%s in %s, which %s reads", count(len(variables)), store.EnvFile, f.Path))
	}
	return text
}

// writeSecrets adds secrets to an env file with mode 0600.
func writeSecrets(path string, secrets config.Secrets) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && old == nil {
		old = []byte{}
	}
	data, err := envfile.Merge(old, secrets)
	if err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: path + ": " + err.Error(), Err: err, Hint: "nothing was written; correct that line, or remove it to take the new value"}
	}
	if _, err := atomicfile.Write(path, old, data, &atomicfile.Options{Mode: 0o600, Force: true}); err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}
	return nil
}

func count(secrets int) string {
	if secrets == 1 {
		return "1 secret is"
	}
	return fmt.Sprintf("%d secrets are", secrets)
}
