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

func decodeSubjects(data []byte) (r subjectRecord, err error) {
	if err := json.Unmarshal(data, &r); err != nil || r.Version > recordVersion {
		return r, errors.Join(errors.New("the tokens of a principal in the store are damaged or of a newer version"), err)
	}
	return r, nil
}

// putShared adds a token to the records, in place of those of the same kind or of another person.
func (s *Subjects) putShared(ctx context.Context, principal string, one Subject) error {
	return changeRecord(ctx, s.records, recordKey(principal), func(data []byte) ([]byte, error) {
		var r subjectRecord
		if data != nil {
			var err error
			if r, err = decodeSubjects(data); err != nil {
				return nil, err
			}
		}
		now := time.Now()
		r.Version = recordVersion
		r.Tokens = slices.DeleteFunc(r.Tokens, func(t Subject) bool {
			return !t.usable(now) || t.Issuer == one.Issuer && (t.ID != one.ID || t.Kind == one.Kind && !t.outlives(one))
		})
		if !slices.ContainsFunc(r.Tokens, func(t Subject) bool { return t.Issuer == one.Issuer && t.Kind == one.Kind }) {
			r.Tokens = append(r.Tokens, one)
		}
		return json.Marshal(r)
	})
}

// getShared returns a token of a principal in the records; known is false if the store does not answer.
func (s *Subjects) getShared(key subjectKey) (one Subject, ok, known bool) {
	data, revision, err := s.records.Get(context.Background(), false, recordKey(key.principal))
	if err != nil {
		return one, false, false
	}
	if revision == 0 {
		return one, false, true
	}
	r, err := decodeSubjects(data)
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
