#!/bin/sh
# terminal.sh FREEZE IN.ansi OUT.svg: draws what a terminal has shown, in the colours of the reader's scheme.
set -e
freeze=$1 in=$2 out=$3
"$freeze" "$in" --language ansi --output "$out" --window --padding 20,24,24,24 --font.size 14 --line-height 1.35 \
	--background '#0d1117' --font.family "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace" >/dev/null

# Freeze draws a fixed size in fixed colours: with a viewBox it scales, and a style follows the scheme.
# The prompt is green (#31BB71), a command cyan (#04D7D7).
style='svg>rect{rx:8px;stroke:#30363d} text,tspan{fill:#e6edf3} [fill="#31BB71"]{fill:#7ee787} [fill="#04D7D7"]{fill:#79c0ff}'
light='svg>rect{fill:#f6f8fa;stroke:#d0d7de} text,tspan{fill:#1f2328} [fill="#31BB71"]{fill:#116329} [fill="#04D7D7"]{fill:#0550ae}'
style="$style @media (prefers-color-scheme: light){$light}"
sed -i -E \
	-e '/^<(\?xml|!DOCTYPE)/d' \
	-e "s|^<svg width=\"([0-9.]+)\" height=\"([0-9.]+)\"|<svg viewBox=\"0 0 \1 \2\" width=\"\1\" height=\"\2\" role=\"img\"|" \
	-e "s|^(<svg viewBox[^>]*>)|\1<style>$style</style>|" "$out"
