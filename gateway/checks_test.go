package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// withCheckers adds the real type checkers.
func withCheckers(t testing.TB, cfg *config.Config) *config.Config {
	t.Helper()
	cfg.Sandbox.Pyright = filepath.Join(testutil.Checkers(t), "pyright")
	cfg.Sandbox.Tsc = filepath.Join(testutil.Checkers(t), "typescript")
	return cfg
}

// TestTypesOfProgramsThatSucceed: what is certainly wrong is told, in one line, if the checker has found it by the end.
func TestTypesOfProgramsThatSucceed(t *testing.T) {
	t.Parallel()
	cfg := withCheckers(t, withRunsc(t, settings(map[string]*site{"shop": newSite(t, market)})))
	cfg.Sandbox.Timeout = 60 * time.Second
	g := open(t, cfg, nil)
	g.Catalog.WaitConnected(t.Context())
	const pause = "await new Promise((done) => setTimeout(done, 2000));\n"
	for language, test := range map[string]struct{ start, wrong, want, fine string }{
		"python": {
			start: "import time\nfrom servers.shop import count_orders\nn = count_orders()\ntime.sleep(2)\n",
			wrong: "'few' if n == '200' else 'many'",
			want:  "many\ntypes: line 5: always False: int compared with Literal['200']",
			fine:  "'none' if n is None else 'many'",
		},
		"typescript": {
			start: "import { get_order } from 'servers/shop';\nconst o = await get_order({ id: 7 });\n" + pause,
			wrong: "o.customername ? 'known' : 'unknown'",
			want:  "unknown\ntypes: line 4: Property 'customername' does not exist on type 'Result'. Did you mean 'customerName'?",
			fine:  "const sums = { all: 1 };\n(sums.more = 2, process.hrtime?.more, 'known')",
		},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			said := ""
			testutil.Eventually(t, "it is told", 3*time.Minute, func() bool {
				said = execute(t, g, language, test.start+test.wrong).Text()
				t.Log(said)
				return strings.Contains(said, "types:")
			})
			if said != test.want {
				t.Errorf("it says\n%s\nwant\n%s", said, test.want)
			}
			if e := execute(t, g, language, test.start+test.fine); e.Failed() || strings.Contains(e.Text(), "types:") {
				t.Errorf("of a program that did well:\n%s", e.Text())
			}
		})
	}
}

// TestTypesOfProgramsThatFail: what the checkers find is told with a fault.
func TestTypesOfProgramsThatFail(t *testing.T) {
	g := open(t, withCheckers(t, withRunsc(t, settings(map[string]*site{"notes": newSite(t, notes)}))), nil)
	g.Catalog.WaitConnected(t.Context())
	for language, test := range map[string]struct{ wrong, want, same, wordless, fine string }{
		"python": {
			wrong: "import json, re\nm = re.match('a', 'b')\nlines = json.dumps([1])\ndef later():\n    lines.push(1)\nm.group(0)\nlater()",
			want:  "\ntypes: line 5: str has no attribute \"push\"",
			same:  "lines = []\nlines.psuh(1)",
			// A fault that types say nothing of, and no fault.
			wordless: "1 / 0",
			fine:     "x = [1]\nif False:\n    x.psuh(2)\nx",
		},
		"typescript": {
			wrong:    "const m = 'x'.match(/a/);\nconst lines = ['a'];\nfunction later() { lines.psuh('b'); }\nm.length;\nlater();",
			want:     "\ntypes: line 3: Property 'psuh' does not exist on type 'string[]'",
			same:     "const lines = ['a'];\n(lines as string[]).psuh('b');",
			wordless: "throw new Error('so')",
			fine:     "const x = [1];\nif (x.length > 3) x.at(2, 3);\nx",
		},
	} {
		t.Run(language, func(t *testing.T) {
			testutil.Eventually(t, "the checker is warm", 90*time.Second, func() bool {
				return strings.Contains(execute(t, g, language, test.wrong).Text(), test.want)
			})
			if text := execute(t, g, language, test.same).Text(); strings.Contains(text, "types:") {
				t.Errorf("what the fault says is said twice:\n%s", text)
			}
			if text := execute(t, g, language, test.wordless).Text(); strings.Contains(text, "types:") {
				t.Errorf("of a program without a wrong type:\n%s", text)
			}
			if e := execute(t, g, language, test.fine); len(e.Warnings) > 0 || e.Failed() || strings.Contains(e.Text(), "types:") {
				t.Errorf("of a program that did well:\n%s", e.Text())
			}
		})
	}
}

// TestNoChecker: where checking is off or there is no checker, programs fail as they always did.
func TestNoChecker(t *testing.T) {
	cfg := withCheckers(t, withRunsc(t, settings(nil)))
	cfg.Sandbox.Typecheck = false
	nowhere := withRunsc(t, settings(nil))
	nowhere.Sandbox.Pyright = "/nonexistent/pyright"
	for _, cfg := range []*config.Config{cfg, nowhere} {
		g := open(t, cfg, nil)
		for range 2 {
			if text := execute(t, g, "python", "x = 'a'\nx.uper()").Text(); !strings.Contains(text, "AttributeError") || strings.Contains(text, "types:") {
				t.Errorf("it says %s", text)
			}
		}
	}
}

// TestSyntaxOfBoth: a program that does not compile is told its line, the source, and what is wrong, without a checker.
func TestSyntaxOfBoth(t *testing.T) {
	g := open(t, withRunsc(t, settings(nil)), nil)
	for language, code := range map[string]string{"python": "x = 1\nif x = 2:\n    pass", "typescript": "const x = 1;\nif (x = = 2) {}\n"} {
		e := execute(t, g, language, code)
		if e.Fault == nil || e.Fault.Type != "SyntaxError" || len(e.Fault.Lines) != 1 || e.Fault.Lines[0].Line != 2 || e.Fault.Lines[0].Source != strings.Split(code, "\n")[1] {
			t.Errorf("%s: %+v", language, e.Fault)
		}
	}
}

// TestPrincipalsHaveTheirOwnChecker: two never share a sandbox.
func TestPrincipalsHaveTheirOwnChecker(t *testing.T) {
	g := open(t, withCheckers(t, withRunsc(t, settings(nil))), nil)
	for i, name := range []string{"ann", "ben", "ann"} {
		if _, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), name), execution.Program{Code: "1"}); err != nil {
			t.Fatal(err)
		}
		running := func() int {
			sandboxes, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "sallyport", "host-*", "check-*"))
			return len(sandboxes)
		}
		testutil.Eventually(t, "each has one", 30*time.Second, func() bool { return running() == min(i+1, 2) })
	}
}

// BenchmarkTypes runs programs that do well and programs that fail, with a warm checker and without one.
func BenchmarkTypes(b *testing.B) {
	for _, checked := range []bool{false, true} {
		cfg := withCheckers(b, withRunsc(b, settings(nil)))
		cfg.Sandbox.Typecheck = checked
		g := open(b, cfg, nil)
		for name, code := range map[string]string{"well": "x = [1]\nx", "fails": "x = [1]\ndef f(): x.psuh(1)\n1 / 0"} {
			b.Run(fmt.Sprintf("%s,checked=%t", name, checked), func(b *testing.B) {
				run := func() execution.Result {
					e, err := g.Executor.Execute(b.Context(), execution.Program{Code: code})
					if err != nil {
						b.Fatal(err)
					}
					return e
				}
				if checked && name == "fails" {
					testutil.Eventually(b, "the checker is warm", time.Minute, func() bool { return len(run().Warnings) > 0 })
				}
				warned := 0
				testutil.Measure(b, func() error { warned += len(run().Warnings); return nil })
				b.ReportMetric(float64(warned)/float64(b.N), "warnings/op")
			})
		}
	}
}
