package process

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// informative matches a line that is likely to describe an error. The last line
	// often does not: node ends a stack trace with its own version.
	informative = regexp.MustCompile(`(?i)(error|exception|panic|fatal|cannot|can't|could not|unable|failed|denied|refused|missing|not found|no such|invalid|required)`)
	// errorLine matches the first line of an error in most languages: "Error: ...", "TypeError [CODE]: ...", "panic: ...".
	errorLine = regexp.MustCompile(`^(Uncaught |Exception in thread "[^"]*" |thread '[^']*' panicked)?([\w.]*(Error|Exception|Exit|Interrupt)( \[\w+\])?(: .|$)|(panic|fatal error|fatal|FATAL): .)`)
	// uninformative matches lines of npm, warnings and frames of stacks, which are not the reason of an end.
	uninformative = regexp.MustCompile(`(?i)^(at |npm (error|err!) (code|errno|syscall|path)|(npm )?warn|.*\bwarn(ing)?\b)`)
)

// Headline returns the line that says why the process failed: the last exception of Python, the first line of an error of
// another language, the first line that describes an error, or else the last line.
func (r *Ring) Headline() string { return headline(strings.Split(r.Tail(), "\n")) }

func headline(lines []string) string {
	if line := pythonException(lines); line != "" {
		return line
	}
	for _, find := range []func(string) bool{errorLine.MatchString, isInformative, isInformativeWarning} {
		if i := slices.IndexFunc(lines, func(line string) bool { return find(strings.TrimSpace(line)) }); i >= 0 {
			return strings.TrimSpace(lines[i])
		}
	}
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func isInformative(line string) bool {
	return informative.MatchString(line) && !uninformative.MatchString(line)
}

func isInformativeWarning(line string) bool {
	return informative.MatchString(line) && !strings.HasPrefix(line, "at ")
}

// pythonException returns the first line of the exception after the last traceback, "" if there is none.
func pythonException(lines []string) string {
	last := -1
	for i, line := range lines {
		if strings.HasSuffix(strings.TrimSpace(line), "Traceback (most recent call last):") {
			last = i
		}
	}
	if last < 0 {
		return ""
	}
	for _, line := range lines[last+1:] {
		if line != "" && !strings.HasPrefix(line, " ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
