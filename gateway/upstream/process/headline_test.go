package process_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream/process"
)

// TestHeadline checks the line that is shown of what servers print when they fail.
func TestHeadline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, stderr, want string }{
		{"nothing", "", ""},
		{"no error", "one\ntwo\n\n", "two"},
		{"Node.js", "node:internal/modules/esm/resolve:283\n    throw new ERR_MODULE_NOT_FOUND(\n          ^\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find module 'x'\n" +
			"    at finalizeResolution (node:internal/modules/esm/resolve:283:11) {\n  code: 'ERR_MODULE_NOT_FOUND',\n  cause: Error: missing\n}\n\nNode.js v20.20.2\n", "Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'x'"},
		{"Node.js, two lines", "file:///x.mjs:1\nthrow new Error(\"a\\nb\")\n      ^\n\nError: no database\nError: see the manual\n    at file:///x.mjs:1:7\n", "Error: no database"},
		{"Python", "INFO: failed to load a plugin\nTraceback (most recent call last):\n  File \"x.py\", line 3, in f\nValueError: bad\n\nThe above exception was the direct cause of the following exception:\n\n" +
			"Traceback (most recent call last):\n  File \"x.py\", line 5, in <module>\n    f()\nRuntimeError: DSN missing\nSee https://example.com\n", "RuntimeError: DSN missing"},
		{"Python, a class of a package", "Traceback (most recent call last):\n  File \"x\", line 1\npydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\ndsn\n  Field required\n", "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings"},
		{"Python, a group", "  + Exception Group Traceback (most recent call last):\n  |   File \"x\"\n  | ExceptionGroup: unhandled errors\nKeyError: 'TOKEN'\n", "KeyError: 'TOKEN'"},
		{"Python, syntax", "  File \"x.py\", line 1\n    x = (\n        ^\nSyntaxError: '(' was never closed\n", "SyntaxError: '(' was never closed"},
		{"Go", "starting\npanic: no route\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:3 +0x1d\nexit status 2\n", "panic: no route"},
		{"npm", "npm warn deprecated x: invalid\nnpm error code E404\nnpm error 404 Not Found - GET https://example.com/x\nnpm error A complete log of this run can be found in: /x.log\n", "npm error 404 Not Found - GET https://example.com/x"},
		{"plain", "starting\nTOKEN is required\nusage: server [options]; an invalid option is an error\n", "TOKEN is required"},
		{"only a warning", "warning: invalid header\nbye\n", "warning: invalid header"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := &process.Ring{}
			r.Fill(strings.NewReader(test.stderr))
			if got := r.Headline(); got != test.want {
				t.Errorf("headline %q, want %q", got, test.want)
			}
		})
	}
}

// TestHeadlineOfRealPrograms runs Node.js and Python, as servers over stdio are run.
func TestHeadlineOfRealPrograms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program string
		args    []string
		want    string
	}{
		{"node", []string{"-e", "require('nope')"}, "status 1; stderr: Error: Cannot find module 'nope'"},
		{"node", []string{"--input-type=module", "-e", "throw new TypeError('no database\\nfailed')"}, "status 1; stderr: TypeError: no database"},
		{"/usr/bin/python3", []string{"-c", "try: int('x')\nexcept ValueError as e: raise RuntimeError('DSN missing') from e"}, "status 1; stderr: RuntimeError: DSN missing"},
		{"/usr/bin/python3", []string{"-c", "import nope"}, "status 1; stderr: ModuleNotFoundError: No module named 'nope'"},
	} {
		if _, err := exec.LookPath(test.program); err != nil {
			continue
		}
		if err := end(t, process.Command{Command: test.program, Args: test.args}); !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s %q: %v, want %s", test.program, test.args, err, test.want)
		}
	}
}

// end runs a process to its end and returns the error that says so.
func end(t *testing.T, c process.Command) error {
	t.Helper()
	p, err := process.Start(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	buf := make([]byte, 100)
	for err == nil {
		_, err = p.Stdout.Read(buf)
	}
	close(p.Drained)
	for end := time.Now().Add(30 * time.Second); p.Pid() != 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return p.ExitError()
}

// TestExitSaysWhen checks that the end of a process has its time, if it is five seconds or more.
func TestExitSaysWhen(t *testing.T) {
	t.Parallel()
	if err := end(t, process.Command{Command: "sh", Args: []string{"-c", "exit 3"}}); err.Error() != "exited with status 3" {
		t.Error(err)
	}
	if err := end(t, process.Command{Command: "sh", Args: []string{"-c", "sleep 5.1; echo 'Error: late' >&2; exit 3"}}); !regexp.MustCompile(`^exited with status 3 after \d+ s; stderr: Error: late$`).MatchString(err.Error()) {
		t.Error(err)
	}
}

// TestMissingFolder checks that a working directory that does not exist is named.
func TestMissingFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): `its cwd "` + dir + `/none": no such file or directory`,
		file:                       `its cwd "` + file + `": not a directory`,
	} {
		if _, err := process.Start(t.Context(), process.Command{Command: "true", Dir: path}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
