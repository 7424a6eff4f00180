//go:build linux

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
)

// environments holds the environments that jobs can name. An entry never changes:
// a different environment of the same name gets a different key.
type environments struct {
	mu    sync.RWMutex
	byKey map[string]Environment
}

func newEnvironments(all map[string]Environment) *environments {
	own := map[string]Environment{}
	maps.Copy(own, all)
	return &environments{byKey: own}
}

// get returns an environment. known is false for undefined ones and for "", the host's own interpreters.
func (e *environments) get(name string) (env Environment, known bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	env, known = e.byKey[name]
	return env, known
}

// Define makes an environment available to jobs, in addition to those of the
// options, and returns its Job.Environment: the name with a digest of the
// environment, so that sandboxes of another environment of that name are not affected.
func (h *Host) Define(name string, env Environment) (string, error) {
	data, err := json.Marshal(env)
	if err != nil {
		return "", fmt.Errorf("define environment %s: %w", name, err)
	}
	sum := sha256.Sum256(data)
	key := name + "-" + hex.EncodeToString(sum[:6])
	h.environments.mu.Lock()
	h.environments.byKey[key] = env
	h.environments.mu.Unlock()
	root, err := h.rootOf(key)
	if err != nil {
		return "", fmt.Errorf("define environment %s: %w", name, err)
	}
	_, pythonErr := root.program(Python)
	_, nodeErr := root.program(Node)
	if pythonErr != nil && nodeErr != nil {
		return "", fmt.Errorf("define environment %s: %w", name, errors.Join(pythonErr, nodeErr))
	}
	return key, nil
}
