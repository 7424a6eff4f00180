package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A setting is a key of upstreams.yaml, found in the tables of the decoder.
type setting struct {
	key, kind string
	// words are the values that are allowed, if they are a fixed set.
	words []string
	// owner and field are the struct and the field that hold the value; owner is "" for a local variable, field its name.
	owner, field string
	doc          string
	// keys are those of a mapping; named: it is a mapping of such mappings, by name; list: a list of them; text: or a text.
	keys              []setting
	named, list, text bool
}

// A source is the code of the decoder and of the types that it fills.
type source struct {
	fields  map[string]map[string]goField // by struct
	funcs   map[string]*ast.FuncDecl
	methods []*ast.FuncDecl     // all, as some have the same name
	words   map[string]ast.Expr // constants and variables
	returns map[string]string   // types that functions return
	lines   map[int]string      // the comment that ends in a line, by the position of the line
	set     *token.FileSet
}

type goField struct{ kind, doc string }

// types are the types of variables in a function.
type types map[string]string

// parseSource reads the code of this package and of the policy's settings.
func parseSource(t *testing.T) *source {
	t.Helper()
	s := &source{
		fields: map[string]map[string]goField{}, funcs: map[string]*ast.FuncDecl{}, words: map[string]ast.Expr{},
		returns: map[string]string{}, lines: map[int]string{}, set: token.NewFileSet(),
	}
	for _, glob := range []string{"../policy/*.go", "../identity/*.go", "../commandtool/*.go", "../secretstore/*.go", "../webaccess/*.go", "../tokenexchange/*.go", "../tlsfiles/*.go", "*.go"} { // of two types with one name, that of this package counts
		paths, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(s.set, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			s.file(file)
		}
	}
	return s
}

func (s *source) file(file *ast.File) {
	for _, group := range file.Comments {
		s.lines[int(s.set.File(group.End()).LineStart(s.set.Position(group.End()).Line))] = group.Text()
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			s.funcs[decl.Name.Name] = decl
			if decl.Recv != nil {
				s.methods = append(s.methods, decl)
			}
			if results := decl.Type.Results; results != nil && len(results.List) == 1 {
				s.returns[decl.Name.Name] = typeName(results.List[0].Type)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				s.spec(spec)
			}
		}
	}
}

func (s *source) spec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				s.words[name.Name] = spec.Values[i]
			}
		}
	case *ast.TypeSpec:
		of, ok := spec.Type.(*ast.StructType)
		if !ok {
			return
		}
		fields := map[string]goField{}
		for _, f := range of.Fields.List {
			for _, name := range f.Names {
				fields[name.Name] = goField{typeName(f.Type), f.Doc.Text()}
			}
		}
		s.fields[spec.Name.Name] = fields
	}
}

// typeName returns the name of a type without its package, pointer or brackets.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.ArrayType:
		return typeName(e.Elt)
	case *ast.MapType:
		return typeName(e.Value)
	}
	return ""
}

// function returns what a method of the decoder reads.
func (s *source) function(f *ast.FuncDecl) (setting, bool) {
	vars := types{}
	for _, param := range f.Type.Params.List {
		for _, name := range param.Names {
			vars[name.Name] = typeName(param.Type)
		}
	}
	return s.body(f.Body, vars)
}

// body returns what a function body reads: a mapping if there is one, else the first value.
func (s *source) body(body ast.Node, vars types) (found setting, ok bool) {
	s.declare(body, vars)
	var all []setting
	ast.Inspect(body, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		one, is := s.call(call, vars)
		if is {
			all = append(all, one)
		}
		return !is
	})
	for _, one := range all {
		if one.keys != nil {
			if len(all[0].words) > 0 { // a word instead of the mapping
				one.words = all[0].words
			} else if all[0].kind == kinds["Bool"] {
				one.words = []string{"true", "false"}
			} else if all[0].kind == kinds["Text"] {
				one.text = true
			}
			return one, true
		}
	}
	if len(all) == 0 {
		return setting{}, false
	}
	return all[0], true
}

// declare adds the types of variables that a body declares.
func (s *source) declare(body ast.Node, vars types) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				vars[name.Name] = typeName(n.Type)
			}
		case *ast.AssignStmt:
			name, ok := n.Lhs[0].(*ast.Ident)
			if !ok || n.Tok != token.DEFINE {
				return true
			}
			switch value := n.Rhs[0].(type) {
			case *ast.CompositeLit:
				vars[name.Name] = typeName(value.Type)
			case *ast.CallExpr:
				vars[name.Name] = s.returns[typeName(value.Fun)]
			default: // of a plain value the comment counts
				file := s.set.File(n.Pos())
				vars["// "+name.Name] = s.lines[int(file.LineStart(file.Line(n.Pos())-1))]
			}
		}
		return true
	})
}

// call returns what a call in a body reads, if it reads.
func (s *source) call(call *ast.CallExpr, vars types) (setting, bool) {
	if inner, ok := call.Fun.(*ast.CallExpr); ok {
		return s.reader(inner, vars)
	}
	name := typeName(call.Fun)
	switch name {
	case "Fields":
		if table, ok := call.Args[len(call.Args)-1].(*ast.CompositeLit); ok {
			return s.table(table, vars), true
		}
	case "Each":
		if each, ok := call.Args[len(call.Args)-1].(*ast.FuncLit); ok {
			one, ok := s.body(each.Body, vars)
			one.named = true
			return one, ok
		}
	case "List":
		one, ok := s.function(s.funcs[typeName(call.Args[len(call.Args)-1])])
		one.list = true
		return one, ok
	case "mapOf", "json":
		return setting{kind: "mapping"}, true
	}
	_, method := call.Fun.(*ast.SelectorExpr)
	f := s.funcs[name]
	if !method || f == nil || f.Recv == nil || len(call.Args) < 2 || name == "mapping" {
		return setting{}, false
	}
	one, ok := s.function(f)
	if last := call.Args[len(call.Args)-1]; ok && len(call.Args) == 3 && one.keys != nil && !one.named {
		one.owner, one.field = s.place(last, vars)
	}
	return one, ok
}

// table returns the keys of a table.
func (s *source) table(table *ast.CompositeLit, vars types) setting {
	all := setting{kind: "mapping", keys: []setting{}}
	for _, row := range table.Elts {
		cells := row.(*ast.CompositeLit).Elts
		var one setting
		switch read := cells[1].(type) {
		case *ast.FuncLit:
			one, _ = s.body(read.Body, maps.Clone(vars))
		case *ast.CallExpr:
			one, _ = s.reader(read, vars)
		}
		one.key = s.text(cells[0])
		all.keys = append(all.keys, one)
	}
	return all
}

// kinds are the types of values by the function that reads or parses them.
var kinds = map[string]string{
	"Text": "text", "oneProgram": "text", "Texts": "list of texts", "numbers": "list of whole numbers", "OneOf": "word", "secrets": "mapping of texts", "paths": "mapping of paths", "path": "path", "homePath": "path", "program": "program",
	"expression": "expression", "profiles": "list of words", "Duration": "duration", "Age": "duration or days", "Count": "whole number", "Bool": "true or false", "install": "true, false or keep",
	"parseSize": "size", "parseRate": "rate", "parsePart": "number from 0 to 1", "parseAmount": "number of 0 or more", "parseMachine": "address",
}

// reader returns what a call makes: the reader of a value.
func (s *source) reader(call *ast.CallExpr, vars types) (one setting, ok bool) {
	name, into := typeName(call.Fun), 0
	if name == "scalar" {
		name, into = typeName(call.Args[2]), 1
	}
	if one.kind, ok = kinds[name]; !ok {
		return one, false
	}
	one.owner, one.field = s.place(call.Args[into], vars)
	if name == "OneOf" {
		for _, word := range call.Args[1:] {
			one.words = append(one.words, s.list(word)...)
		}
	}
	if one.owner == "" {
		one.doc = vars["// "+one.field]
	}
	return one, true
}

// place returns the struct and the field that an expression points to.
func (s *source) place(e ast.Expr, vars types) (owner, field string) {
	switch e := e.(type) {
	case *ast.CallExpr: // a conversion
		return s.place(e.Args[0], vars)
	case *ast.UnaryExpr:
		return s.place(e.X, vars)
	case *ast.SelectorExpr:
		return s.typeOf(e.X, vars), e.Sel.Name
	case *ast.Ident:
		return "", e.Name
	}
	return "", ""
}

func (s *source) typeOf(e ast.Expr, vars types) string {
	switch e := e.(type) {
	case *ast.Ident:
		return vars[e.Name]
	case *ast.SelectorExpr:
		return s.fields[s.typeOf(e.X, vars)][e.Sel.Name].kind
	}
	return ""
}

// list returns the texts of an expression: of one text, or of a list of them.
func (s *source) list(e ast.Expr) (all []string) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		for _, item := range e.Elts {
			all = append(all, s.list(item)...)
		}
		return all
	case *ast.CallExpr: // append, slices.Clone, or a conversion
		for _, arg := range e.Args {
			all = append(all, s.list(arg)...)
		}
		return all
	case *ast.Ident:
		if value := s.words[e.Name]; value != nil {
			return s.list(value)
		}
	case *ast.SelectorExpr:
		return s.list(e.Sel)
	}
	return []string{s.text(e)}
}

func (s *source) text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		text, _ := strconv.Unquote(literal.Value)
		return text
	}
	return ""
}
