package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"sallyport/gateway/httpapi"
	"sallyport/internal/testutil/golden"
)

// lastRun is "lastrun NAME": the variable gets the id of the run that was started last.
func lastRun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lastrun NAME")
	}
	ts.Check(ts.Exec("sallyport", "workflow", "runs", "--json", "--limit", "1"))
	var list httpapi.RunList
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	if len(list.Runs) == 0 {
		ts.Fatalf("there is no run")
	}
	ts.Setenv(args[0], list.Runs[0].ID)
}

// times are what differs in the timeline of a run from one to the next: ids, offsets, bars and durations.
var times = regexp.MustCompile(`r-[a-z2-7]{12}|\+[0-9.hmsµn]+|▕[^▏]*▏|\b[0-9.]+(ms|s)\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// timeless is "timeless FILE GOLDEN": they are the same but for times.
func timeless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: timeless FILE GOLDEN")
	}
	var lines []string
	for line := range strings.Lines(times.ReplaceAllString(ts.ReadFile(args[0]), "#")) {
		lines = append(lines, strings.Join(strings.Fields(line), " ")+"\n")
	}
	got := strings.Join(lines, "")
	if golden.Update() {
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(got), 0o600))
	}
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}
