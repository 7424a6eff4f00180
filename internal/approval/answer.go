package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

// Answer answers a question, once. Errors are ErrNotFound, ErrAnswered, ErrExpired, ErrInvalid, and those of the store
// and of Options.Record.
func (b *Store) Answer(ctx context.Context, id string, answer Answer) (a Approval, err error) {
	err = retryChanged(func() error { a, err = b.answer(ctx, id, answer); return err })
	return a, err
}

func (b *Store) answer(ctx context.Context, id string, answer Answer) (Approval, error) {
	answer.Scope = cmp.Or(answer.Scope, Once)
	if answer.Scope != Once && answer.Scope != Execution && answer.Scope != Session {
		return Approval{}, ErrInvalid
	}
	ctx, done, err := b.lockLoaded(ctx)
	defer done()
	if err != nil {
		return Approval{}, err
	}
	p, now := b.records[id], time.Now()
	if p == nil {
		return Approval{}, ErrNotFound
	}
	if err := p.checkAnswer(answer, now); err != nil {
		return p.asOf(now), err
	}
	next := p.Approval
	next.State, next.Scope, next.Answered, next.Expires = Denied, "", now.UTC(), now.Add(p.Expires.Sub(p.Asked)).UTC()
	switch {
	case answer.Done:
		next.State, next.Result = Done, answer.Result
	case answer.Allow:
		next.State, next.Scope = Allowed, answer.Scope
	}
	next.By, next.Note = sanitize.Line(answer.By, 100), sanitize.Line(answer.Note, 300)
	if next.Scope == Session {
		b.sessionUses[id] = now
	}
	if err := b.write(ctx, p, next); err != nil {
		delete(b.sessionUses, id)
		return p.Approval, err
	}
	return next, nil
}

// checkAnswer returns what is wrong with an answer, nil if it is valid.
func (p *record) checkAnswer(answer Answer, now time.Time) error {
	switch state := p.asOf(now).State; {
	case state == Expired:
		return ErrExpired
	case state != Waiting:
		return ErrAnswered
	case answer.Done && (answer.Allow || !p.Doubt), len(answer.Result) > maxResult, answer.Result != nil && (!answer.Done || !json.Valid(answer.Result)):
		return fmt.Errorf("%w: done is only for a call that may have been done, with a JSON result of at most %d bytes", ErrInvalid, maxResult)
	case answer.Allow && answer.Scope == Execution && p.Root == "":
		return fmt.Errorf("%w: it belongs to no execution", ErrInvalid)
	case answer.Allow && answer.Scope != Once && p.Single:
		return fmt.Errorf("%w: it can only be allowed once", ErrInvalid)
	}
	return nil
}

// MarkLost adds an approval with a damaged record as Lost, unless the book has it. It allows no call.
func (b *Store) MarkLost(ctx context.Context, a Approval) error {
	ctx, done, err := b.lockLoaded(ctx)
	defer done()
	if err != nil || b.records[a.ID] != nil {
		return err
	}
	p := &record{key: store.Key{workspace.Folder(a.Principal), a.ID}}
	a.State = Lost
	if err := b.write(ctx, p, a); err != nil {
		return err
	}
	b.records[a.ID] = p
	return nil
}

// Withdraw marks that an answer is no longer needed.
func (b *Store) Withdraw(ctx context.Context, id string) error {
	return retryChanged(func() error { return b.withdraw(ctx, id) })
}

func (b *Store) withdraw(ctx context.Context, id string) error {
	ctx, done, err := b.lockLoaded(ctx)
	defer done()
	p := b.records[id]
	if err != nil || p == nil || p.asOf(time.Now()).State != Waiting {
		return err
	}
	next := p.Approval
	next.State = Withdrawn
	return b.write(ctx, p, next)
}
