// Package upstreams pins the npm servers that demo, tests and benchmarks connect to.
// `make upstreams` installs them; [Files] has the input for npm ci to install them elsewhere.
package upstreams

import (
	"embed"
	"encoding/json"
	"io/fs"
	"sync"

	"sallyport/internal/packed"
)

//go:embed package.json package-lock.json .npmrc
var files embed.FS

// Files holds package.json, package-lock.json and .npmrc.
var Files = packed.FS(files)

// Versions returns the pinned versions by package.
var Versions = sync.OnceValue(func() map[string]string {
	var pins struct{ Dependencies map[string]string }
	data, err := fs.ReadFile(Files, "package.json")
	if err == nil {
		err = json.Unmarshal(data, &pins)
	}
	if err != nil {
		panic(err) // the file is embedded
	}
	return pins.Dependencies
})
