package mcpserver_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/tokens"
)

// TestDefaultProfile pins what a client with default settings pays at every turn.
func TestDefaultProfile(t *testing.T) {
	t.Parallel()
	all := definitions(t, connectTo(t, upstreamList{}, ""))
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := counter.Count(all); err != nil || n != 179 {
		t.Errorf("%d tokens, %v:\n%s", n, err, all)
	}
	if names := toolNames(t, &shop{}, nil); !slices.Equal(names, []string{"execute_code", "search_tools"}) {
		t.Errorf("tools %v", names)
	}
}

// TestProfileEnvironments shows the tools about packages where nothing may be installed, too: what is there can be asked.
func TestProfileEnvironments(t *testing.T) {
	t.Parallel()
	want := []string{"check_installed_packages", "execute_code", "install_dependencies", "search_tools"}
	if diff := cmp.Diff(want, toolNames(t, &shop{}, config.Profiles{config.ProfileEnvironments})); diff != "" {
		t.Error(diff)
	}
}

func toolNames(t *testing.T, s *shop, profiles config.Profiles) (names []string) {
	t.Helper()
	list, err := connectShop(t, s, mcpserver.Options{Profiles: profiles}).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range list.Tools {
		names = append(names, def.Name)
	}
	slices.Sort(names)
	return names
}
