// Command helm checks the chart in docs/deploy/helm as Helm and an API server would, with Helm's own packages: it lints
// the chart with each file of values, renders it, and decodes every manifest into the type of its kind, without unknown or
// repeated fields. For each file it prints a line of JSON with the manifests, or the error. What they mean is checked by the
// tests of cmd/sallyport, which have the gateway.
//
// With compose it reads a compose file by the parser of the specification, and prints the project as JSON.
//
//	helm CHART VALUES...
//	helm compose FILE [NAME=VALUE...]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// result is what became of one file of values.
type result struct {
	Values string `json:"values"`
	// Error says why the values are refused.
	Error string `json:"error,omitempty"`
	// Notes is what Helm prints after an installation.
	Notes string `json:"notes,omitempty"`
	// Manifests are decoded and encoded again, so they have the fields of their types.
	Manifests []manifest `json:"manifests,omitempty"`
}

// manifest is one object, with the levels of the Pod Security Standards that its pods meet.
type manifest struct {
	Object any `json:"object"`
	// Security has why the pods of the object violate a level, by the level; "" means that they meet it.
	Security map[string]string `json:"security,omitempty"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}

// run checks a chart with files of values, or a compose file.
func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: helm CHART VALUES..., or helm compose FILE [NAME=VALUE...]")
	}
	encoder := json.NewEncoder(out)
	if args[0] == "compose" {
		project, err := compose(args[1], args[2:])
		if err != nil {
			return err
		}
		return encoder.Encode(project)
	}
	for _, path := range args[1:] {
		r, err := check(args[0], path)
		if err != nil {
			r = result{Error: err.Error()}
		}
		r.Values = path
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
