package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/tokens"
)

// shop answers what it was asked.
type shop struct {
	upstreamList
	ran execution.Program
}

func (s *shop) Execute(_ context.Context, p execution.Program) (execution.Result, error) {
	s.ran = p
	return execution.Result{}, nil
}

func (s *shop) InstallPackages(_ context.Context, p environments.Packages) (string, error) {
	return "install " + strings.Join(p.Names, ",") + " " + p.Language + " " + p.Environment, nil
}

func (s *shop) InstalledPackages(_ context.Context, p environments.Packages) (string, error) {
	return "check " + strings.Join(p.Names, ",") + " " + p.Language + " " + p.Environment, nil
}

func connectShop(t *testing.T, s *shop, opts mcpserver.Options) *mcp.ClientSession {
	t.Helper()
	opts.Packages = s
	return connectWith(t, s, &opts)
}

// TestPackageTools: they are there where some environment lets a model install, and take what a model is likely to write.
func TestPackageTools(t *testing.T) {
	t.Parallel()
	var ready atomic.Int32
	s := &shop{}
	client := connectShop(t, s, mcpserver.Options{
		Environments: map[string]config.Environment{"data": {Description: "pandas and numpy.", Install: true}, "default": {}},
		OnReady:      func() { ready.Add(1) },
	})
	all := definitions(t, client)
	_ = definitions(t, client)
	if ready.Load() != 1 {
		t.Errorf("told %d times that a client is ready", ready.Load())
	}
	for _, want := range []string{`"environment":{"description":"data: pandas and numpy","enum":["default","data"]}`, `"name":"install_dependencies"`, `"name":"check_installed_packages"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := counter.Count(all); err != nil || n > 640 {
		t.Errorf("%d tokens, %v", n, err)
	}
	for _, test := range []struct{ tool, args, want string }{
		{"install_dependencies", `{"packages":["a==1","b"],"environment":"data","language":"python"}`, "install a==1,b python data"},
		{"install_dependencies", `{"packages":"a"}`, "install a  "},
		{"check_installed_packages", `{}`, "check   "},
	} {
		if got, isError := call(t, client, test.tool, json.RawMessage(test.args)); isError || got != test.want {
			t.Errorf("%s(%s): %q", test.tool, test.args, got)
		}
	}
	if got, isError := call(t, client, "install_dependencies", json.RawMessage(`{"packages":[1]}`)); !isError || got != "packages must be a list of strings" {
		t.Errorf("%q", got)
	}
	call(t, client, "execute_code", json.RawMessage(`{"code":"1","session":"s","environment":"data"}`))
	if s.ran.Session != "s" || s.ran.Environment != "data" {
		t.Errorf("ran %+v", s.ran)
	}
}

// TestNoPackageTools: without an environment to choose or to install into, nothing is said of them.
func TestNoPackageTools(t *testing.T) {
	t.Parallel()
	for _, environments := range []map[string]config.Environment{nil, {"default": {}}} {
		client := connectShop(t, &shop{}, mcpserver.Options{Environments: environments})
		if all := definitions(t, client); strings.Contains(all, `"environment"`) || strings.Contains(all, "install") {
			t.Errorf("%v: %s", environments, all)
		}
	}
}
