package clients

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
)

// lists are the lists of a client that decide which of its servers it starts. The zero
// value starts all.
type lists struct {
	// same compares names as the client does.
	same func(a, b string) bool
	// denied servers are not started. If there is a list in allowed, only servers in one of them are.
	denied, allowed []nameList
	// denyRules and allowRules are the same with commands and addresses.
	denyRules, allowRules []serverRule
}

// nameList is a list of names of servers, and the setting that it is from.
type nameList struct {
	setting string
	names   []string
}

// blocks returns the setting by which the client does not start a server, "" if it starts it.
func (l lists) blocks(s rawServer) string {
	matches := func(list nameList) bool {
		return slices.ContainsFunc(list.names, func(name string) bool { return l.same(name, s.name) })
	}
	if l.same == nil {
		return ""
	}
	if at := slices.IndexFunc(l.denied, matches); at >= 0 {
		return l.denied[at].setting
	}
	if len(l.allowed) > 0 && !slices.ContainsFunc(l.allowed, matches) {
		return l.allowed[0].setting
	}
	return rulesBlock(l.denyRules, l.allowRules, s)
}

// deny and allow add a list of names, unless it is empty.
func (l *lists) deny(setting string, names []string) {
	if len(names) > 0 {
		l.denied = append(l.denied, nameList{setting, names})
	}
}

func (l *lists) allow(setting string, names []string) {
	if len(names) > 0 {
		l.allowed = append(l.allowed, nameList{setting, names})
	}
}

// settingsDoc is a decoded file of settings; where is empty for the file with the servers.
type settingsDoc struct {
	doc   map[string]any
	where string
}

// setting describes a key of the file.
func (d settingsDoc) setting(key string) string {
	if d.where == "" {
		return key
	}
	return key + " in " + sanitize.Line(d.where, 200)
}

// otherDoc reads a further file of a client. A file that cannot be read has no settings.
func (c Client) otherDoc(p System, file string) settingsDoc {
	read := p.ReadFile
	if read == nil {
		read = os.ReadFile
	}
	data, err := read(file)
	if err != nil {
		return settingsDoc{}
	}
	doc, err := c.document(data)
	if err != nil {
		return settingsDoc{}
	}
	return settingsDoc{doc, file}
}

// listsOf returns the lists for the servers of a file, which doc is the content of.
func (c Client) listsOf(p System, file string, doc map[string]any) lists {
	switch c.Name {
	case "gemini":
		return c.geminiLists(p, file, doc)
	case "claude-code":
		return c.claudeLists(p, file, doc)
	}
	return lists{}
}

// geminiLists returns mcp.allowed and mcp.excluded, which had other names before, and the
// servers that gemini mcp disable turned off. An allow list of a project replaces that of the user.
func (c Client) geminiLists(p System, file string, doc map[string]any) lists {
	l := lists{same: func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }}
	docs := []settingsDoc{{doc: doc}}
	if c.projectDir(file, p) != "" {
		docs = append(docs, c.otherDoc(p, c.UserFile(p)))
	}
	for _, d := range docs {
		for _, keys := range [][]string{{"mcp", "excluded"}, {"excludeMCPServers"}} {
			l.deny(d.setting(strings.Join(keys, ".")), stringsOf(valueAt(d.doc, keys...)))
		}
		for _, keys := range geminiAllowed() {
			if len(l.allowed) == 0 {
				l.allow(d.setting(strings.Join(keys, ".")), stringsOf(valueAt(d.doc, keys...)))
			}
		}
	}
	states := c.otherDoc(p, p.home(".gemini", "mcp-server-enablement.json"))
	for _, name := range slices.Sorted(maps.Keys(states.doc)) {
		if on, ok := valueAt(states.doc, name, "enabled").(bool); ok && !on {
			l.deny(states.setting("enabled"), []string{name})
		}
	}
	return l
}

func geminiAllowed() [][]string { return [][]string{{"mcp", "allowed"}, {"allowMCPServers"}} }

// claudeLists returns the lists of Claude Code: those of the project in ~/.claude.json,
// and those of its settings files. A file that is not one of its own has none.
func (c Client) claudeLists(p System, file string, doc map[string]any) lists {
	l := lists{same: func(a, b string) bool { return claudeName(a) == claudeName(b) }}
	dir, own := c.projectDir(file, p), settingsDoc{doc: doc}
	switch {
	case dir != "":
		own = c.otherDoc(p, c.UserFile(p))
	case file == c.UserFile(p):
		dir = p.Dir
	default:
		return l
	}
	fields, _ := valueAt(own.doc, "projects", dir).(map[string]any)
	project := settingsDoc{fields, own.where}
	l.deny(own.setting("disabledMcpServers"), stringsOf(own.doc["disabledMcpServers"]))
	l.deny(project.setting("disabledMcpServers"), stringsOf(fields["disabledMcpServers"]))
	docs := c.claudeSettings(p, dir)
	l.addRules(docs)
	if file != c.UserFile(p) {
		l.approvals(append(docs, project), fields["hasTrustDialogAccepted"] == true)
	}
	return l
}

var notInClaudeName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// claudeName is a name as Claude Code compares it.
func claudeName(name string) string { return notInClaudeName.ReplaceAllString(name, "_") }

// claudeSettings returns the settings files of Claude Code for a project: managed, of the
// user, of the user in the project, and the one that the project has for all.
func (c Client) claudeSettings(p System, dir string) []settingsDoc {
	managed := map[string]string{"darwin": "/Library/Application Support/ClaudeCode", "windows": `C:\Program Files\ClaudeCode`}[p.OS]
	if managed == "" {
		managed = "/etc/claude-code"
	}
	var all []settingsDoc
	for _, file := range []string{
		filepath.Join(managed, "managed-settings.json"), p.inDirOf("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
		filepath.Join(dir, ".claude", "settings.local.json"), filepath.Join(dir, ".claude", "settings.json"),
	} {
		all = append(all, c.otherDoc(p, file))
	}
	return all
}

// sharedSettings is the index of the settings in a project's repository in claudeSettings.
const sharedSettings = 3

// approvals adds the approvals of the servers in .mcp.json. Settings of the repository can
// deny, but approve only in a folder that the user trusts. Without any approval all are started.
func (l *lists) approvals(docs []settingsDoc, trusted bool) {
	var all []nameList
	decided, every := "", false
	for i, d := range docs {
		l.deny(d.setting("disabledMcpjsonServers"), stringsOf(d.doc["disabledMcpjsonServers"]))
		if i == sharedSettings && !trusted {
			continue
		}
		names := stringsOf(d.doc["enabledMcpjsonServers"])
		all = append(all, nameList{d.setting("enabledMcpjsonServers"), names})
		approve, ok := d.doc["enableAllProjectMcpServers"].(bool)
		every = every || approve
		switch {
		case decided != "":
		case len(names) > 0:
			decided = d.setting("enabledMcpjsonServers")
		case ok:
			decided = d.setting("enableAllProjectMcpServers")
		}
	}
	if decided != "" && !every {
		l.allowed = append([]nameList{{setting: decided}}, all...)
	}
}

// valueAt returns the value at the keys of nested mappings, nil if there is none.
func valueAt(doc map[string]any, keys ...string) any {
	for _, key := range keys[:len(keys)-1] {
		doc, _ = doc[key].(map[string]any)
	}
	return doc[keys[len(keys)-1]]
}
