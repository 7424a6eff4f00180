package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// serverParser converts one server of a client's settings.
type serverParser struct {
	*Reader
	client  Client
	project string // the directory of the project, "" for the user's own settings
	inputs  map[string]input
	raw     rawServer
	blocked string // why the client does not start it, "" if it does
	prefix  string // of the variables that it gets
	used    map[string]bool
	out     Server
	// local are variables that Goose sets in the entry and reads in its headers, unread those that it does not read.
	local, unread map[string]string
	// secretContext: the name of the current text marks it as secret.
	secretContext bool
}

func (r *serverParser) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.out.notes, text) {
		r.out.notes = append(r.out.notes, text)
	}
}

func (r *serverParser) server() Server {
	r.used = map[string]bool{}
	r.out = Server{Label: r.raw.name, at: r.raw.at, client: r.client.Name, getenv: r.system.Getenv}
	e := &r.out.entry
	e.Name = upstreamName(r.raw.name)
	if e.Name != r.raw.name {
		r.note("was called %q", sanitize.Line(r.raw.name, 80))
	}
	r.prefix = variableName(e.Name)
	r.flatten()
	kind := r.firstText("type", "transport")
	e.Description = description(r.firstText("description"))
	switch address := r.firstText("httpUrl", "serverUrl", "url", "uri"); {
	case isPart(kind) || r.firstText("source") == "extension":
		r.out.Skip = "part of " + r.client.Title + ", not a server"
	case r.has("command", "cmd"):
		r.stdio(e)
	case address != "":
		r.remote(e, kind, address)
	default:
		r.out.Skip = "it has no command and no URL"
	}
	r.limits(e)
	r.noteUnread()
	if r.blocked != "" {
		e.Disabled = true
		r.note("%s does not start it (%s): disabled", r.client.Title, r.blocked)
	}
	r.out.Self = isSelf(*e)
	return r.out
}

// flatten converts older formats of an entry to the current one.
func (r *serverParser) flatten() {
	for _, key := range []string{"command", "config"} {
		inner, ok := r.raw.fields[key].(map[string]any)
		if !ok {
			continue
		}
		fields := maps.Clone(r.raw.fields)
		delete(fields, key)
		maps.Copy(fields, inner)
		if path, ok := inner["path"]; ok && key == "command" {
			fields["command"] = path
			delete(fields, "path")
		}
		r.raw.fields = fields
	}
}

// isPart reports whether a type is of a built-in part of the client.
func isPart(kind string) bool {
	return slices.Contains([]string{"builtin", "platform", "frontend", "inline_python", "extension"}, kind)
}

func (r *serverParser) stdio(e *settingsfile.Entry) {
	e.Command = r.text(plainText, "", r.firstText("command", "cmd"))
	e.Args = r.args(r.list("args"))
	e.Dir = r.cwd()
	e.Env = settingsfile.Values{}
	for _, name := range r.names("env", "envs") {
		if value, ok := r.scalar(r.mapping("env", "envs")[name], "env "+name); ok && r.mayPass(name) {
			e.Env[name] = r.text(envText, name, value)
		}
	}
	r.addPassedEnv(e.Env)
	for key := range r.raw.fields {
		if slices.Contains([]string{"url", "httpUrl", "serverUrl", "uri", "headers"}, key) {
			r.note("it has a command, so its %s was left out", key)
			r.used[key] = true
		}
	}
}

// addPassedEnv adds variables that a client passes on from its own environment or keyring.
func (r *serverParser) addPassedEnv(env settingsfile.Values) {
	for _, item := range r.items("env_keys") {
		if name, _ := item.(string); r.mayPass(name) && nameOnly.MatchString(name) {
			env[name] = "${" + r.read(name) + "}"
			r.note("%s was in Goose's keyring; set the variable", name)
		}
	}
	for _, item := range r.items("env_vars") {
		name, _ := item.(string)
		if fields, ok := item.(map[string]any); ok {
			name, _ = fields["name"].(string)
			if source, _ := fields["source"].(string); source != "" && source != "local" {
				r.note("%s came from elsewhere (%s); set the variable", sanitize.Line(name, 40), sanitize.Line(source, 20))
			}
		}
		if r.mayPass(name) && nameOnly.MatchString(name) {
			env[name] = "${" + r.read(name) + "}"
		}
	}
}

func (r *serverParser) remote(e *settingsfile.Entry, kind, address string) {
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(kind)) {
	case "sse":
		e.Transport = "sse"
	case "http", "streamablehttp":
		e.Transport = "streamable"
	case "ws", "websocket":
		r.out.Skip = "it is reached over a websocket, which no MCP revision has"
	case "":
		if e.Transport = r.client.urlTransport; r.used["httpUrl"] {
			e.Transport = "streamable"
		}
	default:
		r.note("its type %q is not known; the transport is found out", sanitize.Line(kind, 20))
	}
	r.readLocal()
	r.socket(e, address)
	e.Headers = settingsfile.Values{}
	for _, name := range r.names("headers", "http_headers") {
		if value, ok := r.scalar(r.mapping("headers", "http_headers")[name], "header "+name); ok {
			e.Headers[name] = r.text(headerText, name, value)
		}
	}
	for _, name := range r.names("env_http_headers") {
		if variable, _ := r.mapping("env_http_headers")[name].(string); nameOnly.MatchString(variable) {
			e.Headers[name] = "${" + r.read(variable) + "}"
		}
	}
	if variable := r.firstText("bearer_token_env_var"); nameOnly.MatchString(variable) {
		e.Headers["Authorization"] = "Bearer ${" + r.read(variable) + "}"
	}
	r.noteLocal()
	if token := r.firstText("bearer_token"); token != "" {
		e.Headers["Authorization"] = r.text(headerText, "Authorization", "Bearer "+token)
	}
	r.oauth(e)
}

// readLocal reads the variables that Goose sets in the entry of a remote server.
func (r *serverParser) readLocal() {
	r.local, r.unread = map[string]string{}, map[string]string{}
	for _, name := range r.names("envs") {
		if value, ok := r.scalar(r.mapping("envs")[name], "env "+name); ok && nameOnly.MatchString(name) && !strings.ContainsRune(value, 0) {
			r.local[name] = value
		}
		r.unread[name] = ""
	}
}

// noteLocal adds notes about variables of a remote server that Goose would set or take from its keyring.
func (r *serverParser) noteLocal() {
	for _, item := range r.items("env_keys") {
		if name, _ := item.(string); nameOnly.MatchString(name) {
			r.note("%s was in Goose's keyring; set the variable", sanitize.Line(name, 60))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.unread)) {
		r.note("not carried over: %s of its envs", sanitize.Line(name, 60))
	}
}

// socket sets URL and Socket from an address, which may name a Unix socket.
func (r *serverParser) socket(e *settingsfile.Entry, address string) {
	if socket := r.firstText("socket"); socket != "" {
		e.Socket = r.text(plainText, "", socket)
	}
	rest, ok := strings.CutPrefix(address, "unix://")
	if !ok {
		e.URL = r.text(urlText, "", address)
		if strings.HasPrefix(address, "pipe:") {
			r.out.Skip = "it is reached over a named pipe of Windows"
		}
		return
	}
	path, route, _ := strings.Cut(rest, "#")
	e.Socket, e.URL = r.text(plainText, "", path), r.text(urlText, "", "http://localhost/"+strings.TrimPrefix(route, "/"))
}

func (r *serverParser) oauth(e *settingsfile.Entry) {
	fields := r.mapping("oauth", "auth")
	if len(fields) == 0 {
		return
	}
	word := func(keys ...string) string {
		for _, key := range keys {
			if value, _ := fields[key].(string); value != "" {
				delete(fields, key)
				return value
			}
		}
		return ""
	}
	fields = maps.Clone(fields)
	a := settingsfile.EntryAuth{ClientID: r.text(plainText, "", word("CLIENT_ID", "clientId", "client_id"))}
	a.ClientSecret = r.text(authText, r.prefix+"_CLIENT_SECRET", word("CLIENT_SECRET", "clientSecret", "client_secret"))
	for _, scope := range append(stringsOf(fields["scopes"]), r.list("scopes")...) {
		a.Scopes = append(a.Scopes, r.text(plainText, "", scope))
	}
	delete(fields, "scopes")
	if port, ok := number(fields["callbackPort"]); ok && port > 0 && port < 65536 {
		a.RedirectPort = int(port)
		delete(fields, "callbackPort")
	}
	delete(fields, "enabled")
	if a.ClientID != "" || len(a.Scopes) > 0 {
		a.Type = "oauth"
		e.Auth = &a
	}
	if _, both := e.Headers["Authorization"]; both && e.Auth != nil {
		e.Auth = nil
		r.note("its OAuth settings were left out, for it has an Authorization header")
		return
	}
	if len(fields) > 0 {
		r.note("not carried over: %s of its OAuth settings", sanitize.Line(strings.Join(slices.Sorted(maps.Keys(fields)), ", "), 120))
	}
}

// cwd returns the working directory as an absolute path, or "", as upstreams.yaml is in another directory.
func (r *serverParser) cwd() string {
	dir := r.firstText("cwd", "working_directory")
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		dir = filepath.Join(r.system.Home, rest)
	}
	text := r.text(plainText, "", dir)
	switch {
	case text == "":
		return strings.ReplaceAll(r.project, "$", "$$")
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "$") || filepath.IsAbs(text):
		return text
	case r.project != "":
		return filepath.Join(strings.ReplaceAll(r.project, "$", "$$"), text)
	}
	r.note("its cwd is relative to no folder that is known: not carried over")
	return ""
}

func (r *serverParser) limits(e *settingsfile.Entry) {
	e.Include = globs(r.list("includeTools", "enabled_tools", "available_tools"))
	e.Exclude = globs(r.list("excludeTools", "disabled_tools", "disabledTools"))
	if off, ok := r.flag("disabled"); ok && off {
		e.Disabled = true
	}
	if on, ok := r.flag("enabled"); ok && !on {
		e.Disabled = true
	}
	unit := r.client.timeoutUnit
	limit, ok := number(r.raw.fields["timeout"])
	if r.used["timeout"] = unit > 0; !ok || unit == 0 {
		unit = time.Second
		limit, ok = number(r.raw.fields["tool_timeout_sec"])
		r.used["tool_timeout_sec"] = true
	}
	if !ok {
		return
	}
	timeout := limit * float64(unit)
	if math.IsNaN(timeout) || timeout < float64(10*time.Millisecond) || timeout > float64(24*time.Hour) {
		r.note("its timeout makes no sense here: not carried over")
		return
	}
	e.Timeout = strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(time.Duration(timeout).String())
}

// globs returns globs that match the names literally.
func globs(names []string) []string {
	escape := strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`, "$", "$$")
	var all []string
	for _, name := range names {
		name, _, _ = strings.Cut(name, "(") // Gemini: tool(arguments)
		all = append(all, escape.Replace(name))
	}
	return all
}

// noteUnread notes the fields that were not read.
func (r *serverParser) noteUnread() {
	for _, quiet := range []string{"name", "display_name", "bundled", "gallery", "version", "$schema"} {
		r.used[quiet] = true
	}
	if file := r.firstText("envFile"); file != "" {
		r.note("its envFile is not read by Sallyport; set those variables, or write them under env")
	}
	var left []string
	for _, key := range slices.Sorted(maps.Keys(r.raw.fields)) {
		if value := r.raw.fields[key]; !r.used[key] && !isEmpty(value) {
			left = append(left, sanitize.Line(key, 40))
		}
	}
	if len(left) > 0 {
		r.note("not carried over: %s", sanitize.Line(strings.Join(left, ", "), 200))
	}
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// address returns the URL of the first key that has one.
func description(text string) string { return strings.ReplaceAll(sanitize.Line(text, 200), "$", "$$") }

func (r *serverParser) has(keys ...string) bool {
	for _, key := range keys {
		if text, _ := r.raw.fields[key].(string); text != "" {
			return true
		}
	}
	return false
}

// firstText returns the string of the first of the keys that has one.
func (r *serverParser) firstText(keys ...string) string {
	for _, key := range keys {
		value, there := r.raw.fields[key]
		if !there {
			continue
		}
		if text, ok := value.(string); ok && text != "" {
			r.used[key] = true
			return text
		}
	}
	return ""
}

func (r *serverParser) items(keys ...string) []any {
	for _, key := range keys {
		if list, ok := r.raw.fields[key].([]any); ok {
			r.used[key] = true
			return list
		}
	}
	return nil
}

// list returns the strings of the first of the keys that has a list.
func (r *serverParser) list(keys ...string) []string {
	var all []string
	for _, item := range r.items(keys...) {
		if text, ok := r.scalar(item, keys[0]); ok {
			all = append(all, text)
		}
	}
	return all
}

// mapping returns the mapping of the first of the keys that has one.
func (r *serverParser) mapping(keys ...string) map[string]any {
	for _, key := range keys {
		if fields, ok := r.raw.fields[key].(map[string]any); ok {
			r.used[key] = true
			return fields
		}
	}
	return nil
}

func (r *serverParser) names(keys ...string) []string {
	return slices.Sorted(maps.Keys(r.mapping(keys...)))
}

func (r *serverParser) flag(key string) (value, ok bool) {
	value, ok = r.raw.fields[key].(bool)
	r.used[key] = r.used[key] || ok
	return value, ok
}

// scalar returns a string, number or boolean as text.
func (r *serverParser) scalar(value any, what string) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool, int, int64, uint64:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	r.note("%s is not text: not carried over", sanitize.Line(what, 60))
	return "", false
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
