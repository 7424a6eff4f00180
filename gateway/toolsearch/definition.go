package toolsearch

import (
	"context"
	"encoding/json"
	"strings"

	"sallyport/gateway/toolcall"
)

// Definition describes one tool, an upstream or a built-in function in full, as describe does for
// programs. The name is as a model writes it; upstream names the upstream if the name does not.
// Errors are *tool.Error.
func (sr *Searcher) Definition(ctx context.Context, name, upstream, language string) (string, error) {
	name = strings.TrimPrefix(strings.ReplaceAll(toolcall.TrimName(name), "/", "."), "servers.")
	upstream, err := sr.upstreamID(ctx, toolcall.TrimName(upstream))
	if err != nil {
		return "", err
	}
	if upstream != "" && !strings.HasPrefix(name, upstream+".") {
		name = upstream + "." + name
	}
	args, err := json.Marshal(map[string]string{"tool": name, "language": language})
	if err != nil {
		return "", toolcall.Invalid("tool_name must be a string", "")
	}
	if up, _, _ := strings.Cut(name, "."); upstream == "" {
		sr.opts.Catalog.AwaitNamed(ctx, up)
		sr.opts.Catalog.Await(ctx, "")
	} else {
		sr.opts.Catalog.Await(ctx, upstream)
	}
	return sr.describeForProgram(ctx, args)
}
