package addition

import (
	"strings"

	"sallyport/internal/candidate"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// Fact is a line about a server, for people.
type Fact struct{ Label, Text string }

// maxFact bounds the text of a fact, in characters.
const maxFact = 300

// About returns what a server is and who publishes it, on one clean line each. All of it is untrusted.
func About(c candidate.Candidate) (all []Fact) {
	title := c.Server
	if c.Title != "" {
		title = c.Title + " (" + c.Server + ")"
	}
	for _, f := range []Fact{{"server", title + ", from " + c.Source}, {"about", c.Description}, {"published by", c.Publisher}, {"version", c.Version}, {"source code", c.Repository}} {
		if f.Text = sanitize.Line(f.Text, maxFact); f.Text != "" {
			all = append(all, f)
		}
	}
	return all
}

// Access returns the command of an entry, and the hosts and files that it may reach.
func Access(e settingsfile.Entry) []Fact {
	switch {
	case e.Image() != "":
		return append([]Fact{{"runs image", candidate.Command(e)}}, reach(e)...)
	case e.Command != "":
		return append([]Fact{{"runs", candidate.Command(e)}}, reach(e)...)
	case e.OpenAPI != "":
		return []Fact{{"reads", e.OpenAPI}}
	case e.GraphQL != "":
		return []Fact{{"connects to", e.GraphQL + " (GraphQL)"}}
	case e.GRPC != "":
		return []Fact{{"connects to", e.GRPC + " (gRPC)"}}
	case e.Egress != nil:
		return []Fact{{"programs send", "GET requests, from the gateway"}, {"hosts", strings.Join(e.Egress.HostNames(), ", ")}}
	}
	return []Fact{{"connects to", e.URL}}
}

// NoHosts is the text about a process that may reach no host.
const NoHosts = "none"

func reach(e settingsfile.Entry) []Fact {
	if e.Isolate == nil {
		return []Fact{{"isolated", "NO: it runs with your rights, can read your files and use your network"}}
	}
	hosts := strings.Join(e.Isolate.HostNames(), ", ")
	if hosts == "" {
		hosts = NoHosts
	}
	all := []Fact{{"isolated", "yes"}, {"hosts", hosts}}
	for _, mount := range e.Isolate.Mounts {
		mode := "read only"
		if mount.Mode == config.MountWritable {
			mode = "may be changed"
		}
		all = append(all, Fact{"files", mount.Path + " (" + mode + ")"})
	}
	return all
}
