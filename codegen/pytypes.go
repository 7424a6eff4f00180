package codegen

import "slices"

// typ returns a type as an annotation.
func (p *pyFile) typ(t *typ) code {
	switch t.kind {
	case nullKind:
		return "None"
	case boolKind:
		return p.use("bool")
	case intKind:
		return p.use("int")
	case numberKind:
		return p.use("float")
	case stringKind:
		return p.use("str")
	case literalKind:
		return p.literals(t.values)
	case listKind:
		return p.use("list") + "[" + p.typ(t.elem) + "]"
	case tupleKind:
		return p.tuple(t)
	case mapKind:
		return p.use("dict") + "[" + p.use("str") + ", " + p.typ(t.elem) + "]"
	case unionKind:
		return p.union(t.arms)
	case blobKind:
		return p.use("Blob")
	case refKind:
		return ident(t.def.name)
	}
	return p.use("Any")
}

func (p *pyFile) union(arms []*typ) code {
	parts := make([]code, len(arms))
	for i, arm := range arms {
		parts[i] = p.typ(arm)
	}
	return joinCode(parts, " | ")
}

// tuple writes a tuple of variable length as a list, since Python 3.9 has no type for it.
func (p *pyFile) tuple(t *typ) code {
	if t.elem != nil {
		return p.use("list") + "[" + p.typ(union(append(slices.Clip(t.arms), t.elem)...)) + "]"
	}
	parts := make([]code, len(t.arms))
	for i, arm := range t.arms {
		parts[i] = p.typ(arm)
	}
	return p.use("tuple") + "[" + joinCode(parts, ", ") + "]"
}

// literals writes a Literal, and float for fractions, which a Literal cannot contain.
func (p *pyFile) literals(values []literal) code {
	var exact []code
	fraction := false
	for _, v := range values {
		if v.kind == numberKind {
			fraction = true
			continue
		}
		exact = append(exact, pyLiteral(v))
	}
	var parts []code
	if len(exact) > 0 {
		parts = append(parts, p.use("Literal")+"["+joinCode(exact, ", ")+"]")
	}
	if fraction {
		parts = append(parts, p.use("float"))
	}
	return joinCode(parts, " | ")
}

func pyLiteral(v literal) code {
	switch {
	case v.kind == boolKind && v.text == "true":
		return "True"
	case v.kind == boolKind:
		return "False"
	case v.kind == stringKind:
		return pyString(v.text)
	}
	return digits(v.text)
}
