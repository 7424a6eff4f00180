package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/nearest"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// environment returns how the sandboxes call the environment that a program asks for: "" is the host's
// own interpreters, which is the default one where the settings do not say what that has.
func (g *Gateway) environment(name string) (string, error) {
	environments := g.cfg.Load().Environments
	if name == "" {
		name = config.DefaultEnvironment
	}
	if _, ok := environments[name]; ok {
		return name, nil
	}
	if name == config.DefaultEnvironment {
		return "", nil
	}
	names := slices.Sorted(maps.Keys(environments))
	err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("there is no environment %q", plain.Line(name, 80))}
	switch near := nearest.Of(name, names); {
	case near != "":
		err.Hint = "did you mean " + near + "?"
	case len(names) > 0:
		err.Hint = "there are: " + strings.Join(names, ", ")
	default:
		err.Hint = "leave environment out"
	}
	return "", err
}
