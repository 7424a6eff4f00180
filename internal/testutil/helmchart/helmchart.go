// Package helmchart renders the chart in docs/deploy/helm for tests, and reads compose files, by the program that `make helm`
// builds.
package helmchart

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
)

// Result is what the chart gives for a file of values.
type Result struct {
	// Values is the path of the file.
	Values string
	// Error says why the values are refused.
	Error string
	// Notes is what Helm prints after an installation.
	Notes     string
	Manifests []Manifest
}

// Manifest is an object, and what the Pod Security Standards say about its pods.
type Manifest struct {
	Object Object
	// Security has what violates a level, by the level; "" means that the pods meet it.
	Security map[string]string
}

// Values returns the files of values in a folder of tools/helm/testdata: values or refused.
func Values(tb testing.TB, folder string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(testutil.ModuleRoot(tb), "tools", "helm", "testdata", folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no values in %s: %v", folder, err)
	}
	return paths
}

// Render renders the chart once for each file.
func Render(tb testing.TB, paths ...string) (all []Result) {
	tb.Helper()
	out := run(tb, append([]string{filepath.Join(testutil.ModuleRoot(tb), "docs", "deploy", "helm")}, paths...))
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var r Result
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, r)
	}
}

// Project is a compose file.
type Project struct{ Services map[string]Service }

// Service has those fields of a service that tests look at.
type Service struct {
	Command     []string
	ExtraHosts  []string `json:"extra_hosts"` // NAME=ADDRESS
	Volumes     []struct{ Type, Source, Target string }
	SecurityOpt []string `json:"security_opt"`
	CapDrop     []string `json:"cap_drop"`
	StopGrace   string   `json:"stop_grace_period"`
	Healthcheck struct{ Disable bool }
}

// Compose reads a compose file with variables, each NAME=VALUE.
func Compose(tb testing.TB, path string, variables ...string) (p Project) {
	tb.Helper()
	if err := json.Unmarshal(run(tb, append([]string{"compose", path}, variables...)), &p); err != nil {
		tb.Fatal(err)
	}
	return p
}

// run runs the program of make helm.
func run(tb testing.TB, args []string) []byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), testutil.Helm(tb), args...) //nolint:forbidigo // it ends by itself
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%v\n%s", err, log.String())
	}
	return out
}

// Of returns the objects of a kind.
func (r Result) Of(kind string) (all []Object) {
	for _, m := range r.Manifests {
		if m.Object.Kind == kind {
			all = append(all, m.Object)
		}
	}
	return all
}

// Settings writes the files of the gateway as Kubernetes mounts them, and returns the folder: each file is a link to one in
// a folder that a link replaces as a whole.
func (r Result) Settings(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	link := func(from, to string) {
		if err := os.Symlink(from, to); err != nil {
			tb.Fatal(err)
		}
	}
	link("..1", filepath.Join(dir, "..data"))
	for _, m := range r.Manifests {
		if m.Object.Kind != "StatefulSet" && m.Object.Kind != "Deployment" || m.Object.Metadata.Name != "sallyport" {
			continue
		}
		for _, item := range m.Object.Spec.Template.Spec.Volume("settings").ConfigMap.Items {
			path := filepath.Join(dir, "..1", filepath.FromSlash(item.Path))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				tb.Fatal(err)
			}
			text, ok := r.Of("ConfigMap")[0].Data[item.Key]
			if !ok {
				tb.Fatalf("the ConfigMap has no %s", item.Key)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				tb.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "..1"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		link(filepath.Join("..data", e.Name()), filepath.Join(dir, e.Name()))
	}
	return dir
}
