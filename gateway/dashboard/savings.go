package dashboard

import (
	"fmt"
	"math"
	"slices"

	"sallyport/gateway/budgets"
	"sallyport/gateway/history"
)

// SavingsPage is what the page of savings shows.
type SavingsPage struct {
	Days    int
	Ranges  []Range
	Savings history.Savings
	Plot    Plot
	// Newest are the steps, the newest first.
	Newest []history.SavingsStep
	// Budgets is what was used of the budgets today.
	Budgets budgets.Report
}

// Range is a choice of how far back.
type Range struct {
	Days int
	Path string
	Here bool
}

// ranges are how many days can be looked at; records go back no further than the longest.
var ranges = []int{7, 14, 30}

func (d *Dashboard) savings(r *request) (any, error) {
	p := SavingsPage{Days: r.number("days")}
	if !slices.Contains(ranges, p.Days) {
		p.Days = ranges[0]
	}
	for _, days := range ranges {
		p.Ranges = append(p.Ranges, Range{days, r.with("days", fmt.Sprint(days)), days == p.Days})
	}
	var err error
	if p.Savings, err = d.savingsOf(r.Context(), p.Days); err != nil {
		return nil, err
	}
	if p.Budgets, err = d.service.BudgetReport(r.Context()); err != nil {
		return nil, err
	}
	p.Plot = plot(p.Savings)
	p.Newest = slices.Clone(p.Savings.Steps)
	slices.Reverse(p.Newest)
	return p, nil
}

// Plot is a plot over time, with a bar for each step. What is across is in percent, so that it fits any width; what is up, in pixels.
type Plot struct {
	Bars  []Bar
	Lines []PlotLine
	// Label says in a sentence what is to be seen.
	Label string
	Empty bool
}

// Bar is one step of time, with two quantities: Low at the bottom, and High on top of that.
type Bar struct {
	X, Width  float64
	Low, High Block
	// Text is for the pointer, Time for the axis, "" where there is no room.
	Text, Time string
	Middle     float64
}

// Block is a part of a bar, from Y down.
type Block struct{ Y, Height float64 }

// PlotLine is a horizontal line, with its value.
type PlotLine struct {
	Y    float64
	Text string
}

const (
	// plotTop and plotBottom are where the plot's room begins and ends; below is the axis.
	plotTop, plotBottom = 12.0, 180.0
	plotLines           = 4
	// plotLeft is kept for the numbers, in percent.
	plotLeft = 9.0
	// plotDays is how many days have room for their names.
	plotDays = 7
)

// plot lays out a bar for each step: what models read, and above it what was kept from them.
func plot(s history.Savings) Plot {
	most := int64(0)
	for _, step := range s.Steps {
		most = max(most, step.Answered+step.SavedTokens())
	}
	p := Plot{Empty: most == 0, Label: fmt.Sprintf("In %d days, programs answered with %s tokens, and %s tokens of results stayed out of models' contexts.",
		len(s.Steps), groupDigits(s.Total.Answered), groupDigits(s.Total.SavedTokens()))}
	top := ceiling(most)
	p.Lines = scaleLines(top, compact)
	width := (100 - plotLeft) / float64(max(len(s.Steps), 1))
	every := (len(s.Steps) + plotDays - 1) / plotDays
	for i, step := range s.Steps {
		b := Bar{X: plotLeft + width*(float64(i)+.15), Width: width * .7, Middle: plotLeft + width*(float64(i)+.5)}
		b.Low = block(plotBottom, step.Answered, top)
		b.High = block(b.Low.Y, step.SavedTokens(), top)
		b.Text = fmt.Sprintf("%s: %s tokens answered, %s kept out, %s", step.Begin.Format("2 January"), groupDigits(step.Answered), groupDigits(step.SavedTokens()), plural(int64(step.Executions), "execution", "executions"))
		if (len(s.Steps)-1-i)%max(every, 1) == 0 {
			b.Time = step.Begin.Format("2 Jan")
		}
		p.Bars = append(p.Bars, b)
	}
	return p
}

func block(bottom float64, n int64, top float64) Block {
	tall := plotBottom - height(float64(n), top)
	return Block{bottom - tall, tall}
}

// scaleLines are the horizontal lines of a plot up to a value, with their values as words has them.
func scaleLines(top float64, words func(float64) string) []PlotLine {
	lines := []PlotLine{{plotBottom, "0"}}
	for i := 1; i <= plotLines; i++ {
		value := top * float64(i) / plotLines
		lines = append(lines, PlotLine{height(value, top), words(value)})
	}
	return lines
}

// ceiling is a round number that nothing is above.
func ceiling(most int64) float64 {
	if most <= 4 {
		return 4
	}
	unit := math.Pow(10, math.Floor(math.Log10(float64(most))))
	for _, times := range []float64{1, 2, 4, 8} {
		if float64(most) <= times*unit {
			return times * unit
		}
	}
	return 10 * unit
}

// compact is a number in few characters.
func compact(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%gG", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%gM", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%gk", n/1e3)
	}
	return fmt.Sprintf("%g", n)
}
