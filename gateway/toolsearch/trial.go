package toolsearch

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the file of the trial
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/gateway/embeddings"
	"sallyport/index"
	"sallyport/internal/atomicfile"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

//go:embed trial.txt
var trialText string

// trial are tools, and queries with the one tool that fits each.
type trial struct {
	docs    []index.Doc
	queries []string
	right   []tool.ID
}

var builtInTrial = sync.OnceValue(func() (t trial) {
	for line := range strings.Lines(trialText) {
		line = strings.TrimSpace(line)
		if query, ok := strings.CutPrefix(line, "? "); ok {
			t.queries, t.right = append(t.queries, query), append(t.right, t.docs[len(t.docs)-1].ID)
		} else if name, about, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			upstream, short, _ := strings.Cut(name, ".")
			t.docs = append(t.docs, index.Doc{ID: tool.ID{Upstream: upstream, Name: short}, Description: about})
		}
	}
	return t
})

// Verdict says what a model of embeddings does to searches for the tools of the built-in trial.
type Verdict struct {
	// Words is the mean nDCG@10 of searches without the model, WithModel of those with it at its usual weight.
	Words     float64 `json:"words"`
	WithModel float64 `json:"with_model"`
	// Weight is the usual weight if searches are no worse with it, else a lower one if they are better with that, else 0: then the
	// model is not used.
	Weight float64 `json:"weight"`
}

// tolerance is by how much nDCG may fall: less is chance.
const tolerance = 0.005

// JudgeEmbeddings compares searches with and without the model of the settings. It requests about 200 vectors. Errors are for a person
// to read.
func JudgeEmbeddings(ctx context.Context, cfg config.Embeddings) (v Verdict, err error) {
	t := builtInTrial()
	docs := make([]embeddings.Document, len(t.docs))
	for i := range t.docs {
		docs[i] = embeddings.Document{ID: t.docs[i].ID, Text: embeddedText(&t.docs[i])}
	}
	rankings, err := embeddings.Rankings(ctx, EmbeddingsOf(cfg), docs, t.queries)
	if err != nil {
		return v, err
	}
	ix, err := index.New(t.docs, nil)
	if err != nil {
		return v, err
	}
	defer func() { _ = ix.Close() }() // it is in memory
	if v.Words, err = t.score(ctx, ix, nil, 0); err != nil {
		return v, err
	}
	if v.WithModel, err = t.score(ctx, ix, rankings, index.AlsoWeight); err != nil || v.WithModel >= v.Words-tolerance {
		v.Weight = index.AlsoWeight
		return v, err
	}
	const lower = index.AlsoWeight / 3
	with, err := t.score(ctx, ix, rankings, lower)
	if err == nil && with > v.Words+tolerance {
		v.Weight = lower
	}
	return v, err
}

// score returns the mean nDCG@10 of all queries; with rankings, fused with them at a weight.
func (t trial) score(ctx context.Context, ix *index.Index, rankings [][]tool.ID, weight float64) (mean float64, err error) {
	for i, query := range t.queries {
		q := index.Query{Text: query, Limit: 10}
		if rankings != nil {
			q.Also, q.AlsoWeight = rankings[i], weight
		}
		found, err := ix.Search(ctx, q)
		if err != nil {
			return 0, err
		}
		if at := slices.IndexFunc(found.Hits, func(h index.Hit) bool { return h.ID == t.right[i] }); at >= 0 {
			mean += 1 / math.Log2(float64(at+2)) / float64(len(t.queries))
		}
	}
	return mean, nil
}

// judge sets the weight of the ranker's model in searches, by a verdict that is kept in a directory.
func (r *ranker) judge(ctx context.Context, sr *Searcher, dir string) {
	path := ""
	if dir != "" {
		path = filepath.Join(dir, "trial-"+trialKey(r.settings)+".json")
	}
	v, err := readVerdict(path)
	if err != nil {
		if v, err = JudgeEmbeddings(ctx, r.settings); err != nil {
			sr.opts.Logger.Debug("the model of embeddings could not be judged", "error", err)
			return
		}
		sr.warn("keep the verdict on embeddings", writeVerdict(path, v))
	}
	r.weight.Store(&v.Weight)
	if v.Weight < index.AlsoWeight {
		sr.opts.Logger.Warn("the model of embeddings makes searches worse, so it counts less or not", "model", r.settings.Model, "words", round(v.Words), "with", round(v.WithModel), "weight", v.Weight)
	}
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// trialKey identifies what a verdict depends on.
func trialKey(cfg config.Embeddings) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{trialText, cfg.URL, cfg.Model, cfg.QueryPrefix, cfg.DocumentPrefix}))
	return hex.EncodeToString(sum[:8])
}

func readVerdict(path string) (v Verdict, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	return v, err
}

func writeVerdict(path string, v Verdict) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	old, _ := os.ReadFile(path) // nil if there is none
	_, err = atomicfile.Write(path, old, data, nil)
	return err
}
