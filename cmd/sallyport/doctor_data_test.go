//go:build linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// runMounted runs a script of the shell in a mount namespace of its own.
func runMounted(t *testing.T, settings, script, stdin string) (out string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "upstreams.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-ec", script)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir, "HOME="+dir)
	got, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(got), "data directory: ") {
		t.Fatalf("%v\n%s", err, got)
	}
	return string(got)
}

// TestDoctorDisk: doctor tells of a full disk, of one that is nearly full, and of one that cannot be written.
func TestDoctorDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"full":      {"mount -t tmpfs -o size=1m none data; dd if=/dev/zero of=data/x bs=4k 2>/dev/null || true", "FAIL  data directory: DIR: the disk is full\n"},
		"no files":  {"mount -t tmpfs -o size=1g,nr_inodes=2 none data; touch data/x", "FAIL  data directory: DIR: the disk is full\n"},
		"little":    {"mount -t tmpfs -o size=9m none data", "warn  data directory: DIR, 9 MiB free\n      fix: free disk space: at least 256 MiB should be free\n"},
		"read-only": {"mount -t tmpfs -o size=1g,ro none data", "read-only file system\n      fix: check the permissions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runMounted(t, "upstreams: {}\nsandbox: {runsc: /nonesuch}\n", "mkdir data; "+c.script+"; echo DIR is $PWD/data; sallyport doctor --data data", "")
			_, dir, _ := strings.Cut(out, "DIR is ")
			dir, _, _ = strings.Cut(dir, "\n")
			if want := strings.ReplaceAll(c.want, "DIR", dir); !strings.Contains(out, want) {
				t.Errorf("no %q:\n%s", want, out)
			}
		})
	}
}

// TestServeReadOnly: over a data directory that cannot be written serve answers searches; programs are refused where they cannot be put on
// record, else they run and nothing is kept. It ends as soon as its client does.
func TestServeReadOnly(t *testing.T) {
	t.Parallel()
	const say = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"nothing"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"40 + 2"}}}
`
	settings := "upstreams: {}\nsandbox: {pool: {max: 0, min: 0}, runsc: " + testutil.Runsc(t) + "}\n"
	for name, c := range map[string]struct{ settings, want string }{
		"on record":  {settings, "this cannot be put on record, so it is not done"},
		"not at all": {settings + "audit: {enabled: false}\n", `"id":3,"result":{"content":[{"type":"text","text":"42"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runMounted(t, c.settings, "mkdir data; sallyport workflow run --data data nonesuch 2>/dev/null </dev/null || true; mkdir -p data/workspaces/+e3b0c44298fc1c149afbf4c8996fb924/default data/records; "+
				"mount --bind data data; mount -o remount,ro,bind data; { cat; sleep 8; } | sallyport serve --data data", say)
			if !strings.Contains(out, "No tool matches") || !strings.Contains(out, c.want) || !strings.Contains(out, "records are kept in memory only") {
				t.Errorf("no %q:\n%s", c.want, out)
			}
		})
	}
}

// TestExecWithLessRights checks that root without CAP_SYS_ADMIN runs programs, rootless, and that root without
// any capability is told where to look.
func TestExecWithLessRights(t *testing.T) {
	t.Parallel()
	settings := "upstreams: {}\nsandbox: {pool: {max: 0, min: 0}, runsc: " + testutil.Runsc(t) + "}\n"
	for name, c := range map[string]struct{ drop, want string }{
		"no CAP_SYS_ADMIN": {"-sys_admin", "42\n"},
		"no capability":    {"-all", "no user namespace can be made here: fork/exec " + testutil.Runsc(t) + ": operation not permitted; sallyport doctor says what is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runMounted(t, settings, "echo '40 + 2' | setpriv --bounding-set "+c.drop+" sallyport exec - || true", "")
			if !strings.Contains(out, c.want) {
				t.Errorf("no %q:\n%s", c.want, out)
			}
		})
	}
}
