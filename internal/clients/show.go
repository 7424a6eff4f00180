package clients

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	quotedPair = regexp.MustCompile(`(["']?)([A-Za-z_][A-Za-z0-9_.-]*)(["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',\]}]+)`)
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'`)
)

// Diff returns the lines that an edit removes and adds, with their numbers and without
// secrets: it shows no other lines, and redacts values that look secret by name or
// value, or are secrets of the servers.
func Diff(file string, before, after []byte, servers []Server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", file, file)
	for _, h := range hunks(lines(before), lines(after)) {
		fmt.Fprintf(&b, "@@ line %d @@\n", h.line)
		for _, line := range h.removed {
			b.WriteString("-" + redactLine(line, servers) + "\n")
		}
		for _, line := range h.added {
			b.WriteString("+" + redactLine(line, servers) + "\n")
		}
	}
	return b.String()
}

func lines(data []byte) []string {
	var all []string
	for line := range bytes.Lines(data) {
		all = append(all, strings.TrimRight(string(line), "\r\n"))
	}
	return all
}

type hunk struct {
	line           int
	removed, added []string
}

// hunks compares texts that differ in few places. After each difference it finds the
// nearest place where both texts have several equal lines.
func hunks(a, b []string) []hunk {
	var all []hunk
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		di, dj := nextMatch(a[i:], b[j:])
		all = append(all, hunk{i + 1, a[i : i+di], b[j : j+dj]})
		i, j = i+di, j+dj
	}
	return all
}

// nextMatch returns the number of lines of each that are different.
func nextMatch(a, b []string) (int, int) {
	const enough, far = 3, 400
	for sum := 1; sum <= far && sum <= len(a)+len(b); sum++ {
		for di := 0; di <= sum; di++ {
			dj := sum - di
			if di <= len(a) && dj <= len(b) && equalStart(a[di:], b[dj:], enough) {
				return di, dj
			}
		}
	}
	return len(a), len(b)
}

func equalStart(a, b []string, enough int) bool {
	if len(a) < enough || len(b) < enough {
		return slices.Equal(a, b)
	}
	return slices.Equal(a[:enough], b[:enough])
}

const redactedText = `"…"`

// redactLine redacts the secrets in a line.
func redactLine(line string, servers []Server) string {
	for _, s := range servers {
		for _, value := range s.Secrets {
			line = strings.ReplaceAll(line, value, "…")
			line = strings.ReplaceAll(line, strings.Trim(quote(value), `"`), "…")
		}
	}
	line = quotedPair.ReplaceAllStringFunc(line, func(pair string) string {
		m := quotedPair.FindStringSubmatch(pair)
		if value := strings.Trim(m[4], `"'`); secretName(m[2]) && isPlausible(value) && !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "[") {
			return m[1] + m[2] + m[3] + redactedText
		}
		return pair
	})
	return quotedText.ReplaceAllStringFunc(line, func(text string) string {
		if inner := strings.Trim(text, `"'`); secretValue(inner) || userinfo.MatchString(inner) {
			return redactedText
		}
		return text
	})
}
