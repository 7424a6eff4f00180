package yamledit_test

import (
	"reflect"
	"testing"

	"sallyport/internal/yamledit"
)

func TestScalars(t *testing.T) {
	const text = "a: {ü: x, y: \"z\"} # b: no\nlist:\n  - one\n  - {two: 2}\n  -\n    - three\nlong: |\n  four\n"
	got, err := yamledit.Scalars([]byte(text))
	items := []string{"one", "", ""}
	want := []yamledit.Scalar{
		{Path: []string{"a", "ü"}, Value: "x", Offset: 8}, {Path: []string{"a", "y"}, Value: "z", Offset: 14},
		{Path: []string{"list"}, Value: "one", Offset: 37, List: items}, {Path: []string{"list", "two"}, Value: "2", Offset: 51},
		{Path: []string{"list"}, Value: "three", Offset: 64, List: []string{"three"}}, {Path: []string{"long"}, Value: "four\n", Offset: 76},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	if got, err := yamledit.Scalars(nil); err != nil || got != nil {
		t.Errorf("nothing has %v, %v", got, err)
	}
	if _, err := yamledit.Scalars([]byte("a: [")); err == nil {
		t.Error("no error")
	}
}
