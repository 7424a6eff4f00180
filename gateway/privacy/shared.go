package privacy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/pii"
	"sallyport/internal/seal"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
)

const (
	// vaultKept is how long values are in the store after they were seen first.
	vaultKept = 24 * time.Hour
	// maxChunk bounds the values in one record, in bytes before they are encoded.
	maxChunk = 1 << 20
	// refreshPause is the time between two requests for the values of a session, because of unknown tokens.
	refreshPause = 20 * time.Millisecond
	// followRetry is the pause after an error of the store.
	followRetry = 2 * time.Second
)

// sharedVaults keeps the values of tokens in a store that gateways share, so that each restores the tokens of the others. Its
// servers see no value: records are sealed.
type sharedVaults struct {
	vaults  *pii.Vaults
	records *store.Log
	key     *seal.Key
	breaker *store.Breaker
	log     *slog.Logger
	self    string // begins the names of own records
	written atomic.Int64
	end     func()

	mu   sync.Mutex
	next map[pii.Place]time.Time // when a session may refresh again
}

// chunk is the content of a record: values of one session.
type chunk struct {
	pii.Place
	Values []pii.Stored `json:"values"`
}

// shareVaults keeps values in a store, if other gateways share it and it has a key; else they are in memory only.
func (p *Tokenizer) shareVaults(in *store.Store) error {
	if !in.Shared() || in.Seal() == nil {
		return nil
	}
	records, err := in.Log(store.PrivatePrefix+"vault", store.Limits{Records: 1_000_000, Age: vaultKept, Bytes: 256 << 20, Record: 4 << 20})
	if err != nil {
		return err
	}
	s := &sharedVaults{vaults: &p.vaults, records: records, breaker: in.Breaker(), key: in.Seal(), log: p.log, self: in.Self(), next: map[pii.Place]time.Time{}}
	p.vaults.Load = s.load
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { s.follow(ctx) })
	s.end = func() {
		cancel()
		work.Wait()
	}
	p.shared = s
	return nil
}

// follow adds what other gateways store from now on to the vaults that are in use here, until ctx ends.
func (s *sharedVaults) follow(ctx context.Context) {
	var now uint64
	for ctx.Err() == nil {
		var err error
		if now, err = s.records.Append(ctx, store.Key{"start", s.self, "0"}, []byte("-")); err == nil { // to learn the newest revision
			break
		}
		s.log.Debug("values of other gateways are not followed yet", "error", err)
		if sleep.For(ctx, followRetry) != nil {
			return
		}
	}
	end := s.records.Subscribe(s.log, now+1, s.receive)
	defer end()
	<-ctx.Done()
}

// receive adds the values of a record of another gateway.
func (s *sharedVaults) receive(e store.Entry) {
	if len(e.Key) != 3 || e.Key[0] == "start" || isOwn(e.Key[2], s.self) {
		return
	}
	c, err := s.open(e)
	if err != nil {
		s.log.Error("values of another gateway cannot be read", "error", err)
		return
	}
	if v := s.vaults.Known(c.Place); v != nil {
		v.Add(c.Values)
	}
}

func isOwn(name, self string) bool { return len(name) > len(self) && name[:len(self)+1] == self+"-" }

// placeKey returns the key of the records of a session, without their last part. It names neither the principal nor the session.
func placeKey(at pii.Place) store.Key {
	sum := sha256.Sum256([]byte(strconv.Quote(at.Principal) + at.Session))
	return store.Key{"values", hex.EncodeToString(sum[:16])}
}

func (s *sharedVaults) open(e store.Entry) (c chunk, err error) {
	data, err := s.key.Open(e.Value, append([]string{"vault"}, e.Key...)...)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(data, &c)
}

// load adds what all gateways know of a session to its vault.
func (s *sharedVaults) load(at pii.Place, v *pii.Vault) {
	err := s.breaker.Do(context.Background(), func(ctx context.Context) error {
		all, err := s.records.Lasts(ctx, placeKey(at))
		for _, e := range all {
			c, err := s.open(e)
			if err != nil {
				s.log.Error("values of tokens cannot be read", "error", err)
				continue
			}
			v.Add(c.Values)
		}
		return err
	})
	if err != nil {
		s.log.Warn("the values of tokens that other gateways gave are not known here yet", "error", err)
	}
}

// refresh loads the values of a session again: a text has a token that is unknown here. A session that uses many such tokens waits.
func (s *sharedVaults) refresh(at pii.Place, v *pii.Vault) {
	s.mu.Lock()
	if len(s.next) > 10_000 {
		clear(s.next)
	}
	now := time.Now()
	turn := s.next[at]
	if turn.Before(now) {
		turn = now
	}
	s.next[at] = turn.Add(refreshPause)
	s.mu.Unlock()
	time.Sleep(turn.Sub(now))
	s.load(at, v)
}

// store stores what has changed in a vault. When it returns, every gateway can restore its tokens. Values that cannot be stored
// are known here, and stored with the next ones.
func (s *sharedVaults) store(ctx context.Context, v *pii.Vault) {
	if err := v.StoreChanged(func(at pii.Place, values []pii.Stored) error { return s.write(ctx, at, values) }); err != nil {
		s.log.WarnContext(ctx, "the values of tokens are known to this gateway only", "error", err)
	}
}

// share stores all values of a vault for a session that uses it from now on.
func (s *sharedVaults) share(ctx context.Context, at pii.Place, v *pii.Vault) {
	if err := s.write(ctx, at, v.All()); err != nil {
		s.log.WarnContext(ctx, "the values of tokens that a session takes over are known to this gateway only", "error", err)
	}
}

// write stores values of a session.
func (s *sharedVaults) write(ctx context.Context, at pii.Place, values []pii.Stored) error {
	for len(values) > 0 {
		n, size := 0, 0
		for n < len(values) && (n == 0 || size < maxChunk) {
			size += len(values[n].Value) + 200
			n++
		}
		data, err := json.Marshal(chunk{at, values[:n]})
		if err != nil {
			return err
		}
		key := append(placeKey(at), s.self+"-"+strconv.FormatInt(time.Now().UnixNano(), 36)+"-"+strconv.FormatInt(s.written.Add(1), 36))
		sealed := s.key.Seal(data, append([]string{"vault"}, key...)...)
		if err := s.breaker.Do(context.WithoutCancel(ctx), func(ctx context.Context) error {
			_, err := s.records.Append(ctx, key, sealed)
			return err
		}); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}
