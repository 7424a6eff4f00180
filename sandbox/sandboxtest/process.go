package sandboxtest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// processValues match the values of attacks, by their names, that are others from a process that is no program: it has a network of
// its own, the certificates of that, and is user 0 of its sandbox, without capabilities.
var processValues = map[string]string{
	"the declared environment and no other":        `\[("[A-Z_]+=/opt/upstream/ca\.pem",|"(HOME=/home/server|LANG=C\.UTF-8|MALLOC_ARENA_MAX=1|PATH=/usr/bin|TMPDIR=/tmp)",)*("[A-Z_]+",?)*\]`,
	"capabilities are none, and setuid gives none": `\[0,"0\\n",\[\],\["0","0"\]\]`,
	"routes and interfaces are the sandbox's own":  `\[\["lo","tap0"\],\["lo:","tap0:"\],false,true\]`,
	"what waits has no network either":             `\[\["lo","tap0"\],.*,1,1\]`,
}

// harmless is how many attempts of an attack succeed in such a process, and harm nothing.
var harmless = map[string]int{
	"nothing of the root can be changed":  1, // it opens a setting of gVisor's kernel, as user 0
	"namespaces and what they would give": 3, // it is user 0 already, and changes to it
	"signals to what is not its own":      1, // a process that it started before
	"out directly":                        4, // datagrams are sent to its stack, which drops them
	"names as messages":                   3, // likewise; and its own resolv.conf
}

// AttackFromProcess runs the Python programs of attacks on the host, its kernel and its network in a process that is isolated
// without being a program, such as an upstream's. run runs one and returns its value. work is a folder of the process.
func AttackFromProcess(t *testing.T, r *Testbed, work string, run func(t *testing.T, code string) any) {
	t.Helper()
	paths, n := strings.NewReplacer("/workspace", work), 0
	for _, group := range [][]Attack{hostAttacks, kernelAttacks, networkAttacks} {
		for _, a := range group {
			if a.Python == "" || a.Status != "" {
				continue // it is about the language, or about the end of a program
			}
			n++
			t.Run(a.ID+"-"+strings.ReplaceAll(a.Name, " ", "-"), func(t *testing.T) {
				before := r.files()
				got, err := json.Marshal(run(t, paths.Replace(r.placeholders.Replace(a.Python))))
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s", got)
				a.checkProcess(t, r, string(got))
				r.checkUntouched(t, before)
			})
		}
	}
	if n < 20 {
		t.Errorf("only %d attacks", n)
	}
}

// checkProcess checks the value of an attack.
func (a Attack) checkProcess(t *testing.T, r *Testbed, got string) {
	t.Helper()
	want, other := regexp.QuoteMeta(r.placeholders.Replace(a.Value)), processValues[a.Name]
	if other != "" {
		want = other
	}
	switch {
	case a.Soft && strings.Count(got, `"ok"`) > harmless[a.Name]:
		t.Errorf("an attempt succeeded: %s", got)
	case !a.Soft && want != "" && !regexp.MustCompile("^(?:"+want+")$").MatchString(got):
		t.Errorf("the value is %s, want %s", got, want)
	}
	r.checkNoSecret(t, "the value", got)
}

// checkUntouched checks that no file of the host has changed, and that nobody was connected to.
func (r *Testbed) checkUntouched(t *testing.T, before map[string]string) {
	t.Helper()
	after := r.files()
	for path, was := range before {
		if is := after[path]; is != was {
			t.Errorf("%s was %s, is %s", path, was, is)
		}
	}
	for _, trap := range r.traps {
		if hits := trap.hits.Load(); hits > 0 {
			t.Errorf("%d connections to %s", hits, trap.listener.Addr())
		}
	}
}
