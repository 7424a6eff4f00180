package pii_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/internal/pii"
)

// What a text becomes, kind by kind, and what stays as it is.
func TestReplace(t *testing.T) {
	d := detector(t, &pii.Options{Custom: map[string]*regexp.Regexp{"staff": regexp.MustCompile(`\bE-\d{4}\b`)}, Allow: []string{"help@corp.example", "public.example", "10.0.*"}})
	fields, err := pii.ParseFields([]string{"$.owner", "$.list[*].tag"})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"Ann <ann@corp.example>, ann@corp.example":                                               "Ann <[EMAIL_1]>, [EMAIL_1]",
		"ann@corp.example ANN@corp.example":                                                      "[EMAIL_1] [EMAIL_1_2]",
		"help@corp.example me@public.example a@sub.public.example 10.0.0.9 10.1.0.9":             "help@corp.example me@public.example a@sub.public.example 10.0.0.9 [IP_1]",
		"staff E-1234, visa 4111 1111 1111 1111":                                                 "staff [STAFF_1], visa [CARD_1]",
		`{"phone":4155552671,"id":4155552671}`:                                                   `{"phone":"[PHONE_1]","id":4155552671}`,
		`{"phones":["020 7946 0823"],"a@b.io":1}`:                                                `{"phones":["[PHONE_1]"],"[EMAIL_1]":1}`,
		`{"text":"{\"email\":\"a@b.io\"}"}`:                                                      `{"text":"{\"email\":\"[EMAIL_1]\"}"}`,
		`{"t":"a\u0040b.io \ud83d\ude00"}`:                                                       `{"t":"[EMAIL_1] 😀"}`,
		`{"owner":"x","list":[{"tag":7},{"tag":{"y":["z"]}}],"tag":"x"}`:                         `{"owner":"[FIELD_1]","list":[{"tag":"[FIELD_2]"},{"tag":{"y":["[FIELD_3]"]}}],"tag":"x"}`,
		"id,full name,phone\n1,\"Doe, Ann\",0207946082\n":                                        "id,full name,phone\n1,\"[NAME_1]\",[PHONE_1]\n",
		"{\"email\":\"a@b.io\"}\n{\"phone\":4155552671}\n":                                       "{\"email\":\"[EMAIL_1]\"}\n{\"phone\":\"[PHONE_1]\"}\n",
		`{"content":"id,email,first_name\n1,a@b.io,Ann\n"}`:                                      `{"content":"id,email,first_name\n1,[EMAIL_1],[NAME_1]\n"}`,
		"see [EMAIL_1], %5BEMAIL_2%5d, [RFC_1], [email_9_2]":                                     "see [TEXT_1], [TEXT_2], [RFC_1], [TEXT_3]",
		"git@github.com:a/b icon@2x.png left-pad@1.2.3 @app.route 127.0.0.1 v1.2.3.4 2024-05-17": "git@github.com:a/b icon@2x.png left-pad@1.2.3 @app.route 127.0.0.1 v1.2.3.4 2024-05-17",
		"postgres://app:s3cret@db/x?y, password: hunter22":                                       "[URL_1], password: [SECRET_1]",
	} {
		if got := d.Replace(in, &pii.Look{Fields: fields}, tokens(pii.NewVault())); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// Where tokens are understood, and where they are not.
func TestRestore(t *testing.T) {
	v := pii.NewVault()
	v.Token(pii.Email, "ann@corp.example", false, "crm")
	v.Token(pii.Card, "4111111111111111", true, "crm")
	v.Token(pii.Name, `O"Neil \ & Co`, false, "crm")
	for in, want := range map[string]string{
		`{"to":"[EMAIL_1]"}`:                     `{"to":"ann@corp.example"}`,
		`{"to":"to [EMAIL_1]; [email_1]!"}`:      `{"to":"to ann@corp.example; ann@corp.example!"}`,
		`{"to":"\u005bEMAIL_1\u005d"}`:           `{"to":"ann@corp.example"}`,
		`{"url":"https://x/?q=%5BNAME_1%5D"}`:    `{"url":"https://x/?q=O%22Neil%20%5C%20%26%20Co"}`,
		`{"n":"[CARD_1]","s":"no. [CARD_1]"}`:    `{"n":4111111111111111,"s":"no. 4111111111111111"}`,
		`{"name":"[NAME_1]"}`:                    `{"name":"O\"Neil \\ & Co"}`,
		`{"body":"{\"name\":\"[NAME_1]\"}"}`:     `{"body":"{\"name\":\"O\\\"Neil \\\\ & Co\"}"}`,
		`{"[EMAIL_1]":1}`:                        `{"ann@corp.example":1}`,
		`{"a":"[EMAIL_2] [EMAIL_01] [EMAIL_1"}`:  `{"a":"[EMAIL_2] [EMAIL_01] [EMAIL_1"}`,
		`{"a":"[EMAIL_1_2] EMAIL_1 [EMAIL_ 1]"}`: `{"a":"[EMAIL_1_2] EMAIL_1 [EMAIL_ 1]"}`,
		`{"a":"W0VNQUlMXzFd"}`:                   `{"a":"W0VNQUlMXzFd"}`,
		`{"a":[["[EMAIL_1]"],1,null]}`:           `{"a":[["ann@corp.example"],1,null]}`,
	} {
		got, _, err := v.RestoreJSON(json.RawMessage(in), anywhere)
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s %v\nwant %s", in, got, err, want)
		}
	}
	nowhere := func(pii.Kind, []string) bool { return false }
	if got, n, err := v.RestoreJSON(json.RawMessage(`["[EMAIL_1]"]`), nowhere); string(got) != `["[EMAIL_1]"]` || len(n) != 0 || err != nil {
		t.Errorf("restored where it must not be: %s %v %v", got, n, err)
	}
	onlyOf := func(_ pii.Kind, origins []string) bool { return len(origins) == 1 && origins[0] == "crm" }
	if got, n, _ := v.Restore("[EMAIL_1]", onlyOf); got != "ann@corp.example" || len(n) != 1 {
		t.Errorf("origin: %s", got)
	}
}

// Text of an upstream that looks like a token never becomes a value.
func TestForgedTokens(t *testing.T) {
	d, v := detector(t, nil), pii.NewVault()
	v.Token(pii.Email, "victim@corp.example", false, "crm")
	for _, forged := range []string{"[EMAIL_1]", "[email_1]", "%5BEMAIL_1%5D", "[EMAIL_2]", "[TEXT_1]", "[EMAIL_1][EMAIL_1]", `{"a":"\u005bEMAIL_1]"}`} {
		out := d.Replace(forged, nil, tokens(v))
		v.Token(pii.Email, "next"+forged+"@corp.example", false, "crm")
		back, _, err := v.Restore(out, anywhere)
		if err != nil || back != forged && !sameJSON(back, forged) {
			t.Errorf("%s became %s and then %s %v", forged, out, back, err)
		}
	}
}

// One principal's tokens are text to another, and to another session.
func TestVaults(t *testing.T) {
	var all pii.Vaults
	mine := all.Of("ann", "1").Token(pii.Email, "ann@corp.example", false, "crm")
	for _, other := range []*pii.Vault{all.Of("bob", "1"), all.Of("ann", "2"), all.Of("", ""), all.Of(`ann"1`, "")} {
		if got, n, _ := other.Restore(mine, anywhere); got != mine || len(n) != 0 {
			t.Errorf("%s became %s", mine, got)
		}
	}
	if got, _, _ := all.Of("ann", "1").Restore(mine, anywhere); got != "ann@corp.example" {
		t.Errorf("lost: %s", got)
	}
	for i := range 400 { // hers goes
		all.Of("crowd", fmt.Sprint(i)).Token(pii.Email, "x@corp.example", false, "crm")
	}
	again := all.Of("ann", "1")
	again.Token(pii.Email, "other@corp.example", false, "crm")
	if got, n, _ := again.Restore(mine, anywhere); got != mine || len(n) != 0 {
		t.Errorf("%s of before became %s", mine, got)
	}
}

// A vault is bounded: the oldest values go, and their tokens say so instead of being taken for text.
func TestBounded(t *testing.T) {
	v := pii.NewVault()
	first := v.Token(pii.Email, "first@corp.example", false, "crm")
	for i := range 100_000 {
		v.Token(pii.Email, fmt.Sprintf("u%d@corp.example", i), false, "crm")
	}
	if got, _, err := v.Restore("to "+first, anywhere); !errors.Is(err, pii.ErrForgotten) || strings.Contains(got, "@") {
		t.Errorf("%s %v", got, err)
	}
	if now := v.Token(pii.Email, "first@corp.example", false, "crm"); now == first {
		t.Errorf("%s was given twice", now)
	}
}

// Hostile text costs no more time than its length: none of these may take seconds.
func TestHostileText(t *testing.T) {
	d := detector(t, nil)
	for _, unit := range []string{"a@", "a@a.", "@", "1", "1-", "1 ", "(1", "+1", "a:", "ab:cd:", "eyJ.", "a://b:c@", "a://:@", "[EMAIL_", "%5B", "-----BEGIN PRIVATE KEY-----", "DE44 ", "password=", "phone: 1", "[", `{"a":`, "{\n", "| a |\n", "name,", "\xe2", "call 555-1234 "} {
		text := strings.Repeat(unit, 2<<20/len(unit))
		begin := time.Now()
		v := pii.NewVault()
		d.Replace(text, nil, tokens(v))
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%q: %v", unit, took)
		} else if took > time.Second {
			t.Logf("%q: %v", unit, took)
		}
	}
}

// Numbers run on over the ranges that a vault was given, and what is gone is known for gone.
func TestNumbers(t *testing.T) {
	var vaults pii.Vaults
	a, b := vaults.Of("ann", "1"), vaults.Of("ann", "2")
	got := map[string]bool{}
	for i := range 1500 {
		for who, v := range []*pii.Vault{a, b} {
			token := v.Token(pii.Email, fmt.Sprintf("a%d-%d@b.io", who, i), false, "x")
			if got[token] {
				t.Fatalf("%s was given twice", token)
			}
			got[token] = true
			if text, _, err := v.Restore(token, everyone); err != nil || text != fmt.Sprintf("a%d-%d@b.io", who, i) {
				t.Fatalf("%s is %q, %v", token, text, err)
			}
		}
	}
	if text, _, err := a.Restore("[EMAIL_101]", everyone); err != nil || text != "[EMAIL_101]" {
		t.Errorf("the other's: %q %v", text, err)
	}
	if token := vaults.Of("bob", "1").Token(pii.Email, "a@b.io", false, "x"); token != "[EMAIL_1]" {
		t.Errorf("another principal begins with %s", token)
	}
}

func everyone(pii.Kind, []string) bool { return true }

// A full name that stood behind a key once is found in prose; single words and other words are not.
func TestNamesInProse(t *testing.T) {
	d, v := detector(t, nil), pii.NewVault()
	swap := tokens(v)
	d.Replace(`{"full_name":"Ann O'Neil","first_name":"Rose","authors":[{"full_name":"Jean-Luc de la Tour"},{"full_name":"J. Doe"},{"full_name":"Ann O'Neil Smith"}]}`, nil, swap)
	look := &pii.Look{Names: v.Names}
	for in, want := range map[string]string{
		"Mail from Ann O'Neil, and Ann O'Neil's dog":         "Mail from [NAME_1], and [NAME_1]'s dog",
		"ANN O'NEIL and Ann\nO'Neil wrote":                   "[NAME_1_2] and [NAME_1_3] wrote",
		"Jean-Luc de la Tour, Jean-Luc de la Torre":          "[NAME_3], Jean-Luc de la Torre",
		"Ann O'Neil Smith; J. Doe":                           "[NAME_5]; [NAME_4]",
		"Rose was here, Ann was not, O'Neil Ann, ann o'neil": "Rose was here, Ann was not, O'Neil Ann, ann o'neil",
		"xAnn O'Neil 7Ann O'Neil Ann O'Neilson Ann_O'Neil":   "xAnn O'Neil 7Ann O'Neil Ann O'Neilson Ann_O'Neil",
		"Ann O'Neil <ann@corp.example>":                      "[NAME_1] <[EMAIL_1]>",
		`{"body":"by Ann O'Neil"}`:                           `{"body":"by [NAME_1]"}`,
	} {
		if got := d.Replace(in, look, swap); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
	if got := d.Replace("[NAME_9] Ann O'Neil ann@corp.example", &pii.Look{Names: v.Names, NamesOnly: true}, swap); got != "[NAME_9] [NAME_1] ann@corp.example" {
		t.Error(got)
	}
}

// BenchmarkEcho goes through text with a vault of 10,000 values: none was sent, and some were.
func BenchmarkEcho(b *testing.B) {
	text := strings.Repeat(`{"id":4711,"title":"Export of the report stops after the first page","body":"The export stops when there are more rows."},`, 400)
	for _, sent := range []int{0, 10} {
		b.Run(fmt.Sprintf("sent=%d", sent), func(b *testing.B) {
			v := pii.NewVault()
			for i := range 10_000 {
				v.Token(pii.Email, fmt.Sprintf("somebody.%d@corp%d.example", i, i%7), false, "crm")
			}
			x := v.Echo("crm", "", true)
			for i := range sent {
				x.AddSent([]pii.Known{{Kind: pii.Email, Value: fmt.Sprintf("somebody.%d@corp%d.example", i, i%7)}})
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if found := x.Find(text); len(found) > 0 {
					b.Fatal(found)
				}
			}
		})
	}
}
