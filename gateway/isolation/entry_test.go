package isolation

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/config"
)

// TestCommands checks what command lines become.
func TestCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"npx -y pkg a -b":                        "[pkg]  [a -b]",
		"npx --yes -q @s/pkg@^1":                 "[@s/pkg@^1]  []",
		"npx -p pkg@1 bin --x":                   "[pkg@1] bin [--x]",
		"npx --package=a --package b bin":        "[a b] bin []",
		"npx -y -- pkg -y":                       "[pkg]  [-y]",
		"bunx pkg":                               "[pkg]  []",
		"bun x pkg y":                            "[pkg]  [y]",
		"npm exec -y -- pkg@1 --a":               "[pkg@1]  [--a]",
		"npm exec pkg a -- --b":                  "[pkg]  [a --b]",
		"npm x --package=a -- bin --b":           "[a] bin [--b]",
		"npm exec pkg --a":                       `npm exec takes the option "--a" for itself; write npm exec -- PACKAGE ARGUMENTS`,
		"pnpm dlx pkg --a":                       "[pkg]  [--a]",
		"yarn dlx -p a bin":                      "[a] bin []",
		"pipx run pkg==1.2 --a":                  "[pkg==1.2]  [--a]",
		"pipx run --spec pkg==1 bin":             "[pkg==1] bin []",
		"uvx mcp-server-time --zone x":           "[mcp-server-time]  [--zone x]",
		"uvx pkg@1.2":                            "[pkg==1.2]  []",
		"uvx pkg@latest":                         "[pkg]  []",
		"uvx --from pkg[x]>=1 --with more bin y": "[pkg[x]>=1 more] bin [y]",
		"uvx --with more pkg":                    "[pkg more]  []",
		"uv tool run pkg y":                      "[pkg]  [y]",
		"npx":                                    "npx has no package",
		"npx -c x":                               `the option "-c" of npx`,
		"npx --package":                          `the option "--package" of npx`,
		"uvx --python 3.9 x":                     `the option "--python" of uvx`,
		"uv run x":                               "start",
		"podman run x":                           "isolate cannot run podman",
	} {
		words := strings.Fields(line)
		c, err := resolve(config.Upstream{Command: words[0], Args: words[1:], Isolate: &config.Isolation{}})
		got := strings.Join([]string{"[" + strings.Join(c.packages, " ") + "]", c.bin, "[" + strings.Join(c.args, " ") + "]"}, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// FuzzEntry checks that the program of a package is a file within it, whatever its metadata says.
func FuzzEntry(f *testing.F) {
	for _, text := range []string{`{"bin": "cli.js"}`, `{"bin": {"x": "../../etc/passwd"}}`, `{"bin": {"pkg": "./a/../b.js", "y": "c"}}`, `{"bin": ["x"]}`, `{"bin": {"x": "/etc/passwd"}}`, "[console_scripts]\npkg = a.b:c.d [x]\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		for _, name := range []string{"pkg/package.json", "pkg-1.dist-info/entry_points.txt"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		if args, err := nodeEntry(root, "pkg", ""); err == nil {
			rest, ok := strings.CutPrefix(args[0], "/node_modules/pkg/")
			if !ok || !fs.ValidPath(rest) || len(args) != 1 {
				t.Errorf("%q is %q", data, args)
			}
		}
		if args, err := pythonEntry(root, "pkg", ""); err == nil && (len(args) != 6 || strings.ContainsAny(args[3]+args[4], " /'\"\n")) {
			t.Errorf("%q is %q", data, args)
		}
	})
}
