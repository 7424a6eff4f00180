package codegen

import (
	"bytes"
	"strings"
)

// printer writes code, line by line, with the indentation kept right.
type printer struct {
	buf   bytes.Buffer
	unit  code // what one level of indentation is
	depth int
}

// line writes one line put together from parts; without any it is empty.
func (p *printer) line(parts ...code) {
	if len(parts) > 0 {
		for range p.depth {
			p.buf.WriteString(string(p.unit))
		}
	}
	for _, part := range parts {
		p.buf.WriteString(string(part))
	}
	p.buf.WriteByte('\n')
}

// lines writes each line; empty ones stay empty.
func (p *printer) lines(lines []code) {
	for _, l := range lines {
		if l == "" {
			p.line()
			continue
		}
		p.line(l)
	}
}

// block writes body one level deeper, between open and shut; shut may be "".
func (p *printer) block(open code, body func(), shut code) {
	p.line(open)
	p.depth++
	body()
	p.depth--
	if shut != "" {
		p.line(shut)
	}
}

// maxLine is the longest line on which a list of parts stays together, in bytes.
const maxLine = 100

// list writes parts between open and shut: on one line if they fit, else one a line.
func (p *printer) list(open code, parts []code, shut code) {
	one := open + joinCode(parts, ", ") + shut
	if len(one)+p.depth*len(p.unit) <= maxLine && !strings.Contains(string(one), "\n") {
		p.line(one)
		return
	}
	p.block(open, func() {
		for _, part := range parts {
			p.line(part, ",")
		}
	}, shut)
}

func (p *printer) bytes() []byte { return p.buf.Bytes() }

func joinCode(parts []code, sep string) code {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = string(part)
	}
	return code(strings.Join(texts, sep))
}
