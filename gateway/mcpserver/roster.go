package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"sallyport/gateway/catalog"
	"sallyport/gateway/mcpserver/naming"
	"sallyport/internal/jsonedit"
	"sallyport/internal/mcpapp"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// roster is an immutable snapshot of the lists that direct mode exposes.
type roster struct {
	// lists holds the entries of each list method, sorted by key.
	lists map[string][]entry
	// tools and prompts are keyed by the names that clients see; prompt IDs have the names on the wire.
	tools, prompts map[string]tool.ID
	// toolIDs and promptIDs are keyed by "upstream.name", which is always accepted too:
	// wrappers outside of a sandbox know no other name.
	toolIDs, promptIDs map[string]tool.ID
	// appTools holds the tools that interfaces may call, by their own names, which are all that interfaces know.
	appTools map[string][]tool.ID
	// byTool has the entries of tools.
	byTool map[tool.ID]entry
	// resources holds the upstream of each listed URI; templates are tried after that.
	resources map[string]string
	templates []template
	// capabilities are the capabilities of each upstream, in the order of the settings.
	capabilities []capabilities
	// unknown reports that the offer of some upstream is not known yet; it may have all capabilities.
	unknown bool
	// instructions of the upstreams that have some.
	instructions []instructions
}

// entry is one entry of a list.
type entry struct {
	key string // its shown name or URI
	raw json.RawMessage
	// id is what policy checks when it is used: a tool, or the method of its upstream.
	id tool.ID
	// headers reports that its schema repeats arguments in HTTP headers.
	headers bool
	// text is the definition of a tool for clients that show no interfaces (MCP Apps); appOnly hides it from them.
	text    json.RawMessage
	appOnly bool
}

// template matches URIs of an upstream that are in no list.
type template struct {
	upstream string
	pattern  *uritemplate.Template
}

// capabilities holds the capabilities of one upstream.
type capabilities struct {
	upstream                      string
	Prompts, Completions, Logging json.RawMessage
	Extensions                    object
	Resources                     *struct{ Subscribe bool }
}

// uriPrefix is the prefix of a resource URI that more than one upstream has: it is
// followed by the upstream's ID, a slash, and the URI.
const uriPrefix = "sallyport://"

func newRoster(offers []catalog.UpstreamOffer, prefix bool, log *slog.Logger) *roster {
	r := &roster{lists: map[string][]entry{}, tools: map[string]tool.ID{}, prompts: map[string]tool.ID{}, toolIDs: map[string]tool.ID{}, promptIDs: map[string]tool.ID{}, byTool: map[tool.ID]entry{}, appTools: map[string][]tool.ID{}, resources: map[string]string{}}
	build := &rosterBuilder{roster: r, tools: naming.New(prefix), prompts: naming.New(prefix), uris: map[string]bool{}, log: log}
	for _, up := range offers {
		build.upstream(up)
	}
	for _, list := range r.lists {
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	}
	for _, up := range offers {
		if text := strings.TrimSpace(sanitize.Text(up.Offer.Server.Instructions, maxInstructions)); text != "" {
			r.instructions = append(r.instructions, instructions{up.ID, text, up.Offer.Tools})
		}
	}
	return r
}

// rosterBuilder is a roster under construction.
type rosterBuilder struct {
	*roster
	tools, prompts *naming.Namer
	uris           map[string]bool
	log            *slog.Logger
}

func (b *rosterBuilder) upstream(up catalog.UpstreamOffer) {
	for _, t := range up.Offer.Tools {
		b.tool(t)
	}
	b.addAppTools(up.ID, up.Offer.Tools)
	names := make([]string, len(up.Offer.Prompts))
	for i, p := range up.Offer.Prompts {
		names[i] = p.Name
	}
	ids := tool.Identifiers(names)
	for i, p := range up.Offer.Prompts {
		b.prompt(tool.ID{Upstream: up.ID, Name: ids[i]}, p)
	}
	for _, res := range up.Offer.Resources {
		b.resource(up.ID, tool.ListResources, "uri", res.URI, res.Raw)
	}
	for _, t := range up.Offer.Templates {
		if pattern, err := uritemplate.New(t.URI); err == nil {
			b.templates = append(b.templates, template{up.ID, pattern})
		}
		b.resource(up.ID, tool.ListTemplates, "uriTemplate", t.URI, t.Raw)
	}
	a := capabilities{upstream: up.ID}
	_ = json.Unmarshal(up.Offer.Server.Capabilities, &a) // invalid capabilities count as none
	if up.Unknown {
		b.unknown, a = true, allCapabilities(up.ID)
	}
	b.capabilities = append(b.capabilities, a)
}

// allCapabilities returns all capabilities, which an unknown upstream may have.
func allCapabilities(upstream string) capabilities {
	some := json.RawMessage("{}")
	return capabilities{upstream: upstream, Prompts: some, Completions: some, Logging: some, Resources: &struct{ Subscribe bool }{true}}
}

func (b *rosterBuilder) tool(t tool.Tool) {
	shown, clash := b.tools.Name(t.ID, t.Wire)
	if clash {
		b.log.Warn("another upstream has a tool of this name", "tool", t.ID.String(), "shown", shown)
	}
	raw, err := jsonedit.Edit(t.Raw, withoutTask(t.Raw, object{"name": encode(shown)}))
	if err != nil {
		return // not an object: it was not sent by an upstream
	}
	app, err := mcpapp.Rewrite(t.ID.Upstream, raw)
	if err != nil {
		return // as above
	}
	b.roster.tools[shown], b.toolIDs[t.ID.String()] = t.ID, t.ID
	b.byTool[t.ID] = entry{shown, app.Shown, t.ID, strings.Contains(string(t.Input), "x-mcp-header"), app.Text, app.AppOnly}
	b.add("tools/list", b.byTool[t.ID])
}

// withoutTask adds to the changed members of a tool that it is called without a task: the gateway waits for those of upstreams.
func withoutTask(definition json.RawMessage, changed object) object {
	var declared struct {
		Execution json.RawMessage `json:"execution"`
	}
	if !bytes.Contains(definition, []byte("taskSupport")) || json.Unmarshal(definition, &declared) != nil {
		return changed
	}
	if execution, err := jsonedit.Edit(declared.Execution, object{"taskSupport": encode("forbidden")}); err == nil {
		changed["execution"] = execution
	}
	return changed
}

func (b *rosterBuilder) prompt(id tool.ID, p tool.Prompt) {
	shown, clash := b.prompts.Name(id, p.Name)
	if clash {
		b.log.Warn("another upstream has a prompt of this name", "upstream", id.Upstream, "shown", shown)
	}
	raw, err := jsonedit.Edit(p.Raw, object{"name": encode(shown)})
	if err != nil {
		return
	}
	wire := tool.ID{Upstream: id.Upstream, Name: p.Name}
	b.roster.prompts[shown], b.promptIDs[wire.String()] = wire, wire
	b.add(tool.ListPrompts, entry{key: shown, raw: raw, id: tool.ID{Upstream: id.Upstream, Name: tool.GetPrompt}})
}

// resource lists a resource or a template. The first upstream with a URI keeps
// it; those of the others get a prefix. The prefixed URI is always accepted. The URI
// of an interface (MCP Apps) always names its upstream.
func (b *rosterBuilder) resource(upstream, method, member, uri string, raw json.RawMessage) {
	shown := uri
	switch {
	case mcpapp.IsURI(uri):
		var ok bool
		if shown, ok = mcpapp.ShownURI(upstream, uri); !ok {
			b.log.Warn("skip interface with an invalid URI", "upstream", upstream, "uri", sanitize.Line(uri, 200))
			return
		}
	case b.uris[method+shown]:
		shown = uriPrefix + upstream + "/" + uri
		b.log.Warn("another upstream has this resource", "upstream", upstream, "shown", sanitize.Line(shown, 200))
	}
	if shown != uri {
		raw, _ = jsonedit.Edit(raw, object{member: encode(shown)}) // nil if it is not an object
	}
	if len(raw) == 0 || b.uris[method+shown] {
		return
	}
	b.uris[method+shown] = true
	if method == tool.ListResources {
		b.resources[shown] = upstream
	}
	b.add(method, entry{key: shown, raw: raw, id: tool.ID{Upstream: upstream, Name: tool.ReadResource}})
}

func (b *rosterBuilder) add(method string, e entry) { b.lists[method] = append(b.lists[method], e) }

// resourceUpstream finds the upstream of a resource, and its URI there: the one that lists it, or
// has a template for it, or else the only upstream that has resources at all.
func (r *roster) resourceUpstream(uri string) (upstream, wire string, ok bool) {
	if mcpapp.IsURI(uri) {
		upstream, wire, ok = mcpapp.SplitURI(uri)
		return upstream, wire, ok && r.hasUpstream(upstream)
	}
	if rest, cut := strings.CutPrefix(uri, uriPrefix); cut {
		id, inner, _ := strings.Cut(rest, "/")
		if r.hasUpstream(id) {
			return id, inner, true
		}
	}
	if up, listed := r.resources[uri]; listed {
		return up, uri, true
	}
	for _, t := range r.templates {
		if len(uri) < 8<<10 && t.pattern.Match(uri) != nil {
			return t.upstream, uri, true
		}
	}
	var only []string
	for _, a := range r.capabilities {
		if a.Resources != nil {
			only = append(only, a.upstream)
		}
	}
	if len(only) == 1 {
		return only[0], uri, true
	}
	return "", "", false
}

// templateUpstream finds the upstream of a template, and its URI there, or those of a resource.
func (r *roster) templateUpstream(uri string) (upstream, wire string, ok bool) {
	if mcpapp.IsURI(uri) {
		return r.resourceUpstream(uri)
	}
	for _, t := range r.templates {
		if t.pattern.Raw() == uri {
			return t.upstream, uri, true
		}
	}
	return r.resourceUpstream(uri)
}

// hasUpstream reports whether an upstream has anything in the lists, or may have.
func (r *roster) hasUpstream(id string) bool {
	return slices.ContainsFunc(r.capabilities, func(a capabilities) bool { return a.upstream == id })
}

// has reports whether any upstream has a capability.
func (r *roster) has(can func(a capabilities) bool) bool {
	return slices.ContainsFunc(r.capabilities, can)
}

// lacks reports whether no upstream has a capability that is needed; nil is none.
func (r *roster) lacks(can func(a capabilities) bool) bool { return can != nil && !r.has(can) }

func hasPrompts(a capabilities) bool     { return len(a.Prompts) > 0 }
func hasResources(a capabilities) bool   { return a.Resources != nil }
func hasCompletions(a capabilities) bool { return len(a.Completions) > 0 }
func hasLogging(a capabilities) bool     { return len(a.Logging) > 0 }
func hasApps(a capabilities) bool        { return len(a.Extensions[mcpapp.Extension]) > 0 }
func hasSubscribe(a capabilities) bool   { return a.Resources != nil && a.Resources.Subscribe }

// capabilitiesOf returns the capabilities of an upstream.
func (r *roster) capabilitiesOf(upstream string) capabilities {
	for _, a := range r.capabilities {
		if a.upstream == upstream {
			return a
		}
	}
	return capabilities{}
}

// pageSize is how many entries a page of a list has.
const pageSize = 1000

// page returns one page of a list and the cursor of the next, "" if there is none.
func (r *roster) page(method, cursor string) (entries []entry, next string) {
	list := r.lists[method]
	if cursor != "" { // the key of the last entry of the previous page, which may have been removed
		at, found := slices.BinarySearchFunc(list, cursor, func(e entry, key string) int { return cmp.Compare(e.key, key) })
		if found {
			at++
		}
		list = list[at:]
	}
	if len(list) > pageSize {
		list = list[:pageSize]
		next = list[pageSize-1].key
	}
	return list, next
}

const (
	maxInstructions    = 2000  // characters of one upstream
	maxAllInstructions = 16000 // of all
)

// instructions are those of one upstream with these tools.
type instructions struct {
	upstream, text string
	tools          []tool.Tool
}

// instructionsOf joins the instructions of upstreams, each prefixed with its ID. It leaves out upstreams of which all tools are denied.
func instructionsOf(all []instructions, denied func(tool.ID) bool) string {
	var b strings.Builder
	for _, up := range all {
		if !catalog.AllDenied(up.tools, denied) && b.Len()+len(up.text) < maxAllInstructions {
			fmt.Fprintf(&b, "%s: %s\n", up.upstream, up.text)
		}
	}
	return strings.TrimSpace(b.String())
}
