package bundle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sallyport/codegen/bundle"
)

// TestFiles: relative imports are files of the workspace, whatever they are written like, and nothing else.
func TestFiles(t *testing.T) {
	t.Parallel()
	all := map[string]string{
		"a/b.ts": `import "../c"; export const b = 1`, "c.ts": `import "./a/b"; export const c = 2`, "a/index.ts": `export const index = 3`, "a/d.js": `export const d = 4`,
		"a/e.json": `{"e": 5}`, "x.txt": "text", "a/f.mts": `export const f: number = 6`, "wrong.ts": "export {", "deep.ts": `import "../../etc/passwd.ts"; export const deep = 1`,
	}
	var asked []string
	read := func(path string) ([]byte, bool) {
		asked = append(asked, path)
		if text, ok := all[path]; ok {
			return []byte(text), true
		}
		var n int
		if _, err := fmt.Sscanf(path, "many/f%d.ts", &n); err == nil {
			return fmt.Appendf(nil, "export * from \"./f%d\"; export * from \"./f%d\"; export const v%d = 1;", n+1, n+7, n), true
		}
		return nil, false
	}
	for _, test := range []struct{ file, code, want, wrong string }{
		{"a/main.ts", `import { b } from "./b"; b`, "= 1", ""},
		{"a/main.ts", `import { c } from "../c.js"; c`, "= 2", ""},
		{"main.ts", `import { index } from "./a"; index`, "= 3", ""},
		{"", `import { d } from "./a/d.js"; d`, "= 4", ""},
		{"", `import e from "./a/e.json"; e`, "e: 5", ""},
		{"", `import { f } from "./a/f.mjs"; f`, "= 6", ""},
		{"a/main.ts", `import x from "../../up"; x`, "", `ImportError: cannot import "../../up"`},
		{"", `import x from "./x.txt"; x`, "", `ImportError: cannot import "./x.txt"`},
		{"", `import x from "./../x"; x`, "", `ImportError: cannot import "./../x"`},
		{"", `import x from "./a\u0000b"; x`, "", `ImportError: cannot import "./a\x00b"`},
		{"", `import x from "./wrong"; x`, "", "SyntaxError: "},
		{"", `import "./deep"`, "", `ImportError: cannot import "../../etc/passwd.ts"`},
		{"", `import { v0 } from "./many/f0"; v0`, "", "ImportError: the program imports more than 2000 files or 16 MiB"},
	} {
		code, err := bundle.Compile(test.code, servers, nil, &bundle.Options{File: test.file, Files: read})
		if test.wrong == "" && (err != nil || !strings.Contains(code, test.want)) {
			t.Errorf("%s: %v\n%s", test.code, err, code)
		}
		if wrong, ok := errors.AsType[*bundle.Error](err); test.wrong != "" && (!ok || !strings.HasPrefix(wrong.Error(), test.wrong)) {
			t.Errorf("%s: %v", test.code, err)
		}
	}
	for _, path := range asked {
		if strings.HasPrefix(path, "/") || strings.Contains(path, "..") {
			t.Errorf("asked for %q", path)
		}
	}
}
