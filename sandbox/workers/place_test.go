package workers

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/testutil/natscluster"
	"sallyport/sandbox"
)

// TestChoose places programs by free seats, and those of a session where it is.
func TestChoose(t *testing.T) {
	p := &Pool{sessions: map[string]place{}, members: map[string]*member{}, troubles: map[string]trouble{}, counts: map[string][verdicts]int64{}}
	for name, seats := range map[string]int{"small": 2, "large": 4} {
		p.members[name] = &member{Worker: Worker{Name: name, Instance: name, Seen: time.Now(), Beat: Beat{Seats: seats}}}
	}
	choose := func(session string, tried ...string) *member {
		m, err := p.choose(sandbox.Job{Session: session, Interpreter: sandbox.Python}, tried)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	got := map[string]int{}
	for range 6 {
		got[choose("").Name]++
	}
	if got["small"] != 2 || got["large"] != 4 {
		t.Errorf("%v", got)
	}
	home := choose("s")
	p.release(home, fine)
	home.Busy = 50 // others have more room
	if m := choose("s"); m != home {
		t.Errorf("a session moves to %s", m.Name)
	}
	if m := choose("s", home.Instance); m == home {
		t.Error("a worker is tried again")
	}
	other := p.members[p.sessions["s"].instance]
	p.release(other, lost)
	if m := choose(""); m == other {
		t.Error("a worker that has just failed is preferred")
	}
	again := &member{Worker: Worker{Name: other.Name, Instance: "again", Seen: time.Now(), Beat: Beat{Seats: MaxSeats}}}
	p.members["again"] = again
	if m := choose(""); m == again {
		t.Error("another process of a worker that has just failed is preferred")
	}
	delete(p.members, "again")
	home.Draining = true
	if m := choose(""); m != other {
		t.Error("a worker that drains gets a program")
	}
	other.Lacks = []sandbox.Interpreter{sandbox.Python}
	if m, err := p.choose(sandbox.Job{Interpreter: sandbox.Node}, nil); err != nil || m != other {
		t.Errorf("with another interpreter: %v", err)
	}
	other.Lacks = nil
	for i := range maxSessions + 10 {
		p.release(choose(fmt.Sprint(i)), fine)
	}
	if len(p.sessions) > maxSessions {
		t.Errorf("%d sessions are known", len(p.sessions))
	}
}

// TestHostileBeats: what workers say about themselves is bounded, and none speaks for another.
func TestHostileBeats(t *testing.T) {
	r := &registry{subjects: newSubjects("sallyport"), log: slog.New(slog.DiscardHandler), workers: map[string]*Worker{}, sources: map[string]*source{}, changed: make(chan struct{})}
	good, victim := `{"version":"v1","seats":2}`, rand.Text()
	hear := func(name, instance, text string) {
		r.hear(&nats.Msg{Subject: r.subjects.beat(name, instance), Data: []byte(text)})
	}
	hear("victim", victim, good)
	hear("liar", victim, `{"seats":9}`)
	hear("liar", victim, `{"seats":9,"left":true}`)
	for _, text := range []string{
		"", "{", `{"seats":0}`, `{"seats":99999}`, `{"seats":1,"busy":-1}`, `{"seats":1,"lacks":["\u001b"]}`, `{"seats":1,"labels":{"a":"\u001b[31m"}}`, `{"seats":1,"labels":{"A b":"c"}}`,
		`{"seats":1,"environments":{"\u001b":""}}`, `{"seats":1,"environments":{"a":"\u001b"}}`, `{"seats":1,"environments":{"a":"0123456789abcdef"}}`,
		`{"seats":1,"services":["\u001b"]}`, `{"seats":1,"services":["` + strings.Repeat(`a","`, maxBeatServices) + `"]}`,
		`{"seats":1,"version":"` + strings.Repeat("v", 100) + `"}`, `{"seats":1,"x":"` + strings.Repeat("x", maxBeat) + `"}`,
	} {
		hear("liar", rand.Text(), text)
	}
	hear("liar.x", rand.Text(), good)
	hear("liar", "x", good)
	hear("li\x1bar", rand.Text(), good)
	if all := r.list(); len(all) != 1 || all[0].Name != "victim" || all[0].Seats != 2 {
		t.Errorf("%+v", all)
	}
	for range 10 * maxInstances {
		hear("flood", rand.Text(), good)
	}
	for i := range maxWorkers {
		hear(fmt.Sprint("w", i), rand.Text(), good)
	}
	if n := len(r.list()); n != maxWorkers || r.workers[victim] == nil {
		t.Errorf("%d workers are known", n)
	}
}

// connectedRegistry returns the registry of a cluster without workers, for a pool that does not follow it.
func connectedRegistry(t *testing.T) *registry {
	t.Helper()
	r, err := openRegistry(natscluster.Start(t, 1).Server(""), "p", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.conn.Close)
	return r
}

// TestChooseEnvironment: a program in an environment is on a worker that has it. The error names those that do not.
func TestChooseEnvironment(t *testing.T) {
	p := &Pool{sessions: map[string]place{}, members: map[string]*member{}, registry: connectedRegistry(t)}
	for name, environments := range map[string]map[string]string{"has": {"data": "01ab"}, "lacks": {"other": ""}, "none": nil} {
		p.members[name] = &member{Worker: Worker{Name: name, Instance: name, Seen: time.Now(), Beat: Beat{Seats: 4, Environments: environments}}}
	}
	job := sandbox.Job{Interpreter: sandbox.Python, Environment: "data"}
	for range 3 {
		if m, err := p.choose(job, nil); err != nil || m.Name != "has" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	job.Environment = "new"
	if _, err := p.choose(job, nil); err == nil || !strings.Contains(err.Error(), `environment "new" (has, lacks, none lack it)`) || !strings.Contains(err.Error(), "sallyport worker --environments") {
		t.Errorf("%v", err)
	}
}

// TestTrouble: who fails again waits longer, and what fails at the same time counts once.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{troubles: map[string]trouble{}, counts: map[string][verdicts]int64{}}
		m := &member{Worker: Worker{Name: "w"}}
		for i, want := range []time.Duration{retryAfter, 2 * retryAfter, 4 * retryAfter} {
			for range 100 {
				p.release(m, lost)
			}
			p.release(m, unknown)
			if got := time.Until(p.troubles["w"].until); got != want {
				t.Errorf("after %d failures: %s", i+1, got)
			}
			time.Sleep(want)
		}
		for range 70 {
			p.release(m, lost)
			time.Sleep(maxRetryAfter)
		}
		if p.release(m, lost); time.Until(p.troubles["w"].until) != maxRetryAfter {
			t.Errorf("at last: %+v", p.troubles["w"])
		}
		p.release(m, fine)
		p.release(m, refused)
		p.members = map[string]*member{"one": m, "two": {Worker: Worker{Name: "w", Seen: time.Now(), Beat: Beat{Seats: 2, Busy: 1, Draining: true}}}}
		if all := p.Stats(); len(all) != 1 || all[0].Seats != 2 || all[0].Busy != 1 || all[0].Draining || !maps.Equal(all[0].Programs, map[string]int64{"lost": 371, "not_started": 1, "ended": 1, "canceled": 3}) {
			t.Errorf("%+v", all)
		}
		if p.members = nil; p.Stats()[0].Processes != 0 || p.Stats()[0].Programs["lost"] != 371 {
			t.Errorf("after it has left: %+v", p.Stats())
		}
		p.members = map[string]*member{"one": m}
		for i := range 3 * maxWorkers {
			p.release(&member{Worker: Worker{Name: fmt.Sprint(i)}}, fine)
		}
		if len(p.counts) > maxWorkers+1 || p.counts["w"][lost] == 0 {
			t.Errorf("programs of %d workers are counted", len(p.counts))
		}
		time.Sleep(3 * maxRetryAfter)
		if p.forgetTroubles(); len(p.troubles) > 0 {
			t.Error("troubles are kept for ever")
		}
	})
}

// TestBeatFlood: a worker that sends too many beats loses its own only, and is named once.
func TestBeatFlood(t *testing.T) {
	var log strings.Builder
	r := &registry{subjects: newSubjects("sallyport"), log: slog.New(slog.NewTextHandler(&log, nil)), workers: map[string]*Worker{}, sources: map[string]*source{}, changed: make(chan struct{})}
	hear := func(name, text string) {
		r.hear(&nats.Msg{Subject: r.subjects.beat(name, rand.Text()), Data: []byte(text)})
	}
	for range 3 * maxBeats {
		hear("flood", `{"seats":`)
	}
	hear("flood", `{"seats":1}`)
	hear("good", `{"seats":1}`)
	if all := r.list(); len(all) != 1 || all[0].Name != "good" {
		t.Errorf("%+v", all)
	}
	if strings.Count(log.String(), "worker=flood") != 1 {
		t.Errorf("the log:\n%s", log.String())
	}
	for i := range 2 * maxWorkers {
		hear(fmt.Sprint("w", i), `{`)
	}
	if len(r.sources) > maxWorkers {
		t.Errorf("%d sources are known", len(r.sources))
	}
}

// TestPlacement runs programs only on workers that have the labels, also those of a session.
func TestPlacement(t *testing.T) {
	var wanted []string
	p := &Pool{sessions: map[string]place{}, members: map[string]*member{}, registry: connectedRegistry(t)}
	p.opts.Placement = func() []string { return wanted }
	for name, seats := range map[string]int{"plain": 8, "gpu": 1} {
		p.members[name] = &member{Worker: Worker{Name: name, Instance: name, Seen: time.Now(), Beat: Beat{Seats: seats}}}
	}
	p.members["gpu"].Labels = map[string]string{"gpu": "true"}
	for _, test := range []struct {
		wanted []string
		want   string
	}{{nil, "plain"}, {[]string{"gpu=true"}, "gpu"}, {[]string{"gpu=true", "region=eu"}, ""}} {
		wanted = test.wanted
		m, err := p.choose(sandbox.Job{Session: "session", Interpreter: sandbox.Python}, nil)
		switch {
		case err == nil && m.Name != test.want:
			t.Errorf("%q: it runs on %s", wanted, m.Name)
		case test.want == "" && (err == nil || !strings.Contains(err.Error(), "no worker has the labels gpu=true region=eu of sandbox.placement, but 2 without them have joined")):
			t.Errorf("%q: %v", wanted, err)
		}
	}
	wanted, p.members["plain"].Lacks, p.members["gpu"].Lacks = nil, []sandbox.Interpreter{sandbox.Python}, []sandbox.Interpreter{sandbox.Python}
	if _, err := p.choose(sandbox.Job{Interpreter: sandbox.Python}, nil); err == nil || !strings.Contains(err.Error(), "no worker that takes programs has the interpreter python") {
		t.Errorf("without an interpreter: %v", err)
	}
}
