package lists_test

import (
	"encoding/json"
	"testing"
	"time"

	"sallyport/internal/lists"
)

type inner struct {
	Names []string       `json:"names"`
	By    map[string]int `json:"by"`
}

type outer struct {
	inner
	All      []inner          `json:"all"`
	ByName   map[string]inner `json:"by_name"`
	Fixed    [1]inner         `json:"fixed"`
	Pointer  *inner           `json:"pointer"`
	None     *inner           `json:"none"`
	Any      any              `json:"any"`
	Nothing  any              `json:"nothing"`
	Empty    []string         `json:"empty,omitempty"`
	Zero     []string         `json:"zero,omitzero"`
	Hidden   []string         `json:"-"`
	Bytes    []byte           `json:"bytes"`
	Raw      json.RawMessage  `json:"raw"`
	At       time.Time        `json:"at"`
	internal []string
}

func TestFilled(t *testing.T) {
	t.Parallel()
	v := outer{All: []inner{{}}, ByName: map[string]inner{"a": {}}, Pointer: &inner{}, Any: []inner(nil), internal: nil}
	got, err := json.Marshal(lists.FillNil(&v))
	if err != nil {
		t.Fatal(err)
	}
	const in = `{"names":[],"by":{}}`
	want := `{"names":[],"by":{},"all":[` + in + `],"by_name":{"a":` + in + `},"fixed":[` + in + `],"pointer":` + in +
		`,"none":null,"any":[],"nothing":null,"bytes":null,"raw":null,"at":"0001-01-01T00:00:00Z"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if v.All[0].Names != nil || v.Pointer.By != nil || v.Names != nil {
		t.Error("the value was changed")
	}
	if lists.FillNil(nil) != nil {
		t.Error("nil became something")
	}
}
