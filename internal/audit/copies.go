package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Copied is a chain with a copy in a store that several gateways share.
type Copied struct {
	// Chain is its name: see [Chain].
	Chain string `json:"chain"`
	// Gateway is the id in the store of the process that wrote the copy last, Host its machine; "" if unknown.
	Gateway string `json:"gateway,omitempty"`
	Host    string `json:"host,omitempty"`
	// Head is the end of the copy, as the gateway signed it. It is not checked; its zero value is none.
	Head Head `json:"head"`
}

// String names the chain and its machine.
func (c Copied) String() string {
	if c.Host == "" {
		return c.Chain
	}
	return c.Chain + " (" + c.Host + ")"
}

// Is reports whether a text names the chain: its name or the beginning of it, its machine, or its gateway.
func (c Copied) Is(name string) bool {
	return name != "" && (name == c.Host || name == c.Gateway || len(name) >= 4 && strings.HasPrefix(c.Chain, name))
}

// AllGateways names all copies, see [Choose].
const AllGateways = "all"

// Choose returns the copies that a name is of, see [Copied.Is]; all for [AllGateways]. The error for none is a *[tool.Error].
func Choose(all []Copied, name string) ([]Copied, error) {
	if name == AllGateways {
		return all, nil
	}
	var chosen []Copied
	var names []string
	for _, c := range all {
		names = append(names, c.String())
		if c.Is(name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("no gateway %.40q has audit records in the store", name), Hint: "those that have: " + strings.Join(names, ", ")}
	}
	return chosen, nil
}

// headsOf returns the signed heads of the copies.
func headsOf(in *store.Store) (*store.Bucket, error) {
	return in.Bucket("audit_heads", store.Limits{Records: 10_000, Bytes: 16 << 20, Record: 4 << 10})
}

// Copies returns the chains with a copy in a store that several gateways share, by name; none for another store. Chains without records
// are left out when their head is older than keep, the age at which records are removed; 0 is never.
func Copies(ctx context.Context, in *store.Store, keep time.Duration) (all []Copied, err error) {
	found := map[string]Copied{}
	chains, err := Chains(ctx, in)
	if err != nil || !in.Shared() {
		return nil, err
	}
	for _, chain := range chains {
		found[chain] = Copied{Chain: chain}
	}
	heads, err := headsOf(in)
	if err != nil {
		return nil, err
	}
	for e, err := range heads.List(ctx, nil) {
		if err != nil {
			return nil, err
		}
		var c Copied
		if json.Unmarshal(e.Value, &c) == nil && len(e.Key) == 1 && c.Chain == e.Key[0] && (slices.Contains(chains, c.Chain) || keep == 0 || time.Since(c.Head.Time) < keep) {
			c.Host, c.Gateway = sanitize.Line(c.Host, 100), sanitize.Line(c.Gateway, 40)
			found[c.Chain] = c
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[name])
	}
	return all, nil
}

// signedCopy sends records to the copy, and then the signed head of the last one.
type signedCopy struct {
	*Mirror

	log   *Log
	in    *store.Store
	heads *store.Bucket
}

// signed returns a sink that also writes heads, the copy itself in a store of one process.
func (l *Log) signed(m *Mirror) (Sink, error) {
	if !m.in.Shared() {
		return m, nil
	}
	heads, err := headsOf(m.in)
	return &signedCopy{m, l, m.in, heads}, err
}

// Send implements [Sink].
func (s *signedCopy) Send(ctx context.Context, records []Record) error {
	if err := s.Mirror.Send(ctx, records); err != nil {
		return err
	}
	host, _ := os.Hostname() // "" if unknown
	last := records[len(records)-1]
	head := s.log.keys.Load().sign(Head{Seq: last.Seq, Hash: last.Hash, Time: time.Now().UTC()})
	chain := head.Key[:chainLength]
	data, err := json.Marshal(Copied{chain, s.in.Self(), host, head})
	if err != nil {
		return err
	}
	_, err = s.heads.Put(ctx, store.Key{chain}, data)
	return err
}

// CopiedRecord is a record of a copy.
type CopiedRecord struct {
	Record

	Of Copied
}

// ReadCopies yields the records of copies, merged by their times. A line that is not a record, or was edited, comes with an error that is an
// ErrDamaged, and the walk continues; another error ends it.
func ReadCopies(ctx context.Context, in *store.Store, chains []Copied) iter.Seq2[CopiedRecord, error] {
	return func(yield func(CopiedRecord, error) bool) {
		var open []*copyReader
		for _, c := range chains {
			r, err := newCopyReader(ctx, in, c)
			if err != nil {
				yield(CopiedRecord{Of: c}, err)
				return
			}
			defer r.stop()
			open = append(open, r)
		}
		for {
			open = slices.DeleteFunc(open, func(r *copyReader) bool { return r.done })
			if len(open) == 0 {
				return
			}
			first := slices.MinFunc(open, func(a, b *copyReader) int { return a.at.Time.Compare(b.at.Time) })
			if !yield(first.at, first.err) || first.err != nil && !errors.Is(first.err, ErrDamaged) {
				return
			}
			first.advance()
		}
	}
}

// copyReader reads one copy.
type copyReader struct {
	next func() ([]byte, error, bool)
	stop func()
	at   CopiedRecord
	err  error
	done bool
}

func newCopyReader(ctx context.Context, in *store.Store, c Copied) (*copyReader, error) {
	m, err := NewMirror(in, c.Chain, 0, 0)
	if err != nil {
		return nil, err
	}
	r := &copyReader{at: CopiedRecord{Of: c}}
	r.next, r.stop = iter.Pull2(m.Lines(ctx))
	r.advance()
	return r, nil
}

// advance reads the next line. One that is not a record keeps the time of the one before.
func (r *copyReader) advance() {
	line, err, ok := r.next()
	if r.done = !ok; r.done || err != nil {
		r.err = err
		return
	}
	record, err := decode(bytes.Clone(line))
	if r.err = err; err != nil {
		r.err = fmt.Errorf("%w: the copy of chain %s after record %d: %w", ErrDamaged, r.at.Of, r.at.Seq, err)
		return
	}
	r.at.Record = record
}

// VerifyCopy verifies the copy of a chain by itself: its hashes, and its signed head. The files of the gateway are not needed, so that
// the records of one that was lost can be verified. An error means that the check could not be completed.
func VerifyCopy(ctx context.Context, in *store.Store, c Copied) (Report, error) {
	v := &verifier{pruned: map[uint64]string{}, expected: map[uint64][]claim{}}
	v.Problems = []Problem{}
	m, err := NewMirror(in, c.Chain, 0, 0)
	if err != nil {
		return v.Report, err
	}
	v.expectSigned(c)
	for line, err := range m.Lines(ctx) {
		if err == nil {
			record, wrong := decode(line)
			err = v.checkLine(record, wrong, Problem{})
		}
		if err != nil {
			return v.Report, fmt.Errorf("verify the copy of chain %s: %w", c, err)
		}
	}
	v.noteFirst()
	v.checkClaims()
	if signed := c.Head.Seq; signed > 0 && signed < v.Last {
		v.Notes = append(v.Notes, fmt.Sprintf("records %d to %d are not covered by a signed head yet", signed+1, v.Last))
	}
	return v.Report, nil
}

// expectSigned expects the record of the signed head.
func (v *verifier) expectSigned(c Copied) {
	switch {
	case c.Head.Seq == 0:
		v.problem(Problem{Seq: 1, Text: "no signed head is in the store: the copy may have been replaced"})
	case !strings.HasPrefix(c.Head.Key, c.Chain) || !c.Head.check(c.Head.Key):
		v.problem(Problem{Seq: c.Head.Seq, Text: "the head in the store was not signed with the key of this chain"})
	default:
		v.expected[c.Head.Seq] = append(v.expected[c.Head.Seq], claim{hash: c.Head.Hash, by: "the signed head in the store"})
	}
}

// noteFirst notes that a copy does not begin with the first record: the store drops the oldest.
func (v *verifier) noteFirst() {
	if v.Count > 0 && (v.anchor.Seq != 1 || v.anchor.Prev != noHash) {
		v.Notes = append(v.Notes, fmt.Sprintf("the copy begins at record %d: those before were dropped as the oldest, or removed", v.anchor.Seq))
	}
}

// Verified is a chain, and what the verification of its copy found.
type Verified struct {
	Copied
	Report

	// Whole says that there are no problems.
	Whole bool `json:"ok"`
}

// VerifyCopies verifies chains, each by itself: see [VerifyCopy].
func VerifyCopies(ctx context.Context, in *store.Store, chains []Copied) (all []Verified, err error) {
	for _, c := range chains {
		report, err := VerifyCopy(ctx, in, c)
		if err != nil {
			return nil, err
		}
		all = append(all, Verified{c, report, report.OK()})
	}
	return all, nil
}
