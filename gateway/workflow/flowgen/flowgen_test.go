package flowgen_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/history"
	"sallyport/gateway/workflow/flowgen"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
)

// doneExecution is an execution with calls that are written as "tool arguments -> result".
func doneExecution(t testing.TB, lines ...string) history.Succeeded {
	t.Helper()
	done := history.Succeeded{Record: history.Record{ID: "e-2f6qdmnhx3k4", Language: "python", Code: "print('hello')\n", Started: time.Unix(1_760_000_000, 0)}}
	for _, line := range lines {
		request, result, _ := strings.Cut(line, " -> ")
		name, arguments, _ := strings.Cut(request, " ")
		id, err := tool.ParseID(name)
		if err != nil {
			t.Fatal(err)
		}
		c := history.SucceededCall{Tool: id, Arguments: json.RawMessage(arguments)}
		if message, failed := strings.CutPrefix(result, "!"); failed {
			c.Err = &tool.Error{Kind: tool.Failed, Message: message}
		} else {
			c.Result = tool.Result{Structured: json.RawMessage(result)}
		}
		done.Did = append(done.Did, c)
	}
	return done
}

func from(t testing.TB, done history.Succeeded) (string, *spec.Definition) {
	t.Helper()
	yes := true
	text, err := flowgen.From(done, []tool.Tool{{ID: tool.ID{Upstream: "fs", Name: "read"}, Annotations: tool.Annotations{ReadOnly: &yes}}, {ID: tool.ID{Upstream: "fs", Name: "write"}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := spec.Parse("draft.yaml", text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text), d
}

// TestDrafts: what each kind of program becomes.
func TestDrafts(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]history.Succeeded{
		"chain": doneExecution(t, `fs.read {"path":"notes/todo.md"} -> {"path":"notes/todo.md","content":"- call Ada about the garden","size":27}`,
			`crm.find {"about":"- call Ada about the garden"} -> {"person":{"id":48213,"mail-address":"ada@example.org"}}`,
			`crm.log {"person":48213,"note":"See notes/todo.md","to":"Ada <ada@example.org>, urgent","tags":["a","b"],"deep":{"person":{"id":48213,"mail-address":"ada@example.org"}}} -> {"ok":true}`,
			`fs.read {"path":"gone.md"} -> !no such file`,
			`fs.write {"path":"notes/todo.md","content":"done ${{ x }}\n"} -> null`),
		"list": doneExecution(t, `fs.list {"folder":"docs"} -> {"files":[{"name":"a.md","size":10},{"name":"b.md","size":12},{"name":"c.md","size":0}]}`,
			`fs.read {"path":"a.md","lines":5} -> {"text":"alpha text"}`, `fs.read {"path":"c.md","lines":5} -> {"text":"gamma text"}`, `fs.read {"path":"b.md","lines":5} -> {"text":"beta text"}`,
			`fs.write {"path":"all.txt","content":"beta text"} -> true`),
		"chosen": doneExecution(t, `fs.read {"path":"a.md"} -> "A"`, `fs.read {"path":"b.md"} -> "B"`, `fs.read {"path":"c.md"} -> "C"`, `fs.write {"path":"all.txt","content":"ABC"} -> true`),
		"pages":  doneExecution(t, `api.page {"cursor":"start"} -> {"next":"cursor-0002"}`, `api.page {"cursor":"cursor-0002"} -> {"next":"cursor-0003"}`, `api.page {"cursor":"cursor-0003"} -> {}`),
		"names": doneExecution(t, `x.put {"true":true,"a b":"yes","c":{"in":null,"for":[1,2.5,-3e9]},"d":"multi\nline","e":"\u0085\ufeff #: - x","f":"[EMAIL_1]"} -> {"for":"four","a b":[{"in":"inside"}]}`,
			`x.put {"x":"four","y":"inside","z":""} -> null`),
	} {
		if name == "chosen" {
			done.Variables = map[string]json.RawMessage{"target": json.RawMessage(`"all.txt"`), "unused": json.RawMessage(`1`)}
		}
		text, _ := from(t, done)
		golden.Check(t, filepath.Join("testdata", name+".golden"), text)
	}
}

// TestProgram: of a program with too many calls, and of one that asks for more than tools, the draft is the program.
func TestProgram(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 404 {
		lines = append(lines, fmt.Sprintf(`fs.%s {"path":"%d","content":"%d"} -> null`, []string{"read", "write"}[i%2], i, i*i))
	}
	many := doneExecution(t, lines...)
	many.Code, many.Language, many.Environment = "\n  x = 1\n\tif x: # ${{ kept }}\n\n    print(x)\n", "typescript", "science"
	many.Variables = map[string]json.RawMessage{"names": json.RawMessage(`["a","${{"]`), "none": json.RawMessage(`null`), "large": json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)}
	asks := doneExecution(t, `fs.resources/read {"uri":"x"} -> {}`)
	for _, code := range []string{"print(1)", "s = '\x01\u2028'", "\ufeffx"} {
		asks.Code = code
		if _, d := from(t, asks); d.Steps[0].Do.(*spec.Code).Text.Text != code {
			t.Errorf("%q became %q", code, d.Steps[0].Do.(*spec.Code).Text.Text)
		}
	}
	text, d := from(t, many)
	code, ok := d.Steps[0].Do.(*spec.Code)
	if !ok || code.Text.Text != strings.TrimSuffix(many.Code, "\n") || code.Language != "typescript" || code.Environment.Text != "science" || len(d.Inputs) != 3 || d.Inputs[0].Default != nil || d.Inputs[1].Default == nil || !strings.Contains(text, "since it made 404 calls") {
		t.Errorf("%+v\n%s", code, text)
	}
	many.Code = strings.Repeat("x", 65<<10)
	_, err := flowgen.From(many, nil)
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.Invalid {
		t.Error(err)
	}
}

// FuzzFrom: whatever arguments and results are, a draft can be loaded, and is the same each time.
func FuzzFrom(f *testing.F) {
	f.Add(`{"path":"notes/a.md","n":12345}`, `{"items":[{"id":"x-12345"},{"id":"y-12345"}],"for":"notes/a.md, again"}`, "x-12345", "print(1)")
	f.Add(`{"a":{"b":[null,true,1e9]},"${{":"$${{ x }}"}`, `["\u0000\u007f\ufeff","- {a: b} # c"]`, "${{", "  x\n\ty")
	f.Fuzz(func(t *testing.T, arguments, result, text, code string) {
		var object map[string]any
		if json.Unmarshal([]byte(arguments), &object) != nil || object == nil || !json.Valid([]byte(result)) || strings.TrimSpace(code) == "" {
			t.Skip()
		}
		given, err := json.Marshal(map[string]string{"text": text, "in": "see " + text})
		if err != nil {
			t.Skip()
		}
		done := doneExecution(t)
		done.Code = code
		if variable, err := json.Marshal(text); err == nil {
			done.Variables = map[string]json.RawMessage{"given": variable, "in": json.RawMessage(arguments)}
		}
		for _, args := range []string{arguments, string(given), arguments, `{"text":"a"}`, `{"text":"b"}`, `{"text":"c"}`} {
			done.Did = append(done.Did, history.SucceededCall{Tool: tool.ID{Upstream: "up", Name: "do"}, Arguments: json.RawMessage(args), Result: tool.Result{Structured: json.RawMessage(result)}})
		}
		first, err := flowgen.From(done, nil)
		if err != nil {
			if tool.AsError(err).Kind == tool.Internal {
				t.Error(err)
			}
			return
		}
		if _, err := spec.Parse("draft.yaml", first, nil); err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if again, _ := flowgen.From(done, nil); string(again) != string(first) {
			t.Errorf("once\n%s\nthen\n%s", first, again)
		}
	})
}
