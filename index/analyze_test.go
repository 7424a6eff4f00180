package index

import (
	"strings"
	"testing"
)

func TestSplitNames(t *testing.T) {
	words, err := newAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"create_entities":   "creat entiti createent",
		"createEntities":    "creat entiti createent",
		"get-sum":           "get sum getsum",
		"GitHub":            "git hub github",
		"getHTTPUrl2":       "get http url 2 gethttp httpurl url2 gethttpurl2",
		"listAPIs":          "list api listapi",
		"CREATE_ISSUE":      "creat issu createissu",
		"sha256sum":         "sha 256 sum sha256 256sum sha256sum",
		"memory.read_graph": "memori read graph memoryread readgraph memoryreadgraph",
		"__x__":             "x",
		"who_am_i":          "who am i whoam ami whoami",
		"user's file":       "user file",
		"e-mail":            "e mail email",
		"Größe":             "gross",
		"naïve":             "naiv",
		"创建 日历":             "创建 日历",
		"创建日历":              "创建 建日 日历",
		"файлыUpdate":       "файлы updat файлыupdate",
		"":                  "",
		"...":               "",
	} {
		var terms []string
		for _, token := range words.name.Analyze([]byte(name)) {
			terms = append(terms, string(token.Term))
		}
		if got := strings.Join(terms, " "); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestCutLead(t *testing.T) {
	for text, want := range map[string]string{
		"Reads a file. And more.":  "Reads a file",
		"Reads a file":             "Reads a file",
		"Reads e.g. a.txt\nor not": "Reads e.g. a.txt",
		"读取一个文件的全部内容。然后返回":         "读取一个文件的全部内容",
		"v1.2 of the thing\nmore":  "v1.2 of the thing",
	} {
		if lead, rest := cutLead(text); lead != want || lead+rest != text {
			t.Errorf("%q: lead %q, rest %q", text, lead, rest)
		}
	}
}
