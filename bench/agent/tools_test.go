package agent_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/bench/agent"
	"sallyport/bench/suite"
	"sallyport/internal/testutil"
)

// What cannot be opened says why, in one error, and leaves nothing running.
func TestWhatCannotBeOpened(t *testing.T) {
	testutil.Program(t, "node")
	dir := t.TempDir()
	w, err := suite.NewWorld(dir, filepath.Join(dir, "no-modules"))
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	broken := []agent.Catalogue{{Name: "broken", Tools: crm().Tools[:1:1]}}
	broken[0].Tools = append(broken[0].Tools, []byte(`{"name": 1}`))
	for name, test := range map[string]struct {
		mode     suite.Mode
		setup    agent.Setup
		canceled bool
		want     string
	}{
		"a server that there is not":     {suite.Direct, agent.Setup{Upstreams: []string{"other"}}, false, `there is no server "other"`},
		"a server that is not installed": {suite.Search, agent.Setup{Upstreams: []string{"memory"}}, false, "Cannot find module"},
		"a catalogue that is none":       {suite.Direct, agent.Setup{More: broken}, false, "catalogue broken: read definition"},
		"a binary that is not there":     {suite.Code, agent.Setup{Sallyport: filepath.Join(dir, "sallyport")}, false, "start sallyport: "},
		"when somebody interrupts":       {suite.Direct, agent.Setup{Upstreams: []string{"memory"}}, true, "context canceled"},
	} {
		test.setup.World = w
		ctx := t.Context()
		if test.canceled {
			ctx = canceled
		}
		if tools, err := agent.OpenTools(ctx, test.mode, test.setup); err == nil || tools != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	testutil.NoProcesses(t, dir)
}
