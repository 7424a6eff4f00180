package clients

import (
	"slices"
	"strings"
)

// serverRule is an entry of allowedMcpServers or deniedMcpServers of Claude Code: a name,
// a command with its arguments, or an address in which * is any text.
type serverRule struct {
	setting   string
	name, url string
	command   []string
}

// addRules reads the rules of settings files, of which the first is the managed one.
func (l *lists) addRules(docs []settingsDoc) {
	managedOnly := docs[0].doc["allowManagedMcpServersOnly"] == true
	for i, d := range docs {
		l.denyRules = append(l.denyRules, rulesOf(d, "deniedMcpServers")...)
		if i > 0 && managedOnly {
			continue
		}
		if list, ok := d.doc["allowedMcpServers"].([]any); ok { // an empty list allows none
			l.allowRules = append(l.allowRules, serverRule{setting: d.setting("allowedMcpServers")})
			if len(list) > 0 {
				l.allowRules = append(l.allowRules, rulesOf(d, "allowedMcpServers")...)
			}
		}
	}
}

func rulesOf(d settingsDoc, key string) []serverRule {
	list, _ := d.doc[key].([]any)
	var all []serverRule
	for _, item := range list {
		fields, _ := item.(map[string]any)
		rule := serverRule{setting: d.setting(key), command: stringsOf(fields["serverCommand"])}
		rule.name, _ = fields["serverName"].(string)
		rule.url, _ = fields["serverUrl"].(string)
		all = append(all, rule)
	}
	return all
}

// rulesBlock returns the setting of the rules that block a server, "" if none does.
func rulesBlock(deny, allow []serverRule, s rawServer) string {
	t := targetOf(s)
	if at := slices.IndexFunc(deny, t.matches); at >= 0 {
		return deny[at].setting
	}
	byName := !(t.command != "" && hasCommands(allow) || t.url != "" && hasURLs(allow))
	allowed := func(r serverRule) bool { return t.matches(r) && (byName || r.name == "") }
	if len(allow) > 0 && !slices.ContainsFunc(allow, allowed) {
		return allow[0].setting
	}
	return ""
}

// target is what rules say something about.
type target struct {
	name, url, command string
	line               []string
}

func targetOf(s rawServer) target {
	t := target{name: s.name}
	t.url, _ = s.fields["url"].(string)
	t.command, _ = s.fields["command"].(string)
	t.line = append([]string{t.command}, stringsOf(s.fields["args"])...)
	return t
}

func (t target) matches(r serverRule) bool {
	switch {
	case r.name != "":
		return r.name == t.name
	case r.url != "":
		return t.url != "" && matchURL(r.url, t.url)
	}
	return t.command != "" && len(r.command) > 0 && slices.Equal(r.command, t.line)
}

// hasCommands and hasURLs report whether a list of rules decides servers of a kind by
// more than their names.
func hasCommands(rules []serverRule) bool {
	return slices.ContainsFunc(rules, func(r serverRule) bool { return len(r.command) > 0 })
}

func hasURLs(rules []serverRule) bool {
	return slices.ContainsFunc(rules, func(r serverRule) bool { return r.url != "" })
}

// matchURL reports whether an address matches a pattern in which * is any text.
func matchURL(pattern, address string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(address, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
