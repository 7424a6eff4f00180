import ast, json

def signature(node):
    special = node.args.posonlyargs or node.args.kwonlyargs
    text = ast.unparse(node.args) if special else ", ".join(parameters(node.args))
    returns = " -> " + ast.unparse(node.returns) if node.returns else ""
    return node.name + "(" + text + ")" + returns

def parameters(args):
    plain = args.posonlyargs + args.args
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    pairs = list(zip(plain, defaults)) + list(zip(args.kwonlyargs, args.kw_defaults))
    written = lambda a, d: ast.unparse(a) + (" = " + ast.unparse(d) if d else "")
    return [written(a, d) for a, d in pairs] + ["*" + a.arg for a in [args.vararg] if a] + ["**" + a.arg for a in [args.kwarg] if a]

def analyse(source):
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as err:
        return {"error": f"{type(err).__name__}: {getattr(err, 'msg', err)}", "line": getattr(err, "lineno", 0) or 0}
    found = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            call = ("async " if isinstance(node, ast.AsyncFunctionDef) else "") + signature(node)
            found.append({"name": node.name, "signature": call, "parameters": parameters(node.args), "doc": ast.get_docstring(node) or ""})
    return {"functions": found[:50], "doc": ast.get_docstring(tree) or ""}

json.loads(json.dumps(analyse(SOURCE)))
