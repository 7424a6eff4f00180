package doctorcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/catalog"
	"sallyport/gateway/embeddings"
	"sallyport/gateway/toolsearch"
	"sallyport/index"
	"sallyport/internal/config"
	"sallyport/sandbox"
)

// checkEmbeddings checks that the embeddings endpoint answers in time. A failure is
// only a warning, as search works without it.
func checkEmbeddings(ctx context.Context, cfg config.Embeddings) finding {
	check := sandbox.Check{Name: "embeddings", OK: true}
	if cfg.Problem != "" {
		check.Warn, check.Detail, check.Fix = true, cfg.Problem, catalog.Remedy(cfg.Problem)
		return finding{Check: check}
	}
	dim, took, err := embeddings.Check(ctx, toolsearch.EmbeddingsOf(cfg))
	switch {
	case err != nil:
		check.Warn, check.Detail = true, "search uses words only: "+err.Error()
		check.Fix = embeddingsRemedy(err.Error())
	case took > cfg.Timeout:
		check.Warn, check.Detail = true, fmt.Sprintf("answered in %d ms, and a search waits %d ms", took.Milliseconds(), cfg.Timeout.Milliseconds())
		check.Fix = "try again, for a model may have to be loaded first; else raise search.embeddings.timeout in upstreams.yaml, or use a faster endpoint"
	default:
		check.Detail = fmt.Sprintf("vectors of %d numbers, in %s", dim, took.Round(time.Millisecond))
		judgeEmbeddings(ctx, cfg, &check)
	}
	return finding{Check: check}
}

// judgeEmbeddings adds to the check what the model does to searches.
func judgeEmbeddings(ctx context.Context, cfg config.Embeddings, check *sandbox.Check) {
	v, err := toolsearch.JudgeEmbeddings(ctx, cfg)
	if err != nil {
		check.Warn, check.Detail, check.Fix = true, check.Detail+"; its searches cannot be judged: "+err.Error(), "try again"
		return
	}
	check.Detail += fmt.Sprintf("; searches for the right tool score %.2f with it, %.2f without", v.WithModel, v.Words)
	if v.Weight < index.AlsoWeight {
		check.Warn, check.Fix = true, "set query_prefix and document_prefix to those of the model's card, or choose a model for retrieval; until then it counts less"
	}
	if v.Weight == 0 {
		check.Detail += ": it is not used"
	}
}

func embeddingsRemedy(why string) string {
	switch {
	case strings.Contains(why, "HTTP 401"), strings.Contains(why, "HTTP 403"):
		return "give it a valid key under search.embeddings.headers in upstreams.yaml"
	case strings.Contains(why, "HTTP 404"):
		return "correct search.embeddings.url (many end in /v1) or model in upstreams.yaml"
	case strings.Contains(why, "HTTP 4"):
		return "correct search.embeddings.model in upstreams.yaml"
	}
	return "start the endpoint, or correct search.embeddings.url in upstreams.yaml"
}
