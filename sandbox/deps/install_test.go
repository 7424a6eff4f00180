package deps_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

func TestInstallPython(t *testing.T) {
	installer, host, _ := newInstaller(t, deps.Options{})
	index := newIndex(t)
	index.offer("greeting", "1.0", []string{"words>=2"}, member{"greeting/__init__.py", "import words\nhello = words.hello + '!'\n"})
	index.offer("greeting", "0.9", nil, member{"greeting/__init__.py", "hello = 'old'\n"})
	index.offer("words", "2.1", nil, member{"words.py", "hello = 'hello'\n"})
	request := deps.Request{Interpreter: sandbox.Python, Packages: []string{"Greeting >= 0.5"}, Index: index.url()}
	layer, err := installer.Install(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var env sandbox.Environment
	layer.AddTo(&env)
	if got := evaluate(t, host, env, "import greeting, sys; print(greeting.hello, greeting.__cached__)"); !strings.HasPrefix(got, "hello! /opt/packages/python/greeting/__pycache__/") {
		t.Errorf("the program says %q", got)
	}
	t.Log(string(layer.Lock.JSON()), index.requests())
}

// registry is npm's own on this machine, as its settings say.
func registry(t *testing.T) string {
	t.Helper()
	testutil.Program(t, "npm")
	out, err := exec.CommandContext(t.Context(), "npm", "config", "get", "registry").Output()
	if err != nil {
		t.Skipf("npm does not say its registry: %v", err)
	}
	address := strings.TrimSpace(string(out))
	response, err := http.Get(address)
	if err != nil {
		t.Skipf("npm's registry cannot be reached: %v", err)
	}
	response.Body.Close()
	return address
}

func TestInstallNPM(t *testing.T) {
	registry := registry(t)
	installer, host, _ := newInstaller(t, deps.Options{})
	request := deps.Request{Interpreter: sandbox.Node, Packages: []string{"is-odd@^3.0.1", "ms@2.1.3"}, Index: registry}
	layer, err := installer.Install(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var env sandbox.Environment
	layer.AddTo(&env)
	code := "import odd from 'is-odd'; import ms from 'ms'; console.log(odd(3), ms('2 days'))"
	if got := evaluateNode(t, host, env, code); got != "true 172800000" {
		t.Errorf("the program says %q", got)
	}
	want := []deps.Package{{Name: "is-number", Version: "6.0.0"}, {Name: "is-odd", Version: "3.0.1"}, {Name: "ms", Version: "2.1.3"}}
	if diff := cmp.Diff(want, layer.Packages); diff != "" {
		t.Error(diff)
	}
}
