package environments

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/atomicfile"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// keptFolder is the folder in the data directory for the packages that models have installed where install is keep.
const keptFolder = "packages"

// keptPackages are the packages of a principal, by environment and interpreter.
type keptPackages map[string]map[sandbox.Interpreter][]string

func keptFile(e *Environments, principal string) string {
	if e.opts.DataDir == "" {
		return ""
	}
	return filepath.Join(e.opts.DataDir, keptFolder, workspace.Folder(principal)+".json")
}

// loadKept reads the packages that a principal's models have installed in earlier processes, once. It is called with mu held.
func (e *Environments) loadKept(principal string) {
	file := keptFile(e, principal)
	if file == "" || e.loaded[principal] {
		return
	}
	e.loaded[principal] = true
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var kept keptPackages
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		e.opts.Logger.Error("packages that were kept are not available", "principal", principal, "error", err)
		return
	}
	for name, by := range kept {
		if settings, known := e.settings(name); !known || !settings.Keep {
			continue
		}
		for interpreter, packages := range by {
			if deps.Check(interpreter, packages) == nil && len(packages) <= maxExtras {
				e.extras[extraKey{principal, name, interpreter}] = packages
			}
		}
	}
}

// saveKept stores the packages of a principal, those of all environments that keep them.
func (e *Environments) saveKept(principal string) error {
	file := keptFile(e, principal)
	if file == "" {
		return nil
	}
	kept := keptPackages{}
	e.mu.Lock()
	for key, packages := range e.extras {
		if settings, _ := e.settings(key.name); key.principal != principal || !settings.Keep {
			continue
		}
		if kept[key.name] == nil {
			kept[key.name] = map[sandbox.Interpreter][]string{}
		}
		kept[key.name][key.interpreter] = packages
	}
	e.mu.Unlock()
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(file, data, 0o600)
}
