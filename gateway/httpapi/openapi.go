package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// openAPI is the whole OpenAPI 3.1 document. A test makes it from the table of routes and the types in it (-update), and
// fails where it is not what they say.
//
//go:embed openapi.json
var openAPI []byte

// The profiles of the document: for whom it is.
const (
	// Without one: Open WebUI and its like fetch /openapi.json as it is, and make a tool for a model of every operation that has an
	// operationId: so the whole document names those only that a model should have.
	profileAll = ""
	// Others make a tool of every operation that there is.
	profileTools = "tools"
	// Who generates a client wants all operations, by name.
	profileClients = "clients"
)

var profiles = []string{profileTools, profileClients}

// modelMark marks an operation that a model should have as a tool, in the document and nowhere else.
const modelMark = "x-for-models"

// documents make each profile's document once, when it is first asked for.
func documents(version string) map[string]func() ([]byte, error) {
	all := map[string]func() ([]byte, error){}
	for _, profile := range append([]string{profileAll}, profiles...) {
		all[profile] = sync.OnceValues(func() ([]byte, error) { return document(profile, version) })
	}
	return all
}

// document is the OpenAPI document as one profile has it, with our version.
func document(profile, version string) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		return nil, err
	}
	doc["info"].(map[string]any)["version"] = version
	paths := doc["paths"].(map[string]any)
	for path, item := range paths {
		operations := item.(map[string]any)
		for method, one := range operations {
			operation := one.(map[string]any)
			switch tool := operation[modelMark] == true; {
			case !tool && profile == profileTools:
				delete(operations, method)
			case !tool && profile == profileAll:
				delete(operation, "operationId")
			}
			delete(operation, modelMark)
		}
		if len(operations) == 0 {
			delete(paths, path)
		}
	}
	if err := prune(doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

var reference = regexp.MustCompile(`"#/components/(\w+)/(\w+)"`)

// prune takes out the schemas and responses that nothing refers to.
func prune(doc map[string]any) error {
	components := doc["components"].(map[string]any)
	seen := map[string]bool{}
	var follow func(part any) error
	follow = func(part any) error {
		data, err := json.Marshal(part)
		if err != nil {
			return err
		}
		for _, found := range reference.FindAllStringSubmatch(string(data), -1) {
			if name := found[1] + "/" + found[2]; !seen[name] {
				seen[name] = true
				if err := follow(components[found[1]].(map[string]any)[found[2]]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := follow(doc["paths"]); err != nil {
		return err
	}
	for _, kind := range []string{"schemas", "responses"} {
		of := components[kind].(map[string]any)
		for name := range of {
			if !seen[kind+"/"+name] {
				delete(of, name)
			}
		}
	}
	return nil
}

// serveOpenAPI gives the document.
func (a *api) serveOpenAPI(w http.ResponseWriter, r *http.Request) error {
	data, err := a.documents[queryOf(r).text("profile")]()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-cache")
	if slices.Contains(strings.Split(r.Header.Get("If-None-Match"), ", "), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	write(w, http.StatusOK, "application/json", data)
	return nil
}
