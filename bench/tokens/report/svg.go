package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// svg is a picture on white, whatever is behind it, in the fonts of the reader.
type svg struct {
	width, height float64
	b             bytes.Buffer
}

func newSVG(width, height float64, title string) *svg {
	s := &svg{width: width, height: height}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]g" width="%[1]g" height="%[2]g" role="img" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&s.b, "<title>%s</title>\n", escapeXML(title))
	fmt.Fprintf(&s.b, `<rect width="%g" height="%g" fill="#ffffff"/>`+"\n", width, height)
	return s
}

// String ends the picture.
func (s *svg) String() string { return s.b.String() + "</svg>\n" }

func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return b.String()
}

// text is anchored at its start, middle or end.
func (s *svg) text(x, y float64, anchor, style, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#24292f"%s>%s</text>`+"\n", x, y, anchor, styleAttr(style), escapeXML(text))
}

func (s *svg) line(x1, y1, x2, y2 float64, color, style string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"%s/>`+"\n", x1, y1, x2, y2, color, styleAttr(style))
}

func (s *svg) rect(x, y, width, height float64, color string) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, width, height, color)
}

func (s *svg) path(points [][2]float64, color, style string) {
	var at []string
	for _, p := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", p[0], p[1]))
	}
	fmt.Fprintf(&s.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(at, " "), color, styleAttr(style))
}

// mark is a circle, a square or a diamond: the modes differ in form as well as in color. A hollow one is what does not count.
func (s *svg) mark(x, y float64, mode string, hollow bool) {
	color := colorOf(mode)
	fill := color
	if hollow {
		fill = "#ffffff"
	}
	switch mode {
	case direct:
		fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="8" height="8" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n", x-4, y-4, fill, color)
	case search:
		fmt.Fprintf(&s.b, `<path d="M%.1f %.1fl5 5l-5 5l-5 -5z" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n", x, y-5, fill, color)
	default:
		fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="4.5" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n", x, y, fill, color)
	}
}

func styleAttr(style string) string {
	if style == "" {
		return ""
	}
	return " " + style
}

// lossColor is behind what code mode loses.
const lossColor = "#ffe0d1"

// colorOf is from a palette that people who see few colors can tell apart.
func colorOf(mode string) string {
	switch mode {
	case direct:
		return "#b0450f"
	case search:
		return "#8a6d00"
	}
	return "#0b5fae"
}

// scale is logarithmic.
type scale struct{ low, high, from, to float64 }

func (s scale) at(value float64) float64 {
	return s.from + (s.to-s.from)*(math.Log10(value)-math.Log10(s.low))/(math.Log10(s.high)-math.Log10(s.low))
}

// decades are the powers of ten on a scale.
func (s scale) decades() (list []float64) {
	for v := math.Pow(10, math.Ceil(math.Log10(s.low)-1e-9)); v <= s.high*1.0001; v *= 10 {
		list = append(list, v)
	}
	return list
}

// around is a scale from the power of ten below all values to the one above.
func around(values []float64, from, to float64) scale {
	low, high := math.Inf(1), 0.
	for _, v := range values {
		if v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if high == 0 {
		low, high = 1, 10
	}
	low = math.Pow(10, math.Floor(math.Log10(low)))
	return scale{low, max(10*low, math.Pow(10, math.Ceil(math.Log10(high)))), from, to}
}

// short writes 1000 as 1k.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}
