package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/atomicfile"
	"sallyport/internal/filelock"
	"sallyport/internal/lockfile"
	"sallyport/internal/sanitize"
)

// The lock file has a line per tool, in the order of upstreams and names, so that
// a change of one tool is a change of one line:
//
//	github "create_issue" 9f86d081884c7d659a2feaa0c55ad015
//
// Below are the rejected definitions, see [Rejection].
const (
	lockHeader = `# sallyport.lock: the digest of each tool definition when it was first seen or approved.
# Written by sallyport; commit it. To accept a change: sallyport upstreams review, then approve.
version 1
`
	// maxLock bounds the file, maxName a name in it, in bytes.
	maxLock = 32 << 20
	maxName = 4 << 10
	// lockTimeout is how long to wait for another process that changes the file.
	lockTimeout = 10 * time.Second
)

var (
	upstreamName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	digestText   = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// pins are digests by upstream and wire name.
type pins map[string]map[string]string

func (p pins) set(upstream, name, digest string) {
	if p[upstream] == nil {
		p[upstream] = map[string]string{}
	}
	p[upstream][name] = digest
}

// lock is the content of the lock file. No definition is both pinned and rejected.
type lock struct {
	pins     pins
	rejected map[definition]Rejection
}

func newLock() lock { return lock{pins{}, map[definition]Rejection{}} }

// format encodes l; equal locks have equal bytes.
func (l lock) format() []byte {
	var b bytes.Buffer
	b.WriteString(lockHeader)
	for _, up := range slices.Sorted(keys(l.pins)) {
		for _, name := range slices.Sorted(keys(l.pins[up])) {
			fmt.Fprintf(&b, "%s %s %s\n", up, quote(name), l.pins[up][name])
		}
	}
	for _, d := range slices.SortedFunc(maps.Keys(l.rejected), definition.compare) {
		b.WriteString(rejectedMark + l.rejected[d].format() + " " + d.format() + "\n")
	}
	return b.Bytes()
}

// quote returns a name as a JSON string without invisible characters.
func quote(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r > 0xffff && !isShowable(r):
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case !isShowable(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func isShowable(r rune) bool {
	return !sanitize.Hidden(r) && r != 0x7f && r != '\u200c' && r != '\u200d' && r != '\u2028' && r != '\u2029' && (r < 0xfe00 || r > 0xfe0f)
}

// parseLock parses the output of format, also after a manual merge of two files.
// Errors name the line.
func parseLock(data []byte) (lock, error) {
	l := newLock()
	return l, lockfile.Parse(data, l.parseLine)
}

func (l lock) parseLine(line string) error {
	if rest, ok := strings.CutPrefix(line, rejectedMark); ok {
		return l.parseRejected(rest)
	}
	d, err := parseDefinition(line)
	switch _, rejected := l.rejected[d]; {
	case err != nil:
		return err
	case l.pins[d.upstream][d.name] != "":
		return fmt.Errorf("tool %q of %s is listed twice; keep the line of the definition that you trust", sanitize.Line(d.name, 80), d.upstream)
	case rejected:
		return d.pinnedAndRejected()
	}
	l.pins.set(d.upstream, d.name, d.digest)
	return nil
}

// parseDefinition parses the upstream, the quoted name and the digest of a line.
func parseDefinition(line string) (definition, error) {
	up, rest, _ := strings.Cut(line, " ")
	quoted, digest := rest, ""
	if at := strings.LastIndexByte(rest, ' '); at >= 0 {
		quoted, digest = rest[:at], rest[at+1:]
	}
	var name string
	switch {
	case !upstreamName.MatchString(up):
		return definition{}, fmt.Errorf("%q is not the name of an upstream", sanitize.Line(up, 40))
	case !digestText.MatchString(digest):
		return definition{}, fmt.Errorf("no digest of 32 hexadecimal digits at the end: %q", sanitize.Line(line, 80))
	case !strings.HasPrefix(quoted, `"`) || json.Unmarshal([]byte(quoted), &name) != nil || !utf8.ValidString(quoted) || len(name) > maxName:
		return definition{}, fmt.Errorf("the name of a tool must be in double quotes: %q", sanitize.Line(line, 80))
	}
	return definition{up, name, digest}, nil
}

// readLock reads the lock file, which may be missing.
func readLock(path string) (lock, error) {
	l := newLock()
	return l, lockfile.Read(path, maxLock, l.parseLine)
}

// ReadNames returns the wire names of the tools in a lock file, by upstream, sorted.
func ReadNames(path string) (map[string][]string, error) {
	l, err := readLock(path)
	names := map[string][]string{}
	for up, tools := range l.pins {
		names[up] = slices.Sorted(keys(tools))
	}
	return names, err
}

// updateLock changes the lock file under a lock, and returns its new content.
func updateLock(path string, change func(lock)) (lock, error) {
	unlock, err := filelock.Dir(filepath.Dir(path), lockTimeout)
	if err != nil {
		return lock{}, err
	}
	defer unlock()
	l, err := readLock(path)
	if err != nil {
		return lock{}, err
	}
	before := l.format()
	change(l)
	after := l.format()
	switch {
	case len(after) > maxLock:
		return lock{}, fmt.Errorf("%s would be larger than %d MiB; remove the lines of upstreams that are gone", path, maxLock>>20)
	case !bytes.Equal(before, after):
		err = atomicfile.Replace(path, after, 0o644)
	}
	return l, err
}

// fileStamp identifies the state of a file.
type fileStamp struct {
	modified time.Time
	size     int64
}

// stampOf returns the stamp of a file, the zero stamp if it is missing.
func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.ModTime(), info.Size()}
}
