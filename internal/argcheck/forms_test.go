package argcheck_test

import (
	"testing"

	"sallyport/internal/argcheck"
)

func TestRename(t *testing.T) {
	const schema = `{"type":"object","properties":{"perPage":{"type":"number"},"ccRecipients":{"type":"array"},"bccRecipients":{"type":"array"},"user_name":{},"userName":{}}}`
	for _, test := range []struct{ schema, args, want string }{
		{schema, `{"per_page":2,"cc-recipients":["<a>"]}`, `{"ccRecipients":["<a>"],"perPage":2}`},
		{schema, `{"perPage":12345678901234567890}`, `{"perPage":12345678901234567890}`},
		{schema, `{"per_page":1,"perPage":2}`, `{"per_page":1,"perPage":2}`},
		{schema, `{"per_page":1,"PerPage":2}`, `{"per_page":1,"PerPage":2}`},
		{schema, `{"username":1}`, `{"username":1}`},
		{schema, `{"per_page":1,"pages":2}`, `{"per_page":1,"pages":2}`},
		{schema, `[1]`, `[1]`},
		{`{"type":"object","properties":{"perPage":{}},"additionalProperties":{"type":"string"}}`, `{"per_page":1}`, `{"per_page":1}`},
	} {
		if got := string(argcheck.Compile([]byte(test.schema)).Rename([]byte(test.args))); got != test.want {
			t.Errorf("%s: got %s, want %s", test.args, got, test.want)
		}
	}
}
