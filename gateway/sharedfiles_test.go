package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/skills"
	"sallyport/gateway/workspaces"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// member is a gateway that shares a store, with a data directory of its own.
type member struct {
	*gateway.Gateway

	records *store.Store
	dir     string
}

// join opens a gateway on a store that others use too.
func join(t testing.TB, c *natscluster.Cluster, dir string) *member {
	t.Helper()
	records := storetest.Connect(t, c.Server(""))
	if dir == "" {
		dir = t.TempDir()
	}
	testutil.Eventually(t, "the store answers", time.Minute, func() bool { return records.Available() == nil })
	return &member{open(t, withRunsc(t, settings(nil)), &gateway.Options{DataDir: dir, Records: records, Purpose: "serve", Logger: testutil.Logger(t)}), records, dir}
}

// program runs a program, and returns what it printed.
func (m *member) program(ctx context.Context, t testing.TB, code string) string {
	t.Helper()
	e, err := m.Executor.Execute(ctx, execution.Program{Code: code})
	if err != nil || e.Failed() || len(e.Notes) > 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	return e.Stdout.Text
}

func (m *member) content(ctx context.Context, t testing.TB, path string) (workspaces.WorkspaceFile, string) {
	t.Helper()
	f, content, err := m.Workspaces.FileContent(ctx, "default", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	data, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return f, string(data)
}

// TestSharedWorkspaces: programs, file tools and pages at two gateways have the same files; those of other principals stay apart; what a
// data directory had before is taken over; and without the store files are read, and not written.
func TestSharedWorkspaces(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	old := t.TempDir()
	before := filepath.Join(old, "workspaces", "bob", "notes", "sub")
	if err := errors.Join(os.MkdirAll(before, 0o700), os.WriteFile(filepath.Join(before, "old.txt"), []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	one, two := join(t, c, ""), join(t, c, old)
	ada, bob := tool.WithPrincipal(t.Context(), "ada"), tool.WithPrincipal(t.Context(), "bob")
	one.program(ada, t, "import os\nos.makedirs('/workspace/d')\nopen('/workspace/d/x', 'w').write('by a program')\nopen('/workspace/gone', 'w').write('x')")
	if out := two.program(ada, t, "import os\nprint(open('/workspace/d/x').read(), sorted(os.listdir('/workspace')))\nos.remove('/workspace/gone')\nopen('/workspace/d/x', 'a').write(', and another')"); out != "by a program ['d', 'gone']\n" {
		t.Errorf("%q", out)
	}
	if out := one.program(ada, t, "import os\nprint(open('/workspace/d/x').read(), sorted(os.listdir('/workspace')))"); out != "by a program, and another ['d']\n" {
		t.Errorf("%q", out)
	}

	file, err := one.Workspaces.ChangeFile(ada, "default", "page.txt", "", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	seen, text := two.content(ada, t, "page.txt")
	if text != "1" || seen.Tag != file.Tag {
		t.Errorf("%q, %+v, written as %+v", text, seen, file)
	}
	if _, err := two.Workspaces.ChangeFile(ada, "default", "page.txt", file.Tag, []byte("2")); err != nil {
		t.Error(err)
	}
	if _, err := one.Workspaces.ChangeFile(ada, "default", "page.txt", file.Tag, []byte("3")); !errors.Is(err, workspaces.ErrFileChanged) {
		t.Errorf("with the tag of an old version: %v", err)
	}
	if said, err := one.Workspaces.WriteFile(ada, workspaces.FileWrite{Path: "page.txt", Verb: workspaces.FileAppend, Content: "4"}); err != nil {
		t.Errorf("%q, %v", said, err)
	}
	if _, text := two.content(ada, t, "page.txt"); text != "2\n4" {
		t.Errorf("%q", text)
	}
	if _, err := two.Workspaces.ChangeFile(ada, "default", "page.txt", "", nil); err != nil {
		t.Error(err)
	}
	if _, _, err := one.Workspaces.FileContent(ada, "default", "page.txt"); tool.AsError(err).Kind != tool.NotFound {
		t.Errorf("removed at the other gateway: %v", err)
	}

	testutil.Eventually(t, "what a directory had before is in the store", 30*time.Second, func() bool {
		list, err := one.Workspaces.ListWorkspaces(bob)
		return err == nil && len(list) == 1 && list[0].Name == "notes"
	})
	if files, _, err := one.Workspaces.FilesOf(bob, "notes", ""); err != nil || len(files) != 1 || files[0].Path != "sub/old.txt" {
		t.Errorf("%+v, %v", files, err)
	}
	if _, _, err := one.Workspaces.FilesOf(ada, "notes", ""); tool.AsError(err).Kind != tool.NotFound {
		t.Errorf("the workspace of another principal: %v", err)
	}

	c.Signal(t, 0, syscall.SIGSTOP) // as while servers elect a leader
	var resumed sync.WaitGroup
	resumed.Go(func() {
		time.Sleep(4 * time.Second)
		c.Signal(t, 0, syscall.SIGCONT)
	})
	if _, err := one.Workspaces.ChangeFile(tool.WithPrincipal(t.Context(), "eve"), "default", "new.txt", "", []byte("x")); err != nil {
		t.Errorf("while the server is stopped for a moment: %v", err)
	}
	resumed.Wait()

	c.Kill(t, 0)
	testutil.Eventually(t, "the store does not answer", time.Minute, func() bool { return one.records.Available() != nil })
	if _, text := one.content(ada, t, "d/x"); text != "by a program, and another" {
		t.Errorf("without the store: %q", text)
	}
	if _, err := one.Workspaces.ChangeFile(ada, "default", "d/x", "", []byte("lost")); tool.AsError(err).Kind != tool.Busy || !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("a write without the store: %v", err)
	}
	if _, err := one.Executor.Execute(ada, execution.Program{Code: "1"}); tool.AsError(err).Kind != tool.Busy {
		t.Errorf("a program without the store: %v", err)
	}
	c.Start(t, 0)
	testutil.Eventually(t, "the store answers", time.Minute, func() bool {
		_, err := one.Workspaces.ChangeFile(ada, "default", "d/x", "", []byte("again"))
		return err == nil
	})
	testutil.Eventually(t, "the other gateway has the store", time.Minute, func() bool { return two.records.Available() == nil })
	if _, text := two.content(ada, t, "d/x"); text != "again" {
		t.Errorf("%q", text)
	}
}

// TestSharedSkills: a skill that was saved at one gateway is listed and imported at another.
func TestSharedSkills(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := join(t, c, ""), join(t, c, "")
	ada, bob := tool.WithPrincipal(t.Context(), "ada"), tool.WithPrincipal(t.Context(), "bob")
	if list, err := two.Skills.ListSkills(ada, ""); err != nil || !strings.Contains(list, "No skills") {
		t.Errorf("%q, %v", list, err)
	}
	for i := range 2 {
		draft := skills.SkillDraft{Name: "weekly-report", Description: "Write the weekly report.", Code: fmt.Sprintf("def report():\n    return 'version %d'\n", i+1)}
		said, err := []*member{one, two}[i].Skills.SaveSkill(ada, draft)
		if err != nil || !strings.Contains(said, fmt.Sprintf("version %d", i+1)) {
			t.Fatalf("%q, %v", said, err)
		}
	}
	for _, m := range []*member{two, one} {
		testutil.Eventually(t, "the skill can be imported", 10*time.Second, func() bool {
			return m.program(ada, t, "from skills.weekly_report import report\nprint(report())") == "version 2\n"
		})
	}
	if list, err := one.Skills.ListSkills(bob, ""); err != nil || !strings.Contains(list, "No skills") {
		t.Errorf("of another principal: %q, %v", list, err)
	}
}

// BenchmarkSharedWorkspace measures the start and the end of a workspace of 200 files that does not change, in a directory and in a store,
// and what an update of one small file costs in both.
func BenchmarkSharedWorkspace(b *testing.B) {
	c := natscluster.Start(b, 1)
	for name, records := range map[string]*store.Store{"directory": nil, "store": storetest.Connect(b, c.Server(""))} {
		s, err := workspaces.New(workspaces.Options{DataDir: b.TempDir(), Records: records, Settings: open(b, settings(nil), nil).Reloader.Current(), Logger: slog.New(slog.DiscardHandler), Watch: func(_ context.Context, ws workspaces.Space, _ string) workspaces.Space { return ws }})
		if err != nil {
			b.Fatal(err)
		}
		for i := range 200 {
			if _, err := s.WriteFile(b.Context(), workspaces.FileWrite{Path: fmt.Sprintf("d%d/f%d", i%10, i), Verb: workspaces.FileReplace, Content: strings.Repeat("x", 1000+i)}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("open/"+name, func(b *testing.B) {
			for b.Loop() {
				ws, err := s.OpenFor(b.Context(), execution.Program{Workspace: "default"}, sandbox.Limits{Workspace: 256 << 20, Inodes: 50_000})
				if err != nil {
					b.Fatal(err)
				}
				for range ws.Files() {
				}
				_ = ws.Close()
			}
		})
		b.Run("write/"+name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				if _, err := s.WriteFile(b.Context(), workspaces.FileWrite{Path: "f", Verb: workspaces.FileReplace, Content: fmt.Sprint(i)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
