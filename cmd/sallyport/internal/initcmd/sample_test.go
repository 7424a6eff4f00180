package initcmd

import (
	"bytes"
	"strings"
	"testing"

	"sallyport/internal/testutil/golden"
)

// TestSample: a sample server answers a session, with an error where there is nothing to answer.
func TestSample(t *testing.T) {
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`,
		`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_orders","arguments":{"month":"march"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"get_customer","arguments":{"name":"borg"}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"get_customer","arguments":{"name":"Nobody"}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"get_customer","arguments":{"name":7}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"drop"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"ping"}`,
	}, "\n")
	golden.Check(t, "testdata/shop.txt", session(t, "shop", in))
	in = strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_note","arguments":{"title":"a","text":"b"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_notes"}}`,
	}, "\n")
	golden.Check(t, "testdata/notes.txt", session(t, "notes", in))
	var out bytes.Buffer
	if err := serveSample(sampleServer{"shop", nil}, strings.NewReader("nonsense\n"), &out); err == nil || out.Len() > 0 {
		t.Errorf("nonsense is answered: %v %s", err, &out)
	}
}

func session(t *testing.T, name, in string) string {
	t.Helper()
	var out bytes.Buffer
	if err := serveSample(sampleServer{name, sampleTools(name)}, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
