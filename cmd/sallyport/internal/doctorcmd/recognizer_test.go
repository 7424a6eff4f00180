package doctorcmd

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/recognizer/recognizertest"
	"sallyport/internal/testutil/tlstest"
)

// TestCheckRecognizer: doctor asks the service about a sentence, and says what the operator can change.
func TestCheckRecognizer(t *testing.T) {
	t.Parallel()
	s := recognizertest.New(t, map[string]string{"Anna Schmidt": "PERSON"})
	cfg := config.Recognizer{
		URL: s.URL, CA: tlstest.Authority(t), Language: "en", Threshold: 0.5, Batch: true, Timeout: 10 * time.Second,
		Entities: map[string]string{"PERSON": "name"}, OnFailure: config.FailureRefuse,
	}
	stranger := httptest.NewTLSServer(s) // with a certificate of an unknown authority
	t.Cleanup(stranger.Close)
	for _, c := range []struct {
		name        string
		change      func(*config.Recognizer)
		ok, warn    bool
		detail, fix string
	}{
		{"well", func(*config.Recognizer) {}, true, false, "answers in ", ""},
		{"local", func(r *config.Recognizer) { *r = config.Recognizer{Local: true} }, true, false, "built-in", ""},
		{"other entity", func(r *config.Recognizer) { r.Entities = map[string]string{"LOCATION": "address"} }, true, true, `it found nothing in "Please write to Anna`, "/supportedentities"},
		{"unknown entity", func(r *config.Recognizer) { r.Entities = map[string]string{"PESRON": "name"} }, false, false, "refused: it answered HTTP 500", "language or entities"},
		{"unknown language", func(r *config.Recognizer) { r.Language = "tlh" }, false, false, "refused: it answered HTTP 500", "language or entities"},
		{"passes", func(r *config.Recognizer) { r.Language, r.OnFailure = "tlh", config.FailurePass }, true, true, "are not found: it answered HTTP 500", "language or entities"},
		{"path", func(r *config.Recognizer) { r.URL += "/v1" }, false, false, "HTTP 404", "privacy.recognizer.url"},
		{"certificate", func(r *config.Recognizer) { r.URL = stranger.URL }, false, false, "its certificate is not trusted", "privacy.recognizer.ca"},
	} {
		r := cfg
		c.change(&r)
		got := checkRecognizer(t.Context(), r)
		if got.OK != c.ok || got.Warn != c.warn || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Fix, c.fix) || (got.Fix == "") != (c.fix == "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
