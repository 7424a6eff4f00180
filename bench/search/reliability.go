package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bins is the number of equal ranges of estimates in the reliability plot.
const bins = 10

// bin counts the answers with an estimated probability to be right in one range.
type bin struct {
	N int `json:"n"`
	// Right is how many have a gold tool among the first five, Estimate the mean of their estimates.
	Right    int     `json:"right"`
	Estimate float64 `json:"estimate"`
}

func (b bin) share() float64 { return float64(b.Right) / float64(max(1, b.N)) }

// add adds the answers of another bin.
func (b *bin) add(o bin) {
	sum := b.Estimate*float64(b.N) + o.Estimate*float64(o.N)
	b.N, b.Right = b.N+o.N, b.Right+o.Right
	b.Estimate = roundScore(sum / float64(max(1, b.N)))
}

// reliabilityOf sorts the answers of our engine into bins; the others estimate nothing.
func reliabilityOf(rows []row) []bin {
	if rows[0].Engine != ours {
		return nil
	}
	all := make([]bin, bins)
	for _, r := range rows {
		one := bin{N: 1, Estimate: r.Confidence}
		if isAnswered(r) {
			one.Right = 1
		}
		all[min(bins-1, int(r.Confidence*bins))].add(one)
	}
	return all
}

// reliability returns the bins of all queries of a half.
func reliability(all []mean, half string) []bin {
	total := make([]bin, bins)
	for _, m := range ofEngine(all, ours) {
		for i, b := range m.Reliability {
			if m.Half == half {
				total[i].add(b)
			}
		}
	}
	return total
}

// plotName is the file of the reliability plot, next to the page.
const plotName = "reliability.svg"

// writePlot writes the reliability plot of the page in folder docs.
func writePlot(docs string, all []mean) error {
	return os.WriteFile(filepath.Join(docs, "benchmarks", plotName), []byte(plot(all)), 0o644)
}

// pageReliability has the plot, and how often answers are right at each estimate.
func pageReliability(b *strings.Builder, all []mean) {
	fmt.Fprintf(b, "\n### Reliability\nHow often an answer has a right tool among its first five, by the estimate that it has. Queries that no tool fits count as wrong.\n\n")
	fmt.Fprintf(b, "![Share of right answers over the estimate](%s)\n\n", plotName)
	columns(b, "estimate", "n even", "right, even", "mean estimate, even", "n odd: fitted", "right, odd")
	odd := reliability(all, "odd")
	for i, even := range reliability(all, validationHalf) {
		cells(b, fmt.Sprintf("%.1f to %.1f", float64(i)/bins, float64(i+1)/bins), fmt.Sprint(even.N), shareCell(even), three(even.Estimate), fmt.Sprint(odd[i].N), shareCell(odd[i]))
	}
}

func shareCell(b bin) string {
	if b.N == 0 {
		return ""
	}
	return three(b.share())
}

// The plot's area, in its units.
const (
	plotSize, plotLeft, plotTop = 320, 60, 50
	plotWidth, plotHeight       = 460, 430
)

// plot draws the share of right answers over the estimate: points on the diagonal are calibrated.
func plot(all []mean) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintln(&b, "<title>Share of right answers over the estimated probability</title>")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, plotHeight)
	for i := range 6 {
		v := float64(i) / 5
		plotLine(&b, 0, v, 1, v, "#d0d7de")
		plotText(&b, plotX(v), plotY(0)+18, "middle", fmt.Sprintf("%.1f", v))
		plotText(&b, plotX(0)-8, plotY(v)+4, "end", fmt.Sprintf("%.1f", v))
	}
	plotLine(&b, 0, 0, 1, 1, "#57606a")
	plotText(&b, plotX(0.5), plotY(0)+38, "middle", "estimate that one of the first five tools is right")
	plotText(&b, 20, 24, "start", "Share of answers that are right (the line: as estimated)")
	plotHalf(&b, reliability(all, "odd"), "#8a6d00", "odd queries: fitted", 0)
	plotHalf(&b, reliability(all, validationHalf), "#0b5fae", "even queries", 1)
	b.WriteString("</svg>\n")
	return b.String()
}

// plotHalf draws a point for each bin of a half, and the half's line of the legend.
func plotHalf(b *strings.Builder, of []bin, color, name string, place int) {
	var points []string
	for _, one := range of {
		if one.N == 0 {
			continue
		}
		x, y := plotX(one.Estimate), plotY(one.share())
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x, y, color)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), color)
	y := plotY(0.95) + 18*float64(place)
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", plotX(0.05), y, color)
	plotText(b, plotX(0.08), y+4, "start", name)
}

func plotX(v float64) float64 { return plotLeft + plotSize*v }
func plotY(v float64) float64 { return plotTop + plotSize*(1-v) }

func plotLine(b *strings.Builder, x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", plotX(x1), plotY(y1), plotX(x2), plotY(y2), color)
}

func plotText(b *strings.Builder, x, y float64, anchor, text string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#24292f">%s</text>`+"\n", x, y, anchor, text)
}
