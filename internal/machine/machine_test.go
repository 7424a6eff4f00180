package machine_test

import (
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/machine"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]machine.Address{
		"ssh://box":                     {Kind: machine.SSH, Host: "box"},
		"ssh://box/":                    {Kind: machine.SSH, Host: "box"},
		"ssh://me@box.example.com:2222": {Kind: machine.SSH, User: "me", Host: "box.example.com", Port: "2222"},
		"ssh://me@[2001:db8::1]:22/opt/sallyport":         {Kind: machine.SSH, User: "me", Host: "2001:db8::1", Port: "22", Path: "/opt/sallyport"},
		"ssh://10.0.0.1/home/me/.local/bin/sallyport-1.2": {Kind: machine.SSH, Host: "10.0.0.1", Path: "/home/me/.local/bin/sallyport-1.2"},
		"lima://sallyport":                                {Kind: machine.Lima, Host: "sallyport"},
		"wsl://sallyport":                                 {Kind: machine.WSL, Host: "sallyport"},
		"wsl://me@Debian-13/opt/bin/sallyport":            {Kind: machine.WSL, User: "me", Host: "Debian-13", Path: "/opt/bin/sallyport"},
	} {
		got, err := machine.Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := machine.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s: %+v, %v", text, got, again, err)
		}
	}
}

// hostile are addresses that would have ssh, or a shell at the other end, do something else.
func hostile() []string {
	return []string{
		"", "box", "http://box", "ssh:box", "ssh://", "ssh:///x", "ssh://-oProxyCommand=touch", "ssh://-l@box", "ssh://me:secret@box",
		"ssh://@box", "ssh://me@", "ssh://box:0", "ssh://box:99999", "ssh://box:x", "ssh://box:", "ssh://box?x", "ssh://box#x", "ssh://a b", "ssh://box;reboot",
		"ssh://$(reboot)", "ssh://`reboot`", "ssh://box/a b", "ssh://box/a;reboot", "ssh://box/$(reboot)", "ssh://box/a%0areboot", "ssh://box/a%20b",
		"ssh://box/../x", "ssh://box/a/../b", "ssh://box//x", "ssh://box/~/x", "ssh://box/x/", "ssh://a%0ab", "ssh://me%0a@box", "ssh://me%20x@box", "ssh://bo..x",
		"ssh://[::1%25$(x)]", "ssh://" + strings.Repeat("a", 300), "ssh://box/" + strings.Repeat("a", 2000), "ssh://%68%", "ssh://box\x00", "ssh://bóx", "ssh://box/ü",
		"lima://", "lima:sallyport", "lima://-f", "lima://me@sallyport", "lima://sallyport:22", "lima://[::1]", "lima://$(reboot)", "lima://a/b c", "lima://@a",
		"wsl://", "wsl://--shutdown", "wsl://sallyport:22", "wsl://me:x@sallyport", "wsl://-u@sallyport", "wsl://a b", "wsl://a/../b", "wsl://[::1]", "qemu://sallyport",
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range hostile() {
		if got, err := machine.Parse(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

var harmless = regexp.MustCompile(`^[A-Za-z0-9_:/][A-Za-z0-9_.,:%@+/-]*$`)

func FuzzParse(f *testing.F) {
	for _, text := range append(hostile(), "ssh://me@box:22/opt/sallyport", "ssh://[fe80::1%25eth0]/x", "wsl://me@sallyport/x") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := machine.Parse(text)
		if err != nil {
			return
		}
		for _, part := range []string{a.User, a.Host, a.Port, a.Path} {
			if part != "" && !harmless.MatchString(part) {
				t.Errorf("%q has %q", text, part)
			}
		}
		if again, err := machine.Parse(a.String()); err != nil || again != a {
			t.Errorf("%q is written as %q: %+v, %v", text, a.String(), again, err)
		}
	})
}
