package pii

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"sallyport/internal/packed"
)

// secretRulesJSON are gitleaks' rules, see tools/secretrules.
//
//go:embed secretrules.json
var secretRulesJSON []byte

// secretRule finds keys of one service by a pattern, in texts that contain one of its keywords.
type secretRule struct {
	ID       string   `json:"id"`
	Regex    string   `json:"regex"`
	Keywords []string `json:"keywords"`
	// Group is the regexp group of the secret; 0 is the first group, or the whole match if there is none.
	Group int `json:"group"`
	// Entropy is the minimum entropy of a secret, in bits per byte.
	Entropy float64  `json:"entropy"`
	Allow   []string `json:"allow"`

	once    sync.Once
	pattern *regexp.Regexp
	allow   []*regexp.Regexp
}

// ownSecretRules are rules that gitleaks lacks.
func ownSecretRules() []*secretRule {
	return []*secretRule{
		{ID: "azure-account-key", Keywords: []string{"accountkey", "sharedaccesskey"}, Regex: `(?i)\b(?:AccountKey|SharedAccessKey)\s{0,2}=\s{0,2}([A-Za-z0-9+/]{40,88}={0,2})`},
		{ID: "discord-webhook", Keywords: []string{"/api/webhooks/"}, Regex: `https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d{17,20}/[A-Za-z0-9_-]{60,80}`},
		{ID: "authorization", Keywords: []string{"authorization"}, Regex: `(?i)\bauthorization"?\s{0,2}[:=]\s{0,2}"?(?:basic|bearer|token)\s+([A-Za-z0-9._~+/=-]{12,1000})`},
	}
}

const (
	// ruleBefore and ruleAfter bound the text around a keyword that a rule examines, in bytes.
	ruleBefore, ruleAfter = 80, 600
	// maxRuleHits bounds the keywords of one text that are examined.
	maxRuleHits = 2000
)

// secretRules indexes all rules by the first three bytes of their keywords.
type secretRules struct {
	starts [1 << 16]bool // by the first two bytes
	by     map[string][]keyword
}

type keyword struct {
	text string
	rule *secretRule
}

var loadRules = sync.OnceValue(func() *secretRules {
	var list []*secretRule
	if err := json.Unmarshal(packed.Read(secretRulesJSON), &list); err != nil {
		panic("read rules about secrets: " + err.Error()) // the file is part of the program
	}
	r := &secretRules{by: map[string][]keyword{}}
	for _, rule := range append(list, ownSecretRules()...) {
		for _, word := range rule.Keywords {
			r.starts[int(word[0])<<8|int(word[1])] = true
			r.by[word[:3]] = append(r.by[word[:3]], keyword{word, rule})
		}
	}
	return r
})

// withRules adds the findings of the rules.
func (d *Detector) withRules(text string, found []Finding) []Finding {
	if len(text) < 12 {
		return found
	}
	rules, hits := loadRules(), 0
	var own []Finding
	var small [3]byte
	for i := 0; i+3 <= len(text) && hits < maxRuleHits; i++ {
		a, b := toLower(text[i]), toLower(text[i+1])
		if !rules.starts[int(a)<<8|int(b)] {
			continue
		}
		small = [3]byte{a, b, toLower(text[i+2])}
		for _, k := range rules.by[string(small[:])] {
			if len(text)-i < len(k.text) || !strings.EqualFold(text[i:i+len(k.text)], k.text) {
				continue
			}
			hits++
			if f, ok := k.rule.find(text, i); ok && !d.allowed(Secret, text[f.Start:f.End]) {
				own = append(own, f)
			}
		}
	}
	if len(own) == 0 {
		return found
	}
	return mergeEchoes(own, found)
}

func toLower(b byte) byte {
	if isCapital(b) {
		return b + 'a' - 'A'
	}
	return b
}

// find finds a secret around a keyword at i.
func (r *secretRule) find(text string, i int) (f Finding, ok bool) {
	r.once.Do(r.compile)
	from := max(0, i-ruleBefore)
	window := text[from:min(len(text), i+ruleAfter)]
	at := r.pattern.FindStringSubmatchIndex(window)
	if at == nil {
		return f, false
	}
	group := r.Group
	if group == 0 && len(at) > 2 {
		group = 1
	}
	start, end := at[2*group], at[2*group+1]
	if start < 0 || end <= start {
		start, end = at[0], at[1]
	}
	secret := window[start:end]
	if r.Entropy > 0 && entropy(secret) < r.Entropy {
		return f, false
	}
	for _, allow := range r.allow {
		if allow.MatchString(secret) {
			return f, false
		}
	}
	return Finding{Kind: Secret, Start: from + start, End: from + end}, true
}

func (r *secretRule) compile() {
	r.pattern = regexp.MustCompile(r.Regex)
	for _, text := range r.Allow {
		r.allow = append(r.allow, regexp.MustCompile(text))
	}
}
