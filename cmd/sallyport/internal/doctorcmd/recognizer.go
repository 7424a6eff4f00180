package doctorcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/catalog"
	"sallyport/gateway/privacy"
	"sallyport/internal/config"
	"sallyport/internal/recognizer"
	"sallyport/sandbox"
)

// checkRecognizer checks that the recognizer of personal data answers. If it does not,
// the settings decide whether results are refused or pass without it.
func checkRecognizer(ctx context.Context, cfg config.Recognizer) finding {
	check := sandbox.Check{Name: "recognizer"}
	failed := func(why, fix string) finding {
		check.Detail, check.Fix = "results with prose are refused: "+why, fix
		if cfg.OnFailure == config.FailurePass {
			check.OK, check.Warn, check.Detail = true, true, "names and addresses in prose are not found: "+why
		}
		return finding{Check: check}
	}
	if cfg.Local {
		check.OK, check.Detail = true, "the built-in model"
		return finding{Check: check}
	}
	if cfg.Problem != "" {
		return failed(cfg.Problem, catalog.Remedy(cfg.Problem))
	}
	client, err := recognizer.New(privacy.RecognizerOf(cfg))
	if err != nil {
		return failed(err.Error(), "correct privacy.recognizer in upstreams.yaml")
	}
	defer client.Close()
	took, found, err := client.Check(ctx)
	if err != nil {
		return failed(err.Error(), recognizerRemedy(err.Error()))
	}
	check.OK, check.Detail = true, fmt.Sprintf("answers in %s", took.Round(time.Millisecond))
	if found == 0 {
		check.Warn, check.Detail = true, fmt.Sprintf("it found nothing in %q", recognizer.Sample)
		check.Fix = "compare privacy.recognizer.entities and language in upstreams.yaml with what the service has (GET /supportedentities)"
	}
	return finding{Check: check}
}

func recognizerRemedy(why string) string {
	switch {
	case strings.Contains(why, "HTTP 401"), strings.Contains(why, "HTTP 403"):
		return "give it a valid key under privacy.recognizer.headers in upstreams.yaml"
	case strings.Contains(why, "HTTP 404"):
		return "correct privacy.recognizer.url in upstreams.yaml"
	case strings.Contains(why, "HTTP 5"):
		return "correct privacy.recognizer.language or entities in upstreams.yaml: the service does not have them, or read its log"
	case strings.Contains(why, "certificate"):
		return "name the file with its certificate authority as privacy.recognizer.ca in upstreams.yaml"
	}
	return "start the service, or correct privacy.recognizer.url in upstreams.yaml"
}
