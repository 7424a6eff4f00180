package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/plain"
	"sallyport/internal/sleep"
)

const (
	// retireGrace is how long calls may still take to an upstream that the settings changed or left out.
	retireGrace = 10 * time.Second
	// pollEvery is how often files are looked at. A poll works on every kind of mount.
	pollEvery = time.Second
)

// Settings tell which settings are in force.
type Settings struct {
	// Path is the file that they came from.
	Path string
	// Loaded is when they came into force.
	Loaded time.Time
	// Problem says why what the file holds now is not in force, "" if it is.
	Problem string
	// Restart names the keys whose new values count from the next start only.
	Restart []string
}

// Settings returns which settings are in force.
func (g *Gateway) Settings() Settings { return *g.settings.Load() }

// summary is the problem in one line, for clients that the folders here are no business of.
func (s Settings) summary() string {
	line, _, _ := strings.Cut(s.Problem, "\n")
	return strings.ReplaceAll(line, filepath.Dir(s.Path)+string(filepath.Separator), "")
}

// adopt brings settings into force, but for the upstreams.
func (g *Gateway) adopt(cfg *config.Config) {
	patient := time.Now().Add(g.opts.Settle)
	g.patient.Store(&patient)
	now := Settings{Path: cfg.Path, Loaded: time.Now(), Restart: needRestart(g.started, cfg)}
	g.cfg.Store(cfg)
	g.settings.Store(&now)
}

// needRestart names what was read at the start and differs.
func needRestart(old, cfg *config.Config) (keys []string) {
	if o, n := old.Sandbox, cfg.Sandbox; o.Runsc != n.Runsc || o.Python != n.Python || o.Node != n.Node {
		keys = append(keys, "sandbox.runsc, python, node")
	}
	if old.Sandbox.Remote != cfg.Sandbox.Remote {
		keys = append(keys, "sandbox.remote")
	}
	if o, n := old.Sandbox, cfg.Sandbox; o.Pyright != n.Pyright || o.Tsc != n.Tsc {
		keys = append(keys, "sandbox.pyright, tsc")
	}
	if o, n := old.Sandbox, cfg.Sandbox; o.Pool != n.Pool || o.SessionIdle != n.SessionIdle || !slices.Equal(o.Masked, n.Masked) {
		keys = append(keys, "sandbox.pool, session_idle, masked")
	}
	if old.Sandbox.Parallel != cfg.Sandbox.Parallel {
		keys = append(keys, "sandbox.parallel")
	}
	for _, of := range []struct {
		key      string
		old, now any
	}{
		{"environments", old.Environments, cfg.Environments},
		{"observe", old.Observe, cfg.Observe},
		{"workspaces (in the definition of execute_code)", old.Workspaces, cfg.Workspaces},
		{"audit", recorded(old.Audit), recorded(cfg.Audit)},
		{"profiles", append(config.Profiles{}, old.Profiles...), append(config.Profiles{}, cfg.Profiles...)},
		{"http", old.HTTP, cfg.HTTP},
		{"workflows", old.Workflows, cfg.Workflows},
	} {
		if !reflect.DeepEqual(of.old, of.now) {
			keys = append(keys, of.key)
		}
	}
	return keys
}

// recorded is the settings of the record without what counts at once.
func recorded(a config.Audit) config.Audit {
	a.Code = ""
	return a
}

// Reload brings other settings into force. Upstreams that they leave as they are
// notice nothing. One that they change gets a new session; calls under way on the
// old one may end, for 10 s, as they may where it is left out. Limits of
// executions count from the next one on.
func (g *Gateway) Reload(cfg *config.Config) error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if _, err := g.catalog.roster.Load().attached(enabled(cfg)); err != nil {
		return err
	}
	rules, err := g.Guard.Compile(cfg)
	if err != nil {
		return err
	}
	if err := g.Auditor.RecordReload(cfg); err != nil {
		return err
	}
	if err := g.Privacy.Apply(cfg); err != nil { // before an upstream that the settings bring is called
		return err
	}
	g.Guard.Apply(rules)
	g.opts.secrets.Set(cfg.Known()) // as well
	counts, err := g.catalog.change(enabled(cfg))
	if err != nil {
		return err
	}
	g.adopt(cfg)
	g.aid(cfg.Search)
	if keys := g.Settings().Restart; len(keys) > 0 {
		g.log.Warn("some settings count from the next start only", "keys", keys)
	}
	g.log.Info("settings reloaded", "config", cfg.Path, "added", counts.added, "changed", counts.changed, "removed", counts.removed, "kept", counts.kept)
	return nil
}

// counts is how many upstreams a reload did what with.
type counts struct{ added, changed, removed, kept int }

// change makes ups the upstreams.
func (c *catalog) change(ups []config.Upstream) (counts, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.over() {
		return counts{}, toolcall.ClosedError()
	}
	var n counts
	old := c.roster.Load()
	own, err := old.attached(ups)
	if err != nil {
		return counts{}, err
	}
	var members, fresh []*member
	for _, up := range ups {
		m := old.byID[up.ID]
		if m == nil || !c.keep(m, up) {
			m = newMember(up)
			fresh = append(fresh, m)
		}
		members = append(members, m)
	}
	c.boot(fresh)
	members = append(members, own...)
	next := newRoster(members)
	c.roster.Store(next)
	c.touch()
	for _, m := range old.members {
		switch next.byID[m.id] {
		case m:
			n.kept++
			continue
		case nil:
			n.removed++
		default:
			n.changed++
		}
		c.work.Go(func() { c.retire(m) })
	}
	n.added = len(members) - n.kept - n.changed
	return n, nil
}

// keep reports whether a member can stay under its new settings, and tells it
// those that need no new session.
func (c *catalog) keep(m *member, up config.Upstream) bool {
	old := *m.cfg.Load()
	plainly := old
	plainly.Name, plainly.Description, plainly.Trust, plainly.Privacy = up.Name, up.Description, up.Trust, up.Privacy
	plainly.Labels, plainly.ToolLabels = up.Labels, up.ToolLabels
	if !reflect.DeepEqual(plainly, up) {
		return false
	}
	if !reflect.DeepEqual(old, up) {
		<-m.booted
		m.cfg.Store(&up)
		c.retake(m)
		c.show(m)
	}
	return true
}

// retire ends a member once its calls are over, but not later than after a while
// or the end of the catalog.
func (c *catalog) retire(m *member) {
	m.replaced.Store(true)
	select {
	case <-m.calls.close():
	case <-time.After(retireGrace):
	case <-c.ended:
	}
	if err := m.close(); err != nil {
		c.log.Warn("close upstream", "upstream", m.id, "error", err)
	}
}

// Follow reloads the settings whenever their files change, until ctx ends. load
// reads them anew, and Config.Path and Config.Files are what is watched. What
// cannot be loaded changes nothing; Settings and the log say why.
func (g *Gateway) Follow(ctx context.Context, load func() (*config.Config, error)) {
	last, seen := []string(nil), g.marks() // the first look finds what was edited since they were loaded
	for sleep.For(ctx, pollEvery) == nil {
		now := g.marks()
		settled := slices.Equal(now, seen) // it is not being written just now
		seen = now
		if !settled || slices.Equal(now, last) && g.Settings().Problem == "" {
			continue
		}
		g.follow(load)
		last = g.marks() // there may be other files to watch
		seen = last
	}
}

// follow loads once. The log has each problem once.
func (g *Gateway) follow(load func() (*config.Config, error)) {
	cfg, err := load()
	if err == nil && reflect.DeepEqual(cfg, g.cfg.Load()) {
		g.mended(cfg)
		return
	}
	if err == nil {
		err = g.Reload(cfg)
	}
	if err == nil {
		return
	}
	now := g.Settings()
	if problem := plain.Text(err.Error(), 1000); problem != now.Problem {
		now.Problem = problem
		g.settings.Store(&now)
		line, _, _ := strings.Cut(problem, "\n") // the lines after it show the file, which may hold a secret
		g.log.Error("settings are not reloaded, the last good ones stay in force", "config", now.Path, "error", line)
	}
}

// mended notes that the file says again what is in force.
func (g *Gateway) mended(cfg *config.Config) {
	if now := g.Settings(); now.Problem != "" {
		now.Problem = ""
		g.settings.Store(&now)
		g.log.Info("settings are in order again", "config", cfg.Path)
	}
}

// marks tell the states of the settings' files apart.
func (g *Gateway) marks() []string {
	cfg := g.cfg.Load()
	var marks []string
	for _, path := range append([]string{cfg.Path}, cfg.Files...) {
		marks = append(marks, path+mark(path))
	}
	return marks
}

// mark changes when the file does, or another takes its place.
func mark(path string) string {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return " is not there"
	}
	if err != nil {
		return " " + err.Error()
	}
	return fmt.Sprint(" ", info.Size(), info.ModTime().UnixNano(), inode(info))
}
