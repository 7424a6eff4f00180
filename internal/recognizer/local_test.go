package recognizer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/pii"
	"sallyport/internal/recognizer"
)

// TestLocal: names and addresses in sentences, none in places alone, in a text of many pieces as in a short one.
func TestLocal(t *testing.T) {
	t.Parallel()
	l, err := recognizer.NewLocal()
	if err != nil {
		t.Fatal(err)
	}
	const letter = "😀 Please send it to Patricia Hernandez, 12 Main Street, Springfield, or meet her in Canada."
	filler := strings.Repeat("The server was restarted and the queue is empty again. ", 2000)
	for _, text := range []string{letter, filler + letter, filler + letter + filler} {
		found, err := l.Find(t.Context(), "ann", []string{"nothing here", text})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found[1] {
			got = append(got, string(f.Kind)+" "+text[f.Start:f.End])
		}
		if want := []string{"name Patricia Hernandez", "address 12 Main Street, Springfield"}; !slices.Equal(got, want) || len(found[0]) > 0 {
			t.Errorf("%d bytes: %q, %v", len(text), got, found[0])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Find(ctx, "ann", []string{letter}); !errors.As(err, new(*recognizer.Fault)) {
		t.Errorf("cancelled: %v", err)
	}
}

func BenchmarkLocal(b *testing.B) {
	l, err := recognizer.NewLocal()
	if err != nil {
		b.Fatal(err)
	}
	texts := []string{strings.Repeat("Patricia Hernandez wrote that the queue in Springfield was empty, and left. ", 200)}
	b.SetBytes(int64(len(texts[0])))
	var found [][]pii.Finding
	for b.Loop() {
		found, _ = l.Find(b.Context(), "ann", texts)
	}
	if len(found[0]) == 0 {
		b.Error("nothing was found")
	}
}
