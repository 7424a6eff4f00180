package misuse_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/gateway/misuse"
	"sallyport/internal/tool"
)

// called returns a tool that was called once without arguments, with a result.
func called(name, result string) misuse.Tool {
	return misuse.Tool{Tool: tool.Tool{ID: tool.ID{Upstream: "up", Name: name}}, Calls: []misuse.Call{{Args: json.RawMessage("{}"), Value: json.RawMessage(result)}}}
}

const (
	issues = `[{"number":1,"title":"a","labels":[{"name":"bug"}],"assignee":{"login":"ann"},"comments":2,"created_at":"2026-01-01"},{"number":2,"title":"b","labels":[],"assignee":null,"comments":0,"created_at":"2026-01-02"}]`
	orders = `{"orders":[{"id":1,"total":"9.50","status":"paid"},{"id":2,"total":"106.25","status":"paid"}],"coupon":null}`
	table  = `"sku,price\n007,9.99\n012,24.00\n"`
)

// TestFind has programs in both languages with what they are told, "" for nothing.
func TestFind(t *testing.T) {
	t.Parallel()
	tools := []misuse.Tool{called("list_issues", issues), called("list_orders", orders), called("export", table), called("count", `"7"`)}
	for _, test := range []struct{ code, want string }{
		// Members.
		{"py:issues = list_issues()\n[i['createdAt'] for i in issues]", `list_issues()[] has no "createdAt": created_at`},
		{"py:for i in list_issues():\n    print(i.get('comment_count', 0))", `list_issues()[] has no "comment_count": comments`},
		{"ts:const { issues = [] } = await list_issues({});", "is a list"},
		{"ts:const r = await list_issues({});\nr.filter((i) => i.assigned_to)", `has no "assigned_to": assignee`},
		{"ts:(await list_issues({})).map(({ number, titel_ }) => number)", ""},
		{"ts:const csv = await export({});\ncsv.map((r) => r.sku)", "is text"},
		{"py:up.list_issues().length", "len(...)"},
		{"py:r = list_orders()\nr.get('next_cursor')", ""},
		{"py:list_issues()[0].get('pull_request')", ""},
		{"py:r = list_issues()\nr = r if isinstance(r, list) else r['issues']", ""},
		{"ts:const r = await list_orders({});\nconst all = r.orders_list ?? r.orders;", ""},
		{"py:r = list_orders()\nr = {'order': 1}\nr['order']", ""},
		{"py:def f(r):\n    return r['createdAt']\nr = list_issues()", ""},
		// Objects taken for texts.
		{"py:[i for i in list_issues() if 'bug' in i['labels']]", "labels[] are objects {name}"},
		{"ts:(await list_issues({})).filter((i) => i.labels.includes(\"bug\"))", "labels[] are objects {name}"},
		{"ts:for (const i of await list_issues({})) console.log(i.labels.join());", "labels[] are objects {name}"},
		{"ts:const [i] = await list_issues({});\n`${i.assignee}`", ""},
		{"ts:const i = (await list_issues({}))[0];\n`${i.assignee}`", "assignee is an object: login"},
		{"py:i = list_issues()[0]\nf\"{i['assignee']}\"", ""},
		// Texts taken for numbers.
		{"ts:const { orders } = await list_orders({});\norders.reduce((s, o) => s + o.total, 0);", "total is text"},
		{"ts:let sum = 0;\nfor (const o of (await list_orders({})).orders) sum += o.total;", "total is text"},
		{"ts:let names = \"\";\nfor (const o of (await list_orders({})).orders) names += o.total;", ""},
		{"ts:(await list_orders({})).orders.filter((o) => o.total > 100);", ""},
		{"ts:(await list_orders({})).orders.sort((a, b) => b.total - a.total);", ""},
		{"ts:(await list_orders({})).orders.sort((a, b) => a.total < b.total ? -1 : 1);", "total is text"},
		{"py:[o for o in list_orders()['orders'] if o['total'] > '100']", "total is text"},
		{"py:min(list_orders()['orders'], key=lambda o: o['total'])", "total is text"},
		{"py:min(list_orders()['orders'], key=lambda o: float(o['total']))", ""},
		{"py:max(o['total'] for o in list_orders()['orders'])", "total is text"},
		{"ts:+(await count({})) + 1;", ""},
		{"ts:await count({}) + 1;", "count() is text"},
		{"py:'yes' if count() else 'no'", "count() is text"},
		{"py:count() == 7", "count() is text"},
		{"py:count() == '7'", ""},
		// Others.
		{"py:list_orders().get('coupon', 'none')", "coupon can be None"},
		{"py:list_orders().get('coupon') or 'none'", ""},
		{"py:len(export()) - 1", "is text of 3 lines"},
		{"py:len(export().splitlines())", ""},
		{"ts:list_issues({}, (err, r) => console.log(r));", "calls no callback"},
	} {
		language, code, _ := strings.Cut(test.code, ":")
		var told []string
		for _, f := range misuse.Find(misuse.Run{Code: code, Python: language == "py", Tools: tools, Output: "5"}) {
			told = append(told, f.Text)
		}
		got := strings.Join(told, "\n")
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s\ngot  %q\nwant %q", test.code, got, test.want)
		}
	}
}

// TestDeclared checks that a member that a schema declares is no mistake, and one that it lacks is.
func TestDeclared(t *testing.T) {
	t.Parallel()
	search := called("search", `{"items":[],"total_count":0}`)
	search.Output = json.RawMessage(`{"type":"object","properties":{"items":{"type":"array"},"total_count":{"type":"integer"},"took":{"type":"number"}}}`)
	for code, want := range map[string]string{"search()['took']": "", "search()['results']": `search() has no "results", only items, total_count`, "search().get('error')": ""} {
		found := misuse.Find(misuse.Run{Code: code, Python: true, Tools: []misuse.Tool{search}, Output: "5"})
		if got := texts(found); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

func texts(found []misuse.Finding) string {
	var list []string
	for _, f := range found {
		list = append(list, f.Text)
	}
	return strings.Join(list, "\n")
}

func TestPages(t *testing.T) {
	t.Parallel()
	cursor := called("search", `{"items":[1,2],"total_count":5,"next_cursor":"at-2"}`)
	cursor.Input = json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"cursor":{"type":"string"}}}`)
	limited := cursor
	limited.Calls = []misuse.Call{{Args: json.RawMessage(`{"limit":2}`), Value: cursor.Calls[0].Value}}
	last := cursor
	last.Calls = []misuse.Call{{Args: json.RawMessage(`{}`), Value: json.RawMessage(`{"items":[1,2],"total_count":2,"next_cursor":null}`)}}
	full := called("list", "["+strings.Repeat("1,", 29)+"1]")
	full.Input = json.RawMessage(`{"type":"object","properties":{"state":{"default":"open"},"page":{"type":"integer"},"per_page":{"type":"integer","default":30,"maximum":100}}}`)
	for _, test := range []struct {
		tool               misuse.Tool
		code, output, want string
	}{
		{cursor, "len(search(query='a')['items'])", "2", "search has more pages, read were 2 of 5 items: cursor=next_cursor, or iterate(search, ...)"},
		{cursor, "search(query='a')['items']", "[1,2]", "search has more pages, read were 2 of 5 items: cursor=next_cursor, or iterate(search, ...)"},
		{cursor, "search(query='a')['items'][:1]", "[1]", ""},
		{cursor, "search(query='a')['total_count']", "5", ""},
		{cursor, "list(iterate(search, query='a'))", "5", ""},
		{limited, "search(query='a', limit=2)['items']", "[1,2]", ""},
		{limited, "len(search(query='a', limit=2)['items'])", "2", "search has more pages, read were 2 of 5 items: cursor=next_cursor, or iterate(search, ...)"},
		{last, "len(search(query='a')['items'])", "2", ""},
		{full, "len(list())", "30", "list gave a full page of 30, more may follow: per_page up to 100, page=..., or iterate(list, ...)"},
		{full, "'many' if len(list()) > 20 else 'few'", "many", ""},
	} {
		if got := misuse.Pages(misuse.Run{Code: test.code, Python: true, Tools: []misuse.Tool{test.tool}, Output: test.output}); got != test.want {
			t.Errorf("%s: %q, want %q", test.code, got, test.want)
		}
	}
}

func TestCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"f(9007199254740993)": "9007199254740993 loses digits: write 9007199254740993n", "f(9007199254740993n)": "", "f('9007199254740993', 9007199254740991)": ""} {
		if got := misuse.Inexact(code); got != want {
			t.Errorf("%s: %q", code, got)
		}
	}
	for code, want := range map[string]string{"def f():\n    pass": "f", "def f():\n    pass\nf()": "", "x = 1": ""} {
		if got := misuse.Uncalled(code, true); got != want {
			t.Errorf("%s: %q", code, got)
		}
	}
	for code, want := range map[string]string{"export async function main() {}": "main", "const main = async () => {};": "main", "const main = async () => {};\nawait main()": ""} {
		if got := misuse.Uncalled(code, false); got != want {
			t.Errorf("%s: %q", code, got)
		}
	}
}

// FuzzFind runs on any program and result without a panic.
func FuzzFind(f *testing.F) {
	f.Add("x = f()\n[i['a'] for i in x if f\"{i}\" > '1']", `[{"a":"1"}]`)
	f.Add("const { a: { b = 1 }, c } = await f({}, (e) => `${e}`); c.map(async ([x]) => /[/]/.test(x))", `{"a":{},"c":[[]]}`)
	f.Fuzz(func(_ *testing.T, code, result string) {
		for _, python := range []bool{false, true} {
			r := misuse.Run{Code: code, Python: python, Tools: []misuse.Tool{called("f", result)}, Failed: true}
			misuse.Find(r)
			misuse.Pages(r)
			misuse.Inexact(code)
			misuse.Uncalled(code, python)
		}
	})
}
