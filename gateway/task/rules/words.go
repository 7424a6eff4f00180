package rules

import (
	"regexp"
	"slices"
	"strings"
)

// text is a task, with its words.
type text struct {
	whole string
	// plain is the task without quoted texts and other data; words are its stems.
	plain string
	words []string
}

var (
	quoted   = regexp.MustCompile("\"([^\"]*)\"|“([^”]*)”|'([^']{1,200})'(?:[\\s.,;:!?)]|$)|`([^`]*)`|«([^»]*)»")
	wordLike = regexp.MustCompile(`[A-Za-z][A-Za-z]*|[0-9]+`)
	camel    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

func read(task string) text {
	plain := quoted.ReplaceAllString(task, " … ")
	plain = data.ReplaceAllString(plain, " … ")
	return text{whole: task, plain: plain, words: stems(plain)}
}

// data are parts that are values and not words: addresses, paths, dates, names with a slash.
var data = regexp.MustCompile(`https?://\S+|[\w.+-]+@[\w-]+\.[\w.-]+|(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)+/?|/[\w.-]+|\b[\w-]+\.(?:txt|md|json|csv|py|ts|js|go|ya?ml|html|pdf|png|jpg|log|toml|xml)\b|\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?\b`)

// stems returns the stems of the words of a text or a name.
func stems(s string) (all []string) {
	for _, w := range wordLike.FindAllString(camel.ReplaceAllString(s, "$1 $2"), 2000) {
		all = append(all, stem(strings.ToLower(w)))
	}
	return all
}

// stem removes the endings of English words.
func stem(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 4 && (strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "ches") || strings.HasSuffix(w, "shes") || strings.HasSuffix(w, "xes")):
		return w[:len(w)-2]
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		return w[:len(w)-1]
	}
	return w
}

// class returns the class of what a verb does, "" for other words.
func class(word string) string { return verbTable[word] }

var verbTable = tableOf(map[string]string{
	"read":   "get list show read fetch find search lookup display view print give retrieve query describe what which where who look browse see tell check load",
	"create": "create add make new write insert post open append put store save record register",
	"update": "update edit change set rename modify replace adjust patch",
	"delete": "delete remove drop erase destroy clear purge",
	"send":   "send mail notify email forward reply publish",
	"move":   "move transfer",
	"copy":   "copy duplicate fork clone",
	"close":  "close finish complete resolve",
	"run":    "run execute start launch trigger call invoke",
	"stop":   "stop cancel abort kill terminate",
	"merge":  "merge join",
	"count":  "count",
	"draw":   "draw plot generate render",
})

func tableOf(classes map[string]string) map[string]string {
	all := map[string]string{}
	for name, words := range classes {
		for w := range strings.FieldsSeq(words) {
			all[stem(w)] = name
		}
	}
	return all
}

// stop are words that say nothing about what is meant.
var stop = tableOf(map[string]string{"stop": "a an the of in on at to for from with by and or is are was be it its this that these those my me i we our you your please can could would do does did has have " +
	"all any some there into as about named called using use via through want need like them their his her up out entire complete full content contents details detail info information current new " +
	"s t don let us which what who where one under given following"})

// beyondWords are words for work that a call does not do.
var beyondWords = []string{
	"average", "mean", "median", "sum", "total", "largest", "biggest", "highest", "lowest", "smallest", "most", "least", "fewest", "oldest", "newest", "longest", "shortest",
	"sort", "sorted", "compare", "group", "grouped", "except", "without", "unless", "if", "then", "otherwise", "twice", "summarize", "summarise", "summary", "translate", "difference", "duplicates", "both",
	"not", "never", "more than", "less than", "fewer than", "greater than", "how many", "how much", "at least", "at most", "per", "each", "every", "whose", "only", "cheaper", "older", "newer", "over", "between", "percentage", "ratio",
	"explain", "why", "recommend", "suggest", "improve", "fix", "best", "worst", "top", "two", "three", "instead",
}

// beyond returns a word of the task that asks for more than calls, "" for none. Words of the tool's own name and parameters do not count.
func (t text) beyond(best match, steps []step) string {
	names := append(keysOf(best.tool), best.tool.ID.Name)
	for _, s := range steps {
		names = append(names, s.tool.ID.Name)
	}
	own := strings.ToLower(strings.Join(names, " "))
	lower := " " + strings.Join(strings.FieldsFunc(strings.ToLower(t.plain), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }), " ") + " "
	for _, w := range beyondWords {
		if strings.Contains(lower, " "+w+" ") && !strings.Contains(own, w) {
			return w
		}
	}
	for _, w := range t.words {
		if c := class(w); c != "" && c != best.class && !slices.Contains(best.words, w) && acts[c] {
			return w
		}
	}
	return ""
}

// acts are the classes of words that are rarely anything but verbs.
var acts = map[string]bool{"delete": true, "send": true, "move": true, "copy": true, "create": true, "update": true, "merge": true, "stop": true}
