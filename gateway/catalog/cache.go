package catalog

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sallyport/internal/checksumfile"
	"sallyport/internal/commandtool"
	"sallyport/internal/config"
	"sallyport/internal/tlsfiles"
	"sallyport/internal/tool"
	"sallyport/internal/webaccess"
)

const (
	// cacheVersion changes when a file of another version would be misread.
	cacheVersion = 1
	// cacheMaxAge is how long an unused file is kept, cacheTouchInterval how often
	// the time of its last use is updated.
	cacheMaxAge        = 30 * 24 * time.Hour
	cacheTouchInterval = 24 * time.Hour
	// maxCached bounds one file, in bytes.
	maxCached = 256 << 20

	cacheKeyFile = "key"
	cacheSuffix  = ".offer"
	silentSuffix = ".silent"
)

// cache stores the upstreams' offers on disk, so that search does not have to start
// them. A file is named by a digest of the settings that determine the offer. Errors
// are logged, and count as a missing file. A nil cache stores nothing. It is safe for
// concurrent use.
type cache struct {
	root *os.Root
	key  []byte // key of the digests: settings hold secrets that a plain hash would let be guessed
	log  *slog.Logger
}

// openCache returns nil without a directory, and after an error, which it logs.
func openCache(dir string, log *slog.Logger) *cache {
	if dir == "" {
		return nil
	}
	c, err := newCache(dir, log)
	if err != nil {
		log.Warn("catalog cache is not used", "error", err)
		return nil
	}
	return c
}

func newCache(dir string, log *slog.Logger) (*cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	c := &cache{root: root, log: log}
	if c.key, err = c.readKey(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return c, nil
}

// readKey reads the key, or creates it. Processes that create one at the same time
// use the same: the first to link it into place.
func (c *cache) readKey() ([]byte, error) {
	key, err := c.root.ReadFile(cacheKeyFile)
	if err == nil && len(key) == sha256.Size {
		return key, nil
	}
	if err == nil {
		_ = c.root.Remove(cacheKeyFile) // truncated or invalid
	}
	name, err := checksumfile.Temp(c.root, func(w io.Writer) error {
		_, err := io.CopyN(w, rand.Reader, sha256.Size)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.root.Remove(name) }()
	if err := c.root.Link(name, cacheKeyFile); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if key, err = c.root.ReadFile(cacheKeyFile); err == nil && len(key) != sha256.Size {
		err = fmt.Errorf("%s has %d bytes", cacheKeyFile, len(key))
	}
	return key, err
}

// offerSettings are the settings that can change the offer of an upstream. Its JSON is part of the names of cache
// files: a new field must have omitempty, or all files of earlier versions are ignored.
type offerSettings struct {
	ID, Problem, Command string
	Args                 []string
	Env                  map[string]string
	Dir, URL             string
	Headers              map[string]string
	Socket, Transport    string
	TLS                  tlsfiles.Files `json:",omitzero"`
	Include, Exclude     []string
	Rename               map[string]string
	Timeout, Concurrency int // always 0, as in the files of earlier versions
	MaxMessage           int64
	Idle                 int // always 0
	NoTraceContext       bool
	Isolate              *config.Isolation  `json:",omitempty"`
	OpenAPI, GraphQL     string             `json:",omitempty"`
	GRPC                 string             `json:",omitempty"`
	Variables            map[string]string  `json:",omitempty"`
	Query                map[string]string  `json:",omitempty"`
	Tools                []commandtool.Tool `json:",omitempty"`
	Egress               *webaccess.Access  `json:",omitempty"`
	// HostHeaders are those that the gateway sets in requests of the process, by host.
	HostHeaders map[string]map[string]string `json:",omitempty"`
}

// hostHeaders returns the headers of an isolated upstream, by host.
func hostHeaders(set *config.Isolation) map[string]map[string]string {
	if set == nil {
		return nil
	}
	all := map[string]map[string]string{}
	for _, host := range slices.Concat(set.Hosts, set.PrivateHosts) {
		if len(host.Header) > 0 {
			all[host.Name] = host.Header
		}
	}
	return all
}

// name returns the file name of an upstream: a digest of all settings that can change its offer.
func (c *cache) name(up config.Upstream) string {
	s := offerSettings{
		ID: up.ID, Problem: up.Problem, Command: up.Command, Args: up.Args, Env: up.Env, Dir: up.Dir, URL: up.URL, Headers: up.Headers, Socket: up.Socket, TLS: up.TLS,
		Transport: up.Transport, Include: up.Include, Exclude: up.Exclude, Rename: up.Rename, MaxMessage: int64(up.MaxMessage), NoTraceContext: up.NoTraceContext, Isolate: up.Isolate,
		OpenAPI: up.OpenAPI, GraphQL: up.GraphQL, GRPC: up.GRPC, Variables: up.Variables, Query: up.Query, Tools: up.Tools, Egress: up.Egress, HostHeaders: hostHeaders(up.Isolate),
	}
	auth := map[string]any{
		"type": up.Auth.Type, "client": up.Auth.ClientID, "secret": string(up.Auth.ClientSecret), "metadata": up.Auth.ClientMetadata, "scopes": up.Auth.Scopes, "issuer": up.Auth.Issuer,
	}
	sum := hmac.New(sha256.New, c.key)
	_ = json.NewEncoder(sum).Encode([]any{cacheVersion, s, auth}) // strings, numbers and maps of them: cannot fail
	return hex.EncodeToString(sum.Sum(nil)) + cacheSuffix
}

// silentName returns the name of the file that exists if the upstream has never answered.
func (c *cache) silentName(up config.Upstream) string {
	return strings.TrimSuffix(c.name(up), cacheSuffix) + silentSuffix
}

// isSilent reports whether the upstream did not answer in time when this or another process waited for it last.
func (c *cache) isSilent(up config.Upstream) bool {
	if c == nil {
		return false
	}
	_, err := c.root.Stat(c.silentName(up))
	return err == nil
}

// setSilent records whether the upstream did not answer in time.
func (c *cache) setSilent(up config.Upstream, silent bool) {
	if c == nil {
		return
	}
	var err error
	if silent {
		err = c.root.WriteFile(c.silentName(up), nil, 0o600)
	} else if err = c.root.Remove(c.silentName(up)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		c.log.Warn("cannot record whether an upstream answers", "upstream", up.ID, "error", err)
	}
}

// load returns the last known offer of the upstream, nil if there is none.
func (c *cache) load(up config.Upstream) *tool.Offer {
	if c == nil {
		return nil
	}
	name := c.name(up)
	offer, err := c.read(name, up.ID)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("cached offer is not used", "upstream", up.ID, "reason", err.Error())
		}
		return nil
	}
	return offer
}

func (c *cache) read(name, id string) (*tool.Offer, error) {
	data, info, err := checksumfile.Read(c.root, name, maxCached)
	if err != nil {
		return nil, err
	}
	offer, err := decodeOffer(data, id)
	if err == nil && time.Since(info.ModTime()) > cacheTouchInterval {
		_ = c.root.Chtimes(name, time.Time{}, time.Now())
	}
	return offer, err
}

// decodeOffer decodes a file of the upstream id.
func decodeOffer(data []byte, id string) (*tool.Offer, error) {
	body, err := checksumfile.Decode(cacheVersion, data)
	if err != nil {
		return nil, err
	}
	var offer tool.Offer
	if err := json.Unmarshal(body, &offer); err != nil {
		return nil, errors.New("not an offer")
	}
	for i := range offer.Tools {
		t := &offer.Tools[i]
		if t.ID.Upstream != id {
			return nil, errors.New("offer of another upstream")
		}
		t.Input, t.Output, t.Raw = nullToNil(t.Input), nullToNil(t.Output), nullToNil(t.Raw)
	}
	return &offer, nil
}

// nullToNil returns nil for null, which is how nil was encoded.
func nullToNil(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// encodeOffer is the inverse of decodeOffer.
func encodeOffer(offer tool.Offer) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(offer); err != nil {
		return nil, fmt.Errorf("encode offer: %w", err)
	}
	return checksumfile.Encode(cacheVersion, body.Bytes())
}

// store writes an offer.
func (c *cache) store(up config.Upstream, offer tool.Offer) error {
	data, err := encodeOffer(offer)
	if err != nil {
		return err
	}
	return checksumfile.Write(c.root, c.name(up), data)
}

// sweep removes files that have not been used for cacheMaxAge: offers of old settings,
// and temporary files of killed processes.
func (c *cache) sweep() {
	if c == nil {
		return
	}
	names, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		c.log.Warn("sweep catalog cache", "error", err)
		return
	}
	for _, entry := range names {
		info, err := entry.Info()
		if err != nil || !slices.Contains([]string{cacheSuffix, silentSuffix, ".tmp"}, path.Ext(entry.Name())) {
			continue
		}
		if time.Since(info.ModTime()) > cacheMaxAge {
			_ = c.root.Remove(entry.Name())
		}
	}
}

func (c *cache) close() error {
	if c == nil {
		return nil
	}
	return c.root.Close()
}

// save writes a new view to the cache.
func (c wrappers) save(m *member) {
	if c.cache == nil || !m.fresh.Load() || m.snapshotView != m.view.Load() || !m.unsaved.Swap(false) {
		return
	}
	if err := c.cache.store(*m.cfg.Load(), m.snapshotView.fullOffer); err != nil {
		c.log.Warn("offer cannot be cached", "upstream", m.id, "error", err)
	}
	c.cache.setSilent(*m.cfg.Load(), false)
}
