package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/secretstore"
	"sallyport/internal/testutil"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml[^\n]*\n(.*?)^```$")
	// notSettings matches workflows and their tests, manifests of plugins and theirs, settings of Prometheus, front matter of skills, and
	// values of the Helm chart.
	notSettings = regexp.MustCompile(`(?m)^(?:steps|on|workflow|scrape_configs|version|gateway):|^(?:- |---$)`)
	// otherYAML are the pages with such blocks. Workflows are loaded by tests of gateway/workflow, front matter by one
	// of internal/skill, values by one of cmd/sallyport.
	otherYAML = []string{"docs/how-to/workflows.md", "docs/how-to/telemetry.md", "docs/how-to/skills.md", "docs/how-to/plugins.md", "docs/deploy/README.md"}
)

// TestDocsSettings loads each settings block of the Markdown pages.
func TestDocsSettings(t *testing.T) {
	tried := 0
	for page, blocks := range settingsBlocks(t) {
		for _, text := range blocks {
			tried++
			loadPart(t, page, text)
		}
	}
	if tried < 15 {
		t.Errorf("only %d blocks were found", tried)
	}
}

// settingsBlocks returns the settings blocks of the Markdown pages, by page.
func settingsBlocks(t *testing.T) map[string][]string {
	t.Helper()
	root := testutil.ModuleRoot(t)
	pages := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	all := map[string][]string{}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(strings.TrimPrefix(page, root+string(filepath.Separator)))
		for _, block := range yamlBlock.FindAllSubmatch(data, -1) {
			text := string(block[1])
			switch {
			case !notSettings.MatchString(text):
				all[name] = append(all[name], text)
			case !slices.Contains(otherYAML, name):
				t.Errorf("%s has a block that no test loads:\n%s", name, text)
			}
		}
	}
	return all
}

// wholeFile adds upstreams to settings that are a part of a file.
func wholeFile(text string) string {
	if strings.Contains(text, "upstreams:") {
		return text
	}
	return text + "upstreams: {crm: {command: crm-mcp}}\n"
}

func loadPart(t *testing.T, page, text string) {
	t.Helper()
	env := func(name string) (string, bool) { return "/long-value-of-" + name, true }
	s := Sources{Getenv: env, Managers: secretstore.Fixed("long-value-of-a-secret")}
	if c, err := s.Parse(filepath.Base(page), []byte(wholeFile(text))); err != nil || strings.HasSuffix(page, "secret-managers.md") && len(c.ManagedSecrets) != 3 {
		t.Errorf("%s: %v", page, err)
	}
}
