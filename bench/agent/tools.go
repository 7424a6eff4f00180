package agent

import (
	"encoding/json"

	"sallyport/bench/suite"
)

// Catalogue is a server's answer to tools/list that somebody wrote down. Its tools are shown, and not there to be called.
type Catalogue struct {
	Name, Description string
	Tools             []json.RawMessage
}

// Setup is what is behind the tools of one mode.
type Setup struct {
	World *suite.World
	// Upstreams are the names of the servers that are started, of [suite.World.Servers].
	Upstreams []string
	// More are shown beside them.
	More []Catalogue
	// Sallyport is the binary, for [suite.Code]; runsc lies beside it.
	Sallyport string
}
