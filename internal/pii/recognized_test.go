package pii_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/pii"
)

// FuzzProse: whatever a document is, a recognizer is asked about every text in which its findings are then looked up:
// one that is missed would pass with its names.
func FuzzProse(f *testing.F) {
	seeds(f)
	for _, s := range []string{
		"Dear Ann Lee,\nname,note\nx,\"met Ann Lee, twice\"\n\n{\"a\": \"Ann Lee too\"}\nend of it", `{"a b":"c d","list":["x y",{"k":"{\"inner\":\"two words\"}"}]}`,
		"| Name | Note |\n|---|---|\n| Ann Lee | of old |\n", "Name: Ann Lee\nStreet: Lee Road 7\n", "a\tb c\nd e\tf\n",
	} {
		f.Add(s)
	}
	d, err := pii.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	fields, err := pii.ParseFields([]string{"$.a", "$..k"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, fields := range []*pii.Fields{nil, fields} {
			for name, walk := range map[string]func(*pii.Look, pii.Swap){
				"text": func(l *pii.Look, s pii.Swap) { d.Replace(text, l, s) },
				"JSON": func(l *pii.Look, s pii.Swap) { d.ReplaceJSON(json.RawMessage(text), l, s) },
			} {
				if name == "JSON" && !json.Valid([]byte(text)) {
					continue
				}
				var asked pii.Texts
				walk(d.Prose(&asked), nil)
				known := map[string]bool{}
				for _, one := range asked.List {
					known[one] = true
				}
				walk(&pii.Look{Fields: fields, Recognized: func(one string) []pii.Finding {
					if pii.IsProse(one) && !known[one] {
						t.Errorf("%s: nobody was asked about %q of %q", name, one, text)
					}
					return []pii.Finding{{Kind: pii.Name, Start: 0, End: len(one)}}
				}}, tokens(pii.NewVault()))
			}
		}
	})
}

// TestRecognized: what was recognized gets tokens where nothing else was found, without signs around it.
func TestRecognized(t *testing.T) {
	t.Parallel()
	d, err := pii.New(&pii.Options{Allow: []string{"York"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string
		parts      []string
	}{
		{"Ann Lee, York", "[NAME_1], York", []string{"Ann Lee, ", "York"}},
		{"(Ann Lee) ann@corp.example x", "([NAME_1]) [EMAIL_1] x", []string{"(Ann Lee"}},
		{"from Ann ann@corp.example Lee on", "from [NAME_1] [EMAIL_1] [NAME_2] on", []string{"Ann ann@corp.example Lee"}},
		{"to ann@corp.example on", "to [EMAIL_1] on", []string{"ann@corp.example"}},
		{"it is — : … well", "it is — : … well", []string{"— : …"}},
	} {
		var found []pii.Finding
		for _, p := range c.parts {
			at := strings.Index(c.text, p)
			found = append(found, pii.Finding{Kind: pii.Name, Start: at, End: at + len(p)})
		}
		vault := pii.NewVault()
		for range 2 { // the findings are read, not changed
			got := d.Replace(c.text, &pii.Look{Recognized: func(string) []pii.Finding { return found }}, tokens(vault))
			if got != c.want {
				t.Errorf("%q: %q, want %q", c.text, got, c.want)
			}
		}
	}
}
