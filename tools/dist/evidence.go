package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// writeSBOMs writes a list of the modules in each program of the Linux targets, in CycloneDX.
func writeSBOMs(ctx context.Context, r *release, targets []target) error {
	for _, t := range targets {
		programs := []string{"sallyport", "runsc"}
		if t.system != "linux" {
			programs = programs[:1]
		}
		for _, name := range programs {
			if err := r.sbom(ctx, t, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// sbom reads the modules from the program itself. Without a serial number and a time, equal programs have equal lists.
func (r *release) sbom(ctx context.Context, t target, name string) error {
	start, version := time.Now(), "v"+r.version
	if name == "runsc" {
		version = r.runsc
	}
	out := filepath.Join(r.out, fmt.Sprintf("%s-%s-%s-%s.cdx.json", name, r.version, t.system, t.arch))
	cmd := exec.CommandContext(ctx, "go", "tool", "cyclonedx-gomod", "bin", "-json", "-noserial", "-notimestamp", "-version", version, "-output", out, r.binary(t, name))
	cmd.Dir = filepath.Join(r.root, "tools", "dist")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("list the modules of %s: %w\n%s", name, err, text)
	}
	list, err := os.ReadFile(out)
	if err == nil {
		err = os.WriteFile(out, []byte(original(string(list), r.replaced)), 0o644)
	}
	if err != nil {
		return err
	}
	say(start, "listed the modules of %s for %s", name, t)
	return nil
}

// The statement of in-toto, and the predicate of SLSA that says what the packages were built from.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     predicate  `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		Definition definition `json:"buildDefinition"`
		Run        runDetails `json:"runDetails"`
	}
	definition struct {
		BuildType string         `json:"buildType"`
		External  map[string]any `json:"externalParameters"`
		Internal  map[string]any `json:"internalParameters"`
		Resolved  []resource     `json:"resolvedDependencies"`
	}
	runDetails struct {
		Builder  map[string]string `json:"builder"`
		Metadata map[string]string `json:"metadata"`
	}
)

// provenance writes what the packages were built from. It is not signed: a home of the project decides with which key.
func (r *release) provenance(targets []target) error {
	subjects, err := subjectsOf(r)
	if err != nil {
		return err
	}
	resolved, err := resolvedOf(r)
	if err != nil {
		return err
	}
	home := cmp.Or(r.home, "https://example.com/sallyport")
	var names []string
	for _, t := range targets {
		names = append(names, t.String())
	}
	data, err := indented(statement{
		Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{
			Definition: definition{
				BuildType: home + "/make-dist/v1",
				External:  map[string]any{"version": r.version, "targets": names, "source": home},
				Internal:  map[string]any{"go": runtime.Version(), "SOURCE_DATE_EPOCH": r.date.Unix()},
				Resolved:  resolved,
			},
			Run: runDetails{
				Builder:  map[string]string{"id": home + "/local"},
				Metadata: map[string]string{"invocationId": r.version + "+" + r.commit},
			},
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "sallyport-"+r.version+".intoto.json"), data, 0o644)
}

// subjectsOf returns the packages with their digests.
func subjectsOf(r *release) (list []resource, err error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, resource{Name: e.Name(), Digest: map[string]string{"sha256": sum}})
	}
	return list, nil
}

// resolvedOf returns the commit, and the files that pin all modules of the programs.
func resolvedOf(r *release) ([]resource, error) {
	list := []resource{{URI: "git+" + cmp.Or(r.home, "https://example.com/sallyport"), Digest: map[string]string{"gitCommit": r.commit}}}
	for _, name := range []string{"go.sum", "tools/runsc/go.sum", "tools/dist/go.sum"} {
		sum, err := sumOf(filepath.Join(r.root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		list = append(list, resource{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	return list, nil
}

// writeSums writes SHA256SUMS, which sha256sum --check reads.
func writeSums(r *release) error {
	subjects, err := subjectsOf(r)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&text, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}

// sumOf returns the SHA-256 of a file.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
