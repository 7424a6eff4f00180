package reload

import (
	"reflect"
	"slices"

	"sallyport/internal/config"
)

// needRestart returns the keys that are read only at start and differ.
func needRestart(old, cfg *config.Config) (keys []string) {
	if o, n := old.Sandbox, cfg.Sandbox; o.Runsc != n.Runsc || o.Python != n.Python || o.Node != n.Node {
		keys = append(keys, "sandbox.runsc, python, node")
	}
	if old.Sandbox.Remote != cfg.Sandbox.Remote {
		keys = append(keys, "sandbox.remote")
	}
	if o, n := old.Sandbox, cfg.Sandbox; o.Pyright != n.Pyright || o.Tsc != n.Tsc {
		keys = append(keys, "sandbox.pyright, tsc")
	}
	if o, n := old.Sandbox, cfg.Sandbox; o.Pool != n.Pool || o.Reuse != n.Reuse || o.SessionIdle != n.SessionIdle || !slices.Equal(o.Masked, n.Masked) {
		keys = append(keys, "sandbox.pool, reuse, session_idle, masked")
	}
	if old.Sandbox.Parallel != cfg.Sandbox.Parallel {
		keys = append(keys, "sandbox.parallel")
	}
	for _, of := range []struct {
		key      string
		old, now any
	}{
		{"environments", old.Environments, cfg.Environments},
		{"observe", old.Observe, cfg.Observe},
		{"workspaces (in the definition of execute_code)", old.Workspaces, cfg.Workspaces},
		{"audit", auditWithoutCode(old.Audit), auditWithoutCode(cfg.Audit)},
		{"profiles", append(config.Profiles{}, old.Profiles...), append(config.Profiles{}, cfg.Profiles...)},
		{"compat", old.Compat, cfg.Compat},
		{"http", old.HTTP, cfg.HTTP},
		{"workflows", old.Workflows, cfg.Workflows},
		{"store", old.Store, cfg.Store},
	} {
		if !reflect.DeepEqual(of.old, of.now) {
			keys = append(keys, of.key)
		}
	}
	return keys
}

// auditWithoutCode returns the audit settings without those that take effect immediately.
func auditWithoutCode(a config.Audit) config.Audit {
	a.Code = ""
	return a
}
