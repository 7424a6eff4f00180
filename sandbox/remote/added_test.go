package remote

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"sallyport/sandbox"
)

// TestAddedOlderWorker: a worker that speaks an older protocol gets no job with added packages, and the error says what to update.
func TestAddedOlderWorker(t *testing.T) {
	t.Parallel()
	l := &hostileWorker{hello: func(g *greeting) {
		g.Compat, g.Environments, g.Version = Compat{Oldest: 2, Newest: 4, Host: hostInterface}, []string{"data"}, "v0.9"
	}, answer: func(*requestStream, *http.Request) { t.Error("it is asked to run a program") }}
	c := l.client(t)
	j := job()
	j.Environment, j.Added = "data-1", &sandbox.Added{Environment: "data", Packages: map[sandbox.Interpreter][]string{sandbox.Python: {"alpha"}}}
	_, runErr := c.Run(t.Context(), j, &recordingCaller{})
	_, listErr := c.Packages(t.Context(), *j.Added)
	for _, err := range []error{runErr, listErr} {
		if refusal, ok := errors.AsType[*AddError](err); !ok || refusal.Final || !strings.Contains(err.Error(), "ssh://liar cannot add packages: its sallyport (v0.9) is older than this one (v1): update it there") {
			t.Errorf("%v", err)
		}
	}
}

// TestAddedHostileWorker: what a worker says about packages is bounded and sanitized, and is an error if it is invalid.
func TestAddedHostileWorker(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for name, test := range map[string]struct{ says, want string }{
		"a refusal":         {`{"error":{"text":"\u001b[31mno` + long + `"}}`, "ssh://liar: "},
		"no JSON":           {`{"packages":`, "unexpected end"},
		"too much":          {strings.Repeat("x", maxSmall+1), "too long"},
		"an interpreter":    {`{"packages":{"ruby":[{"name":"x"}]}}`, ""},
		"names of packages": {`{"packages":{"python":[{"name":"a\u001b[31m` + long + `","version":"1\n2","Modules":["a"]}]}}`, ""},
	} {
		l := &hostileWorker{hello: func(g *greeting) { g.Environments = []string{"data"} }, packages: test.says}
		found, err := l.client(t).Packages(t.Context(), sandbox.Added{Environment: "data"})
		if (err != nil) != (test.want != "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 1000) {
			t.Errorf("%s: %v", name, err)
		}
		for _, one := range found[sandbox.Python] {
			if strings.ContainsAny(one.Name+one.Version, "\x1b\n") || len(one.Name) > 210 {
				t.Errorf("%s: %q", name, one)
			}
		}
	}
}

// TestAddedAnswer: a program for which a worker adds no packages is an error of the worker, and is tried elsewhere unless that is final.
func TestAddedAnswer(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{true, false} {
		says := `{"error":"x","added":{"text":"no\u001b[31m alpha"}}`
		if final {
			says = `{"error":"x","added":{"text":"no\u001b[31m alpha","final":true}}`
		}
		l := &hostileWorker{hello: func(g *greeting) { g.Environments = []string{"data"} }, answer: func(a *requestStream, r *http.Request) {
			readJob(r.Body)
			io.WriteString(a, outcome(says)+text(ok))
			<-r.Context().Done()
		}}
		j := job()
		j.Environment, j.Added = "data-1", &sandbox.Added{Environment: "data", Packages: map[sandbox.Interpreter][]string{sandbox.Python: {"alpha"}}}
		o, err := l.client(t).Run(t.Context(), j, &recordingCaller{})
		if refusal, isRefusal := errors.AsType[*AddError](err); !isRefusal || refusal.Final != final || !strings.HasPrefix(err.Error(), "ssh://liar: no") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// TestAddedUnasked: a worker that refuses a program for packages that the program does not add is one that did not start it, which counts
// against it: another worker is tried.
func TestAddedUnasked(t *testing.T) {
	t.Parallel()
	l := &hostileWorker{answer: func(a *requestStream, r *http.Request) {
		readJob(r.Body)
		io.WriteString(a, outcome(`{"error":"x","added":{"text":"no alpha","final":true}}`)+text(ok))
		<-r.Context().Done()
	}}
	o, err := l.client(t).Run(t.Context(), job(), &recordingCaller{})
	if _, isRefusal := errors.AsType[*AddError](err); err == nil || isRefusal {
		t.Errorf("%+v, %v", o, err)
	}
}
