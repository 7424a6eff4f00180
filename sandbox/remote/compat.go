package remote

import (
	"errors"
	"fmt"

	"sallyport/internal/sanitize"
)

// Compat says with which builds a build can work: a gateway and a worker speak the newest version of the protocol that both know. They may
// have different files of guests, which the gateway then sends to the worker.
type Compat struct {
	// Oldest is the oldest version of the protocol that the side speaks, Newest the newest; 0 is Oldest, as builds say that speak one.
	Oldest int `json:"protocol"`
	Newest int `json:"newest,omitempty"`
	// Host is the version of what a host and the files of a guest expect of each other.
	Host int `json:"host_interface,omitempty"`
}

const (
	// oldestProtocol is the oldest version of the protocol that this build speaks, that of the release before, and newestProtocol the
	// newest. A change of messages raises newestProtocol: what is new is sent only to a side that speaks it.
	oldestProtocol = 2
	newestProtocol = 5
	// guestProtocol is the first version of the protocol in which the gateway sends the files of guests.
	guestProtocol = 3
	// serviceProtocol is the first version of the protocol in which the gateway starts services.
	serviceProtocol = 4
	// addedProtocol is the first version of the protocol in which the gateway asks for environments with added packages.
	addedProtocol = 5
	// hostInterface rises when a host needs other files of guests than before, or they need another host: see TestGuestFiles.
	hostInterface = 1
)

// Here returns what this build can work with.
func Here() Compat {
	return Compat{Oldest: oldestProtocol, Newest: newestProtocol, Host: hostInterface}
}

var (
	errOlderThere = errors.New("the other side is older")
	errOlderHere  = errors.New("this side is older")
)

// Agree returns the version of the protocol that both sides speak, or an error if there is none.
func (here Compat) Agree(there Compat) (version int, err error) {
	switch newest := max(there.Oldest, there.Newest); {
	case newest < here.Oldest:
		return 0, errOlderThere
	case here.Newest < there.Oldest:
		return 0, errOlderHere
	default:
		return min(here.Newest, newest), nil
	}
}

// WorksWith reports whether a worker that speaks this may run programs of a gateway that speaks there with other files of guests.
func (here Compat) WorksWith(there Compat) bool {
	version, err := here.Agree(there)
	return err == nil && version >= guestProtocol && here.Host == there.Host
}

// agree reports whether the gateway sends the files of its guests, or returns an error that says what to do if the two sides cannot work
// together. here is this side.
func (here greeting) agree(there greeting) (sendGuest bool, err error) {
	theirs, other := sanitize.Line(there.Version, 60), there.name()
	version, err := here.Agree(there.Compat)
	sendGuest = here.Guest != there.Guest
	if err == nil && sendGuest && version >= guestProtocol {
		err = here.compareHosts(there)
	}
	switch {
	case errors.Is(err, errOlderThere):
		return false, fmt.Errorf("the %s's sallyport (%s) is older than the %s's (%s): update it there", other, theirs, here.name(), here.Version)
	case errors.Is(err, errOlderHere):
		return false, fmt.Errorf("the %s's sallyport (%s) is older than the %s's (%s): update it here", here.name(), here.Version, other, theirs)
	case sendGuest && version < guestProtocol:
		return false, fmt.Errorf("sallyport is not the same on both machines (%s at the %s, %s at the %s): install the same build on both", here.Version, here.name(), theirs, other)
	}
	return sendGuest, nil
}

// compareHosts returns which side is older if the host of one cannot run guests of the other.
func (here greeting) compareHosts(there greeting) error {
	switch {
	case there.Host < here.Host:
		return errOlderThere
	case there.Host > here.Host:
		return errOlderHere
	}
	return nil
}

func (here greeting) name() string {
	if here.Sallyport == "gateway" {
		return "gateway"
	}
	return "worker"
}
