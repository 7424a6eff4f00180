// Package webaccess describes the hosts to which programs may send HTTP requests, by tools of an upstream. Its main type is [Access].
package webaccess

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"sallyport/internal/secretvalue"
)

// Access is the key egress of an upstream. It has at least one host.
type Access struct {
	// Hosts are the hosts that programs may send requests to, as api.example.com (port 443), api.example.com:8443 or *.example.com;
	// default none. Port 80 is for http, all others are for https.
	Hosts []Host
	// PrivateHosts are such hosts with an address of a private network or of this machine; default none.
	PrivateHosts []Host
	// Budget bounds the requests of each principal in a day in UTC; default no bound.
	Budget int
}

// Host is a host that programs may send requests to. A text in its place is its name.
type Host struct {
	// Name is its name, or NAME:PORT.
	Name string
	// Methods are the methods of HTTP that requests to it may have; default GET.
	Methods []string
	// Header fields that the gateway sets in each request to the host, over https, so that programs do not have the values; default none.
	Header secretvalue.Map
}

// Get is the method of requests that only read.
const Get = "GET"

// methods are the methods that can be allowed. CONNECT and TRACE are for proxies, and HEAD and OPTIONS have no body to read.
var methods = []string{Get, "POST", "PUT", "PATCH", "DELETE"}

// All returns all hosts.
func (a Access) All() []Host { return slices.Concat(a.Hosts, a.PrivateHosts) }

// HostNames returns the names of all hosts.
func (a Access) HostNames() (names []string) {
	for _, h := range a.All() {
		names = append(names, h.Name)
	}
	return names
}

// Find returns the host with the rules for requests to a name, in lower case, and a port. A host of that name has precedence over
// those of a wildcard, then the longer wildcard. private says that it is one of PrivateHosts.
func (a Access) Find(name, port string) (found Host, private, ok bool) {
	for i, h := range a.All() {
		if h.matches(name, port) && (!ok || h.rank() > found.rank()) {
			found, private, ok = h, i >= len(a.Hosts), true
		}
	}
	return found, private, ok
}

// split returns the name and the port.
func (h Host) split() (name, port string) {
	name, port, err := net.SplitHostPort(h.Name)
	if err != nil {
		return h.Name, "443"
	}
	return name, port
}

func (h Host) matches(name, port string) bool {
	own, at := h.split()
	if below, ok := strings.CutPrefix(own, "*"); ok {
		return at == port && len(name) > len(below) && strings.HasSuffix(name, below)
	}
	return at == port && own == name
}

// rank is higher for a host that is more specific.
func (h Host) rank() int {
	name, _ := h.split()
	if strings.HasPrefix(name, "*") {
		return len(name)
	}
	return 1 << 10
}

// Allows reports whether requests to the host may have a method.
func (h Host) Allows(method string) bool { return slices.Contains(h.Methods, method) }

// Scheme returns the scheme of URLs of the host.
func (h Host) Scheme() string {
	if _, port := h.split(); port == "80" {
		return "http"
	}
	return "https"
}

// MethodProblem returns what is wrong with the methods of a host and with the item that it is about, "" if nothing is.
func (h Host) MethodProblem() (item int, message string) {
	for i, method := range h.Methods {
		switch upper := strings.ToUpper(method); {
		case slices.Contains(methods, method):
		case slices.Contains(methods, upper):
			return i, fmt.Sprintf("methods are in capital letters: write %s", upper)
		default:
			return i, fmt.Sprintf("%.20q is not one of %s", method, strings.Join(methods, ", "))
		}
	}
	return 0, ""
}

// Methods returns the methods that any host allows, in the order of [Access.All].
func (a Access) Methods() (all []string) {
	for _, method := range methods {
		if slices.ContainsFunc(a.All(), func(h Host) bool { return h.Allows(method) }) {
			all = append(all, method)
		}
	}
	return all
}

// Names returns the names of the hosts that allow one of some methods, sorted, each once.
func (a Access) Names(methods ...string) (names []string) {
	for _, h := range a.All() {
		if slices.ContainsFunc(methods, h.Allows) {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
