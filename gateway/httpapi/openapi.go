package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/packed"
	"sallyport/internal/tool"
)

// openAPI is the complete OpenAPI 3.1 document. A test generates it from the table of routes and their types (with
// -update), and fails if it is out of date.
//
//go:embed openapi.json
var openAPI []byte

// The profiles of the document, by audience.
const (
	// The default. Clients such as Open WebUI fetch /openapi.json and turn every operation with an operationId into a tool for a
	// model, so only operations that a model should have get one.
	profileAll = ""
	// For clients that turn every operation into a tool: only operations that a model should have.
	profileTools = "tools"
	// For client generators: all operations have an operationId.
	profileClients = "clients"
)

var profiles = []string{profileTools, profileClients}

// modelMark marks an operation that a model should have as a tool, in the embedded document only.
const modelMark = "x-for-models"

// documents caches the generated documents until the guides change.
type documents struct {
	version string
	mu      sync.Mutex
	cache   map[documentKey]cachedDocument
}

// documentKey is the key of a document: told says that it has the guides, which describe the upstreams.
type documentKey struct {
	profile    string
	withGuides bool
}

type cachedDocument struct {
	guides map[string]string
	data   []byte
	tag    string
}

// get returns the document of a profile with the guides as descriptions.
func (d *documents) get(ask documentKey, guides map[string]string) (cachedDocument, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.cache[ask]; ok && maps.Equal(m.guides, guides) {
		return m, nil
	}
	data, err := document(ask.profile, d.version, guides)
	if err != nil {
		return cachedDocument{}, err
	}
	sum := sha256.Sum256(data)
	m := cachedDocument{guides: guides, data: data, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	if d.cache == nil {
		d.cache = map[documentKey]cachedDocument{}
	}
	d.cache[ask] = m
	return m, nil
}

// document generates the OpenAPI document of a profile.
func document(profile, version string, guides map[string]string) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(packed.Read(openAPI), &doc); err != nil {
		return nil, err
	}
	doc["info"].(map[string]any)["version"] = version
	paths := doc["paths"].(map[string]any)
	for path, item := range paths {
		operations := item.(map[string]any)
		for method, operation := range operations {
			if !applyProfile(operation.(map[string]any), profile, guides) {
				delete(operations, method)
			}
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

// applyProfile reports whether a profile has an operation, and adapts the operation to the profile.
func applyProfile(operation map[string]any, profile string, guides map[string]string) bool {
	forModels := operation[modelMark] == true
	delete(operation, modelMark)
	name, _ := operation["operationId"].(string)
	if guide := guides[name]; guide != "" && profile != profileClients {
		operation["description"] = guide
	}
	if !forModels && profile == profileAll {
		delete(operation, "operationId")
	}
	return forModels || profile != profileTools
}

var reference = regexp.MustCompile(`"#/components/(\w+)/(\w+)"`)

// prune removes the schemas and responses without references.
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

// serveOpenAPI serves the document. A caller with scope read gets the guides.
func (a *api) serveOpenAPI(w http.ResponseWriter, r *http.Request) error {
	ask := documentKey{profile: queryOf(r).text("profile"), withGuides: tool.May(r.Context(), tool.ScopeRead)}
	var guides map[string]string
	if ask.withGuides {
		guides = a.opts.Guides()
	}
	m, err := a.documents.get(ask, guides)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("ETag", m.tag)
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Authorization, Cookie")
	if slices.Contains(strings.Split(r.Header.Get("If-None-Match"), ", "), m.tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	write(w, http.StatusOK, "application/json", m.data)
	return nil
}
