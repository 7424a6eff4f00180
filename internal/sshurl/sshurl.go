// Package sshurl parses the ssh address of a machine strictly: no part of an [Address] has a meaning to a shell, or
// can be taken for an option of ssh.
package sshurl

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Address is a machine that ssh can log in to, with the path of sallyport on it.
type Address struct {
	// User and Port are "" for ssh's defaults.
	User, Port string
	// Host is a name, including a Host alias of ssh's configuration, or an IP address.
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

// Parse parses ssh://[USER@]HOST[:PORT][/PATH/TO/sallyport]. The error text continues a sentence that begins with the
// input.
func Parse(text string) (Address, error) {
	a, err := parse(text)
	if err != nil {
		return Address{}, fmt.Errorf("is not a machine address: %w; write ssh://[USER@]HOST[:PORT][/PATH/TO/sallyport]", err)
	}
	return a, nil
}

func parse(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > 1024 {
		return Address{}, errors.New("not a URL")
	}
	a := Address{User: u.User.Username(), Host: u.Hostname(), Port: u.Port(), Path: u.Path}
	if a.Path == "/" {
		a.Path = ""
	}
	_, password := u.User.Password()
	switch {
	case u.Scheme != "ssh" || u.Opaque != "":
		return Address{}, errors.New("only ssh:// is known")
	case password:
		return Address{}, errors.New("a password cannot stand there: ssh logs in with a key")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return Address{}, errors.New("nothing may follow the path")
	case u.User != nil && a.User == "" || strings.HasSuffix(u.Host, ":"):
		return Address{}, errors.New("a part of it is empty")
	}
	return a, a.check()
}

func (a Address) check() error {
	port, err := strconv.Atoi(cmp.Or(a.Port, "22"))
	switch {
	case a.User != "" && !sshUser.MatchString(a.User):
		return errors.New("the user's name has other characters than letters, digits and ._-")
	case !validHost(a.Host):
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
	u := url.URL{Scheme: "ssh", Host: a.Host, Path: a.Path}
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
