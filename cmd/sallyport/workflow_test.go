package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"sallyport/gateway/httpapi"
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
var times = regexp.MustCompile(`r-[a-z2-7]{12}|\+[0-9.hmsµn]+|▕[^▏]*▏|\b[0-9.]+(ms|s)\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d{8}-\d{6}`)

// timeless is "timeless FILE OUT": OUT becomes FILE without times and the script's folder, each line with single blanks.
func timeless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: timeless FILE OUT")
	}
	var text strings.Builder
	for line := range strings.Lines(times.ReplaceAllString(ts.ReadFile(args[0]), "#")) {
		line = strings.ReplaceAll(line, ts.Getenv("WORK"), "WORK")
		text.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text.String()), 0o600))
}
