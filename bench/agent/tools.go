package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sallyport/bench/suite"
)

// Setup configures the tools of one mode.
type Setup struct {
	World *suite.World
	// Upstreams are the names of the servers that are started, of [suite.World.Servers].
	Upstreams []string
	// More are shown next to them.
	More []Catalogue
	// Sallyport is the binary, for [suite.Code]; runsc lies next to it.
	Sallyport string
	// Cache is a folder that several may share, one after the other or at once: snapshots of interpreters, which make
	// [suite.Code] start faster and change no answer. "" is none.
	Cache string
	// Finds is how many tools a search of [suite.Search] shows at most; 0 is 5.
	Finds int
}

// Open is tools with servers that run until they are closed.
type Open interface {
	Tools
	// Close ends the servers and waits for them.
	Close() error
}

// OpenTools starts what one mode needs, and returns when everything is there to be called, or when ctx ends before.
// What it opened lives until it is closed, however long ctx does.
func OpenTools(ctx context.Context, mode suite.Mode, setup Setup) (Open, error) {
	servers, err := setup.servers()
	if err != nil {
		return nil, err
	}
	if mode == suite.Code {
		return openOrNil(openCode(ctx, setup, servers))
	}
	direct, err := openDirect(ctx, setup, servers)
	if err != nil || mode == suite.Direct {
		return openOrNil(direct, err)
	}
	return openOrNil(openSearch(direct, cmp.Or(setup.Finds, finds)))
}

// names are those of everything that has tools.
func (s Setup) names() []string {
	all := slices.Clone(s.Upstreams)
	for _, c := range s.More {
		if len(c.Tools) > 0 {
			all = append(all, c.Name)
		}
	}
	return all
}

// openOrNil returns an untyped nil if there is an error.
func openOrNil(tools Open, err error) (Open, error) {
	if err != nil {
		return nil, err
	}
	return tools, nil
}

func (s Setup) servers() (list []suite.Server, err error) {
	all := s.World.Servers()
	for _, name := range s.Upstreams {
		i := slices.IndexFunc(all, func(s suite.Server) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("open tools: there is no server %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}
