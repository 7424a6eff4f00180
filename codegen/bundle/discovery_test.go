package bundle_test

import (
	"strings"
	"testing"

	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
)

// TestServerFiles: wrappers are imported as files of /workspace/servers, and found by its discovery.js; files of the
// workspace with these names come first.
func TestServerFiles(t *testing.T) {
	for program, want := range map[string]string{
		"import { read_graph } from '/workspace/servers/memory/read_graph.js';\nawait read_graph({})":                      "memory.read_graph",
		"import { read_graph } from './servers/memory/read_graph.js';\nawait read_graph({})":                               "memory.read_graph",
		"import * as m from '/workspace/servers/memory/index.js';\nawait m.read_graph({})":                                 "memory.read_graph",
		"(async () => { const { read_graph } = await import('/workspace/servers/memory/read_graph.js'); read_graph() })()": "memory.read_graph",
		"const { listServers } = await import('/workspace/servers/discovery.js');\nawait listServers()":                    `"memory":`,
		"import { searchTools } from './servers/discovery.js';\nawait searchTools('graph')":                                `"memory":`,
	} {
		if code := compile(t, program); !strings.Contains(code, want) {
			t.Errorf("%s: no %s in\n%s", program, want, code)
		}
	}
	_, err := bundle.Compile("import { x } from '/workspace/servers/memory/reed_graph.js';\nx()", servers, runtime.TypeScript, nil)
	if err == nil || !strings.Contains(err.Error(), "servers/memory has no tool reed_graph") {
		t.Errorf("an unknown tool: %v", err)
	}
	own := &bundle.Options{Files: func(path string) ([]byte, bool) {
		return []byte("export const mine = 'of the workspace'"), path == "servers/memory/read_graph.js"
	}}
	code, err := bundle.Compile("import { mine } from './servers/memory/read_graph.js';\nmine", servers, runtime.TypeScript, own)
	if err != nil || !strings.Contains(code, "of the workspace") {
		t.Errorf("a file of the workspace: %v\n%s", err, code)
	}
}
