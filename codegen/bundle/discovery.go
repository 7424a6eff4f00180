package bundle

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Programs for code-executor import wrappers as files, "/workspace/servers/UPSTREAM/TOOL.js", and find them by the module
// discovery.js next to these. Both are served from memory, unless the workspace has such files.

// serverFiles is the folder of those files, as programs name it.
const serverFiles = "/workspace/servers/"

// discoveryNamespace is the esbuild namespace of discovery.js.
const discoveryNamespace = "discovery"

// isServerFile reports whether an import names a wrapper as a file of the workspace that is not there.
func (r resolver) isServerFile(name string) bool {
	rest, ok := strings.CutPrefix(path.Clean(name), "/workspace/")
	if !ok || !strings.HasPrefix(rest, "servers/") {
		return false
	}
	if r.workspace.read == nil {
		return true
	}
	_, found := r.workspace.read(rest)
	return !found
}

// resolveServerFile resolves the path of a wrapper below that folder.
func (r resolver) resolveServerFile(name string) (api.OnResolveResult, error) {
	if strings.TrimSuffix(strings.TrimSuffix(name, ".ts"), ".js") == "discovery" && len(r.tree.List("discovery")) == 0 {
		return api.OnResolveResult{Path: "discovery.ts", Namespace: discoveryNamespace, SideEffects: api.SideEffectsFalse}, nil
	}
	return r.resolveWrapper(name)
}

// discoverySource has the functions of discovery.js over TOOLS, the names of tools by upstream.
const discoverySource = `
export async function listServers() { return Object.keys(tools); }
export async function listServerTools(server) { return tools[server] ?? []; }
export async function searchTools(keyword) {
  const word = keyword.toLowerCase();
  return Object.entries(tools).flatMap(([server, names]) => names.filter((tool) => tool.toLowerCase().includes(word))
    .map((tool) => ({ server, tool, path: ` + "`" + serverFiles + "${server}/${tool}.ts`" + ` })));
}
`

// loadDiscovery returns the source of discovery.js.
func (r resolver) loadDiscovery(api.OnLoadArgs) (api.OnLoadResult, error) {
	tools := map[string][]string{}
	for _, upstream := range r.tree.List("") {
		tools[upstream] = r.tree.List(upstream)
	}
	data, err := json.Marshal(tools)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	contents := "const tools = " + string(data) + ";" + discoverySource
	return api.OnLoadResult{Contents: &contents, Loader: api.LoaderJS}, nil
}
