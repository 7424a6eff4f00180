package workers

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// maxEnvironments bounds the environments of a worker, and maxDigest the characters of each digest, so that they fit into a beat.
const maxEnvironments, maxDigest = 16, 12

var (
	environmentForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	digestForm      = regexp.MustCompile(`^[0-9a-f]{0,12}$`)
)

// environmentsOf returns the environments of a host, as a beat has them.
func environmentsOf(opts sandbox.Options) map[string]string {
	all := map[string]string{}
	for name, env := range opts.Environments {
		digest := strings.TrimPrefix(env.Digest, "sha256:")
		all[name] = digest[:min(len(digest), maxDigest)]
	}
	return all
}

// checkEnvironments checks what a worker says about its environments.
func checkEnvironments(all map[string]string) error {
	if len(all) > maxEnvironments {
		return fmt.Errorf("a worker has at most %d environments", maxEnvironments)
	}
	for name, digest := range all {
		if !environmentForm.MatchString(name) || !digestForm.MatchString(digest) {
			return errors.New("it has invalid environments")
		}
	}
	return nil
}

// hasEnvironment reports whether a worker can run programs in an environment; all have "".
func (b Beat) hasEnvironment(name string) bool {
	_, has := b.Environments[name]
	return has || name == ""
}

// maxNamed is how many workers an error names.
const maxNamed = 5

// noEnvironmentError is the error for an environment that no worker has that could run a program.
func noEnvironmentError(name string, without []string) error {
	return fmt.Errorf("no worker that takes programs has the environment %.80q (%s lack it): start one with `sallyport worker --environments FILE`", name, listNames(without))
}

// olderError is the error for a program with added packages if only workers of older builds could run it.
func olderError(older []string) error {
	return &remote.AddError{Text: fmt.Sprintf("no worker that takes programs can add packages: the sallyport of %s is older than the gateway's: update it there", listNames(older)), Final: true}
}

// listNames returns some of the names of workers, each once.
func listNames(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if len(names) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(names)-maxNamed)
	}
	return strings.Join(names[:min(len(names), maxNamed)], ", ") + more
}

// reportDifferent logs if a new worker has another environment than others of the same name. It is called with mu held.
func (p *Pool) reportDifferent(w Worker) {
	for name, digest := range w.Environments {
		for _, m := range p.members {
			if other, has := m.Environments[name]; has && other != digest {
				p.log.Info("two workers have different environments of one name", "environment", name, "worker", w.Name, "other", m.Name)
				break
			}
		}
	}
}
