package store

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on machines without a database of them too

	"github.com/robfig/cron/v3"
)

// fieldNames are the names of the fields of a schedule, in order.
var fieldNames = []string{"second", "minute", "hour", "day of the month", "month", "day of the week"}

// field matches one field: non-empty items separated by commas. The parser accepts an empty one, and then searches
// for a time that never comes.
var field = regexp.MustCompile(`^[0-9A-Za-z*?/-]+(,[0-9A-Za-z*?/-]+)*$`)

// Next returns the first time after a time at which a schedule fires: six fields (second, minute, hour, day of the
// month, month, day of the week), five without the second, or one of @hourly, @daily, @weekly, @monthly and @yearly.
// zone is the name of a time zone in the IANA database, "" means UTC. The error for invalid input is [ErrInvalid].
func Next(fields, zone string, after time.Time) (time.Time, error) {
	place, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: there is no time zone %.80q; it is a name as Europe/Berlin", ErrInvalid, zone)
	}
	schedule, err := parseCron(fields)
	if err != nil {
		return time.Time{}, err
	}
	next := schedule.Next(after.In(place))
	if next.IsZero() {
		return time.Time{}, fmt.Errorf("%w: the schedule %.80q never fires", ErrInvalid, fields)
	}
	return next.UTC(), nil
}

func parseCron(text string) (cron.Schedule, error) {
	if strings.HasPrefix(text, "@") {
		schedule, err := cron.NewParser(cron.Descriptor).Parse(text)
		if _, interval := schedule.(cron.ConstantDelaySchedule); err != nil || interval {
			return nil, fmt.Errorf("%w: no schedule is called %.80q; there are @hourly, @daily, @weekly, @monthly and @yearly", ErrInvalid, text)
		}
		return schedule, nil
	}
	fields := strings.Fields(text)
	if len(fields) == len(fieldNames)-1 {
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) != len(fieldNames) {
		return nil, fmt.Errorf("%w: a schedule has five fields (minute, hour, day of the month, month, day of the week), or six with the second first; %.80q has %d", ErrInvalid, text, len(strings.Fields(text)))
	}
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	for i, f := range fields {
		if err := checkField(parser, i, f); err != nil {
			return nil, err
		}
	}
	return parser.Parse(strings.Join(fields, " "))
}

// checkField returns what is wrong with one field, by its name.
func checkField(parser cron.Parser, i int, text string) error {
	if !field.MatchString(text) {
		return fmt.Errorf("%w: the %s of a schedule cannot be %.80q", ErrInvalid, fieldNames[i], text)
	}
	alone := strings.Fields("* * * * * *")
	alone[i] = text
	if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
		return fmt.Errorf("%w: the %s of a schedule cannot be %.80q: %w", ErrInvalid, fieldNames[i], text, err)
	}
	return nil
}
