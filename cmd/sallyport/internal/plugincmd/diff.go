package plugincmd

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"sallyport/gateway/plugin/folder"
	"sallyport/gateway/trust"
	"sallyport/internal/atomicfile"
	"sallyport/internal/sanitize"
)

// maxDiff bounds the diff of one file, in lines.
const maxDiff = 120

// copies are the files of plugins as they were approved on this machine, by digest, in the cache folder; "" keeps none.
type copies struct{ cache string }

func (c copies) dir() string { return filepath.Join(c.cache, folder.DirName, "files") }

// save keeps the files of a plugin, and removes earlier ones that it no longer has. Without a copy a review has no diff.
func (c copies) save(p folder.Plugin, before folder.Reviewed) {
	if c.cache == "" || os.MkdirAll(c.dir(), 0o700) != nil {
		return
	}
	kept := map[string]bool{}
	for _, data := range p.Content {
		digest := folder.Digest(data)
		kept[digest] = true
		_ = atomicfile.Replace(filepath.Join(c.dir(), digest), data, 0o600)
	}
	for _, digest := range before.Files {
		if !kept[digest] {
			_ = os.Remove(filepath.Join(c.dir(), digest))
		}
	}
}

// load returns the file with a digest.
func (c copies) load(digest string) ([]byte, bool) {
	if c.cache == "" {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(c.dir(), digest))
	return data, err == nil && folder.Digest(data) == digest
}

// fileDiff is how one file changed. Note says why there is no diff, or not the whole one.
type fileDiff struct {
	File string `json:"file"`
	Diff string `json:"diff,omitempty"`
	Note string `json:"note,omitempty"`
}

// diffs returns how the files of a plugin changed since they were approved.
func (c copies) diffs(p folder.Plugin, before folder.Reviewed) (all []fileDiff) {
	names := map[string]bool{}
	for name := range p.Content {
		names[name] = true
	}
	for name := range before.Files {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		now, exists := p.Content[name]
		digest, known := before.Files[name]
		if exists && known && folder.Digest(now) == digest {
			continue
		}
		d := fileDiff{File: name}
		var old []byte
		if known {
			var ok bool
			if old, ok = c.load(digest); !ok {
				d.Note = "this machine has no copy of it as it was approved; your version control may have one"
			}
		}
		if d.Note == "" {
			d.Diff, d.Note = unified(old, now)
		}
		all = append(all, d)
	}
	return all
}

// unified returns the diff of two files, in which invisible characters are visible.
func unified(old, now []byte) (text, note string) {
	if !utf8.Valid(old) || !utf8.Valid(now) || bytes.ContainsRune(old, 0) || bytes.ContainsRune(now, 0) {
		return "", "it is not a text"
	}
	text = string(diff.Diff("approved", []byte(trust.Visible(string(old))), "now", []byte(trust.Visible(string(now)))))
	_, text, _ = strings.Cut(text, "\n") // "diff approved now" is not part of a unified diff
	if lines := strings.SplitAfter(text, "\n"); len(lines) > maxDiff {
		return strings.Join(lines[:maxDiff], ""), fmt.Sprintf("%d more lines", len(lines)-maxDiff)
	}
	return text, ""
}

func (d fileDiff) text() string {
	text := sanitize.Line(d.File, 200) + ":\n" + d.Diff
	if d.Note != "" {
		text += "(" + d.Note + ")\n"
	}
	return text
}
