package codegen

import (
	"bytes"
	"strings"
)

// printer writes indented code line by line.
type printer struct {
	buf   bytes.Buffer
	unit  code // one level of indentation
	depth int
}

// line writes the concatenated parts as one line, or an empty line without parts.
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

// lines writes lines. It does not indent empty ones.
func (p *printer) lines(lines []code) {
	for _, l := range lines {
		if l == "" {
			p.line()
			continue
		}
		p.line(l)
	}
}

// block writes body one level deeper, between open and shut. It omits an empty shut.
func (p *printer) block(open code, body func(), shut code) {
	p.line(open)
	p.depth++
	body()
	p.depth--
	if shut != "" {
		p.line(shut)
	}
}

// maxLine is the maximum length of a list on one line, in bytes.
const maxLine = 100

// list writes parts between open and shut, on one line if they fit, else one per line.
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
