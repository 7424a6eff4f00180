package packagerun_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/packagerun"
)

// TestRead checks what command lines fetch and run; an empty text is for one that fetches nothing.
func TestRead(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/npx -y a@1 b -c":       "npm [a@1] [b -c]",
		"npx --package=a -p b bin":       "npm [a b]bin []",
		"bun x a":                        "npm [a] []",
		"bun run a":                      "",
		"npm exec -y -- a --b":           "npm [a] [--b]",
		"npm x a b -- --c":               "npm [a] [b --c]",
		"npm exec a --b":                 `npm exec takes the option "--b" for itself`,
		"npm install a":                  "",
		"npm":                            "",
		"pnpm dlx a --b":                 "npm [a] [--b]",
		"pnpm exec a":                    "",
		"yarn dlx -p a bin --b":          "npm [a]bin [--b]",
		"uvx a@1 --b":                    "pypi [a==1] [--b]",
		"uvx --from=a[x]>1 --with b bin": "pypi [a[x]>1 b]bin []",
		"uv tool run a":                  "pypi [a] []",
		"uv run a":                       "",
		"pipx run --spec a==1 bin --b":   "pypi [a==1]bin [--b]",
		"pipx run a==1":                  "pypi [a==1] []",
		"npx":                            "npx has no package",
		"npx -p":                         `does not know the option "-p" of npx`,
		"uvx --python 3.9 a":             `does not know the option "--python" of uvx`,
	} {
		words := strings.Fields(line)
		run, ok, err := packagerun.Read(words[0], words[1:])
		got := ""
		if ok {
			got = fmt.Sprint(run.Kind, " ", run.Packages, run.Bin, " ", run.Args)
		}
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for command, want := range map[string]int{"/opt/npm": 2, "npx": 1, "uv": 3, "python3": 0} {
		if got := packagerun.Words(command); got != want {
			t.Errorf("%s: %d words, want %d", command, got, want)
		}
	}
}
