// Package build says what this program was built from. A release build stamps its variables with -ldflags -X; any other
// build takes the facts that the Go toolchain records.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// Home is the address of the project, empty until it has one. Packages and the formula take it from here;
	// tools/dist/module.sh changes it together with the module path.
	Home = ""

	// Runsc is the version of gVisor that tools/runsc/go.mod pins.
	Runsc = "v0.0.0-20260701204157-69c2d17aea96"
)

// Stamped by tools/dist.
var version, commit, date string

// Info is what a program was built from. Commit and Date are empty if the build has no revision.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	RunscPin string `json:"runsc_pin"`
}

// Read returns the facts of this program. Version is "dev" if the build has none.
func Read() Info {
	i := Info{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, RunscPin: Runsc}
	if recorded, ok := debug.ReadBuildInfo(); ok {
		i.complete(recorded)
	}
	i.Version = cmp.Or(i.Version, "dev")
	return i
}

// complete fills what was not stamped with what the toolchain recorded.
func (i *Info) complete(recorded *debug.BuildInfo) {
	if recorded.Main.Version != "(devel)" {
		i.Version = cmp.Or(i.Version, recorded.Main.Version)
	}
	for _, s := range recorded.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = cmp.Or(i.Commit, s.Value)
		case "vcs.time":
			i.Date = cmp.Or(i.Date, day(s.Value))
		}
	}
}

// day returns the day of an RFC 3339 time, "" for any other text.
func day(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	return at.UTC().Format(time.DateOnly)
}
