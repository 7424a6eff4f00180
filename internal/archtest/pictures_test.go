package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

var (
	picture       = regexp.MustCompile(`!\[([^\]]*)\][(\[]`)
	htmlPicture   = regexp.MustCompile(`<img\s[^>]*>`)
	altText       = regexp.MustCompile(`\salt="[^"]*\w[^"]*"`)
	pictureSource = regexp.MustCompile(`\s(?:src|srcset)="([^"]*)"`)
)

// TestPictures checks that pictures in pages say in words what they show, that those in HTML exist, and that no file of
// docs is large.
func TestPictures(t *testing.T) {
	root := testutil.ModuleRoot(t)
	shown := 0
	for _, page := range tree(t, root) {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		text := read(t, filepath.Join(root, page))
		for _, found := range picture.FindAllStringSubmatch(text, -1) {
			if shown++; strings.TrimSpace(found[1]) == "" {
				t.Errorf("%s has a picture without a text: %s", page, found[0])
			}
		}
		for _, found := range htmlPicture.FindAllString(text, -1) {
			if shown++; !altText.MatchString(found) {
				t.Errorf("%s has a picture without a text: %s", page, found)
			}
		}
		for _, found := range pictureSource.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s shows a missing picture: %v", page, err)
			}
		}
	}
	if shown < 10 {
		t.Errorf("only %d pictures were found", shown)
	}
	for _, path := range tree(t, filepath.Join(root, "docs")) {
		info, err := os.Stat(filepath.Join(root, "docs", path))
		if err != nil {
			t.Fatal(err)
		}
		if !info.IsDir() && info.Size() > 300_000 {
			t.Errorf("docs%s has %d bytes, not at most 300,000", path, info.Size())
		}
	}
}
