package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxLocal  = 64
	maxDomain = 253
)

// emailAt returns the address with its @ at i; end 0 for none.
func emailAt(t string, i int) (start, end int) {
	start = localStart(t, i)
	if start == i || t[i-1] == '.' {
		return 0, 0
	}
	end = domainEnd(t, i)
	if end < len(t) && t[end] == '@' {
		return 0, 0
	}
	local, domain := t[start:i], withoutSuffix(t[i+1:end])
	end = i + 1 + len(domain)
	if !isLocal(local) || !isHost(domain) || local == "git" && isPath(t[end:]) {
		return 0, 0
	}
	return start, end
}

// localStart returns where the mailbox's name before the @ at i begins, i if there is none or one too long.
func localStart(t string, i int) int {
	start := i
	for start > 0 && i-start <= maxLocal {
		n := localBefore(t[:start])
		if n == 0 {
			break
		}
		start -= n
	}
	if i-start > maxLocal {
		return i
	}
	for start < i && strings.IndexByte(".'-", t[start]) >= 0 {
		start++
	}
	return start
}

// domainEnd returns where the domain behind the @ at i ends.
func domainEnd(t string, i int) int {
	end := i + 1
	for end < len(t) && end-i <= maxDomain {
		n := domainAt(t[end:])
		if n == 0 {
			break
		}
		end += n
	}
	for end > i && strings.IndexByte(".-", t[end-1]) >= 0 {
		end--
	}
	return end
}

// withoutSuffix removes a file name extension: a@b.example.txt
func withoutSuffix(domain string) string {
	if cut := strings.LastIndexByte(domain, '.'); cut > 0 && isSuffix(domain[cut+1:]) {
		return domain[:cut]
	}
	return domain
}

func isLocal(name string) bool {
	return !strings.HasPrefix(strings.ToLower(name), "mailto") && !strings.Contains(name, "..")
}

// isPath reports whether a path follows, as in a repository URL.
func isPath(rest string) bool { return rest != "" && (rest[0] == ':' || rest[0] == '/') }

// localBefore returns the length of the last character, 0 if it cannot be in a mailbox's name.
func localBefore(t string) int {
	b := t[len(t)-1]
	switch {
	case isLetter(b), isDigit(b), strings.IndexByte("._%+-'", b) >= 0:
		return 1
	case b < 0x80:
		return 0
	}
	r, n := utf8.DecodeLastRuneInString(t)
	return inWord(r, n)
}

// domainAt returns the length of the first character, 0 if it cannot be in a domain.
func domainAt(t string) int {
	b := t[0]
	switch {
	case isLetter(b), isDigit(b), b == '.', b == '-':
		return 1
	case b < 0x80:
		return 0
	}
	r, n := utf8.DecodeRuneInString(t)
	return inWord(r, n)
}

func inWord(r rune, n int) int {
	if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)) {
		return n
	}
	return 0
}

// isHost reports whether a domain has at least two labels, and the last one is letters and not a file name extension.
func isHost(domain string) bool {
	dot := strings.LastIndexByte(domain, '.')
	if dot < 1 || len(domain)-dot < 3 || strings.Contains(domain, "..") || domain[0] == '-' {
		return false
	}
	top := strings.ToLower(domain[dot+1:])
	if strings.HasPrefix(top, "xn--") {
		return true
	}
	for i := range len(top) {
		if (top[i] < 'a' || top[i] > 'z') && top[i] < 0x80 {
			return false
		}
	}
	return !isSuffix(top)
}

// isSuffix reports whether top is a file name extension.
func isSuffix(top string) bool {
	switch strings.ToLower(top) {
	case "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "mjs", "ts", "json", "html", "map", "woff", "tgz", "zip", "yaml", "yml", "xml", "txt", "md", "py", "csv", "log", "bak", "eml":
		return true
	}
	return false
}
