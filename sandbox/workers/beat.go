package workers

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/labels"
	"sallyport/internal/natsstream"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// Beat is a heartbeat: what a worker reports about itself, every few seconds.
type Beat struct {
	Version string `json:"version"`
	// Speaks are the builds of gateways that it can work with; the zero value says that it is older than this field.
	Speaks remote.Compat `json:"speaks,omitzero"`
	// Seats is how many programs it is meant to run at once, Busy how many it runs.
	Seats  int               `json:"seats"`
	Busy   int               `json:"busy"`
	Labels map[string]string `json:"labels,omitempty"`
	// Lacks are interpreters that its machine does not have.
	Lacks []sandbox.Interpreter `json:"lacks,omitempty"`
	// Services are the names of [remote.WorkerOptions].Services.
	Services []string `json:"services,omitempty"`
	// Environments are the environments that its machine has, with the beginning of [sandbox.Environment].Digest.
	Environments map[string]string `json:"environments,omitempty"`
	// Since is when it joined.
	Since time.Time `json:"since"`
	// Draining is set when it takes no more programs, Left when it ends.
	Draining bool `json:"draining,omitempty"`
	Left     bool `json:"left,omitempty"`
}

// Worker is a worker process as others see it.
type Worker struct {
	Beat

	// Name is the one that its credentials permit. Instance distinguishes its processes.
	Name     string `json:"name"`
	Instance string `json:"instance"`
	// Seen is when its last beat came.
	Seen time.Time `json:"seen"`
}

const (
	// beatInterval is how often a worker says what it is.
	beatInterval = 2 * time.Second
	// staleAfter is the age of the last beat beyond which a worker gets no programs, and goneAfter the one beyond which it is
	// forgotten.
	staleAfter = 4 * beatInterval
	goneAfter  = 15 * beatInterval
	// MaxSeats is the maximum of seats of a worker.
	MaxSeats = 1024

	maxBeat    = 4 << 10
	maxVersion = 64
	// maxBeatServices bounds the services of a worker.
	maxBeatServices = 16
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// CheckName returns an error if a worker cannot have this name.
func CheckName(name string) error {
	if nameForm.MatchString(name) {
		return nil
	}
	return fmt.Errorf(`%.40q cannot name a worker: at most 32 letters, digits, "-" and "_"`, name)
}

// parseBeat reads what a worker says about itself.
func parseBeat(data []byte) (b Beat, err error) {
	if len(data) > maxBeat {
		return b, errors.New("it is too long")
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, err
	}
	if b.Seats < 1 || b.Seats > MaxSeats || b.Busy < 0 || len(b.Version) > maxVersion {
		return b, errors.New("it has invalid values")
	}
	for _, i := range b.Lacks {
		if i != sandbox.Python && i != sandbox.Node {
			return b, errors.New("it lacks an interpreter that does not exist")
		}
	}
	if len(b.Services) > maxBeatServices || slices.ContainsFunc(b.Services, func(name string) bool { return !nameForm.MatchString(name) }) {
		return b, errors.New("it has invalid services")
	}
	if err := checkEnvironments(b.Environments); err != nil {
		return b, err
	}
	return b, labels.Check(b.Labels)
}

// subjects are the names of what gateways and workers send each other. Permissions of the servers rely on them: see
// [WorkerRights].
type subjects string

// Subjects returns the first words of all subjects of a prefix, which is that of the store. They are none of its own.
func newSubjects(prefix string) subjects { return subjects("_WORKERS." + prefix + ".") }

// ask asks all workers for a beat.
func (s subjects) ask() string { return string(s) + "ask" }

// beat carries the beats of a worker process, beats those of all.
func (s subjects) beat(name, instance string) string {
	return string(s) + "beat." + name + "." + instance
}
func (s subjects) beats() string { return s.beat("*", "*") }

// parseBeat returns the worker process of a subject.
func (s subjects) parseBeat(subject string) (name, instance string, ok bool) {
	words := strings.Split(strings.TrimPrefix(subject, string(s)), ".")
	if len(words) != 3 || words[0] != "beat" || !nameForm.MatchString(words[1]) || !natsstream.IsID(words[2]) {
		return "", "", false
	}
	return words[1], words[2], true
}

// dial asks a worker process for a link, or gives it an [Order].
func (s subjects) dial(name, instance string) string {
	return string(s) + "dial." + name + "." + instance
}

// toWorker and toGateway carry a link.
func (s subjects) toWorker(name, instance, link string) string {
	return string(s) + "in." + name + "." + instance + "." + link
}

func (s subjects) toGateway(name, instance, link string) string {
	return string(s) + "out." + name + "." + instance + "." + link
}

// Rights are the subjects that credentials permit.
type Rights struct{ Publish, Subscribe []string }

// WorkerRights returns what a worker of this name needs: it can neither read nor answer what is for another, nor reach records.
func WorkerRights(prefix, name string) Rights {
	s := newSubjects(prefix)
	return Rights{
		Publish:   []string{s.beat(name, "*"), s.toGateway(name, "*", "*")},
		Subscribe: []string{s.ask(), s.dial(name, "*"), s.toWorker(name, "*", "*")},
	}
}

// GatewayRights returns what a gateway needs in addition to the rights on its records.
func GatewayRights(prefix string) Rights {
	s := newSubjects(prefix)
	return Rights{
		Publish:   []string{s.ask(), s.dial("*", "*"), s.toWorker("*", "*", "*")},
		Subscribe: []string{s.beats(), s.toGateway("*", "*", "*")},
	}
}
