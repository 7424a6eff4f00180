package deps

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"sallyport/internal/sanitize"
)

var (
	noMatch     = onDemand(`No matching distribution found for ([^\s]{1,100})`)
	noVersions  = regexp.MustCompile(`\(from versions: none\)`)
	fromList    = onDemand(`\(from versions: ([^)]{1,1000})\)`)
	needsPython = onDemand(`Requires-Python ([<>=!~0-9.,* ]{1,60})`)
	npmMissing  = onDemand(`'[^']{1,200}' (?:is not in (?:this|the npm) registry|could not be found)|No matching version found for [^\s]{1,200}`)
	gitSpawned  = regexp.MustCompile(`spawn git ENOENT|\bgit (?:dep preparation failed|--no-replace-objects|ls-remote)|git\+(?:ssh|https?|file)://`)
	conflicts   = onDemand(`(?s)The conflict is caused by:\s*(.{1,1000}?)\n\s*\n`)
)

// onDemand compiles an expression when it is first used: those that count take milliseconds together.
func onDemand(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// explain turns the output of pip or npm into an error that says what to do.
func explain(r driverReport, proxy *Proxy) error {
	text := r.Error
	switch {
	case r.Kind == "":
		return nil
	case r.Kind == "nopip":
		return fmt.Errorf("this machine's Python has no pip: install it (Debian: apt install python3-pip)")
	case r.Kind == "nonpm":
		return fmt.Errorf("this machine's node has no npm: install it (Debian: apt install npm)")
	case r.Kind == "driver":
		return fmt.Errorf("the program that installs failed: %s", sanitize.Line(text, 300))
	case proxy.Exhausted() || r.Kind == "space":
		return fmt.Errorf("%w: the files are larger than a layer may be", ErrLimit)
	case len(proxy.RefusedHosts()) > 0:
		return fmt.Errorf("%w: the index sends to %s, which the operator does not allow (hosts)", ErrRefused, strings.Join(firstN(proxy.RefusedHosts(), 3), ", "))
	case strings.Contains(text, "DO NOT MATCH THE HASHES") || strings.Contains(text, "EINTEGRITY"):
		return fmt.Errorf("%w: a file is not the one that the lock or the index names by its hash: %s", ErrUnsafe, errorLines(text))
	}
	return explainMissing(text)
}

func explainMissing(text string) error {
	if match := conflicts().FindStringSubmatch(text); match != nil {
		return fmt.Errorf("%w: the requirements contradict each other: %s", ErrNotFound, sanitize.Line(match[1], 400))
	}
	if match := noMatch().FindStringSubmatch(text); match != nil {
		name := sanitize.Line(match[1], 100)
		if list := fromList().FindStringSubmatch(text); list != nil && list[1] != "none" {
			versions := strings.Split(list[1], ", ")
			return fmt.Errorf("%w: no version of %s fits; there are %s", ErrNotFound, name, sanitize.Line(strings.Join(versions[max(0, len(versions)-8):], ", "), 200))
		}
		if python := needsPython().FindStringSubmatch(text); python != nil {
			return fmt.Errorf("%w: %s needs Python %s", ErrNotFound, name, sanitize.Line(python[1], 60))
		}
		if noVersions.MatchString(text) {
			return fmt.Errorf("%w: the index has no %s, or no wheel of it for this Python and system", ErrNotFound, name)
		}
	}
	if match := npmMissing().FindString(text); match != "" {
		return fmt.Errorf("%w: the registry has no such package or version: %s", ErrNotFound, sanitize.Line(match, 200))
	}
	if gitSpawned.MatchString(text) {
		return fmt.Errorf("%w: a package comes from git, and packages come from the registry only", ErrRefused)
	}
	return fmt.Errorf("%w: %s", ErrFailed, errorLines(text))
}

// errorLines returns the error messages in an output.
func errorLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "ERROR") || strings.HasPrefix(line, "npm error") || strings.HasPrefix(line, "npm ERR!") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "npm error "))
		}
	}
	if len(lines) == 0 {
		lines = []string{text[max(0, len(text)-400):]}
	}
	return sanitize.Line(strings.Join(firstN(lines, 6), " "), 500)
}

func firstN[T any](all []T, n int) []T { return all[:min(len(all), n)] }
