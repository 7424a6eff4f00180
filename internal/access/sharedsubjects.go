package access

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// subjectRecord is the record of the tokens of a principal.
type subjectRecord struct {
	Version int       `json:"version"`
	Tokens  []Subject `json:"tokens"`
}

// Share keeps the tokens also in records that several gateways share, sealed, so that each gateway has those with which a principal came to
// any of them. Call it before the first use.
func (s *Subjects) Share(records Records) { s.records = records }

// readShared returns the tokens of a principal in the records.
func (s *Subjects) readShared(ctx context.Context, fresh bool, principal string) (r subjectRecord, revision uint64, err error) {
	data, revision, err := s.records.Get(ctx, fresh, sessionID(principal))
	if err != nil || revision == 0 {
		return r, 0, err
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Version > recordVersion {
		return r, 0, errors.Join(errors.New("the tokens of a principal in the store are damaged or of a newer version"), err)
	}
	return r, revision, nil
}

// putShared adds a token to the records, in place of those of the same kind or of another person.
func (s *Subjects) putShared(ctx context.Context, principal string, one Subject) error {
	for range attempts {
		r, revision, err := s.readShared(ctx, true, principal)
		if err != nil {
			return err
		}
		now := time.Now()
		r.Version = recordVersion
		r.Tokens = slices.DeleteFunc(r.Tokens, func(t Subject) bool {
			return !t.usable(now) || t.Issuer == one.Issuer && (t.ID != one.ID || t.Kind == one.Kind && !t.outlives(one))
		})
		if !slices.ContainsFunc(r.Tokens, func(t Subject) bool { return t.Issuer == one.Issuer && t.Kind == one.Kind }) {
			r.Tokens = append(r.Tokens, one)
		}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if ok, err := s.records.Put(ctx, data, revision, sessionID(principal)); ok || err != nil {
			return err
		}
	}
	return errors.New("other processes write them all the time")
}

// getShared returns a token of a principal in the records; known is false if the store does not answer.
func (s *Subjects) getShared(key subjectKey) (one Subject, ok, known bool) {
	r, _, err := s.readShared(context.Background(), false, key.principal)
	if err != nil {
		return one, false, false
	}
	now := time.Now()
	at := slices.IndexFunc(r.Tokens, func(t Subject) bool { return t.Issuer == key.issuer && t.Kind == key.kind && t.usable(now) })
	if at < 0 {
		return one, false, true
	}
	return r.Tokens[at], true, true
}
