package audit_test

import (
	"strings"
	"testing"

	"sallyport/internal/audit"
)

func TestParseHead(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0a", 32)
	for text, ok := range map[string]bool{"7:" + hash: true, " 7:" + hash + "\n": true, `{"seq":7,"hash":"` + hash + `"}`: true, "7": false, "0:" + hash: false, "x:" + hash: false, "{": false} {
		h, err := audit.ParseHead(text)
		if (err == nil) != ok || ok && h.String() != "7:"+hash {
			t.Errorf("%q: %v, %v", text, h, err)
		}
	}
}
