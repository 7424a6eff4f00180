package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/testutil/ireval"
)

// row is what one engine made of one query. It is what -json writes and -compare reads.
type row struct {
	Engine string `json:"engine"`
	Group  string `json:"group"` // set/kind
	ID     string `json:"id"`
	Query  string `json:"query"`
	Tuned  bool   `json:"tuned"` // of the half that weights were chosen by
	Apart  bool   `json:"apart"` // of the other one, with nothing in common with this one
	None   bool   `json:"none"`  // no tool fits, so there is no ranking
	Weak   bool   `json:"weak"`  // the engine said that nothing fits well
	// Confidence is the estimate that one of the first five is right, 0 for an engine without one.
	Confidence float64       `json:"confidence"`
	Scores     ireval.Scores `json:"scores"`
	Gold       []string      `json:"gold,omitempty"`
	Top        []string      `json:"top,omitempty"`
	// First is the tokens of the first answer, Until those of all answers up to the
	// one with a gold tool, Seen whether there was one; -1 if it was not measured.
	First int  `json:"first"`
	Until int  `json:"until"`
	Seen  bool `json:"seen"`
	// Signed is whether the first answer has the signature of a gold tool, to write code from.
	Signed bool `json:"signed"`
}

// key tells queries apart.
func (r row) key() string { return r.Engine + "\n" + r.Group + "\n" + r.ID }

// evaluate asks the engine every query of the set.
func evaluate(ctx context.Context, e engine, s *ireval.Set) ([]row, error) {
	rows := make([]row, 0, len(s.Queries))
	for _, q := range s.Queries {
		a, err := e.search(ctx, q.Text)
		if err != nil {
			return nil, fmt.Errorf("ask %s for %s: %w", e.name, q.ID, err)
		}
		r := row{Engine: e.name, Group: q.Group, ID: q.ID, Query: q.Text, Tuned: q.Tuned, Apart: q.Apart, None: len(q.Gold) == 0,
			Weak: a.weak, Confidence: a.confidence, Gold: q.Gold, Top: a.ids, First: -1, Until: -1}
		if !r.None {
			r.Scores = ireval.Score(q, a.ids)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// sources are where the sets lie.
type sources struct{ retrieval, catalog, queries string }

// absent is the file of needs that no tool of the catalogue fits.
func (src sources) absent() string { return filepath.Join(src.retrieval, "absent", "queries.jsonl") }

// setNames are the sets in the order of the tables.
func setNames() []string { return append(ireval.Names(), "catalog", "absent") }

func (src sources) read(name string) (*ireval.Set, error) {
	switch {
	case name == "catalog":
		return ireval.ReadCatalog(src.catalog, src.queries)
	case name == "absent":
		return ireval.ReadCatalog(src.catalog, src.absent())
	case slices.Contains(ireval.Names(), name):
		return ireval.Read(src.retrieval, name)
	}
	return nil, fmt.Errorf("unknown set %q (use %s)", name, strings.Join(setNames(), ", "))
}

// runSet evaluates all engines on a set; what the answers cost is
// asked of a gateway unless ask is nil, and stands in the rows of the first engine.
func runSet(ctx context.Context, s *ireval.Set, engines []string, ask *gatewayOptions) (rows []row, err error) {
	for i, name := range engines {
		more, err := runEngine(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if ask != nil && i == 0 && len(more) > 0 {
			if err := countTokens(ctx, s, more, *ask); err != nil {
				return nil, err
			}
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func runEngine(ctx context.Context, s *ireval.Set, name string) ([]row, error) {
	e, err := openEngine(name, s)
	if err != nil {
		return nil, err
	}
	rows, err := evaluate(ctx, e, s)
	return rows, errors.Join(err, e.close())
}

func countTokens(ctx context.Context, s *ireval.Set, rows []row, ask gatewayOptions) error {
	f, err := openGateway(ctx, s)
	if err != nil {
		return err
	}
	return errors.Join(f.measure(ctx, rows, ask), f.Close())
}
