//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox/sandboxtest"
)

// listedAttacks are the groups of the list of attacks that docs/explanation/attacks.md tells of.
const listedAttacks = `A01 A02 A04 A05 A07 A08 A10 A11 A13 A14 A16 A17 A19 A20 B01 B02 B04 B05 B07 B08 B10 B11 B13 B14
C01 C02 C04 C05 C07 C08 C10 C11 C13 C14 C16 C17 E01 E02 E04 E05 E07 E08 E10 E11 E13 E14 E16 F01 F02 F04 F05 F07 F08 F10 F11
G01 G02 G04 G05 G07 G08 G10 G11 G13 G14 G16 G17
I01 I02 I04 I05 I07 I08 I10 I11 I13 I14 J01 J02 J04 J05 J07 J08 J10 J11 J13 K01 K02 K04 K05 K07 K08 K10 L01 L02 L04 L05 L07 L08 L10 L11
R01 R02 R03 R04 R05 R06 R07 R08 R09 R10 R11 R12 R13 R14 R15 R16 R17 R18`

var (
	attackRow     = regexp.MustCompile(`(?m)^\| ([A-LR][0-9]{2}) \| (.+) \|$`)
	testReference = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`")
)

// TestAttacksAreListed: docs/explanation/attacks.md has a line for every attack, and what it names exists.
func TestAttacksAreListed(t *testing.T) {
	root := testutil.ModuleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "explanation", "attacks.md"))
	if err != nil {
		t.Fatal(err)
	}
	suite, rows := map[string]bool{}, map[string]bool{}
	for _, attack := range sandboxtest.Attacks() {
		suite[attack.ID] = true
	}
	for _, attack := range sandboxtest.ReuseAttacks() {
		suite[attack.ID] = true
	}
	for _, row := range attackRow.FindAllStringSubmatch(string(page), -1) {
		id, where := row[1], row[2]
		rows[id] = true
		tests := testReference.FindAllStringSubmatch(where, -1)
		for _, test := range tests {
			if !declares(filepath.Join(root, test[1]), test[2]) {
				t.Errorf("%s: there is no %s in %s", id, test[2], test[1])
			}
		}
		inSuite := strings.HasPrefix(where, "suite")
		if inSuite && !suite[id] && !strings.HasPrefix(where, "suite has no") {
			t.Errorf("%s is not in the suite", id)
		}
		if !inSuite && len(tests) == 0 && !strings.HasPrefix(where, "not here: ") {
			t.Errorf("%s is tested nowhere, and there is no reason why: %s", id, where)
		}
	}
	for id := range strings.FieldsSeq(listedAttacks) {
		if !rows[id] {
			t.Errorf("%s has no line", id)
		}
	}
	for id := range suite {
		if !rows[id] {
			t.Errorf("%s is in the suite and has no line", id)
		}
	}
}

// declares says whether a test file of a folder has that test.
func declares(dir, test string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), "func "+test+"(") {
			return true
		}
	}
	return false
}
