package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ex "sallyport/examples"
	"sallyport/internal/models"
	"sallyport/internal/models/modeltest"
	"sallyport/internal/testutil"
)

// exampleRunner runs sallyport example with a cache that all examples share, and with no variables of models but these.
type exampleRunner struct{ env []string }

func newExampleRunner(t *testing.T) exampleRunner {
	t.Helper()
	dir := testutil.ShortDir(t)
	if err := os.Symlink(testutil.Runsc(t), filepath.Join(dir, "runsc")); err != nil {
		t.Fatal(err)
	}
	r := exampleRunner{[]string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "GORACE=atexit_sleep_ms=0"}}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "OPENAI_") && !strings.HasPrefix(name, "AZURE_OPENAI_") && !strings.HasPrefix(name, "LLM_") && name != "PATH" && name != "HOME" && name != "TMPDIR" && name != "XDG_CACHE_HOME" {
			r.env = append(r.env, pair)
		}
	}
	return r
}

func (r exampleRunner) run(ctx context.Context, t *testing.T, args []string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "sallyport", append([]string{"example"}, args...)...)
	cmd.Env = append(r.env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestExampleRun runs each example, which compares what its commands print with its README.
func TestExampleRun(t *testing.T) {
	t.Parallel()
	r := newExampleRunner(t)
	all, err := ex.All()
	if err != nil || len(all) != 15 {
		t.Fatalf("%d examples, %v", len(all), err)
	}
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			for _, step := range e.Steps {
				if !step.Compared {
					t.Errorf("the README does not say what this prints: %s", step.Commands)
				}
			}
			if out, err := r.run(t.Context(), t, []string{"run", e.Number()}); err != nil || !strings.Contains(out, e.Name) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestExampleWithModel: with the variables of a provider, its model does the task.
func TestExampleWithModel(t *testing.T) {
	t.Parallel()
	r := newExampleRunner(t)
	for number, api := range map[string]models.API{"14": models.OpenAI, "15": models.Azure} {
		s := modeltest.New(t, api, modeltest.Script("```answer\nmy own words\n```"))
		env := []string{"OPENAI_BASE_URL=" + s.URL, "OPENAI_API_KEY=" + modeltest.Key, "LLM_MODEL=" + modeltest.Model}
		if api == models.Azure {
			env = []string{"AZURE_OPENAI_ENDPOINT=" + s.URL, "AZURE_OPENAI_API_KEY=" + modeltest.Key, "AZURE_OPENAI_DEPLOYMENT=" + modeltest.Model}
		}
		out, err := r.run(t.Context(), t, []string{"run", number}, env...)
		if err != nil || !strings.Contains(out, "my own words") || strings.Contains(out, "scripted model") || strings.Contains(out, modeltest.Key) || s.Requests() != 1 {
			t.Errorf("%v, %d requests\n%s", err, s.Requests(), out)
		}
	}
}
