// Package upstreams pins the npm servers that demo, tests and benchmarks connect
// to. Their installation is `make upstreams`; [Files] is what npm ci needs to do the same elsewhere.
package upstreams

import (
	"embed"
	"encoding/json"
	"sync"
)

// Files are package.json, package-lock.json and .npmrc.
//
//go:embed package.json package-lock.json .npmrc
var Files embed.FS

// Versions are the pinned versions by package.
var Versions = sync.OnceValue(func() map[string]string {
	var pins struct{ Dependencies map[string]string }
	data, err := Files.ReadFile("package.json")
	if err == nil {
		err = json.Unmarshal(data, &pins)
	}
	if err != nil {
		panic(err) // it is part of the program
	}
	return pins.Dependencies
})
