package execution_test

import (
	"testing"

	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

func TestCleanCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ code, language, want, as string }{
		{"x = 1\nx", "", "x = 1\nx", ""},
		{"```python\nx = 1\n```", "", "\nx = 1", "python"},
		{"\n```ts title=a\nlet x = 1;\n```\n", "", "\n\nlet x = 1;", "ts"},
		{"```\nlet x = 1;\n```", "", "\nlet x = 1;", "typescript"},
		{"```json\nx\n```", "", "\nx", ""},
		{"```ts\nlet x = 1;\n```", "python", "\nlet x = 1;", "python"},
		{"    x = 1\n\n    if x:\n        x", "python", "x = 1\n\nif x:\n    x", "python"},
		{"\n\tx = 1\n\tx\n", "", "\nx = 1\nx\n", ""},
		{"  x = 1\ny", "", "  x = 1\ny", ""},
		{"  const x = `\n  a`;", "", "  const x = `\n  a`;", "typescript"},
		{"import { a } from \"servers/b\";\nawait a({})", "", "import { a } from \"servers/b\";\nawait a({})", "typescript"},
		{"import fs from 'fs'\nfs.x()", "", "import fs from 'fs'\nfs.x()", "typescript"},
		{"console.log(1)", "", "console.log(1)", "typescript"},
		{"x = [\n  f({})\n]", "", "x = [\n  f({})\n]", ""},
		{"js = \"\"\"\nconst x = 1;\n\"\"\"", "", "js = \"\"\"\nconst x = 1;\n\"\"\"", ""},
		{"for x in y:\n    f({\n        'a': 1\n    })", "", "for x in y:\n    f({\n        'a': 1\n    })", ""},
		{"x = f(**{\n    'a': 1\n})", "", "x = f(**{\n    'a': 1\n})", ""},
		{"import os, sys\nos.x()", "", "import os, sys\nos.x()", ""},
		{"import os; \" \".join(os.listdir()) or \"nothing\"", "", "import os; \" \".join(os.listdir()) or \"nothing\"", ""},
		{"import x from 'servers/a'; x()", "", "import x from 'servers/a'; x()", ""},
		{"", "", "", ""},
		{" ", "python", " ", "python"},
		{"```", "", "```", ""},
	} {
		if got, as := execution.CleanCode(test.code, test.language); got != test.want || as != test.as {
			t.Errorf("%q in %q: got %q in %q, want %q in %q", test.code, test.language, got, as, test.want, test.as)
		}
	}
	if execution.Guess("x") != "" || execution.Guess("from a import b") != sandbox.Python {
		t.Error("a language is not as it looks")
	}
}

func FuzzCleanCode(f *testing.F) {
	f.Add("```ts\nx\n```", "")
	f.Add("  x\n  y", "python")
	f.Fuzz(func(t *testing.T, code, language string) {
		if cleaned, _ := execution.CleanCode(code, language); len(cleaned) > len(code) {
			t.Errorf("%q is longer than %q", cleaned, code)
		}
	})
}
