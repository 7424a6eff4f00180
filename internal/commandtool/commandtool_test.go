package commandtool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/commandtool"
	"sallyport/internal/tool"
)

// compile returns a command with the parameters of most tests.
func compile(t testing.TB, run ...string) *commandtool.Command {
	t.Helper()
	const all = `{"file": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "default": 10, "flag": "--limit"},
		"sort": {"type": "string", "enum": ["name", "size", "-size"], "flag": "--sort=", "required": false}, "quiet": {"type": "boolean", "flag": "-q"},
		"names": {"type": "array", "items": {"type": "string"}, "required": false}, "ids": {"type": "array", "items": {"type": "number"}, "flag": "-i", "required": false},
		"free": {"type": "string", "allow_dash": true, "required": false}, "text": {"type": "string", "required": false}}`
	var parameters map[string]json.RawMessage
	if err := json.Unmarshal([]byte(all), &parameters); err != nil {
		t.Fatal(err)
	}
	line := strings.Join(run, " ")
	for name := range parameters {
		if !strings.Contains(line, "{"+name+"}") {
			delete(parameters, name)
		}
	}
	data, _ := json.Marshal(parameters)
	c, err := commandtool.Compile(commandtool.Tool{Run: run, Parameters: data})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExpand(t *testing.T) {
	for name, test := range map[string]struct {
		run  []string
		args string
		want []string
		err  string
	}{
		"one argument":             {[]string{"x", "-a", "{file}"}, `{"file": "a b; $(c) 'd' *"}`, []string{"-a", "a b; $(c) 'd' *"}, ""},
		"a part":                   {[]string{"x", "--in={file}.txt"}, `{"file": "-y"}`, []string{"--in=-y.txt"}, ""},
		"an empty text":            {[]string{"x", "{file}"}, `{"file": ""}`, []string{""}, ""},
		"braces":                   {[]string{"x", "{{file}} {a: .b} {file} {}"}, `{"file": "1"}`, []string{"{file} {a: .b} 1 {}"}, ""},
		"a placeholder in a value": {[]string{"x", "{file}", "{text}"}, `{"file": "{text}", "text": "{{file}}"}`, []string{"{text}", "{{file}}"}, ""},
		"a default with its flag":  {[]string{"x", "{limit}"}, `{}`, []string{"--limit", "10"}, ""},
		"no arguments at all":      {[]string{"x", "{limit}"}, ``, []string{"--limit", "10"}, ""},
		"a flag with =":            {[]string{"x", "{sort}"}, `{"sort": "-size"}`, []string{"--sort=-size"}, ""},
		"an optional one":          {[]string{"x", "a", "{sort}", "{text}", "b{text}c", "d"}, `{}`, []string{"a", "d"}, ""},
		"a switch":                 {[]string{"x", "{quiet}"}, `{"quiet": true}`, []string{"-q"}, ""},
		"a switch that is off":     {[]string{"x", "{quiet}"}, `{"quiet": false}`, nil, ""},
		"a list":                   {[]string{"x", "{names}", "y"}, `{"names": ["a b", "", "c"]}`, []string{"a b", "", "c", "y"}, ""},
		"a list with a flag":       {[]string{"x", "{ids}"}, `{"ids": [1, 2.5]}`, []string{"-i", "1", "-i", "2.5"}, ""},
		"an empty list":            {[]string{"x", "{names}"}, `{"names": []}`, nil, ""},
		"a whole number":           {[]string{"x", "{limit}"}, `{"limit": 10.0}`, []string{"--limit", "10"}, ""},
		"an option":                {[]string{"x", "{file}"}, `{"file": "--output=/x"}`, nil, `file must not begin with "-"`},
		"an option of a list":      {[]string{"x", "{names}"}, `{"names": ["a", "-rf"]}`, nil, `names must not begin with "-"`},
		"an option in parts":       {[]string{"x", "{text}{file}"}, `{"text": "", "file": "-o"}`, nil, `must not begin with "-"`},
		"without its permission":   {[]string{"x", "{free}{file}"}, `{"free": "", "file": "-o"}`, nil, `file must not begin with "-"`},
		"a hidden dash":            {[]string{"x", "{text}-o"}, `{"text": ""}`, nil, `text must not begin with "-"`},
		"after a flag":             {[]string{"x", "{ids}"}, `{"ids": [-1]}`, nil, `ids must not begin with "-"`},
		"after --":                 {[]string{"x", "--", "{file}", "{text}"}, `{"file": "--output=/x", "text": "-"}`, []string{"--", "--output=/x", "-"}, ""},
		"before --":                {[]string{"x", "{file}", "--"}, `{"file": "-x"}`, nil, `file must not begin with "-"`},
		"a value that is --":       {[]string{"x", "{free}", "{file}"}, `{"free": "--", "file": "-x"}`, nil, `file must not begin with "-"`},
		"allowed":                  {[]string{"x", "{free}"}, `{"free": "-v"}`, []string{"-v"}, ""},
		"NUL":                      {[]string{"x", "{file}"}, `{"file": "a\u0000b"}`, nil, "file has a NUL byte"},
		"a long one":               {[]string{"x", "{file}"}, `{"file": "` + strings.Repeat("a", 200_000) + `"}`, nil, "would have more than 98304 bytes"},
		"many":                     {[]string{"x", "{names}"}, `{"names": ["a"` + strings.Repeat(`,"b"`, 5000) + `]}`, nil, "more than 4096 arguments"},
		"a schema":                 {[]string{"x", "{limit}"}, `{"limit": 0}`, nil, "wrong arguments: limit"},
		"another word":             {[]string{"x", "{sort}"}, `{"sort": "date"}`, nil, "wrong arguments: sort"},
		"another type":             {[]string{"x", "{file}"}, `{"file": ["a"]}`, nil, "wrong arguments: file"},
		"another name":             {[]string{"x", "{file}"}, `{"file": "a", "files": "b"}`, nil, `unknown parameter "files"`},
		"a missing one":            {[]string{"x", "{file}"}, `{}`, nil, "file"},
		"what cannot be checked":   {[]string{"x", "{sort}", "{ids}"}, `{"sort": "evil", "ids": [1e-401]}`, nil, "too large or too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := compile(t, test.run...).Expand(json.RawMessage(test.args))
			if test.err != "" {
				if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.Invalid || !strings.Contains(e.Message, test.err) {
					t.Errorf("%q, %v, want %s", got.Args, err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got.Args); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestStdin(t *testing.T) {
	c, err := commandtool.Compile(commandtool.Tool{Run: []string{"cat"}, Stdin: "<{text}>\n", Parameters: json.RawMessage(`{"text": {"type": "string"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Expand(json.RawMessage(`{"text": "-x\n"}`)); err != nil || got.Stdin != "<-x\n>\n" || len(got.Args) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		tool     commandtool.Tool
		at, want string
	}{
		"no program":           {commandtool.Tool{}, "run", `"run" needs a program`},
		"a program by a call":  {commandtool.Tool{Run: []string{"{a}"}}, "run [0]", "a call must not choose it"},
		"code of a shell":      {commandtool.Tool{Run: []string{"/bin/sh", "-c", "echo {a}"}}, "run [2]", "a placeholder would be code of sh"},
		"code of Python":       {commandtool.Tool{Run: []string{"python3", "-B", "-c", "{a}"}}, "run [3]", "a placeholder would be code of python3"},
		"an unknown name":      {commandtool.Tool{Run: []string{"x", "{b}"}}, "run [1]", "{b} is no parameter; declare it, or write {{b}} for the text itself"},
		"an unused one":        {commandtool.Tool{Run: []string{"x"}}, "parameters a", "the parameter a is used nowhere"},
		"a package":            {commandtool.Tool{Run: []string{"npx", "-y", "{a}"}}, "run [2]", "a placeholder would choose the package"},
		"a second package":     {commandtool.Tool{Run: []string{"uvx", "--with", "b", "--with", "{a}", "p"}}, "run [4]", "a placeholder would choose the package"},
		"a package of uv":      {commandtool.Tool{Run: []string{"uv", "tool", "run", "{a}"}}, "run [3]", "a placeholder would choose the package"},
		"a package of npm":     {commandtool.Tool{Run: []string{"npm", "exec", "--", "{a}"}}, "run [3]", "a placeholder would choose the package"},
		"a word of npm":        {commandtool.Tool{Run: []string{"npm", "{a}", "b"}}, "run [1]", "a placeholder would choose the package"},
		"an option of npx":     {commandtool.Tool{Run: []string{"npx", "--{a}", "b"}}, "run [1]", "a placeholder would choose the package"},
		"a part of a list":     {commandtool.Tool{Run: []string{"x", "--in={a}"}, Parameters: json.RawMessage(`{"a": {"type": "array", "items": {"type": "string"}}}`)}, "run [1]", "must be an item of its own"},
		"a part with a flag":   {commandtool.Tool{Run: []string{"x", "{a}b"}, Parameters: json.RawMessage(`{"a": {"type": "string", "flag": "-a"}}`)}, "run [1]", "must be an item of its own"},
		"no type":              {commandtool.Tool{Run: []string{"x", "{a}"}, Parameters: json.RawMessage(`{"a": {}}`)}, "parameters a", "the type of a parameter is string,"},
		"an object":            {commandtool.Tool{Run: []string{"x", "{a}"}, Parameters: json.RawMessage(`{"a": {"type": "object"}}`)}, "parameters a", "the type of a parameter is string,"},
		"a bad name":           {commandtool.Tool{Run: []string{"x"}, Parameters: json.RawMessage(`{"a b": {"type": "string"}}`)}, "parameters a b", "cannot name a parameter"},
		"a bad flag":           {commandtool.Tool{Run: []string{"x", "{a}"}, Parameters: json.RawMessage(`{"a": {"type": "string", "flag": "a b"}}`)}, "parameters a flag", "is an option of the program"},
		"a switch with =":      {commandtool.Tool{Run: []string{"x", "{a}"}, Parameters: json.RawMessage(`{"a": {"type": "boolean", "flag": "--a="}}`)}, "parameters a flag", "without a value"},
		"a bad default":        {commandtool.Tool{Run: []string{"x", "{a}"}, Parameters: json.RawMessage(`{"a": {"type": "integer", "default": "b"}}`)}, "parameters a default", "not of the type"},
		"a bad schema":         {commandtool.Tool{Run: []string{"x", "{a}"}, Parameters: json.RawMessage(`{"a": {"type": "string", "pattern": "("}}`)}, "parameters", "not valid JSON Schema"},
		"a bad word":           {commandtool.Tool{Run: []string{"x", "{a}"}, Parameters: json.RawMessage(`{"a": {"type": "string", "required": "no"}}`)}, "parameters a required", "must be true or false"},
		"a list as input":      {commandtool.Tool{Run: []string{"x"}, Stdin: "{a}", Parameters: json.RawMessage(`{"a": {"type": "array", "items": {"type": "string"}}}`)}, "stdin", "is a list or has a flag"},
		"the result of a text": {commandtool.Tool{Run: []string{"x", "{a}"}, Result: json.RawMessage(`{}`)}, "result", "write output: json"},
		"a bad result":         {commandtool.Tool{Run: []string{"x", "{a}"}, Output: "json", Result: json.RawMessage(`{"type": "strings"}`)}, "result", "not valid JSON Schema"},
		"a status":             {commandtool.Tool{Run: []string{"x", "{a}"}, OKExit: []int{256}}, "ok_exit [0]", "from 0 to 255"},
	} {
		if test.tool.Parameters == nil {
			test.tool.Parameters = json.RawMessage(`{"a": {"type": "string"}}`)
		}
		_, err := commandtool.Compile(test.tool)
		if f, ok := errors.AsType[*commandtool.Fault](err); !ok || strings.Join(f.At, " ") != test.at || !strings.Contains(f.Message, test.want) {
			t.Errorf("%s: %v, want %s: %s", name, err, test.at, test.want)
		}
	}
}

// FuzzExpand checks what no call may do: change the number of arguments, or give the program an option.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "-", "--output=/x", "a b", "{text}", "{{file}}", "--", "\u2013x", "a\x00"} {
		f.Add(seed, "-x", "b")
	}
	c := compile(f, "x", "-a", "{file}", "{text}{file}", "-b={text}", "{names}", "--", "{file}")
	f.Fuzz(func(t *testing.T, file, text, name string) {
		args, _ := json.Marshal(map[string]any{"file": file, "text": text, "names": []string{name, name}})
		got, err := c.Expand(args)
		if err != nil {
			return
		}
		if len(got.Args) != 8 || got.Args[0] != "-a" || got.Args[6] != "--" || !strings.HasPrefix(got.Args[3], "-b=") {
			t.Fatalf("%q", got.Args)
		}
		for _, i := range []int{1, 2, 4, 5} {
			if strings.HasPrefix(got.Args[i], "-") {
				t.Fatalf("option %d of %q", i, got.Args)
			}
		}
		for _, one := range got.Args {
			if strings.ContainsRune(one, 0) {
				t.Fatalf("NUL in %q", got.Args)
			}
		}
	})
}
