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
	// maxSnapshotFiles is the maximum number of files, maxSnapshotAge the maximum age of an unused one.
	maxSnapshotFiles = 8
	maxSnapshotAge   = 30 * 24 * time.Hour
	// writeDelay is how long a catalog must be unchanged before it is written.
	writeDelay = 2 * time.Second
)

// diskCache caches analyzed documents in a folder. The name of a file is the digest of
// the analysis and of all documents. One goroutine writes files, once the catalog
// has not changed for writeDelay and on close. Failures are only logged: documents that
// cannot be read are analyzed again. A nil saved disables the cache.
type diskCache struct {
	folder   *checksumfile.Folder
	log      *slog.Logger
	analysis digest

	mu      sync.Mutex
	pending *pendingSnapshot // to be written
	last    string           // the file with the newest content, read or written

	changed, done chan struct{}
	work          sync.WaitGroup
}

// pendingSnapshot is the content of a file to write.
type pendingSnapshot struct {
	name  string
	texts []string
	docs  []analyzed
}

// openDiskCache opens the cache in dir and starts its writer. It returns nil if dir is "" or unusable.
func openDiskCache(dir string, log *slog.Logger, analysis digest) *diskCache {
	if dir == "" {
		return nil
	}
	folder, err := checksumfile.OpenFolder(dir, checksumfile.Kind{Version: snapshotVersion, Suffix: ".index", Limit: maxSnapshot})
	if err != nil {
		log.Warn("index snapshots disabled", "error", err)
		return nil
	}
	s := &diskCache{folder: folder, log: log, analysis: analysis, changed: make(chan struct{}, 1), done: make(chan struct{})}
	s.work.Go(s.run)
	return s
}

// analysisDigest returns a digest that changes when analysis would give the same documents other facts.
func analysisDigest(words *analyzers, weigh weights) digest {
	probe := Doc{ID: tool.ID{Upstream: "pullRequests", Name: "list_APIs2"}, Title: "Müller's e-mail v2.0", Upstream: "使用 tickets", Description: "The users created, with getHTTPUrl. 搜索 relational databases!",
		Params: []Param{{"customerIds", "those of the organization's accounts"}}, Values: "open closed", Results: "nextPage"}
	t := newTable()
	f := newDocAnalyzer(&wordCache{analyzers: words, table: t}, weigh).analyze(probe)
	text := fmt.Appendln(nil, snapshotVersion, analysisVersion, weigh.field, weigh.b, weigh.average, weigh.vector, words.model.Sum())
	return sha256.Sum256(append(text, encode(digest{}, t.list(), []analyzed{{probe.digest(), f}})...))
}

// fileName returns the file name for a catalog.
func (s *diskCache) fileName(docs []digest) string {
	sum := sha256.New()
	_, _ = sum.Write(s.analysis[:]) // a hash does not fail
	for _, d := range docs {
		_, _ = sum.Write(d[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// load reads the file of that name, else the newest readable one, which may share most documents.
func (s *diskCache) load(name string) ([]string, []analyzed) {
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

func (s *diskCache) read(name string) ([]string, []analyzed, error) {
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
func (s *diskCache) files() []string {
	names, err := s.folder.Names()
	if err != nil {
		s.log.Warn("list index snapshots", "error", err)
	}
	return names
}

// save schedules an image for writing.
func (s *diskCache) save(im *pendingSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = im
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run writes scheduled images until close.
func (s *diskCache) run() {
	rest := time.NewTimer(writeDelay)
	defer rest.Stop()
	for {
		select {
		case <-s.changed:
			rest.Reset(writeDelay)
		case <-rest.C:
			s.write()
		case <-s.done:
			s.write()
			return
		}
	}
}

func (s *diskCache) write() {
	s.mu.Lock()
	im, last := s.pending, s.last
	s.pending = nil
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
	s.folder.Sweep(maxSnapshotFiles, maxSnapshotAge)
}

// close writes a pending image and stops the writer.
func (s *diskCache) close() error {
	if s == nil {
		return nil
	}
	close(s.done)
	s.work.Wait()
	return s.folder.Close()
}
