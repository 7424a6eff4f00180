package environments

import (
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox/deps"
)

// An environment with a pattern as python.base is a template for all folders that match. Each of them is an environment of its
// own, named by the path of the folder.

// settings returns the settings of an environment by its name, or by the folder, if the base is a pattern.
func (e *Environments) settings(name string) (settings config.Environment, known bool) {
	all := e.opts.Settings.Load().Environments
	if settings, known = all[name]; known || !filepath.IsAbs(name) || filepath.Clean(name) != name {
		return settings, known
	}
	for _, of := range slices.Sorted(maps.Keys(all)) {
		if settings = all[of]; settings.Python.HasPattern() && matchesPattern(settings.Python.Base, name) {
			settings.Python.Base = name
			return settings, true
		}
	}
	return config.Environment{}, false
}

func matchesPattern(pattern, folder string) bool {
	ok, err := path.Match(pattern, folder)
	return ok && err == nil
}

// folderOf returns the folder that a client means by the path of an environment, or by the last element of one, where a
// pattern in the settings allows it; "" if none does. It reads only names that match a pattern.
func folderOf(all map[string]config.Environment, asked string) string {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pattern := all[name].Python.Base
		if !all[name].Python.HasPattern() || asked == "" {
			continue
		}
		if clean := filepath.Clean(asked); filepath.IsAbs(clean) && matchesPattern(pattern, clean) {
			return clean
		}
		found, _ := filepath.Glob(pattern) // the pattern was checked
		for _, folder := range found {
			if filepath.Base(folder) == asked {
				return folder
			}
		}
	}
	return ""
}

// errPattern is the error for an environment with a pattern as base, where one folder is needed.
func errPattern(name string, settings config.Environment) error {
	found, _ := filepath.Glob(settings.Python.Base)
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	hint := "choose one by configure_environment: " + strings.Join(found, ", ")
	if len(found) == 0 {
		hint = "no folder matches it"
	}
	return &tool.Error{Kind: tool.Invalid, Message: "environment " + name + " stands for several folders", Hint: sanitize.Line(hint, 400)}
}

// checkBase refuses a folder that a pattern allows, but that programs can change: what is in it decides which
// folders of the host sandboxes see.
func (e *Environments) checkBase(name string, base deps.Base) error {
	if !filepath.IsAbs(name) || e.opts.Writable == nil {
		return nil
	}
	for _, folder := range append([]string{base.Dir, base.Python}, base.Mounts...) {
		if e.opts.Writable(folder) {
			return fmt.Errorf("%s is in a workspace that programs can change", folder)
		}
	}
	return nil
}

// Chosen describes the environment of a client's session, for answers of other servers.
type Chosen struct {
	// Name is its name in the settings, or its folder; Kind is venv, venv-uv or conda.
	Name, Kind string
	// Base is its folder, "" if it has none.
	Base string
}

// Chosen returns the environment of a client's session.
func (e *Environments) Chosen(ctx context.Context) (Chosen, error) {
	name, settings, _, err := e.Find(e.ResolveName(ctx, ""))
	if err != nil {
		return Chosen{}, err
	}
	return Chosen{Name: name, Kind: deps.Kind(settings.Python.Base), Base: settings.Python.Base}, nil
}
