package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"

	"sallyport/internal/config"
	"sallyport/internal/envfile"
	"sallyport/internal/settingsfile"
)

// ReadSettings reads the settings without resolving references: their values may not exist yet.
func (a *App) ReadSettings() (*config.Config, error) {
	path, err := settingsfile.Find(a.ConfigPath, a.Env)
	if err != nil {
		return nil, err
	}
	f, err := settingsfile.Open(path, a.Env)
	if err != nil {
		return nil, err
	}
	return f.Config()
}

// OpenSettings opens the settings file at path for reading its entries or editing.
func (a *App) OpenSettings(path string) (*settingsfile.File, error) {
	f, err := settingsfile.Open(path, a.Env)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	return f, nil
}

// EditSettings opens the settings file that Load would read; if there is none, a new one.
func (a *App) EditSettings() (*settingsfile.File, error) {
	path, err := settingsfile.Find(a.ConfigPath, a.Env)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = newSettings(a, err)
	}
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	return a.OpenSettings(path)
}

// newSettings returns the path of a new settings file: the one of --config or SALLYPORT_CONFIG, else
// the one of the user, which is found in any working directory.
func newSettings(a *App, missing error) (string, error) {
	if a.ConfigPath != "" {
		return a.ConfigPath, nil
	}
	if path, _ := a.Env("SALLYPORT_CONFIG"); path != "" {
		return path, nil
	}
	if xdg, _ := a.Env("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		return filepath.Join(xdg, "sallyport", "upstreams.yaml"), nil
	}
	if home, _ := a.Env("HOME"); home != "" {
		return filepath.Join(home, ".config", "sallyport", "upstreams.yaml"), nil
	}
	return "", missing
}

// UnsetVariables returns the variables without a default that the entries name and neither the environment nor the env_file has.
func (a *App) UnsetVariables(f *settingsfile.File, entries ...settingsfile.Entry) []string {
	var names []string
	vars := readEnvFile(a, f)
	for _, e := range entries {
		if e.Disabled {
			continue
		}
		for _, text := range e.Texts() {
			for _, m := range variable.FindAllStringSubmatch(text, -1) {
				_, set := a.Env(m[1])
				_, kept := vars[m[1]]
				if m[1] != "" && !set && !kept && !slices.Contains(names, m[1]) {
					names = append(names, m[1])
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// readEnvFile returns the variables of the env_file. If it cannot be read, it prints the error and returns none.
func readEnvFile(a *App, f *settingsfile.File) config.Secrets {
	file := f.EnvFile()
	if file == "" {
		return nil
	}
	vars, err := envfile.Read(file)
	if err != nil {
		a.Say("env_file " + file + ": " + err.Error())
	}
	return vars
}

var variable = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Transport returns the transport of an upstream in a word.
func Transport(up config.Upstream) string {
	switch {
	case up.OpenAPI != "":
		return "openapi"
	case up.GraphQL != "":
		return "graphql"
	case up.GRPC != "":
		return "grpc"
	case up.Egress != nil:
		return "egress"
	case len(up.Tools) > 0:
		return "command"
	case up.HasProcess():
		return "stdio"
	case up.Socket != "":
		return "socket"
	case up.Transport == "" || up.Transport == "auto":
		return "http"
	}
	return up.Transport
}
