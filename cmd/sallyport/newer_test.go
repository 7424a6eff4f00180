package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// dataDir returns the data directory of the home.
func (h newHome) dataDir() string { return filepath.Join(string(h), ".local", "share", "sallyport") }

// makeNewerData makes a data directory that a newer version wrote.
func (h newHome) makeNewerData(t *testing.T) {
	t.Helper()
	records := filepath.Join(h.dataDir(), "records")
	if err := os.MkdirAll(records, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(records, "schema"), []byte("9"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withArguments returns the words of a command after sallyport, with an argument for each that it needs.
func withArguments(cmd *cobra.Command) []string {
	args := pathOf(cmd)
	if cmd.Flags().Lookup("check") != nil && cmd.Name() == "upgrade" {
		return append(args, "--check")
	}
	words := optionalWords.ReplaceAllString(cmd.Use, "")
	if before, _, ok := strings.Cut(words, " -- "); ok {
		words = before
	}
	for _, word := range strings.Fields(words)[1:] {
		if strings.ToUpper(word) == word {
			args = append(args, cmp.Or(map[string]string{"RUN": "r-k3vq7m2yhx4d"}[word], "x"))
		}
	}
	return args
}

// folderState returns the names of what is in a folder, with the sizes and times of files.
func folderState(t *testing.T, dir string) (all string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info fs.FileInfo, err error) error {
		if err == nil && info.IsDir() { // whose time changes when doctor tries to write to it
			all += path + "\n"
		} else if err == nil {
			all += fmt.Sprintln(path, info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNewerData: each command that opens the data directory reports that a newer version wrote it, and changes nothing in it.
// The others work as without one.
func TestNewerData(t *testing.T) {
	t.Parallel()
	notRun := []string{"cluster", "help", "man", "try", "vm", "worker"} // of those without data: they write elsewhere, start sandboxes or a virtual machine
	newer, empty := makeHome(t), makeHome(t)
	newer.makeNewerData(t)
	before := folderState(t, newer.dataDir())
	for _, cmd := range everyCommand(t)[1:] {
		args := withArguments(cmd)
		if slices.Contains(notRun, args[0]) || cmd.HasSubCommands() && !strings.Contains(cmd.Use, "[COMMAND]") {
			continue
		}
		status, stdout, stderr := newer.run(t, args...)
		names := status == 1 && strings.Contains(stdout+stderr, newer.dataDir()+"/records has version 9, and this program knows 1 at most")
		names = names && (args[0] == "upgrade" || strings.Contains(stdout+stderr, ": install the release of sallyport that wrote them"))
		switch {
		case args[0] == "doctor" || args[0] == "upgrade" || opensData(cmd):
			if !names {
				t.Errorf("%v does not say that the data is newer: status %d, %q, %q", args, status, stdout, stderr)
			}
		default:
			wantStatus, wantOut, wantErr := empty.run(t, args...)
			if status != wantStatus || newer.relative(stdout) != empty.relative(wantOut) || newer.relative(stderr) != empty.relative(wantErr) {
				t.Errorf("%v: status %d, %q, %q; without data %d, %q, %q", args, status, stdout, stderr, wantStatus, wantOut, wantErr)
			}
		}
	}
	if after := folderState(t, newer.dataDir()); after != before {
		t.Errorf("the data directory was changed:\n%s\nbefore:\n%s", after, before)
	}
}

// relative replaces the path of the home in a text.
func (h newHome) relative(text string) string { return strings.ReplaceAll(text, string(h), "HOME") }
