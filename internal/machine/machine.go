// Package machine parses the address of a machine strictly: no part of an [Address] has a meaning to a shell, or can be
// taken for an option of the program that reaches the machine.
package machine

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Kind is the program that reaches a machine.
type Kind string

// The kinds of addresses.
const (
	SSH  Kind = "ssh"  // a machine that ssh can log in to
	Lima Kind = "lima" // a virtual machine of Lima
	WSL  Kind = "wsl"  // a distribution of WSL
)

// Address is a machine, with the path of sallyport on it.
type Address struct {
	Kind Kind
	// User and Port are "" for the defaults. Only ssh has a port, and Lima has one user.
	User, Port string
	// Host is a name, including a Host alias of ssh's configuration, or an IP address; of Lima and WSL it is the name of the
	// virtual machine.
	Host string
	// Path is the path of a program there; "" for none.
	Path string
}

// No match begins like an option of ssh, or contains text that a shell or ssh expands.
var (
	sshUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
	// sshHost takes a millisecond to compile, because it counts.
	sshHost = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]|\.[A-Za-z0-9_-]){0,252}$`)
	})
	sshPath = regexp.MustCompile(`^(/[A-Za-z0-9_+.,@-]+)+$`)
)

// Parse parses ssh://[USER@]HOST[:PORT][/PATH/TO/sallyport], lima://NAME[/PATH] and wsl://[USER@]NAME[/PATH]. The error
// text continues a sentence that begins with the input.
func Parse(text string) (Address, error) {
	a, err := parse(text)
	if err != nil {
		return Address{}, fmt.Errorf("is not a machine address: %w; write ssh://[USER@]HOST[:PORT][/PATH/TO/sallyport], lima://NAME or wsl://[USER@]NAME", err)
	}
	return a, nil
}

func parse(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > 1024 {
		return Address{}, errors.New("not a URL")
	}
	a := Address{Kind: Kind(u.Scheme), User: u.User.Username(), Host: u.Hostname(), Port: u.Port(), Path: u.Path}
	if a.Path == "/" {
		a.Path = ""
	}
	if err := a.checkURL(u); err != nil {
		return Address{}, err
	}
	return a, a.check()
}

// checkURL refuses parts of a URL that an address of its kind does not have.
func (a Address) checkURL(u *url.URL) error {
	_, password := u.User.Password()
	switch {
	case !slices.Contains([]Kind{SSH, Lima, WSL}, a.Kind) || u.Opaque != "":
		return errors.New("only ssh://, lima:// and wsl:// are known")
	case password:
		return errors.New("a password cannot stand there: ssh logs in with a key")
	case a.Kind != SSH && a.Port != "", a.Kind == Lima && u.User != nil:
		return fmt.Errorf("%s takes no user or port", a.Kind)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return errors.New("nothing may follow the path")
	case u.User != nil && a.User == "" || strings.HasSuffix(u.Host, ":"):
		return errors.New("a part of it is empty")
	}
	return nil
}

func (a Address) check() error {
	port, err := strconv.Atoi(cmp.Or(a.Port, "22"))
	switch {
	case a.User != "" && !sshUser.MatchString(a.User):
		return errors.New("the user's name has other characters than letters, digits and ._-")
	case !validHost(a.Host), a.Kind != SSH && !sshHost().MatchString(a.Host):
		return errors.New("the host is not a name or address")
	case err != nil || port < 1 || port > 65535:
		return errors.New("the port is not a number from 1 to 65535")
	case a.Path != "" && (!sshPath.MatchString(a.Path) || path.Clean(a.Path) != a.Path):
		return errors.New("the path is not absolute and clean, of letters, digits and _+.,@-")
	}
	return nil
}

func validHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == "" || sshUser.MatchString(ip.Zone())
	}
	return sshHost().MatchString(host)
}

// String returns the address in the form that Parse accepts.
func (a Address) String() string {
	u := url.URL{Scheme: string(a.Kind), Host: a.Host, Path: a.Path}
	if strings.Contains(a.Host, ":") {
		u.Host = "[" + a.Host + "]"
	}
	if a.Port != "" {
		u.Host += ":" + a.Port
	}
	if a.User != "" {
		u.User = url.User(a.User)
	}
	return u.String()
}
