package index

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/checksumfile"
	"sallyport/internal/tool"
)

const (
	// snapshotVersion changes with the file format, analysisVersion when the same text
	// gives other facts and the probe of analysisDigest does not detect it.
	snapshotVersion = 1
	analysisVersion = 3

	maxSnapshot = 256 << 20 // bytes
	// keptSnapshots is the maximum number of files, keptFor the maximum age of an unused one.
	keptSnapshots = 8
	keptFor       = 30 * 24 * time.Hour
	// restFor is how long a catalog must be unchanged before it is written.
	restFor = 2 * time.Second
)

// saved caches analyzed documents in a folder. The name of a file is the digest of
// the analysis and of all documents. One goroutine writes files, once the catalog
// has not changed for restFor and on close. Failures are only logged: documents that
// cannot be read are analyzed again. A nil saved disables the cache.
type saved struct {
	folder   *checksumfile.Folder
	log      *slog.Logger
	analysis digest

	mu   sync.Mutex
	next *image // to be written
	last string // the file with the newest content, read or written

	wake, over chan struct{}
	work       sync.WaitGroup
}

// image is the content of a file to write.
type image struct {
	name  string
	texts []string
	docs  []analyzed
}

// openSaved opens the cache in dir and starts its writer. It returns nil if dir is "" or unusable.
func openSaved(dir string, log *slog.Logger, analysis digest) *saved {
	if dir == "" {
		return nil
	}
	folder, err := checksumfile.OpenFolder(dir, checksumfile.Kind{Version: snapshotVersion, Suffix: ".index", Limit: maxSnapshot})
	if err != nil {
		log.Warn("index snapshots disabled", "error", err)
		return nil
	}
	s := &saved{folder: folder, log: log, analysis: analysis, wake: make(chan struct{}, 1), over: make(chan struct{})}
	s.work.Go(s.follow)
	return s
}

// analysisDigest returns a digest that changes when analysis would give the same documents other facts.
func analysisDigest(words *analyzers, weigh weights) digest {
	probe := Doc{ID: tool.ID{Upstream: "pullRequests", Name: "list_APIs2"}, Title: "Müller's e-mail v2.0", Upstream: "使用 tickets", Description: "The users created, with getHTTPUrl. 搜索 relational databases!",
		Params: []Param{{"customerIds", "those of the organization's accounts"}}, Values: "open closed", Results: "nextPage"}
	t := newTable()
	f := newLearner(&glossary{words: words, table: t}, weigh).learn(probe)
	text := fmt.Appendln(nil, snapshotVersion, analysisVersion, weigh.field, weigh.b, weigh.average, weigh.vector, words.model.Sum())
	return sha256.Sum256(append(text, encode(digest{}, t.list(), []analyzed{{probe.digest(), f}})...))
}

// name returns the file name for a catalog.
func (s *saved) name(docs []digest) string {
	sum := sha256.New()
	_, _ = sum.Write(s.analysis[:]) // a hash does not fail
	for _, d := range docs {
		_, _ = sum.Write(d[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// load reads the file of that name, else the newest readable one, which may share most documents.
func (s *saved) load(name string) ([]string, []analyzed) {
	for _, try := range append([]string{name}, s.files()...) {
		texts, docs, err := s.read(try)
		if err == nil {
			s.mu.Lock()
			s.last = try
			s.mu.Unlock()
			return texts, docs
		}
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("index snapshot ignored", "file", try, "reason", err.Error())
			_ = s.folder.Remove(try)
		}
	}
	return nil, nil
}

func (s *saved) read(name string) ([]string, []analyzed, error) {
	body, err := s.folder.Read(name)
	if err != nil {
		return nil, nil, err
	}
	texts, docs, err := decode(body, s.analysis)
	if err == nil {
		_ = s.folder.Touch(name)
	}
	return texts, docs, err
}

// files returns the names of the existing snapshots, newest first.
func (s *saved) files() []string {
	names, err := s.folder.Names()
	if err != nil {
		s.log.Warn("list index snapshots", "error", err)
	}
	return names
}

// save schedules an image for writing.
func (s *saved) save(im *image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = im
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// follow writes scheduled images until close.
func (s *saved) follow() {
	rest := time.NewTimer(restFor)
	defer rest.Stop()
	for {
		select {
		case <-s.wake:
			rest.Reset(restFor)
		case <-rest.C:
			s.write()
		case <-s.over:
			s.write()
			return
		}
	}
}

func (s *saved) write() {
	s.mu.Lock()
	im, last := s.next, s.last
	s.next = nil
	s.mu.Unlock()
	if im == nil || im.name == last {
		return
	}
	body := encode(s.analysis, im.texts, im.docs)
	if err := s.folder.Write(im.name, body); err != nil {
		s.log.Warn("cannot write index snapshot", "error", err)
		return
	}
	s.log.Debug("index snapshot written", "file", im.name, "tools", len(im.docs), "bytes", len(body))
	s.mu.Lock()
	s.last = im.name
	s.mu.Unlock()
	s.folder.Sweep(keptSnapshots, keptFor)
}

// close writes a pending image and stops the writer.
func (s *saved) close() error {
	if s == nil {
		return nil
	}
	close(s.over)
	s.work.Wait()
	return s.folder.Close()
}
