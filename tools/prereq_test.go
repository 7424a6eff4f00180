// Package tools tests the scripts of this folder, which only make calls.
package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// fakes are the programs of a machine, by name, as the body of a shell script.
type fakes map[string]string

const (
	goodGo   = `echo go1.26.3`
	goodNode = `echo v20.20.2`
	allowed  = `exit 0`
	denied   = `echo "unshare failed: Operation not permitted" >&2; exit 1`
	// What an older go says inside our module, and outside it.
	oldGo = `case $1 in -C) echo "go.mod requires go >= 1.26.3" >&2; exit 1 ;; *) echo go1.25.1 ;; esac`
)

func TestPrereqNamesWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name, need string
		machine    fakes
		sysctl     map[string]string
		want       string // part of the one line; "" when nothing is missing
	}{
		{"go", "go", fakes{"go": goodGo}, nil, ""},
		{"no go", "go", nil, nil, "no go on the PATH: install Go 1.26"},
		{"old go", "go", fakes{"go": oldGo}, nil, "go1.25.1 is too old: install Go 1.26"},
		{"silent go", "go", fakes{"go": "exit 1"}, nil, "this go is too old"},
		{"node", "node", fakes{"node": goodNode, "npm": "exit 0"}, nil, ""},
		{"no node", "node", fakes{"npm": "exit 0"}, nil, "no node on the PATH: install Node.js 20"},
		{"old node", "node", fakes{"node": "echo v9.11.2", "npm": "exit 0"}, nil, "node v9.11.2 is too old"},
		{"no npm", "node", fakes{"node": goodNode}, nil, "no npm on the PATH: install npm"},
		{"python", "python", fakes{"python3": "echo 3.11.2"}, nil, ""},
		{"no python", "python", nil, nil, "install Python 3.11 or later as /"},
		{"old python", "python", fakes{"python3": "echo 3.9.18"}, nil, "3.9.18 is too old"},
		{"git", "git", fakes{"git": "echo git version 2.39.5"}, nil, ""},
		{"git of a Mac", "git", fakes{"git": "echo 'git version 2.39.5 (Apple Git-154)'"}, nil, ""},
		{"no git", "git", nil, nil, "no git on the PATH: install git 2.28"},
		{"old git", "git", fakes{"git": "echo git version 2.20.1"}, nil, "git 2.20.1 is too old"},
		{"silent git", "git", fakes{"git": "exit 1"}, nil, "git that answers no version is too old"},
		{"cc", "cc", fakes{"go": "echo gcc", "gcc": "exit 0"}, nil, ""},
		{"no cc", "cc", fakes{"go": "echo gcc"}, nil, "the race detector needs gcc: install"},
		{"no libc headers", "cc", fakes{"go": "echo gcc", "gcc": "exit 1"}, nil, "no C library headers: install"},
		{"root", "userns", fakes{"id": "echo 0", "unshare": allowed}, nil, ""},
		{"root in a container", "userns", fakes{"id": "echo 0", "unshare": denied}, nil, "root may not create namespaces"},
		{"user", "userns", fakes{"id": "echo 1000", "unshare": allowed},
			map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}, ""},
		{"no unshare", "userns", fakes{"id": "echo 1000"}, nil, "apt-get install util-linux"},
		{"clone forbidden", "userns", fakes{"id": "echo 1000", "unshare": denied},
			map[string]string{"kernel/unprivileged_userns_clone": "0"}, "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"no namespaces left", "userns", fakes{"id": "echo 1000", "unshare": denied},
			map[string]string{"user/max_user_namespaces": "0"}, "sysctl -w user.max_user_namespaces="},
		{"apparmor", "userns", fakes{"id": "echo 1000", "unshare": denied},
			map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"seccomp", "userns", fakes{"id": "echo 1000", "unshare": denied}, nil, "(unshare failed: Operation not permitted)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := prereq(t, c.need, c.machine, c.sysctl)
			if (err != nil) != (c.want != "") {
				t.Errorf("exit status: %v", err)
			}
			if c.want == "" && out != "" {
				t.Errorf("printed %q with nothing missing", out)
			}
			if !strings.Contains(out, c.want) || strings.Count(out, "\n") > 1 {
				t.Errorf("printed %q, want one line with %q", out, c.want)
			}
		})
	}
}

// prereq runs prereq.sh on a machine that has only the given programs and the shell's own, and returns what it printed.
func prereq(t *testing.T, need string, machine fakes, sysctl map[string]string) (string, error) {
	t.Helper()
	bin, settings := t.TempDir(), t.TempDir()
	for _, name := range []string{"cat", "dirname", "head", "sed", "sh", "sort", "tail"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range machine {
		write(t, filepath.Join(bin, name), "#!/bin/sh\n"+body+"\n")
	}
	for name, value := range sysctl {
		write(t, filepath.Join(settings, name), value+"\n")
	}
	cmd := exec.CommandContext(t.Context(), "./prereq.sh", need)
	cmd.Env = []string{"PATH=" + bin, "PREREQ_PYTHON=" + filepath.Join(bin, "python3"), "PREREQ_SYSCTL=" + settings}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	testutil.WriteProgram(t, path, text)
}
