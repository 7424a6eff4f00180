package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// format encodes p; equal pins have equal bytes.
func (p pins) format() []byte {
	var b bytes.Buffer
	b.WriteString(lockHeader)
	for _, up := range slices.Sorted(keys(p)) {
		for _, name := range slices.Sorted(keys(p[up])) {
			fmt.Fprintf(&b, "%s %s %s\n", up, quote(name), p[up][name])
		}
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

// parsePins parses the output of format, also after a manual merge of two files.
// Errors name the line.
func parsePins(data []byte) (pins, error) {
	p := pins{}
	if err := lockfile.Parse(data, p.parseLine); err != nil {
		return nil, err
	}
	return p, nil
}

func (p pins) parseLine(line string) error {
	up, rest, _ := strings.Cut(line, " ")
	quoted, digest := rest, ""
	if at := strings.LastIndexByte(rest, ' '); at >= 0 {
		quoted, digest = rest[:at], rest[at+1:]
	}
	var name string
	switch {
	case !upstreamName.MatchString(up):
		return fmt.Errorf("%q is not the name of an upstream", sanitize.Line(up, 40))
	case !digestText.MatchString(digest):
		return fmt.Errorf("no digest of 32 hexadecimal digits at the end: %q", sanitize.Line(line, 80))
	case !strings.HasPrefix(quoted, `"`) || json.Unmarshal([]byte(quoted), &name) != nil || !utf8.ValidString(quoted) || len(name) > maxName:
		return fmt.Errorf("the name of a tool must be in double quotes: %q", sanitize.Line(line, 80))
	case p[up][name] != "":
		return fmt.Errorf("tool %q of %s is listed twice; keep the line of the definition that you trust", sanitize.Line(name, 80), up)
	}
	p.set(up, name, digest)
	return nil
}

// readPins reads the lock file, which may be missing.
func readPins(path string) (pins, error) {
	p := pins{}
	if err := lockfile.Read(path, maxLock, p.parseLine); err != nil {
		return nil, err
	}
	return p, nil
}

// ReadNames returns the wire names of the tools in a lock file, by upstream, sorted.
func ReadNames(path string) (map[string][]string, error) {
	p, err := readPins(path)
	names := map[string][]string{}
	for up, tools := range p {
		names[up] = slices.Sorted(keys(tools))
	}
	return names, err
}

// updatePins changes the lock file under a lock, and returns its new content.
func updatePins(path string, change func(pins)) (pins, error) {
	unlock, err := filelock.Dir(filepath.Dir(path), lockTimeout)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := readPins(path)
	if err != nil {
		return nil, err
	}
	before := p.format()
	change(p)
	after := p.format()
	switch {
	case len(after) > maxLock:
		return nil, fmt.Errorf("%s would be larger than %d MiB; remove the lines of upstreams that are gone", path, maxLock>>20)
	case !bytes.Equal(before, after):
		err = atomicfile.Replace(path, after, 0o644)
	}
	return p, err
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
