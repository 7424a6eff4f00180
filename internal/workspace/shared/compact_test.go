package shared

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/workspace"
)

// TestCompact: contents that no file has are removed, and not those of a writer that has not committed yet.
func TestCompact(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := newMachine(t, c), newMachine(t, c)
	d := one.open()
	update(t, d, file("kept", "kept"), file("copy", "kept"))
	two.open()
	data := make([]byte, 3*chunkSize)
	for range 15 {
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		update(t, d, file("a", string(data)))
	}
	o := one.all.Origin(id).(*origin)
	pending := "of a writer"
	sum := sha256.Sum256([]byte(pending))
	ref, err := o.Save(t.Context(), hex.EncodeToString(sum[:]), int64(len(pending)), strings.NewReader(pending))
	if err != nil {
		t.Fatal(err)
	}
	head, err := o.Head(t.Context())
	if err != nil || head.Dropped > 32<<20+6*chunkSize {
		t.Errorf("%+v, %v", head, err)
	}
	if head, err = o.compact(t.Context(), head, filesOf(whole(t, o))); err != nil || head.Depth != 0 {
		t.Fatalf("%+v, %v", head, err)
	}
	if usage, err := one.all.contents.Usage(t.Context()); err != nil || usage.Records < 15*3+2 {
		t.Errorf("%d records are left, although a writer may name them, %v", usage.Records, err)
	}
	// The time passes: the list is older by the clock of the servers.
	before, err := o.unusedBefore(t.Context())
	if err != nil || len(before) != 15 {
		t.Fatalf("%v, %v", before, err)
	}
	for name := range before {
		before[name] -= time.Hour.Milliseconds()
	}
	if head, _, err = o.append(t.Context(), head.Tail, headOf(isWhole), content{After: head.ID, Entries: filesOf(whole(t, o)), Unused: before}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(t.Context(), head, workspace.Commit{Entries: []workspace.Entry{{Path: "new", Hash: hex.EncodeToString(sum[:]), Ref: ref, Size: int64(len(pending))}}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"a=" + string(data), "copy=kept", "kept=kept", "new=" + pending}
	wantFiles(t, one.open(), want...)
	if err := o.log.Trim(t.Context(), o.key, head.Revision-1); err != nil {
		t.Fatal(err)
	}
	if head, err = o.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err = o.compact(t.Context(), head, filesOf(whole(t, o))); err != nil {
		t.Fatal(err)
	}
	if usage, err := one.all.contents.Usage(t.Context()); err != nil || usage.Records != 3+1+1 {
		t.Errorf("%d records are left, %v", usage.Records, err)
	}
	wantFiles(t, two.open(), want...)
	wantFiles(t, newMachine(t, c).open(), want...)
}

func whole(t *testing.T, o *origin) workspace.Delta {
	t.Helper()
	delta, err := o.Since(t.Context(), workspace.Point{})
	if err != nil {
		t.Fatal(err)
	}
	return delta
}

func headOf(marks byte) head { return head{id: newID(), marks: marks} }

// TestTidy: a workspace that has not changed for a while is compacted by one gateway, and stays the same for all.
func TestTidy(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := newMachine(t, c), newMachine(t, c)
	d := one.open()
	for i := range 5 {
		update(t, d, file("a", fmt.Sprint(i)), file(fmt.Sprintf("f%d", i), "x"))
	}
	want := list(t, two.open())
	for _, m := range []*machine{one, two, one} {
		if err := m.all.Tidy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	o := one.all.Origin(id).(*origin)
	if head, err := o.Head(t.Context()); err != nil || head.Depth != 5 {
		t.Errorf("one that has just changed: %+v, %v", head, err)
	}
	for range 2 {
		if err := o.tidy(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
	}
	if head, err := o.Head(t.Context()); err != nil || head.Depth != 0 {
		t.Errorf("later: %+v, %v", head, err)
	}
	wantFiles(t, d, want...)
	wantFiles(t, two.open(), want...)
	update(t, two.open(), file("b", "after"))
	wantFiles(t, one.open(), append([]string{want[0], "b=after"}, want[1:]...)...)
	wantFiles(t, newMachine(t, c).open(), list(t, one.open())...)
}

// TestUnfinished: the records of a writer that was killed in the middle of a commit do not count, and stop no other writer.
func TestUnfinished(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := newMachine(t, c), newMachine(t, c)
	d := one.open()
	update(t, d, file("a", "1"))
	two.open()
	h := headOf(isFirst)
	if _, err := one.all.log.Append(t.Context(), id.key(), h.format([]byte(`{"version":1,"entries":[`))); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, two.open(), "a=1")
	update(t, d, file("b", "2"))
	wantFiles(t, two.open(), "a=1", "b=2")
	wantFiles(t, newMachine(t, c).open(), "a=1", "b=2")
}
