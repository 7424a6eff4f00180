package endpoint_test

import (
	"testing"

	"sallyport/bench/endpoint"
)

func TestSame(t *testing.T) {
	for _, test := range []struct {
		answer, want string
		same         bool
	}{
		{"17:45", "17:45", true},
		{" 17:45.\n", "17:45", true},
		{"**17:45**", "17:45", true},
		{"```\n17:45\n```", "17:45", true},
		{"The shop closes at 17:45 on weekdays.", "17:45", true},
		{"It opens at 08:30 and closes at 17:45.", "17:45", false},
		{"It opens at 08:30 and closes at **17:45**.", "17:45", true},
		{"It is either `08:30` or `17:45`", "17:45", false},
		{"17.45", "17:45", false},
		{"The shop closes at 17:30.", "17:45", false},
		{"I counted 12 rows twice.\n\nAnswer: 24", "24", true},
		{"There are 24, of 300.", "24", false},
		{"124", "24", false},
		{"1,234", "1234", false},
		{"Rome 12, Oslo 3", "Rome 12, Oslo 3", true},
		{"The counts:\nRome 12,  Oslo 3", "Rome 12, Oslo 3", true},
		{"The counts are: **Rome 12, Oslo 3**.", "Rome 12, Oslo 3", true},
		{"Rome 12, Oslo 3, Bern 1", "Rome 12, Oslo 3", false},
		{"Oslo 3, Rome 12", "Rome 12, Oslo 3", false},
		{"Rome 13, Oslo 3", "Rome 12, Oslo 3", false},
		{"It is Ada Lovelace, I think.", "Ada Lovelace", false},
		{"Ada Lovelace.", "Ada Lovelace", true},
		{"The subject is `fix: log, *twice*`", "fix: log, *twice*", true},
		{"log", "fix: log", false},
		{"", "24", false},
		{"2024-05", "2024-05", true},
	} {
		if endpoint.Same(test.answer, test.want) != test.same {
			t.Errorf("%q for %q: %v", test.answer, test.want, !test.same)
		}
	}
}
