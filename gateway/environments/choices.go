package environments

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Choice selects the environment of a client's session.
type Choice struct {
	// Environment is its name in the settings.
	Environment string
	// Folder, instead of Environment, is the folder of a venv, uv or conda environment, as in python.base
	// in the settings, or its last element.
	Folder string
}

// maxChosen is the maximum number of sessions with a choice.
const maxChosen = 4096

// sessionKey identifies a client's session.
type sessionKey struct{ principal, session string }

func sessionKeyOf(ctx context.Context) sessionKey {
	return sessionKey{tool.Principal(ctx), tool.Session(ctx)}
}

// choices holds the environments that clients' sessions have chosen, in memory only.
type choices struct {
	mu     sync.Mutex
	chosen map[sessionKey]string
	order  []sessionKey // the latest last
}

func (c *choices) set(who sessionKey, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chosen == nil {
		c.chosen = map[sessionKey]string{}
	}
	if i := slices.Index(c.order, who); i >= 0 {
		c.order = slices.Delete(c.order, i, i+1)
	}
	if len(c.order) == maxChosen {
		delete(c.chosen, c.order[0])
		c.order = slices.Delete(c.order, 0, 1)
	}
	c.order = append(c.order, who)
	c.chosen[who] = name
}

func (c *choices) get(who sessionKey) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chosen[who]
}

// ResolveName returns the requested environment, or else the one that the client's session has
// chosen, or "" if the settings no longer have that.
func (e *Environments) ResolveName(ctx context.Context, asked string) string {
	if asked != "" {
		return asked
	}
	name := e.choices.get(sessionKeyOf(ctx))
	if _, ok := e.settings(name); !ok {
		return ""
	}
	return name
}

// ChooseEnvironment sets the default environment for programs of a client's session
// (tool.Principal and tool.Session) and begins to build it. The choice lasts until the gateway
// ends. It returns text for the model; errors are *tool.Error.
func (e *Environments) ChooseEnvironment(ctx context.Context, c Choice) (string, error) {
	all := e.opts.Settings.Load().Environments
	name, err := c.find(all)
	if err == nil && all[name].Python.HasPattern() {
		err = errPattern(name, all[name])
	}
	if err != nil {
		return "", err
	}
	e.choices.set(sessionKeyOf(ctx), name)
	state := ""
	if _, known := e.settings(name); known {
		m := e.startBuild(e.recipe(tool.Principal(ctx), name))
		state = m.state()
	}
	return "Programs run in environment " + describe(name, all) + " from now on" + state + ". A program's session has other variables there.", nil
}

// state returns a note on an environment that is not ready, "" if it is.
func (m *building) state() string {
	if err := m.failure(); err != nil {
		return ", but it could not be made yet"
	}
	if !m.ready() {
		return "; it is being made ready"
	}
	return ""
}

// find returns the name of the chosen environment.
func (c Choice) find(all map[string]config.Environment) (string, error) {
	names := environmentNames(all)
	if c.Environment == "" && c.Folder == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "which environment?", Hint: listOf(all)}
	}
	for _, name := range names {
		if c.Environment == name || c.Environment == "" && (c.Folder == name || matchesBase(all[name].Python.Base, c.Folder)) {
			return name, nil
		}
	}
	if folder := folderOf(all, cmp.Or(c.Environment, c.Folder)); folder != "" {
		return folder, nil
	}
	asked := toolcall.TrimName(c.Environment + c.Folder)
	hint := listOf(all)
	if near := suggest.Of(asked, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return "", &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no environment %q", sanitize.Line(asked, 80)), Hint: hint}
}

// environmentNames returns the names in the settings, the default one first.
func environmentNames(all map[string]config.Environment) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return name == config.DefaultEnvironment })
	return append([]string{config.DefaultEnvironment}, names...)
}

// listOf returns a text that lists the environments.
func listOf(all map[string]config.Environment) string {
	names := environmentNames(all)
	if len(names) == 1 {
		return "there is only default; the operator adds others under environments: in upstreams.yaml"
	}
	for i, name := range names {
		names[i] = describe(name, all)
	}
	return sanitize.Line("there are: "+strings.Join(names, ", "), 600)
}

// describe returns a name with its description in the settings.
func describe(name string, all map[string]config.Environment) string {
	if about := sanitize.Line(all[name].Description, 80); about != "" {
		return name + " (" + strings.TrimSuffix(about, ".") + ")"
	}
	return name
}

// matchesBase reports whether folder, from a model, is base or its last element. It reads no files:
// a model must not learn more than what the settings say.
func matchesBase(base, folder string) bool {
	return base != "" && folder != "" && (filepath.Clean(folder) == base || filepath.Base(base) == folder)
}
