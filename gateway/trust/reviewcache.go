package trust

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/atomicfile"
	"sallyport/internal/tool"
)

// reviewCache stores definitions for review: one file per upstream, with a line per pinned
// tool and one per held tool. It is a cache: without it the lock file still has the
// trusted digests, but there are no definitions to compare with.
type reviewCache struct {
	dir string // "" keeps nothing on disk
	// memory has the content of the files of the upstreams that this process has used.
	memory map[string][]entry
	states map[string]string
}

// header is the first line of a file.
type header struct {
	State string `json:"state"`
}

// entry is one further line of a file.
type entry struct {
	Name       string          `json:"name"`
	Digest     string          `json:"digest"`
	ID         string          `json:"id,omitempty"`
	Reason     string          `json:"reason,omitempty"` // only of held tools
	Findings   []Finding       `json:"findings,omitempty"`
	Definition json.RawMessage `json:"definition"`
}

// openReviewCache gives every lock file a directory of its own below dir.
func openReviewCache(dir, lock string) *reviewCache {
	if dir != "" {
		sum := sha256.Sum256([]byte(lock))
		dir = filepath.Join(dir, hex.EncodeToString(sum[:8]))
	}
	return &reviewCache{dir: dir, memory: map[string][]entry{}, states: map[string]string{}}
}

func (k *reviewCache) file(upstream string) string {
	sum := sha256.Sum256([]byte(upstream)) // names may differ by case only
	return filepath.Join(k.dir, upstream+"-"+hex.EncodeToString(sum[:4])+".jsonl")
}

// definition returns the definition with a digest, nil if it was not stored.
func (k *reviewCache) definition(upstream, name, digest string) json.RawMessage {
	for _, e := range k.load(upstream) {
		if e.Name == name && e.Digest == digest {
			return e.Definition
		}
	}
	return nil
}

func (k *reviewCache) load(upstream string) []entry {
	if entries, ok := k.memory[upstream]; ok {
		return entries
	}
	entries, _ := k.read(upstream) // a cache that cannot be read is an empty one
	k.memory[upstream] = entries
	return entries
}

func (k *reviewCache) read(upstream string) ([]entry, error) {
	if k.dir == "" {
		return k.memory[upstream], nil
	}
	return readEntries(k.file(upstream))
}

func readEntries(path string) ([]entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []entry
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if e.Name != "" && digestOf(e.Definition) == e.Digest { // not the header, nor damaged entries
			entries = append(entries, e)
		}
	}
	return entries, lines.Err()
}

// save writes the listed definitions that are pinned, older ones that are still
// pinned, and held ones. The file begins with a digest of the input, so that an
// unchanged list costs no more than reading the first line.
func (k *reviewCache) save(upstream string, listed []listedTool, pinned map[string]string, held map[string]Held) error {
	state := stateOf(listed, pinned, held)
	if k.state(upstream) == state {
		return nil
	}
	var entries []entry
	have := map[string]bool{}
	add := func(e entry) {
		if key := e.Name + "\x00" + e.Digest; !have[key] {
			have[key] = true
			entries = append(entries, e)
		}
	}
	for _, h := range sortHeld(held) {
		add(entry{Name: h.Name, Digest: h.Digest, ID: h.Tool.ID.String(), Reason: h.Reason, Findings: h.Findings, Definition: h.New})
	}
	for _, s := range listed {
		if s.digest == pinned[s.tool.Wire] {
			add(entry{Name: s.tool.Wire, Digest: s.digest, Definition: s.canonical})
		}
	}
	for _, e := range k.load(upstream) {
		if e.Digest == pinned[e.Name] {
			e.ID, e.Reason, e.Findings = "", "", nil
			add(e)
		}
	}
	if err := k.write(upstream, state, entries); err != nil {
		return fmt.Errorf("keep definitions for review: %w", err)
	}
	return nil
}

// stateOf returns a digest of the arguments of save.
func stateOf(listed []listedTool, pinned map[string]string, held map[string]Held) string {
	sum := sha256.New()
	for _, s := range listed {
		fmt.Fprintf(sum, "%q %s %t %s\n", s.tool.Wire, s.digest, s.digest == pinned[s.tool.Wire], held[s.tool.Wire].Reason)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// state returns the digest in the file of an upstream, "" if there is none.
func (k *reviewCache) state(upstream string) string {
	if k.dir == "" {
		return k.states[upstream]
	}
	f, err := os.Open(k.file(upstream))
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 128).ReadString('\n')
	var head header
	_ = json.Unmarshal([]byte(line), &head) // no state after an error
	return head.State
}

// approve turns held definitions into pinned ones.
func (k *reviewCache) approve(upstream string, digests map[string]string) error {
	entries, err := k.read(upstream)
	if err != nil {
		return err
	}
	var left []entry
	for _, e := range entries {
		switch approved := digests[e.Name]; {
		case approved == "":
		case approved != e.Digest:
			continue // pinned before
		default:
			e.ID, e.Reason, e.Findings = "", "", nil
		}
		left = append(left, e)
	}
	return k.write(upstream, "", left)
}

// write replaces the file of an upstream.
func (k *reviewCache) write(upstream, state string, entries []entry) error {
	k.memory[upstream], k.states[upstream] = entries, state
	if k.dir == "" {
		return nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(header{state}) // cannot fail, as below: strings, and JSON that Canonical wrote
	for _, e := range entries {
		_ = enc.Encode(e)
	}
	return atomicfile.Replace(k.file(upstream), b.Bytes(), 0o600)
}

// heldTools returns the held definitions on disk, by upstream and name.
func (k *reviewCache) heldTools() (map[string]map[string]Held, error) {
	waiting := map[string]map[string]Held{}
	if k.dir == "" {
		return waiting, nil
	}
	files, err := filepath.Glob(filepath.Join(k.dir, "*.jsonl"))
	errs := []error{err}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		upstream := name[:max(strings.LastIndexByte(name, '-'), 0)]
		entries, err := readEntries(file)
		errs = append(errs, err)
		k.memory[upstream] = entries
		waiting[upstream] = map[string]Held{}
		for _, e := range entries {
			if e.Reason != "" {
				waiting[upstream][e.Name] = e.toHeld(upstream, entries)
			}
		}
	}
	return waiting, errors.Join(errs...)
}

func (e entry) toHeld(upstream string, all []entry) Held {
	h := Held{Upstream: upstream, Name: e.Name, Digest: e.Digest, Reason: e.Reason, Findings: e.Findings, New: e.Definition, Tool: e.tool()}
	for _, o := range all {
		if o.Name == e.Name && o.Reason == "" {
			h.Old = o.Definition
		}
	}
	return h
}

// tool decodes the definition.
func (e entry) tool() tool.Tool {
	var d struct {
		Annotations tool.Annotations `json:"annotations"`
		Description string           `json:"description"`
		Input       json.RawMessage  `json:"inputSchema"`
		Output      json.RawMessage  `json:"outputSchema"`
		Title       string           `json:"title"`
	}
	_ = json.Unmarshal(e.Definition, &d) // incomplete after an error: the definition itself is shown
	if string(d.Output) == "null" {
		d.Output = nil
	}
	id, _ := tool.ParseID(e.ID)
	return tool.Tool{ID: id, Wire: e.Name, Title: d.Title, Description: d.Description, Input: d.Input, Output: d.Output, Annotations: d.Annotations}
}
