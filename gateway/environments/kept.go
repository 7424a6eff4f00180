package environments

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/store"
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

// save stores the packages of a principal: for all gateways of a store, or for later processes where the environment keeps them.
func save(ctx context.Context, e *Environments, principal string, kept bool) error {
	if e.shared == nil && !kept {
		return nil
	}
	own := packagesFor(e, principal)
	if e.shared == nil {
		return saveFile(keptFile(e, principal), own)
	}
	err := e.shared.share(ctx, principal, own)
	if err != nil && !kept {
		e.opts.Logger.WarnContext(ctx, "packages are installed at this gateway only", "principal", principal, "error", err)
		return nil
	}
	return err
}

// packagesFor returns the packages of a principal in environments that keep them, or in all if gateways share them.
func packagesFor(e *Environments, principal string) keptPackages {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := keptPackages{}
	for key, packages := range e.extras {
		if settings, _ := e.settings(key.name); key.principal != principal || !settings.Keep && e.shared == nil {
			continue
		}
		if kept[key.name] == nil {
			kept[key.name] = map[sandbox.Interpreter][]string{}
		}
		kept[key.name][key.interpreter] = packages
	}
	return kept
}

func saveFile(file string, kept keptPackages) error {
	if file == "" {
		return nil
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(file, data, 0o600)
}

// sharedAge is how long packages are shared after the last addition where the environment does not keep them.
const sharedAge = 24 * time.Hour

// sharedPackages has the packages that models have installed at the gateways of a store: each gateway installs them when a program
// needs them.
type sharedPackages struct {
	bucket  *store.Bucket
	breaker *store.Breaker
	end     func()
}

// packagesRecord are the packages of a principal in a store.
type packagesRecord struct {
	Principal string       `json:"principal"`
	Packages  keptPackages `json:"packages"`
}

// openShared begins to follow the packages in a store, if other gateways share it. Close ends it.
func openShared(e *Environments) error {
	if !e.opts.Records.Shared() {
		return nil
	}
	bucket, err := e.opts.Records.Bucket("packages", store.Limits{Records: 100_000, Bytes: 16 << 20, Record: 256 << 10})
	if err != nil {
		return err
	}
	e.shared = &sharedPackages{bucket: bucket, breaker: e.opts.Records.Breaker()}
	e.shared.end = bucket.Subscribe(e.opts.Logger, func(entry store.Entry) {
		var r packagesRecord
		if err := json.Unmarshal(entry.Value, &r); err != nil {
			e.opts.Logger.Error("packages that another gateway has installed are not available", "error", err)
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		takeOver(e, r, time.Since(entry.Time) > sharedAge)
	})
	return nil
}

// takeOver adds packages that another gateway has installed; old says that only those that are kept count. It is called with mu held.
func takeOver(e *Environments, r packagesRecord, old bool) {
	for name, by := range r.Packages {
		settings, known := e.settings(name)
		if !known || !settings.Install || old && !settings.Keep {
			continue
		}
		for interpreter, packages := range by {
			key := extraKey{r.Principal, name, interpreter}
			if merged := union(e.extras[key], packages); deps.Check(interpreter, merged) == nil && len(merged) <= maxExtras {
				e.extras[key] = merged
			}
		}
	}
}

// union returns the packages in either list, sorted.
func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// share stores the packages of a principal for all gateways.
func (s *sharedPackages) share(ctx context.Context, principal string, own keptPackages) error {
	return s.breaker.Do(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := s.bucket.Change(ctx, store.Key{workspace.Folder(principal)}, func(before store.Entry) ([]byte, error) {
			r := packagesRecord{Principal: principal, Packages: keptPackages{}}
			if before.Revision > 0 {
				if err := json.Unmarshal(before.Value, &r); err != nil {
					return nil, err
				}
			}
			for name, by := range own {
				for interpreter, packages := range by {
					if r.Packages[name] == nil {
						r.Packages[name] = map[sandbox.Interpreter][]string{}
					}
					r.Packages[name][interpreter] = union(r.Packages[name][interpreter], packages)
				}
			}
			return json.Marshal(r)
		})
		return err
	})
}
